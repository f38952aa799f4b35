//! The tables of this process, and how a task gets one of the right type.

use crate::{
    contestants::{
        bw_variant::BwVariant,
        grain::FixedGrain,
        rival::Rival,
        subject::{Index, Task},
    },
    keys::Key,
};
use tremula_index::{CaTree, OrderedIndex, RegisteredEngine, WithEngine};
use tremula_papers::{AnyEngine, BwTree};

/// A kind of table in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// An index of this project.
    Index(AnyEngine),
    /// The OpenBw-Tree with some of its optimisations.
    BwVariant(BwVariant),
    /// A contention-adapting tree that does not adapt.
    FixedGrain(FixedGrain),
    /// A rival that is a Rust crate; it needs the feature `rivals`.
    Rival(Rival),
}

impl Table {
    /// Every table of this project.
    pub(crate) fn ours() -> impl Iterator<Item = Self> {
        let indexes = AnyEngine::ALL.into_iter().map(Self::Index);
        let variants = BwVariant::ALL.into_iter().map(Self::BwVariant);
        let grains = FixedGrain::ALL.into_iter().map(Self::FixedGrain);
        indexes.chain(variants).chain(grains)
    }

    /// The table of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let rivals = Rival::ALL.into_iter().map(Self::Rival);
        Self::ours()
            .chain(rivals)
            .find(|table| table.name() == name)
    }

    /// The contestant's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Index(engine) => engine.name(),
            Self::BwVariant(variant) => variant.name(),
            Self::FixedGrain(grain) => grain.name(),
            Self::Rival(rival) => rival.name(),
        }
    }

    /// Does the task with tables of integers.
    pub(crate) fn run_integers<T: Task<u64>>(self, task: T) -> T::Output {
        match self {
            Self::Index(engine) => with_index(engine, task),
            Self::BwVariant(variant) => with_variant(variant, task),
            Self::FixedGrain(grain) => with_grain(grain, task),
            Self::Rival(rival) => run_rival_on_integers(rival, task),
        }
    }

    /// Does the task with tables of texts.
    pub(crate) fn run_texts<T: Task<String>>(self, task: T) -> T::Output {
        match self {
            Self::Index(engine) => with_index(engine, task),
            Self::BwVariant(variant) => with_variant(variant, task),
            Self::FixedGrain(grain) => with_grain(grain, task),
            Self::Rival(rival) => run_rival_on_texts(rival, task),
        }
    }
}

fn with_variant<K: Key, T: Task<K>>(variant: BwVariant, task: T) -> T::Output {
    task.run(|| Index(BwTree::<K, u64>::with_config(variant.config())))
}

fn with_grain<K: Key, T: Task<K>>(grain: FixedGrain, task: T) -> T::Output {
    task.run(|| Index(CaTree::<K, u64>::with_config(grain.config())))
}

fn with_index<K: Key, T: Task<K>>(engine: AnyEngine, task: T) -> T::Output {
    struct OnIndex<T>(T);

    impl<K: Key, T: Task<K>> WithEngine<K, u64> for OnIndex<T> {
        type Output = T::Output;

        fn run<I: OrderedIndex<K, u64> + 'static>(self, make: fn() -> I) -> T::Output {
            self.0.run(|| Index(make()))
        }
    }

    engine.with(OnIndex(task))
}

#[cfg(feature = "rivals")]
use crate::rivals::{run_integers as run_rival_on_integers, run_texts as run_rival_on_texts};

#[cfg(not(feature = "rivals"))]
fn run_rival_on_integers<T: Task<u64>>(rival: Rival, _task: T) -> T::Output {
    unreachable!("{} is refused where it is missing", rival.name())
}

#[cfg(not(feature = "rivals"))]
fn run_rival_on_texts<T: Task<String>>(rival: Rival, _task: T) -> T::Output {
    unreachable!("{} is refused where it is missing", rival.name())
}
