//! Contention-adapting trees, and the tables of Erlang that are made of them.

use super::{Claim, Source, Threads::Just, faster, scales, weighs};

/// Sagonas and Winblad give curves; these numbers are of what they describe, as Erlang has it.
const ERLANG: Source = Source {
    name: "Sagonas and Winblad, “More scalable ordered set for ETS using adaptation” (Erlang \
           Workshop 2014), measured on Erlang/OTP 25.2",
    cores: 2,
};

const DENSE: &str = "dense_half_filled";
const PAIR: (&str, &str) = ("ca_tree", "locked");
const ETS: (&str, &str) = ("erlang_ets_new", "erlang_ets_old");
const MIX: &str = "ordered_mix";
const RANGES: &str = "insert_disjoint_ranges";

pub(super) static CLAIMS: [Claim; 24] = [
    faster(ERLANG, MIX, "Of updates alone, the contention-adapting tree does three times as many as one lock, with two threads.", ("update100", DENSE, Just(2)), PAIR, 1.38 / 0.43),
    faster(ERLANG, MIX, "Of half updates and half lookups, it does more than twice as many with two threads.", ("update50", DENSE, Just(2)), PAIR, 1.45 / 0.55),
    faster(ERLANG, MIX, "With one update in a hundred operations it is still ahead, with two threads.", ("update1", DENSE, Just(2)), PAIR, 1.63 / 1.25),
    faster(ERLANG, MIX, "Of lookups alone, neither is ahead with two threads.", ("lookup", DENSE, Just(2)), PAIR, 1.48 / 1.45).within(1.25).because("Each lookup writes to the one lock; in the tree each base has its own."),
    faster(ERLANG, MIX, "Of updates alone, it does nearly three times as many with eight threads on two cores.", ("update100", DENSE, Just(8)), PAIR, 0.98 / 0.36),
    faster(ERLANG, MIX, "Of half updates and half lookups, it does more than twice as many with eight threads on two cores.", ("update50", DENSE, Just(8)), PAIR, 1.04 / 0.44),
    faster(ERLANG, MIX, "Of lookups alone, it does a fifth more with eight threads on two cores.", ("lookup", DENSE, Just(8)), PAIR, 1.29 / 1.07),
    faster(ERLANG, MIX, "With one thread, adapting costs next to nothing of updates.", ("update100", DENSE, Just(1)), PAIR, 0.76 / 0.78).within(1.25),
    faster(ERLANG, MIX, "With one thread, adapting costs a few hundredths of lookups.", ("lookup", DENSE, Just(1)), PAIR, 0.88 / 0.92).within(1.25),
    scales(ERLANG, MIX, "The contention-adapting tree does nearly twice the updates with a second thread.", ("update100", DENSE, "ca_tree"), (2, 1), 1.38 / 0.76),
    scales(ERLANG, MIX, "One lock does fewer updates with a second thread than with one.", ("update100", DENSE, "locked"), (2, 1), 0.43 / 0.78),
    scales(ERLANG, MIX, "The contention-adapting tree loses some, but not all, of its updates when eight threads share two cores.", ("update100", DENSE, "ca_tree"), (8, 2), 0.98 / 1.38).within(1.5),
    faster(ERLANG, MIX, "Erlang's own tables again: with write concurrency, three times the updates with two processes.", ("update100", DENSE, Just(2)), ETS, 1.38 / 0.43).within(2.0),
    scales(ERLANG, MIX, "Erlang's own tables again: one lock does fewer updates with a second process.", ("update100", DENSE, "erlang_ets_old"), (2, 1), 0.43 / 0.78),
    faster(ERLANG, RANGES, "Inserting disjoint ranges, the contention-adapting tree is more than three times as fast as one lock with two threads.", ("insert_ascending", "", Just(2)), PAIR, 5.1 / 1.4),
    faster(ERLANG, RANGES, "Inserting disjoint ranges, it is nearly five times as fast with four threads.", ("insert_ascending", "", Just(4)), PAIR, 6.2 / 1.3),
    scales(ERLANG, RANGES, "Inserting disjoint ranges, it gains half with a second thread.", ("insert_ascending", "", "ca_tree"), (2, 1), 5.1 / 3.3),
    scales(ERLANG, RANGES, "Inserting disjoint ranges, one lock loses more than half with a second thread.", ("insert_ascending", "", "locked"), (2, 1), 1.4 / 3.2),
    faster(ERLANG, RANGES, "Erlang's own tables again: disjoint ranges are inserted more than three times as fast with write concurrency, by two processes.", ("insert_ascending", "", Just(2)), ETS, 5.1 / 1.4).within(2.0),
    faster(ERLANG, "ets_throughput", "As a table of rows, the contention-adapting tree does three times the updates of one lock with two threads.", ("update100", "int", Just(2)), ("table_ca_tree", "table_locked"), 1.38 / 0.43),
    faster(ERLANG, "ets_throughput", "A hash table with write concurrency does twice the updates of an ordered one with two threads.", ("update100", "int", Just(2)), ("table_set", "table_ca_tree"), 2.68 / 1.38),
    faster(ERLANG, "ets_throughput", "A hash table with write concurrency does twice the lookups of an ordered one with two threads.", ("lookup", "int", Just(2)), ("table_set", "table_ca_tree"), 3.39 / 1.48),
    faster(ERLANG, "ets_throughput", "Sequences of next are slower in the contention-adapting tree, which descends for each step, than under one lock, which keeps its place.", ("next100", "int", Just(1)), ("table_ca_tree", "table_locked"), 0.066 / 0.115),
    weighs(ERLANG, "An integer in Erlang's table takes 56 bytes; in this tree it should take no more.", ("ca_tree", "mono_int"), 56.0).at_most(),
];
