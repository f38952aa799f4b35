//! Random calls of ETS functions. Their match specifications have the shape of the rows. Stranger
//! ones are compared without tables (`specs`), because with a table they crash Erlang 25 now and
//! then.

use num_bigint::BigInt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tremula_table::Term;
use tremula_table::term::Atom;

/// The number of tables at once.
pub(crate) const SLOTS: usize = 10;

/// The slot of an `ordered_set` whose rows all have two elements: its ranges are deleted in one
/// step.
pub(crate) const EVEN_SLOT: usize = 3;

/// The options of the first tables, and of new ones.
const OPTIONS: [&str; SLOTS] = [
    "[set]",
    "[set, {write_concurrency, auto}, compressed]",
    "[ordered_set]",
    "[ordered_set, {write_concurrency, true}]",
    "[ordered_set, {write_concurrency, auto}, compressed, {keypos, 2}]",
    "[bag]",
    "[bag, {write_concurrency, true}, {keypos, 2}]",
    "[duplicate_bag]",
    "[duplicate_bag, compressed]",
    "[set, {keypos, 2}]",
];

/// A call: the table's slot, the function by its name in Erlang or in the oracle, and the
/// arguments.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) slot: usize,
    pub(crate) function: &'static str,
    pub(crate) arguments: Vec<Term>,
}

impl Operation {
    pub(crate) fn to_term(&self) -> Term {
        Term::tuple([
            Term::from(self.slot),
            Term::atom(self.function).unwrap(),
            Term::list(self.arguments.clone()),
        ])
    }
}

/// Generates calls.
pub(crate) struct Operations {
    random: StdRng,
    /// Which slots have an `ordered_set`, and the positions of the keys.
    ordered: [bool; SLOTS],
    keypos: [usize; SLOTS],
    made: usize,
}

fn term(text: &str) -> Term {
    text.parse().unwrap()
}

impl Operations {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            ordered: [false; SLOTS],
            keypos: [1; SLOTS],
            made: 0,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.random_range(0..limit)
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.random.random_ratio(1, many)
    }

    fn choose(&mut self, texts: &[&str]) -> Term {
        term(texts.choose(&mut self.random).unwrap())
    }

    /// A key out of few, so that they recur: of all kinds, with integers and floats that equal
    /// them.
    fn key(&mut self) -> Term {
        match self.below(16) {
            0..=4 => Term::from(self.below(8)),
            5 | 6 => Term::try_from(self.below(8) as f64).unwrap(),
            7 => Term::from((BigInt::from(1) << 64) + self.below(2)),
            8 => Term::try_from(2_f64.powi(64)).unwrap(),
            9 => self.choose(&["a", "b", "c", "key"]),
            10 => Term::tuple([Term::from(self.below(2)), Term::from(self.below(3))]),
            11 => Term::tuple([Term::try_from(1.0).unwrap(), self.choose(&["0", "1", "x"])]),
            12 => self.choose(&["[]", "[1]", "[1.0]", "[1|2]", "\"ab\""]),
            13 => self.choose(&["<<>>", "<<\"a\">>", "<<\"a key\">>", "<<1:3>>"]),
            14 => self.choose(&[
                "#{}",
                "#{1 => a}",
                "#{1.0 => a}",
                "#{a => 1}",
                "#{a => 1.0}",
            ]),
            _ => self.choose(&[
                "1.5",
                "-3",
                "-3.0",
                "{}",
                "{a}",
                "0.0",
                "-0.0",
                "{a, [-0.0]}",
                "{a, [0.0]}",
            ]),
        }
    }

    fn value(&mut self) -> Term {
        match self.below(8) {
            0..=3 => Term::from(self.below(10)),
            4 => Term::from(i64::MAX),
            5 => self.choose(&["a", "2.0", "\"text\"", "{x, 1}", "#{a => b}"]),
            6 => Term::binary(&vec![b'v'; 100 + self.below(400)]),
            _ => self.key(),
        }
    }

    /// A row with the key at its position; rarely, something else.
    fn row(&mut self, slot: usize) -> Term {
        if self.one_in(80) {
            return self.choose(&["{}", "a", "[]", "[{1, 2} | x]", "[{1, 2}, a]"]);
        }
        self.good_row(slot)
    }

    fn good_row(&mut self, slot: usize) -> Term {
        let keypos = self.keypos[slot];
        let size = if slot == EVEN_SLOT {
            2
        } else {
            keypos + self.below(3)
        };
        let mut row: Vec<_> = (0..size).map(|_| self.value()).collect();
        row[keypos - 1] = self.key();
        Term::tuple(row)
    }

    fn rows(&mut self, slot: usize) -> Term {
        let count = self.below(5);
        Term::list((0..count).map(|_| self.row(slot)).collect::<Vec<_>>())
    }

    /// A list of rows only: anything else ends an Erlang process in `init_table`.
    fn good_rows(&mut self, slot: usize) -> Term {
        let count = self.below(9);
        Term::list((0..count).map(|_| self.good_row(slot)).collect::<Vec<_>>())
    }

    fn counter_step(&mut self) -> Term {
        let position = self.choose(&["1", "2", "2", "2", "3", "3", "0", "4"]);
        let increment = self.choose(&["1", "1", "5", "-3", "0", "9223372036854775807", "a"]);
        if self.one_in(3) {
            let threshold = self.choose(&["0", "5", "12", "x"]);
            return Term::tuple([position, increment, threshold, self.choose(&["0", "3"])]);
        }
        Term::tuple([position, increment])
    }

    fn counter_update(&mut self) -> Term {
        match self.below(5) {
            0 => self.choose(&["1", "-1", "18446744073709551616", "a", "[]", "[1]"]),
            1 => {
                let count = self.below(4);
                Term::list((0..count).map(|_| self.counter_step()).collect::<Vec<_>>())
            }
            _ => self.counter_step(),
        }
    }

    fn element_update(&mut self) -> Term {
        let pair = |this: &mut Self| {
            let position = this.choose(&["1", "2", "2", "3", "3", "4", "0", "a"]);
            Term::tuple([position, this.value()])
        };
        if self.one_in(3) {
            let count = self.below(3);
            return Term::list((0..count).map(|_| pair(self)).collect::<Vec<_>>());
        }
        pair(self)
    }

    /// A pattern that may match: with the shape of rows, and at the position of the key a key, the
    /// beginning of one, or anything.
    fn pattern(&mut self, slot: usize) -> Term {
        if self.one_in(12) {
            return self.choose(&["'_'", "'$1'", "a", "{}"]);
        }
        let keypos = self.keypos[slot];
        let size = keypos + self.below(3);
        let mut elements: Vec<_> = (0..size)
            .map(|_| self.choose(&["'_'", "'_'", "'$1'", "'$2'", "'$3'", "1", "a"]))
            .collect();
        elements[keypos - 1] = match self.below(6) {
            0 | 1 => match self.key() {
                // Erlang 25 treats it as a key, not as a pattern that larger maps match.
                Term::Map(_) => term("'_'"),
                key => key,
            },
            2 if self.ordered[slot] => self.choose(&["{1, '_'}", "{'$1', 2}", "['$1' | '_']"]),
            2 => self.choose(&[
                "{1, '_'}",
                "{'$1', 2}",
                "['$1' | '_']",
                "{'_', '_'}",
                "#{a => '$1'}",
            ]),
            _ => self.choose(&["'_'", "'$1'", "'$2'"]),
        };
        Term::tuple(elements)
    }

    fn guard(&mut self, depth: usize) -> Term {
        let variable = self.choose(&["'$1'", "'$1'", "'$2'", "'$3'"]);
        match self.below(if depth == 0 { 3 } else { 6 }) {
            0 | 1 => {
                let comparison =
                    self.choose(&["'<'", "'>'", "'>='", "'=<'", "'=='", "'=:='", "'/='"]);
                let key = match self.key() {
                    tuple @ Term::Tuple(_) => Term::tuple([tuple]),
                    map @ Term::Map(_) => Term::tuple([term("const"), map]),
                    key => key,
                };
                if self.one_in(4) {
                    Term::tuple([comparison, key, variable])
                } else {
                    Term::tuple([comparison, variable, key])
                }
            }
            2 => {
                let test =
                    self.choose(&["is_integer", "is_atom", "is_tuple", "is_float", "is_list"]);
                Term::tuple([test, variable])
            }
            3 => Term::tuple([term("'not'"), self.guard(depth - 1)]),
            _ => {
                let both = self.choose(&["'and'", "'or'", "'andalso'", "'orelse'"]);
                Term::tuple([both, self.guard(depth - 1), self.guard(depth - 1)])
            }
        }
    }

    /// A match specification; for deleting, its body is `true`.
    fn spec(&mut self, slot: usize, body: Option<&str>) -> Term {
        // The depth grows during the run.
        let depth = (self.made / 20_000).min(4);
        let clauses = 1 + self.below(2) * self.below(2);
        let clause = |this: &mut Self| {
            let mut head = this.pattern(slot);
            // With several such keys in an `ordered_set`, Erlang 25 misses some rows.
            if clauses > 1 && this.ordered[slot] && head.to_string().contains("{1.0,") {
                head = term("'$1'");
            }
            let guards = this.below(3).min(depth + 1);
            let guards: Vec<_> = (0..guards).map(|_| this.guard(depth)).collect();
            let body = match body {
                Some(body) => term(body),
                None => this.choose(&["'$_'", "'$$'", "'$1'", "true", "{{'$1', '$2'}}", "{x}"]),
            };
            Term::tuple([head, Term::list(guards), Term::list([body])])
        };
        let clauses: Vec<_> = (0..clauses).map(|_| clause(self)).collect();
        Term::list(clauses)
    }

    /// A specification for `select_delete`: on a table with rows of one size often one that takes
    /// all rows in a range of keys.
    fn deletion(&mut self, slot: usize) -> Term {
        if slot != EVEN_SLOT || self.one_in(3) {
            return self.spec(slot, Some("true"));
        }
        let head = self.choose(&["{'$1', '_'}", "{'$1', '$2'}", "{{'$1', '_'}, '_'}", "'_'"]);
        let guards = if head == Atom::UNDERSCORE {
            0
        } else {
            self.below(3)
        };
        let guard = |this: &mut Self| {
            let comparison = this.choose(&["'<'", "'>'", "'>='", "'=<'", "'=='"]);
            let bound = match this.below(4) {
                0 => this.choose(&["1.0", "2.5", "a", "{const, #{}}", "<<>>", "[]"]),
                _ => Term::from(this.below(8)),
            };
            Term::tuple([comparison, term("'$1'"), bound])
        };
        let guards: Vec<_> = (0..guards).map(|_| guard(self)).collect();
        Term::list([Term::tuple([head, Term::list(guards), term("[true]")])])
    }

    /// A specification for `select_replace` that mostly leaves the key unchanged.
    fn replacement(&mut self, slot: usize) -> Term {
        if slot == EVEN_SLOT {
            return self.choose(&[
                "[{{'$1', '_'}, [{'>', '$1', 3}], [{{'$1', new}}]}]",
                "[{{1, '$2'}, [], [{{1, {{'$2'}}}}]}]",
                "[{{1, '$2'}, [], [{{'$2', 1}}]}]",
            ]);
        }
        if self.one_in(4) {
            return self.strange_replacement(slot);
        }
        if self.keypos[slot] == 2 {
            return self.choose(&[
                "[{{'$1', '$2'}, [], [{{new, '$2'}}]}]",
                "[{{'$1', '$2', '_'}, [{is_integer, '$2'}], [{{a, '$2', 7}}]}]",
                "[{{'$1', '$2'}, [], ['$_']}]",
            ]);
        }
        self.choose(&[
            "[{{'$1', '$2'}, [], [{{'$1', new}}]}]",
            "[{{'$1', '$2', '_'}, [{is_integer, '$2'}], [{{'$1', {'+', '$2', 1}, x}}]}]",
            "[{{'$1', '_'}, [{'>', '$1', 3}], [{{'$1'}}]}]",
            "[{{'$1'}, [], ['$_']}]",
            "[{{1, '$2'}, [], [{{1, {{'$2'}}}}]}]",
        ])
    }

    /// A specification for `select_replace` of which Erlang has to decide whether it keeps the key:
    /// the body has parts of keys as the head has them, or as expressions, and not always the same
    /// parts.
    fn strange_replacement(&mut self, slot: usize) -> Term {
        let clauses = 1 + self.below(2) * self.below(2);
        let clause = |this: &mut Self| {
            let (pattern, expression) = this.key_and_expression(2);
            let (other, value) = (this.choose(&["'_'", "'$9'", "1"]), this.value_expression());
            let (head, made) = if this.keypos[slot] == 2 {
                ([other, pattern], [value, expression])
            } else {
                ([pattern, other], [expression, value])
            };
            let made = Term::tuple(made);
            let body = match this.below(12) {
                0 => vec![term("'$_'")],
                1 => vec![Term::tuple([term("const"), made])],
                2 => vec![term("x"), Term::tuple([made])],
                3 => vec![this.choose(&["'$1'", "{x}", "{{}}", "{{'$1'}}"])],
                _ => vec![Term::tuple([made])],
            };
            let guards = if this.one_in(4) {
                Term::list([term("{is_integer, '$1'}")])
            } else {
                Term::NIL
            };
            Term::tuple([Term::tuple(head), guards, Term::list(body)])
        };
        let clauses: Vec<_> = (0..clauses).map(|_| clause(self)).collect();
        Term::list(clauses)
    }

    fn value_expression(&mut self) -> Term {
        self.choose(&["new", "'$1'", "7", "{hd, []}", "'$_'"])
    }

    /// A part of a key's pattern, and an expression that mostly makes the same.
    fn key_and_expression(&mut self, depth: usize) -> (Term, Term) {
        if self.one_in(12) {
            let (pattern, _) = self.key_and_expression(0);
            return (
                pattern,
                self.choose(&["'$1'", "'_'", "'$$'", "1", "1.0", "a"]),
            );
        }
        match self.below(if depth == 0 { 3 } else { 6 }) {
            0 => (term("'$1'"), term("'$1'")),
            1 => {
                let texts = ["1", "1.0", "a", "[]", "<<\"a\">>", "18446744073709551616"];
                let constant = self.choose(&texts);
                let expression = if self.one_in(4) {
                    Term::tuple([term("const"), constant.clone()])
                } else {
                    constant.clone()
                };
                (constant, expression)
            }
            2 => {
                let element = ["{element, 1, '$_'}", "{element, 2, '$_'}"];
                (
                    self.choose(&["'$1'", "'_'", "{1, 2}"]),
                    self.choose(&element),
                )
            }
            3 => {
                let parts = self.below(3);
                let parts = (0..parts).map(|_| self.key_and_expression(depth - 1));
                let (patterns, made): (Vec<_>, Vec<_>) = parts.unzip();
                let made = Term::tuple(made);
                let expression = if self.one_in(4) {
                    Term::tuple([term("const"), made])
                } else {
                    Term::tuple([made])
                };
                (Term::tuple(patterns), expression)
            }
            4 => {
                let (first, second) = (self.key_and_expression(0), self.key_and_expression(0));
                let (pattern, expression) = ([first.0], [first.1]);
                (
                    Term::list_with_tail(pattern, second.0),
                    Term::list_with_tail(expression, second.1),
                )
            }
            _ => {
                let map = self.choose(&["#{a => 1}", "#{a => '$1'}"]);
                (map.clone(), map)
            }
        }
    }

    fn limit(&mut self) -> Term {
        // Limits of 2^59 and more are invalid.
        if self.one_in(40) {
            return self.choose(&["576460752303423487", "576460752303423488"]);
        }
        self.choose(&["1", "2", "3", "5", "100"])
    }

    /// The next call. The first calls make the tables.
    pub(crate) fn next(&mut self) -> Operation {
        let slot = if self.made < SLOTS {
            self.made
        } else {
            self.below(SLOTS)
        };
        let is_new = self.made < SLOTS || self.one_in(4000);
        self.made += 1;
        if is_new {
            let options = OPTIONS[slot];
            self.ordered[slot] = options.contains("ordered_set");
            self.keypos[slot] = 1 + usize::from(options.contains("keypos"));
            return Operation {
                slot,
                function: "new",
                arguments: vec![term(options)],
            };
        }
        let (function, arguments) = self.call(slot);
        Operation {
            slot,
            function,
            arguments,
        }
    }

    fn call(&mut self, slot: usize) -> (&'static str, Vec<Term>) {
        match self.below(64) {
            0..=15 => ("insert", vec![self.row(slot)]),
            16 => ("insert", vec![self.rows(slot)]),
            17 | 18 => ("insert_new", vec![self.row(slot)]),
            19 => ("insert_new", vec![self.rows(slot)]),
            20..=23 => ("lookup", vec![self.key()]),
            24 => {
                let position = self.choose(&["1", "2", "3", "0", "9", "a"]);
                ("lookup_element", vec![self.key(), position])
            }
            25 => ("member", vec![self.key()]),
            26 => ("take", vec![self.key()]),
            27 => ("delete", vec![self.key()]),
            28 => ("delete_object", vec![self.row(slot)]),
            29..=31 => ("update_counter", vec![self.key(), self.counter_update()]),
            32 | 33 => {
                // Never a default without a key: Erlang 25 would read beyond its end.
                let default = if slot == EVEN_SLOT {
                    self.choose(&["{x, 1}", "{a, b}", "x"])
                } else {
                    self.choose(&["{x, 1, 2}", "{x, 1, 2}", "{x, 1}", "x", "{a, b, c}"])
                };
                (
                    "update_counter",
                    vec![self.key(), self.counter_update(), default],
                )
            }
            34 | 35 => ("update_element", vec![self.key(), self.element_update()]),
            36..=38 if self.ordered[slot] => {
                let function = ["first", "last", "next", "next", "prev", "prev"][self.below(6)];
                let key = self.key();
                let has_key = function == "next" || function == "prev";
                (function, if has_key { vec![key] } else { vec![] })
            }
            36 => ("keys", vec![]),
            37 => (
                "info",
                vec![self.choose(&["size", "type", "keypos", "fixed", "nothing"])],
            ),
            38 => ("next", vec![self.choose(&["nothing", "'$end_of_table'"])]),
            39 => ("tab2list", vec![]),
            40 => ([("foldl"), ("foldr")][self.below(2)], vec![]),
            41..=44 => ("select", vec![self.spec(slot, None)]),
            45 => ("select_reverse", vec![self.spec(slot, None)]),
            46 | 47 => ("select_count", vec![self.spec(slot, Some("true"))]),
            48 => ("select_delete", vec![self.deletion(slot)]),
            49 => ("select_replace", vec![self.replacement(slot)]),
            50 | 51 => ("match", vec![self.pattern(slot)]),
            52 | 53 => ("match_object", vec![self.pattern(slot)]),
            54 => ("match_delete", vec![self.pattern(slot)]),
            55..=57 if self.ordered[slot] => ("chunk", self.search(slot)),
            55..=59 if !self.ordered[slot] => ("chunks", self.search(slot)),
            58..=60 => ("next_chunk", vec![]),
            61 if self.one_in(6) => ("delete_all_objects", vec![]),
            62 if self.one_in(6) => ("init_table", vec![self.good_rows(slot)]),
            63 if self.one_in(6) => ("drain", vec![]),
            _ => ("info", vec![term("size")]),
        }
    }

    /// A search in chunks. A limit of 0 goes with `'_'` only: with a bound key it crashes Erlang
    /// 25.
    fn search(&mut self, slot: usize) -> Vec<Term> {
        if self.one_in(20) {
            return vec![term("match_object"), term("'_'"), term("0")];
        }
        let (function, pattern) = match self.below(4) {
            0 => ("match", self.pattern(slot)),
            1 => ("match_object", self.pattern(slot)),
            2 => ("select_reverse", self.spec(slot, None)),
            _ => ("select", self.spec(slot, None)),
        };
        vec![term(function), pattern, self.limit()]
    }
}
