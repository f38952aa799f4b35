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
use tremula_index::key::{ByteHead, NoHead};
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
