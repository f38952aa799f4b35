//! Every interleaving of two or three threads on small indexes.
#![cfg(loom)]

mod bw_multi_map;
mod bw_tree;
mod bw_tree_deltas;
mod bw_tree_ids;
mod bw_tree_merges;
mod skip_list;
mod two_lock_queue;
