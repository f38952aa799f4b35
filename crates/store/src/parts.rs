//! The parts of a database's index, for what looks at them from outside.

use crate::{Database, Key};
use std::ops::ControlFlow;
use tremula_index::{Adapted, Part};

impl Database<'_> {
    /// Shows each part of the index in turn, ascending, as
    /// [`Transactional::walk`](tremula_index::Transactional::walk) does. Returns what the index has
    /// decided so far; `None` if its engine has no walk, and in a step.
    pub fn walk_parts(
        &self,
        visit: &mut dyn FnMut(&Part<Key>) -> ControlFlow<()>,
    ) -> Option<Adapted> {
        self.steps()?.walk(visit)
    }
}
