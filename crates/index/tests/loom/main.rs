//! Every interleaving of two or three threads on small indexes, one file per engine.
#![cfg(loom)]

mod art;
mod aspen;
mod aspen_hot;
mod b_tree;
mod ca_tree;
mod hash_index;
mod lfca_tree;
mod masstree;
