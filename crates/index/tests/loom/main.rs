//! Every interleaving of two or three threads on small indexes: one file an engine.
#![cfg(loom)]

mod art;
mod b_tree;
mod bw_multi_map;
mod bw_tree;
mod bw_tree_deltas;
mod bw_tree_ids;
mod bw_tree_merges;
mod ca_tree;
mod lfca_tree;
mod masstree;
mod skip_list;
