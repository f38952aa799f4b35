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

/// The models of the combining lock.
const COMBINING: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-sync",
    target: Target::Test("loom"),
    filter: "combining_lock",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "combining_lock_tells_too_early",
        file: "crates/sync/src/combining_lock.rs",
        original: "            unsafe { (request.serve)(next, value.deref()) };\n",
        replacement: "            request.done.store(true, Ordering::Release);\n            unsafe { (request.serve)(next, value.deref()) };\n",
        why: "A thread goes on, and its request is gone, while the holder still does it.",
        checker: COMBINING,
        hangs: false,
    },
    Mutant {
        name: "combining_lock_publishes_unseen",
        file: "crates/sync/src/combining_lock.rs",
        original: "let before = self.published.swap(mine.cast_mut(), Ordering::Release);",
        replacement: "let before = self.published.swap(mine.cast_mut(), Ordering::Relaxed);",
        why: "The holder takes a request that it does not see whole.",
        checker: COMBINING,
        hangs: false,
    },
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
    Mutant {
        name: "reclaim_overlooks_records_that_are_not_linked_yet",
        file: "crates/sync/src/reclaim/epochs.rs",
        original: "            at = record.next.load(Ordering::Acquire);\n        }\n        false\n",
        replacement: "            at = record.next.load(Ordering::Acquire);\n        }\n        true\n",
        why: "While a thread is adding its record, the epoch advances past the pins of all others.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "nothing_is_freed_under_a_pin_while_a_thread_comes",
        },
        hangs: false,
    },
    Mutant {
        name: "reclaim_grace_of_one_epoch",
        file: "crates/sync/src/reclaim/limbo.rs",
        original: "const GRACE: u64 = 2;",
        replacement: "const GRACE: u64 = 1;",
        why: "A reader pinned in the epoch before still looks at what is freed.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "nothing_is_freed_under_a_pin",
        },
        hangs: false,
    },
    Mutant {
        name: "reclaim_pin_without_fence",
        file: "crates/sync/src/reclaim/epochs.rs",
        original: "            self.pins[pin].store(word, Ordering::Relaxed);
            fence(Ordering::SeqCst);",
        replacement: "            self.pins[pin].store(word, Ordering::Relaxed);",
        why: "A reader follows a link before the others see its pin.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "nothing_is_freed_under_a_pin",
        },
        hangs: false,
    },
    Mutant {
        name: "reclaim_unpin_relaxed",
        file: "crates/sync/src/reclaim/epochs.rs",
        original: "self.pins[pin].store(NOT_PINNED, Ordering::Release);",
        replacement: "self.pins[pin].store(NOT_PINNED, Ordering::Relaxed);",
        why: "What a reader reads under its pin may be read after it is freed.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "nothing_is_freed_under_a_pin",
        },
        hangs: false,
    },
    Mutant {
        name: "reclaim_alone_without_fence",
        file: "crates/sync/src/reclaim/epochs.rs",
        original: "        // unlinking.
        fence(Ordering::SeqCst);",
        replacement: "        // unlinking.",
        why: "A reader that pins unseen still finds the link to what is taken.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "a_thread_that_is_alone",
        },
        hangs: false,
    },
    Mutant {
        name: "reclaim_pin_on_all_is_not_seen",
        file: "crates/sync/src/reclaim/epochs.rs",
        original: "pin >> EPOCH_BITS == self.name || pin == PINNED_ON_ALL",
        replacement: "pin >> EPOCH_BITS == self.name",
        why: "The fourth pin of a thread protects nothing.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "nothing_is_freed_under_the_pin_that_holds_back_all",
        },
        hangs: false,
    },
    Mutant {
        name: "reclaim_only_by_the_thread_that_retired",
        file: "crates/sync/src/reclaim/collector.rs",
        original: "1 + random % (2 * OPERATIONS_A_TURN - 1)",
        replacement: "{ let _ = random; u32::MAX }",
        why: "Garbage of a thread that does not come back is never freed.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-sync",
            target: Target::Test("reclaim"),
            filter: "what_a_thread_retired",
        },
        hangs: false,
    },
    Mutant {
        name: "reclaim_panic_ends_the_turn",
        file: "crates/sync/src/reclaim/parts.rs",
        original: "let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(thing)));",
        replacement: "let result: std::thread::Result<()> = Ok(run(thing));",
        why: "One value whose drop panics makes all others of the turn leak.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-sync",
            target: Target::Test("reclaim"),
            filter: "a_panic_in_what_is_freed",
        },
        hangs: false,
    },
];
