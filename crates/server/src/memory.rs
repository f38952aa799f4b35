//! What commands do when memory is short, and how freed memory goes back to the system.
//!
//! # The limit
//!
//! A command that may need memory (Redis's flag `denyoom`) runs only if what is used and what the
//! command needs by its arguments are within the limit. Otherwise keys are evicted, if the policy
//! says so; and else the command gets `-OOM`, before it changes anything. All other commands run.
//! Their replies may pass the limit. If they pass it by more than a little, keys are evicted, and
//! then the clients with the largest buffers are closed.
//!
//! A reply that waits for its reader shares the values that it shows, so these stay in memory after
//! their keys are gone. While commands are refused, a client that takes nothing of its replies is
//! closed after a time, however short they are; else it could keep others from storing for ever.
//!
//! # Giving back
//!
//! Memory that is freed stays where it was: nodes wait in an index until the next operations there
//! find that nobody reads them any more, and the allocator keeps pages for the thread that had
//! them. So every thread of the server [tidies up](keep_tidy) after times of work, when there is
//! little to do.

use crate::commands::Command;
use crate::limits::MemoryLimits;
use crate::resp::{Arguments, number};
use crate::server::Shared;
use crate::shelf;
use crate::turn::Turn;
use crate::watch::Event;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;
use tremula_store::Key;
use tremula_sync::counting_allocator::{give_back, pass_on, turnover, used_bytes};

/// Up to this length a request is always read, so that keys can be read and deleted.
const SHORT_REQUEST: usize = 64 << 10;

/// What one step of an index may need besides keys and values: a leaf that splits, a larger array.
const STEP: u64 = 16 << 10;

/// What an argument takes besides its bytes once it is a key, a value or a message.
const HEAD: u64 = 64;

/// What a term may take for each byte of its text or external form: `1,` is one element of a list.
pub(crate) const TERM_FACTOR: u64 = 16;

/// The length of the value that `APPEND` and `SETRANGE` copy is looked up only if there is no room
/// for this number of the longest values.
const FAR: u64 = 16;

/// A command that needs at least this much promises to take it, so that commands that run side by
/// side do not count on the same memory.
const PROMISED_FROM: u64 = 1 << 20;

/// The part of the limit that the buffers of clients may always have, on top of what is stored.
const PART_OF_BUFFERS: u64 = 32;

/// The least of it: some pipelines with their replies.
const LEAST_OF_BUFFERS: u64 = 1 << 20;

/// The limit of all memory.
pub(crate) struct Memory {
    /// `u64::MAX` for no limit.
    limit: AtomicU64,
    /// How often `MEMORY PURGE` asked the threads to give back what they can.
    purges: AtomicU64,
    /// What running commands have promised to take.
    promised: Arc<AtomicU64>,
    /// Whether something was refused lately.
    is_short: AtomicBool,
    /// Whether the limit is another than before, and more may be used.
    is_lowered: AtomicBool,
}

/// Whether there is room for what a client wants.
pub(crate) enum Room {
    /// There is, and the promise lasts until the command ends.
    Enough(Option<Promise>),
    /// Keys are being evicted. The client's turn is over, and it asks again in its next one.
    NotYet,
    /// No room is left, and none can be made.
    Short,
}

/// A command's promise to take memory, which it ends by dropping it. What the command has taken
/// before counts twice, which errs on the side of the limit.
pub(crate) struct Promise {
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Relaxed);
    }
}

/// What came of making room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Enough,
    /// The turn is over.
    Some,
    Nothing,
}

impl Memory {
    pub(crate) fn new(limits: &MemoryLimits) -> Self {
        Self {
            limit: AtomicU64::new(limits.limit().unwrap_or(u64::MAX)),
            purges: AtomicU64::new(0),
            promised: Arc::default(),
            is_short: AtomicBool::new(false),
            is_lowered: AtomicBool::new(false),
        }
    }

    /// The limit, if there is one.
    pub(crate) fn limit(&self) -> Option<u64> {
        Some(self.bound()).filter(|limit| *limit != u64::MAX)
    }

    /// Changes the limit; 0 is none. If more is used, refusals begin with the next command, and
    /// evictions at the keeper's next look at the latest.
    pub(crate) fn set_limit(&self, limit: u64) {
        let limit = if limit == 0 { u64::MAX } else { limit };
        let before = self.limit.swap(limit, Relaxed);
        if limit < before {
            self.is_lowered.store(true, Relaxed);
        }
    }

    /// Evicts keys for a turn if the limit has been lowered. Returns whether there are more to
    /// evict.
    pub(crate) fn shrink(&self, server: &Shared) -> bool {
        if !self.is_lowered.swap(false, Relaxed) {
            return false;
        }
        let mut turn = Turn::begin(server.limits.turn.time.0);
        let is_more = matches!(
            self.make_room(server, 0, self.bound(), &mut turn),
            Made::Some
        );
        if is_more {
            self.is_lowered.store(true, Relaxed);
        }
        is_more
    }

    /// The limit; `u64::MAX` is no limit.
    #[inline]
    fn bound(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// What the buffers of clients may have beyond the limit.
    fn of_buffers(&self) -> u64 {
        let limit = self.limit();
        limit.map_or(0, |limit| (limit / PART_OF_BUFFERS).max(LEAST_OF_BUFFERS))
    }

    /// Lets every thread give back to the system what it can, at its next look.
    pub(crate) fn purge(&self) {
        self.purges.fetch_add(1, Relaxed);
    }

    /// Whether a command may run. Also notes which key it uses, if evictions depend on that. Of a
    /// command with several keys this is left to the command.
    ///
    /// `promised` is what the connection keeps of an attempt for which there was no room yet.
    #[inline]
    pub(crate) fn admit(
        &self,
        server: &Shared,
        (database, promised): (usize, &mut Option<Promise>),
        turn: &mut Turn,
        command: &Command,
        arguments: Arguments<'_>,
        waiting: Option<usize>,
    ) -> Room {
        let limit = self.bound();
        if limit == u64::MAX {
            // Evictions may begin later, by what is known of accesses then.
            if command.has_one_key() {
                note_access(server, database, arguments.get(1));
            }
            return Room::Enough(None);
        }
        if command.has_one_key() {
            note_access(server, database, arguments.get(1));
        }
        self.relieve(server, turn);
        let need = match waiting {
            Some(bytes) => bytes as u64 + STEP,
            None if command.needs_memory() => self.need(server, database, command, arguments),
            None => return Room::Enough(None),
        };
        let promise = promised.take().or_else(|| self.promise(need));
        let more = if promise.is_some() { 0 } else { need };
        match self.make_room(server, more, limit, turn) {
            Made::Enough => Room::Enough(promise),
            Made::Some => {
                *promised = promise;
                Room::NotYet
            }
            Made::Nothing => {
                self.refuse();
                Room::Short
            }
        }
    }

    /// Whether a command that has run in several turns may go on. One that gathers what it answers
    /// with, or stores, ends when memory is short; one that frees or counts goes on.
    #[inline]
    pub(crate) fn lets_go_on(&self, server: &Shared, turn: &mut Turn, command: &Command) -> bool {
        if used_bytes() <= self.most() {
            return true;
        }
        self.relieve(server, turn);
        let is_harmless = command.only_frees() || command.only_counts();
        let goes_on = used_bytes() <= self.most() || is_harmless;
        if !goes_on {
            self.refuse();
        }
        goes_on
    }

    /// Whether the next part of a request may be read, of which `held` bytes have arrived and
    /// `missing` are known to come.
    #[inline]
    pub(crate) fn admit_input(
        &self,
        server: &Shared,
        turn: &mut Turn,
        held: usize,
        missing: usize,
    ) -> Room {
        let all = held.saturating_add(missing);
        if self.bound() == u64::MAX || all <= SHORT_REQUEST {
            return Room::Enough(None);
        }
        // Evictions keep pace with what arrives. Without them there is either room for all of it
        // now or there will be none. A buffer that grows is copied, and then has twice the bytes.
        let need = match server.store.evictor() {
            Some(_) if all as u64 <= self.bound() => held,
            _ => all,
        };
        match self.make_room(server, need as u64, self.most(), turn) {
            Made::Enough => Room::Enough(None),
            Made::Some => Room::NotYet,
            Made::Nothing => {
                self.refuse();
                Room::Short
            }
        }
    }

    /// Brings the memory back within its limit, if replies have passed it: evicts keys, and closes
    /// the clients that hold most.
    pub(crate) fn relieve(&self, server: &Shared, turn: &mut Turn) {
        if used_bytes() <= self.most() {
            return;
        }
        match self.make_room(server, 0, self.bound(), turn) {
            Made::Enough => return,
            // Evictions go on in the next turn, unless replies grow faster.
            Made::Some if used_bytes() <= self.most().saturating_add(self.of_buffers()) => return,
            Made::Some | Made::Nothing => (),
        }
        server.clients.close_largest(|held| {
            let excess = used_bytes().saturating_sub(self.bound());
            let excess = usize::try_from(excess).unwrap_or(usize::MAX);
            // Closing clients helps only as far as it is they who hold the memory.
            let spared = usize::try_from(self.of_buffers()).unwrap_or(usize::MAX);
            excess
                .saturating_sub(held.coming_back)
                .min(held.staying.saturating_sub(spared))
        });
    }

    /// The limit of everything with the buffers of clients.
    fn most(&self) -> u64 {
        self.bound().saturating_add(self.of_buffers())
    }

    fn promise(&self, bytes: u64) -> Option<Promise> {
        (bytes >= PROMISED_FROM).then(|| {
            self.promised.fetch_add(bytes, Relaxed);
            Promise {
                all: Arc::clone(&self.promised),
                bytes,
            }
        })
    }

    /// Evicts keys until `need` more bytes are within `limit`, or the turn is over.
    fn make_room(&self, server: &Shared, need: u64, limit: u64, turn: &mut Turn) -> Made {
        if self.fits(need, limit) {
            return Made::Enough;
        }
        if shelf::clear(&server.clients) && self.fits(need, limit) {
            return Made::Enough;
        }
        let Some(long) = server.live.long_event() else {
            return self.evict_until(server, need, limit, turn);
        };
        let begun = Instant::now();
        let made = self.evict_until(server, need, limit, turn);
        let took = begun.elapsed();
        if took >= long {
            server.latencies.add(Event::Eviction, took);
        }
        made
    }

    fn evict_until(&self, server: &Shared, need: u64, limit: u64, turn: &mut Turn) -> Made {
        loop {
            if self.fits(need, limit) {
                return Made::Enough;
            }
            if need > limit || !server.store.evict_one() {
                return Made::Nothing;
            }
            if turn.look() {
                return Made::Some;
            }
        }
    }

    /// Whether `need` more bytes are within `limit`.
    fn fits(&self, need: u64, limit: u64) -> bool {
        let fits = || {
            used_bytes()
                .saturating_add(self.promised.load(Relaxed))
                .saturating_add(need)
                <= limit
        };
        fits() || {
            pass_on();
            fits()
        }
    }

    /// The bytes that a command may need, as far as its arguments tell.
    fn need(
        &self,
        server: &Shared,
        database: usize,
        command: &Command,
        arguments: Arguments<'_>,
    ) -> u64 {
        let bytes: usize = arguments.skip(1).map(<[u8]>::len).sum();
        let given = bytes as u64 + HEAD * arguments.len() as u64;
        let longest = server.live.max_argument.bytes();
        // The length of the value that is copied. Values in the cache are not.
        let copied = || {
            if self.fits(FAR * longest as u64, self.bound()) {
                return 0;
            }
            let mut length = 0;
            let key = Key::from(arguments.get(1));
            let database = server.store.database(database);
            database.get_with(&key, &mut |value| length = value.len());
            length as u64
        };
        let need = match command.full_name {
            "append" => given.saturating_add(copied()),
            "setrange" => {
                let offset = number::parse(arguments.get(2));
                let offset = offset.and_then(|at| usize::try_from(at).ok());
                // A position that is no number, or too far, gets an error of its own.
                let offset = offset.filter(|at| *at <= longest).unwrap_or(0);
                given.saturating_add(copied().max(offset as u64))
            }
            _ if command.takes_terms() => given.saturating_mul(TERM_FACTOR),
            _ => given,
        };
        need.saturating_add(STEP)
    }

    /// Notes that something was refused for want of memory.
    fn refuse(&self) {
        self.is_short.store(true, Relaxed);
    }

    /// Whether something was refused for want of memory since the last call.
    pub(crate) fn was_short(&self) -> bool {
        self.is_short.swap(false, Relaxed)
    }

    /// Whether there is room for `need` more bytes now.
    pub(crate) fn has_room(&self, need: u64) -> bool {
        let limit = self.bound();
        limit == u64::MAX || self.fits(need, limit)
    }
}

/// Notes that a key is used, if evictions depend on that.
#[inline]
pub(crate) fn note_access(server: &Shared, database: usize, key: &[u8]) {
    if let Some(evictor) = server.store.evictor()
        && evictor.wants_accesses()
    {
        evictor.note_access(database, key);
    }
}

/// How often a thread looks whether it should tidy up.
const TIDY_TICK: Duration = Duration::from_secs(1);

/// After this many quiet ticks nothing more can be given back: what one thread frees, another may
/// keep, and memory in an index needs two looks.
const QUIET_TICKS: u32 = 4;

/// Commands of all clients in a tick up to which the server counts as quiet. Monitoring asks this
/// often.
const QUIET: u64 = 1000;

/// Gives memory back when there is little to do, for as long as the server runs. Each thread that
/// holds memory runs this for itself, and for its thread apart; `tidies_store` on one of them,
/// which also looks after the databases.
pub(crate) async fn keep_tidy(server: &Arc<Shared>, tidies_store: bool) {
    let mut ticks = tokio::time::interval(TIDY_TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut commands, mut turned_over, mut purges) = (0, 0, 0);
    let mut quiet_ticks = QUIET_TICKS;
    loop {
        ticks.tick().await;
        pass_on();
        shelf::look(&server.clients);
        let now = server.figures.stripes.sum(|stripe| &stripe.requests);
        let ran = now - commands;
        commands = now;
        // Also without commands: a connection that ends frees its buffers.
        let now = turnover();
        if now - turned_over > NOTICEABLE {
            quiet_ticks = 0;
        }
        turned_over = now;
        let now = server.memory.purges.load(Relaxed);
        let is_asked = now != purges;
        purges = now;
        if tidies_store {
            let turn = &mut Turn::begin(server.limits.turn.time.0);
            server.memory.relieve(server, turn);
        }
        if !is_asked && (ran > QUIET || quiet_ticks == QUIET_TICKS) {
            continue;
        }
        quiet_ticks = (quiet_ticks + 1).min(QUIET_TICKS);
        give_back();
        let server = Arc::clone(server);
        // Not on this thread, because freeing what databases have unlinked may take long. The
        // thread apart also has memory of its own, which it has freed.
        let tidied = tokio::task::spawn_blocking(move || {
            if tidies_store {
                server.store.tidy(give_back);
            }
            give_back();
        });
        // Only a panic would be an error; then the next tick comes too.
        let _ = tidied.await;
    }
}

/// The bytes allocated and freed in a tick that make it worth tidying up.
const NOTICEABLE: u64 = 256 << 10;
