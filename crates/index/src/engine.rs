//! The engines by name, for whoever picks one at run time.

use crate::{
    Art, BackgroundSkipList, BwTree, ByteKey, CaTree, LfcaTree, Locked, Masstree, OlcBTree,
    OrderedIndex, SkipList,
};
use std::{fmt, str::FromStr};

/// What an engine promises of the operations that meet several entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scans {
    /// All of them are linearizable: each sees, or changes, the entries as of one moment.
    OneMoment,
    /// Those on one key are linearizable. [`scan`](OrderedIndex::scan), `range` and `remove_range`
    /// go from entry to entry: in order, no key twice, and no entry is missed that is there
    /// throughout, but not as of one moment. `first`, `last`, `next`, `prev`, `pop_first` and
    /// `pop_last` find the neighbour as of one moment, with a value that it had during the call.
    /// `snapshot` returns `None`.
    Ordered,
}

/// What an engine needs of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keys {
    /// An order, and nothing else.
    Compared,
    /// An order; and their heads, which it takes from their byte forms ([`ByteKey`]) unless its
    /// type is named with [`NoHead`](crate::key::NoHead).
    Headed,
    /// Their byte forms ([`ByteKey`]).
    Bytes,
}

/// What an engine promises, and what it needs: facts for the code that chooses an engine.
///
/// ```
/// use tremula_index::{Engine, Scans};
///
/// let exact = Engine::ALL.map(|engine| engine.facts().scans == Scans::OneMoment);
/// assert_eq!(exact.iter().filter(|exact| !**exact).count(), 2, "the skip lists");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Facts {
    /// What it promises of scans, and of what else meets several entries.
    pub scans: Scans,
    /// What it needs of its keys.
    pub keys: Keys,
}

/// An engine that can stand behind [`OrderedIndex`].
///
/// ```
/// use tremula_index::Engine;
///
/// let engine: Engine = "ca_tree".parse()?;
/// let index = engine.create::<u64, &'static str>();
/// index.insert(1, "one");
/// assert_eq!(index.get(&1), Some("one"));
/// # Ok::<(), tremula_index::UnknownEngine>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// [`CaTree`]: the contention-adapting search tree.
    CaTree,
    /// [`LfcaTree`]: the lock-free contention-adapting tree.
    LfcaTree,
    /// [`OlcBTree`]: the B+tree with optimistic lock coupling.
    BTree,
    /// [`BwTree`]: the OpenBw-Tree.
    BwTree,
    /// [`Art`]: the adaptive radix tree.
    Art,
    /// [`Masstree`]: the trie of B+trees.
    Masstree,
    /// [`Locked`]: one readers-writer lock over a sequential tree.
    Locked,
    /// [`SkipList`]: the lock-free skip list.
    SkipList,
    /// [`BackgroundSkipList`]: the same with a thread of its own for the towers.
    BackgroundSkipList,
}

impl Engine {
    /// Every engine, the default one first.
    pub const ALL: [Self; 9] = [
        Self::CaTree,
        Self::LfcaTree,
        Self::BTree,
        Self::BwTree,
        Self::Art,
        Self::Masstree,
        Self::SkipList,
        Self::BackgroundSkipList,
        Self::Locked,
    ];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CaTree => "ca_tree",
            Self::LfcaTree => "lfca_tree",
            Self::BTree => "b_tree",
            Self::BwTree => "bw_tree",
            Self::Art => "art",
            Self::Masstree => "masstree",
            Self::Locked => "locked",
            Self::SkipList => "skip_list",
            Self::BackgroundSkipList => "background_skip_list",
        }
    }

    /// What this engine promises, and what it needs.
    #[must_use]
    pub const fn facts(self) -> Facts {
        let (scans, keys) = match self {
            Self::CaTree | Self::Locked => (Scans::OneMoment, Keys::Compared),
            Self::LfcaTree | Self::BTree | Self::BwTree => (Scans::OneMoment, Keys::Headed),
            Self::Art | Self::Masstree => (Scans::OneMoment, Keys::Bytes),
            Self::SkipList | Self::BackgroundSkipList => (Scans::Ordered, Keys::Headed),
        };
        Facts { scans, keys }
    }

    /// An empty index of this engine, in its default configuration.
    ///
    /// Some engines need the byte form of a key; those that compare take any `K: Ord`, but not
    /// through this function: name their types.
    #[must_use]
    pub fn create<K, V>(self) -> Box<dyn OrderedIndex<K, V>>
    where
        K: ByteKey,
        V: Clone + Send + Sync + 'static,
    {
        match self {
            Self::CaTree => Box::new(CaTree::<K, V>::new()),
            Self::LfcaTree => Box::new(LfcaTree::<K, V>::new()),
            Self::BTree => Box::new(OlcBTree::<K, V>::new()),
            Self::BwTree => Box::new(BwTree::<K, V>::new()),
            Self::Art => Box::new(Art::<K, V>::new()),
            Self::Masstree => Box::new(Masstree::<K, V>::new()),
            Self::Locked => Box::new(Locked::<K, V>::new()),
            Self::SkipList => Box::new(SkipList::<K, V>::new()),
            Self::BackgroundSkipList => Box::new(BackgroundSkipList::<K, V>::new()),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        Self::ALL
            .into_iter()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| UnknownEngine {
                name: name.to_owned(),
            })
    }
}

/// There is no engine of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEngine {
    /// The name that was asked for.
    pub name: String,
}

impl fmt::Display for UnknownEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "unknown engine '{}'; there are:", self.name)?;
        Engine::ALL
            .iter()
            .try_for_each(|engine| write!(out, " {engine}"))
    }
}

impl std::error::Error for UnknownEngine {}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::KeyRange;

    #[test]
    fn an_engine_gives_snapshots_exactly_if_its_facts_promise_one_moment() {
        for engine in Engine::ALL {
            let index = engine.create::<u64, u64>();
            let promised = engine.facts().scans == Scans::OneMoment;
            assert_eq!(
                index.snapshot(KeyRange::all()).is_some(),
                promised,
                "{engine}"
            );
        }
    }
}
