//! Toggles for each optimisation.

/// Toggles for each optimisation of a [`BwTree`](crate::BwTree) over the original Bw-tree, to
/// measure what each of them is worth. The tree's answers do not depend on them.
///
/// Sections are those of Wang and others, SIGMOD 2018.
///
/// ```
/// use tremula_index::OrderedIndex;
/// use tremula_papers::BwTree;
/// use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};
///
/// let switches = BwTreeSwitches {
///     preallocation: true,
///     ..BwTreeSwitches::OFF
/// };
/// let tree = BwTree::<u64, u64>::with_config(BwTreeConfig {
///     switches,
///     ..BwTreeConfig::default()
/// });
/// tree.insert(1, 2);
/// assert_eq!(tree.get(&1), Some(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BwTreeSwitches {
    /// Deltas lie in an area in front of their base node, claimed downward. Otherwise each is
    /// allocated by itself.
    pub preallocation: bool,
    /// Threads have epochs and lists of retired memory of their own. Otherwise all threads enter
    /// and leave the epochs of the tree, and write to its counters twice an operation.
    pub local_epochs: bool,
    /// A consolidation sorts the deltas, and copies the runs of the base node between them.
    /// Otherwise it replays the deltas on a copy, and sorts all of it.
    pub fast_consolidation: bool,
    /// A search uses the offsets of deltas, and the hints of nodes. Otherwise it is a plain binary
    /// search of the whole base node. The hints are not in the paper.
    pub search_shortcuts: bool,
    /// A filter in the header shows for most keys that no delta is on them, so that lookups skip
    /// the deltas. Otherwise each lookup walks the chain. It is not in the paper.
    pub chain_filter: bool,
    /// An inner node is replaced as a whole when a separator is inserted or deleted, so that no
    /// operation walks a chain on the way down. Otherwise a delta inserts or deletes the separator.
    /// It is not in the paper.
    pub whole_inner_nodes: bool,
    /// A node is split into two new base nodes. Otherwise the left one keeps its chain, with a
    /// delta that says where it ends now. It is not in the paper.
    pub whole_splits: bool,
    /// A leaf whose head is contended has several chains while the contention lasts. Otherwise
    /// writers keep competing for one head. It is not in the paper.
    pub spread_leaves: bool,
    /// A merge holds the two nodes and their parent, and gives up if one of them is held. Otherwise
    /// it puts an abort, a merge and a remove delta on them, and any thread that meets one of these
    /// helps. It is not in the paper.
    pub held_merges: bool,
}

impl BwTreeSwitches {
    /// All optimisations.
    pub const ON: Self = Self {
        preallocation: true,
        local_epochs: true,
        fast_consolidation: true,
        search_shortcuts: true,
        chain_filter: true,
        whole_inner_nodes: true,
        whole_splits: true,
        spread_leaves: true,
        held_merges: true,
    };

    /// None of them: the original Bw-tree.
    pub const OFF: Self = Self {
        preallocation: false,
        local_epochs: false,
        fast_consolidation: false,
        search_shortcuts: false,
        chain_filter: false,
        whole_inner_nodes: false,
        whole_splits: false,
        spread_leaves: false,
        held_merges: false,
    };
}

impl Default for BwTreeSwitches {
    fn default() -> Self {
        Self::ON
    }
}
