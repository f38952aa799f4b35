//! What a store keeps under a key: rows, packed into one word.

use crate::match_spec::Matcher;
use crate::term::{Limits, Term, Tuple, TupleWord};
use tremula_index::kit::IsOneWord;
use tremula_sync::atomic::{AtomicBool, Ordering};

/// What is kept under one key, in eight bytes: a row, or in a bag all rows with the key.
///
/// - The row `{Key}`, if the store's key determines it, is kept as the empty tuple.
/// - A compressed row is kept as a tuple of one bit string: the external form of the row, with `[]`
///   instead of the key if the store's key determines it.
/// - Any other row is kept as itself.
/// - Rows of a bag are kept as `{Row, Older}` or `{Row, Older, Count}`: the newest row in one of
///   the forms above, what is kept of the older rows, or `[]`, and how many rows these are. A
///   single row `{Key}` is kept as the empty tuple in a bag, too.
///
/// The forms cannot be confused: the row of one bit string is always kept as the empty tuple, and a
/// bag never keeps any other row without `Older`.
#[derive(Clone)]
pub(in super::super) struct Kept(Tuple);

/// How the rows of a table are kept.
#[derive(Debug)]
pub(in super::super) struct Layout {
    /// Where the key is, counted from 0.
    pub(in super::super) key_position: usize,
    /// Whether a key may have several rows.
    pub(in super::super) is_bag: bool,
    /// Whether keys are compared by `==` instead of `=:=`.
    pub(in super::super) by_value: bool,
    /// Whether long rows are compressed.
    pub(in super::super) compressed: bool,
    /// Whether the table has stored a key that another key may match although they differ: where
    /// keys are compared by `==`, a key with an equal key that is not identical; elsewhere a key
    /// with a float zero, because `0.0` and `-0.0` are identical. Without such keys, the store's
    /// key is the row's key, and a step need not read the row.
    pub(in super::super) has_equals: AtomicBool,
}

/// Rows that take at most this many bytes on the heap are not compressed: they gain little, and
/// every read would have to expand them.
const COMPRESS_ABOVE: usize = 256;

/// How many of a row's terms are asked for before they are needed.
const PREFETCHED_TERMS: usize = 8;

/// The level of compression: the lowest, as Erlang's for compressed tables.
const EFFORT: u32 = 1;

impl Layout {
    /// The key of a row, which is known to have one.
    #[inline]
    pub(in super::super) fn key_of<'a>(&self, row: &'a Tuple) -> &'a Term {
        &row[self.key_position]
    }

    /// The key for the store. An `ordered_set` treats equal keys as one key even if they are not
    /// identical, and its store keeps the first of them that it gets. For a float with an integral
    /// value the store's key is the integer, so that it determines the row `{1}` even if `{1.0}`
    /// was there before.
    #[inline]
    pub(in super::super) fn store_key(&self, key: &Term) -> Term {
        match key {
            Term::Float(float) if self.by_value => {
                float.to_integer().unwrap_or_else(|| key.clone())
            }
            _ => key.clone(),
        }
    }

    /// As [`store_key`](Self::store_key), for a row that is about to be stored.
    #[inline]
    pub(in super::super) fn new_key(&self, key: &Term) -> Term {
        let has_twin = if self.by_value {
            !is_alone(key)
        } else {
            may_hold_zero(key)
        };
        // Relaxed, like the load in `row_key`: the store orders them. A thread that finds the row
        // in the store sees what was written before the row was put there.
        if has_twin
            && !self.has_equals.load(Ordering::Relaxed)
            && (self.by_value || key.holds_zero())
        {
            self.has_equals.store(true, Ordering::Relaxed);
        }
        self.store_key(key)
    }

    /// A row as it is kept in a table that is not a bag.
    #[inline]
    pub(in super::super) fn keep(&self, row: Tuple) -> Kept {
        if row.len() == 1 && tells_itself(&row[0]) {
            return Kept(Tuple::default());
        }
        if self.compressed
            && let Some(compressed) = self.compress(&row)
        {
            return Kept(Tuple::new([compressed]));
        }
        Kept(row)
    }

    /// The row from which [`keep`](Self::keep) made `kept`; `key` is the store's key or equal to
    /// it.
    #[inline]
    pub(in super::super) fn row(&self, key: &Term, kept: &Kept) -> Tuple {
        match kept.0.elements() {
            [] => Tuple::new([self.store_key(key)]),
            [Term::Bitstring(bytes)] => self.expand(key, bytes.bytes()),
            _ => kept.0.clone(),
        }
    }

    /// What a specification makes of the row of a table that is not a bag. Does not copy a row that
    /// is kept as itself, and does not make the row `{Key}`.
    #[inline]
    pub(in super::super) fn run(
        &self,
        matcher: &mut Matcher<'_>,
        key: &Term,
        kept: &Kept,
    ) -> Option<Term> {
        match kept.0.elements() {
            [] => matcher.run_fields(&[self.store_key(key)]),
            [Term::Bitstring(_)] => matcher.run(&self.row(key, kept)),
            _ => matcher.run(&kept.0),
        }
    }

    /// The key of the rows under a key of the store: the same, or equal to it. In a bag it is the
    /// key of the newest row, as in Erlang.
    #[inline]
    pub(in super::super) fn row_key(&self, key: &Term, kept: &Kept) -> Term {
        if self.has_equals.load(Ordering::Relaxed) {
            return self.row_key_among_equals(key, kept);
        }
        key.clone()
    }

    /// As [`row_key`](Self::row_key), in a table whose rows may have other keys than the store.
    #[inline(never)]
    fn row_key_among_equals(&self, key: &Term, kept: &Kept) -> Term {
        let is_told = match kept.0.elements() {
            [] => true,
            // For a row with an integral float the store may have the integer.
            [Term::Bitstring(_)] => tells_itself(key) && !key.is_number(),
            _ => false,
        };
        if is_told {
            return key.clone();
        }
        let mut of_a_bag = self.is_bag.then(|| kept.newest_first());
        let newest = of_a_bag.as_mut().and_then(Iterator::next);
        self.key_of(&self.row(key, newest.as_ref().unwrap_or(kept)))
            .clone()
    }

    /// The rows under a key of any table, the oldest first.
    pub(in super::super) fn rows(&self, key: &Term, kept: &Kept) -> Vec<Tuple> {
        if !self.is_bag || kept.0.is_empty() {
            return vec![self.row(key, kept)];
        }
        let rows = kept.newest_first().map(|kept| self.row(key, &kept));
        let mut rows: Vec<_> = rows.collect();
        rows.reverse();
        rows
    }

    /// The newest rows under a key of a bag, the oldest of them first.
    pub(in super::super) fn newest_rows(
        &self,
        key: &Term,
        kept: &Kept,
        count: usize,
    ) -> Vec<Tuple> {
        if kept.0.is_empty() {
            return vec![self.row(key, kept)];
        }
        let newest = kept.newest_first().take(count);
        let mut rows: Vec<_> = newest.map(|kept| self.row(key, &kept)).collect();
        rows.reverse();
        rows
    }

    /// The number of rows under a key of any table. In a bag it takes time in proportion to the
    /// rows since the last one that was kept with a count.
    pub(in super::super) fn count_rows(&self, kept: &Kept) -> usize {
        if !self.is_bag {
            return 1;
        }
        let (mut rest, mut passed) = (&kept.0, 0);
        loop {
            match rest.elements() {
                [_, _, Term::Integer(count)] => return passed + *count as usize,
                [_, Term::Tuple(older)] => rest = older,
                _ => return passed + 1,
            }
            passed += 1;
        }
    }

    /// Whether more than `most` rows are under a key. Takes time in proportion to `most`.
    pub(in super::super) fn has_more_rows(&self, kept: &Kept, most: usize) -> bool {
        if !self.is_bag || kept.0.is_empty() {
            return most == 0;
        }
        kept.newest_first().nth(most).is_some()
    }

    /// The rows of a bag, as they are kept, with their count or without; `None` without a row.
    pub(in super::super) fn keep_bag(
        &self,
        oldest_first: Vec<Tuple>,
        counted: bool,
    ) -> Option<Kept> {
        let add = |older: Option<Kept>, row| Some(self.keep_one_more(older.as_ref(), row, counted));
        oldest_first.into_iter().fold(None, add)
    }

    /// What a bag keeps when this row is added behind the older ones. With their count if it will
    /// be asked for ([`count_rows`](Self::count_rows)): that takes 16 bytes a row.
    pub(in super::super) fn keep_one_more(
        &self,
        older: Option<&Kept>,
        row: Tuple,
        counted: bool,
    ) -> Kept {
        let kept = self.keep(row);
        if older.is_none() && kept.0.is_empty() {
            return kept;
        }
        let row = Term::Tuple(kept.0);
        let rest = older.map_or(Term::NIL, |older| Term::Tuple(older.0.clone()));
        if !counted {
            return Kept(Tuple::new([row, rest]));
        }
        let count = older.map_or(0, |older| self.count_rows(older)) + 1;
        Kept(Tuple::new([row, rest, Term::from(count)]))
    }

    /// The bytes on the heap of a key and of what is kept under it. A key that the store and a row
    /// share counts twice.
    pub(in super::super) fn heap_bytes(key: &Term, kept: &Kept) -> usize {
        key.heap_bytes() + Term::Tuple(kept.0.clone()).heap_bytes()
    }

    /// The row in the external form, compressed, if that takes fewer bytes than the row.
    fn compress(&self, row: &Tuple) -> Option<Term> {
        let bytes = Term::Tuple(row.clone()).heap_bytes() - self.key_of(row).heap_bytes();
        if bytes <= COMPRESS_ABOVE {
            return None;
        }
        let mut rest = row.to_vec();
        if tells_itself(self.key_of(row)) {
            rest[self.key_position] = Term::NIL;
        }
        let compressed = Term::tuple(rest).to_etf_compressed(EFFORT).ok()?;
        let compressed = Term::binary(&compressed);
        (Term::tuple([compressed.clone()]).heap_bytes() < bytes).then_some(compressed)
    }

    /// The row that [`compress`](Self::compress) got.
    fn expand(&self, key: &Term, bytes: &[u8]) -> Tuple {
        match Term::from_etf(bytes, &Limits::NONE) {
            Ok(Term::Tuple(rest)) => {
                let mut elements = rest.to_vec();
                let place = &mut elements[self.key_position];
                if place.is_nil() {
                    *place = self.store_key(key);
                }
                Tuple::new(elements)
            }
            other => unreachable!("a compressed row expands to a row, not to {other:?}"),
        }
    }
}

/// An index may keep it in its nodes, without a box.
impl IsOneWord for Kept {
    type Word = TupleWord;

    #[inline]
    fn word(&self) -> &TupleWord {
        self.0.word()
    }
}

impl Kept {
    /// Asks for the memory of what is kept.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.0.prefetch();
    }

    /// Asks for the memory of the terms in what is kept.
    #[inline]
    pub(super) fn prefetch_terms(&self) {
        for term in self.0.elements().iter().take(PREFETCHED_TERMS) {
            match term {
                Term::Bitstring(bytes) => bytes.prefetch(),
                Term::Tuple(tuple) => tuple.prefetch(),
                _ => (),
            }
        }
    }

    /// The bytes on the heap, of rows as they are kept.
    #[inline]
    pub(super) fn heap_size(&self) -> u64 {
        self.0.extent().bytes()
    }

    /// The rows of a bag, as they are kept, the newest first.
    fn newest_first(&self) -> impl Iterator<Item = Self> {
        let mut rest = Some(self.0.clone());
        std::iter::from_fn(move || {
            let tuple = rest.take()?;
            let [Term::Tuple(row), older, ..] = tuple.elements() else {
                return Some(Self(tuple));
            };
            if let Term::Tuple(older) = older {
                rest = Some(older.clone());
            }
            Some(Self(row.clone()))
        })
    }
}

/// Whether every key that is equal to this one is identical to it. To be quick, it may return false
/// for a nested key.
fn is_alone(key: &Term) -> bool {
    match key {
        Term::Float(float) => float.to_integer().is_none(),
        Term::Tuple(elements) => elements.iter().all(tells_itself),
        _ => tells_itself(key),
    }
}

/// Whether a float zero may be in this key. Looks one level deep, and returns true for what is
/// nested deeper.
#[inline]
fn may_hold_zero(key: &Term) -> bool {
    let one = |term: &Term| match term {
        Term::Float(float) => float.value() == 0.0,
        Term::Tuple(_) | Term::List(_) | Term::Map(_) | Term::Fun(_) => true,
        _ => false,
    };
    match key {
        Term::Tuple(elements) => elements.iter().any(one),
        _ => one(key),
    }
}

/// Whether every equal key determines this key, except integral floats, which
/// [`Layout::store_key`] replaces. Then the row `{Key}` need not be kept.
const fn tells_itself(key: &Term) -> bool {
    matches!(
        key,
        Term::Integer(_)
            | Term::BigInteger(_)
            | Term::Atom(_)
            | Term::Bitstring(_)
            | Term::Pid(_)
            | Term::Port(_)
            | Term::Reference(_)
    )
}
