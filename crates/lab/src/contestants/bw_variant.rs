//! The OpenBw-Tree with some of its optimisations, which `bw_tree_ablation` compares.

use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};

/// Which optimisations a `bw_tree` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BwVariant {
    /// All.
    AllOn,
    /// None: the original Bw-tree's ways.
    AllOff,
    /// Only deltas preallocated in an area before their base node.
    Preallocation,
    /// Only an epoch for each thread.
    LocalEpochs,
    /// Only consolidation that copies the runs between deltas.
    FastConsolidation,
    /// Only searches that use offsets of deltas and hints of nodes.
    SearchShortcuts,
    /// Only the filter in the header of a chain.
    ChainFilter,
    /// Only inner nodes that are replaced as a whole.
    WholeInnerNodes,
    /// Only splits that replace both halves.
    WholeSplits,
    /// Only several chains for a leaf that threads contend for.
    SpreadLeaves,
    /// Only merges that hold their nodes.
    HeldMerges,
}

impl BwVariant {
    /// Every variant.
    pub const ALL: [Self; 11] = [
        Self::AllOn,
        Self::AllOff,
        Self::Preallocation,
        Self::LocalEpochs,
        Self::FastConsolidation,
        Self::SearchShortcuts,
        Self::ChainFilter,
        Self::WholeInnerNodes,
        Self::WholeSplits,
        Self::SpreadLeaves,
        Self::HeldMerges,
    ];

    /// The only experiment that the variants take part in.
    pub(crate) const EXPERIMENT: &str = "bw_tree_ablation";

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllOn => "bw_all_on",
            Self::AllOff => "bw_all_off",
            Self::Preallocation => "bw_preallocation",
            Self::LocalEpochs => "bw_local_epochs",
            Self::FastConsolidation => "bw_fast_consolidation",
            Self::SearchShortcuts => "bw_search_shortcuts",
            Self::ChainFilter => "bw_chain_filter",
            Self::WholeInnerNodes => "bw_whole_inner_nodes",
            Self::WholeSplits => "bw_whole_splits",
            Self::SpreadLeaves => "bw_spread_leaves",
            Self::HeldMerges => "bw_held_merges",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::AllOn => "bw_tree with all its optimisations",
            Self::AllOff => "bw_tree in the original Bw-tree's ways",
            _ => "bw_tree with this optimisation alone",
        }
    }

    /// The tree's configuration.
    pub(crate) fn config(self) -> BwTreeConfig {
        let off = BwTreeSwitches::OFF;
        let switches = match self {
            Self::AllOn => BwTreeSwitches::ON,
            Self::AllOff => off,
            Self::Preallocation => BwTreeSwitches {
                preallocation: true,
                ..off
            },
            Self::LocalEpochs => BwTreeSwitches {
                local_epochs: true,
                ..off
            },
            Self::FastConsolidation => BwTreeSwitches {
                fast_consolidation: true,
                ..off
            },
            Self::SearchShortcuts => BwTreeSwitches {
                search_shortcuts: true,
                ..off
            },
            Self::ChainFilter => BwTreeSwitches {
                chain_filter: true,
                ..off
            },
            Self::WholeInnerNodes => BwTreeSwitches {
                whole_inner_nodes: true,
                ..off
            },
            Self::WholeSplits => BwTreeSwitches {
                whole_splits: true,
                ..off
            },
            Self::SpreadLeaves => BwTreeSwitches {
                spread_leaves: true,
                ..off
            },
            Self::HeldMerges => BwTreeSwitches {
                held_merges: true,
                ..off
            },
        };
        BwTreeConfig {
            switches,
            ..BwTreeConfig::default()
        }
    }
}
