//! The list of planted bugs.
//!
//! To add one, append a [`Mutant`] to the file of its part: the exact text of a place in the code,
//! occurring once in its file; what to put there; why that is a bug; and the checker that must
//! catch it. Choose bugs that someone could write, and a checker that is there for their kind.

mod check;
mod group;
mod group_clients;
mod group_real;
mod group_snapshots;
mod histories;
mod index_art;
mod index_aspen;
mod index_aspen_snapshots;
mod index_b_tree;
mod index_ca_tree;
mod index_common;
mod index_hash;
mod index_keys;
mod index_lfca_tree;
mod index_masstree;
mod index_steps;
mod index_text;
mod log;
mod mailbox;
mod notices;
mod observe;
mod packaging;
mod page;
mod papers_bw_tree;
mod papers_series;
mod papers_skip_list;
mod server;
mod server_feeds;
mod server_transport;
mod server_watch;
mod shard;
mod sim;
mod store;
mod store_copies;
mod store_expiry;
mod store_follow;
mod store_journal;
mod store_past;
mod store_steps;
mod store_tables;
mod store_versions;
mod sync;
mod table;
mod table_effects;
mod table_expiry;
mod table_match_spec;
mod transactions;
mod xtask;

use crate::flavour::Flavour;

/// One bug to plant.
pub(crate) struct Mutant {
    /// Unique, in words joined by `_`.
    pub(crate) name: &'static str,
    /// Relative to the workspace's root.
    pub(crate) file: &'static str,
    /// Text that occurs exactly once in the file.
    pub(crate) original: &'static str,
    /// What stands there instead.
    pub(crate) replacement: &'static str,
    /// What goes wrong, and when.
    pub(crate) why: &'static str,
    /// What must catch it.
    pub(crate) checker: Checker,
    /// Whether the bug shows in that the checker does not end.
    pub(crate) hangs: bool,
}

/// A test, or some tests, in one way of building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checker {
    pub(crate) flavour: Flavour,
    pub(crate) package: &'static str,
    pub(crate) target: Target,
    /// Part of the names of the tests to run; empty for all.
    pub(crate) filter: &'static str,
}

/// Which of a crate's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a kind that no planted bug needs at the moment")]
pub(crate) enum Target {
    /// The unit tests of the library.
    Lib,
    /// The unit tests of the programs.
    Bins,
    /// The integration test of this name.
    Test(&'static str),
}

/// Every planted bug.
pub(crate) fn all() -> impl Iterator<Item = &'static Mutant> + Clone {
    let parts = [
        check::MUTANTS,
        group::MUTANTS,
        group_clients::MUTANTS,
        group_real::MUTANTS,
        group_snapshots::MUTANTS,
        histories::MUTANTS,
        index_art::MUTANTS,
        index_aspen::MUTANTS,
        index_aspen_snapshots::MUTANTS,
        index_b_tree::MUTANTS,
        index_ca_tree::MUTANTS,
        index_common::MUTANTS,
        index_hash::MUTANTS,
        index_keys::MUTANTS,
        papers_bw_tree::MUTANTS,
        papers_series::MUTANTS,
        index_lfca_tree::MUTANTS,
        index_masstree::MUTANTS,
        index_steps::MUTANTS,
        index_text::MUTANTS,
        papers_skip_list::MUTANTS,
        log::MUTANTS,
        mailbox::MUTANTS,
        notices::MUTANTS,
        observe::MUTANTS,
        page::MUTANTS,
        packaging::MUTANTS,
        server::MUTANTS,
        server_feeds::MUTANTS,
        server_transport::MUTANTS,
        server_watch::MUTANTS,
        shard::MUTANTS,
        sim::MUTANTS,
        store::MUTANTS,
        store_copies::MUTANTS,
        store_expiry::MUTANTS,
        store_steps::MUTANTS,
        transactions::MUTANTS,
        store_follow::MUTANTS,
        store_journal::MUTANTS,
        store_past::MUTANTS,
        store_tables::MUTANTS,
        store_versions::MUTANTS,
        sync::MUTANTS,
        table::MUTANTS,
        table_effects::MUTANTS,
        table_expiry::MUTANTS,
        table_match_spec::MUTANTS,
        xtask::MUTANTS,
    ];
    parts.into_iter().flatten()
}
