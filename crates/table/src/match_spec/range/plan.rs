//! From a clause to the keys that it can match.

use super::KeyInterval;
use super::bound::{KeyBound, Side};
use super::stream::{Piece, term_of};
use crate::match_spec::function::Comparison;
use crate::match_spec::program::{Binding, Clause, Operation, Program, Shape, is_atom, variable};
use crate::term::{Atom, Elements, Term};

/// The keys that a clause can match.
pub(super) enum Plan {
    Interval(KeyInterval),
    /// The keys that equal this one (`==`); if `exact`, only the key identical to it (`=:=`).
    Key {
        key: Term,
        exact: bool,
    },
}

/// The remaining parts of the key's pattern.
enum Ahead<'a> {
    Pattern(&'a Term),
    Rest(Elements<'a>),
}

/// The limits that guards set for a variable.
#[derive(Default)]
struct Limits<'a> {
    /// The greatest lower limit, and whether it is inclusive.
    low: Option<(&'a Term, bool)>,
    high: Option<(&'a Term, bool)>,
    /// A value that the variable must be identical to.
    identical: Option<&'a Term>,
}

/// The keys that a clause can match, in this position of the rows; `None` if it matches no row.
pub(super) fn interval(clause: &Clause, program: &Program, key_position: usize) -> Option<Plan> {
    let key = match (clause.shape, &clause.head) {
        (Shape::Size(_), Term::Tuple(head)) => head.get(key_position)?,
        (Shape::Any, _) => return Some(Plan::Interval(KeyInterval::ALL)),
        _ => return None,
    };
    let guards = &clause.operations[..clause.body];
    if guards.contains(&Operation::Never) {
        return None;
    }
    let mut pieces = Vec::new();
    let mut ahead = vec![Ahead::Pattern(key)];
    let mut exact = true;
    while let Some(next) = ahead.pop() {
        let pattern = match next {
            Ahead::Pattern(pattern) => pattern,
            Ahead::Rest(mut elements) => match elements.next() {
                Some(first) => {
                    pieces.push(Piece::Pair);
                    ahead.push(Ahead::Rest(elements));
                    ahead.push(Ahead::Pattern(first));
                    continue;
                }
                None => elements.tail(),
            },
        };
        match pattern {
            Term::Tuple(tuple) => {
                pieces.push(Piece::Tuple(tuple.len()));
                ahead.extend(tuple.iter().rev().map(Ahead::Pattern));
            }
            Term::List(list) if !list.is_empty() => ahead.push(Ahead::Rest(list.iter())),
            // It also matches larger maps, which are not next to it.
            Term::Map(_) => return Some(Plan::Interval(within(pieces, Limits::default(), false))),
            _ if is_atom(pattern, Atom::UNDERSCORE) => {
                return Some(Plan::Interval(within(pieces, Limits::default(), false)));
            }
            _ => match variable(pattern) {
                None => pieces.push(Piece::Term(pattern.clone())),
                Some(number) => {
                    let limits = limits(clause.variables.get(&number), guards, program);
                    match limits.only() {
                        Some(value) => {
                            exact &= limits.identical.is_some();
                            pieces.push(Piece::Term(value.clone()));
                        }
                        None => {
                            let last = ahead.is_empty();
                            return Some(Plan::Interval(within(pieces, limits, last)));
                        }
                    }
                }
            },
        }
    }
    let key = term_of(&pieces);
    Some(Plan::Key { key, exact })
}

impl Plan {
    pub(super) fn interval(self) -> KeyInterval {
        match self {
            Self::Interval(interval) => interval,
            Self::Key { key, .. } => KeyInterval {
                low: Some(KeyBound::before(key.clone())),
                high: Some(KeyBound::behind(key)),
            },
        }
    }

    /// The key, if exactly one key is possible under `=:=`.
    pub(super) fn exact_key(self) -> Option<Term> {
        match self {
            Self::Key { key, exact: true } => Some(key),
            _ => None,
        }
    }
}

/// The keys that begin with these pieces and whose next part is within the limits. `last` if that
/// part completes the key.
fn within(pieces: Vec<Piece>, limits: Limits<'_>, last: bool) -> KeyInterval {
    let bound = |limit: Option<(&Term, bool)>, side| {
        let Some((value, inclusive)) = limit else {
            let some = !pieces.is_empty();
            return some.then(|| KeyBound::new(pieces.clone(), side));
        };
        let mut pieces = pieces.clone();
        pieces.push(Piece::Term(value.clone()));
        if last {
            pieces = vec![Piece::Term(term_of(&pieces))];
        }
        let side = if inclusive { side } else { opposite(side) };
        Some(KeyBound::new(pieces, side))
    };
    KeyInterval {
        low: bound(limits.low, Side::Before),
        high: bound(limits.high, Side::Behind),
    }
}

const fn opposite(side: Side) -> Side {
    match side {
        Side::Before => Side::Behind,
        Side::Behind => Side::Before,
    }
}

impl Limits<'_> {
    /// The only allowed value, under `==`.
    fn only(&self) -> Option<&Term> {
        match (self.low, self.high) {
            (Some((low, true)), Some((high, true))) if low == high => {
                Some(self.identical.unwrap_or(low))
            }
            _ => None,
        }
    }
}

/// The limits for a variable from the guards that every row has to pass.
fn limits<'a>(binding: Option<&Binding>, guards: &[Operation], program: &'a Program) -> Limits<'a> {
    let mut limits = Limits::default();
    let Some(&Binding::Operand(variable)) = binding else {
        return limits;
    };
    for (comparison, constant) in guards.iter().filter_map(|guard| guard.compares(variable)) {
        let value = &program.constants[constant as usize];
        match comparison {
            Comparison::Equal | Comparison::Identical => {
                limits.raise(value, true);
                limits.lower(value, true);
                if comparison == Comparison::Identical {
                    limits.identical = Some(value);
                }
            }
            Comparison::Greater => limits.raise(value, false),
            Comparison::AtLeast => limits.raise(value, true),
            Comparison::Less => limits.lower(value, false),
            Comparison::AtMost => limits.lower(value, true),
            Comparison::NotEqual | Comparison::NotIdentical => {}
        }
    }
    limits
}

impl<'a> Limits<'a> {
    fn raise(&mut self, value: &'a Term, inclusive: bool) {
        let tighter = self
            .low
            .is_none_or(|(low, also)| value > low || value == low && also && !inclusive);
        if tighter {
            self.low = Some((value, inclusive));
        }
    }

    fn lower(&mut self, value: &'a Term, inclusive: bool) {
        let tighter = self
            .high
            .is_none_or(|(high, also)| value < high || value == high && also && !inclusive);
        if tighter {
            self.high = Some((value, inclusive));
        }
    }
}
