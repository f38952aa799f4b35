//! The engines by name: those of this crate, and all of both crates.

use crate::*; // the types that the rows name
use std::{fmt, str::FromStr};
use tremula_index::key::KeyHead;
use tremula_index::{
    ByteKey, Engine, Facts, OrderedIndex, RegisteredEngine, Storable, UnknownEngine, WithEngine,
};

/// The engines of this crate, one row each. `tremula_index::engines!` generates code from them.
#[doc(hidden)]
#[macro_export]
macro_rules! paper_engines {
    ($($what:tt)*) => {
        tremula_index::engines! {
            $($what)*
            /// An engine of this crate.
            ///
            /// ```
            /// use tremula_papers::PaperEngine;
            ///
            /// let engine: PaperEngine = "bw_tree".parse()?;
            /// let index = engine.create::<u64, &'static str>();
            /// index.insert(1, "one");
            /// assert_eq!(index.get(&1), Some("one"));
            /// # Ok::<(), tremula_index::UnknownEngine>(())
            /// ```
            pub enum PaperEngine {
                /// [`BwTree`]: the OpenBw-Tree.
                BwTree = bw_tree: BwTree, Compared, OneMoment;
                /// [`SkipList`]: the lock-free skip list.
                SkipList = skip_list: SkipList, Compared, Ordered;
                /// [`BackgroundSkipList`]: a skip list whose towers a thread of its own builds.
                BackgroundSkipList = background_skip_list: BackgroundSkipList, Compared, Ordered;
            }
        }
    };
}

paper_engines!();

/// An engine of [`tremula_index`] or of this crate.
///
/// ```
/// use tremula_index::Engine;
/// use tremula_papers::{AnyEngine, PaperEngine};
///
/// assert_eq!("art".parse(), Ok(AnyEngine::Index(Engine::Art)));
/// assert_eq!("bw_tree".parse(), Ok(AnyEngine::Paper(PaperEngine::BwTree)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyEngine {
    /// An engine of `tremula-index`.
    Index(Engine),
    /// An engine of this crate.
    Paper(PaperEngine),
}

impl AnyEngine {
    /// Every engine: those of `tremula-index`, the default first, then those of this crate.
    pub const ALL: [Self; Engine::ALL.len() + PaperEngine::ALL.len()] = {
        let mut all = [Self::Index(Engine::ALL[0]); Engine::ALL.len() + PaperEngine::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = match at.checked_sub(Engine::ALL.len()) {
                None => Self::Index(Engine::ALL[at]),
                Some(paper) => Self::Paper(PaperEngine::ALL[paper]),
            };
            at += 1;
        }
        all
    };

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Index(engine) => engine.name(),
            Self::Paper(engine) => engine.name(),
        }
    }

    /// What this engine promises, and what it requires.
    #[must_use]
    pub const fn facts(self) -> Facts {
        match self {
            Self::Index(engine) => engine.facts(),
            Self::Paper(engine) => engine.facts(),
        }
    }

    /// An empty index of this engine, in its default configuration.
    #[must_use]
    pub fn create<K: ByteKey, V: Storable>(self) -> Box<dyn OrderedIndex<K, V>> {
        RegisteredEngine::create(self)
    }
}

impl RegisteredEngine for AnyEngine {
    fn all() -> &'static [Self] {
        &Self::ALL
    }

    fn name(self) -> &'static str {
        self.name()
    }

    fn facts(self) -> Facts {
        self.facts()
    }

    fn with<K, V, W>(self, work: W) -> W::Output
    where
        K: ByteKey,
        V: Storable,
        W: WithEngine<K, V>,
    {
        match self {
            Self::Index(engine) => engine.with(work),
            Self::Paper(engine) => engine.with(work),
        }
    }

    fn with_heads<K, V, H, W>(self, work: W) -> Option<W::Output>
    where
        K: Ord + Storable,
        V: Storable,
        H: KeyHead<K>,
        W: WithEngine<K, V>,
    {
        match self {
            Self::Index(engine) => engine.with_heads::<K, V, H, W>(work),
            Self::Paper(engine) => engine.with_heads::<K, V, H, W>(work),
        }
    }

    fn with_bytes<K, V, W>(self, work: W) -> Option<W::Output>
    where
        K: ByteKey,
        V: Storable,
        W: WithEngine<K, V>,
    {
        match self {
            Self::Index(engine) => engine.with_bytes(work),
            Self::Paper(engine) => engine.with_bytes(work),
        }
    }
}

impl From<Engine> for AnyEngine {
    fn from(engine: Engine) -> Self {
        Self::Index(engine)
    }
}

impl From<PaperEngine> for AnyEngine {
    fn from(engine: PaperEngine) -> Self {
        Self::Paper(engine)
    }
}

impl fmt::Display for AnyEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for AnyEngine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        RegisteredEngine::named(name)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use tremula_index::{KeyRange, Scans};

    #[test]
    fn every_engine_is_one_of_all_once() {
        let both = Engine::ALL.map(AnyEngine::from).into_iter();
        for engine in both.chain(PaperEngine::ALL.map(AnyEngine::from)) {
            let found = AnyEngine::ALL.into_iter().filter(|other| *other == engine);
            assert_eq!(found.count(), 1, "{engine}");
            assert_eq!(engine.name().parse(), Ok(engine));
            assert_eq!(engine.create::<u64, u64>().engine(), engine.name());
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_that_there_are() {
        let error = "btree".parse::<AnyEngine>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown engine 'btree'; there are: aspen ca_tree lfca_tree b_tree art masstree locked \
             bw_tree skip_list background_skip_list"
        );
    }

    #[test]
    fn an_engine_gives_snapshots_exactly_if_its_facts_promise_one_moment() {
        for engine in AnyEngine::ALL {
            let index = engine.create::<u64, u64>();
            let promised = engine.facts().scans == Scans::OneMoment;
            let given = index.snapshot(KeyRange::all()).is_some();
            assert_eq!(given, promised, "{engine}");
        }
    }
}
