//! Positions in the order of keys.

use super::stream::{Piece, Relation, Stream, compare, term_of};
use crate::term::traits::compared;
use crate::term::{Prefix, Term, short_integer};
use std::cmp::Ordering;
use std::fmt;
use triomphe::Arc;

/// A position between keys in the term order: before or behind all keys with a common beginning, or
/// before or behind one key.
///
/// A key can seldom mark where a range begins or ends: among the keys `{user, 17, _}` there is
/// neither a first nor a last, because there is no least number and no longest binary. Bounds are
/// ordered among each other ([`Ord`]) and against keys ([`cmp_key`](Self::cmp_key)), and have
/// [heads](Self::head) consistent with those of keys, so that an index can treat them as keys.
///
/// ```
/// use std::cmp::Ordering;
/// use tremula_table::{Term, match_spec::KeyBound};
///
/// let bound = KeyBound::behind("{user, 17}".parse()?);
/// assert_eq!(bound.cmp_key(&"{user, 17.0}".parse()?), Ordering::Greater);
/// assert_eq!(bound.cmp_key(&"{user, 18}".parse()?), Ordering::Less);
/// # Ok::<(), tremula_table::term::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyBound {
    /// The common beginning of the keys, part by part. A single term is the whole key.
    pieces: Arc<[Piece]>,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Before,
    Behind,
}

impl KeyBound {
    /// The position directly before the keys that equal this one (`==`).
    #[must_use]
    pub fn before(key: Term) -> Self {
        Self::new(vec![Piece::Term(key)], Side::Before)
    }

    /// The position directly behind the keys that equal this one (`==`).
    #[must_use]
    pub fn behind(key: Term) -> Self {
        Self::new(vec![Piece::Term(key)], Side::Behind)
    }

    /// The bound of the keys that begin with these pieces. A single term means a whole key.
    pub(super) fn new(pieces: Vec<Piece>, side: Side) -> Self {
        Self {
            pieces: pieces.into(),
            side,
        }
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// Whether both bounds have the same keys.
    pub(super) fn is_of_same_keys(&self, other: &Self) -> bool {
        self.relation(other) == Relation::Equal
    }

    /// The key that the bound is before or behind, if the bound is of a single key.
    #[must_use]
    pub fn key(&self) -> Option<&Term> {
        match &*self.pieces {
            [Piece::Term(key)] => Some(key),
            _ => None,
        }
    }

    /// Compares the bound with a key: `Less` if the bound is before the key, else `Greater`. Takes
    /// time in proportion to their common part.
    #[must_use]
    pub fn cmp_key(&self, key: &Term) -> Ordering {
        let relation = match self.key() {
            Some(own) => own.cmp(key).into(),
            None => compare(Stream::of_pieces(&self.pieces), Stream::of_term(key)),
        };
        match (relation, self.side) {
            (Relation::Less, _) => Ordering::Less,
            (Relation::Greater, _) => Ordering::Greater,
            // The key is one of the bound's keys.
            (_, Side::Before) => Ordering::Less,
            (_, Side::Behind) => Ordering::Greater,
        }
    }

    /// A head consistent with [`TermHead`](crate::term::TermHead)'s heads of keys: if it is smaller
    /// than a key's head, the bound is before the key; if it is greater, behind it.
    #[must_use]
    pub fn head(&self) -> u64 {
        let mut prefix = Prefix::new();
        match self.key() {
            Some(key) => prefix.whole(key),
            None => {
                for piece in self.pieces.iter() {
                    match piece {
                        Piece::Tuple(size) => prefix.tuple(*size),
                        Piece::Pair => prefix.pair(),
                        Piece::Term(term) => prefix.term(term),
                    }
                }
            }
        }
        let (least, greatest) = (prefix.least_head(), prefix.greatest_head());
        // An index takes a bound with the head of a short integer for this integer itself. Such a
        // head is even, and no other key has the heads beside it that this gives.
        let is_whole = least == greatest && short_integer(least).is_some();
        match self.side {
            Side::Before => least - u64::from(is_whole),
            Side::Behind => greatest | u64::from(is_whole),
        }
    }

    /// The bound as a term: `{Side, Pieces}`, where a piece is the size of a tuple, `[]` for a
    /// pair, or `{Term}`.
    pub(super) fn to_term(&self) -> Term {
        let piece = |piece: &Piece| match piece {
            Piece::Tuple(size) => Term::from(*size),
            Piece::Pair => Term::NIL,
            Piece::Term(term) => Term::tuple([term.clone()]),
        };
        let pieces: Vec<_> = self.pieces.iter().map(piece).collect();
        let is_behind = self.side == Side::Behind;
        Term::tuple([Term::from(is_behind), Term::list(pieces)])
    }

    /// Reads what [`to_term`](Self::to_term) made; `None` if the pieces are not the beginning of
    /// keys.
    pub(super) fn from_term(term: &Term) -> Option<Self> {
        let Term::Tuple(parts) = term else {
            return None;
        };
        let [Term::Atom(is_behind), Term::List(list)] = parts.elements() else {
            return None;
        };
        let side = match is_behind.text() {
            "true" => Side::Behind,
            "false" => Side::Before,
            _ => return None,
        };
        let mut pieces = Vec::new();
        // How many parts of the key are still to come.
        let mut open = 1_usize;
        for piece in list {
            let (piece, inner) = match piece {
                Term::Integer(size) => {
                    let size = u32::try_from(*size).ok()? as usize;
                    (Piece::Tuple(size), size)
                }
                Term::Tuple(term) => match term.elements() {
                    [term] => (Piece::Term(term.clone()), 0),
                    _ => return None,
                },
                pair if pair.is_nil() => (Piece::Pair, 2),
                _ => return None,
            };
            open = open.checked_sub(1)?.checked_add(inner)?;
            pieces.push(piece);
        }
        // A whole key is one piece.
        let is_beginning = match pieces.as_slice() {
            [] => false,
            [Piece::Term(_)] => true,
            _ => open > 0,
        };
        (list.is_proper() && is_beginning).then(|| Self::new(pieces, side))
    }

    fn relation(&self, other: &Self) -> Relation {
        compare(
            Stream::of_pieces(&self.pieces),
            Stream::of_pieces(&other.pieces),
        )
    }
}

impl Ord for KeyBound {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.relation(other) {
            Relation::Less => Ordering::Less,
            Relation::Greater => Ordering::Greater,
            Relation::Equal => self.side.cmp(&other.side),
            // The other bound's keys are among this one's.
            Relation::Holds if self.side == Side::Before => Ordering::Less,
            Relation::Holds => Ordering::Greater,
            Relation::Within if other.side == Side::Before => Ordering::Greater,
            Relation::Within => Ordering::Less,
        }
    }
}

compared!(KeyBound);

/// The keys of the bound, as a pattern: `{user,17,'_'}`, `[a,b|'_']`, `5`.
impl fmt::Display for KeyBound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&term_of(&self.pieces), formatter)
    }
}
