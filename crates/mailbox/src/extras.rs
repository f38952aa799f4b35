//! The urgent queue and the monitors: parts that few mailboxes need, allocated on first use.

use std::collections::VecDeque;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Arc, Mutex};

/// What to do when the mailbox goes down.
pub(crate) type Notice = Box<dyn FnOnce() + Send>;

/// The urgent queue and the monitors of one mailbox.
pub(crate) struct Extras<T> {
    urgent: Mutex<Urgent<T>>,
    urgent_sends: AtomicU64,
    monitors: Arc<MonitorList>,
}

struct Urgent<T> {
    queue: VecDeque<T>,
    closed: bool,
}

/// The monitors to notify when the mailbox goes down.
#[derive(Default)]
pub(crate) struct MonitorList(Mutex<Monitors>);

#[derive(Default)]
struct Monitors {
    notices: Vec<(u64, Notice)>,
    next: u64,
    closed: bool,
}

impl<T> Extras<T> {
    /// The extras of a mailbox. A `closed` one accepts no urgent messages, but can be monitored
    /// until it goes down.
    pub(crate) fn new(closed: bool) -> Self {
        let monitors = Arc::new(MonitorList::default());
        Self {
            urgent: Mutex::new(Urgent {
                queue: VecDeque::new(),
                closed,
            }),
            urgent_sends: AtomicU64::new(0),
            monitors,
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
            std::mem::swap(into, &mut urgent.queue);
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

    /// Closes the urgent queue. Its messages go to the end of `into`.
    pub(crate) fn close_urgent(&self, into: &mut VecDeque<T>) {
        let mut urgent = self.urgent.lock();
        urgent.closed = true;
        into.append(&mut urgent.queue);
    }
}

impl MonitorList {
    /// Adds a notice and returns its number. Returns the notice if the mailbox is down.
    pub(crate) fn add(&self, notice: Notice) -> Result<u64, Notice> {
        let mut monitors = self.0.lock();
        if monitors.closed {
            return Err(notice);
        }
        monitors.next += 1;
        let number = monitors.next;
        monitors.notices.push((number, notice));
        Ok(number)
    }

    /// Removes a notice and returns it, if it has not been sent.
    pub(crate) fn remove(&self, number: u64) -> Option<Notice> {
        let mut monitors = self.0.lock();
        let index = monitors
            .notices
            .iter()
            .position(|(other, _)| *other == number)?;
        Some(monitors.notices.remove(index).1)
    }

    /// Closes the list of monitors and returns the notices to send, oldest first.
    pub(crate) fn close(&self) -> impl Iterator<Item = Notice> + use<> {
        let mut monitors = self.0.lock();
        monitors.closed = true;
        std::mem::take(&mut monitors.notices)
            .into_iter()
            .map(|(_, notice)| notice)
    }
}
