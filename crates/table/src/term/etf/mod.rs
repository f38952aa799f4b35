//! The external term format, version 131: the bytes of `term_to_binary`.
//!
//! No existing crate is sufficient. `eetf` (0.12) and `erlang-term` (1.1) decode by recursion, so a
//! message of a few thousand bytes overflows the stack. Their errors have no offset. They have term
//! types of their own, which would have to be built first and converted, and keep an atom's text in
//! every atom. What would remain to be written is the larger part. `flate2` does the compression.
//!
//! - `decode`: nested terms; `leaves`: all others; `reader`: the bytes.
//! - `expand`: the compressed form.
//! - `encode`: writing.

mod decode;
mod encode;
mod error;
mod expand;
mod leaves;
mod reader;
mod tag;

pub use error::{DecodeError, DecodeProblem, TooLarge};

use super::{Limits, Term};
use flate2::{Compress, Compression, FlushCompress, Status};

impl Term {
    /// Reads a term from the external term format: every tag that OTP 25 and later write for the
    /// types here, those of older versions, and the compressed form. Only the format that an Erlang
    /// writes for itself alone (`term_to_binary(Term, [local])`) is refused.
    ///
    /// Takes time and memory in proportion to the bytes, whatever lengths they declare.
    ///
    /// ```
    /// use tremula_table::{Term, term::Limits};
    ///
    /// let term = Term::from_etf(&[131, 104, 2, 97, 7, 106], &Limits::default())?;
    /// assert_eq!(term.to_string(), "{7,[]}");
    /// let error = Term::from_etf(&[131, 104, 2, 97], &Limits::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "byte 4: the bytes end here; at least 1 more are needed");
    /// # Ok::<(), tremula_table::term::DecodeError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The bytes are no term, continue after the term, or exceed a limit.
    pub fn from_etf(bytes: &[u8], limits: &Limits) -> Result<Self, DecodeError> {
        let (term, used) = decode::decode(bytes, limits)?;
        match bytes.len() - used {
            0 => Ok(term),
            left => Err(DecodeError {
                offset: used,
                in_expanded: false,
                problem: DecodeProblem::Trailing(left),
            }),
        }
    }

    /// Does the same as [`from_etf`](Self::from_etf), but the bytes may continue after the term.
    /// Also returns how many bytes the term took.
    ///
    /// # Errors
    ///
    /// The bytes do not begin with a term, or it exceeds a limit.
    pub fn from_etf_prefix(bytes: &[u8], limits: &Limits) -> Result<(Self, usize), DecodeError> {
        decode::decode(bytes, limits)
    }

    /// Writes the term in the external term format, as `term_to_binary(Term, [{minor_version, 2}])`
    /// does, except that a map's entries are in map order.
    ///
    /// # Errors
    ///
    /// A part of it is too long for the format.
    pub fn to_etf(&self) -> Result<Vec<u8>, TooLarge> {
        let mut out = vec![tag::VERSION];
        encode::encode(self, &mut out, usize::MAX)?;
        Ok(out)
    }

    /// Writes the same as [`to_etf`](Self::to_etf), but not more than `most` bytes: `None` if the
    /// term takes more, or a part of it is too long for the format. Takes memory in proportion to
    /// `most`, and to the longest part that has no inner terms.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let term: Term = "[a, b]".parse()?;
    /// let bytes = term.to_etf()?;
    /// assert_eq!(term.to_etf_within(bytes.len() - 1), None);
    /// assert_eq!(term.to_etf_within(bytes.len()), Some(bytes));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_etf_within(&self, most: usize) -> Option<Vec<u8>> {
        let mut out = vec![tag::VERSION];
        encode::encode(self, &mut out, most).ok()?;
        (out.len() <= most).then_some(out)
    }

    /// Appends the term in the external term format, without the version byte.
    pub(crate) fn append_etf(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        encode::encode(self, out, usize::MAX)
    }

    /// Reads a term that has no version byte and is not compressed from the front of `bytes`, and
    /// returns how many bytes it took.
    pub(crate) fn from_etf_body(
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<(Self, usize), DecodeError> {
        decode::decode_body(bytes, limits)
    }

    /// Writes the same as [`to_etf`](Self::to_etf), compressed as by `term_to_binary(Term,
    /// [{compressed, Level}])`: with effort 0 to 9 (more counts as 9), and only if that makes it
    /// shorter.
    ///
    /// # Errors
    ///
    /// A part of it, or the whole, is too long for the format.
    pub fn to_etf_compressed(&self, level: u32) -> Result<Vec<u8>, TooLarge> {
        let plain = self.to_etf()?;
        let body = &plain[1..];
        let length = u32::try_from(body.len()).map_err(|_| TooLarge {
            what: "compressed term",
            length: body.len(),
        })?;
        let mut out = Vec::with_capacity(plain.len());
        out.extend([tag::VERSION, tag::COMPRESSED]);
        out.extend(length.to_be_bytes());
        // The buffer is as large as the plain form; a result that does not fit is not needed.
        let mut stream = Compress::new(Compression::new(level.min(9)), true);
        let status = stream.compress_vec(body, &mut out, FlushCompress::Finish);
        Ok(match status {
            Ok(Status::StreamEnd) if out.len() < plain.len() => out,
            _ => plain,
        })
    }
}

#[cfg(test)]
mod tests;
