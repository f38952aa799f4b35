//! What the originals say without a figure, or show by a curve: adaptation over time, what concurrency
//! costs one thread, and counters.

use super::{
    Claim, Field, Original,
    Original::{AboveOne, BelowOne},
    Source,
    Threads::{self, Just},
    differs, faster,
};

const PAPER: Source = Source {
    name: "Sagonas and Winblad, “A contention adapting approach to concurrent ordered sets” (JPDC 2018)",
    cores: 64,
};

const ERLANG: Source = Source {
    name: "Sagonas and Winblad, “More scalable ordered set for ETS using adaptation” (Erlang \
           Workshop 2014), measured on Erlang/OTP 25.2",
    cores: 2,
};

const COUNTERS: Source = Source {
    name: "Winblad, “Decentralized ETS counters for better scalability” (the blog of Erlang/OTP, 2021)",
    cores: 64,
};

const CRATES: Source = Source {
    name: "the crates themselves, 5 M integers, one thread, measured on 2 cores",
    cores: 2,
};

const ADAPTATION: &str = "adaptation";
const COUNTING: &str = "counter_scaling";
const OVERHEAD: &str = "sequential_overhead";

const PHASES: (&str, &str, Threads) = ("phases_of_use", "dense_half_filled", Just(8));
const ITSELF: (&str, &str) = ("ca_tree", "ca_tree");
const COARSE: (&str, &str) = ("ca_tree", "ca_tree_coarse");
const FINE: (&str, &str) = ("ca_tree", "ca_tree_fine");

const INSERT: (&str, &str, Threads) = ("insert", "rand_int", Just(1));
const LOOKUP: (&str, &str, Threads) = ("lookup", "rand_int", Just(1));

const ADD: (&str, &str, Threads) = ("add", "counted", Just(2));
const ADD_ALONE: (&str, &str, Threads) = ("add", "counted", Just(1));
const SIZE: (&str, &str, Threads) = ("size", "counted", Just(1));
const SET: (&str, &str) = (
    "size_of_erlang_set_decentralized",
    "size_of_erlang_set_central",
);
const ORDERED_SET: (&str, &str) = (
    "size_of_erlang_ordered_set_decentralized",
    "size_of_erlang_ordered_set_central",
);
const OURS: (&str, &str) = ("striped", "central");

/// A claim about how the grain of the contention-adapting tree changes from one phase to another.
const fn grain(
    says: &'static str,
    after: &'static str,
    before: &'static str,
    original: Original,
) -> Claim {
    differs(PAPER, ADAPTATION, says, PHASES, ITSELF, original)
        .of(Field::Figure(after))
        .against(Field::Figure(before))
}

/// A claim about what an adaptive grain is worth in a phase.
const fn worth(
    says: &'static str,
    pair: (&'static str, &'static str),
    phase: &'static str,
) -> Claim {
    differs(PAPER, ADAPTATION, says, PHASES, pair, AboveOne).of(Field::Figure(phase))
}

/// A claim that a crate is so many times as fast as a `BTreeMap` under a lock, with one thread.
const fn alone(
    says: &'static str,
    work: (&'static str, &'static str, Threads),
    engine: &'static str,
    original: f64,
) -> Claim {
    faster(
        CRATES,
        OVERHEAD,
        says,
        work,
        (engine, "rwlock_btreemap"),
        original,
    )
}

pub(super) static CLAIMS: [Claim; 31] = [
    grain(
        "A contention-adapting tree that one thread uses after many becomes coarser.",
        "base_nodes_after_single",
        "base_nodes_after_fill",
        BelowOne,
    ),
    grain(
        "Hammered by many threads, it becomes finer again.",
        "base_nodes_after_hammer",
        "base_nodes_after_single",
        AboveOne,
    ),
    grain(
        "Long range queries make it coarser.",
        "base_nodes_after_scan",
        "base_nodes_after_hammer",
        BelowOne,
    ),
    worth(
        "While many threads update, it is ahead of one lock.",
        COARSE,
        "hammer_mops",
    ),
    worth(
        "While ranges are read, it is ahead of a grain that is fixed and fine.",
        FINE,
        "scan_mops",
    ),
    worth(
        "Used by one thread at last, it is ahead of a grain that is fixed and fine.",
        FINE,
        "single_again_mops",
    ),
    faster(
        ERLANG,
        OVERHEAD,
        "With one thread, adapting costs next to nothing of updates.",
        ("update", "rand_int", Just(1)),
        ("ca_tree", "locked"),
        0.76 / 0.78,
    )
    .within(1.25),
    faster(
        ERLANG,
        OVERHEAD,
        "With one thread, adapting costs a few hundredths of lookups.",
        LOOKUP,
        ("ca_tree", "locked"),
        0.88 / 0.92,
    )
    .within(1.25),
    alone(
        "With one thread, crossbeam's skip list inserts at a third of the speed of a BTreeMap under a lock.",
        INSERT,
        "crossbeam_skiplist",
        0.72 / 2.1,
    ),
    alone(
        "With one thread, scc's TreeIndex inserts at little more than half its speed.",
        INSERT,
        "scc_tree_index",
        1.2 / 2.1,
    ),
    alone(
        "With one thread, concurrent-map inserts at half its speed.",
        INSERT,
        "concurrent_map",
        1.1 / 2.1,
    ),
    alone(
        "With one thread, ferntree inserts a little more slowly.",
        INSERT,
        "ferntree",
        1.8 / 2.1,
    ),
    alone(
        "With one thread, masstree inserts at three quarters of its speed.",
        INSERT,
        "masstree_crate",
        1.6 / 2.1,
    ),
    alone(
        "With one thread, congee inserts twice as fast.",
        INSERT,
        "congee",
        4.4 / 2.1,
    )
    .because("Half a million keys here, five million there."),
    alone(
        "With one thread, artmap inserts twice as fast.",
        INSERT,
        "artmap",
        4.1 / 2.1,
    )
    .because("Half a million keys here, five million there."),
    alone(
        "With one thread, arctic-map inserts half as fast again.",
        INSERT,
        "arctic_map",
        3.3 / 2.1,
    )
    .because("Half a million keys here, five million there."),
    alone(
        "With one thread, crossbeam's skip list reads at a third of the speed of a BTreeMap under a lock.",
        LOOKUP,
        "crossbeam_skiplist",
        0.64 / 2.1,
    ),
    alone(
        "With one thread, scc's TreeIndex reads at little more than half its speed.",
        LOOKUP,
        "scc_tree_index",
        1.2 / 2.1,
    ),
    alone(
        "With one thread, concurrent-map reads at half its speed.",
        LOOKUP,
        "concurrent_map",
        1.1 / 2.1,
    ),
    alone(
        "With one thread, ferntree reads at three quarters of its speed.",
        LOOKUP,
        "ferntree",
        1.6 / 2.1,
    ),
    alone(
        "With one thread, masstree reads a little more slowly.",
        LOOKUP,
        "masstree_crate",
        1.8 / 2.1,
    ),
    alone(
        "With one thread, congee reads two and a half times as fast.",
        LOOKUP,
        "congee",
        5.4 / 2.1,
    ),
    alone(
        "With one thread, artmap reads nearly three times as fast.",
        LOOKUP,
        "artmap",
        6.0 / 2.1,
    ),
    alone(
        "With one thread, arctic-map reads three and a half times as fast.",
        LOOKUP,
        "arctic_map",
        7.6 / 2.1,
    ),
    differs(
        COUNTERS,
        COUNTING,
        "Inserts and deletes of several processes are faster if an Erlang set counts in many places.",
        ADD,
        SET,
        AboveOne,
    ),
    differs(
        COUNTERS,
        COUNTING,
        "So are those of an Erlang ordered set.",
        ADD,
        ORDERED_SET,
        AboveOne,
    ),
    differs(
        COUNTERS,
        COUNTING,
        "So is a counter alone, of many cells instead of one.",
        ADD,
        OURS,
        AboveOne,
    ),
    faster(
        COUNTERS,
        COUNTING,
        "With one process, counting in many places costs an Erlang set next to nothing.",
        ADD_ALONE,
        SET,
        1.0,
    )
    .within(1.25),
    faster(
        COUNTERS,
        COUNTING,
        "With one process, it costs an Erlang ordered set next to nothing.",
        ADD_ALONE,
        ORDERED_SET,
        1.0,
    )
    .within(1.25),
    differs(
        COUNTERS,
        COUNTING,
        "To ask an Erlang set for its size is slow if it counts in many places.",
        SIZE,
        SET,
        BelowOne,
    ),
    differs(
        COUNTERS,
        COUNTING,
        "To add up a counter of many cells is slower than to read one.",
        SIZE,
        OURS,
        BelowOne,
    ),
];
