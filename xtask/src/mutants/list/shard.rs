//! Bugs to plant in shards and in the cache.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The hand-over of shards under random schedules.
const HAND_OVER: Checker = Checker {
    flavour: Flavour::Shuttle,
    package: "tremula-shard",
    target: Target::Test("shuttle"),
    filter: "",
};

/// What functions on shards may do.
const FUNCTIONS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-shard",
    target: Target::Test("functions"),
    filter: "",
};

/// Asynchronous functions, and shutting down.
const ASYNCHRONOUS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-shard",
    target: Target::Test("asynchronous"),
    filter: "",
};

/// The unit tests.
const SHARD_LIB: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-shard",
    target: Target::Lib,
    filter: "",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "shard_function_waits_for_a_lock",
        file: "crates/shard/src/shards/shared.rs",
        original: "        if is_running() {\n            return self.submit_from_function(shard, request, waker);\n        }\n",
        replacement: "",
        why: "What a function sends waits for the other shard's lock while it holds its own: two that send crosswise wait for ever.",
        checker: Checker {
            filter: "crosswise",
            ..HAND_OVER
        },
        hangs: false,
    },
    Mutant {
        name: "shard_call_overtakes_what_is_deferred",
        file: "crates/shard/src/shards/shared.rs",
        original: "            if !has_deferred(tag)\n                && let Some",
        replacement: "            if let Some",
        why: "What a function calls is run before what it sent to the same shard.",
        checker: Checker {
            filter: "keeps_its_order",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_call_on_other_shards_does_not_find_what_was_sent",
        file: "crates/shard/src/shards/shared.rs",
        original: "                run_deferred_of(tag);\n",
        replacement: "",
        why: "A function that waits for shards of another kind is answered before what it sent there is done.",
        checker: Checker {
            filter: "finds_what_it_sent",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_sends_nest_on_the_stack",
        file: "crates/shard/src/shards/owned.rs",
        original: "        let in_place = !in_function || request.is_wanted() && !runs_on(tag);\n",
        replacement: "        let in_place = true;\n",
        why: "Each function that sends to the next shard runs on top of the one before, until the stack ends.",
        checker: Checker {
            filter: "takes_no_stack",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_function_waits_for_a_lent_shard",
        file: "crates/shard/src/shards/owned.rs",
        original: "                    let ran = if may_wait {\n",
        replacement: "                    let ran = if may_wait || !request.is_wanted() {\n",
        why: "What a function on a shared shard sends to another waits for that one's lock.",
        checker: Checker {
            filter: "shared_shards",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_call_on_lent_shards_of_another_kind_is_put_off",
        file: "crates/shard/src/shards/owned.rs",
        original: "!in_function || request.is_wanted() && !runs_beside(tag);\n",
        replacement: "!in_function || request.is_wanted() && !is_running();\n",
        why: "A function waits for a call that its own thread makes only after the function has ended.",
        checker: Checker {
            filter: "of_another_kind",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_runs_deferred_requests_on_top_of_each_other",
        file: "crates/shard/src/shards/running.rs",
        original: "    WAITING.with(|waiting| waiting.set(Waiting::BeingRun));\n",
        replacement: "",
        why: "What a deferred request defers is run when it ends, on top of it.",
        checker: Checker {
            filter: "takes_no_stack",
            ..SHARD_LIB
        },
        hangs: false,
    },
    Mutant {
        name: "shard_late_job_is_left_at_a_closed_seat",
        file: "crates/shard/src/delegation.rs",
        original: "            (true, Some(_)) => Ended::GoOn,\n",
        replacement: "            (true, Some(_)) => Ended::Nothing,\n",
        why: "What a function sent to a shared shard is run by nobody when the shards are closed meanwhile.",
        checker: Checker {
            filter: "comes_late",
            ..HAND_OVER
        },
        hangs: false,
    },
    Mutant {
        name: "shard_function_may_wait_for_itself",
        file: "crates/shard/src/shards/call.rs",
        original: "            !runs_on(self.shard),\n",
        replacement: "            !runs_on(self.shard) || self.shard.shard() < usize::MAX,\n",
        why: "A function that waits for its own shard is not told so by a sentence.",
        checker: Checker {
            filter: "stopped_with_a_sentence",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_is_lost_to_a_payload_that_panics",
        file: "crates/shard/src/shards/request.rs",
        original: "    discard(payload);\n",
        replacement: "    drop(payload);\n",
        why: "The panic of a panic's payload leaves the batch: the state is dropped with it and the worker is gone.",
        checker: Checker {
            filter: "payload",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_waker_that_panics_ends_the_worker",
        file: "crates/shard/src/shards/request.rs",
        original: "            contained(|| waker.wake());\n",
        replacement: "            waker.wake();\n",
        why: "The panic of one caller's waker ends the worker, and all that wait for it wait for ever.",
        checker: Checker {
            filter: "a_waker_that_panics",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_registers_a_waker_for_every_poll",
        file: "crates/shard/src/delegation.rs",
        original: "is_some_and(|waker| self.known.insert(of(waker)))",
        replacement: "is_some_and(|waker| self.known.insert(of(waker)) || self.capacity > 0)",
        why: "A call that waits for room and is polled a million times holds a million clones of its waker.",
        checker: Checker {
            filter: "registered_once",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_task_waits_for_itself_to_end",
        file: "crates/papers/src/article.rs",
        original: "        if self.members.is_running_here() {\n",
        replacement: "        if self.members.is_running_here() && states.locks.is_empty() {\n",
        why: "A task that drops the last handle waits until all tasks have ended, itself among them.",
        checker: Checker {
            filter: "last_handle",
            ..FUNCTIONS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_tolerance_overflows",
        file: "crates/shard/src/shards/balance.rs",
        original: "    let more = u128::from(average) * u128::from(tolerance) / 100;\n",
        replacement: "    let more = u128::from(average * tolerance / 100);\n",
        why: "With a large tolerance the worker that compares loads panics and ends, or gives away what it should keep.",
        checker: Checker {
            filter: "tolerance",
            ..SHARD_LIB
        },
        hangs: false,
    },
    Mutant {
        name: "shard_announces_what_has_been_taken_back",
        file: "crates/shard/src/shards/shared_state.rs",
        original: "        if handle.is_some() {\n",
        replacement: "        if handle.is_some() || !self.on.load(Ordering::Relaxed) {\n",
        why: "Every request of a shard that is no longer shared takes the slow way by the readers-writer lock, and the shard is counted as shared.",
        checker: Checker {
            filter: "taken_back",
            ..SHARD_LIB
        },
        hangs: false,
    },
    Mutant {
        name: "shard_caller_overtakes_the_queue",
        file: "crates/shard/src/delegation.rs",
        original: "if !self.jobs.is_empty() || self.closed",
        replacement: "if self.closed",
        why: "A caller runs its job in place while earlier ones of its own are queued.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_forgets_what_came_while_somebody_ran",
        file: "crates/shard/src/delegation.rs",
        original: "        self.notice().map_or(Ended::Nothing, Ended::Notify)\n",
        replacement: "        Ended::Nothing\n",
        why: "Jobs that were queued while the state was held are run by nobody.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_helper_forgets_what_is_behind",
        file: "crates/shard/src/delegation.rs",
        original: "let needed = !self.noticed && self.state.is_some()",
        replacement: "let needed = !self.noticed && self.state.is_some() && self.jobs.len() == 1",
        why: "A caller that has run a few of many jobs notifies no worker of the others.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_drops_the_notice_of_one_that_moved",
        file: "crates/shard/src/delegation.rs",
        original: "                return (inner.notice(), Vec::new());\n",
        replacement: "                return (None, Vec::new());\n",
        why: "The notice of a shard that has been given away meanwhile does not reach its new owner.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_is_lent_over_its_queue",
        file: "crates/shard/src/delegation.rs",
        original: "        inner.shared = inner.jobs.is_empty() && !inner.closed;\n",
        replacement: "        inner.shared = !inner.closed;\n",
        why: "What was queued before a state was shared is overtaken by what its callers do then, and may never be run.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_queues_what_is_lent",
        file: "crates/shard/src/delegation.rs",
        original: "            if inner.shared {\n                return Offered::Shared(job);\n            }\n",
        replacement: "",
        why: "A job is queued at a lock whose state is shared, and no thread runs it when the state comes back.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_bell_swallows_what_a_turn_has_not_seen",
        file: "crates/shard/src/shards/asynchronous.rs",
        original: "        function.bell.silence();\n        if function.job.is_given_up() {\n            return Some(function.end(Ran::Cancelled));\n        }\n",
        replacement: "        if function.job.is_given_up() {\n            return Some(function.end(Ran::Cancelled));\n        }\n        function.bell.silence();\n",
        why: "A call that is dropped just before a turn of its function rings in vain, and the function keeps its state for ever.",
        checker: Checker {
            filter: "dropped_before_a_turn",
            ..HAND_OVER
        },
        hangs: false,
    },
    Mutant {
        name: "shard_jobs_that_come_back_are_overtaken",
        file: "crates/shard/src/delegation.rs",
        original: "            while let Some(job) = batch.pop_back() {\n                inner.jobs.push_front(job);\n",
        replacement: "            while let Some(job) = batch.pop_front() {\n                inner.jobs.push_back(job);\n",
        why: "What was queued behind an asynchronous function is run after what the same caller queued later.",
        checker: Checker {
            filter: "functions_exclude",
            ..HAND_OVER
        },
        hangs: false,
    },
    Mutant {
        name: "shard_executor_ends_while_a_state_is_on_its_way",
        file: "crates/shard/src/shards/shared.rs",
        original: "        while !stops || self.away.load(Ordering::SeqCst) > 0 {\n",
        replacement: "        while !stops {\n",
        why: "The state that a caller has just given to the thread for asynchronous functions is lost when the shards are shut down.",
        checker: Checker {
            filter: "a_shutdown_answers_all",
            ..HAND_OVER
        },
        hangs: false,
    },
    Mutant {
        name: "shard_interrupts_without_an_answer",
        file: "crates/shard/src/shards/asynchronous.rs",
        original: "        job.fail(CallError::Interrupted, wakes);\n",
        replacement: "",
        why: "A shutdown drops an asynchronous function and leaves its caller waiting for ever.",
        checker: Checker {
            filter: "a_shutdown_answers_all",
            ..HAND_OVER
        },
        hangs: false,
    },
    Mutant {
        name: "shard_gives_a_state_back_over_its_queue",
        file: "crates/shard/src/delegation.rs",
        original: "if found == (false, false) && inner.closed && inner.jobs.is_empty() {",
        replacement: "if found == (false, false) && inner.closed {",
        why: "A shutdown takes the state from the thread that is about to run the last queued functions, and their callers wait for ever.",
        checker: Checker {
            filter: "until_the_last_queued_job",
            ..SHARD_LIB
        },
        hangs: false,
    },
    Mutant {
        name: "shard_function_may_await_no_other_shard",
        file: "crates/shard/src/shards/running.rs",
        original: "    runs_beside(shard) && (!innermost.is_asynchronous() || runs_on(shard))\n",
        replacement: "    runs_beside(shard) && (!innermost.is_none() || runs_on(shard))\n",
        why: "An asynchronous function is refused what only a function that blocks its thread must not do.",
        checker: Checker {
            filter: "may_await_other_shards",
            ..ASYNCHRONOUS
        },
        hangs: false,
    },
    Mutant {
        name: "shard_cache_account_forgets_an_evicted_items_entries",
        file: "crates/shard/src/cache/mod.rs",
        original: "            let held = item.body.read().held() + Items::<K>::ITEM;\n",
        replacement: "            let held = item.body.read().held();\n",
        why: "What is evicted is not taken off the account as a whole, which ends with a cache that is empty and full.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-shard",
            target: Target::Lib,
            filter: "the_account_is_the_sum",
        },
        hangs: false,
    },
];
