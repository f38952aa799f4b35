//! The request parser, which is incremental and does not copy its input.
//!
//! # Invariants
//!
//! 1. Between two calls for one request the caller only appends to the buffer. All positions
//!    are relative to the request's first byte, so the buffer itself may move.
//! 2. No memory is allocated from a declared length: `spans` grows with the arguments that have
//!    arrived, and the buffer is the caller's.
//! 3. Every byte is read a bounded number of times, however the input is cut: `scanned` is the part
//!    of an unfinished line that has been searched.

mod kept;

use super::{inline, number};
use crate::limits::{Limits, MAX_LINE};
pub(crate) use kept::KeptRequests;
use std::ops::Range;
use thiserror::Error;

/// The position of an argument, relative to the start of its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A request breaks the protocol. The texts are Redis's.
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
    #[error("unauthenticated multibulk length")]
    UnknownMultibulkLength,
    #[error("unauthenticated bulk length")]
    UnknownBulkLength,
    #[error("query buffer limit of {0} bytes exceeded")]
    QueryTooLong(usize),
}

impl ProtocolError {
    /// The text as it is sent. The unexpected byte is sent as it came, even if it is not UTF-8.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("ERR Protocol error: {self}").into_bytes();
        if let Self::ExpectedDollar(met) = self {
            text.truncate(text.len() - 1 - (*met as char).len_utf8());
            text.extend([*met, b'\'']);
        }
        text
    }
}

/// The arguments of one request in the read buffer, beginning with the command's name.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    pub(crate) fn len(self) -> usize {
        self.spans.len()
    }

    /// The bytes of the request, up to the end of the last argument.
    pub(crate) fn size(self) -> usize {
        self.spans.last().map_or(0, |span| span.end)
    }

    /// The argument at `index`; empty if the request has fewer.
    pub(crate) fn get(self, index: usize) -> &'a [u8] {
        self.spans
            .get(index)
            .map_or(&[], |span| &self.bytes[span.start..span.end])
    }

    /// The arguments from `first` on, as a request of their own.
    pub(crate) fn behind(self, first: usize) -> Self {
        Self {
            bytes: self.bytes,
            spans: &self.spans[first.min(self.spans.len())..],
        }
    }

    /// Some of the arguments, as a request of their own.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        Self {
            bytes: self.bytes,
            spans: &self.spans[range],
        }
    }

    /// The arguments from `first` on.
    pub(crate) fn skip(self, first: usize) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.spans[first.min(self.spans.len())..]
            .iter()
            .map(move |span| &self.bytes[span.start..span.end])
    }
}

/// Reads one request after another from a growing buffer.
pub(crate) struct RequestParser {
    max_argument: usize,
    max_arguments: usize,
    /// The part of the request that has been read.
    position: usize,
    /// The end of the part that has been searched for the end of the line at `position`.
    scanned: usize,
    /// Arguments of a multibulk request that have not arrived yet.
    missing: usize,
    /// The declared length of the next argument.
    bulk_length: Option<usize>,
    spans: Vec<Span>,
    /// The words of an inline request, unquoted. `spans` then refer to this.
    words: Vec<u8>,
    is_inline: bool,
    /// Whether the client has proved whose connection it is: else only short requests are read.
    pub(crate) is_known: bool,
}

/// Arguments of a request, and bytes of one of them, before the client has proved who it is. As in
/// Redis; `HELLO` with all its options has eight, and a password of any length is shorter.
const UNKNOWN_ARGUMENTS: i64 = 10;
const UNKNOWN_ARGUMENT: usize = 16 << 10;

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
            is_known: true,
        }
    }

    /// Reads on in `buffer`, which starts at the request's first byte. Returns the length of the
    /// request once it is complete. Its [`arguments`](Self::arguments) are then available until
    /// [`next`](Self::next) is called. A request without arguments has no reply.
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
                if !self.is_known && count > UNKNOWN_ARGUMENTS {
                    return Err(ProtocolError::UnknownMultibulkLength);
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

    /// The length that an unfinished request has at least, by what it has declared so far.
    pub(crate) fn declared_length(&self) -> usize {
        self.position
            .saturating_add(self.bulk_length.unwrap_or_default())
    }

    /// The arguments of the request that [`parse`](Self::parse) has just completed.
    pub(crate) fn arguments<'a>(&'a self, buffer: &'a [u8]) -> Arguments<'a> {
        Arguments {
            bytes: if self.is_inline { &self.words } else { buffer },
            spans: &self.spans,
        }
    }

    /// Resets the parser for the next request.
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

    /// Lets arguments be as long as this from now on.
    pub(crate) fn set_max_argument(&mut self, bytes: usize) {
        self.max_argument = bytes;
    }

    /// The bytes that are allocated for the present request, beyond those that stay for the next.
    pub(crate) fn grown(&self) -> usize {
        let spans = self.spans.capacity().saturating_sub(KEPT_SPANS);
        spans * size_of::<Span>() + self.words.capacity()
    }

    /// The bytes that are allocated.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn held(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.words.capacity()
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
            // Two more bytes end the argument. Like Redis, this does not check them.
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
            // In an empty line, the first byte of its end is in the place of the `$`.
            return Err(ProtocolError::ExpectedDollar(
                *line.first().unwrap_or(&b'\r'),
            ));
        };
        let length = number::parse(digits)
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length <= self.max_argument)
            .ok_or(ProtocolError::InvalidBulkLength)?;
        if !self.is_known && length > UNKNOWN_ARGUMENT {
            return Err(ProtocolError::UnknownBulkLength);
        }
        Ok(Some(length))
    }

    /// Takes the line at `position`, without the two bytes of its end.
    ///
    /// As in Redis, a carriage return ends it for any following byte, and a zero byte hides all
    /// bytes behind it: such a line never ends, and becomes `too_long`.
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

/// The position of the first `wanted` at or after `from`, unless a zero byte comes before it; else
/// the position up to which the search need not be repeated.
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

/// Reads an inline request, for tests.
#[cfg(test)]
pub(crate) fn with_line<R>(line: &str, read: impl FnOnce(Arguments<'_>) -> R) -> R {
    let mut parser = RequestParser::new(&Limits::default());
    let request = format!("{line}\r\n").into_bytes();
    let parsed = parser.parse(&request).expect("a request");
    parsed.expect("a whole one");
    read(parser.arguments(&request))
}

#[cfg(test)]
mod tests;
