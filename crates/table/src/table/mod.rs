//! Tables with the semantics of Erlang's ETS.
//!
//! A [`Table`] is a handle; [`Tables`] is the node with all tables, and an [`Owner`] is what a
//! process is to Erlang's tables.
//!
//! | file | holds |
//! |---|---|
//! | `registry`, `owner` | names, owners, heirs |
//! | `options`, `error` | what a table is to be; what is wrong with a call |
//! | `gate` | list inserts in one step, lookups without a lock |
//! | `store/` | where rows are: the ordered engines, the hash map, how rows are kept |
//! | `object` | insert, lookup, delete, take |
//! | `counter`, `element` | update_counter, update_element |
//! | `step`, `whole` | first and next; tab2list, foldl, init_table |
//! | `select`, `search` | everything with a pattern or a match specification; the one search behind it |
//! | `continuation`, `traversal` | where a search in chunks goes on; a search in steps |
//! | `row_sizes` | whether all rows have one size |
//! | `info` | what a table is and holds |
//! | `file/` | tab2file and file2tab |
//!
//! # Erlang's names and ours
//!
//! | Erlang | here |
//! |---|---|
//! | `new/2` | [`Tables::create`], [`Owner::create`] |
//! | `delete/1`, `delete/2` | [`Table::delete`], [`Table::delete_key`] |
//! | `rename/2`, `whereis/1`, `all/0` | [`Table::rename`], [`Tables::whereis`] ([`Owner::whereis`]), [`Tables::all`] |
//! | `info/1`, `info/2` | [`Table::info`] ([`Table::info_term`]), [`Table::info_item`]; [`Table::size`], [`Table::memory`] |
//! | `setopts/2` | [`Table::setopts`]; [`Table::set_heir`], [`Table::set_access`] |
//! | `give_away/3`, `safe_fixtable/2` | [`Table::give_away`], [`Table::safe_fixtable`] |
//! | `insert/2`, `insert_new/2` | [`Table::insert`], [`Table::insert_new`] |
//! | `lookup/2` | [`Table::lookup`]; [`Table::get`] for one row |
//! | `lookup_element/3`, `/4` | [`Table::lookup_element`], [`Table::lookup_element_or`] |
//! | `member/2`, `take/2` | [`Table::member`], [`Table::take`] |
//! | `delete_object/2`, `delete_all_objects/1` | [`Table::delete_object`], [`Table::delete_all_objects`] |
//! | `update_counter/3`, `/4` | [`Table::update_counter`], [`Table::update_counter_or`] |
//! | `update_element/3`, `/4` | [`Table::update_element`], [`Table::update_element_or`] |
//! | `first/1`, `last/1`, `next/2`, `prev/2` | [`Table::first`], [`Table::last`], [`Table::next`], [`Table::prev`] |
//! | `first_lookup/1`, … | [`Table::first_lookup`], [`Table::last_lookup`], [`Table::next_lookup`], [`Table::prev_lookup`] |
//! | `select/2`, `/3`, `/1` | [`Table::select`], [`Table::select_limit`], [`Table::select_next`] |
//! | `select_reverse/2`, `/3`, `/1` | [`Table::select_reverse`], [`Table::select_reverse_limit`], [`Table::select_next`] |
//! | `select_count/2`, `select_delete/2`, `select_replace/2` | the same |
//! | `match/2`, `/3`, `/1` | [`Table::match_pattern`], [`Table::match_pattern_limit`], [`Table::select_next`] |
//! | `match_object/2`, `/3`, `/1` | [`Table::match_object`], [`Table::match_object_limit`], [`Table::select_next`] |
//! | `match_delete/2` | [`Table::match_delete`] |
//! | `repair_continuation/2` | [`Table::repair_continuation`] |
//! | `match_spec_compile/1`, `match_spec_run/2`, `test_ms/2` | [`MatchSpec::compile`](crate::MatchSpec::compile), [`MatchSpec::run`](crate::MatchSpec::run), [`MatchSpec::test`](crate::MatchSpec::test); a [`MatchSpec`](crate::MatchSpec) is a compiled one (`is_compiled_ms/1`) |
//! | `tab2list/1`, `foldl/3`, `foldr/3` | [`Table::tab2list`], [`Table::foldl`], [`Table::foldr`] |
//! | `init_table/2` | [`Table::init_table`] |
//! | `tab2file/2`, `/3` | [`Table::tab2file`] |
//! | `file2tab/1`, `/2`, `tabfile_info/1` | [`Tables::file2tab`] ([`Owner::file2tab`]), [`Tables::tabfile_info`] |
//!
//! `'$end_of_table'` is `None`. `slot/2`, `i/0`, `table/1`, `to_dets/2` and `from_dets/2` are not there:
//! they mean something inside of Erlang's virtual machine only. `fun2ms/1` is the macro
//! [`match_spec!`](crate::match_spec!). [`Table::traverse`] is what has no counterpart in Erlang, whose
//! scheduler interrupts a search by itself.
//!
//! # Where it differs from Erlang 25
//!
//! | | Erlang | here |
//! |---|---|---|
//! | a list that is inserted into a bag | may be turned around | keeps its order |
//! | `next` from a key that never was, in a fixed table | badarg | goes on |
//! | a default without a key (`update_counter/4`) | reads behind its end | an error |
//! | a limit of 0 with a bound key | may bring it down | an error |
//! | a map as the key in a pattern | matches that map only | matches larger maps, as elsewhere |
//! | several clauses with tuples of floats as keys, `ordered_set` | may miss rows | finds them |
//! | `init_table` with something that is no row | ends the process; the table is empty | an error; the table is as it was |
//! | a chunk that is full, the last | ends with a continuation unless a key is bound | the same; a guard can bind a key, too |
//! | `info(memory)` | words | bytes |
//! | an option `{protection, _}` of `setopts` | not documented | there |
//! | a continuation, of a named `ordered_set` | goes by the name: badarg once that is changed, and goes on in another table that is given it | goes by the table, as those of other types and of tables without names do in Erlang, too |
//! | `info(binary)` | the addresses of binaries | numbers in their place: an address says where else to aim |
//! | `info(stats)` | seven numbers, three, or `false`, of its own structures | a tuple of pairs, of ours |
//! | texts of errors (`test_ms`, files) | its own | ours, which tell the part, or the byte |
//! | `tab2file` of a table that is not there | removes the file | leaves it |
//! | files of `tab2file` | a log of `disk_log`, without checksums unless asked for | a format of ours, which Erlang does not read: each record has a checksum, and the file is whole or not there. Erlang's are read |
//! | what is nested deep, as in `ms_excessive_nesting` | compiled, or `system_limit` | the same a million deep, of terms from outside what [`Limits`](crate::term::Limits) allow |
//!
//! # Bytes
//!
//! A row takes one word in the structure beside its key, which takes 16 bytes and 8 of head or hash. A row
//! `{Key}` with a number, an atom, a binary or an identifier as the key takes nothing else: it is
//! told by the key. A million rows `{Int}` take 32 to 44 bytes each. In a bag each row takes 48 bytes
//! more.
//!
//! # What is one step
//!
//! Every operation on one key is, and so is inserting a list of rows, `insert_new` of one, and
//! `delete_all_objects`: nobody sees a part of it (linearizable). So is a
//! [`select_delete`](Table::select_delete) that removes a whole range of keys of an `ordered_set`;
//! any other, and `select_replace`, is one step a key.
//!
//! What goes through a table, as `select`, `tab2list` and `foldl` do, sees each row that is there
//! throughout once, and no row twice; others may be seen or not. On an `ordered_set` it comes in
//! order and in batches of 1024 keys, each of one moment:
//!
//! - A `select`, `select_count`, `match` or `tab2list` that visits *one interval of fewer than 1024
//!   keys* (what [`MatchSpec::explain`](crate::MatchSpec::explain) tells; the whole table, if it is as
//!   small) is of one moment as a whole: it sees a list insert wholly or not at all. Erlang promises that
//!   of each row only.
//! - One that visits more keys is of one moment for each 1024 of them in turn, and one of several
//!   intervals for each interval: it can see one part of a list insert and miss another.
//! - With a limit the batches are smaller at first: as the limit, 32 at least; then twice as many each
//!   time. If every row that is visited matches, a chunk of up to 1024 is of one moment.
//! - On the skip lists, and in tables of the other types, no search is of one moment.

mod continuation;
mod counter;
mod element;
mod engine;
mod error;
mod file;
mod gate;
mod info;
mod object;
mod options;
mod owner;
mod registry;
mod row_sizes;
mod search;
mod select;
mod step;
mod store;
mod traversal;
mod whole;

pub use continuation::{Chunk, Continuation};
pub use engine::TableEngine;
pub(crate) use error::Result;
pub use error::{BadArgument, Problem};
pub use file::{ExtendedInfo, FileError, FileProblem, TabfileInfo};
pub use info::{Info, Item};
pub use options::{Access, Heir, Kind, Options, WriteConcurrency};
pub use owner::{Owner, Transfer};
pub use registry::Tables;
pub use traversal::{Action, Outcome, Traversal};

use crate::term::{Atom, Pid, Reference, Term, Tuple};
use gate::Gate;
use info::Fixations;
use registry::{Caller, table_reference};
use row_sizes::RowSizes;
use std::fmt;
use store::{HashStore, Kept, Layout, Store};
use tremula_index::{Engine, Shape};
use tremula_sync::Arc;
use tremula_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use tremula_sync::{Mutex, RwLock};
use tremula_sync::{ReadGuard, StripedCounter};

/// A table of Erlang's, as one caller has it.
///
/// A handle: cheap to clone, to be shared with any thread. It carries who calls, the node or an
/// [`Owner`], since a table that is not public is for its owner only. It does not keep the table
/// from being deleted; all that is called then is an error.
///
/// Functions that Erlang has under the same name with another number of arguments have names of
/// their own here; see the [module](self) for all of them.
///
/// ```
/// use tremula_table::{Kind, Options, Tables, Term};
///
/// let table = Tables::new().create("words", Options::new().kind(Kind::OrderedSet))?;
/// for word in ["tree", "leaf", "tree"] {
///     let word = Term::binary(word.as_bytes());
///     let counted = Term::tuple([word.clone(), Term::from(0)]);
///     table.update_counter_or(&word, &Term::from(1), counted)?;
/// }
/// let rows: Vec<_> = table.tab2list()?.into_iter().map(|row| Term::from(row).to_string()).collect();
/// assert_eq!(rows, ["{<<\"leaf\">>,1}", "{<<\"tree\">>,2}"]);
/// # Ok::<(), tremula_table::BadArgument>(())
/// ```
#[derive(Clone)]
pub struct Table {
    shared: Arc<Shared>,
    tables: Tables,
    caller: Caller,
}

/// What all handles of a table share.
struct Shared {
    /// What it was asked to be; name, access and heir may have changed since.
    options: Options,
    layout: Layout,
    /// An [`Access`].
    access: AtomicU8,
    owner: AtomicU64,
    gate: Gate,
    store: Box<dyn Store>,
    /// How many rows there are in a bag; the keys of other tables are counted by the store.
    rows: Option<StripedCounter>,
    row_sizes: RowSizes,
    fixations: Fixations,
    name: RwLock<Atom>,
    heir: Mutex<Option<Heir>>,
    number: u64,
}

impl Shared {
    fn new(
        tables: &Tables,
        number: u64,
        owner: Caller,
        name: Atom,
        mut options: Options,
    ) -> Result<Self> {
        let wrong = |problem| BadArgument::new("new", 2, problem);
        if options.keypos == 0 {
            let option = Term::tuple([Atom::KEYPOS.into(), Term::from(0)]);
            return Err(wrong(Problem::NotAnOption(option)));
        }
        // As in Erlang, an heir that is gone is none.
        let heir = options
            .heir
            .take()
            .filter(|heir| tables.has_owner(&heir.pid));
        Ok(Self {
            layout: Layout {
                key_position: options.keypos - 1,
                is_bag: options.kind.is_bag(),
                by_value: options.kind == Kind::OrderedSet,
                compressed: options.compressed,
                has_equals: AtomicBool::new(false),
            },
            access: AtomicU8::new(options.access as u8),
            owner: AtomicU64::new(owner),
            gate: Gate::new(tables.domain()),
            store: open_store(&options)?,
            rows: options.kind.is_bag().then(StripedCounter::new),
            row_sizes: RowSizes::new(),
            fixations: Fixations::default(),
            name: RwLock::new(name),
            heir: Mutex::new(heir),
            number,
            options,
        })
    }

    fn name(&self) -> Atom {
        *self.name.read()
    }

    fn set_name(&self, name: Atom) {
        *self.name.write() = name;
    }

    fn owner(&self) -> Caller {
        self.owner.load(Ordering::Acquire)
    }

    fn set_owner(&self, owner: Caller) {
        self.owner.store(owner, Ordering::Release);
    }

    fn access(&self) -> Access {
        match self.access.load(Ordering::Acquire) {
            0 => Access::Public,
            1 => Access::Protected,
            _ => Access::Private,
        }
    }

    fn heir(&self) -> Option<Heir> {
        self.heir.lock().clone()
    }

    fn is_deleted(&self) -> bool {
        self.gate.is_deleted()
    }

    /// Lets nobody in any more: this is the moment at which the table is deleted, and its name free.
    /// Returns whether the table was still there; then the caller unlists it and drops the rows.
    fn mark_deleted(&self) -> bool {
        let Ok(exclusive) = self.gate.exclusive() else {
            return false;
        };
        exclusive.delete();
        true
    }

    /// Counts rows that came, or went, if the store does not.
    #[inline]
    fn count(&self, difference: isize) {
        if let Some(rows) = &self.rows
            && difference != 0
        {
            rows.add(difference);
        }
    }

    /// The row, if the term is one that has a key.
    fn checked_row<'a>(&self, term: &'a Term) -> Option<&'a Tuple> {
        match term {
            Term::Tuple(row) if row.len() > self.layout.key_position => Some(row),
            _ => None,
        }
    }

    fn size(&self) -> usize {
        match &self.rows {
            // A row may be counted after its removal is.
            Some(rows) => usize::try_from(rows.sum()).unwrap_or(0),
            None => self.store.len(),
        }
    }
}

fn open_store(options: &Options) -> Result<Box<dyn Store>> {
    let concurrent = options.write_concurrency != WriteConcurrency::Off;
    let refuse = |engine, why| {
        let kind = options.kind;
        let problem = Problem::Engine { engine, kind, why };
        Err(BadArgument::new("new", 2, problem))
    };
    if options.kind != Kind::OrderedSet {
        return match options.engine {
            None => Ok(Box::new(HashStore::new(concurrent))),
            Some(engine) => refuse(engine, "only an ordered_set is on an ordered engine"),
        };
    }
    let default = if concurrent {
        Engine::CaTree
    } else {
        Engine::Locked
    };
    let engine = options.engine.unwrap_or(default.into());
    match engine.open() {
        Some(store) => Ok(store),
        None => refuse(
            engine,
            "it needs keys with a byte form, which terms do not have",
        ),
    }
}

/// What an operation does: who may is a question of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    Read,
    Write,
}

impl Table {
    /// Refuses a caller that has not this right.
    #[inline]
    fn check(&self, right: Right, function: &'static str) -> Result<()> {
        let access = self.shared.access();
        let open = access == Access::Public || access == Access::Protected && right == Right::Read;
        if open || self.shared.owner() == self.caller {
            return Ok(());
        }
        // That it is gone says more than whose it was.
        let problem = if self.shared.gate.is_deleted() {
            Problem::NoTable
        } else {
            Problem::NoAccess(access)
        };
        Err(BadArgument::new(function, 1, problem))
    }

    /// What `read` sees of the store; it may run several times. No lock of the table is taken.
    #[inline]
    fn read<R>(&self, function: &'static str, read: impl FnMut() -> R) -> Result<R> {
        self.check(Right::Read, function)?;
        self.shared.gate.read(read).map_err(|_| no_table(function))
    }

    /// Takes the gate to change one key at a time.
    #[inline]
    fn enter(&self, function: &'static str) -> Result<ReadGuard<'_, ()>> {
        self.check(Right::Write, function)?;
        self.shared.gate.shared().map_err(|_| no_table(function))
    }

    /// Takes the gate to change many keys in one step.
    fn enter_exclusive(&self, function: &'static str) -> Result<gate::Exclusive<'_>> {
        self.check(Right::Write, function)?;
        self.shared.gate.exclusive().map_err(|_| no_table(function))
    }

    fn check_owner(&self, function: &'static str) -> Result<()> {
        if self.shared.gate.is_deleted() {
            return Err(no_table(function));
        }
        if self.shared.owner() != self.caller {
            return Err(BadArgument::new(function, 1, Problem::NotOwner));
        }
        Ok(())
    }

    fn for_caller(&self, caller: Caller) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            tables: self.tables.clone(),
            caller,
        }
    }

    /// The identifier of the table, by which [`Tables::find`] finds it.
    #[must_use]
    pub fn id(&self) -> Reference {
        table_reference(self.shared.number)
    }

    /// The type: Erlang's `info(Table, type)`.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.shared.options.kind
    }

    /// The name: Erlang's `info(Table, name)`.
    #[must_use]
    pub fn name(&self) -> Atom {
        self.shared.name()
    }

    /// Whether the table has been deleted.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.shared.is_deleted()
    }

    /// Gives the table another name: Erlang's `rename/2`.
    ///
    /// # Errors
    ///
    /// The caller may not write, the name is no atom, or it is taken, be it by this table itself.
    pub fn rename(&self, name: &str) -> Result<()> {
        self.check(Right::Write, "rename")?;
        self.tables.rename(&self.shared, name)
    }

    /// Deletes the table: Erlang's `delete/1`. Takes time in proportion to the rows, but from the
    /// moment at which [`is_deleted`](Self::is_deleted) says so the name is free and nobody finds the
    /// table.
    ///
    /// # Errors
    ///
    /// The table is deleted, or the caller may not write.
    pub fn delete(&self) -> Result<()> {
        self.check(Right::Write, "delete")?;
        if !self.shared.mark_deleted() {
            return Err(no_table("delete"));
        }
        self.tables.unlist(&self.shared);
        self.shared.store.clear();
        Ok(())
    }

    /// Gives the table to another owner, whose [`transfers`](Owner::transfers) it comes to, with
    /// these data: Erlang's `give_away/3`.
    ///
    /// # Errors
    ///
    /// The caller is not the owner, or there is no such other owner.
    pub fn give_away(&self, to: &Pid, data: Term) -> Result<()> {
        self.check_owner("give_away")?;
        self.tables.give_away(self, to, data)
    }

    /// Changes who inherits the table: Erlang's `setopts/2` with `heir`.
    ///
    /// # Errors
    ///
    /// The caller is not the owner.
    pub fn set_heir(&self, heir: Option<Heir>) -> Result<()> {
        self.check_owner("setopts")?;
        let heir = heir.filter(|heir| self.tables.has_owner(&heir.pid));
        *self.shared.heir.lock() = heir;
        Ok(())
    }

    /// Changes who may do what: Erlang's `setopts/2` with `protection`.
    ///
    /// # Errors
    ///
    /// The caller is not the owner.
    pub fn set_access(&self, access: Access) -> Result<()> {
        self.check_owner("setopts")?;
        self.shared.access.store(access as u8, Ordering::Release);
        Ok(())
    }

    /// Erlang's `setopts/2`: an option `{heir, Pid, Data}`, `{heir, none}` or `{protection,
    /// Access}`, or a list of these.
    ///
    /// # Errors
    ///
    /// The caller is not the owner, or there is something else in the list: then nothing is
    /// changed.
    pub fn setopts(&self, options: &Term) -> Result<()> {
        self.check_owner("setopts")?;
        let wrong =
            |term: &Term| BadArgument::new("setopts", 2, Problem::NotAnOption(term.clone()));
        let one;
        let list = match options {
            Term::Tuple(_) => {
                one = crate::term::List::new([options.clone()]);
                &one
            }
            _ => options::proper(options).ok_or_else(|| wrong(options))?,
        };
        let (mut heir, mut access) = (None, None);
        for option in list {
            let Term::Tuple(parts) = option else {
                return Err(wrong(option));
            };
            match parts.elements() {
                [Term::Atom(name), Term::Atom(none)]
                    if *name == Atom::HEIR && *none == Atom::NONE =>
                {
                    heir = Some(None);
                }
                [Term::Atom(name), Term::Pid(pid), data] if *name == Atom::HEIR => {
                    heir = Some(Some(Heir {
                        pid: pid.clone(),
                        data: data.clone(),
                    }));
                }
                [Term::Atom(name), Term::Atom(value)] if *name == Atom::PROTECTION => {
                    access = Some(Access::of_atom(*value).ok_or_else(|| wrong(option))?);
                }
                _ => return Err(wrong(option)),
            }
        }
        if let Some(heir) = heir {
            self.set_heir(heir)?;
        }
        if let Some(access) = access {
            self.set_access(access)?;
        }
        Ok(())
    }

    /// What the structure under the table looks like. Visits all of it.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shared.store.shape()
    }
}

fn no_table(function: &'static str) -> BadArgument {
    BadArgument::new(function, 1, Problem::NoTable)
}

/// Its name and identifier.
impl fmt::Debug for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Table({}, {})", self.name(), self.id())
    }
}
