//! The index of the keys of a database that expire, by time. It is changed under the lock of the
//! key.

use crate::{Expiry, INLINE_BYTES, Key};
use std::cmp::Ordering;
use std::ops::Bound;
use tremula_index::{CaTree, Direction, KeyRange, OrderedIndex};
use tremula_sync::LazyLock;
use tremula_sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tremula_sync::system::Arc;

/// Keys of up to this length lie in place beside their time.
const INLINE: usize = INLINE_BYTES - Expiry::BYTES;

/// A key, ordered by the time at which it expires. It takes no more than a key.
#[derive(Clone, Debug)]
pub(crate) enum Timed {
    Short {
        expiry: Expiry,
        length: u8,
        bytes: [u8; INLINE],
    },
    Long {
        expiry: Expiry,
        bytes: Arc<[u8]>,
    },
}

impl Timed {
    fn new(expiry: Expiry, key: &Key) -> Self {
        if let Some(bytes) = key.shared() {
            let bytes = Arc::clone(bytes);
            return Self::Long { expiry, bytes };
        }
        let key = key.as_bytes();
        let mut bytes = [0; INLINE];
        match (bytes.get_mut(..key.len()), u8::try_from(key.len())) {
            (Some(part), Ok(length)) => {
                part.copy_from_slice(key);
                Self::Short {
                    expiry,
                    length,
                    bytes,
                }
            }
            _ => Self::Long {
                expiry,
                bytes: key.into(),
            },
        }
    }

    /// Below all keys that expire after this time.
    fn end(expiry: Expiry) -> Option<Self> {
        Some(Self::Short {
            expiry: Expiry::from_millis(expiry.millis() + 1)?,
            length: 0,
            bytes: [0; INLINE],
        })
    }

    #[inline]
    pub(crate) const fn expiry(&self) -> Expiry {
        match self {
            Self::Short { expiry, .. } | Self::Long { expiry, .. } => *expiry,
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes, .. } => &bytes[..usize::from(*length)],
            Self::Long { bytes, .. } => bytes,
        }
    }

    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Short { .. } => Key::from(self.bytes()),
            Self::Long { bytes, .. } => Key::from_shared(Arc::clone(bytes)),
        }
    }
}

impl Ord for Timed {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let times = self.expiry().cmp(&other.expiry());
        times.then_with(|| self.bytes().cmp(other.bytes()))
    }
}

impl PartialOrd for Timed {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timed {}

/// The keys of a database that will expire, by time. It is made with the first of them: who uses
/// none pays nothing.
pub(crate) struct Deadlines {
    is_used: AtomicBool,
    index: LazyLock<Index, fn() -> Index>,
    /// Keys that were removed, or written anew, when their time had come.
    over: AtomicU64,
}

/// A tree that keeps keys in place, and nothing beside them: of all engines it takes the least
/// memory.
type Index = Box<dyn OrderedIndex<Timed, ()>>;

impl Deadlines {
    pub(crate) fn new() -> Self {
        Self {
            is_used: AtomicBool::new(false),
            index: LazyLock::new(|| Box::new(CaTree::new())),
            over: AtomicU64::new(0),
        }
    }

    /// Whether no key ever had a time, as far as this thread has seen.
    #[inline]
    pub(crate) fn are_unused(&self) -> bool {
        !self.is_used.load(Relaxed)
    }

    fn index(&self) -> Option<&Index> {
        (!self.are_unused()).then(|| &*self.index)
    }

    /// The number of keys that will expire.
    pub(crate) fn len(&self) -> usize {
        self.index().map_or(0, |index| index.len())
    }

    /// Notes that a key expires at another time than before. To be called under the lock of the
    /// key.
    #[inline]
    pub(crate) fn change(&self, key: &Key, before: Option<Expiry>, after: Option<Expiry>) {
        if before != after {
            self.change_to(key, before, after);
        }
    }

    fn change_to(&self, key: &Key, before: Option<Expiry>, after: Option<Expiry>) {
        let index = &*self.index;
        self.is_used.store(true, Relaxed);
        if let Some(before) = before {
            index.remove(&Timed::new(before, key));
        }
        if let Some(after) = after {
            index.insert(Timed::new(after, key), ());
        }
    }

    /// Counts keys that are removed, or written anew, when their time has come.
    #[inline]
    pub(crate) fn count_over(&self, keys: usize) {
        if keys > 0 {
            self.over.fetch_add(keys as u64, Relaxed);
        }
    }

    /// How many keys there were whose time has come.
    pub(crate) fn over(&self) -> u64 {
        self.over.load(Relaxed)
    }

    /// Drops an entry of which the key says otherwise.
    pub(crate) fn drop_entry(&self, entry: &Timed) {
        if let Some(index) = self.index() {
            index.remove(entry);
        }
    }

    /// Up to `most` keys that expire up to this time, the earliest first.
    pub(crate) fn due(&self, now: Expiry, most: usize) -> Vec<Timed> {
        let high = Timed::end(now);
        let high = high.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        self.entries(KeyRange::new(Bound::Unbounded, high), most)
    }

    /// Up to `most` keys behind this one, by time.
    pub(crate) fn behind(&self, entry: Option<&Timed>, most: usize) -> Vec<Timed> {
        let low = entry.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries(KeyRange::new(low, Bound::Unbounded), most)
    }

    fn entries(&self, range: KeyRange<'_, Timed>, most: usize) -> Vec<Timed> {
        let mut found = Vec::new();
        if let Some(index) = self.index() {
            index.scan(range, Direction::Ascending, most, &mut found);
        }
        found.into_iter().map(|(entry, ())| entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timed() -> impl Strategy<Value = Timed> {
        let time = prop_oneof![0..3_u64, 255..258_u64, Just(Expiry::LAST_MILLIS)];
        let key = prop::collection::vec(prop::sample::select(&[0, 1, 255][..]), 0..26);
        (time, key).prop_map(|(time, key)| {
            let expiry = Expiry::from_millis(time).expect("a time");
            Timed::new(expiry, &Key::from(&key[..]))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn the_order_is_by_time_and_then_by_key(one in timed(), other in timed()) {
            let pair = |timed: &Timed| (timed.expiry().millis(), timed.key());
            prop_assert_eq!(one.cmp(&other), pair(&one).cmp(&pair(&other)));
        }
    }

    #[test]
    fn it_takes_no_more_than_a_key() {
        assert_eq!(size_of::<Timed>(), size_of::<Key>());
    }

    #[test]
    fn what_is_due_is_what_has_had_its_time() {
        let deadlines = Deadlines::new();
        let at = |time| Expiry::from_millis(time);
        for time in [5, 7, 6] {
            deadlines.change(&Key::from(&[time as u8][..]), None, at(time));
        }
        let due = |time| -> Vec<u64> {
            let due = deadlines.due(at(time).expect("a time"), 10);
            due.iter().map(|entry| entry.expiry().millis()).collect()
        };
        assert_eq!(due(4), Vec::<u64>::new());
        assert_eq!(due(6), [5, 6]);
        assert_eq!(due(Expiry::LAST_MILLIS), [5, 6, 7]);
        deadlines.change(&Key::from(&[6][..]), at(6), None);
        deadlines.change(&Key::from(&[5][..]), at(5), at(9));
        assert_eq!(due(100), [7, 9]);
        assert_eq!(deadlines.len(), 2);
    }
}
