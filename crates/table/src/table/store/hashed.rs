//! The hash map under `set`, `bag` and `duplicate_bag`.
//!
//! # Why one of our own
//!
//! Beside lookups, ETS needs an order of iteration that survives growth. Then `next` can go on from
//! a key even if it has been deleted, and a traversal of a fixed table, or a `select` in chunks,
//! meets each row once. ETS also needs `update`, `take` and changes of a bag's rows in one step,
//! and no lock between two calls. `papaya`, `dashmap` and `scc::HashMap` have atomic updates. But
//! they iterate by the position in memory, which growth changes; their iterators hold a lock or a
//! guard; and they cannot go on from a key. So each of them would need a second, ordered structure
//! for traversals.
//!
//! So this is a [`HashIndex`], in the order of hashes. Here keys are hashed, by a key of each table
//! that nobody can guess, and compared by `=:=`.
//!
//! # Consistency
//!
//! Operations on one key are linearizable. A scan takes a snapshot of one shard after another. A
//! read takes no lock, and does not write to shared memory.

use super::{Decision, Edge, Entry, Garbage, Kept, Note, Reported, Span, Store};
use crate::term::{Exact, Term};
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher, RandomState};
use tremula_index::hash_index::{Figures, HashIndex, Sought};
use tremula_index::key::KeyHead;
use tremula_index::kit::InPlace;
use tremula_index::{Direction, Shape, Update};

/// Shards of a map for concurrent writers: more than the threads that write at once on most
/// machines.
const SHARDS: usize = 64;

/// A concurrent map from terms, compared by `=:=`, to what is kept under them.
pub(in super::super) struct HashStore {
    map: HashIndex<Exact, Kept, ExactHead>,
    /// The random key of the hashes, so that a client cannot choose keys of equal hashes.
    keys: RandomState,
}

/// Heads that only tell which integer or atom a key is, and nothing of other keys.
enum ExactHead {}

/// Set in the heads of integers; the other bits are the integer.
const INTEGER: u64 = 1;

impl ExactHead {
    /// The head of the keys that are kept by themselves.
    const OTHERS: u64 = 0;

    #[inline]
    fn of(key: &Term) -> u64 {
        match key {
            // Those whose upper two bits are equal, so that a shift loses nothing.
            Term::Integer(value) if *value << 1 >> 1 == *value => (*value << 1) as u64 | INTEGER,
            _ => Self::OTHERS,
        }
    }
}

impl KeyHead<Exact> for ExactHead {
    type Word = u64;
    const IS_KEY: bool = false;
    const SOME_ARE_KEYS: bool = true;

    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        head & INTEGER != 0
    }

    #[inline]
    fn head(key: &Exact) -> u64 {
        Self::of(&key.0)
    }

    #[inline]
    fn key(head: u64) -> Option<Exact> {
        Self::is_only_of_one(head).then(|| Exact(Term::Integer(head as i64 >> 1)))
    }

    #[inline]
    fn in_place<V: 'static>() -> Option<InPlace<V>> {
        InPlace::of::<Kept>()
    }
}

impl HashStore {
    /// An empty map; `concurrent` if many threads will write to it.
    pub(in super::super) fn new(concurrent: bool) -> Self {
        Self {
            map: HashIndex::new(if concurrent { SHARDS } else { 1 }),
            keys: RandomState::new(),
        }
    }

    /// Calls `work` with the key as one that is looked for.
    #[inline]
    fn seek<R>(&self, key: &Term, work: impl FnOnce(&Sought<'_, Exact>) -> R) -> R {
        let mut hasher = self.keys.build_hasher();
        key.hash_exact(&mut hasher);
        let compare = |other: &Exact| -> Ordering { other.0.cmp_exact(key) };
        work(&Sought::new(hasher.finish(), ExactHead::of(key), &compare))
    }

    /// Calls `work` with the end of a span as a key that is looked for.
    fn seek_edge<R>(
        &self,
        edge: Edge<'_>,
        work: impl FnOnce(Option<&Sought<'_, Exact>>) -> R,
    ) -> R {
        match edge {
            Edge::Open => work(None),
            Edge::Beyond(key) => self.seek(key, |sought| work(Some(sought))),
            Edge::Bound(bound) => unreachable!("{bound} is no place in the order of hashes"),
        }
    }

    /// Calls `decide` with what is under a key, and carries out its decision in the same step.
    #[inline]
    fn change(
        &self,
        key: Term,
        decide: impl FnOnce(&Term, Option<&Kept>) -> Update<Kept>,
    ) -> Option<Kept> {
        self.seek(&key, |sought| {
            let copy = || Exact(key.clone());
            self.map.update(sought, copy, |kept| decide(&key, kept))
        })
    }
}

impl Store for HashStore {
    fn engine(&self) -> &'static str {
        "hash"
    }

    fn get_with(&self, key: &Term, read: &mut dyn FnMut(&Kept)) -> bool {
        self.seek(key, |sought| self.map.get_with(sought, read).is_some())
    }

    fn insert(&self, key: Term, kept: Kept, note: Note<'_>) -> Option<Kept> {
        self.change(key, |key, _| {
            note.put(key, &kept);
            Update::Put(kept)
        })
    }

    fn insert_if_absent(&self, key: Term, kept: Kept, note: Note<'_>) -> bool {
        let mut absent = false;
        self.change(key, |key, there| {
            absent = there.is_none();
            if !absent {
                return Update::Keep;
            }
            note.put(key, &kept);
            Update::Put(kept)
        });
        absent
    }

    fn remove(&self, key: &Term, note: Note<'_>) -> Option<Kept> {
        let decide = |kept: Option<&Kept>| {
            if kept.is_none() {
                return Update::Keep;
            }
            note.removed(key);
            Update::Remove
        };
        let copy = || Exact(key.clone());
        self.seek(key, |sought| self.map.update(sought, copy, decide))
    }

    fn update(
        &self,
        key: Term,
        decide: &mut dyn FnMut(Option<&Kept>) -> Decision,
        mut note: Note<'_>,
    ) -> Option<Kept> {
        self.change(key, |key, kept| {
            let decision = decide(kept);
            note.decided(key, kept.is_some(), &decision);
            match decision {
                Decision::Put(kept) | Decision::Add(kept, _) => Update::Put(kept),
                Decision::Keep | Decision::Expire(_) => Update::Keep,
                Decision::Remove => Update::Remove,
            }
        })
    }

    fn end(&self, direction: Direction) -> Option<Entry> {
        let read = |key: &Exact, kept: &Kept| (key.0.clone(), kept.clone());
        self.map.first_between(None, None, direction, read)
    }

    fn step_with(
        &self,
        key: &Term,
        direction: Direction,
        read: &mut dyn FnMut(&Term, &Kept),
    ) -> bool {
        let read = |key: &Exact, kept: &Kept| read(&key.0, kept);
        self.seek(key, |from| {
            let (low, high) = match direction {
                Direction::Ascending => (Some(from), None),
                Direction::Descending => (None, Some(from)),
            };
            self.map.first_between(low, high, direction, read).is_some()
        })
    }

    fn scan(&self, span: Span<'_>, direction: Direction, limit: usize, out: &mut Vec<Entry>) {
        let mut entries = Vec::new();
        self.seek_edge(span.low, |low| {
            self.seek_edge(span.high, |high| {
                self.map.scan(low, high, direction, limit, &mut entries);
            });
        });
        out.extend(entries.into_iter().map(|(key, kept)| (key.0, kept)));
    }

    fn take_all(&self, _: Reported) -> Option<Garbage> {
        let mut garbage = Garbage::default();
        for taken in self.map.take_all() {
            garbage.add(taken);
        }
        Some(garbage)
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn structure_bytes(&self) -> usize {
        size_of::<Self>() - size_of_val(&self.map) + self.map.bytes()
    }

    fn shape(&self) -> Shape {
        let Figures {
            entries,
            shards,
            places,
            longest_probe,
            ..
        } = self.map.figures();
        Shape::new(
            self.engine(),
            vec![
                ("entries", entries as u64),
                ("shards", shards as u64),
                ("places", places as u64),
                ("longest_probe", longest_probe as u64),
                ("bytes", self.structure_bytes() as u64),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Tuple;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;

    fn layout() -> super::super::Layout {
        super::super::Layout {
            key_position: 0,
            is_bag: false,
            by_value: false,
            compressed: false,
            has_equals: AtomicBool::new(false),
        }
    }

    fn kept(value: i64) -> Kept {
        layout().keep(Tuple::new([Term::from(0), Term::from(value)]))
    }

    fn value(key: &Term, kept: &Kept) -> Term {
        layout().row(key, kept)[1].clone()
    }

    #[test]
    fn random_operations_do_what_they_do_to_a_map() {
        for concurrent in [false, true] {
            let store = HashStore::new(concurrent);
            let mut model = BTreeMap::new();
            let mut state = 7_u64;
            for step in 0..60_000_u64 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // The map grows for a while, then shrinks.
                let grows = step % 20_000 < 12_000;
                let key = (state >> 33) % if grows { 4_000 } else { 8_000 };
                let term = Term::from(key);
                let number = step as i64;
                match (state >> 20) % 4 {
                    0 | 1 if grows => {
                        let old = store.insert(term.clone(), kept(number), Note::nobody());
                        let old = old.map(|old| value(&term, &old));
                        assert_eq!(old, model.insert(key, number).map(Term::from));
                    }
                    2 => {
                        let put = store.insert_if_absent(term, kept(number), Note::nobody());
                        assert_eq!(put, !model.contains_key(&key));
                        model.entry(key).or_insert(number);
                    }
                    _ => {
                        let old = store.remove(&term, Note::nobody());
                        let old = old.map(|old| value(&term, &old));
                        assert_eq!(old, model.remove(&key).map(Term::from));
                    }
                }
                if step % 5_000 == 0 {
                    store.shape();
                }
            }
            store.shape();
            assert_eq!(store.len(), model.len());
            let mut all = Vec::new();
            store.scan(Span::ALL, Direction::Ascending, usize::MAX, &mut all);
            let mut back = Vec::new();
            store.scan(Span::ALL, Direction::Descending, usize::MAX, &mut back);
            back.reverse();
            let keys = |all: &[Entry]| all.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
            assert_eq!(keys(&all), keys(&back));
            let mut by_steps = Vec::new();
            let mut next = store.end(Direction::Ascending).map(|(key, _)| key);
            while let Some(key) = next.take() {
                let read = &mut |key: &Term, _: &Kept| next = Some(key.clone());
                store.step_with(&key, Direction::Ascending, read);
                by_steps.push(key);
            }
            assert_eq!(keys(&all), by_steps);
            let mut sorted = by_steps;
            sorted.sort();
            assert_eq!(
                sorted,
                model.keys().map(|key| Term::from(*key)).collect::<Vec<_>>()
            );
            assert!(store.clear(Reported::done()).free(&mut || true));
            assert_eq!((store.len(), store.shape().get("places")), (0, Some(0)));
        }
    }
}
