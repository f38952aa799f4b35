//! What a table is and holds: `info`, and `safe_fixtable`.

use super::error::{BadArgument, Problem, Result};
use super::registry::Caller;
use super::store::{Layout, Span};
use super::{Access, Heir, Kind, Right, Table, WriteConcurrency, no_table};
use crate::term::{Atom, Pid, Reference, Term};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tremula_index::{Direction, LAST_BATCH};
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

    /// Fixes the table for the caller, or releases it once. Returns whether the caller still fixes
    /// it.
    pub(super) fn set(&self, caller: Caller, fix: bool) -> bool {
        if fix {
            self.fix(caller);
            return true;
        }
        self.release(caller)
    }

    /// The callers that have fixed the table.
    pub(super) fn callers(&self) -> Vec<Caller> {
        self.fixed.lock().times.keys().copied().collect()
    }

    fn fix(&self, caller: Caller) {
        let mut fixed = self.fixed.lock();
        if fixed.times.is_empty() {
            fixed.since = Some((SystemTime::now(), Instant::now()));
        }
        *fixed.times.entry(caller).or_default() += 1;
        self.is_fixed.store(true, Ordering::Release);
    }

    fn release(&self, caller: Caller) -> bool {
        let mut fixed = self.fixed.lock();
        let Some(times) = fixed.times.get_mut(&caller) else {
            return false;
        };
        *times -= 1;
        let is_left = *times > 0;
        if !is_left {
            fixed.times.remove(&caller);
            self.note(&mut fixed);
        }
        is_left
    }

    /// Removes all fixations of a caller that is gone.
    pub(super) fn forget(&self, caller: Caller) {
        let mut fixed = self.fixed.lock();
        fixed.times.remove(&caller);
        self.note(&mut fixed);
    }

    fn note(&self, fixed: &mut Fixed) {
        if fixed.times.is_empty() {
            fixed.since = None;
            self.is_fixed.store(false, Ordering::Release);
        }
    }
}

/// The items of Erlang's `info/1`, from [`Table::info`].
#[derive(Clone, Debug)]
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

impl Item {
    /// The items of `info/1`, in Erlang's order, and the engine.
    const ALL: [Atom; 16] = [
        Atom::ID,
        Atom::DECENTRALIZED_COUNTERS,
        Atom::READ_CONCURRENCY,
        Atom::WRITE_CONCURRENCY,
        Atom::COMPRESSED,
        Atom::MEMORY,
        Atom::OWNER,
        Atom::HEIR,
        Atom::NAME,
        Atom::SIZE,
        Atom::NODE,
        Atom::NAMED_TABLE,
        Atom::TYPE,
        Atom::KEYPOS,
        Atom::PROTECTION,
        Atom::ENGINE,
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
        let known = Self::ALL.iter().chain(&Self::MORE).any(|item| item == name);
        known.then_some(Self(*name))
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
    /// [`Info::memory`]. Visits all rows.
    #[must_use]
    pub fn memory(&self) -> usize {
        let shared = &*self.shared;
        let mut bytes = size_of_val(shared);
        let structure = shared.store.shape().get("bytes").unwrap_or(0);
        bytes += usize::try_from(structure).unwrap_or(usize::MAX);
        let visited = self.entries(
            Span::ALL,
            Direction::Ascending,
            LAST_BATCH,
            &mut |key, kept| {
                bytes += Layout::heap_bytes(key, kept);
                ControlFlow::Continue(())
            },
        );
        // A table that is deleted meanwhile has no rows left to count.
        visited.map_or(size_of_val(shared), |()| bytes)
    }

    /// Describes the table: Erlang's `info/1`; `None` if it is deleted. Visits all rows, to count
    /// their memory. Every caller may ask.
    #[must_use]
    pub fn info(&self) -> Option<Info> {
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
            memory: self.memory(),
            owner: self.tables.pid(shared.owner()),
            heir: shared.heir().map(|Heir { pid, .. }| pid),
            write_concurrency: options.has_write_concurrency(),
            read_concurrency: options.has_read_concurrency(),
            decentralized_counters: options.has_decentralized_counters(),
            compressed: options.compressed,
            engine: shared.store.engine(),
        })
    }

    /// The items of [`info`](Self::info) as Erlang has them, a list of pairs; `undefined` if the
    /// table is deleted.
    #[must_use]
    pub fn info_term(&self) -> Term {
        let Some(info) = self.info() else {
            return Atom::UNDEFINED.into();
        };
        let pair = |item: Atom| Some(Term::tuple([item.into(), info.item(item)?]));
        Term::list(Item::ALL.into_iter().filter_map(pair).collect::<Vec<_>>())
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
        if self.is_deleted() {
            return Ok(Atom::UNDEFINED.into());
        }
        let wrong = || BadArgument::new("info", 2, Problem::NotAnItem(name.clone()));
        let Item(item) = Item::of(name).ok_or_else(wrong)?;
        if item == Atom::SIZE {
            return Ok(Term::from(self.shared.size()));
        }
        if item == Atom::FIXED {
            return Ok(Term::from(self.shared.fixations.is_fixed()));
        }
        if item == Atom::SAFE_FIXED || item == Atom::SAFE_FIXED_MONOTONIC_TIME {
            return Ok(self.fixed_term(item == Atom::SAFE_FIXED));
        }
        if item == Atom::STATS {
            let figures = self.shape().figures;
            let pair = |(name, value): (&str, u64)| {
                Term::tuple([Term::binary(name.as_bytes()), Term::from(value)])
            };
            return Ok(Term::tuple(figures.into_iter().map(pair)));
        }
        if item == Atom::BINARY {
            return Ok(self.binaries());
        }
        let info = self.info();
        let value = info.and_then(|info| info.item(item));
        Ok(value.unwrap_or_else(|| Atom::UNDEFINED.into()))
    }

    /// `[{Number, Bytes, References}]`.
    fn binaries(&self) -> Term {
        let layout = &self.shared.layout;
        let (mut numbers, mut all) = (HashMap::new(), Vec::new());
        let every = (Span::ALL, Direction::Ascending, LAST_BATCH);
        let visited = self.entries(every.0, every.1, every.2, &mut |key, kept| {
            for row in layout.rows(key, kept) {
                Term::from(row).visit_binaries(&mut |binary| {
                    if binary.bytes().len() > MOST_BYTES_WITHIN {
                        let next = numbers.len();
                        let number = *numbers.entry(binary.bytes().as_ptr()).or_insert(next);
                        let (bytes, held) = (binary.bytes().len(), binary.references());
                        all.push(Term::tuple([number, bytes, held].map(Term::from)));
                    }
                });
            }
            ControlFlow::Continue(())
        });
        match visited {
            Ok(()) => Term::list(all),
            Err(_) => Atom::UNDEFINED.into(),
        }
    }

    /// `{Time, [{Pid, Times}]}`, or `false`.
    fn fixed_term(&self, as_timestamp: bool) -> Term {
        let (times, since) = {
            let fixed = self.shared.fixations.fixed.lock();
            let times: Vec<_> = fixed
                .times
                .iter()
                .map(|(who, times)| (*who, *times))
                .collect();
            (times, fixed.since)
        };
        let Some((time, instant)) = since else {
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
        let who = |(who, times)| Term::tuple([self.tables.pid(who).into(), Term::from(times)]);
        let who: Vec<_> = times.into_iter().map(who).collect();
        Term::tuple([time, Term::list(who)])
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

impl Info {
    fn item(&self, item: Atom) -> Option<Term> {
        Some(match item.text() {
            "id" => self.id.clone().into(),
            "decentralized_counters" => self.decentralized_counters.into(),
            "read_concurrency" => self.read_concurrency.into(),
            "write_concurrency" => self.write_concurrency.atom().into(),
            "compressed" => self.compressed.into(),
            "memory" => self.memory.into(),
            "owner" => self.owner.clone().into(),
            "heir" => self.heir.clone().map_or(Atom::NONE.into(), Term::from),
            "name" => self.name.into(),
            "size" => self.size.into(),
            "node" => Atom::NO_NODE.into(),
            "named_table" => self.named.into(),
            "type" => self.kind.atom().into(),
            "keypos" => self.keypos.into(),
            "protection" => self.access.atom().into(),
            "engine" => Term::atom(self.engine).ok()?,
            _ => return None,
        })
    }
}
