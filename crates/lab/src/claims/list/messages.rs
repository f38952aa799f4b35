//! Messages between threads: parallel signal sending, and threads per core.

use super::{
    Claim, Source,
    Threads::{Cores, Just},
    faster, scales,
};

const ERLANG: Source = Source {
    name: "the parallel signal sending of Erlang/OTP 25, measured on Erlang/OTP 25.2, messages of one \
           integer",
    cores: 2,
};

const ARTICLE: Source = Source {
    name: "the article on thread-per-core (waynexia/shard-affinity), 16 KiB, 16 threads",
    cores: 16,
};

const RESTATED: Source = Source {
    name: "the article's forms restated without its faults, 64 bytes, measured on 2 cores",
    cores: 2,
};

const LIVE: &str = "live";
const SIGNALS: &str = "signals";
const CACHE: &str = "shard_cache";

pub(super) static CLAIMS: [Claim; 21] = [
    faster(ERLANG, SIGNALS, "With 16 senders, buffers of their own let them send nearly three times as much as straight to the receiver's heap.", (LIVE, "u64", Just(16)), ("mailbox_off_heap", "mailbox_on_heap"), 7.8 / 2.8).sent(),
    faster(ERLANG, SIGNALS, "With 16 senders, the receiver gets twice as much with them.", (LIVE, "u64", Just(16)), ("mailbox_off_heap", "mailbox_on_heap"), 4.9 / 2.3),
    faster(ERLANG, SIGNALS, "With two senders, the receiver gets more than twice as much with them.", (LIVE, "u64", Just(2)), ("mailbox_off_heap", "mailbox_on_heap"), 5.3 / 2.3),
    faster(ERLANG, SIGNALS, "With one sender, the straight way is a little faster.", (LIVE, "u64", Just(1)), ("mailbox_on_heap", "mailbox_off_heap"), 4.1 / 3.9),
    scales(ERLANG, SIGNALS, "Two senders send twice as much as one with buffers of their own.", (LIVE, "u64", "mailbox_off_heap"), (2, 1), 7.9 / 3.9).sent(),
    scales(ERLANG, SIGNALS, "Two senders send less than one straight to the receiver's heap.", (LIVE, "u64", "mailbox_on_heap"), (2, 1), 2.4 / 4.1).sent(),
    scales(ERLANG, SIGNALS, "16 senders send as much as two with buffers of their own.", (LIVE, "u64", "mailbox_off_heap"), (16, 2), 7.8 / 7.9).sent().within(1.5),
    faster(ERLANG, SIGNALS, "A mode that changes between the two, which Erlang has not: with 16 senders as good as buffers.", (LIVE, "u64", Just(16)), ("mailbox_auto", "mailbox_off_heap"), 1.0).within(1.25),
    faster(ERLANG, SIGNALS, "A mode that changes between the two, which Erlang has not: with one sender as good as the straight way.", (LIVE, "u64", Just(1)), ("mailbox_auto", "mailbox_on_heap"), 1.0).within(1.25),
    faster(ERLANG, SIGNALS, "Erlang itself again: with 16 senders, the receiver gets twice as much with buffers.", (LIVE, "u64", Just(16)), ("erlang_off_heap", "erlang_on_heap"), 4.9 / 2.3).within(2.0),
    faster(ARTICLE, CACHE, "Writes through a dispatcher are slower than tasks on locks.", ("write_16k", "", Cores), ("local_set_article", "threading_article"), 1.9 / 2.7),
    faster(ARTICLE, CACHE, "Writes by pinned workers are slower than tasks on locks.", ("write_16k", "", Cores), ("affinity_article", "threading_article"), 1.9 / 3.0),
    faster(ARTICLE, CACHE, "Reads through a dispatcher are 3.6 times as slow as tasks on locks.", ("read_16k", "", Cores), ("local_set_article", "threading_article"), 1.6 / 5.7),
    faster(ARTICLE, CACHE, "Reads by pinned workers are slower than tasks on locks.", ("read_16k", "", Cores), ("affinity_article", "threading_article"), 1.6 / 2.7),
    faster(ARTICLE, CACHE, "Reads by pinned workers are twice as fast as through a dispatcher.", ("read_16k", "", Cores), ("affinity_article", "local_set_article"), 5.7 / 2.7),
    faster(RESTATED, CACHE, "Small writes through a dispatcher are half as fast as tasks on locks.", ("write_64", "", Cores), ("local_set_article", "threading_article"), 644.0 / 1312.0),
    faster(RESTATED, CACHE, "Small writes by pinned workers are less than half as fast as tasks on locks.", ("write_64", "", Cores), ("affinity_article", "threading_article"), 519.0 / 1312.0),
    faster(RESTATED, CACHE, "Small reads by pinned workers are less than half as fast as tasks on locks.", ("read_64", "", Cores), ("affinity_article", "threading_article"), 440.0 / 1180.0),
    faster(RESTATED, CACHE, "Plain threads on locks write nearly five times as fast as tasks.", ("write_64", "", Cores), ("plain_locks", "threading_article"), 6000.0 / 1312.0),
    faster(RESTATED, CACHE, "Rings and batches between cores write more than twice as fast as tasks on locks.", ("write_64", "", Cores), ("affinity", "threading_article"), 3430.0 / 1312.0),
    faster(RESTATED, CACHE, "Rings and batches between cores read nearly seven times as fast as tasks on locks.", ("read_64", "", Cores), ("affinity", "threading_article"), 7793.0 / 1180.0),
];
