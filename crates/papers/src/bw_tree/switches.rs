//! The optimisations, each to be had or not.

/// The optimisations of a [`BwTree`](crate::BwTree) over the original Bw-tree, each to be had or
/// not: what tells how much each of them is worth. Answers are the same with all.
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
    /// Deltas lie in an area in front of their base node, claimed downward; else each is allocated
    /// by itself.
    pub preallocation: bool,
    /// Threads have epochs, and lists of what they retire, of their own; else all enter and leave
    /// the epochs of the tree, and write to its counters twice an operation.
    pub local_epochs: bool,
    /// A consolidation sorts the deltas, and copies the runs of the base node between them; else
    /// it replays the deltas on a copy, and sorts all of it.
    pub fast_consolidation: bool,
    /// A search uses what deltas tell of offsets, and the hints of nodes; else it is a plain
    /// binary search of the whole base node. The hints are not in the paper.
    pub search_shortcuts: bool,
    /// A filter in the header tells of most keys that no delta is about them, so that lookups pass
    /// the deltas by; else each walks the chain. It is not in the paper.
    pub chain_filter: bool,
    /// An inner node is replaced as a whole when a separator comes or goes, so that nobody walks a
    /// chain on the way down; else the separator is inserted or deleted by a delta. It is not in the
    /// paper.
    pub whole_inner_nodes: bool,
    /// A node is split into two new base nodes; else the left one keeps its chain, with a delta that
    /// says where it ends now. It is not in the paper.
    pub whole_splits: bool,
    /// A leaf whose chain is fought over has several of them, until that ends; else threads that write
    /// to it keep fighting. It is not in the paper.
    pub spread_leaves: bool,
    /// A merge holds the two nodes and their parent, and gives up if one of them is held; else it goes by
    /// an abort, a merge and a remove delta, and whoever meets one of them helps. It is not in the
    /// paper.
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

    /// None of them: the original Bw-tree's ways.
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
