//! The request parser: incremental, and without a copy of what it reads.
//!
//! # Invariants
//!
//! 1. Between two calls for one request the caller only appends to the buffer. All positions
//!    are relative to the request's first byte, so the buffer itself may move.
//! 2. Nothing is allocated from a declared length: `spans` grows with arguments that have
//!    arrived, and the buffer is the caller's.
//! 3. Every byte is looked at a bounded number of times, however the input is cut: `scanned`
//!    remembers how far a line without its end has been searched.

use super::{inline, number};
use crate::limits::{Limits, MAX_LINE};
use thiserror::Error;

/// Where an argument lies, relative to the start of its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A request that breaks the protocol. The texts are Redis's.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    #[error("invalid multibulk length")]
    InvalidMultibulkLength,
    #[error("invalid bulk length")]
    InvalidBulkLength,
    #[error("expected '$', got '{}'", *.0 as char)]
    ExpectedDollar(u8),
    #[error("too big mbulk count string")]
    CountTooLong,
    #[error("too big bulk count string")]
    LengthTooLong,
    #[error("too big inline request")]
    InlineTooLong,
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
    #[error("query buffer limit of {0} bytes exceeded")]
    QueryTooLong(usize),
}

impl ProtocolError {
    /// The text as it is sent. The byte that was met is sent as it came, UTF-8 or not.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("ERR Protocol error: {self}").into_bytes();
        if let Self::ExpectedDollar(met) = self {
            text.truncate(text.len() - 1 - (*met as char).len_utf8());
            text.extend([*met, b'\'']);
        }
        text
    }
}

/// The arguments of one request, the command's name first, as they lie in the read buffer.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    pub(crate) fn len(self) -> usize {
        self.spans.len()
    }

    /// The argument at `index`; empty when there is none.
    pub(crate) fn get(self, index: usize) -> &'a [u8] {
        self.spans
            .get(index)
            .map_or(&[], |span| &self.bytes[span.start..span.end])
    }

    /// The arguments from `first` on.
    pub(crate) fn skip(self, first: usize) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.spans[first.min(self.spans.len())..]
            .iter()
            .map(move |span| &self.bytes[span.start..span.end])
    }
}

/// Reads one request after another off a growing buffer.
pub(crate) struct RequestParser {
    max_argument: usize,
    max_arguments: usize,
    /// How far the request has been read.
    position: usize,
    /// How far the line that starts at `position` has been searched for its end.
    scanned: usize,
    /// Arguments of a multibulk request that are still to come.
    missing: usize,
    /// The length that the argument to come has declared.
    bulk_length: Option<usize>,
    spans: Vec<Span>,
    /// The words of an inline request, unquoted; `spans` then point in here.
    words: Vec<u8>,
    is_inline: bool,
}

/// The capacity that `spans` may keep from one request to the next.
const KEPT_SPANS: usize = 256;

impl RequestParser {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            max_argument: limits.max_argument.0,
            max_arguments: limits.max_arguments,
            position: 0,
            scanned: 0,
            missing: 0,
            bulk_length: None,
            spans: Vec::new(),
            words: Vec::new(),
            is_inline: false,
        }
    }

    /// Reads on in `buffer`, which starts at the request's first byte. Once the request is
    /// complete, its length; its [`arguments`](Self::arguments) can then be had until
    /// [`next`](Self::next) is called. A request may have no arguments; it asks for nothing.
    pub(crate) fn parse(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        if self.missing > 0 {
            return self.parse_arguments(buffer);
        }
        match buffer.first() {
            None => Ok(None),
            Some(b'*') => {
                let Some(line) = self.line(buffer, ProtocolError::CountTooLong)? else {
                    return Ok(None);
                };
                let count =
                    number::parse(&line[1..]).ok_or(ProtocolError::InvalidMultibulkLength)?;
                if count <= 0 {
                    return Ok(Some(self.position));
                }
                self.missing = usize::try_from(count)
                    .ok()
                    .filter(|count| *count <= self.max_arguments)
                    .ok_or(ProtocolError::InvalidMultibulkLength)?;
                self.parse_arguments(buffer)
            }
            Some(_) => self.parse_inline(buffer),
        }
    }

    /// The arguments of the request that [`parse`](Self::parse) has just found complete.
    pub(crate) fn arguments<'a>(&'a self, buffer: &'a [u8]) -> Arguments<'a> {
        Arguments {
            bytes: if self.is_inline { &self.words } else { buffer },
            spans: &self.spans,
        }
    }

    /// Forgets the request, to start with the next one.
    pub(crate) fn next(&mut self) {
        self.position = 0;
        self.scanned = 0;
        self.spans.clear();
        self.spans.shrink_to(KEPT_SPANS);
        if self.is_inline {
            self.is_inline = false;
            self.words = Vec::new();
        }
    }

    fn parse_arguments(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        while self.missing > 0 {
            let length = match self.bulk_length {
                Some(length) => length,
                None => match self.parse_bulk_length(buffer)? {
                    Some(length) => *self.bulk_length.insert(length),
                    None => return Ok(None),
                },
            };
            let end = self.position.saturating_add(length);
            // Two more bytes end the argument. Redis does not look at them either.
            if buffer.len() < end.saturating_add(2) {
                return Ok(None);
            }
            self.spans.push(Span {
                start: self.position,
                end,
            });
            self.position = end + 2;
            self.scanned = self.position;
            self.bulk_length = None;
            self.missing -= 1;
        }
        Ok(Some(self.position))
    }

    fn parse_bulk_length(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.line(buffer, ProtocolError::LengthTooLong)? else {
            return Ok(None);
        };
        let [b'$', digits @ ..] = line else {
            // An empty line: what stands where the `$` should be is its end.
            return Err(ProtocolError::ExpectedDollar(
                *line.first().unwrap_or(&b'\r'),
            ));
        };
        number::parse(digits)
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length <= self.max_argument)
            .ok_or(ProtocolError::InvalidBulkLength)
            .map(Some)
    }

    /// Takes the line at `position`, without its two bytes of end.
    ///
    /// As in Redis, a carriage return ends it whatever byte follows, and a zero byte hides all
    /// that is behind it: such a line never ends, and becomes `too_long`.
    fn line<'b>(
        &mut self,
        buffer: &'b [u8],
        too_long: ProtocolError,
    ) -> Result<Option<&'b [u8]>, ProtocolError> {
        let start = self.position;
        match find(buffer, self.scanned.max(start), b'\r') {
            Ok(end) if end + 1 < buffer.len() => {
                self.position = end + 2;
                self.scanned = self.position;
                Ok(Some(&buffer[start..end]))
            }
            Ok(end) => {
                self.scanned = end;
                Ok(None)
            }
            Err(searched) => {
                self.scanned = searched;
                if buffer.len() - start > MAX_LINE {
                    return Err(too_long);
                }
                Ok(None)
            }
        }
    }

    fn parse_inline(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let end = match find(buffer, self.scanned, b'\n') {
            Ok(end) => end,
            Err(searched) => {
                self.scanned = searched;
                if buffer.len() > MAX_LINE {
                    return Err(ProtocolError::InlineTooLong);
                }
                return Ok(None);
            }
        };
        let line = &buffer[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.is_inline = true;
        inline::split(line, &mut self.words, &mut self.spans)
            .ok_or(ProtocolError::UnbalancedQuotes)?;
        Ok(Some(end + 1))
    }
}

/// The first `wanted` at or after `from`, unless a zero byte comes before it; else how far the
/// search need not be made again.
fn find(buffer: &[u8], from: usize, wanted: u8) -> Result<usize, usize> {
    let found = buffer[from..]
        .iter()
        .position(|byte| *byte == wanted || *byte == 0);
    match found {
        Some(offset) if buffer[from + offset] == wanted => Ok(from + offset),
        Some(offset) => Err(from + offset),
        None => Err(buffer.len()),
    }
}

#[cfg(test)]
mod tests;
