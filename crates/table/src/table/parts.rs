//! The parts of a table's index, for what looks at them from outside.

use super::store::OrderedKey;
use super::{Result, Right, Table, no_table};
use crate::term::Term;
use std::ops::ControlFlow;
use tremula_index::Adapted;

/// A part of the index of an `ordered_set`, with a lock of its own: see
/// [`Part`](tremula_index::Part).
///
/// ```
/// use std::ops::ControlFlow;
/// use tremula_table::{Kind, Options, Tables, Term};
///
/// let squares = Tables::new().create("squares", Options::new().kind(Kind::OrderedSet))?;
/// (0..1000).try_for_each(|number| squares.insert_row((number, number * number)).map(drop))?;
/// let (mut rows, mut lows) = (0, Vec::<Term>::new());
/// squares.walk_parts(&mut |part| {
///     rows += part.entries.unwrap_or(0);
///     lows.extend(part.low.cloned());
///     ControlFlow::Continue(())
/// })?;
/// assert!(rows == 1000 && lows.is_sorted());
/// # Ok::<(), tremula_table::BadArgument>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TablePart<'a> {
    /// A key at or below all keys of the part and above those of the part before it, if it is
    /// known; `None` in the first part.
    pub low: Option<&'a Term>,
    /// How many keys the part has; `None` if somebody is changing it.
    pub entries: Option<usize>,
    /// How often a thread had to wait for its lock, since the part was made; modulo 2^32.
    pub waits: u64,
    /// How often the lock was taken to write, since the part was made; modulo 2^32.
    pub acquisitions: u64,
    /// How the entries lie in the part, if the engine has several ways.
    pub format: &'static str,
}

impl Table {
    /// The name of the structure that the rows are in.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.shared.store.engine()
    }

    /// Shows each part of the table's index in turn, ascending, as
    /// [`Transactional::walk`](tremula_index::Transactional::walk) does: not as of one moment, and
    /// without waiting for writers. Returns what the index has decided so far; `None` if the table
    /// is no `ordered_set`, or its engine has no walk. O(parts). Fails if the caller may not read.
    /// [`TablePart`] has an example.
    pub fn walk_parts(
        &self,
        visit: &mut dyn FnMut(&TablePart<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Adapted>> {
        const NAME: &str = "walk_parts";
        self.check(Right::Read, NAME)?;
        if self.is_deleted() {
            return Err(no_table(NAME));
        }
        Ok(self.shared.store.walk(&mut |part| {
            let low = match &part.low {
                Some(OrderedKey::Key(low)) => Some(low),
                Some(OrderedKey::Bound(_)) | None => None,
            };
            visit(&TablePart {
                low,
                entries: part.entries,
                waits: part.waits,
                acquisitions: part.acquisitions,
                format: part.format,
            })
        }))
    }
}
