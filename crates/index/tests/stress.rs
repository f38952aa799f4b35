//! Every engine under threads that read, write and scan at the same time, with two oracles.
//!
//! **Entries that validate themselves** (`support/self_validating.rs`). Each value carries its key,
//! a generation and a hash of both. Every fourth key is *stable*: it is present from before the
//! threads start until after they end, though its value is replaced again and again, each time with
//! a higher generation. The other keys come and go, one by one and in ranges. So a thread can judge
//! each entry that it sees by itself, and knows which keys a scan of a range must show. Two threads
//! write, one looks up single keys and neighbours, two scan. The test fails on:
//!
//! - a torn or freed value, or one stored under another key: the hash or the key is wrong;
//! - a scan that loses its place when a node splits, joins or moves: a stable key is missing, or a
//!   key comes twice, out of order, or from outside the range;
//! - a lost update or a stale node: a thread sees the generation of a stable key go back;
//! - a lookup or a neighbour sent to the wrong node: a stable key is not found or skipped.
//!
//! **Moments** (`support/moments.rs`). Writers keep relations between entries that lie far apart,
//! hence in different nodes: what a snapshot shows must be true of one moment. Each of two writers
//! repeats a round: it moves a *token*, by inserting it with the next generation at the other end
//! of the keys and only then removing the old one; it writes `x`, the lowest key, and then `y`, the
//! highest, with this generation; it inserts the keys of a *block* upwards one by one, and then
//! removes them all with one `remove_range`. It publishes the generations that are complete. Two
//! threads take snapshots and scans in both directions, and a fifth inserts and removes keys in
//! between, so that nodes keep splitting and joining. The test fails on:
//!
//! - a snapshot with parts from different moments: it shows no token (removed behind the scan,
//!   inserted before it), or two that are not neighbours in time; `y` newer than `x`, or `x` newer
//!   by more than one; a block with a hole;
//! - a range that is removed bit by bit: a block without its beginning;
//! - a snapshot of a moment long past: a generation older than one published before the snapshot
//!   began, or than one that this thread saw before.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/stress.rs"]
mod rows;
mod support;

use rows::{engine, registered};
use support::{restless, restless_lfca};
use tremula_index::key::{ByteHead, NoHead, TextHead};
use tremula_index::*;

tremula_index::index_engines!(each registered);

engine!(restless_ca_tree, CaTree::<_, _>::with_config(restless()));
engine!(
    restless_lfca_tree,
    LfcaTree::<_, _, NoHead>::with_config(restless_lfca())
);
engine!(masstree_of_small_nodes, Masstree::<_, _, 3>::default());
engine!(
    b_tree_of_small_nodes,
    OlcBTree::<_, _, ByteHead, 0>::default()
);
engine!(b_tree_without_heads, OlcBTree::<_, _, NoHead, 0>::default());
engine!(aspen_of_small_leaves, Aspen::<_, _, ByteHead, 1>::default());

#[test]
fn keys_of_any_length_in_leaves_of_text_validate_themselves() {
    support::text::run(&OlcBTree::<_, _, TextHead<ByteHead>>::default());
}

#[test]
fn keys_of_any_length_in_b_tree_validate_themselves() {
    support::text::run(&OlcBTree::<_, _, ByteHead, 0>::default());
}

/// Threads on fewer processors: a thread may lose its own in the middle of any operation, with or
/// without a lock.
mod more_threads_than_processors {
    use super::*;
    use tremula_sync::{Arc, thread};

    /// Threads, and how many increments each makes.
    fn threads() -> (u64, u64) {
        match std::env::var("TREMULA_DEEP") {
            Ok(_) => (64, 2_000_000),
            Err(_) if cfg!(tremula_tsan) => (8, 2_000),
            Err(_) => (8, 20_000),
        }
    }

    /// Keys that all threads count up.
    const COUNTERS: u64 = 300;

    /// Each thread counts shared keys up, and pushes a window of its own keys through the leaves of
    /// the others. Fails if an increment or an own key is lost, or if a snapshot lacks a counter.
    fn run(map: impl OrderedIndex<u64, u64> + 'static) {
        let map = Arc::new(map);
        let (count, turns) = threads();
        for counter in 0..COUNTERS {
            map.insert(counter << 20, 0);
        }
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    let own =
                        |turn: u64| ((turn % COUNTERS) << 20) + ((turn % 4_096) << 7) + number + 1;
                    for turn in 0..turns {
                        map.update(((turn + number) % COUNTERS) << 20, &mut |value| {
                            Update::Put(value.map_or(1, |value| value + 1))
                        });
                        assert_eq!(map.insert(own(turn), turn), None);
                        if let Some(old) = turn.checked_sub(100) {
                            assert_eq!(map.get(&own(old)), Some(old));
                            assert_eq!(map.remove(&own(old)), Some(old));
                        }
                        if turn % 1_000 == 0 {
                            let all = map.snapshot(KeyRange::all()).unwrap();
                            let counters = all.iter().filter(|(key, _)| key % (1 << 20) == 0);
                            assert_eq!(counters.count() as u64, COUNTERS);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let all = map.snapshot(KeyRange::all()).unwrap();
        let sum: u64 = (0..COUNTERS)
            .map(|key| map.get(&(key << 20)).unwrap())
            .sum();
        assert_eq!(sum, count * turns);
        assert_eq!(all.len() as u64, COUNTERS + count * turns.min(100));
    }

    #[test]
    fn aspen_loses_nothing() {
        run(Aspen::<_, _>::new());
    }

    #[test]
    fn aspen_of_small_leaves_loses_nothing() {
        run(Aspen::<_, _, ByteHead, 1>::default());
    }

    #[test]
    fn b_tree_of_small_nodes_loses_nothing() {
        run(OlcBTree::<_, _, ByteHead, 0>::default());
    }
}
