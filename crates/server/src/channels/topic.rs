//! Channels and patterns, each with those who listen to it.

use super::subscriber::Subscriber;
use crate::clients::Client;
use crate::lock::lock;
use crate::outbox::{Bounds, Piece};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tremula_store::Value;

/// The name of a channel, or a pattern.
pub(super) type Name = Arc<[u8]>;

/// A channel or a pattern.
pub(super) struct Topic {
    pub(super) name: Name,
    /// By the numbers of their clients, which grow: most come in at the end.
    subscribers: Mutex<Vec<Arc<Subscriber>>>,
}

impl Topic {
    pub(super) fn new(name: Name) -> Self {
        Self {
            name,
            subscribers: Mutex::default(),
        }
    }

    pub(super) fn add(&self, subscriber: &Arc<Subscriber>) {
        let mut subscribers = lock(&self.subscribers);
        let at = subscribers.partition_point(|one| one.id() < subscriber.id());
        subscribers.insert(at, Arc::clone(subscriber));
    }

    /// Removes a subscriber. Returns whether nobody is left.
    pub(super) fn remove(&self, subscriber: &Subscriber) -> bool {
        let mut subscribers = lock(&self.subscribers);
        if let Ok(at) = subscribers.binary_search_by_key(&subscriber.id(), |one| one.id()) {
            subscribers.remove(at);
        }
        subscribers.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.subscribers).len()
    }

    /// Sends a message to all, one after another, and returns how many these are. Other messages
    /// of the topic wait, so that all subscribers see them in one order.
    pub(super) fn send(
        &self,
        message: &Value,
        bounds: Bounds,
        is_slow: &mut dyn FnMut(&Client),
    ) -> usize {
        let subscribers = lock(&self.subscribers);
        for subscriber in subscribers.iter() {
            let outbox = &subscriber.outbox;
            if !outbox.push(Piece::Message(message.clone()), bounds) {
                is_slow(outbox.client());
            }
        }
        subscribers.len()
    }
}

/// Parts of the table of channels, each with a lock: enough that threads seldom meet.
pub(super) const PARTS: usize = 64;

type Part = Mutex<HashMap<Name, Arc<Topic>>>;

/// Channels by their names.
pub(super) struct Topics {
    hasher: RandomState,
    parts: [Part; PARTS],
    count: AtomicUsize,
}

impl Topics {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            parts: std::array::from_fn(|_| Part::default()),
            count: AtomicUsize::new(0),
        }
    }

    /// The part that a name belongs to.
    pub(super) fn part_of(&self, name: &[u8]) -> usize {
        // Below the number of parts.
        (self.hasher.hash_one(name) % PARTS as u64) as usize
    }

    /// How many channels have subscribers.
    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    pub(super) fn get(&self, part: usize, name: &[u8]) -> Option<Arc<Topic>> {
        lock(&self.parts[part]).get(name).cloned()
    }

    pub(super) fn join(&self, name: &Name, subscriber: &Arc<Subscriber>) {
        let mut part = lock(&self.parts[self.part_of(name)]);
        let topic = part.entry(Arc::clone(name)).or_insert_with(|| {
            self.count.fetch_add(1, Relaxed);
            Arc::new(Topic::new(Arc::clone(name)))
        });
        // Under the lock of the part, so that the topic is not removed meanwhile.
        topic.add(subscriber);
    }

    pub(super) fn leave(&self, name: &[u8], subscriber: &Subscriber) {
        let mut part = lock(&self.parts[self.part_of(name)]);
        if part.get(name).is_some_and(|topic| topic.remove(subscriber)) {
            part.remove(name);
            self.count.fetch_sub(1, Relaxed);
        }
    }

    /// Shows the name of every channel.
    pub(super) fn each(&self, show: &mut dyn FnMut(&[u8])) {
        for part in &self.parts {
            lock(part).keys().for_each(|name| show(name));
        }
    }
}
