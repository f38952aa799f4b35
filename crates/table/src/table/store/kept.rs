//! What a store keeps under a key: rows, in one word.

use crate::match_spec::Matcher;
use crate::term::{Limits, Term, Tuple};
use tremula_sync::atomic::{AtomicBool, Ordering};

/// What is kept under one key: a row, or in a bag all rows with the key, in eight bytes.
///
/// | what | kept as |
/// |---|---|
/// | the row `{Key}`, if the store's key tells it | the empty tuple |
/// | a compressed row | a tuple of one bit string: the external form of the row, with `[]` for a key that the store's key tells |
/// | any other row | itself |
/// | in a bag, several rows, or one that is not the first of these | `{Row, Older}`: a row, kept as above, and a tuple like this one or `[]` |
///
/// No row is mistaken for another thing: a row of one bit string is always kept as the empty tuple,
/// and what is kept in a bag is never a bare row.
#[derive(Clone)]
pub(in super::super) struct Kept(Tuple);

/// How the rows of a table are kept.
#[derive(Debug)]
pub(in super::super) struct Layout {
    /// Where the key is, counted from 0.
    pub(in super::super) key_position: usize,
    /// Whether there may be more than one row with a key.
    pub(in super::super) is_bag: bool,
    /// Whether keys are told apart by `==`, not by `=:=`.
    pub(in super::super) by_value: bool,
    /// Whether long rows are compressed.
    pub(in super::super) compressed: bool,
    /// Whether a key was stored that another may be taken for without looking the same: one that is
    /// equal but not identical where keys are told apart by `==`; elsewhere one with a float zero, as
    /// `0.0` and `-0.0` are identical. If not, the key of the store tells that of the row, which need
    /// not be looked at.
    pub(in super::super) has_equals: AtomicBool,
}

/// Rows that take no more bytes on the heap than this are not compressed: there is little to gain
/// from them, and each would have to be expanded when it is read.
const COMPRESS_ABOVE: usize = 256;

/// How hard compression tries: the least, as Erlang does for compressed tables.
const EFFORT: u32 = 1;

impl Layout {
    /// The key of a row, which is known to have one.
    #[inline]
    pub(in super::super) fn key_of<'a>(&self, row: &'a Tuple) -> &'a Term {
        &row[self.key_position]
    }

    /// The key as a store is to keep it. Keys that are equal in the term order but not identical
    /// are one key of an `ordered_set`, and the store keeps the first of them that it is given. For
    /// numbers it shall be the integer, if there is one, so that a row `{1}` can be told from it
    /// even if `{1.0}` was there before.
    #[inline]
    pub(in super::super) fn store_key(&self, key: &Term) -> Term {
        match key {
            Term::Float(float) if self.by_value => {
                float.to_integer().unwrap_or_else(|| key.clone())
            }
            _ => key.clone(),
        }
    }

    /// The same, of a row that is about to be stored.
    #[inline]
    pub(in super::super) fn new_key(&self, key: &Term) -> Term {
        let has_twin = if self.by_value {
            !is_alone(key)
        } else {
            may_hold_zero(key)
        };
        // Relaxed, and so is the load: whoever finds the row in the store sees what was written
        // before it was put there.
        if has_twin
            && !self.has_equals.load(Ordering::Relaxed)
            && (self.by_value || key.holds_zero())
        {
            self.has_equals.store(true, Ordering::Relaxed);
        }
        self.store_key(key)
    }

    /// A row, as it is kept in a table that is no bag.
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

    /// The row of what [`keep`](Self::keep) made; `key` is the store's key, or one that is equal
    /// to it.
    #[inline]
    pub(in super::super) fn row(&self, key: &Term, kept: &Kept) -> Tuple {
        match kept.0.elements() {
            [] => Tuple::new([self.store_key(key)]),
            [Term::Bitstring(bytes)] => self.expand(key, bytes.bytes()),
            _ => kept.0.clone(),
        }
    }

    /// What a specification makes of the row of a table that is no bag. Copies no row that is kept
    /// as it is, and makes none of a key alone.
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

    /// The key of the rows under a key of the store: the same, or one that is equal to it. In a bag it
    /// is that of the newest, as in Erlang.
    #[inline]
    pub(in super::super) fn row_key(&self, key: &Term, kept: &Kept) -> Term {
        if self.has_equals.load(Ordering::Relaxed) {
            return self.row_key_among_equals(key, kept);
        }
        key.clone()
    }

    /// The same where another key may be equal to that of the store.
    #[inline(never)]
    fn row_key_among_equals(&self, key: &Term, kept: &Kept) -> Term {
        let is_told = match kept.0.elements() {
            [] => true,
            // The store may have the integer of a row's float.
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
        let mut rows: Vec<_> = kept
            .newest_first()
            .map(|kept| self.row(key, &kept))
            .collect();
        rows.reverse();
        rows
    }

    /// The rows of a bag, as they are kept; none gives nothing to keep.
    pub(in super::super) fn keep_bag(&self, oldest_first: Vec<Tuple>) -> Option<Kept> {
        let mut all = None;
        for row in oldest_first {
            all = Some(self.keep_one_more(all.as_ref(), row));
        }
        all
    }

    /// What is kept in a bag once this row comes behind all others.
    pub(in super::super) fn keep_one_more(&self, older: Option<&Kept>, row: Tuple) -> Kept {
        let kept = self.keep(row);
        match older {
            None if kept.0.is_empty() => kept,
            None => Kept(Tuple::new([Term::Tuple(kept.0), Term::NIL])),
            Some(older) => Kept(Tuple::new([
                Term::Tuple(kept.0),
                Term::Tuple(older.0.clone()),
            ])),
        }
    }

    /// Bytes on the heap of what is kept under a key, and of the key. A key that the store and a
    /// row share counts twice.
    pub(in super::super) fn heap_bytes(key: &Term, kept: &Kept) -> usize {
        key.heap_bytes() + Term::Tuple(kept.0.clone()).heap_bytes()
    }

    /// The row in the external form, compressed, if that takes less than the row does.
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

    /// What [`compress`](Self::compress) was given.
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

impl Kept {
    /// The rows of a bag, as kept, the newest first.
    fn newest_first(&self) -> impl Iterator<Item = Self> {
        let mut rest = Some(self.0.clone());
        std::iter::from_fn(move || {
            let tuple = rest.take()?;
            let [Term::Tuple(row), older] = tuple.elements() else {
                return Some(Self(tuple));
            };
            if let Term::Tuple(older) = older {
                rest = Some(older.clone());
            }
            Some(Self(row.clone()))
        })
    }
}

/// Whether every key that is equal to this one is identical to it. It may say no of one that is
/// deeper nested, for the sake of a quick answer.
fn is_alone(key: &Term) -> bool {
    match key {
        Term::Float(float) => float.to_integer().is_none(),
        Term::Tuple(elements) => elements.iter().all(tells_itself),
        _ => tells_itself(key),
    }
}

/// Whether a float zero may be in this key: only what is nested deeper has to be gone through to tell.
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

/// Whether a key is told by every key that is equal to it, but for integral floats, which
/// [`Layout::store_key`] sees to: so that the row that has nothing but the key need not be kept.
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
