//! The patterns that somebody listens to.
//!
//! Every message is compared with all of them. Each [part](super::topic::PARTS) of the channels has
//! its own copy of the list, so that messages of different channels do not meet at one lock. A
//! change only counts: the next message of a part takes the new list.

use super::subscriber::Subscriber;
use super::topic::{Name, PARTS, Topic};
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes that a pattern counts with besides its own.
const EACH: usize = 64;

/// There are as many bytes of patterns as there may be.
pub(super) struct TooMany;

/// The list of a part.
#[derive(Default)]
pub(super) struct Seen {
    /// The number of the change that it is of.
    change: u64,
    pub(super) topics: Arc<[Arc<Topic>]>,
}

pub(super) struct Patterns {
    all: Mutex<All>,
    count: AtomicUsize,
    /// The number of the last change.
    change: AtomicU64,
    seen: [Mutex<Seen>; PARTS],
}

#[derive(Default)]
struct All {
    by_name: BTreeMap<Name, Arc<Topic>>,
    bytes: usize,
    /// The same as a list, if it has been made since the last change.
    list: Option<Arc<[Arc<Topic>]>>,
}

impl Patterns {
    pub(super) fn new() -> Self {
        Self {
            all: Mutex::default(),
            count: AtomicUsize::new(0),
            change: AtomicU64::new(0),
            seen: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// How many different patterns have subscribers.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Bytes of the patterns, each counted with some more.
    pub(super) fn bytes(&self) -> usize {
        lock(&self.all).bytes
    }

    /// The patterns, for messages of a part. While this is held, other messages of it wait, so that
    /// all subscribers see them in one order.
    pub(super) fn seen(&self, part: usize) -> MutexGuard<'_, Seen> {
        let mut seen = lock(&self.seen[part]);
        // A change counts before its command is answered, so a thread that publishes after that
        // sees it.
        if seen.change != self.change.load(Ordering::Acquire) {
            let mut all = lock(&self.all);
            // Under the lock, under which changes are counted.
            seen.change = self.change.load(Ordering::Relaxed);
            let All { by_name, list, .. } = &mut *all;
            let list = list.get_or_insert_with(|| by_name.values().cloned().collect());
            seen.topics = Arc::clone(list);
        }
        seen
    }

    pub(super) fn join(
        &self,
        name: &Name,
        subscriber: &Arc<Subscriber>,
        most: usize,
    ) -> Result<(), TooMany> {
        let mut all = lock(&self.all);
        if let Some(topic) = all.by_name.get(name) {
            topic.add(subscriber);
            return Ok(());
        }
        let bytes = all.bytes + name.len() + EACH;
        if bytes > most {
            return Err(TooMany);
        }
        all.bytes = bytes;
        let topic = Arc::new(Topic::new(Arc::clone(name)));
        topic.add(subscriber);
        all.by_name.insert(Arc::clone(name), topic);
        self.changed(&mut all);
        Ok(())
    }

    pub(super) fn leave(&self, name: &[u8], subscriber: &Subscriber) {
        let mut all = lock(&self.all);
        let topic = all.by_name.get(name);
        if topic.is_some_and(|topic| topic.remove(subscriber)) {
            all.by_name.remove(name);
            all.bytes -= name.len() + EACH;
            self.changed(&mut all);
        }
    }

    fn changed(&self, all: &mut All) {
        all.list = None;
        self.count.store(all.by_name.len(), Ordering::Release);
        self.change.fetch_add(1, Ordering::Release);
    }
}
