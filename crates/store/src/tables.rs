//! The tables of a store: read by anyone, written with [`Effects`] only.

use crate::Expiry;
use crate::effects::Effects;
use std::ops::ControlFlow;
use std::path::Path;
use tremula_index::{Adapted, Update};
use tremula_table::match_spec::MatchSpec;
use tremula_table::table::effect::{ApplyError, Effect};
use tremula_table::term::{Atom, Bounds, Reference, Term, Tuple};
use tremula_table::{
    Action, BadArgument, Continuation, Due, ExtendedInfo, FileError, InfoInSteps, KeyExpiry, Kind,
    Noting, Options, Outcome, TabfileInfo, TablePart, Traversal,
};

type Result<T> = std::result::Result<T, BadArgument>;

/// A key, and its rows.
type KeyAndRows = (Term, Vec<Tuple>);

/// Every table of a store. Clones are handles of the same tables.
#[derive(Clone)]
pub struct Tables(pub(crate) tremula_table::Tables);

impl Tables {
    /// No tables. If they `are_logged`, a debug build panics at a change that has no effects.
    pub(crate) fn new(bounds: Bounds, are_logged: bool) -> Self {
        Self(if are_logged {
            tremula_table::Tables::for_log(bounds)
        } else {
            tremula_table::Tables::bounded(bounds)
        })
    }

    /// A new table that belongs to the store and stays until it is deleted. Errors: see
    /// [`create`](tremula_table::Tables::create).
    pub fn create(&self, effects: &mut Effects<'_>, name: &str, options: Options) -> Result<Table> {
        self.0.noting(effects).create(name, options).map(Table)
    }

    /// The table with this name or identifier, as a handle of the store.
    #[must_use]
    pub fn find(&self, name_or_id: &Term) -> Option<Table> {
        self.0.find(name_or_id).map(Table)
    }

    /// The number of tables. O(1).
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a count for quotas and statistics"
    )]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Up to `most` of the tables that were made after this one, or of all tables: see
    /// [`made_after`](tremula_table::Tables::made_after).
    #[must_use]
    pub fn made_after(&self, table: Option<&Table>, most: usize) -> Vec<Table> {
        let part = self.0.made_after(table.map(|table| &table.0), most);
        part.into_iter().map(Table).collect()
    }

    /// The bounds of the terms that tables keep.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.0.bounds()
    }

    /// What a file says of its table. Errors: see
    /// [`tabfile_info`](tremula_table::Tables::tabfile_info).
    pub fn tabfile_info(
        &self,
        path: impl AsRef<Path>,
    ) -> std::result::Result<TabfileInfo, FileError> {
        self.0.tabfile_info(path)
    }

    /// Ends the owners that own tables and are not there.
    pub(crate) fn end_absent_owners(&self, effects: &mut Effects<'_>) {
        self.0.noting(effects).end_absent_owners();
    }

    /// The number of keys in all tables whose rows expire. O(1).
    #[must_use]
    pub fn expiring_keys(&self) -> usize {
        self.0.expiring_keys()
    }

    /// Up to `most` keys whose rows expire up to this time: those that are due the longest.
    pub(crate) fn due(&self, now: Expiry, most: usize) -> Vec<Due> {
        self.0.due(now.millis(), most)
    }

    /// Removes the rows of a key, unless it has another time by now. Returns whether it did.
    pub(crate) fn remove_due(&self, effects: &mut Effects<'_>, due: &Due) -> bool {
        self.0.noting(effects).remove_due(due)
    }

    /// Makes an effect of the log true.
    pub(crate) fn apply(&self, effect: &Effect<'_>) -> std::result::Result<(), ApplyError> {
        self.0.apply(effect)
    }
}

/// A handle of a table, for the store or for a [`TableOwner`](crate::TableOwner). Reading is free;
/// every write takes the [`Effects`] of a [`commit`](crate::Store::commit).
///
/// ```
/// use tremula_store::{Engine, Store, StoreConfig};
/// use tremula_table::Options;
///
/// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
/// let ages = store.commit(|effects| {
///     let ages = store.tables().create(effects, "ages", Options::new())?;
///     ages.noting(effects).insert_row(("ada", 36))?;
///     Ok::<_, tremula_table::BadArgument>(ages)
/// })??;
/// assert_eq!(ages.lookup(&"ada".into())?, [("ada", 36)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A write without effects does not compile:
///
/// ```compile_fail
/// # use tremula_store::{Engine, Store, StoreConfig};
/// # let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
/// let ages = store.tables().find(&"ages".parse()?).expect("a table");
/// ages.insert_row(("ada", 36))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table(pub(crate) tremula_table::Table);

/// Writing.
impl Table {
    /// The table's writes, whose effects are noted.
    pub fn noting<'a>(&'a self, effects: &'a mut Effects<'_>) -> Noting<'a, tremula_table::Table> {
        self.0.noting(effects)
    }

    /// Shows the time at which the rows of a key expire, if there is one, to `decide`, if the key
    /// has rows, and carries out what it decides: another time or none, or the removal of the rows.
    /// One step. Returns whether the key had rows. `decide` runs while the
    /// key is locked: it should be short, and must not use the table.
    ///
    /// A time belongs to the key: it stays when rows are replaced, and ends with the last row of
    /// the key, so that a key that comes anew has none. The rows are seen until
    /// [`Store::expire`](crate::Store::expire) removes them, which it does not before the time. The
    /// log has the time, and the removal as it has others.
    ///
    /// O(log n), and some 110 bytes for each key that has a time.
    ///
    /// ```
    /// use tremula_store::{Engine, Expiry, Store, StoreConfig, Update};
    /// use tremula_table::{KeyExpiry, Options};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let ada = "ada".into();
    /// let sessions = store.commit(|effects| {
    ///     let sessions = store.tables().create(effects, "sessions", Options::new())?;
    ///     sessions.noting(effects).insert_row(("ada", 36))?;
    ///     let soon = Some(Expiry::now());
    ///     sessions.update_expiry(effects, &ada, &mut |_| Update::Put(soon))?;
    ///     Ok::<_, tremula_table::BadArgument>(sessions)
    /// })??;
    /// assert!(matches!(sessions.expiry(&ada)?, KeyExpiry::At(_)));
    /// assert_eq!(store.expire(100)?, (1, false));
    /// assert_eq!(sessions.expiry(&ada)?, KeyExpiry::NoRows);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller may not write.
    pub fn update_expiry(
        &self,
        effects: &mut Effects<'_>,
        key: &Term,
        decide: &mut dyn FnMut(Option<Expiry>) -> Update<Option<Expiry>>,
    ) -> Result<bool> {
        let expiry = |time| Expiry::from_millis(time).unwrap_or(Expiry::LAST);
        self.noting(effects)
            .update_expiry(key, &mut |time| match decide(time.map(expiry)) {
                Update::Put(expiry) => Update::Put(expiry.map(Expiry::millis)),
                Update::Keep => Update::Keep,
                Update::Remove => Update::Remove,
            })
    }

    /// Begins to delete, in steps, the rows of which the specification makes `true`: see
    /// [`select_delete`](tremula_table::Table::select_delete).
    #[must_use]
    pub fn delete_found(&self, spec: MatchSpec) -> Changing {
        Changing(self.0.traverse(spec, Action::Delete))
    }

    /// Begins to replace rows in steps: see
    /// [`select_replace`](tremula_table::Table::select_replace).
    #[must_use]
    pub fn replace_found(&self, spec: MatchSpec) -> Changing {
        Changing(self.0.traverse(spec, Action::Replace))
    }
}

/// A search that changes the rows that it finds, in steps. One key, or one whole range of keys, is
/// an atomic step.
#[derive(Debug)]
pub struct Changing(Traversal);

impl Changing {
    /// The same search, with errors that name this Erlang function.
    #[must_use]
    pub fn named(self, function: &'static str) -> Self {
        Self(self.0.named(function))
    }

    /// Goes on as [`Traversal::step`] does. Errors: those of that.
    pub fn step(
        self,
        effects: &mut Effects<'_>,
        may_go_on: impl FnMut() -> bool,
    ) -> Result<ControlFlow<Outcome, Self>> {
        Ok(match self.0.step_noting(effects, may_go_on)? {
            ControlFlow::Break(outcome) => ControlFlow::Break(outcome),
            ControlFlow::Continue(rest) => ControlFlow::Continue(Self(rest)),
        })
    }
}

/// Reading: each method does what that of the same name of a [`tremula_table::Table`] does.
impl Table {
    /// The identifier.
    #[must_use]
    pub fn id(&self) -> Reference {
        self.0.id()
    }

    /// The number: see [`number`](tremula_table::Table::number).
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0.number()
    }

    /// Shows effects that make the table as it is: see
    /// [`describe`](tremula_table::Table::describe).
    pub fn describe(&self, visit: &mut dyn FnMut(&Effect<'_>) -> ControlFlow<()>) {
        self.0.describe(visit);
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> Atom {
        self.0.name()
    }

    /// The type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// The number of rows. Fails if the table has been deleted.
    pub fn size(&self) -> Result<usize> {
        self.0.size()
    }

    /// The name of the structure that the rows are in.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.0.engine()
    }

    /// Shows each part of the table's index in turn: see
    /// [`walk_parts`](tremula_table::Table::walk_parts). Fails if the caller may not read.
    pub fn walk_parts(
        &self,
        visit: &mut dyn FnMut(&TablePart<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Adapted>> {
        self.0.walk_parts(visit)
    }

    /// Whether a row may be so wide that one step over it takes long.
    #[must_use]
    pub fn has_wide_rows(&self) -> bool {
        self.0.has_wide_rows()
    }

    /// Whether another thread is in a step over many keys, for which all others wait.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    /// The key of a row of this table, if the row has one.
    #[must_use]
    pub fn key_of<'a>(&self, row: &'a Tuple) -> Option<&'a Term> {
        self.0.key_of(row)
    }

    /// Whether a key has more than `most` rows. Fails if the caller may not read.
    pub fn has_more_rows(&self, key: &Term, most: usize) -> Result<bool> {
        self.0.has_more_rows(key, most)
    }

    /// The rows with this key. Fails if the caller may not read.
    pub fn lookup(&self, key: &Term) -> Result<Vec<Tuple>> {
        self.0.lookup(key)
    }

    /// When the rows of a key expire. Fails if the caller may not read.
    pub fn expiry(&self, key: &Term) -> Result<KeyExpiry> {
        self.0.expiry(key)
    }

    /// The number of keys whose rows expire. O(1).
    #[must_use]
    pub fn expiring_keys(&self) -> usize {
        self.0.expiring_keys()
    }

    /// An element of the rows with this key. Errors: see
    /// [`lookup_element`](tremula_table::Table::lookup_element).
    pub fn lookup_element(&self, key: &Term, position: usize) -> Result<Term> {
        self.0.lookup_element(key, position)
    }

    /// As [`lookup_element`](Self::lookup_element), or this value if there is no such row.
    pub fn lookup_element_or(&self, key: &Term, position: usize, default: Term) -> Result<Term> {
        self.0.lookup_element_or(key, position, default)
    }

    /// Whether there is a row with this key. Fails if the caller may not read.
    pub fn member(&self, key: &Term) -> Result<bool> {
        self.0.member(key)
    }

    /// The first key. Fails if the caller may not read.
    pub fn first(&self) -> Result<Option<Term>> {
        self.0.first()
    }

    /// The last key. Fails if the caller may not read.
    pub fn last(&self) -> Result<Option<Term>> {
        self.0.last()
    }

    /// The key behind this one. Errors: see [`next`](tremula_table::Table::next).
    pub fn next(&self, key: &Term) -> Result<Option<Term>> {
        self.0.next(key)
    }

    /// The key before this one. Errors: see [`prev`](tremula_table::Table::prev).
    pub fn prev(&self, key: &Term) -> Result<Option<Term>> {
        self.0.prev(key)
    }

    /// The first key with its rows. Fails if the caller may not read.
    pub fn first_lookup(&self) -> Result<Option<KeyAndRows>> {
        self.0.first_lookup()
    }

    /// The last key with its rows. Fails if the caller may not read.
    pub fn last_lookup(&self) -> Result<Option<KeyAndRows>> {
        self.0.last_lookup()
    }

    /// The key behind this one with its rows. Errors: see [`next`](tremula_table::Table::next).
    pub fn next_lookup(&self, key: &Term) -> Result<Option<KeyAndRows>> {
        self.0.next_lookup(key)
    }

    /// The key before this one with its rows. Errors: see [`prev`](tremula_table::Table::prev).
    pub fn prev_lookup(&self, key: &Term) -> Result<Option<KeyAndRows>> {
        self.0.prev_lookup(key)
    }

    /// Begins to find in steps what the specification makes of the rows; with a limit the first
    /// chunk.
    #[must_use]
    pub fn select(&self, spec: MatchSpec, reverse: bool, limit: Option<usize>) -> Traversal {
        self.0.traverse(spec, Action::Select { reverse, limit })
    }

    /// Begins to find the next chunk in steps.
    #[must_use]
    pub fn select_on(&self, continuation: &Continuation) -> Traversal {
        self.0.traverse_on(continuation)
    }

    /// Begins to count in steps the rows of which the specification makes `true`.
    #[must_use]
    pub fn select_count(&self, spec: MatchSpec) -> Traversal {
        self.0.traverse(spec, Action::Count)
    }

    /// The continuation in a term, with this specification. Errors: see
    /// [`repair_continuation`](tremula_table::Table::repair_continuation).
    pub fn repair_continuation(&self, term: &Term, spec: &MatchSpec) -> Result<Continuation> {
        self.0.repair_continuation(term, spec)
    }

    /// Begins to find out in steps what the table is and holds. Errors: see
    /// [`info_in_steps`](tremula_table::Table::info_in_steps).
    pub fn info_in_steps(&self, item: Option<&Term>) -> Result<InfoInSteps> {
        self.0.info_in_steps(item)
    }

    /// Fixes the table for the caller, or releases it: a matter of callers, which no log has.
    /// Errors: see [`safe_fixtable`](tremula_table::Table::safe_fixtable).
    pub fn safe_fixtable(&self, fix: bool) -> Result<()> {
        self.0.safe_fixtable(fix)
    }

    /// Writes the table into a file. Errors: see [`tab2file`](tremula_table::Table::tab2file).
    pub fn tab2file(
        &self,
        path: impl AsRef<Path>,
        extended_info: &[ExtendedInfo],
    ) -> std::result::Result<(), FileError> {
        self.0.tab2file(path, extended_info)
    }
}
