//! Bugs to plant in steps over several entries.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Models, panics and histories of steps, in all engines that have them.
const STEPS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("steps"),
    filter: "",
};

/// Keys that contradict themselves, and user code that calls the index.
const fn hostile(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-index",
        target: Target::Test("hostile"),
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "steps_do_not_put_back_what_they_took",
        file: "crates/index/src/transactional.rs",
        original: "                Change::Took(taken) => held.put_back(key, taken),",
        replacement: "                Change::Took(taken) => Some(taken),",
        why: "A step that panics has lost entries.",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "steps_are_undone_from_the_front",
        file: "crates/index/src/transactional.rs",
        original: "        for (key, change) in self.undo.iter_mut().rev() {",
        replacement: "        for (key, change) in self.undo.iter_mut() {",
        why: "A step that changes a key twice and panics leaves the value between the two.",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "steps_stop_undoing_at_a_second_panic",
        file: "crates/index/src/transactional.rs",
        original: "                Err(panic) => panics.push(panic),",
        replacement: "                Err(panic) => {\n                    panics.push(panic);\n                    break;\n                }",
        why: "A key whose user code panics while a step is undone leaves the changes of all other keys behind. (This one was real.)",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "walks_of_aspen_wait_for_a_writer",
        file: "crates/index/src/aspen/words/step.rs",
        original: "        let version = leaf.lock.try_read()?;",
        replacement: "        let version = leaf.lock.read()?;",
        why: "A walk stands still while a step holds a leaf. (This one was real.)",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "ca_tree_gives_up_its_pin_before_it_unlocks_the_trunk",
        file: "crates/index/src/ca_tree/adapt.rs",
        original: "`K::drop` may call this tree.\n            drop(base);\n",
        replacement: "`K::drop` may call this tree.\n",
        why: "The keys of unlinked route nodes are dropped under the lock of the trunk, and one whose drop calls the tree waits for its own thread. (This one was real.)",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Lib,
            filter: "ca_tree::adapt",
        },
        hangs: false,
    },
    Mutant {
        name: "steps_cut_off_the_longer_of_two_ranges",
        file: "crates/index/src/transactional.rs",
        original: "                if compare_ends(last, &range).is_lt() {",
        replacement: "                if compare_ends(last, &range).is_gt() {",
        why: "Of ranges with common keys, only those of the shorter one are in the step.",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "steps_drop_a_key_that_they_do_not_need_under_locks",
        file: "crates/index/src/aspen/numbers.rs",
        original: "        let number = number_of::<S>(key.as_ref()?);\n        let place",
        replacement: "        let number = number_of::<S>(&key.take()?);\n        let place",
        why: "The key's drop calls the map, and waits for the lock that its own thread holds.",
        checker: hostile("aspen"),
        hangs: false,
    },
    Mutant {
        name: "steps_of_aspen_let_the_new_leaf_of_a_split_go",
        file: "crates/index/src/aspen/words/step.rs",
        original: "            self.leaves.insert(at + 1, right);",
        replacement: "            drop(right);",
        why: "A reader sees the entries of a step that went to the right leaf before the others.",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "steps_of_aspen_trust_the_separators",
        file: "crates/index/src/aspen/words/step.rs",
        original: "        if leaf.covers(key) {",
        replacement: "        if leaf.covers(key) || key > 0 {",
        why: "A step locks a leaf that was merged meanwhile and is in use elsewhere. (A leaf that was split is harmless: its new neighbour is locked too.)",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Lib,
            filter: "a_leaf_that_is_in_use_elsewhere",
        },
        hangs: false,
    },
    Mutant {
        name: "steps_of_aspen_say_that_they_changed_nothing",
        file: "crates/index/src/aspen/words/step.rs",
        original: "        let locked = &mut self.leaves[at];\n        locked.changed = true;",
        replacement: "        let locked = &mut self.leaves[at];",
        why: "A reader that met a leaf before the step takes what it sees after it for the same version.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "a_scan_sees_a_step",
        },
        hangs: false,
    },
    Mutant {
        name: "steps_of_b_tree_let_the_new_leaf_of_a_split_go",
        file: "crates/index/src/b_tree/steps.rs",
        original: "        self.add(right, lock);\n        for half",
        replacement: "        drop(lock);\n        self.by_address.insert(right.as_ptr(), held);\n        for half",
        why: "A reader sees the entries of a step that went to the right leaf before the others.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Lib,
            filter: "b_tree::tests",
        },
        hangs: false,
    },
    Mutant {
        name: "steps_of_b_tree_forget_how_much_they_grew",
        file: "crates/index/src/b_tree/steps.rs",
        original: "        self.tree.len.add(self.growth);",
        replacement: "",
        why: "`len` is wrong for ever.",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "steps_of_ca_tree_use_a_base_node_that_was_replaced",
        file: "crates/index/src/ca_tree/steps.rs",
        original: "            if base.as_ref().is_some_and(|base| !base.valid) {",
        replacement: "            if base.as_ref().is_some_and(|base| !base.valid && range.is_empty()) {",
        why: "What a step writes to a base node that is not linked any more is lost.",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "steps_of_ca_tree_unlock_before_they_note",
        file: "crates/index/src/ca_tree/steps.rs",
        original: "            note(key, value);\n            match direction {",
        replacement: "            let _ = (key, value);\n            match direction {",
        why: "What is popped gets no number in the log.",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "b_tree_splits_where_a_key_contradicts_itself",
        file: "crates/index/src/b_tree/split.rs",
        original: "    if *splits > 8 {",
        replacement: "    if *splits == 0 {",
        why: "An insertion splits its leaf without end, each time where its key goes to the full half.",
        checker: hostile("b_tree"),
        hangs: false,
    },
    Mutant {
        name: "lfca_tree_joins_only_where_keys_lead",
        file: "crates/index/src/lfca_tree/descend.rs",
        original: "        self.parent_anywhere(wanted)\n",
        replacement: "        Err(Unlinked)\n",
        why: "Where keys contradict one another, `pop_first` tries to join an empty base node without end.",
        checker: hostile("lfca_tree"),
        hangs: false,
    },
];
