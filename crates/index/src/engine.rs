//! The engines by name, for whoever picks one at run time.

use crate::{
    Art, BackgroundSkipList, BwTree, ByteKey, CaTree, LfcaTree, Locked, Masstree, OlcBTree,
    OrderedIndex, SkipList,
};
use std::{fmt, str::FromStr};

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
