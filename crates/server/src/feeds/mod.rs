//! Feeds: what happens to the ranges that clients watch.
//!
//! ```text
//!   log ──> tail: a thread reads each batch once ──> index ──> topics ──> outboxes ──> connections
//!    │                                                            (one for each watched range)
//!    └────> a watcher that is behind reads for itself, on its connection's thread apart ──┘
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `tail` | what is durable, given to all who have come so far |
//! | `index` | which ranges an event concerns |
//! | `watcher` | one client's watches, and their reading of the log |
//! | `frames` | events as they are sent |
//!
//! What holds:
//!
//! 1. A watcher either reads for itself or is a member of its topic, under the lock of the tail. It
//!    becomes one when it has come as far as the tail, or further, and is then given what comes
//!    behind its own place only: it misses nothing, and gets nothing twice.
//! 2. For a watcher waits about `--watch-buffer` in memory, one batch or value more at most. A
//!    member for which more waits reads for itself, from the batch on that it was not given.
//! 3. An event is written once for all who watch the same range, of both protocols.
//! 4. A client that sends a command after it could know of an event gets the event before the
//!    reply: what waits is sent before a command is read.
//! 5. A watcher does not keep the log from being truncated. If the log has not what it needs next,
//!    the watch ends with a message that says so.

mod frames;
mod index;
mod tail;
#[cfg(test)]
mod tests;
mod watcher;

use crate::clients::Client;
use crate::limits::FeedLimits;
use crate::lock::lock;
use crate::outbox::Outbox;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tail::Tail;
use tremula_store::{Since, Span, Store, WatchError};
use watcher::{Group, Watcher};
pub(crate) use watcher::{Watches, text};

/// Bytes that a watch counts with besides its bounds: its places in the lists, and what the
/// allocator adds.
const EACH: usize = 500;

/// How often the bounds of a watch are kept.
const COPIES: usize = 3;

/// A range as a client has named it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) database: usize,
    /// The bounds as they were given.
    pub(crate) start: Box<[u8]>,
    pub(crate) end: Box<[u8]>,
    pub(crate) span: Span,
    /// Whether what was before each change is shown.
    pub(crate) has_previous: bool,
}

impl Name {
    /// What a watch of it counts as.
    fn bytes(&self) -> usize {
        COPIES * (self.start.len() + self.end.len() + self.span.bytes()) + EACH
    }
}

/// Why a watch does not begin.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The client watches this range already, maybe of another database.
    Twice,
    /// The client has as many as it may have.
    Client(usize),
    /// There are as many as there may be.
    All(usize),
    /// Their bounds take as many bytes as they may.
    Bytes(usize),
    /// The log cannot give what is asked for.
    Log(WatchError),
}

/// All watches of a server.
pub(crate) struct Feeds {
    store: Arc<Store>,
    /// Bytes that may wait for a watcher.
    buffer: usize,
    tail: Mutex<Tail>,
    groups: Mutex<BTreeMap<u64, Arc<Group>>>,
    /// Watches of all clients, and their bytes.
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Those that read for themselves.
    behind: AtomicUsize,
    /// How often one that was given everything has fallen behind.
    fallen: AtomicU64,
    /// Events that were given out, each counted for every watcher.
    events: AtomicU64,
    /// Watches that have ended because the log did not have what came next.
    lost: AtomicU64,
}

impl Feeds {
    pub(crate) fn new(store: &Arc<Store>, limits: &FeedLimits) -> Self {
        Self {
            store: Arc::clone(store),
            buffer: limits.watch_buffer.0,
            tail: Mutex::default(),
            groups: Mutex::default(),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            behind: AtomicUsize::new(0),
            fallen: AtomicU64::new(0),
            events: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Lets the client of an outbox watch ranges.
    pub(crate) fn watches(self: &Arc<Self>, outbox: Arc<Outbox>) -> Watches {
        let group = Arc::new(Group::new(outbox));
        lock(&self.groups).insert(group.id(), Arc::clone(&group));
        Watches::new(Arc::clone(self), group)
    }

    fn take_place(&self, name: &Name, limits: &FeedLimits) -> Result<(), Refused> {
        let bytes = name.bytes();
        let count = self.count.fetch_add(1, Relaxed) + 1;
        let held = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        let refused = if count > limits.max_watches {
            Refused::All(limits.max_watches)
        } else if held > limits.max_watch_bytes.0 {
            Refused::Bytes(limits.max_watch_bytes.0)
        } else {
            return Ok(());
        };
        self.give_place_back(name);
        Err(refused)
    }

    fn give_place_back(&self, name: &Name) {
        self.count.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(name.bytes(), Relaxed);
    }

    /// Begins a watch, whose place was taken.
    fn begin(
        self: &Arc<Self>,
        name: Name,
        since: Since,
        group: &Arc<Group>,
    ) -> Result<Arc<Watcher>, Refused> {
        let follower = self.store.follower(name.database, name.span.clone(), since);
        let follower = follower.map_err(Refused::Log)?;
        let watcher = Arc::new(Watcher::new(name, follower, group));
        self.note_behind(&watcher, true);
        Ok(watcher)
    }

    /// Notes that a watcher reads for itself, or no longer.
    fn note_behind(&self, watcher: &Watcher, is_behind: bool) {
        if is_behind {
            self.behind.fetch_add(1, Relaxed);
            watcher.group.reading.fetch_add(1, Relaxed);
        } else {
            self.behind.fetch_sub(1, Relaxed);
            watcher.group.reading.fetch_sub(1, Relaxed);
        }
    }

    /// Watches of all clients, and what they count as.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.count.load(Relaxed), self.bytes.load(Relaxed))
    }

    /// How many clients watch.
    pub(crate) fn clients(&self) -> usize {
        lock(&self.groups).len()
    }

    /// Watches that read the log for themselves.
    pub(crate) fn behind(&self) -> usize {
        self.behind.load(Relaxed)
    }

    /// How often a watch has fallen behind.
    pub(crate) fn fallen(&self) -> u64 {
        self.fallen.load(Relaxed)
    }

    /// Events that were given out, each counted for every watcher.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    /// Watches that have ended because the log did not have what came next.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// The clients that watch a range which does not pass.
    pub(crate) fn clients_beyond(
        &self,
        passes: impl Fn(&Client, &Name) -> bool,
    ) -> Vec<Arc<Client>> {
        let groups: Vec<_> = lock(&self.groups).values().cloned().collect();
        let beyond = groups.into_iter().filter(|group| {
            let watchers = lock(&group.watchers);
            let mut watchers = watchers.iter();
            !watchers.all(|watcher| passes(group.outbox.client(), &watcher.name))
        });
        beyond
            .map(|group| Arc::clone(group.outbox.client()))
            .collect()
    }
}
