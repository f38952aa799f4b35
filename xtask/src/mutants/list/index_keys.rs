//! Bugs to plant in the byte forms of keys, and in what derives them.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The tests of the byte forms of built-in keys.
const fn keys(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-index",
        target: Target::Test("keys"),
        filter,
    }
}

/// The tests of derived byte forms.
const fn derived(filter: &'static str) -> Checker {
    Checker {
        package: "tremula",
        target: Target::Test("derived_keys"),
        ..keys(filter)
    }
}

/// The methods of maps, whose engine is chosen at run time.
const fn maps(filter: &'static str) -> Checker {
    Checker {
        target: Target::Test("maps"),
        ..keys(filter)
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "reversed_keys_are_not_delimited",
        file: "crates/index/src/key/variants.rs",
        original: "        self.0.append_delimited(out);\n        out[start..]",
        replacement: "        self.0.append_bytes(out);\n        out[start..]",
        why: "The complement of \"a\" is a prefix of that of \"ab\", and sorts before it.",
        checker: keys("reversed_strings"),
        hangs: false,
    },
    Mutant {
        name: "parts_of_tuples_are_not_delimited",
        file: "crates/index/src/key/tuples.rs",
        original: "$(self.$index.append_delimited(out);)*\n                self.$last_index.append_bytes(out);",
        replacement: "$(self.$index.append_bytes(out);)*\n                self.$last_index.append_bytes(out);",
        why: "(\"a\", \"b\") and (\"ab\", \"\") have one form.",
        checker: keys("triples"),
        hangs: false,
    },
    Mutant {
        name: "short_variants_are_not_padded",
        file: "crates/index/src/key/parts.rs",
        original: "        out.resize(end, 0);",
        replacement: "        let _ = end;",
        why: "An absent option is shorter than the length that its type states.",
        checker: keys("options_of_wide_integers"),
        hangs: false,
    },
    Mutant {
        name: "composite_heads_ignore_where_a_part_begins",
        file: "crates/index/src/key/parts.rs",
        original: "bytes: self.bytes.saturating_add(bytes),",
        replacement: "bytes: bytes,",
        why: "The third part is put where the second belongs.",
        checker: keys("eight_short_parts"),
        hangs: false,
    },
    Mutant {
        name: "derived_tags_follow_the_places_of_variants",
        file: "crates/derive/src/expand.rs",
        original: "if all[other] < all[at] {",
        replacement: "if other < at {",
        why: "A derived order compares discriminants, whatever the order in which they are written.",
        checker: derived("plain_enums"),
        hangs: false,
    },
    Mutant {
        name: "derived_fields_are_not_delimited",
        file: "crates/derive/src/expand.rs",
        original: "if last_too || at + 1 < count {",
        replacement: "if last_too {",
        why: "A field runs on into the next.",
        checker: derived("structs_with_names"),
        hangs: false,
    },
    Mutant {
        name: "short_keys_are_taken_for_built_in",
        file: "crates/index/src/engine.rs",
        original: "Keys::Compared => self.with_heads::<K, V, key::NoHead, _>(Boxed),",
        replacement: "Keys::Compared => self.with_heads::<K, V, BuiltInHead, _>(Boxed),",
        why: "A user's key of a few bytes is taken for its head, which knows nothing of it.",
        checker: maps("a_key_with_an_order_and_no_more"),
        hangs: false,
    },
    Mutant {
        name: "ranges_of_built_in_keys_have_no_lower_bound",
        file: "crates/index/src/of_built_in.rs",
        original: "        low: converted(range.low, low.as_ref()),",
        replacement: "        low: converted(Bound::Unbounded, low.as_ref()),",
        why: "A range of a map on `art` or `masstree` begins at the first key.",
        checker: maps("methods_of_maps_do_what"),
        hangs: false,
    },
];
