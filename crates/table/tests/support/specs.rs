//! Random match specifications, with rows that they may match.

use num_bigint::BigInt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tremula_table::Term;
use tremula_table::term::{Atom, Bitstring, Export, Pid, Port, Reference};

/// Functions by their arity, without those that Erlang 25 lacks (`is_bitstring`, `is_boolean`,
/// `tuple_size`, `ceil`, `floor`, `min`, `max`) and those without an argument.
const FUNCTIONS: [&[&str]; 3] = [
    &[
        "is_atom",
        "is_float",
        "is_integer",
        "is_list",
        "is_number",
        "is_pid",
        "is_port",
        "is_reference",
        "is_tuple",
        "is_map",
        "is_binary",
        "is_function",
        "not",
        "+",
        "-",
        "bnot",
        "abs",
        "hd",
        "tl",
        "length",
        "size",
        "bit_size",
        "byte_size",
        "map_size",
        "node",
        "round",
        "trunc",
        "float",
        "and",
        "or",
        "andalso",
        "orelse",
    ],
    &[
        "is_map_key",
        "xor",
        "+",
        "-",
        "*",
        "/",
        "div",
        "rem",
        "band",
        "bor",
        "bxor",
        "bsl",
        "bsr",
        "==",
        "/=",
        "=:=",
        "=/=",
        "<",
        ">",
        "=<",
        ">=",
        "element",
        "map_get",
        "binary_part",
        "and",
        "or",
        "andalso",
        "orelse",
        "andthen",
    ],
    &["is_record", "binary_part", "and", "or", "andalso", "orelse"],
];

const COMPARISONS: &[&str] = &["==", "/=", "=:=", "=/=", "<", ">", "=<", ">="];

/// Names of no function, or of none that match specifications have.
const UNKNOWN: &[&str] = &[
    "foo",
    "is_even",
    "message",
    "get_tcw",
    "display",
    "is_seq_trace",
];

/// Generates specifications and rows.
pub(crate) struct Specs {
    random: StdRng,
    /// The variables of the head under construction.
    bound: Vec<u32>,
}

fn atom(text: &str) -> Term {
    Term::atom(text).unwrap()
}

impl Specs {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            bound: Vec::new(),
        }
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.random.random_ratio(1, many)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.random_range(0..limit)
    }

    fn pick(&mut self, texts: &[&str]) -> Term {
        atom(texts.choose(&mut self.random).unwrap())
    }

    /// A specification with up to `depth` levels, and rows.
    pub(crate) fn spec_and_rows(&mut self, depth: usize, rows: usize) -> (Term, Vec<Term>) {
        let size = 1 + self.below(4);
        // Specifications can be run against terms that are not rows, too.
        let is_row = !self.one_in(8);
        let row = if is_row {
            self.row(size, depth)
        } else {
            self.value(depth)
        };
        let clauses = 1 + self.below(2) * self.below(2);
        let clauses: Vec<_> = (0..clauses).map(|_| self.clause(&row, depth)).collect();
        let spec = Term::list(clauses);
        let spec = if self.one_in(12) {
            self.spoil(&spec)
        } else {
            spec
        };
        let mut all = vec![row.clone()];
        while all.len() < rows {
            let near = self.near(&row);
            all.push(if near.is_row() || !is_row {
                near
            } else {
                self.row(size, depth)
            });
        }
        (spec, all)
    }

    fn row(&mut self, size: usize, depth: usize) -> Term {
        let fields: Vec<_> = (0..size).map(|_| self.value(depth)).collect();
        Term::tuple(fields)
    }

    fn clause(&mut self, row: &Term, depth: usize) -> Term {
        self.bound.clear();
        let head = match self.below(40) {
            0 => atom("_"),
            1 => self.new_variable(),
            2 => self.pattern(row, depth),
            _ => match row {
                Term::Tuple(fields) => {
                    let fields: Vec<_> = fields
                        .iter()
                        .map(|field| self.pattern(field, depth))
                        .collect();
                    Term::tuple(fields)
                }
                other => self.pattern(other, depth),
            },
        };
        let guards = [0, 0, 1, 1, 1, 2, 3][self.below(7)];
        let guards: Vec<_> = (0..guards).map(|_| self.guard(depth)).collect();
        let body = 1 + self.below(2) * self.below(2);
        let body: Vec<_> = (0..body).map(|_| self.expression(depth)).collect();
        Term::tuple([head, Term::list(guards), Term::list(body)])
    }

    fn new_variable(&mut self) -> Term {
        let number = match self.below(8) {
            0 => 0,
            1 => 17,
            other => other as u32,
        };
        self.bound.push(number);
        atom(&format!("${number}"))
    }

    /// A pattern that mostly matches the term.
    fn pattern(&mut self, term: &Term, depth: usize) -> Term {
        match self.below(20) {
            0..4 => return atom("_"),
            4..11 => return self.new_variable(),
            11 => return self.value(1),
            12 => return self.near(term),
            _ => {}
        }
        let depth = depth.saturating_sub(1);
        match term {
            Term::Tuple(tuple) => {
                let parts: Vec<_> = tuple.iter().map(|part| self.pattern(part, depth)).collect();
                Term::tuple(parts)
            }
            Term::List(list) if !list.is_empty() => {
                let mut elements = list.iter();
                let mut parts: Vec<_> = elements
                    .by_ref()
                    .map(|part| self.pattern(part, depth))
                    .collect();
                let mut tail = elements.tail().clone();
                match self.below(4) {
                    0 => tail = self.pattern(&tail, depth),
                    1 => {
                        parts.truncate(self.below(parts.len() + 1));
                        tail = if self.one_in(2) {
                            atom("_")
                        } else {
                            self.new_variable()
                        };
                    }
                    _ => {}
                }
                Term::list_with_tail(parts, tail)
            }
            Term::Map(map) => {
                let mut parts = Vec::new();
                for (key, value) in map.entries() {
                    if !self.one_in(3) {
                        parts.push((key.clone(), self.pattern(value, depth)));
                    }
                }
                if self.one_in(30) {
                    parts.push((self.new_variable(), atom("_")));
                }
                Term::map(parts)
            }
            _ => term.clone(),
        }
    }

    /// A guard that is often `true`, with operands that are mostly bound.
    fn guard(&mut self, depth: usize) -> Term {
        if depth == 0 {
            return if self.one_in(3) {
                self.leaf_expression()
            } else {
                Term::from(true)
            };
        }
        match self.below(10) {
            0..4 => {
                let name = self.pick(COMPARISONS);
                let (one, two) = (self.expression(depth - 1), self.expression(depth - 1));
                Term::tuple([name, one, two])
            }
            4..6 => {
                let name = self.pick(&FUNCTIONS[0][..13]);
                let argument = self.expression(depth - 1);
                Term::tuple([name, argument])
            }
            6..9 => {
                let count = 1 + self.below(3);
                let mut call = vec![self.pick(&["and", "or", "andalso", "orelse", "andthen"])];
                call.extend((0..count).map(|_| self.guard(depth - 1)));
                Term::tuple(call)
            }
            _ => self.expression(depth),
        }
    }

    /// An expression for a body.
    fn expression(&mut self, depth: usize) -> Term {
        if depth == 0 || self.one_in(3) {
            return self.leaf_expression();
        }
        match self.below(16) {
            0..2 => {
                let count = self.below(4);
                let parts: Vec<_> = (0..count).map(|_| self.expression(depth - 1)).collect();
                Term::tuple([Term::tuple(parts)])
            }
            2..4 => {
                let count = 1 + self.below(3);
                let parts: Vec<_> = (0..count).map(|_| self.expression(depth - 1)).collect();
                let tail = if self.one_in(3) {
                    self.expression(depth - 1)
                } else {
                    Term::NIL
                };
                Term::list_with_tail(parts, tail)
            }
            4 => {
                // At most two keys: if two of three keys have the same value, Erlang 25 makes a map
                // that has one key twice.
                let count = self.below(3);
                let mut parts = Vec::new();
                for _ in 0..count {
                    parts.push((self.expression(depth - 1), self.expression(depth - 1)));
                }
                Term::map(parts)
            }
            5 => Term::tuple([atom("const"), self.value(depth)]),
            6 if self.one_in(4) => {
                let count = self.below(3);
                let mut call = vec![self.pick(UNKNOWN)];
                call.extend((0..count).map(|_| self.expression(depth - 1)));
                Term::tuple(call)
            }
            6 => Term::tuple([self.pick(&["self", "node"])]),
            _ => {
                let arity = [1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3][self.below(12)];
                let mut call = vec![self.pick(FUNCTIONS[arity - 1])];
                let shifts = [atom("bsl"), atom("bsr")].contains(&call[0]);
                call.extend((0..arity).map(|_| self.expression(depth - 1)));
                if shifts {
                    // Shifts by a distance that every implementation either allows or refuses.
                    let by = self.random.random_range(-70..90_i64);
                    call[2] = Term::from(if self.one_in(9) { by << 53 } else { by });
                }
                Term::tuple(call)
            }
        }
    }

    fn leaf_expression(&mut self) -> Term {
        match self.below(20) {
            0..11 if !self.bound.is_empty() => {
                let place = self.below(self.bound.len());
                let number = self.bound[place];
                atom(&format!("${number}"))
            }
            11 => atom("$_"),
            12 => atom("$$"),
            13 if self.one_in(20) => atom("$9"),
            14 => Term::from(self.random.random_range(0..4_i64)),
            _ => match self.value(0) {
                // A bare tuple would be a call.
                tuple @ Term::Tuple(_) if !self.one_in(20) => Term::tuple([atom("const"), tuple]),
                other => other,
            },
        }
    }

    fn leaf(&mut self) -> Term {
        let small = self.random.random_range(-2..5_i64);
        match self.below(30) {
            0..8 => Term::from(small),
            8 => Term::from(self.random.random_range(i64::MIN..i64::MAX)),
            9 => Term::from((BigInt::from(1) << self.random.random_range(58..70_u32)) + small),
            10 => Term::from(-(BigInt::from(1) << self.random.random_range(62..200_u32))),
            11..13 => Term::try_from(small as f64).unwrap(),
            13 => Term::try_from(-0.0).unwrap(),
            14 => Term::try_from(small as f64 / 4.0).unwrap(),
            15 => Term::try_from(
                *[1e300, -1e-300, 9.007_199_254_740_992e15, 1e19]
                    .choose(&mut self.random)
                    .unwrap(),
            )
            .unwrap(),
            16..18 => Term::from(self.one_in(2)),
            18..21 => self.pick(&["a", "b", "rec", "ok", "", "EXIT"]),
            21 => self.pick(&["_", "$1", "$_", "$$", "$01", "$a", "$", "const"]),
            22..24 => Term::binary(&b"abc"[..self.below(4)]),
            24 => Bitstring::from_bits(b"\xa5\x0f", self.below(16)).into(),
            25 => Pid::new(Atom::new("n@h").unwrap(), 1, 0, 1).into(),
            26 => match self.below(3) {
                0 => Port::new(Atom::new("n@h").unwrap(), 1, 1).into(),
                1 => Term::from(Reference::new(Atom::new("n@h").unwrap(), 1, &[1, 2, 3]).unwrap()),
                _ => Term::from(Export {
                    module: Atom::OK,
                    function: Atom::OK,
                    arity: 1,
                }),
            },
            _ => [Term::NIL, Term::tuple([]), Term::map(vec![])][self.below(3)].clone(),
        }
    }

    fn value(&mut self, depth: usize) -> Term {
        if depth == 0 || self.one_in(2) {
            return self.leaf();
        }
        let count = self.below(4);
        match self.below(10) {
            0..4 => {
                let mut parts: Vec<_> = (0..count).map(|_| self.value(depth - 1)).collect();
                if count > 0 && self.one_in(3) {
                    parts[0] = atom("rec");
                }
                Term::tuple(parts)
            }
            4..7 => {
                let parts: Vec<_> = (0..count).map(|_| self.value(depth - 1)).collect();
                if self.one_in(5) {
                    Term::list_with_tail(parts, self.leaf())
                } else if count > 1 && self.one_in(3) {
                    // The same list in two pieces of memory.
                    let tail = Term::list(parts[1..].to_vec());
                    Term::list_with_tail([parts[0].clone()], tail)
                } else {
                    Term::list(parts)
                }
            }
            _ => {
                let mut parts = Vec::new();
                for _ in 0..count {
                    let key = if self.one_in(4) {
                        self.value(1)
                    } else {
                        self.leaf()
                    };
                    parts.push((key, self.value(depth - 1)));
                }
                Term::map(parts)
            }
        }
    }

    /// A copy of a term with a small change somewhere.
    fn near(&mut self, term: &Term) -> Term {
        match term {
            Term::Tuple(tuple) if !tuple.is_empty() => {
                let mut parts = tuple.to_vec();
                let place = self.below(parts.len());
                parts[place] = self.near(&parts[place]);
                Term::tuple(parts)
            }
            Term::List(list) if !list.is_empty() => {
                let mut elements = list.iter();
                let mut parts: Vec<_> = elements.by_ref().cloned().collect();
                let tail = elements.tail().clone();
                if self.one_in(4) {
                    return Term::list_with_tail(parts, self.near(&tail));
                }
                let place = self.below(parts.len());
                parts[place] = self.near(&parts[place]);
                Term::list_with_tail(parts, tail)
            }
            Term::Map(map) if !map.is_empty() => {
                let mut parts = map.entries().to_vec();
                let place = self.below(parts.len());
                parts[place].1 = self.near(&parts[place].1);
                Term::map(parts)
            }
            Term::Integer(value) if self.one_in(2) => Term::try_from(*value as f64).unwrap(),
            Term::Integer(value) => Term::from(value.wrapping_add(1)),
            Term::Float(float) if self.one_in(2) => Term::from(float.value() as i64),
            Term::Float(float) => Term::try_from(-float.value()).unwrap(),
            _ => self.value(1),
        }
    }

    /// A specification that may have an error in it.
    fn spoil(&mut self, term: &Term) -> Term {
        if self.one_in(6) {
            return match self.below(3) {
                0 => self.leaf(),
                1 => Term::list_with_tail([term.clone()], self.leaf()),
                _ => Term::tuple([term.clone()]),
            };
        }
        match term {
            Term::Tuple(tuple) if !tuple.is_empty() => {
                let mut parts = tuple.to_vec();
                let place = self.below(parts.len());
                if self.one_in(8) {
                    parts.remove(place);
                } else {
                    parts[place] = self.spoil(&parts[place]);
                }
                Term::tuple(parts)
            }
            Term::List(list) if !list.is_empty() => {
                let mut elements = list.iter();
                let mut parts: Vec<_> = elements.by_ref().cloned().collect();
                let tail = elements.tail().clone();
                let place = self.below(parts.len());
                parts[place] = self.spoil(&parts[place]);
                Term::list_with_tail(parts, tail)
            }
            _ => self.leaf(),
        }
    }
}

/// Whether a term can be a row.
trait IsRow {
    fn is_row(&self) -> bool;
}

impl IsRow for Term {
    fn is_row(&self) -> bool {
        matches!(self, Term::Tuple(tuple) if !tuple.is_empty())
    }
}

/// Specifications about keys.
impl Specs {
    /// A specification whose clauses concern the first field or the second, and rows with similar
    /// keys.
    pub(crate) fn keyed_spec_and_rows(&mut self, depth: usize, rows: usize) -> (Term, Vec<Term>) {
        let keys: Vec<_> = (0..3).map(|_| self.key(depth)).collect();
        let clauses = 1 + self.below(3);
        let clauses: Vec<_> = (0..clauses).map(|_| self.keyed_clause(&keys)).collect();
        let rows = (0..rows).map(|_| {
            let one = keys[self.below(keys.len())].clone();
            let one = if self.one_in(2) { self.near(&one) } else { one };
            let two = keys[self.below(keys.len())].clone();
            Term::tuple([one, two])
        });
        let rows = rows.collect();
        (Term::list(clauses), rows)
    }

    /// A key without maps; parts of it may be variables.
    fn key(&mut self, depth: usize) -> Term {
        let value = match self.below(3) {
            0 => self.leaf(),
            1 if depth == 0 => self.leaf(),
            1 => {
                let parts: Vec<_> = (0..3).map(|_| self.key(depth - 1)).collect();
                Term::tuple(parts)
            }
            _ => {
                let parts: Vec<_> = (0..3).map(|_| Term::from(self.below(3))).collect();
                Term::list(parts)
            }
        };
        match value {
            Term::Atom(_) | Term::Map(_) => Term::from(self.below(4)),
            other => other,
        }
    }

    fn keyed_clause(&mut self, keys: &[Term]) -> Term {
        self.bound.clear();
        let fields: Vec<_> = (0..2)
            .map(|_| {
                let key = keys[self.below(keys.len())].clone();
                match self.below(3) {
                    0 => self.new_variable(),
                    1 => self.pattern(&key, 1),
                    _ => self.begins(&key),
                }
            })
            .collect();
        let guards = self.below(3);
        let guards: Vec<_> = (0..guards).map(|_| self.range_guard(keys)).collect();
        Term::tuple([
            Term::tuple(fields),
            Term::list(guards),
            Term::list([atom("x")]),
        ])
    }

    /// A pattern of the keys that begin as this one does.
    fn begins(&mut self, key: &Term) -> Term {
        match key {
            Term::Tuple(tuple) if !tuple.is_empty() => {
                let mut parts = tuple.to_vec();
                let place = self.below(parts.len());
                parts[place] = if self.one_in(2) {
                    self.begins(&parts[place])
                } else {
                    self.new_variable()
                };
                for part in &mut parts[place + 1..] {
                    *part = atom("_");
                }
                Term::tuple(parts)
            }
            Term::List(list) if !list.is_empty() => {
                let parts: Vec<_> = list.iter().cloned().collect();
                let kept = 1 + self.below(parts.len());
                Term::list_with_tail(parts[..kept].to_vec(), atom("_"))
            }
            other => other.clone(),
        }
    }

    fn range_guard(&mut self, keys: &[Term]) -> Term {
        if self.one_in(4) {
            let (one, two) = (self.range_guard(keys), self.range_guard(keys));
            return Term::tuple([self.pick(&["andalso", "and", "orelse"]), one, two]);
        }
        let whole = keys[self.below(keys.len())].clone();
        let part = match &whole {
            Term::Tuple(tuple) if !tuple.is_empty() => tuple[self.below(tuple.len())].clone(),
            other => other.clone(),
        };
        let value = if self.one_in(2) { whole } else { part };
        let value = if self.one_in(3) {
            self.near(&value)
        } else {
            value
        };
        let constant = Term::tuple([atom("const"), value]);
        let variable = match self.bound.is_empty() {
            true => Term::from(1),
            false => {
                let place = self.below(self.bound.len());
                atom(&format!("${}", self.bound[place]))
            }
        };
        let name = self.pick(COMPARISONS);
        if self.one_in(4) {
            Term::tuple([name, constant, variable])
        } else {
            Term::tuple([name, variable, constant])
        }
    }
}
