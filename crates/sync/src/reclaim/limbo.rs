//! Limbo: what has been retired and not freed yet, in queues that threads share by their numbers.

#![cfg_attr(
    not(loom),
    allow(unreachable_pub, reason = "only models reach this from outside")
)]

use super::work::Work;
use crate::Mutex;
use crate::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;
use std::collections::VecDeque;
use std::ptr;

/// The queues of a limbo. More threads than this share queues.
#[cfg(not(loom))]
const STRIPES: usize = 32;
#[cfg(loom)]
const STRIPES: usize = 2;

/// The queues that one look goes through: what other threads have changed takes long to read, so
/// a look costs the same however many threads there are.
const LOOKS: usize = if cfg!(loom) { 2 } else { 8 };

/// Something retired is freed only after this many more epochs have begun.
const GRACE: u64 = 2;

/// An empty queue keeps a buffer of up to this many entries for the next ones.
const KEPT_CAPACITY: usize = 4 * super::RETIRED_A_TURN as usize;

/// Something retired: what frees it, and the epoch in which it was unlinked or a later one.
struct Retired {
    epoch: u64,
    work: Work,
}

/// A queue of what was retired, oldest first.
struct Stripe {
    retired: Mutex<VecDeque<Retired>>,
    /// The length of the queue, for threads that only want to know whether it is empty.
    length: AtomicUsize,
}

/// Which queues a thread goes through: its own, and then others from that one on.
#[derive(Clone, Copy, Default)]
pub struct Look {
    pub(super) thread: usize,
    pub(super) others: usize,
}

pub(super) struct Limbo {
    /// Null until a thread retires something there; then a leaked box, freed with the limbo.
    stripes: [AtomicPtr<CachePadded<Stripe>>; STRIPES],
}

impl Limbo {
    pub(super) fn new() -> Self {
        Self {
            stripes: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Adds `work`. `epoch` is called under the queue's lock, so that a queue is ordered by epoch.
    pub(super) fn add(&self, thread: usize, epoch: impl FnOnce() -> u64, work: Work) {
        let stripe = self.stripe(thread % STRIPES);
        let mut retired = stripe.retired.lock();
        retired.push_back(Retired {
            epoch: epoch(),
            work,
        });
        // Relaxed: a hint; the queue is read under its lock.
        stripe.length.store(retired.len(), Ordering::Relaxed);
    }

    /// About how many things are retired and not freed, in the queues of a look.
    pub(super) fn length(&self, look: Look) -> usize {
        // Relaxed: a hint, as in `add`.
        self.looked_at(look)
            .map(|stripe| stripe.length.load(Ordering::Relaxed))
            .sum()
    }

    /// Takes out at most `most` things that may be freed in `epoch`, of the queues of a look.
    pub(super) fn take_ripe(&self, look: Look, epoch: u64, most: usize) -> Vec<Work> {
        let mut ripe = Vec::new();
        for stripe in self.looked_at(look) {
            if stripe.length.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Another thread that holds the queue is freeing or adding, so this one goes on.
            let Some(mut retired) = stripe.retired.try_lock() else {
                continue;
            };
            while ripe.len() < most
                && let Some(first) = retired.front()
                && epoch >= first.epoch + GRACE
                && let Some(first) = retired.pop_front()
            {
                ripe.push(first.work);
            }
            if retired.is_empty() {
                retired.shrink_to(KEPT_CAPACITY);
            }
            stripe.length.store(retired.len(), Ordering::Relaxed);
        }
        ripe
    }

    /// Takes everything out, when no thread uses the structure any more.
    pub(super) fn take_all(&mut self) -> Vec<Work> {
        let mut all = Vec::new();
        for stripe in self.stripes.iter().filter_map(Self::existing) {
            all.extend(stripe.retired.lock().drain(..).map(|retired| retired.work));
        }
        all
    }

    /// The queues of a look: the thread's own, and then as many more as it may see.
    fn looked_at(&self, look: Look) -> impl Iterator<Item = &CachePadded<Stripe>> {
        let own = look.thread % STRIPES;
        let others = (0..STRIPES)
            .map(move |at| (look.others % STRIPES + at) % STRIPES)
            .filter(move |number| *number != own);
        std::iter::once(own)
            .chain(others)
            .filter_map(|number| Self::existing(&self.stripes[number]))
            .take(LOOKS)
    }

    fn existing(stripe: &AtomicPtr<CachePadded<Stripe>>) -> Option<&CachePadded<Stripe>> {
        // Acquire: pairs with the exchange in `stripe`, which publishes the new queue.
        // SAFETY: what is not null came from a box that lives as long as the limbo.
        unsafe { stripe.load(Ordering::Acquire).as_ref() }
    }

    fn stripe(&self, number: usize) -> &CachePadded<Stripe> {
        let place = &self.stripes[number];
        if let Some(stripe) = Self::existing(place) {
            return stripe;
        }
        let new = Box::into_raw(Box::new(CachePadded::new(Stripe {
            retired: Mutex::new(VecDeque::new()),
            length: AtomicUsize::new(0),
        })));
        // Release: publishes the queue to the loads above. Acquire: if another thread was first,
        // its queue is read as after those loads.
        match place.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: the exchange has just published it, and it is freed only with the limbo.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: no other thread has seen the new one.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: as in `existing`.
                unsafe { &*other }
            }
        }
    }
}

impl Drop for Limbo {
    fn drop(&mut self) {
        for stripe in &self.stripes {
            let stripe = stripe.load(Ordering::Relaxed);
            if !stripe.is_null() {
                // SAFETY: it came from a box, and `&mut self` shows that no other thread uses it.
                drop(unsafe { Box::from_raw(stripe) });
            }
        }
    }
}
