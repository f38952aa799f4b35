//! What a table is and holds: `info`, and `safe_fixtable`.

use super::error::{BadArgument, Problem, Result};
use super::gate::Deleted;
use super::registry::{Caller, owner_pid};
use super::store::{Edge, Layout, Span};
use super::{Access, Heir, Kept, Kind, Right, Table, WriteConcurrency, no_table};
use crate::term::{Atom, Pid, Reference, Term};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tremula_index::{Direction, FIRST_BATCH, LAST_BATCH};
use tremula_sync::Mutex;
use tremula_sync::atomic::{AtomicBool, Ordering};

/// The most bytes of a binary that Erlang keeps within the row, and leaves out of `info(binary)`.
const MOST_BYTES_WITHIN: usize = 64;

/// The callers that have fixed a table, and how many times each has.
#[derive(Default)]
pub(super) struct Fixations {
    is_fixed: AtomicBool,
    fixed: Mutex<Fixed>,
}

#[derive(Default)]
struct Fixed {
    /// By caller; no entry is 0.
    times: BTreeMap<Caller, u64>,
    since: Option<(SystemTime, Instant)>,
}

impl Fixations {
    /// Whether any caller has fixed the table.
    #[inline]
    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed.load(Ordering::Acquire)
    }

    /// The callers that have fixed the table.
    pub(super) fn callers(&self) -> Vec<Caller> {
        self.fixed.lock().times.keys().copied().collect()
    }

    /// Fixes the table for the caller, or releases it once. Returns whether the caller still fixes
    /// it.
    pub(super) fn set(&self, caller: Caller, fix: bool) -> bool {
        let mut fixed = self.fixed.lock();
        if fix {
            fixed
                .since
                .get_or_insert_with(|| (SystemTime::now(), Instant::now()));
            *fixed.times.entry(caller).or_default() += 1;
            self.is_fixed.store(true, Ordering::Release);
            return true;
        }
        let Some(times) = fixed.times.get_mut(&caller) else {
            return false;
        };
        *times -= 1;
        let is_left = *times > 0;
        if !is_left {
            self.remove(&mut fixed, caller);
        }
        is_left
    }

    /// Removes all fixations of a caller that is gone.
    pub(super) fn forget(&self, caller: Caller) {
        self.remove(&mut self.fixed.lock(), caller);
    }

    fn remove(&self, fixed: &mut Fixed, caller: Caller) {
        fixed.times.remove(&caller);
        if fixed.times.is_empty() {
            fixed.since = None;
            self.is_fixed.store(false, Ordering::Release);
        }
    }
}

/// The items of Erlang's `info/1`, from [`Table::info`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The identifier.
    pub id: Reference,
    /// The name.
    pub name: Atom,
    /// The type.
    pub kind: Kind,
    /// Which callers may read and write.
    pub access: Access,
    /// Whether the table is found by its name.
    pub named: bool,
    /// Which element is the key, counted from 1.
    pub keypos: usize,
    /// The number of rows: exact when quiescent.
    pub size: usize,
    /// The bytes of the structure, and of rows and keys on the heap. Bytes that two of these share
    /// count twice; what the allocator adds does not count.
    pub memory: usize,
    /// The owner.
    pub owner: Pid,
    /// The heir.
    pub heir: Option<Pid>,
    /// The option; [`Off`](WriteConcurrency::Off) in a table that was made private.
    pub write_concurrency: WriteConcurrency,
    /// The option; `false` in a table that was made private.
    pub read_concurrency: bool,
    /// The option, or Erlang's default; `false` without `write_concurrency`.
    pub decentralized_counters: bool,
    /// Whether long rows are kept compressed.
    pub compressed: bool,
    /// The name of the structure under the table.
    pub engine: &'static str,
}

/// An item of Erlang's `info/2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Item(Atom);

/// An item of `info/1`, and its value.
type Shown = (Atom, fn(&Info) -> Term);

impl Item {
    /// The items of `info/1`, in Erlang's order, and the engine.
    const ALL: [Shown; 16] = [
        (Atom::ID, |info| info.id.clone().into()),
        (Atom::DECENTRALIZED_COUNTERS, |info| {
            info.decentralized_counters.into()
        }),
        (Atom::READ_CONCURRENCY, |info| info.read_concurrency.into()),
        (Atom::WRITE_CONCURRENCY, |info| {
            info.write_concurrency.atom().into()
        }),
        (Atom::COMPRESSED, |info| info.compressed.into()),
        (Atom::MEMORY, |info| info.memory.into()),
        (Atom::OWNER, |info| info.owner.clone().into()),
        (Atom::HEIR, |info| {
            info.heir.clone().map_or(Atom::NONE.into(), Term::from)
        }),
        (Atom::NAME, |info| info.name.into()),
        (Atom::SIZE, |info| info.size.into()),
        (Atom::NODE, |_| Atom::NO_NODE.into()),
        (Atom::NAMED_TABLE, |info| info.named.into()),
        (Atom::TYPE, |info| info.kind.atom().into()),
        (Atom::KEYPOS, |info| info.keypos.into()),
        (Atom::PROTECTION, |info| info.access.atom().into()),
        (Atom::ENGINE, |info| {
            Term::atom(info.engine).unwrap_or(Atom::UNDEFINED.into())
        }),
    ];

    /// Items that only `info/2` has.
    const MORE: [Atom; 5] = [
        Atom::BINARY,
        Atom::FIXED,
        Atom::SAFE_FIXED,
        Atom::SAFE_FIXED_MONOTONIC_TIME,
        Atom::STATS,
    ];

    /// The item of this name.
    #[must_use]
    pub fn of(name: &Term) -> Option<Self> {
        let Term::Atom(name) = name else { return None };
        let mut all = Self::ALL.iter().map(|(item, _)| item).chain(&Self::MORE);
        all.any(|item| item == name).then_some(Self(*name))
    }
}

/// The list of all items; `undefined` of a table that is deleted.
fn all_items(info: Option<Info>) -> Term {
    let Some(info) = info else {
        return Atom::UNDEFINED.into();
    };
    let pair = |(item, of): Shown| Term::tuple([item.into(), of(&info)]);
    Term::list(Item::ALL.map(pair))
}

/// What a visit of all rows collects.
#[derive(Debug)]
enum Visit {
    Nothing,
    /// The bytes of the rows and their keys.
    Memory(usize),
    /// The numbers of binaries, by their addresses, and `[{Number, Bytes, References}]`.
    Binaries(HashMap<usize, usize>, Vec<Term>),
}

impl Visit {
    fn entry(&mut self, layout: &Layout, key: &Term, kept: &Kept) {
        match self {
            Self::Nothing => {}
            Self::Memory(bytes) => *bytes = bytes.saturating_add(Layout::heap_bytes(key, kept)),
            Self::Binaries(numbers, all) => {
                for row in layout.rows(key, kept) {
                    Term::from(row).visit_binaries(&mut |binary| {
                        if binary.bytes().len() > MOST_BYTES_WITHIN {
                            let next = numbers.len();
                            let address = binary.bytes().as_ptr().addr();
                            let number = *numbers.entry(address).or_insert(next);
                            let (bytes, held) = (binary.bytes().len(), binary.references());
                            all.push(Term::tuple([number, bytes, held].map(Term::from)));
                        }
                    });
                }
            }
        }
    }
}

/// A description of a table that is being made in steps: [`Table::info_in_steps`].
#[derive(Debug)]
#[must_use]
pub struct InfoInSteps {
    table: Table,
    /// `None` for all items.
    item: Option<Atom>,
    visit: Visit,
    /// The last key that has been visited.
    behind: Option<Term>,
}

impl InfoInSteps {
    /// Visits at least one more row, and further rows as long as `may_go_on` returns true after
    /// each; a description that needs no row is complete in one step. Breaks with the description.
    pub fn step(mut self, mut may_go_on: impl FnMut() -> bool) -> ControlFlow<Term, Self> {
        let (table, layout) = (&self.table, &self.table.shared.layout);
        let mut reached = None;
        if !matches!(self.visit, Visit::Nothing) {
            let low = self.behind.as_ref().map_or(Edge::Open, Edge::Beyond);
            let rest = Span { low, ..Span::ALL };
            let visit = &mut |key: &Term, kept: &Kept| {
                self.visit.entry(layout, key, kept);
                if may_go_on() {
                    return ControlFlow::Continue(());
                }
                reached = Some(key.clone());
                ControlFlow::Break(())
            };
            // A visit that is interrupted often must not read many more rows than it counts.
            let first_batch = match self.behind {
                None => LAST_BATCH,
                Some(_) => FIRST_BATCH,
            };
            let visited = table.entries(rest, Direction::Ascending, first_batch, visit);
            if visited.is_err() {
                return ControlFlow::Break(Atom::UNDEFINED.into());
            }
        }
        if reached.is_some() {
            self.behind = reached;
            return ControlFlow::Continue(self);
        }
        let Self {
            table, item, visit, ..
        } = self;
        ControlFlow::Break(match item {
            _ if table.is_deleted() => Atom::UNDEFINED.into(),
            Some(item) => table.item(item, visit),
            None => all_items(table.info_with(|| table.memory_with(&visit))),
        })
    }
}

impl Table {
    /// The number of rows: `info(Table, size)`. Exact when quiescent; constant time. Fails only if
    /// the table is deleted: every caller may ask.
    pub fn size(&self) -> Result<usize> {
        if self.is_deleted() {
            return Err(no_table("info"));
        }
        Ok(self.shared.size())
    }

    /// The bytes that the table takes: `info(Table, memory)`, which in Erlang is in words. See
    /// [`Info::memory`]. Visits all rows; a row takes constant time, however large.
    #[must_use]
    pub fn memory(&self) -> usize {
        let mut visit = Visit::Memory(0);
        // A table that is deleted meanwhile has no rows left to count.
        match self.visit_all(&mut visit) {
            Ok(()) => self.memory_with(&visit),
            Err(_) => size_of_val(&*self.shared),
        }
    }

    /// The bytes of the table with those of its rows.
    fn memory_with(&self, visit: &Visit) -> usize {
        let rows = match visit {
            Visit::Memory(bytes) => *bytes,
            _ => 0,
        };
        let structure = self.shared.store.structure_bytes();
        size_of_val(&*self.shared)
            .saturating_add(structure)
            .saturating_add(rows)
    }

    /// Visits all rows at once.
    fn visit_all(&self, visit: &mut Visit) -> std::result::Result<(), Deleted> {
        self.each_entry(Direction::Ascending, &mut |key, kept| {
            visit.entry(&self.shared.layout, key, kept);
            ControlFlow::Continue(())
        })
    }

    /// Describes the table: Erlang's `info/1`; `None` if it is deleted. Visits all rows, to count
    /// their memory. Every caller may ask.
    #[must_use]
    pub fn info(&self) -> Option<Info> {
        self.info_with(|| self.memory())
    }

    fn info_with(&self, memory: impl FnOnce() -> usize) -> Option<Info> {
        if self.is_deleted() {
            return None;
        }
        let (shared, options) = (&*self.shared, &self.shared.options);
        Some(Info {
            id: self.id(),
            name: shared.name(),
            kind: options.kind,
            access: shared.access(),
            named: options.named,
            keypos: options.keypos,
            size: shared.size(),
            memory: memory(),
            owner: owner_pid(shared.owner()),
            heir: shared.heir().map(|Heir { pid, .. }| pid),
            write_concurrency: options.has_write_concurrency(),
            read_concurrency: options.read_concurrency && options.access != Access::Private,
            decentralized_counters: options.has_decentralized_counters(),
            compressed: options.compressed,
            engine: shared.store.engine(),
        })
    }

    /// The items of [`info`](Self::info) as Erlang has them, a list of pairs; `undefined` if the
    /// table is deleted.
    #[must_use]
    pub fn info_term(&self) -> Term {
        all_items(self.info())
    }

    /// One item: Erlang's `info/2`; `undefined` if the table is deleted. Besides those of
    /// [`info`](Self::info):
    ///
    /// - `fixed`: whether any caller has fixed the table.
    /// - `safe_fixed`, `safe_fixed_monotonic_time`: since when the table has been fixed, as a time
    ///   or as the nanoseconds since then, and how many times by which callers; `false` if it is
    ///   not.
    /// - `binary`: a tuple `{Number, Bytes, References}` for each binary of more than 64 bytes in a
    ///   row. A binary that several rows share has one number, where Erlang has its address.
    /// - `stats`: the figures of [`shape`](Self::shape), as a tuple of pairs of a name and a value.
    ///
    /// # Errors
    ///
    /// The table is not deleted, and no item has this name.
    pub fn info_item(&self, name: &Term) -> Result<Term> {
        let mut steps = self.info_in_steps(Some(name))?;
        loop {
            match steps.step(|| true) {
                ControlFlow::Continue(rest) => steps = rest,
                ControlFlow::Break(value) => return Ok(value),
            }
        }
    }

    /// [`info_item`](Self::info_item), or without a name [`info_term`](Self::info_term), in
    /// [steps](InfoInSteps::step): counting memory and binaries visits all rows. Visits no row yet.
    ///
    /// # Errors
    ///
    /// Those of [`info_item`](Self::info_item).
    pub fn info_in_steps(&self, name: Option<&Term>) -> Result<InfoInSteps> {
        let item = |name: &Term| {
            let wrong = || BadArgument::new("info", 2, Problem::NotAnItem(name.clone()));
            Item::of(name).map(|Item(item)| item).ok_or_else(wrong)
        };
        let item = match name {
            Some(name) if !self.is_deleted() => Some(item(name)?),
            _ => None,
        };
        let visit = match item.map(Atom::text) {
            None | Some("memory") => Visit::Memory(0),
            Some("binary") => Visit::Binaries(HashMap::new(), Vec::new()),
            Some(_) => Visit::Nothing,
        };
        Ok(InfoInSteps {
            table: self.clone(),
            item,
            visit,
            behind: None,
        })
    }

    /// The value of an item, after the visit that it needs.
    fn item(&self, item: Atom, visit: Visit) -> Term {
        match item.text() {
            "size" => Term::from(self.shared.size()),
            "fixed" => Term::from(self.shared.fixations.is_fixed()),
            "safe_fixed" => self.fixed_term(true),
            "safe_fixed_monotonic_time" => self.fixed_term(false),
            "stats" => Term::tuple(self.shape().figures.into_iter().map(|(name, value)| {
                Term::tuple([Term::binary(name.as_bytes()), Term::from(value)])
            })),
            "binary" => match visit {
                Visit::Binaries(_, all) => Term::list(all),
                _ => Term::NIL,
            },
            _ => {
                let info = self.info_with(|| self.memory_with(&visit));
                let of = Item::ALL.into_iter().find(|(known, _)| *known == item);
                let value = info.zip(of).map(|(info, (_, of))| of(&info));
                value.unwrap_or_else(|| Atom::UNDEFINED.into())
            }
        }
    }

    /// `{Time, [{Pid, Times}]}`, or `false`.
    fn fixed_term(&self, as_timestamp: bool) -> Term {
        let fixed = self.shared.fixations.fixed.lock();
        let Some((time, instant)) = fixed.since else {
            return Term::from(false);
        };
        let time = if as_timestamp {
            let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            let (seconds, micros) = (since_epoch.as_secs(), since_epoch.subsec_micros());
            Term::tuple([
                Term::from(seconds / 1_000_000),
                Term::from(seconds % 1_000_000),
                Term::from(micros),
            ])
        } else {
            Term::from(instant.elapsed().as_nanos())
        };
        let callers = fixed.times.iter();
        let callers =
            callers.map(|(who, times)| Term::tuple([owner_pid(*who).into(), (*times).into()]));
        Term::tuple([time, Term::list(callers.collect::<Vec<_>>())])
    }

    /// Fixes the table for this caller, or releases it: Erlang's `safe_fixtable/2`. A table that a
    /// caller has fixed several times has to be released as many times; a dropped owner releases
    /// all.
    ///
    /// A search meets each row that stays exactly once, whether or not the table is fixed, and
    /// deleted rows are freed in either case. Fixing changes only that [`next`](Self::next) goes on
    /// from any key, even one that the table does not contain.
    ///
    /// # Errors
    ///
    /// The caller [may not read](super#errors), or is an owner that is gone.
    pub fn safe_fixtable(&self, fix: bool) -> Result<()> {
        self.check(Right::Read, "safe_fixtable")?;
        self.tables.fix(self, fix)
    }
}
