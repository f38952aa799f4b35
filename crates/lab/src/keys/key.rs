//! What a key is to the lab.

use std::fmt::Debug;
use tremula_index::{ByteKey, key};

/// A type of keys that tables are measured with: `u64`, and `String` for e-mail addresses.
///
/// Text is a `String` because an address is text, because a program would hold it so, and because
/// every rival that takes keys of any length takes a `String` or its bytes: an engine that keeps
/// keys whole makes its own copy, one that keeps bytes copies them, and nobody is handed an
/// allocation made in advance.
pub trait Key: ByteKey + Debug {
    /// A key that is only looked at: what a scan shows. Views are ordered as keys are.
    ///
    /// Byte strings for texts, so that a table that stores bytes need not make a `String` to show
    /// one.
    type View<'a>: Ord + Copy;

    /// The key, to be looked at.
    fn view(&self) -> Self::View<'_>;

    /// A key of one's own.
    ///
    /// # Panics
    ///
    /// The view is of no key, which only a broken table shows.
    fn own(view: Self::View<'_>) -> Self;

    /// Its first eight bytes as a number: ordered as keys are, as far as they go.
    fn head_of(view: Self::View<'_>) -> u64;

    /// The value that every workload stores under a key, so that each value found can be checked.
    ///
    /// Cheap, since it is computed for every entry of every scan.
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

    /// From the head, the length and the bytes in the middle, which tell addresses apart where
    /// their beginnings and their domains are alike.
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
