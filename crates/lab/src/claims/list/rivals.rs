//! Figures of the rivals, so that a run shows whether they are themselves.

use super::{Claim, Source, Threads::Just, faster, scales, weighs};

const CRATES: Source = Source {
    name: "the crates themselves, 5 M integers, measured on 2 cores",
    cores: 2,
};

const CHANNELS: Source = Source {
    name: "the channels themselves, messages of one integer, measured on 2 cores",
    cores: 2,
};

const INTS: &str = "rand_int";
const YCSB: &str = "ycsb";
const SIGNALS: &str = "signals";

pub(super) static CLAIMS: [Claim; 14] = [
    faster(
        CRATES,
        YCSB,
        "congee inserts random integers nearly five times as fast as a BTreeMap under a lock.",
        ("insert", INTS, Just(2)),
        ("congee", "rwlock_btreemap"),
        7.7 / 1.65,
    ),
    faster(
        CRATES,
        YCSB,
        "crossbeam's skip list reads at less than half the speed of a BTreeMap under a lock.",
        ("c", INTS, Just(2)),
        ("crossbeam_skiplist", "rwlock_btreemap"),
        1.3 / 3.5,
    ),
    faster(
        CRATES,
        YCSB,
        "arctic-map reads nearly twice as fast as congee.",
        ("c", INTS, Just(2)),
        ("arctic_map", "congee"),
        16.3 / 9.3,
    ),
    faster(
        CRATES,
        YCSB,
        "concurrent-map scans faster than a BTreeMap under a lock.",
        ("e", INTS, Just(2)),
        ("concurrent_map", "rwlock_btreemap"),
        2.52 / 1.58,
    ),
    faster(
        CRATES,
        YCSB,
        "Radix trees are slow to scan: congee has a fifth of a locked BTreeMap's scans.",
        ("e", INTS, Just(2)),
        ("congee", "rwlock_btreemap"),
        0.32 / 1.58,
    ),
    scales(
        CRATES,
        YCSB,
        "A BTreeMap under a lock inserts more slowly with a second thread.",
        ("insert", INTS, "rwlock_btreemap"),
        (2, 1),
        1.65 / 2.1,
    ),
    scales(
        CRATES,
        YCSB,
        "ferntree inserts twice as fast with a second thread.",
        ("insert", INTS, "ferntree"),
        (2, 1),
        3.6 / 1.8,
    ),
    faster(
        CRATES,
        "high_contention",
        "arctic-map appends nearly twice as fast as a BTreeMap under a lock.",
        ("append", "", Just(2)),
        ("arctic_map", "rwlock_btreemap"),
        7.2 / 3.8,
    )
    .because(
        "arctic-map loses entries when several threads append, and what is wrong has no figure.",
    ),
    weighs(
        CRATES,
        "congee takes 8 bytes for an ascending integer.",
        ("congee", "mono_int"),
        8.0,
    ),
    weighs(
        CRATES,
        "concurrent-map takes 26 bytes for a random integer.",
        ("concurrent_map", INTS),
        26.0,
    ),
    weighs(
        CRATES,
        "crossbeam's skip list takes 40 bytes for a random integer.",
        ("crossbeam_skiplist", INTS),
        40.0,
    ),
    scales(
        CHANNELS,
        SIGNALS,
        "tokio's channel receives a sixth with 16 senders of what it does with two.",
        ("live", "u64", "tokio_mpsc"),
        (16, 2),
        0.4 / 5.0,
    ),
    faster(
        CHANNELS,
        SIGNALS,
        "spillway, with a lane for each sender, receives six times as much as std's channel from 16.",
        ("live", "u64", Just(16)),
        ("spillway", "std_mpsc"),
        79.0 / 13.0,
    ),
    faster(
        CHANNELS,
        SIGNALS,
        "spillway receives a tenth of what std's channel does from one sender.",
        ("live", "u64", Just(1)),
        ("spillway", "std_mpsc"),
        4.5 / 42.0,
    ),
];
