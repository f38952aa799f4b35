//! Bugs to plant in locks, counters and waiters.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The mailbox's stress tests, watched.
const MAILBOX_TSAN: Checker = Checker {
    flavour: Flavour::Tsan,
    package: "tremula-mailbox",
    target: Target::Test("stress"),
    filter: "received_in_order_in",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "lock_reader_does_not_look_again",
        file: "crates/sync/src/statistics_lock.rs",
        original: "            if self.reader_biased.load(Ordering::SeqCst) {",
        replacement: "            if true {",
        why: "A reader that publishes its slot while a writer is taking the bias away reads during the write.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "biased",
        },
        hangs: false,
    },
    Mutant {
        name: "lock_writer_does_not_wait_for_slots",
        file: "crates/sync/src/statistics_lock.rs",
        original: "self.clear_bias() && self.domain.stripes.wait_for_readers(self.address())",
        replacement: "self.clear_bias()",
        why: "A writer writes while readers that came in by their slots are still reading.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "biased",
        },
        hangs: false,
    },
    Mutant {
        name: "lock_reader_leaves_too_early",
        file: "crates/sync/src/statistics_lock.rs",
        original: "Some(slot) => slot.store(ptr::null_mut(), Ordering::Release),",
        replacement: "Some(slot) => slot.store(ptr::null_mut(), Ordering::Relaxed),",
        why: "A reader's reads may come after it has left its slot, during the next write.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "biased",
        },
        hangs: false,
    },
    Mutant {
        name: "lock_try_write_ignores_slots",
        file: "crates/sync/src/statistics_lock.rs",
        original: "        if self.clear_bias() && self.domain.stripes.has_reader(self.address()) {",
        replacement: "        if self.clear_bias() && self.statistics() == i32::MAX {",
        why: "A join takes a base node over while a reader is inside by its slot.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "try_write",
        },
        hangs: false,
    },
    Mutant {
        name: "counter_forgets_a_collision",
        file: "crates/sync/src/striped_counter.rs",
        original: "        self.cell.fetch_add(difference, Ordering::Relaxed);\n        if",
        replacement: "        if",
        why: "An addition that collides with another is lost.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "counter",
        },
        hangs: false,
    },
    Mutant {
        name: "short_lock_leaves_unordered",
        file: "crates/sync/src/short_lock.rs",
        original: "self.locked.store(false, Ordering::Release);",
        replacement: "self.locked.store(false, Ordering::Relaxed);",
        why: "What the owner of a short lock wrote may be seen by the next owner after its own accesses.",
        checker: MAILBOX_TSAN,
        hangs: false,
    },
];
