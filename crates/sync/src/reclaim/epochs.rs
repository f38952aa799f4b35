//! The algorithm: pins in the records of threads, and a structure's epoch.
//!
//! # Why nothing is freed too early
//!
//! A reader R publishes its pin and then executes a fence, F(R). A thread that retires something
//! first unlinks it, then executes a fence, F(U), and then reads the epoch `s` that it notes. An
//! advance from epoch `m` reads the epoch, executes a fence, F(m), and then checks every pin.
//! Fences are totally ordered.
//!
//! If R can still reach the thing, R missed the unlinking, so F(R) is before F(U). Let `m` be the
//! last advance with F(m) before F(R): it may not have seen R. Every later advance sees R, and
//! succeeds only if R is pinned in the very epoch that it would end. So while R is pinned, the
//! epoch reaches at most `m + 1`, or `m + 2` if R is pinned in `m + 1`. In the first case `s >= m`,
//! because F(m) is before F(U). In the second case `s >= m + 1`, because R read `m + 1` before
//! F(R). What was retired in `s` waits for `s + 2`, which the epoch does not reach while R is
//! pinned.

#![cfg_attr(
    not(loom),
    allow(unreachable_pub, reason = "only models reach this from outside")
)]

use super::limbo::Limbo;
pub use super::limbo::Look;
use super::parts::run_each;
use super::work::Work;
use crate::CachePadded;
use crate::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
};
use std::ptr;

/// The pins of a record. A thread can nest this many less one on different collectors, each of
/// which holds back only its own collector; the last pin stands for all further ones and holds back
/// every collector.
#[cfg(not(loom))]
const PINS: usize = 4;
#[cfg(loom)]
const PINS: usize = 2;

/// The pin that stands for all further ones.
const LAST: usize = PINS - 1;

/// The content of a pin that is not in use.
const NOT_PINNED: u64 = 0;

/// The content of the last pin while it is in use.
const PINNED_ON_ALL: u64 = u64::MAX;

/// A pin on one collector holds the collector's name in the upper bits and the lower bits of the
/// epoch below. These bits are enough, because a pinned thread holds the epoch back.
const EPOCH_BITS: u32 = 24;
const EPOCH_MASK: u64 = (1 << EPOCH_BITS) - 1;

/// What one thread is doing, as the others see it. Records are never freed: a thread that ends
/// leaves its record to a later thread.
pub struct Record<O> {
    pins: [AtomicU64; PINS],
    taken: AtomicBool,
    /// The record that was the newest before; null in the first one. It is [`not_linked`] until
    /// the thread that adds the record has linked it.
    next: Link<O>,
    /// The record's number in its registry.
    number: usize,
    /// The part that only the thread that has taken the record uses.
    own: O,
}

/// The records of all threads.
///
/// In a simulation, a registry is dropped with its run, and its records with it: the run does so
/// only if no thread has taken one. Elsewhere it is never dropped.
pub struct Registry<O> {
    /// The newest record; `next` links it to the others.
    newest: Link<O>,
    /// How many records there are, or are about to be.
    count: AtomicUsize,
}

type Link<O> = AtomicPtr<CachePadded<Record<O>>>;

/// What `next` is between the two steps by which a record is added: no record is there.
fn not_linked<O>() -> *mut CachePadded<Record<O>> {
    ptr::dangling_mut()
}

// SAFETY: everything in a record that changes is atomic, except `own`, which only the thread that
// has taken the record uses (`Record::own`).
unsafe impl<O: Send> Send for Record<O> {}
// SAFETY: as for `Send`.
unsafe impl<O: Send> Sync for Record<O> {}

#[cfg(sim)]
impl<O> Drop for Registry<O> {
    fn drop(&mut self) {
        let mut next = self.newest.load(Ordering::Acquire);
        while !next.is_null() {
            // SAFETY: it came from a box, and `&mut self` shows that nothing refers to it.
            let record = unsafe { Box::from_raw(next) };
            next = record.next.load(Ordering::Acquire);
        }
    }
}

impl<O: Default> Registry<O> {
    /// A registry without records.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self {
            newest: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
        }
    }

    /// A registry without records.
    #[cfg(loom)]
    #[must_use]
    #[allow(clippy::new_without_default, reason = "for models alone")]
    pub fn new() -> Self {
        Self {
            newest: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
        }
    }

    /// Whether a thread has taken one of the records.
    #[cfg(sim)]
    pub(super) fn is_in_use(&self) -> bool {
        !self.all(|record| !record.taken.load(Ordering::Relaxed))
    }

    /// Takes a record that no other thread has.
    pub fn take(&self) -> &Record<O> {
        let mut free = None;
        self.all(|record| {
            // Acquire: pairs with `give_back`: what the last owner did happens before.
            let took = !record.taken.load(Ordering::Relaxed)
                && record
                    .taken
                    .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok();
            free = took.then_some(record);
            !took
        });
        free.unwrap_or_else(|| self.add())
    }

    /// Adds a record that is already taken. No thread has to try twice, however many add records:
    /// with an exchange that may fail, each of them would fetch the line of `newest` once for every
    /// other one.
    fn add(&self) -> &Record<O> {
        let record = Box::into_raw(Box::new(CachePadded::new(Record {
            pins: std::array::from_fn(|_| AtomicU64::new(NOT_PINNED)),
            taken: AtomicBool::new(true),
            next: AtomicPtr::new(not_linked()),
            // Relaxed: the numbers only have to differ.
            number: self.count.fetch_add(1, Ordering::Relaxed),
            own: O::default(),
        })));
        // Release: publishes the record to `all`. Acquire: what was published before is published
        // with it. SeqCst, together with the fence after each pin: an advance that does not find
        // the record precedes the record's first pin.
        let next = self.newest.swap(record, Ordering::SeqCst);
        // SAFETY: records are never freed.
        let record = unsafe { &*record };
        // Release: publishes the older records to a thread that comes by this one.
        record.next.store(next, Ordering::Release);
        record
    }

    /// Asks all records, the newest first, until one does not pass. Returns whether all have
    /// passed. If a thread is adding a record, the older ones cannot be found: the result is false.
    fn all<'r>(&'r self, mut passes: impl FnMut(&'r Record<O>) -> bool) -> bool {
        // Acquire, here and below: pairs with both steps of `add`.
        let mut at = self.newest.load(Ordering::Acquire);
        while at != not_linked() {
            // SAFETY: a record in the list is never freed.
            let Some(record) = (unsafe { at.as_ref() }) else {
                return true;
            };
            if !passes(record) {
                return false;
            }
            at = record.next.load(Ordering::Acquire);
        }
        false
    }

    /// Frees the records, at the end of a model.
    ///
    /// # Safety
    ///
    /// No thread has a record or uses the registry any more.
    #[cfg(loom)]
    pub unsafe fn free(&self) {
        let mut at = self.newest.load(Ordering::Acquire);
        while !at.is_null() {
            // SAFETY: it came from a box, and no thread uses it any more.
            let record = unsafe { Box::from_raw(at) };
            at = record.next.load(Ordering::Acquire);
        }
    }
}

impl<O> Record<O> {
    /// How many pins a record has; the last stands for several.
    pub const PINS: usize = PINS;

    /// The part of the record that only its thread uses.
    ///
    /// # Safety
    ///
    /// The calling thread has taken the record and not given it back.
    #[inline]
    pub unsafe fn own(&self) -> &O {
        &self.own
    }

    /// Where the record's thread looks for garbage: at its own, and at that of others from a place
    /// on that should be another one each time, so that a thread looks everywhere some time.
    pub fn look(&self, others: usize) -> Look {
        Look {
            thread: self.number,
            others,
        }
    }

    /// Leaves the record to another thread.
    pub fn give_back(&self) {
        // Release: pairs with `take`.
        self.taken.store(false, Ordering::Release);
    }

    /// Publishes `word` in `pin`. All later reads of the thread come after that.
    #[inline]
    fn publish(&self, pin: usize, word: u64) {
        if cfg!(all(
            any(target_arch = "x86", target_arch = "x86_64"),
            not(loom)
        )) {
            // On x86 an exchange is a full fence, and cheaper than the fence instruction.
            self.pins[pin].swap(word, Ordering::SeqCst);
            compiler_fence(Ordering::SeqCst);
        } else {
            self.pins[pin].store(word, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    /// Pins this thread on `epochs` with its pin `pin`. The last pin holds back all collectors.
    #[inline]
    pub fn pin(&self, pin: usize, epochs: &Epochs) {
        let word = if pin == LAST {
            PINNED_ON_ALL
        } else {
            epochs.name << EPOCH_BITS | epochs.now.load(Ordering::Relaxed) & EPOCH_MASK
        };
        self.publish(pin, word);
    }

    /// Takes the pin back.
    #[inline]
    pub fn unpin(&self, pin: usize) {
        // Release: pairs with the Acquire loads in `advance` and `is_alone`: this thread's reads
        // under the pin happen before what it read is freed or taken.
        self.pins[pin].store(NOT_PINNED, Ordering::Release);
    }
}

/// The epoch of one structure, and what it has retired.
pub struct Epochs {
    /// No other structure of this process has the same name. Never 0.
    name: u64,
    now: AtomicU64,
    limbo: Limbo,
}

impl Epochs {
    /// Epochs named `name`.
    pub fn new(name: u64) -> Self {
        Self {
            name,
            now: AtomicU64::new(0),
            limbo: Limbo::new(),
        }
    }

    /// Runs `work` after every thread that is pinned now has taken its pin back.
    ///
    /// # Safety
    ///
    /// What the work frees has been unlinked, and the work may run in any thread.
    #[inline]
    pub unsafe fn retire<O, F: FnOnce() -> R, R>(&self, record: &Record<O>, work: F) {
        // SAFETY: passed on to the caller.
        let work = unsafe { Work::new(work) };
        let epoch = || {
            // F(U) of the argument in the module docs.
            fence(Ordering::SeqCst);
            self.now.load(Ordering::Relaxed)
        };
        self.limbo.add(record.number, epoch, work);
    }

    /// Advances the epoch by one, unless a thread is pinned in an earlier one, or is just coming.
    pub fn advance<O: Default>(&self, registry: &Registry<O>) -> bool {
        let now = self.now.load(Ordering::Relaxed);
        let word = self.name << EPOCH_BITS | now & EPOCH_MASK;
        // F(m) of the argument in the module docs.
        fence(Ordering::SeqCst);
        // A pin on this structure in another epoch, or a pin on all structures.
        let is_behind = |pin: u64| self.is_mine(pin) && pin != word;
        // Acquire: pairs with `unpin`.
        if !registry.all(|record| {
            let mut pins = record.pins.iter();
            !pins.any(|pin| is_behind(pin.load(Ordering::Acquire)))
        }) {
            return false;
        }
        // Release: what the threads that have unpinned read happens before everything that follows
        // the load of this epoch in `free_ripe`. An exchange, so that this holds along the chain of
        // epochs.
        self.now
            .compare_exchange(now, now + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Whether no thread is pinned on this structure, except by pin `pin` of `record`. If so, what
    /// that thread has unlinked belongs to it alone. False, too, while a thread is just coming.
    pub fn is_alone<O: Default>(
        &self,
        registry: &Registry<O>,
        record: &Record<O>,
        pin: usize,
    ) -> bool {
        if pin == LAST {
            // Other guards of this thread may share the pin.
            return false;
        }
        // Like the fence F(U) of a retirement: a thread whose pin is not seen below sees the
        // unlinking.
        fence(Ordering::SeqCst);
        let own = &raw const record.pins[pin];
        registry.all(|other| {
            !other.pins.iter().any(|pin| {
                // Acquire: pairs with `unpin`.
                !ptr::eq(own, pin) && self.is_mine(pin.load(Ordering::Acquire))
            })
        })
    }

    fn is_mine(&self, pin: u64) -> bool {
        pin >> EPOCH_BITS == self.name || pin == PINNED_ON_ALL
    }

    /// About how many things wait to be freed, where the thread looks.
    pub fn garbage(&self, look: Look) -> usize {
        self.limbo.length(look)
    }

    /// Frees at most `most` of the things that may be freed now, where the thread looks. Returns
    /// how many it freed.
    ///
    /// # Panics
    ///
    /// With the first panic of the work, after all of it has run.
    pub fn free_ripe(&self, look: Look, most: usize) -> usize {
        // Acquire: pairs with the exchange in `advance`.
        let now = self.now.load(Ordering::Acquire);
        let ripe = self.limbo.take_ripe(look, now, most);
        let count = ripe.len();
        run_all(ripe);
        count
    }
}

impl Drop for Epochs {
    fn drop(&mut self) {
        run_all(self.limbo.take_all());
    }
}

fn run_all(work: Vec<Work>) {
    run_each(work, Work::run);
}
