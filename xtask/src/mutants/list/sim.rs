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
        original: "|_| std::mem::take(&mut is_first)",
        replacement: "|_| !std::mem::take(&mut is_first)",
        why: "A thread that sleeps at a mutex sleeps forever.",
        checker: checked_by("time_adds_up"),
        hangs: false,
    },
    Mutant {
        name: "sim_registry_is_left_over",
        file: "crates/sync/src/primitives/sim/simulation.rs",
        original: "        unsafe { std::mem::take(&mut state.once).end() };",
        replacement: "",
        why: "What a run has once stays, and the memory of every run with it.",
        checker: checked_by("gives_all_its_memory_back"),
        hangs: false,
    },
    Mutant {
        name: "sim_lines_of_a_node_come_one_by_one",
        file: "crates/sync/src/primitives/sim/directory.rs",
        original: "            After::Beside => price * self.machine.beside / 100,",
        replacement: "            After::Beside => price,",
        why: "The misses of one node do not overlap.",
        checker: checked_by("lines_side_by_side"),
        hangs: false,
    },
    Mutant {
        name: "sim_a_line_is_gone_before_the_request_has_come",
        file: "crates/sync/src/primitives/sim/directory.rs",
        original: "        now < self.leaves && self.has(core)",
        replacement: "        now < self.leaves && self.owner as usize == core",
        why: "No exchange ever fails, and a core does one step on a line that another wants.",
        checker: checked_by("until_the_request_for_it_has_come"),
        hangs: false,
    },
    Mutant {
        name: "sim_a_lost_line_comes_for_nothing",
        file: "crates/sync/src/primitives/sim/directory.rs",
        original: "            After::Itself => price,",
        replacement: "            After::Itself => 0,",
        why: "A thread that waits at a word gets each change of it at once.",
        checker: checked_by("lines_side_by_side"),
        hangs: false,
    },
    Mutant {
        name: "sim_unlocking_is_blamed_on_the_lock",
        file: "crates/sync/src/primitives/sim/locks.rs",
        original: "        current::access(self.address(), Kind::ReadModifyWrite, self.place());",
        replacement: "        let _ = self.place();\n        current::access(self.address(), Kind::ReadModifyWrite, Location::caller());",
        why: "What an unlock waits for is blamed on the lock's own source.",
        checker: checked_by("a_lock_is_blamed_where_it_is_taken"),
        hangs: false,
    },
    Mutant {
        name: "sim_lock_is_never_handed_over",
        file: "crates/sync/src/primitives/sim/state.rs",
        original: "let fair = count > 0 && self.is_fair_now(address);",
        replacement: "let fair = count > 0 && self.is_fair_now(address) && address == 0;",
        why: "A thread that takes a lock again and again starves one that sleeps.",
        checker: checked_by("a_thread_that_sleeps"),
        hangs: false,
    },
];
