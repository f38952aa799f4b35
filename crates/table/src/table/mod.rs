//! Tables with the semantics of Erlang's ETS.
//!
//! A [`Table`] is a handle of one table. [`Tables`] is a node with all its tables. An [`Owner`] is
//! what a process is to Erlang's tables.
//!
//! | file | holds |
//! |---|---|
//! | `registry`, `owner`, `restore` | names, owners, heirs; those of before a restart |
//! | `options`, `error` | how a table is made; what is wrong with a call |
//! | `gate` | list inserts in one step, lookups without a lock |
//! | `store/` | where rows are: the ordered engines, the hash map, how rows are kept |
//! | `object` | insert, lookup, delete, take |
//! | `counter`, `element` | update_counter, update_element |
//! | `expiry`, `times` | keys whose rows expire |
//! | `step`, `whole` | first and next; tab2list, foldl, init_table |
//! | `select`, `search` | every function with a pattern or match specification; their one driver |
//! | `continuation`, `traversal` | where a search in chunks goes on; a search in steps |
//! | [`effect`] | what writes report for a log, and making tables again |
//! | `note`, `noting` | how a write reaches its sink; writes with a sink |
//! | `remains` | freeing in steps what has been deleted |
//! | `row_sizes` | whether all rows have one size |
//! | `info` | what a table is and holds |
//! | `parts` | the parts of its index, for what looks at them from outside |
//! | `file/` | tab2file and file2tab |
//!
//! # Errors
//!
//! A function that fails returns a [`BadArgument`], which names the argument and the [`Problem`].
//! Every function that reads rows fails if the table has been deleted or its [`Access`] does not
//! let the caller read; every function that changes rows fails if the table has been deleted or the
//! caller may not write. The pages of the functions call this "may not read" and "may not write".
//!
//! # Memory
//!
//! Terms share their memory by counted references. A row that `insert` replaces or `delete`
//! removes is let go when its thread has replaced or removed four more, or ends, or when the last
//! reader is done with it; what takes more than four kibibytes after two more. That takes a fifth
//! to a quarter of the time off an update in a table beyond the caches (`store/outgoing`). A whole
//! table is freed at once.
//!
//! # Consistency
//!
//! An operation is *one step* (linearizable) if no other thread sees a part of it. Every operation
//! on one key is one step, and so are `insert` and `insert_new` of a list of rows,
//! `delete_all_objects`, `init_table`, and a [`select_delete`](Table::select_delete) that removes a
//! whole range of keys of an `ordered_set`. Any other `select_delete`, and `select_replace`, is one
//! step per key.
//!
//! A *move* (`first`, `next_lookup` and the like) is one step on an `ordered_set`. In tables of
//! other types, and on engines whose scans only keep the order
//! ([`Scans::Ordered`](tremula_index::Scans::Ordered)), it finds a neighbour that the key had, with
//! rows that the neighbour had, at some moment of the call.
//!
//! A *search* (`select`, `match`, `tab2list`, `foldl` and the like) sees each row that is there
//! throughout once, and no row twice. It may or may not see a row that comes or goes meanwhile. On
//! an `ordered_set` it sees the rows in order, in batches of 1024 keys. Each batch is a *snapshot*:
//! it shows the table at one moment.
//!
//! - A `select`, `select_count`, `match` or `tab2list` that visits one interval of fewer than 1024
//!   keys is a snapshot as a whole: it sees all of a list insert or nothing of it. Erlang promises
//!   this of single rows only. [`MatchSpec::explain`] shows the intervals; a search without bounds
//!   has one, the whole table.
//! - A search that visits more keys takes a snapshot for each batch in turn, and a search of
//!   several intervals at least one for each interval. It can see one part of a list insert and
//!   miss another.
//! - With a limit, the first batch has as many keys as the limit, but at least 32, and each further
//!   batch is twice as large. A chunk of up to 1024 is a snapshot if every visited row matches.
//! - A search in [steps](Traversal) begins again with a batch of 32 after each interruption.
//! - No search is a snapshot in tables of other types, nor on engines whose scans only keep order.
//!
//! # Bytes
//!
//! In the structure of an `ordered_set`, a row takes three words: its head, its key and what is
//! kept of it; in tables of other types it takes four. A key that is no integer, or an integer of
//! more than 55 bits (62 in other types), takes 16 bytes besides. A row `{Key}` whose key is a
//! number, an atom, a binary or an identifier takes nothing else, because the key determines the
//! row. In a bag each row takes 56 bytes more.
//!
//! [`MatchSpec`]: crate::MatchSpec
//! [`MatchSpec::compile`]: crate::MatchSpec::compile
//! [`MatchSpec::explain`]: crate::MatchSpec::explain
//! [`MatchSpec::run`]: crate::MatchSpec::run
//! [`MatchSpec::test`]: crate::MatchSpec::test
//! [`match_spec!`]: crate::match_spec!
//! [`Limits`]: crate::term::Limits
#![doc = include_str!("erlang.md")]

mod continuation;
mod counter;
pub mod effect;
mod element;
mod engine;
mod error;
mod expiry;
mod file;
mod gate;
mod info;
mod note;
mod noting;
mod object;
mod options;
mod owner;
mod parts;
mod registry;
mod remains;
mod restore;
mod row_sizes;
mod search;
mod select;
mod step;
mod store;
mod times;
mod traversal;
mod whole;

pub use continuation::{Chunk, Continuation};
pub use counter::Increment;
pub use engine::TableEngine;
pub(crate) use error::Result;
pub use error::{BadArgument, Problem};
pub use expiry::{Due, KeyExpiry};
pub use file::{ExtendedInfo, FileError, FileProblem, TabfileInfo};
pub use info::{Info, InfoInSteps, Item};
pub use noting::Noting;
pub use options::{Access, Heir, Kind, Options, WriteConcurrency};
pub use owner::{Owner, Transfer};
pub use parts::TablePart;
pub use registry::Tables;
pub use remains::Remains;
pub use traversal::{Action, Outcome, Traversal};

use crate::term::{Atom, Bounds, Pid, Reference, Term, Tuple};
use effect::Change;
use gate::Gate;
use info::Fixations;
use note::Notes;
use registry::{Caller, table_reference};
use row_sizes::RowSizes;
use std::fmt;
use store::{Garbage, HashStore, Kept, Layout, Reported, Store};
use times::Times;
use tremula_index::{Engine, Shape};
use tremula_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use tremula_sync::{Arc, Mutex, ReadGuard, RwLock, StripedCounter};

/// A handle of a table, for one caller: the node or an [`Owner`].
///
/// A handle is cheap to clone and may be shared with any thread. It carries its caller because only
/// the owner may use a private table, or write to a protected one. It does not keep the table from
/// being deleted; afterwards every call is an error.
///
/// Where Erlang has functions of one name with several arities, each has a name of its own here:
/// see the [list](self#erlangs-names-and-ours).
///
/// ```
/// use tremula_table::{Kind, Options, Tables};
///
/// let table = Tables::new().create("words", Options::new().kind(Kind::OrderedSet))?;
/// for word in ["tree", "leaf", "tree"] {
///     table.update_counter_or(&word.into(), &1.into(), (word, 0).into())?;
/// }
/// assert_eq!(table.tab2list()?, [("leaf", 1), ("tree", 2)]);
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
    /// Whether each change has to be reported: of the node.
    must_report: bool,
    /// The options at creation; name, access and heir may have changed since.
    options: Options,
    layout: Layout,
    bounds: Bounds,
    /// An [`Access`].
    access: AtomicU8,
    owner: AtomicU64,
    gate: Gate,
    store: Box<dyn Store>,
    /// The number of rows of a bag. Tables of the other types have one row per key, and the store
    /// counts the keys.
    rows: Option<StripedCounter>,
    row_sizes: RowSizes,
    times: Times,
    fixations: Fixations,
    name: RwLock<Atom>,
    /// A thread that changes `access` holds this, too.
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
        // As in Erlang, an heir that no longer exists is ignored.
        let heir = options
            .heir
            .take()
            .filter(|heir| tables.has_owner(&heir.pid));
        let shared = Self {
            layout: Layout {
                key_position: options.keypos - 1,
                is_bag: options.kind.is_bag(),
                by_value: options.kind == Kind::OrderedSet,
                compressed: options.compressed,
                has_equals: AtomicBool::new(false),
            },
            bounds: tables.bounds(),
            must_report: tables.must_report(),
            access: AtomicU8::new(options.access as u8),
            owner: AtomicU64::new(owner),
            gate: Gate::new(tables.domain()),
            store: open_store(&options)?,
            rows: options.kind.is_bag().then(StripedCounter::new),
            row_sizes: RowSizes::new(),
            times: Times::new(number, options.kind == Kind::OrderedSet, tables.agenda()),
            fixations: Fixations::default(),
            name: RwLock::new(name),
            heir: Mutex::new(None),
            number,
            options,
        };
        if let Some(heir) = &heir {
            let checked = shared.check_heir(heir);
            checked.map_err(|error| wrong(error.into()))?;
        }
        *shared.heir.lock() = heir;
        Ok(shared)
    }

    fn name(&self) -> Atom {
        *self.name.read()
    }

    fn owner(&self) -> Caller {
        self.owner.load(Ordering::Acquire)
    }

    fn access(&self) -> Access {
        Access::ALL[usize::from(self.access.load(Ordering::Acquire))]
    }

    fn heir(&self) -> Option<Heir> {
        self.heir.lock().clone()
    }

    fn is_deleted(&self) -> bool {
        self.gate.is_deleted()
    }

    /// Deletes the table: from this moment on the gate refuses every thread, and the name is free.
    /// `None` if the table no longer existed; else the caller unlists it, drops the rows, and frees
    /// what is returned.
    fn mark_deleted(&self, notes: &mut Notes<'_>) -> Option<(Reported, Garbage)> {
        let exclusive = self.gate.exclusive().ok()?;
        let reported = notes.change(self, Change::Deleted);
        exclusive.delete();
        Some((reported, self.times.take_all()))
    }

    /// Adds to the number of rows, if the store does not count them.
    #[inline]
    fn count(&self, difference: isize) {
        if let Some(rows) = &self.rows
            && difference != 0
        {
            rows.add(difference);
        }
    }

    /// The term as a row, if it is a tuple that has a key.
    fn checked_row<'a>(&self, term: &'a Term) -> Option<&'a Tuple> {
        match term {
            Term::Tuple(row) if row.len() > self.layout.key_position => Some(row),
            _ => None,
        }
    }

    fn size(&self) -> usize {
        match &self.rows {
            // The sum can be negative: a row may be counted after its removal has been.
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
    let engine = options.engine.unwrap_or(Engine::Aspen.into());
    match engine.open() {
        Some(store) => Ok(store),
        None => refuse(
            engine,
            "it needs keys with a byte form, which terms do not have",
        ),
    }
}

/// What an operation does with rows: [`Access`] says which callers may.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    Read,
    Write,
}

impl Table {
    /// Refuses a caller that lacks this right.
    #[inline]
    fn check(&self, right: Right, function: &'static str) -> Result<()> {
        let access = self.shared.access();
        let open = access == Access::Public || access == Access::Protected && right == Right::Read;
        if open || self.shared.owner() == self.caller {
            return Ok(());
        }
        // That the table is gone is more helpful than whose it was.
        let problem = if self.shared.gate.is_deleted() {
            Problem::NoTable
        } else {
            Problem::NoAccess(access)
        };
        Err(BadArgument::new(function, 1, problem))
    }

    /// Returns what `read` returns; it may run several times. See [`Gate::read`](gate::Gate::read).
    #[inline]
    fn read<R>(&self, function: &'static str, read: impl FnMut() -> R) -> Result<R> {
        self.check(Right::Read, function)?;
        self.shared.gate.read(read).map_err(|_| no_table(function))
    }

    /// Takes the gate shared, to change one key at a time.
    #[inline]
    fn enter(&self, function: &'static str) -> Result<ReadGuard<'_, ()>> {
        self.check(Right::Write, function)?;
        self.shared.gate.shared().map_err(|_| no_table(function))
    }

    /// Takes the gate exclusively, to change many keys in one step.
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

    /// The identifier of the table, for [`Tables::find`].
    #[must_use]
    pub fn id(&self) -> Reference {
        table_reference(self.shared.number)
    }

    /// The number of the table, by which its [effects](effect) name it. No other table of the
    /// process has had it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.shared.number
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

    /// Whether the table has had a row of 65,536 elements or more since it was last cleared, so
    /// that copying or freeing a row may take longer than anything else that a call does.
    #[must_use]
    pub fn has_wide_rows(&self) -> bool {
        self.shared.row_sizes.have_wide()
    }

    /// The key of a row of this table; `None` if the row is too short to have one.
    #[must_use]
    pub fn key_of<'a>(&self, row: &'a Tuple) -> Option<&'a Term> {
        row.get(self.shared.layout.key_position)
    }

    /// Whether another thread changes many rows of the table in one step at this moment, so that
    /// most calls would wait.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.shared.gate.is_exclusive()
    }

    /// Gives the table another name: Erlang's `rename/2`.
    ///
    /// # Errors
    ///
    /// The caller [may not write](self#errors), the name is no atom, or a table has it, be it this
    /// one.
    pub fn rename(&self, name: &str) -> Result<()> {
        self.change_name(&mut Notes::nobody(), name)
    }

    fn change_name(&self, notes: &mut Notes<'_>, name: &str) -> Result<()> {
        self.check(Right::Write, "rename")?;
        self.tables.rename(notes, &self.shared, name)
    }

    /// Deletes the table: Erlang's `delete/1`. Fails if the caller [may not write](self#errors).
    /// Takes time in proportion to the rows; but as soon as [`is_deleted`](Self::is_deleted)
    /// returns true, the name is free and no thread finds the table.
    pub fn delete(&self) -> Result<()> {
        self.delete_in_steps()?.free(|| true);
        Ok(())
    }

    /// Gives the table to another owner, which receives it with these data in
    /// [`transfers`](Owner::transfers): Erlang's `give_away/3`.
    ///
    /// # Errors
    ///
    /// The caller is not the owner, or `to` is not another, existing owner.
    pub fn give_away(&self, to: &Pid, data: Term) -> Result<()> {
        self.change_owner(&mut Notes::nobody(), to, data)
    }

    fn change_owner(&self, notes: &mut Notes<'_>, to: &Pid, data: Term) -> Result<()> {
        self.check_owner("give_away")?;
        self.tables.give_away(notes, self, to, data)
    }

    /// Changes the heir: Erlang's `setopts/2` with `heir`. Fails if the caller is not the owner.
    pub fn set_heir(&self, heir: Option<Heir>) -> Result<()> {
        self.change_properties(&mut Notes::nobody(), Some(heir), None)
    }

    /// Changes the access: Erlang's `setopts/2` with `protection`. Fails if the caller is not the
    /// owner.
    pub fn set_access(&self, access: Access) -> Result<()> {
        self.change_properties(&mut Notes::nobody(), None, Some(access))
    }

    /// Changes the heir and the access, each if there is a new one, in one step.
    fn change_properties(
        &self,
        notes: &mut Notes<'_>,
        heir: Option<Option<Heir>>,
        access: Option<Access>,
    ) -> Result<()> {
        self.check_owner("setopts")?;
        let shared = &*self.shared;
        let is_there = |heir: &Heir| self.tables.has_owner(&heir.pid);
        let heir = heir.map(|heir| heir.filter(is_there));
        if let Some(Some(heir)) = &heir {
            let checked = shared.check_heir(heir);
            checked.map_err(|error| BadArgument::new("setopts", 2, error.into()))?;
        }
        let mut its_heir = shared.heir.lock();
        notes.step(|notes| {
            if let Some(heir) = &heir {
                notes.change(shared, Change::Heir(heir.as_ref()));
            }
            if let Some(access) = access {
                notes.change(shared, Change::Access(access));
            }
        });
        if let Some(heir) = heir {
            *its_heir = heir;
        }
        if let Some(access) = access {
            shared.access.store(access as u8, Ordering::Release);
        }
        Ok(())
    }

    /// Erlang's `setopts/2`: an option `{heir, Pid, Data}`, `{heir, none}` or `{protection,
    /// Access}`, or a list of these.
    ///
    /// # Errors
    ///
    /// The caller is not the owner, or the list has something else in it: then nothing is changed.
    pub fn setopts(&self, options: &Term) -> Result<()> {
        self.change_options(&mut Notes::nobody(), options)
    }

    fn change_options(&self, notes: &mut Notes<'_>, options: &Term) -> Result<()> {
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
                [Term::Atom(name), Term::Atom(value)] if *name == Atom::PROTECTION => {
                    access = Some(Access::of_atom(*value).ok_or_else(|| wrong(option))?);
                }
                parts => heir = Some(Heir::of(parts).ok_or_else(|| wrong(option))?),
            }
        }
        if heir.is_none() && access.is_none() {
            return Ok(());
        }
        self.change_properties(notes, heir, access)
    }

    /// Describes the structure under the table. Visits all of it.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shared.store.shape()
    }
}

fn no_table(function: &'static str) -> BadArgument {
    BadArgument::new(function, 1, Problem::NoTable)
}

impl fmt::Debug for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Table({}, {})", self.name(), self.id())
    }
}
