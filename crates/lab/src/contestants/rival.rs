//! The rivals by name: Rust crates that a user would otherwise choose.
//!
//! The names are always known; the crates are compiled only with the feature `rivals`.

use crate::keys::KeySet;

/// A rival that is a Rust crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rival {
    /// The standard library's `BTreeMap` under `parking_lot`'s readers-writer lock.
    LockedBTreeMap,
    /// `crossbeam_skiplist::SkipMap`.
    CrossbeamSkiplist,
    /// `scc::TreeIndex`.
    SccTreeIndex,
    /// `concurrent_map::ConcurrentMap`.
    ConcurrentMap,
    /// `congee::U64Congee`.
    Congee,
    /// `masstree::MassTree`.
    Masstree,
    /// `ferntree::Tree`.
    Ferntree,
    /// `artmap::ArtMap`.
    Artmap,
    /// `arctic::ConcurrentMap`.
    ArcticMap,
    /// The same with hazard keys.
    ArcticMapHazard,
    /// `bbtree::BBTreeMap`.
    Bbtree,
}

/// What the lab says of a rival.
struct Description {
    name: &'static str,
    about: &'static str,
    version: &'static str,
}

impl Rival {
    /// Every rival.
    pub const ALL: [Self; 11] = [
        Self::LockedBTreeMap,
        Self::CrossbeamSkiplist,
        Self::SccTreeIndex,
        Self::ConcurrentMap,
        Self::Congee,
        Self::Masstree,
        Self::Ferntree,
        Self::Artmap,
        Self::ArcticMap,
        Self::ArcticMapHazard,
        Self::Bbtree,
    ];

    const fn describe(self) -> Description {
        let (name, about, version) = match self {
            Self::LockedBTreeMap => (
                "rwlock_btreemap",
                "std's BTreeMap under a parking_lot RwLock",
                "parking_lot 0.13.0",
            ),
            Self::CrossbeamSkiplist => (
                "crossbeam_skiplist",
                "a lock-free skip list",
                "crossbeam-skiplist 0.1.3",
            ),
            Self::SccTreeIndex => (
                "scc_tree_index",
                "a B+tree with lock-free reads",
                "scc 3.8.8",
            ),
            Self::ConcurrentMap => (
                "concurrent_map",
                "a lock-free B+tree that copies nodes",
                "concurrent-map 5.0.37",
            ),
            Self::Congee => (
                "congee",
                "an adaptive radix tree with optimistic lock coupling, for words",
                "congee 0.4.1",
            ),
            Self::Masstree => ("masstree_crate", "a trie of B+trees", "masstree 0.9.5"),
            Self::Ferntree => (
                "ferntree",
                "a B+tree with optimistic lock coupling",
                "ferntree 0.7.0",
            ),
            Self::Artmap => (
                "artmap",
                "an adaptive radix tree with optimistic lock coupling",
                "artmap 0.8.0",
            ),
            Self::ArcticMap => (
                "arctic_map",
                "a lock-free adaptive radix tree",
                "arctic-map 0.1.4",
            ),
            Self::ArcticMapHazard => (
                "arctic_map_hazard",
                "arctic_map with hazard keys and membarrier (its feature opt-membarrier)",
                "arctic-map 0.1.4",
            ),
            Self::Bbtree => (
                "bbtree",
                "a B+tree whose lookups race with writers, by its own words; no length",
                "bbtree 0.2.0",
            ),
        };
        Description {
            name,
            about,
            version,
        }
    }

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.describe().name
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        self.describe().about
    }

    /// The crate and its version.
    #[must_use]
    pub const fn version(self) -> &'static str {
        self.describe().version
    }

    /// Why it cannot take keys of this set; `None` if it can.
    #[must_use]
    pub const fn refuses(self, key_set: KeySet) -> Option<&'static str> {
        match self {
            Self::Congee if !key_set.is_integers() => Some("its keys are eight bytes long"),
            _ => None,
        }
    }

    /// Whether one call can look several keys up.
    pub(crate) const fn has_batches(self) -> bool {
        matches!(self, Self::Bbtree)
    }

    /// Whether it can scan in descending order.
    pub(crate) const fn scans_down(self) -> bool {
        !matches!(self, Self::Congee)
    }

    /// Whether it can give a copy of all entries as of one moment.
    pub(crate) const fn gives_snapshots(self) -> bool {
        matches!(self, Self::LockedBTreeMap)
    }

    /// What this program lacks to run it, and how to get that; `None` if nothing.
    pub(super) const fn missing() -> Option<&'static str> {
        if cfg!(feature = "rivals") {
            None
        } else {
            Some("this program was built without the rivals; build it with '--features rivals'")
        }
    }
}
