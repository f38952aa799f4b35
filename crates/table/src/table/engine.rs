//! The engine of an `ordered_set`, from any table of engines.

use super::store::{self, Store};
use std::fmt;
use tremula_index::RegisteredEngine;

/// The engine of an `ordered_set`: one of [`tremula_index::Engine`], or of any other table of
/// engines ([`RegisteredEngine`]).
///
/// ```
/// use tremula_index::Engine;
/// use tremula_table::TableEngine;
///
/// assert_eq!(TableEngine::from(Engine::BTree).to_string(), "b_tree");
/// ```
#[derive(Clone, Copy)]
pub struct TableEngine(&'static dyn OpensStores);

/// What a table needs of an engine, from whichever table of engines.
trait OpensStores: Send + Sync {
    fn name(&self) -> &'static str;

    fn open(&self) -> Option<Box<dyn Store>>;
}

impl<E: RegisteredEngine> OpensStores for E {
    fn name(&self) -> &'static str {
        RegisteredEngine::name(*self)
    }

    fn open(&self) -> Option<Box<dyn Store>> {
        store::open(*self)
    }
}

impl TableEngine {
    /// The name of the engine in its table of engines.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    pub(super) fn open(self) -> Option<Box<dyn Store>> {
        self.0.open()
    }
}

impl<E: RegisteredEngine> From<E> for TableEngine {
    fn from(engine: E) -> Self {
        let registered = E::all().iter().find(|other| **other == engine);
        Self(registered.expect("an engine is in its own table"))
    }
}

impl PartialEq for TableEngine {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for TableEngine {}

impl fmt::Debug for TableEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("TableEngine").field(&self.name()).finish()
    }
}

impl fmt::Display for TableEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
