//! Characters, blanks and comments.

use super::super::{Atom, Limits};
use super::error::{ParseError, ParseProblem};

/// A text that is read from the front.
pub(super) struct Scanner<'a> {
    text: &'a str,
    position: usize,
    pub(super) limits: &'a Limits,
    /// How many bytes the binaries with written sizes have taken so far.
    pub(super) expanded: usize,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str, limits: &'a Limits) -> Self {
        Self {
            text,
            position: 0,
            limits,
            expanded: 0,
        }
    }

    pub(super) const fn position(&self) -> usize {
        self.position
    }

    /// The unread text.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// The text read since `start`.
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.position]
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The next byte; if it is ASCII, it is the next character.
    #[inline]
    pub(super) fn peek_byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += next.len_utf8();
        Some(next)
    }

    /// Skips this text if it comes next; returns whether it did.
    #[inline]
    pub(super) fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.position += text.len();
        }
        is_next
    }

    /// Takes characters while they are of a kind.
    pub(super) fn take_while(&mut self, of_kind: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !of_kind(c)).unwrap_or(rest.len());
        self.position += end;
        &rest[..end]
    }

    /// Requires this text.
    pub(super) fn expect(&mut self, text: &'static str) -> Result<(), ParseError> {
        if self.take(text) {
            Ok(())
        } else {
            Err(self.wanted(text))
        }
    }

    /// Skips blanks and comments.
    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek_byte() {
            match byte {
                0..=b' ' => self.position += 1,
                b'%' => {
                    self.take_while(|c| c != '\n');
                }
                // The blanks of Latin-1 beyond ASCII.
                0xc2 if matches!(self.peek(), Some('\u{80}'..='\u{a0}')) => self.position += 2,
                _ => return,
            }
        }
    }

    /// An error about the part that begins at `offset`.
    #[cold]
    pub(super) const fn error(offset: usize, problem: ParseProblem) -> ParseError {
        ParseError { offset, problem }
    }

    /// An error that something else must be here.
    #[cold]
    pub(super) fn wanted(&self, wanted: &'static str) -> ParseError {
        let problem = match self.peek() {
            Some(found) => ParseProblem::Unexpected { found, wanted },
            None => ParseProblem::Ended { wanted },
        };
        Self::error(self.position, problem)
    }

    /// The atom with this text, which begins at `offset`.
    pub(super) fn atom(&self, offset: usize, text: &str) -> Result<Atom, ParseError> {
        match self.limits.atom(text) {
            Ok(Some(atom)) => Ok(atom),
            Ok(None) => Err(Self::error(offset, ParseProblem::NewAtom(text.to_owned()))),
            Err(error) => Err(Self::error(offset, ParseProblem::Atom(error))),
        }
    }
}
