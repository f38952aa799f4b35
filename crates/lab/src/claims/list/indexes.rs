//! The OpenBw-Tree, and the indexes that it was compared with.

use super::{
    Claim, Field, Measure, Original, Pick, Rule, Source,
    Threads::{self, Cores, Just},
    faster, scales, weighs,
};

const PAPER: Source = Source {
    name: "Wang and others, “Building a Bw-Tree takes more than just buzz words” (SIGMOD 2018), 52 M \
           random integers, 20 threads on one socket",
    cores: 20,
};

const APPEND: Source = Source {
    name: "Wang and others (SIGMOD 2018), high contention: appends, 20 threads on one socket",
    cores: 20,
};

const PARTS: Source = Source {
    name: "Wang and others (SIGMOD 2018), decomposition at one thread, random integers",
    cores: 20,
};

const PUBLISHED: Source = Source {
    name: "the published C++ of Wang and others, 5 M integers, measured on 2 cores",
    cores: 2,
};

const INTS: &str = "rand_int";
const INSERT: (&str, &str, Threads) = ("insert", INTS, Cores);
const READ: (&str, &str, Threads) = ("c", INTS, Cores);
const UPDATE: (&str, &str, Threads) = ("a", INTS, Cores);
const SCAN: (&str, &str, Threads) = ("e", INTS, Cores);
const YCSB: &str = "ycsb";
const HOT: &str = "high_contention";

pub(super) static CLAIMS: [Claim; 38] = [
    faster(
        PAPER,
        YCSB,
        "ART inserts 4.5 times as fast as the OpenBw-Tree.",
        INSERT,
        ("art", "bw_tree"),
        44.9 / 9.9,
    ),
    faster(
        PAPER,
        YCSB,
        "The B+tree inserts a little more slowly than the OpenBw-Tree.",
        INSERT,
        ("b_tree", "bw_tree"),
        8.1 / 9.9,
    )
    .because("The B+tree here finds its place in a node by hints, and asks for memory ahead."),
    faster(
        PAPER,
        YCSB,
        "Masstree inserts nearly twice as fast as the OpenBw-Tree.",
        INSERT,
        ("masstree", "bw_tree"),
        17.9 / 9.9,
    ),
    faster(
        PAPER,
        YCSB,
        "The skip list with a background thread inserts at a quarter of the OpenBw-Tree's speed.",
        INSERT,
        ("background_skip_list", "bw_tree"),
        2.5 / 9.9,
    ),
    faster(
        PAPER,
        YCSB,
        "ART reads 3.3 times as fast as the OpenBw-Tree.",
        READ,
        ("art", "bw_tree"),
        51.5 / 15.5,
    ),
    faster(
        PAPER,
        YCSB,
        "The B+tree reads nearly twice as fast as the OpenBw-Tree.",
        READ,
        ("b_tree", "bw_tree"),
        29.0 / 15.5,
    ),
    faster(
        PAPER,
        YCSB,
        "Masstree reads twice as fast as the OpenBw-Tree.",
        READ,
        ("masstree", "bw_tree"),
        30.5 / 15.5,
    )
    .because("Lookups of the Bw-tree here use hints and a filter, which are not in the paper."),
    faster(
        PAPER,
        YCSB,
        "The skip list reads at a fifth of the OpenBw-Tree's speed.",
        READ,
        ("background_skip_list", "bw_tree"),
        2.8 / 15.5,
    ),
    faster(
        PAPER,
        YCSB,
        "ART reads and updates 3.2 times as fast as the OpenBw-Tree.",
        UPDATE,
        ("art", "bw_tree"),
        42.9 / 13.3,
    ),
    faster(
        PAPER,
        YCSB,
        "The B+tree reads and updates 1.9 times as fast as the OpenBw-Tree.",
        UPDATE,
        ("b_tree", "bw_tree"),
        25.1 / 13.3,
    ),
    faster(
        PAPER,
        YCSB,
        "Masstree reads and updates 1.7 times as fast as the OpenBw-Tree.",
        UPDATE,
        ("masstree", "bw_tree"),
        22.0 / 13.3,
    ),
    faster(
        PAPER,
        YCSB,
        "The skip list reads and updates at a ninth of the OpenBw-Tree's speed.",
        UPDATE,
        ("background_skip_list", "bw_tree"),
        1.5 / 13.3,
    ),
    faster(
        PAPER,
        YCSB,
        "ART scans more slowly than the OpenBw-Tree.",
        SCAN,
        ("art", "bw_tree"),
        3.4 / 5.4,
    ),
    faster(
        PAPER,
        YCSB,
        "The B+tree scans 3.5 times as fast as the OpenBw-Tree.",
        SCAN,
        ("b_tree", "bw_tree"),
        18.9 / 5.4,
    ),
    faster(
        PAPER,
        YCSB,
        "Masstree scans more slowly than the OpenBw-Tree.",
        SCAN,
        ("masstree", "bw_tree"),
        3.7 / 5.4,
    ),
    faster(
        PAPER,
        YCSB,
        "The skip list scans at less than half the OpenBw-Tree's speed.",
        SCAN,
        ("background_skip_list", "bw_tree"),
        2.4 / 5.4,
    ),
    faster(
        PAPER,
        YCSB,
        "The B+tree scans more than five times as fast as ART.",
        SCAN,
        ("b_tree", "art"),
        18.9 / 3.4,
    ),
    faster(
        APPEND,
        HOT,
        "When all append, Masstree is 3.5 times as fast as the OpenBw-Tree.",
        ("append", "", Cores),
        ("masstree", "bw_tree"),
        4.03 / 1.15,
    ),
    faster(
        APPEND,
        HOT,
        "When all append, ART is 3.5 times as fast as the OpenBw-Tree.",
        ("append", "", Cores),
        ("art", "bw_tree"),
        3.98 / 1.15,
    ),
    faster(
        APPEND,
        HOT,
        "When all append, the B+tree is more than twice as fast as the OpenBw-Tree.",
        ("append", "", Cores),
        ("b_tree", "bw_tree"),
        2.69 / 1.15,
    ),
    Claim {
        experiment: HOT,
        says: "When all append, an insert into the OpenBw-Tree begins again more than ten times.",
        source: APPEND,
        original: Original::Figure(10.0),
        measure: Measure::Value(Pick {
            workload: "append",
            key_set: "",
            engine: "bw_tree",
            threads: Cores,
            field: Field::Figure("aborts_per_operation"),
        }),
        rule: Rule::SameSide,
        why: "Two threads lose fewer compare-and-swaps, and a leaf on which many are lost gets several chains.",
    },
    scales(
        PUBLISHED,
        HOT,
        "A second thread that appends makes the B+tree slower than one.",
        ("append", "", "b_tree"),
        (2, 1),
        4.3 / 11.1,
    ),
    scales(
        PUBLISHED,
        HOT,
        "A second thread that appends makes the OpenBw-Tree slower than one.",
        ("append", "", "bw_tree"),
        (2, 1),
        1.8 / 4.4,
    ),
    scales(
        PUBLISHED,
        HOT,
        "A second thread that appends makes ART slower than one.",
        ("append", "", "art"),
        (2, 1),
        3.3 / 8.1,
    ),
    scales(
        PUBLISHED,
        HOT,
        "A second thread that appends makes Masstree slower than one.",
        ("append", "", "masstree"),
        (2, 1),
        3.1 / 9.0,
    ),
    faster(
        PARTS,
        YCSB,
        "With one thread that reads, the B+tree is 1.7 times as fast as the OpenBw-Tree: the price of delta chains, mapping table and compare-and-swap.",
        ("c", INTS, Just(1)),
        ("b_tree", "bw_tree"),
        2.27 / 1.31,
    ),
    faster(
        PUBLISHED,
        YCSB,
        "With two threads, ART reads nearly twice as fast as the B+tree.",
        ("c", INTS, Just(2)),
        ("art", "b_tree"),
        7.2 / 3.8,
    )
    .because("The B+tree here finds an entry by hints, and asks for memory ahead."),
    faster(
        PUBLISHED,
        YCSB,
        "With two threads, ART inserts ascending keys more slowly than the B+tree.",
        ("insert", "mono_int", Just(2)),
        ("art", "b_tree"),
        15.7 / 28.7,
    ),
    faster(
        PUBLISHED,
        YCSB,
        "With two threads, ART reads ascending keys nearly three times as fast as the B+tree.",
        ("c", "mono_int", Just(2)),
        ("art", "b_tree"),
        10.0 / 3.5,
    ),
    faster(
        PUBLISHED,
        YCSB,
        "With two threads and e-mail addresses, Masstree reads half as fast again as the B+tree.",
        ("c", "email", Just(2)),
        ("masstree", "b_tree"),
        3.4 / 2.2,
    )
    .because("The B+tree here has the first bytes of its keys side by side: most comparisons need not load the key."),
    faster(
        PUBLISHED,
        YCSB,
        "With two threads and e-mail addresses, the OpenBw-Tree reads at half of ART's speed.",
        ("c", "email", Just(2)),
        ("bw_tree", "art"),
        1.4 / 2.8,
    ),
    faster(
        PUBLISHED,
        YCSB,
        "With two threads and e-mail addresses, the B+tree scans nearly four times as fast as ART.",
        ("e", "email", Just(2)),
        ("b_tree", "art"),
        1.14 / 0.30,
    ),
    scales(
        PUBLISHED,
        YCSB,
        "The OpenBw-Tree inserts twice as fast with a second thread.",
        ("insert", INTS, "bw_tree"),
        (2, 1),
        1.6 / 0.76,
    ),
    weighs(
        PUBLISHED,
        "The OpenBw-Tree takes 39 bytes for a random integer and its value.",
        ("bw_tree", INTS),
        39.0,
    ),
    weighs(
        PUBLISHED,
        "The B+tree takes 24 bytes for a random integer and its value.",
        ("b_tree", INTS),
        24.0,
    ),
    weighs(
        PUBLISHED,
        "Masstree takes 65 bytes for a random integer and its value.",
        ("masstree", INTS),
        65.0,
    )
    .because("A leaf here has no lengths and suffixes of keys: a slice tells its length."),
    weighs(
        PUBLISHED,
        "ART takes 33 bytes for a random integer, and 8 for the key that it keeps elsewhere.",
        ("art", INTS),
        41.0,
    ),
    weighs(
        PUBLISHED,
        "The B+tree leaves its leaves half full when keys ascend: 33 bytes.",
        ("b_tree", "mono_int"),
        33.0,
    )
    .because("The B+tree here leaves its leaves full when keys ascend."),
];
