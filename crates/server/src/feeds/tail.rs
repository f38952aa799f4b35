//! The tail of the log: what has just become durable, given to all who have come so far.

use super::index::Index;
use super::watcher::{Place, Watcher};
use super::{Feeds, Name, frames};
use crate::lock::lock;
use crate::outbox::{Messages, Piece};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, Builder};
use tremula_store::{DATABASES, Event, Events, Follower, Sequence, Stopped};

/// Bytes of the log that are given out under one lock: a writer's batch, some milliseconds.
const AT_ONCE: usize = if cfg!(test) { 1 << 10 } else { 256 << 10 };

/// What is known of the tail.
#[derive(Default)]
pub(super) struct Tail {
    /// What is given out next, as long as the thread runs.
    next: Sequence,
    /// Whether the thread runs, or is about to.
    is_running: bool,
    /// The watched ranges that have members; a free place is `None`.
    topics: Vec<Option<Topic>>,
    free: Vec<usize>,
    by_name: BTreeMap<Arc<Name>, usize>,
    /// For each database the ranges of its topics; made again when they have changed.
    indexes: Vec<Option<Index>>,
    /// The topics that the batch at hand concerns.
    touched: Vec<usize>,
}

/// Those who watch one range.
struct Topic {
    name: Arc<Name>,
    head: Box<[u8]>,
    members: Vec<Member>,
    /// What the batch at hand has for them.
    messages: Messages,
    /// The sequence of each message.
    sequences: Vec<Sequence>,
}

struct Member {
    watcher: Arc<Watcher>,
    /// What was before it, it has seen already.
    from: Sequence,
}

impl Tail {
    /// Begins where a watcher is that has come to the end of the log, unless the thread runs.
    /// Returns what the thread is to begin with, if it is to be started.
    pub(super) fn start(&mut self, next: Sequence, durable: Sequence) -> Option<Sequence> {
        if self.is_running {
            return None;
        }
        self.is_running = true;
        self.next = next.min(durable.plus(1));
        Some(self.next)
    }

    /// Makes a watcher a member of its topic.
    fn join(&mut self, watcher: &Arc<Watcher>, from: Sequence) {
        let name = &watcher.name;
        let at = match self.by_name.get(&**name) {
            Some(at) => *at,
            None => {
                let topic = Topic {
                    name: Arc::clone(name),
                    head: frames::head(&name.start, &name.end),
                    members: Vec::new(),
                    messages: Messages::default(),
                    sequences: Vec::new(),
                };
                self.indexes.resize_with(DATABASES, || None);
                self.indexes[name.database] = None;
                let at = self.free.pop().unwrap_or(self.topics.len());
                if at == self.topics.len() {
                    self.topics.push(None);
                }
                self.topics[at] = Some(topic);
                self.by_name.insert(Arc::clone(name), at);
                at
            }
        };
        if let Some(topic) = &mut self.topics[at] {
            let watcher = Arc::clone(watcher);
            topic.members.push(Member { watcher, from });
        }
    }

    /// Takes a member out. Returns what it is given next.
    fn leave(&mut self, watcher: &Arc<Watcher>) -> Option<Sequence> {
        let at = *self.by_name.get(&*watcher.name)?;
        let topic = self.topics[at].as_mut()?;
        let members = &mut topic.members;
        let place = members
            .iter()
            .position(|member| Arc::ptr_eq(&member.watcher, watcher))?;
        let member = members.swap_remove(place);
        if members.is_empty() {
            self.remove(at);
        }
        Some(member.from.max(self.next))
    }

    fn remove(&mut self, at: usize) {
        if let Some(topic) = self.topics[at].take() {
            self.free.push(at);
            self.indexes[topic.name.database] = None;
            self.by_name.remove(&topic.name);
        }
    }

    /// Notes an event for the topics that it concerns.
    fn note(&mut self, database: usize, event: &Event<'_>) {
        let Self {
            topics,
            indexes,
            by_name,
            touched,
            ..
        } = self;
        let Some(slot) = indexes.get_mut(database) else {
            return;
        };
        let index = slot.get_or_insert_with(|| {
            let here = by_name.iter().filter(|(name, _)| name.database == database);
            Index::new(here.map(|(name, at)| (name.span.clone(), *at)))
        });
        index.visit(event, &mut |at| {
            let Some(topic) = &mut topics[at] else { return };
            let Some(event) = event.within(&topic.name.span) else {
                return;
            };
            if topic.sequences.is_empty() {
                touched.push(at);
            }
            topic.sequences.push(event.sequence);
            frames::write(
                &topic.head,
                &event,
                topic.name.has_previous,
                &mut topic.messages,
            );
        });
    }

    /// Gives what the batch that began with a sequence has to the members. Those who do not keep up
    /// leave, and read for themselves. Returns how many events were given.
    fn give(&mut self, feeds: &Feeds, began: Sequence) -> u64 {
        let mut given = 0;
        for at in mem::take(&mut self.touched) {
            let Some(topic) = &mut self.topics[at] else {
                continue;
            };
            let sequences = mem::take(&mut topic.sequences);
            let messages = Arc::new(mem::take(&mut topic.messages));
            topic.members.retain(|member| {
                let seen = sequences.partition_point(|sequence| *sequence < member.from);
                if seen == sequences.len() {
                    return true;
                }
                let piece = match seen {
                    0 => Arc::clone(&messages),
                    seen => Arc::new(messages.from(seen)),
                };
                let outbox = &member.watcher.group.outbox;
                if outbox.offer(Piece::Messages(piece), feeds.buffer) {
                    given += (sequences.len() - seen) as u64;
                    return true;
                }
                fall_behind(feeds, &member.watcher, began.max(member.from));
                false
            });
            if topic.members.is_empty() {
                self.remove(at);
            }
        }
        given
    }
}

/// Lets a member that leaves read for itself, from a sequence on.
fn fall_behind(feeds: &Feeds, watcher: &Watcher, from: Sequence) {
    let mut place = lock(&watcher.place);
    if let Place::Tail(follower) = &mut *place
        && let Some(mut follower) = follower.take()
    {
        follower.go_to(from);
        *place = Place::Reads(Some(follower));
        feeds.note_behind(watcher, true);
        feeds.fallen.fetch_add(1, Relaxed);
        // The connection may have sent all that waited, and wait itself.
        watcher.group.outbox.call();
    }
}

impl Feeds {
    /// Lets a watcher that has come as far as the tail be given what comes next. Returns its
    /// follower if it has not come so far.
    ///
    /// # Errors
    ///
    /// The log has stopped: nothing comes any more.
    pub(super) fn join(
        self: &Arc<Self>,
        watcher: &Arc<Watcher>,
        follower: Follower,
    ) -> Result<Option<Follower>, Stopped> {
        let next = follower.next_sequence();
        let Some(log) = self.store.log() else {
            return Ok(Some(follower));
        };
        if let Some(stopped) = log.watermark().stopped() {
            return Err(stopped);
        }
        let mut tail = lock(&self.tail);
        if let Some(first) = tail.start(next, log.durable()) {
            let feeds = Arc::clone(self);
            let thread = Builder::new().name("tremula-feeds".to_owned());
            if let Err(error) = thread.spawn(move || feeds.run(first)) {
                // It reads for itself, and asks again.
                tracing::warn!("watchers read for themselves: no thread: {error}");
                tail.is_running = false;
                return Ok(Some(follower));
            }
        }
        if next < tail.next {
            return Ok(Some(follower));
        }
        tail.join(watcher, next);
        *lock(&watcher.place) = Place::Tail(Some(follower));
        self.note_behind(watcher, false);
        Ok(None)
    }

    /// Ends a watch wherever it is.
    pub(super) fn leave(&self, watcher: &Arc<Watcher>) {
        let mut tail = lock(&self.tail);
        tail.leave(watcher);
        let place = mem::replace(&mut *lock(&watcher.place), Place::Ended);
        if let Place::Reads(_) = place {
            self.note_behind(watcher, false);
        }
        drop(tail);
    }

    /// What a member is given next; `None` if the watcher is none.
    pub(super) fn next_of(&self, watcher: &Arc<Watcher>) -> Option<Sequence> {
        let tail = lock(&self.tail);
        let topic = tail.topics[*tail.by_name.get(&*watcher.name)?].as_ref()?;
        let mut members = topic.members.iter();
        let member = members.find(|member| Arc::ptr_eq(&member.watcher, watcher))?;
        Some(member.from.max(tail.next))
    }

    /// Gives out what becomes durable, as long as there is a member.
    fn run(self: Arc<Self>, from: Sequence) {
        let end = |why: String| {
            let mut tail = lock(&self.tail);
            tracing::debug!("nothing is given out to watchers any more: {why}");
            tail.is_running = false;
            let next = tail.next;
            let all: Vec<usize> = tail.by_name.values().copied().collect();
            for at in all {
                for member in tail.topics[at].iter().flat_map(|topic| &topic.members) {
                    fall_behind(&self, &member.watcher, next.max(member.from));
                }
                tail.remove(at);
            }
        };
        let (Some(log), Ok(mut events)) = (self.store.log(), self.store.events(from)) else {
            return end("there is no log".to_owned());
        };
        loop {
            if let Err(stopped) = log.wait(events.awaited()) {
                return end(stopped.to_string());
            }
            match self.give_batch(&mut events) {
                Ok(true) => (),
                Ok(false) => return,
                // Each of them finds it out by itself.
                Err(error) => return end(error),
            }
            // A thread that waits for the lock gets it.
            thread::yield_now();
        }
    }

    /// Returns whether there are members.
    pub(super) fn give_batch(&self, events: &mut Events) -> Result<bool, String> {
        let mut tail = lock(&self.tail);
        if tail.by_name.is_empty() {
            tail.is_running = false;
            return Ok(false);
        }
        let (began, last) = (events.next_sequence(), Sequence::new(u64::MAX));
        let read = events.read(&self.store, AT_ONCE, last, &mut |database, event| {
            tail.note(database, &event);
        });
        let given = tail.give(self, began);
        self.events.fetch_add(given, Relaxed);
        tail.next = events.next_sequence();
        read.map(|_| true).map_err(|error| error.to_string())
    }
}
