//! Terms from bytes: any bytes are some terms, so that a small change of the bytes is a small
//! change of the terms.

use crate::Term;
use crate::term::Bitstring;

/// How deep terms are nested.
const DEPTH: usize = 5;

/// The most elements of a term.
const WIDTH: usize = 4;

/// Bytes that are taken from the front; zeros when they have ended.
pub(super) struct Source<'a> {
    bytes: &'a [u8],
}

impl<'a> Source<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A number of elements, and those.
    pub(super) fn some(
        &mut self,
        least: usize,
        mut element: impl FnMut(&mut Self) -> Term,
    ) -> Vec<Term> {
        let count = least + self.below(WIDTH + 1 - least);
        (0..count).map(|_| element(self)).collect()
    }

    /// A term that a row may hold.
    pub(super) fn term(&mut self) -> Term {
        self.nested(DEPTH, &mut |_, _| None)
    }

    /// A term that is nested in at most `depth` levels. `special` may make a term of its own, with
    /// the levels that are left, or return `None`.
    pub(super) fn nested(
        &mut self,
        depth: usize,
        special: &mut dyn FnMut(&mut Self, usize) -> Option<Term>,
    ) -> Term {
        if let Some(term) = special(self, depth) {
            return term;
        }
        let kinds = if depth == 0 { 8 } else { 12 };
        match self.below(kinds) {
            0 => Term::from(i64::from(self.byte().cast_signed())),
            1 => leaf(self.one(&["a", "b", "true", "false", "undefined", "''"])),
            2 => leaf(self.one(&[
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775808",
                "-36893488147419103232",
                "1267650600228229401496703205376",
            ])),
            3 => leaf(self.one(&["0.0", "-0.0", "1.0", "0.5", "1.0e300", "9007199254740993.0"])),
            4 => {
                let bytes = [self.byte(), self.byte()];
                let bits = self.below(17);
                let whole = &bytes[..bits.div_ceil(8)];
                Term::from(Bitstring::from_bits(whole, bits))
            }
            5 => leaf(self.one(&[
                "#Pid<n.1.2.3>",
                "#Port<n.3.4>",
                "#Ref<n.1.2.3>",
                "fun a:b/1",
            ])),
            6 => Term::NIL,
            7 => leaf(self.one(&["\"ab\"", "<<\"ab\">>", "{}", "#{}"])),
            8 => Term::tuple(self.some(0, |source| source.nested(depth - 1, special))),
            9 => Term::list(self.some(1, |source| source.nested(depth - 1, special))),
            10 => {
                let elements = self.some(1, |source| source.nested(depth - 1, special));
                Term::list_with_tail(elements, self.nested(depth - 1, special))
            }
            _ => {
                let keys = self.some(0, |source| source.nested(depth - 1, special));
                let entries = keys
                    .into_iter()
                    .map(|key| (key, self.nested(depth - 1, special)));
                Term::map(entries.collect())
            }
        }
    }
}

/// The term with a text of which this module has a list.
pub(super) fn leaf(text: &str) -> Term {
    match text.parse() {
        Ok(term) => term,
        Err(error) => panic!("{text}: {error}"),
    }
}
