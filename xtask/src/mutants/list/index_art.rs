//! Bugs to plant in the index engine art.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-index",
    target: Target::Test("loom"),
    filter: "art::",
};

const DISHONEST: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("dishonest_bytes"),
    filter: "",
};

const RECLAMATION: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("reclamation"),
    filter: "",
};

/// Whose trees check their invariants after each change, and at rest.
const INVARIANTS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("art"),
    filter: "",
};

/// Whose scans lock nodes as soon as they have been disturbed.
const SHUTTLE: Checker = Checker {
    flavour: Flavour::Shuttle,
    package: "tremula-index",
    target: Target::Test("shuttle"),
    filter: "of_one_moment_whatever",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "art_lookup_does_not_validate",
        file: "crates/index/src/art/lookup.rs",
        original: "        header.lock.validate(version)?;\n        Ok(found",
        replacement: "        Ok(found",
        why: "A lookup takes what it read while a node was being changed for what was there.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "art_lookup_skips_a_cut_prefix",
        file: "crates/index/src/art/lookup.rs",
        original: "if !snapshot.begins_at(start) {",
        replacement: "if !snapshot.begins_at(start) && bytes.is_empty() {",
        why: "A lookup that comes to a node whose prefix was cut meanwhile compares the wrong bytes.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "art_scan_does_not_validate_in_the_end",
        file: "crates/index/src/art/walk.rs",
        original: "        if !self.locks && loaded {",
        replacement: "        if !self.locks && loaded && self.items.is_empty() {",
        why: "A scan shows values of leaves of different moments.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "art_trusts_the_length_of_byte_forms",
        file: "crates/index/src/art/form.rs",
        original: "read(&key.head().to_be_bytes()[..=Self::VALUES_AT])",
        replacement: "key.with_bytes(read)",
        why: "A key whose form is longer or shorter than its length reads a node, or nothing, as a value.",
        checker: DISHONEST,
        hangs: false,
    },
    Mutant {
        name: "art_puts_two_children_under_one_symbol",
        file: "crates/index/src/art/locate.rs",
        original: "if common <= depth || old == new {",
        replacement: "if common <= depth {",
        why: "A node loses its last child, and a removal of a range that looks for a leaf below it waits for its own lock.",
        checker: DISHONEST,
        hangs: false,
    },
    Mutant {
        name: "art_drops_a_key_under_a_lock",
        file: "crates/index/src/art/write.rs",
        original: "            drop(lock);\n            drop(unused);",
        replacement: "            drop(unused);\n            drop(lock);",
        why: "The drop of a key that is not kept is code of the user's: it waits for the lock if it asks the tree.",
        checker: DISHONEST,
        hangs: false,
    },
    Mutant {
        name: "art_asks_for_a_key_after_the_first_change",
        file: "crates/index/src/art/cut.rs",
        original: "        spare_keys::<K, V>(&walk.frames, has_root, &mut spared);",
        replacement: "        if walk.items.len() != 2 {\n            spare_keys::<K, V>(&walk.frames, has_root, &mut spared);\n        }",
        why: "A head without a key panics when the prefix of a linked node has been changed already: that node is lost.",
        checker: DISHONEST,
        hangs: false,
    },
    Mutant {
        name: "art_loads_bytes_that_do_not_ascend",
        file: "crates/index/src/art/bulk.rs",
        original: "if symbol_at(bytes, common) <= symbol_at(&self.last, common) {",
        replacement: "if symbol_at(bytes, common) < symbol_at(&self.last, common) && bytes.is_empty() {",
        why: "Two children come under one symbol of a loaded node, and one of them is lost.",
        checker: DISHONEST,
        hangs: false,
    },
    Mutant {
        name: "art_hands_out_what_others_look_at",
        file: "crates/index/src/byte_keyed/record.rs",
        original: "        if (needs_drop::<K>() || needs_drop::<V>()) && guard.is_alone() {",
        replacement: "        if needs_drop::<K>() || needs_drop::<V>() {",
        why: "A leaf is freed that a thread which is inside the tree looks at.",
        checker: RECLAMATION,
        hangs: false,
    },
    Mutant {
        name: "art_cuts_a_prefix_one_byte_short",
        file: "crates/index/src/art/locate.rs",
        original: "Some(KeyState::OtherPrefix(branch, Prefix::new(rest)))",
        replacement: "Some(KeyState::OtherPrefix(branch, Prefix::new(&path[common - start..])))",
        why: "Invariant 1: the prefix of a node begins one byte before its parent branches.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "art_leaves_a_node_with_one_child",
        file: "crates/index/src/art/node.rs",
        original: "Kind::Four(node) => node.children() <= 2,",
        replacement: "Kind::Four(node) => node.children() <= 1,",
        why: "Invariant 2: a node that is not the root has fewer than two children.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "art_writes_without_a_new_version",
        file: "crates/index/src/art/write.rs",
        original: "            drop(lock);\n            drop(unused);",
        replacement: "            lock.unchanged();\n            drop(unused);",
        why: "Invariant 3: a reader does not notice that slots were shifted while it read.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "art_grown_node_stays_in_use",
        file: "crates/index/src/art/write.rs",
        original: "                locks.node.obsolete();",
        replacement: "                drop(locks.node);",
        why: "Invariant 4: an insertion goes into a node that was unlinked, and is lost.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "art_keeps_a_pointer_that_says_no_prefix",
        file: "crates/index/src/art/child.rs",
        original: "        self.child().word()\n",
        replacement: "        self.child.word()\n",
        why: "Invariant 5: a lookup passes a full node that has got a prefix, and does not look at it.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "art_scan_that_locks_leaves_the_root_alone",
        file: "crates/index/src/art/walk.rs",
        original: "Hold::new(&node.header().lock, self.locks)?",
        replacement: "Hold::new(&node.header().lock, self.locks && start > 0)?",
        why: "Invariant 6: a scan upwards and a scan downwards wait for each other's nodes for ever.",
        checker: SHUTTLE,
        hangs: false,
    },
];
