//! Bugs to plant in the simulator of many cores.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn checked_by(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Sim,
        package: "tremula-sync",
        target: Target::Test("sim"),
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "sim_line_is_never_busy",
        file: "crates/sync/src/primitives/sim/directory.rs",
        original: "        charge.waiting = line.busy.saturating_sub(now);",
        replacement: "        charge.waiting = 0;",
        why: "A line goes to several cores at the same time, and contention costs nothing.",
        checker: checked_by("one_word"),
        hangs: false,
    },
    Mutant {
        name: "sim_waiting_is_not_counted",
        file: "crates/sync/src/primitives/sim/state.rs",
        original: "        me.spent.waiting += waiting;",
        replacement: "",
        why: "A thread's time is more than the sum of what it was spent on.",
        checker: checked_by("time_adds_up"),
        hangs: false,
    },
    Mutant {
        name: "sim_seed_is_left_over",
        file: "crates/sync/src/reclaim/collector.rs",
        original: "            true => crate::thread_index() as u64 + 1,",
        replacement: "            true => SEEDS.fetch_add(1, Ordering::Relaxed),",
        why: "A run depends on how many threads earlier runs of the process had.",
        checker: checked_by("same_bytes"),
        hangs: false,
    },
    Mutant {
        name: "sim_sleepers_are_not_woken",
        file: "crates/sync/src/primitives/sim/locks.rs",
        original: "            current::wake_at(self.address(), 1);",
        replacement: "",
        why: "A thread that sleeps at a mutex sleeps forever.",
        checker: checked_by("time_adds_up"),
        hangs: false,
    },
];
