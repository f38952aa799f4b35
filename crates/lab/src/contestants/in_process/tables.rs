//! Which tables there are, and how a task gets one of the right type.

use crate::{
    contestants::{BwVariant, ContestantName, FixedGrain, Index, Rival, Subject},
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
    /// A rival that is a Rust crate; its feature must be there.
    Rival(Rival),
}

/// Something to be done with tables of some type.
///
/// It is generic where it is carried out, so that its calls of the table are static.
pub(crate) trait Task<K: Key> {
    /// What comes out of it.
    type Output;

    /// Does it; `make` makes an empty table.
    fn run<S: Subject<K>>(self, make: impl Fn() -> S) -> Self::Output;
}

impl Table {
    /// The contestant's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Index(engine) => engine.name(),
            Self::BwVariant(variant) => variant.name(),
            Self::FixedGrain(grain) => grain.name(),
            Self::Rival(rival) => rival.name(),
        }
    }

    /// Project and version.
    pub(crate) fn version(self) -> String {
        match self {
            Self::Index(_) | Self::BwVariant(_) | Self::FixedGrain(_) => {
                format!("tremula {}", env!("CARGO_PKG_VERSION"))
            }
            Self::Rival(rival) => rival.version().to_owned(),
        }
    }

    /// Does the task with tables of integers.
    pub(crate) fn run_integers<T: Task<u64>>(self, task: T) -> T::Output {
        match self {
            Self::Index(engine) => with_index(engine, task),
            Self::BwVariant(variant) => with_variant(variant, task),
            Self::FixedGrain(grain) => with_grain(grain, task),
            Self::Rival(rival) => rival.run_integers(task),
        }
    }

    /// Does the task with tables of texts.
    pub(crate) fn run_texts<T: Task<String>>(self, task: T) -> T::Output {
        match self {
            Self::Index(engine) => with_index(engine, task),
            Self::BwVariant(variant) => with_variant(variant, task),
            Self::FixedGrain(grain) => with_grain(grain, task),
            Self::Rival(rival) => rival.run_texts(task),
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

impl From<Table> for ContestantName {
    fn from(table: Table) -> Self {
        match table {
            Table::Index(engine) => Self::Index(engine),
            Table::BwVariant(variant) => Self::BwVariant(variant),
            Table::FixedGrain(grain) => Self::FixedGrain(grain),
            Table::Rival(rival) => Self::Rival(rival),
        }
    }
}
