//! The urgent queue, the monitors, and the senders that wait for the mailbox's end: parts that few
//! mailboxes need, allocated on first use.

use std::collections::VecDeque;
use std::mem;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Arc, Mutex, Waiter};

/// What to do when the mailbox goes down.
pub(crate) type Notice = Box<dyn FnOnce() + Send>;

/// The parts of one mailbox.
pub(crate) struct Extras<T> {
    urgent: Mutex<Urgent<T>>,
    urgent_sends: AtomicU64,
    monitors: Arc<MonitorList>,
    closing: Registry<Waiter>,
}

struct Urgent<T> {
    queue: VecDeque<T>,
    closed: bool,
}

/// The monitors to notify when the mailbox goes down.
pub(crate) type MonitorList = Registry<Notice>;

/// Those that wait for one event, by number, until the event closes the registry.
///
/// Both adding and closing take the lock, so one of them is first. If the addition is first, the
/// close finds the entry. If the close is first, the addition fails, and its caller knows that the
/// event has come. So no entry is forgotten.
pub(crate) struct Registry<E>(Mutex<Entries<E>>);

struct Entries<E> {
    /// In the order of their numbers.
    entries: Vec<(u64, E)>,
    next: u64,
    closed: bool,
}

impl<T> Extras<T> {
    /// The extras of a mailbox. A `closed` one accepts no urgent messages, and nothing waits until
    /// it closes; but it can be monitored until it goes down.
    pub(crate) fn new(closed: bool) -> Self {
        Self {
            urgent: Mutex::new(Urgent {
                queue: VecDeque::new(),
                closed,
            }),
            urgent_sends: AtomicU64::new(0),
            monitors: Arc::new(Registry::new(false)),
            closing: Registry::new(closed),
        }
    }

    /// Appends an urgent message, and calls `announce` before another thread can append.
    pub(crate) fn send_urgent<R>(&self, message: T, announce: impl FnOnce() -> R) -> Result<R, T> {
        let mut urgent = self.urgent.lock();
        if urgent.closed {
            return Err(message);
        }
        urgent.queue.push_back(message);
        // Relaxed: a count, which orders nothing.
        self.urgent_sends.fetch_add(1, Ordering::Relaxed);
        Ok(announce())
    }

    /// Moves the urgent messages to the end of `into`.
    pub(crate) fn collect_urgent(&self, into: &mut VecDeque<T>) {
        let mut urgent = self.urgent.lock();
        if into.is_empty() {
            mem::swap(into, &mut urgent.queue);
        } else {
            into.append(&mut urgent.queue);
        }
    }

    /// Frees the memory kept for further urgent messages, if there are none now.
    pub(crate) fn free_memory(&self) {
        let mut urgent = self.urgent.lock();
        if urgent.queue.is_empty() {
            urgent.queue = VecDeque::new();
        }
    }

    pub(crate) fn urgent_sends(&self) -> u64 {
        self.urgent_sends.load(Ordering::Relaxed)
    }

    pub(crate) const fn monitors(&self) -> &Arc<MonitorList> {
        &self.monitors
    }

    /// The senders that wait until the mailbox is closed.
    pub(crate) const fn closing(&self) -> &Registry<Waiter> {
        &self.closing
    }

    /// Closes the urgent queue. Its messages go to the end of `into`.
    pub(crate) fn close_urgent(&self, into: &mut VecDeque<T>) {
        let mut urgent = self.urgent.lock();
        urgent.closed = true;
        into.append(&mut urgent.queue);
        urgent.queue = VecDeque::new(); // weak senders may keep the extras for long
    }
}

impl<E> Registry<E> {
    fn new(closed: bool) -> Self {
        Self(Mutex::new(Entries {
            entries: Vec::new(),
            next: 0,
            closed,
        }))
    }

    /// Adds an entry and returns its number. Returns the entry if the registry is closed.
    pub(crate) fn add(&self, entry: E) -> Result<u64, E> {
        let mut guard = self.0.lock();
        if guard.closed {
            return Err(entry);
        }
        guard.next += 1;
        let number = guard.next;
        if guard.entries.is_empty() {
            guard.entries.reserve_exact(1); // most registries never have two entries
        }
        guard.entries.push((number, entry));
        Ok(number)
    }

    /// Puts another entry in the place of this number, and returns the one that was there. Returns
    /// the new one if the registry is closed.
    pub(crate) fn replace(&self, number: u64, entry: E) -> Result<E, E> {
        let mut guard = self.0.lock();
        match guard.place(number) {
            Some(place) => Ok(mem::replace(&mut guard.entries[place].1, entry)),
            None => Err(entry),
        }
    }

    /// Removes an entry and returns it, if it is still here. O(entries).
    pub(crate) fn remove(&self, number: u64) -> Option<E> {
        let mut guard = self.0.lock();
        let place = guard.place(number)?;
        Some(guard.entries.remove(place).1)
    }

    /// Closes the registry and returns its entries, oldest first.
    pub(crate) fn close(&self) -> impl Iterator<Item = E> + use<E> {
        let mut guard = self.0.lock();
        guard.closed = true;
        mem::take(&mut guard.entries)
            .into_iter()
            .map(|(_, entry)| entry)
    }
}

impl<E> Entries<E> {
    fn place(&self, number: u64) -> Option<usize> {
        self.entries
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()
    }
}
