//! The external term format, version 131: the bytes of `term_to_binary`.
//!
//! Of the crates for it none suffices. `eetf` (0.12) and `erlang-term` (1.1) decode by recursion,
//! which a message of a few thousand bytes takes past the end of the stack, tell no offset with their
//! errors, have terms of their own that would have to be built first and walked again, and keep an
//! atom's text in every atom. What they leave to be done is the larger part. Compression is
//! `flate2`'s.
//!
//! - `decode`: terms inside of terms; `leaves`: all others; `reader`: the bytes.
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
    /// types here, those that older versions wrote, and the compressed form. Only what one
    /// Erlang writes for itself alone (`term_to_binary(Term, [local])`) is refused.
    ///
    /// Takes time and memory in proportion to the bytes, whatever lengths they tell.
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
    /// The bytes are no term, more than a term, or exceed a limit.
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

    /// As [`from_etf`](Self::from_etf), but for bytes that may go on behind the term; also gives
    /// how many bytes the term took.
    ///
    /// # Errors
    ///
    /// The bytes begin with no term, or it exceeds a limit.
    pub fn from_etf_prefix(bytes: &[u8], limits: &Limits) -> Result<(Self, usize), DecodeError> {
        decode::decode(bytes, limits)
    }

    /// Writes the term in the external term format, as `term_to_binary(Term, [{minor_version, 2}])`
    /// does but for the order of a map's entries: here it is the map order.
    ///
    /// # Errors
    ///
    /// A part of it is longer than the format can tell.
    pub fn to_etf(&self) -> Result<Vec<u8>, TooLarge> {
        let mut out = vec![tag::VERSION];
        encode::encode(self, &mut out)?;
        Ok(out)
    }

    /// As [`to_etf`](Self::to_etf), compressed as `term_to_binary(Term, [{compressed, Level}])`
    /// does: with effort 0 to 9 (more counts as 9), and only if that makes it shorter.
    ///
    /// # Errors
    ///
    /// A part of it, or the whole, is longer than the format can tell.
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
        // The room is what the plain form takes: what does not get into it is not wanted.
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
