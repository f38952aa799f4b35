//! Bugs to plant in shards, in the cache and in the compression of time series.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The hand-over of shards under random schedules.
const HAND_OVER: Checker = Checker {
    flavour: Flavour::Shuttle,
    package: "tremula-shard",
    target: Target::Test("shuttle"),
    filter: "",
};

/// Random points through the compression and back.
const ROUND_TRIP: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-shard",
    target: Target::Test("series"),
    filter: "any_points_come_back",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "shard_caller_overtakes_the_queue",
        file: "crates/shard/src/seat.rs",
        original: "if !inner.jobs.is_empty() || inner.closed",
        replacement: "if inner.closed",
        why: "A caller runs its job in place while earlier ones of its own are queued.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_forgets_what_came_while_somebody_ran",
        file: "crates/shard/src/seat.rs",
        original: "        self.tell().map_or(Ended::Nothing, Ended::Tell)\n",
        replacement: "        Ended::Nothing\n",
        why: "Jobs that were queued while the state was held are run by nobody.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_helper_forgets_what_is_behind",
        file: "crates/shard/src/seat.rs",
        original: "let needed = !self.noticed && self.state.is_some()",
        replacement: "let needed = !self.noticed && self.state.is_some() && self.jobs.len() == 1",
        why: "A caller that has done a few of many jobs tells nobody of the others.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_drops_the_notice_of_one_that_moved",
        file: "crates/shard/src/seat.rs",
        original: "            return inner.tell().map_or(Begun::Nothing, Begun::Tell);\n",
        replacement: "            return Begun::Nothing;\n",
        why: "The notice of a shard that has been given away meanwhile does not reach its new owner.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_is_lent_over_its_queue",
        file: "crates/shard/src/seat.rs",
        original: "        inner.lent = inner.jobs.is_empty() && !inner.closed;\n",
        replacement: "        inner.lent = !inner.closed;\n",
        why: "What was queued before a state was lent is overtaken by what its callers do then, and may never be run.",
        checker: HAND_OVER,
        hangs: false,
    },
    Mutant {
        name: "shard_queues_what_is_lent",
        file: "crates/shard/src/seat.rs",
        original: "        if inner.lent {\n            return Offered::Lent(job);\n        }\n",
        replacement: "",
        why: "A job is queued at a seat whose state is lent, and is told to nobody when it comes back.",
        checker: HAND_OVER,
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
    Mutant {
        name: "shard_series_window_cuts_trailing_bits",
        file: "crates/shard/src/series/codec.rs",
        original: "    let fits = leading >= context.leading && trailing >= context.trailing;\n",
        replacement: "    let fits = leading >= context.leading;\n",
        why: "A value whose last bits lie behind the former window is written without them.",
        checker: ROUND_TRIP,
        hangs: false,
    },
    Mutant {
        name: "shard_series_difference_loses_its_sign",
        file: "crates/shard/src/series/codec.rs",
        original: "    Some((bits.read(width)? << unused).cast_signed() >> unused)\n",
        replacement: "    Some((bits.read(width)? << unused >> unused).cast_signed())\n",
        why: "A point that comes earlier than expected is decoded as one that comes much later.",
        checker: ROUND_TRIP,
        hangs: false,
    },
];
