//! Bugs to plant in match specifications.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const ERLANG: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-table",
    target: Target::Test("erlang_match_spec"),
    filter: "",
};

const KEYS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-table",
    target: Target::Test("key_intervals"),
    filter: "",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "match_spec_repeated_variable_by_value",
        file: "crates/table/src/match_spec/run.rs",
        original: "self.compare(Comparison::Identical, one, two)?",
        replacement: "self.compare(Comparison::Equal, one, two)?",
        why: "The pattern {'$1', '$1'} matches {1, 1.0}, and the pattern {1} the row {1.0}.",
        checker: ERLANG,
        hangs: false,
    },
    Mutant {
        name: "match_spec_exception_goes_on",
        file: "crates/table/src/match_spec/run.rs",
        original: "None if BODY => (Atom::EXIT, true),",
        replacement: "None if BODY => (Atom::EXIT, false),",
        why: "In a body, andalso goes on behind an operand that is no boolean instead of being 'EXIT'.",
        checker: ERLANG,
        hangs: false,
    },
    Mutant {
        name: "match_spec_registers_overlap",
        file: "crates/table/src/match_spec/compile/expression.rs",
        original: "let register = self.clause.head_registers as usize + self.stack.len();",
        replacement: "let register = self.stack.len();",
        why: "The values of an expression overwrite what the head has bound inside of fields.",
        checker: ERLANG,
        hangs: false,
    },
    Mutant {
        name: "match_spec_range_without_its_end",
        file: "crates/table/src/match_spec/range/plan.rs",
        original: "Comparison::AtMost => limits.lower(value, true),",
        replacement: "Comparison::AtMost => limits.lower(value, false),",
        why: "A guard {'=<', Key, 9} leaves out the key 9.",
        checker: KEYS,
        hangs: false,
    },
    Mutant {
        name: "match_spec_union_ends_early",
        file: "crates/table/src/match_spec/range/mod.rs",
        original: "(Some(high), Some(later)) => high < later,",
        replacement: "(Some(high), Some(later)) => high > later,",
        why: "Of two clauses with intervals that overlap, the keys behind the first one's are left out.",
        checker: KEYS,
        hangs: false,
    },
    Mutant {
        name: "match_spec_map_as_a_key",
        file: "crates/table/src/match_spec/range/plan.rs",
        original: "Term::Map(_) => return Some(Plan::Interval(within(pieces, Limits::default(), false))),",
        replacement: "Term::Map(_) => pieces.push(Piece::Term(pattern.clone())),",
        why: "The pattern {#{}} is looked for at the key #{}, but it matches every map.",
        checker: KEYS,
        hangs: false,
    },
    Mutant {
        name: "match_spec_wraps_what_is_no_row",
        file: "crates/table/src/match_spec/run.rs",
        original: "Whole::OnlyField => self.fields[0].clone(),",
        replacement: "Whole::OnlyField => Term::tuple(self.fields.iter().cloned()),",
        why: "'$_' of a term that is no row is a tuple with it.",
        checker: ERLANG,
        hangs: false,
    },
    Mutant {
        name: "match_spec_of_a_list_matches_nothing",
        file: "crates/table/src/match_spec/run.rs",
        original: "matches!(clause.shape, Shape::Any | Shape::NoTuple)",
        replacement: "matches!(clause.shape, Shape::Any)",
        why: "A head that is the pattern of a list matches no list.",
        checker: ERLANG,
        hangs: false,
    },
];
