//! Keys and values in a readable form.

use std::fmt;

/// A number in a report. A large one, of which only the bits are meaningful, is in hexadecimal.
#[derive(Clone, Copy)]
pub(super) struct Number(pub(super) u64);

const LARGE: u64 = 1 << 20;

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < LARGE {
            write!(out, "{}", self.0)
        } else {
            write!(out, "{:#x}", self.0)
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

pub(super) const fn entry((key, value): (u64, u64)) -> (Number, Number) {
    (Number(key), Number(value))
}
