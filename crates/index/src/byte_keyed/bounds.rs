//! Ranges of keys in their byte forms.

use crate::contract::KeyRange;
use crate::form::Sought;
use crate::key::ByteKey;
use std::ops::Bound;

/// How an engine obtains the byte forms of keys.
pub(crate) trait ByteForm<K> {
    /// Calls `read` with the byte form of a key.
    fn with<R>(key: &K, read: impl FnOnce(&[u8]) -> R) -> R;

    /// Calls `read` with the part of a byte form that the engine uses.
    fn part_of<R>(bytes: &[u8], read: impl FnOnce(&[u8]) -> R) -> R;

    /// Calls `read` with the byte form of a key that is looked for.
    #[inline(always)]
    fn of_sought<R>(sought: Sought<'_, K>, read: impl FnOnce(&[u8]) -> R) -> R {
        match sought {
            Sought::Key(key) => Self::with(key, read),
            Sought::Form(form) => {
                let (mut read, mut result) = (Some(read), None);
                form.read_bytes(&mut |bytes| {
                    let read = read.take();
                    result = read.map(|read| Self::part_of(bytes, read));
                });
                match result {
                    Some(result) => result,
                    None => unreachable!("an engine is given forms that it can look for"),
                }
            }
        }
    }
}

/// The byte forms that the keys themselves return.
pub(crate) enum AsGiven {}

impl<K: ByteKey> ByteForm<K> for AsGiven {
    #[inline]
    fn with<R>(key: &K, read: impl FnOnce(&[u8]) -> R) -> R {
        key.with_bytes(read)
    }

    #[inline]
    fn part_of<R>(bytes: &[u8], read: impl FnOnce(&[u8]) -> R) -> R {
        read(bytes)
    }
}

/// The bounds of a range, in their byte forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'b> {
    pub(crate) low: Bound<&'b [u8]>,
    pub(crate) high: Bound<&'b [u8]>,
}

impl<'b> Bounds<'b> {
    /// The keys at which the range begins and ends, whether or not they are in it.
    pub(crate) fn edges(&self) -> [Option<&'b [u8]>; 2] {
        [self.low, self.high].map(|bound| match bound {
            Bound::Included(bytes) | Bound::Excluded(bytes) => Some(bytes),
            Bound::Unbounded => None,
        })
    }

    /// The edges, each if it is `met`.
    pub(crate) fn edges_met(&self, met: [bool; 2]) -> [Option<&'b [u8]>; 2] {
        let [low, high] = self.edges();
        [low.filter(|_| met[0]), high.filter(|_| met[1])]
    }

    pub(crate) fn contain(&self, bytes: &[u8]) -> bool {
        let above = match self.low {
            Bound::Included(low) => low <= bytes,
            Bound::Excluded(low) => low < bytes,
            Bound::Unbounded => true,
        };
        above
            && match self.high {
                Bound::Included(high) => bytes <= high,
                Bound::Excluded(high) => bytes < high,
                Bound::Unbounded => true,
            }
    }

    /// Whether the range contains a key that is equal to the lower edge, the upper edge or both.
    pub(crate) fn contain_edges(&self, [low, high]: [bool; 2]) -> bool {
        !(low && matches!(self.low, Bound::Excluded(_))
            || high && matches!(self.high, Bound::Excluded(_)))
    }
}

/// Calls `work` with the byte forms of the bounds of a range.
pub(crate) fn with_bounds<F: ByteForm<K>, K, R>(
    range: KeyRange<'_, K>,
    work: impl FnOnce(Bounds<'_>) -> R,
) -> R {
    with_bound::<F, _, _>(range.low, |low| {
        with_bound::<F, _, _>(range.high, |high| work(Bounds { low, high }))
    })
}

fn with_bound<F: ByteForm<K>, K, R>(
    bound: Bound<Sought<'_, K>>,
    work: impl FnOnce(Bound<&[u8]>) -> R,
) -> R {
    match bound {
        Bound::Included(key) => F::of_sought(key, |bytes| work(Bound::Included(bytes))),
        Bound::Excluded(key) => F::of_sought(key, |bytes| work(Bound::Excluded(bytes))),
        Bound::Unbounded => work(Bound::Unbounded),
    }
}
