//! A counter that stripes itself when its own updates collide.

use crate::atomic::{AtomicIsize, AtomicPtr, AtomicU32, Ordering};
use crate::thread_index;
use crossbeam_utils::CachePadded;
use std::ptr;

/// Stripes of a striped counter: more than the threads that run at once on most machines, so that
/// few threads share one.
#[cfg(not(any(loom, shuttle)))]
const STRIPES: usize = 32;
#[cfg(any(loom, shuttle))]
const STRIPES: usize = 2;

/// Collisions after which the counter stripes itself: fewer than two threads cause in one burst,
/// more than happen by chance.
#[cfg(not(any(loom, shuttle)))]
const STRIPE_AFTER: u32 = 16;
#[cfg(any(loom, shuttle))]
const STRIPE_AFTER: u32 = 1;

type Stripes = [CachePadded<AtomicIsize>; STRIPES];

/// A counter for sizes: many threads add, few read the sum.
///
/// It is one cell until additions collide. Then each thread gets a stripe on a cache line of its
/// own. It never goes back to one cell.
///
/// [`sum`](Self::sum) is exact while no addition is under way; otherwise it may miss any of the
/// additions under way. An addition is O(1), the sum is O(stripes).
///
/// ```
/// use tremula_sync::StripedCounter;
///
/// let entries = StripedCounter::new();
/// entries.add(3);
/// entries.add(-1);
/// assert_eq!(entries.sum(), 2);
/// ```
pub struct StripedCounter {
    cell: AtomicIsize,
    collisions: AtomicU32,
    /// Null until the counter stripes itself; then a leaked box, which is freed with the counter.
    stripes: AtomicPtr<Stripes>,
}

impl StripedCounter {
    /// A counter at 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            cell: AtomicIsize::new(0),
            collisions: AtomicU32::new(0),
            stripes: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn stripes(&self) -> Option<&Stripes> {
        // Acquire: pairs with the store in `stripe`, which publishes the zeroed stripes.
        // SAFETY: a pointer that is not null came from a box that lives as long as the counter.
        unsafe { self.stripes.load(Ordering::Acquire).as_ref() }
    }

    /// Adds `difference`. All additions are Relaxed: they order nothing else.
    #[inline]
    pub fn add(&self, difference: isize) {
        if let Some(stripes) = self.stripes() {
            stripes[thread_index() % STRIPES].fetch_add(difference, Ordering::Relaxed);
            return;
        }
        let now = self.cell.load(Ordering::Relaxed);
        let next = now.wrapping_add(difference);
        if self
            .cell
            .compare_exchange(now, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            self.collided(difference);
        }
    }

    #[cold]
    fn collided(&self, difference: isize) {
        self.cell.fetch_add(difference, Ordering::Relaxed);
        if self.collisions.fetch_add(1, Ordering::Relaxed) + 1 == STRIPE_AFTER {
            self.stripe();
        }
    }

    /// Makes the stripes. Only the collision that reaches the limit calls this, so it runs once.
    fn stripe(&self) {
        let stripes = Box::new(std::array::from_fn(|_| {
            CachePadded::new(AtomicIsize::new(0))
        }));
        // Release: pairs with the load in `stripes`.
        self.stripes
            .store(Box::into_raw(stripes), Ordering::Release);
    }

    /// The sum of all additions.
    #[must_use]
    pub fn sum(&self) -> isize {
        let stripes = self.stripes().into_iter().flatten();
        stripes.fold(self.cell.load(Ordering::Relaxed), |sum, stripe| {
            sum.wrapping_add(stripe.load(Ordering::Relaxed))
        })
    }

    /// Whether additions have collided so often that the counter is striped.
    #[must_use]
    pub fn is_striped(&self) -> bool {
        self.stripes().is_some()
    }
}

impl Default for StripedCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for StripedCounter {
    fn drop(&mut self) {
        let stripes = self.stripes.load(Ordering::Relaxed);
        if !stripes.is_null() {
            // SAFETY: it came from `Box::into_raw` in `stripe`, and nobody else has it now.
            drop(unsafe { Box::from_raw(stripes) });
        }
    }
}
