//! What a key is to the lab.

use std::fmt::Debug;
use tremula_index::{ByteKey, key};

/// A type of keys that tables are measured with: `u64`, and `String` for e-mail addresses.
///
/// Text is a `String` because a program would hold an address so, and because every rival that
/// takes keys of any length takes a `String` or its bytes. An engine that keeps whole keys makes
/// its own copy, one that keeps bytes copies them, and no table receives an allocation made in
/// advance.
pub trait Key: ByteKey + Debug {
    /// A borrowed key, as a scan shows it. Views are ordered as keys are.
    ///
    /// A byte string for texts, so that a table that stores bytes can show a key without making a
    /// `String`.
    type View<'a>: Ord + Copy;

    /// Borrows the key.
    fn view(&self) -> Self::View<'_>;

    /// Makes an owned key.
    ///
    /// # Panics
    ///
    /// The view is of no key; only a broken table shows such a view.
    fn own(view: Self::View<'_>) -> Self;

    /// Its first eight bytes as a number, which never contradicts the order of keys.
    fn head_of(view: Self::View<'_>) -> u64;

    /// The value that every workload stores under a key, so that each value found can be checked.
    /// It is cheap to compute, because it is computed for every entry of every scan.
    fn value_of(view: Self::View<'_>) -> u64;

    /// How many bytes the key has.
    fn length(&self) -> usize;
}

impl Key for u64 {
    type View<'a> = Self;

    #[inline]
    fn view(&self) -> Self {
        *self
    }

    #[inline]
    fn own(view: Self) -> Self {
        view
    }

    #[inline]
    fn head_of(view: Self) -> Self {
        view
    }

    #[inline]
    fn value_of(view: Self) -> Self {
        !view
    }

    fn length(&self) -> usize {
        size_of::<Self>()
    }
}

impl Key for String {
    type View<'a> = &'a [u8];

    #[inline]
    fn view(&self) -> &[u8] {
        self.as_bytes()
    }

    fn own(view: &[u8]) -> Self {
        std::str::from_utf8(view)
            .expect("keys are valid text")
            .to_owned()
    }

    #[inline]
    fn head_of(view: &[u8]) -> u64 {
        key::head_of(view)
    }

    /// Computed from the head, the length and the bytes in the middle, which distinguish addresses
    /// with similar beginnings and equal domains.
    #[inline]
    fn value_of(view: &[u8]) -> u64 {
        let middle = Self::head_of(&view[view.len() / 2..]);
        !(Self::head_of(view) ^ middle.rotate_left(31) ^ view.len() as u64)
    }

    fn length(&self) -> usize {
        self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_ordered_as_keys_are() {
        let keys = ["", "a", "a\u{1}", "abcdefg", "abcdefgh", "abcdefghi", "b"];
        for pair in keys.windows(2) {
            let [low, high] = [pair[0], pair[1]].map(str::to_owned);
            assert!(low < high);
            assert!(
                String::head_of(low.view()) <= String::head_of(high.view()),
                "{low} {high}"
            );
        }
    }

    #[test]
    fn a_view_becomes_the_key_again() {
        assert_eq!(u64::own(7.view()), 7);
        let text = "ann@example.org".to_owned();
        assert_eq!(String::own(text.view()), text);
        assert_eq!((7.length(), text.length()), (8, 15));
    }

    #[test]
    fn values_tell_similar_keys_apart() {
        let value = |text: &str| String::value_of(text.as_bytes());
        assert_ne!(value("john.smith@gmail.com"), value("john.smyth@gmail.com"));
        assert_ne!(value("a"), value("ab"));
        assert_ne!(u64::value_of(1), u64::value_of(2));
    }
}
