//! The queue of two locks: one for those that append, another for those that take.
//!
//! ```text
//!   head ──> [ taken | next ] ──> [ first | next ] ──> [ last | null ] <── tail
//! ```
//!
//! There is always one node more than there are values: the one that `head` points to has had its
//! value taken. So a thread that appends and one that takes never change one node's value at once.
//! They share only the `next` of the last node, which is why it is atomic.
//!
//! # When not to use it
//!
//! It is here to be measured beside the mailboxes of `tremula-mailbox`, which are what to use.
//!
//! # Source
//!
//! Michael and Scott, "Simple, Fast, and Practical Non-Blocking and Blocking Concurrent Queue
//! Algorithms", PODC 1996, section 2, the second algorithm. The paper's locks spin on a word that
//! is tested and set, with a bounded back-off; these are the short locks of `tremula-sync`, which
//! also yield.

use std::fmt;
use std::ptr;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::{CachePadded, ShortLock};

struct Node<T> {
    /// `None` in the first node.
    value: Option<T>,
    next: AtomicPtr<Self>,
}

/// A pointer that only the holder of the lock around it uses.
struct Held<T>(*mut Node<T>);

// SAFETY: whichever thread has the pointer's lock uses it alone, and may move or drop the values.
unsafe impl<T: Send> Send for Held<T> {}

/// An unbounded queue. Any number of threads may append, and any number may take. The
/// [module](self) says how it works.
///
/// Linearizable. A value is allocated for; both operations take a lock.
///
/// ```
/// use tremula_papers::two_lock_queue::TwoLockQueue;
///
/// let queue = TwoLockQueue::new();
/// queue.push(1);
/// queue.push(2);
/// assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(1), Some(2), None));
/// ```
pub struct TwoLockQueue<T> {
    head: CachePadded<ShortLock<Held<T>>>,
    tail: CachePadded<ShortLock<Held<T>>>,
}

impl<T> Node<T> {
    fn boxed(value: Option<T>) -> *mut Self {
        let next = AtomicPtr::new(ptr::null_mut());
        Box::into_raw(Box::new(Self { value, next }))
    }
}

impl<T> TwoLockQueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        let first = Node::boxed(None);
        Self {
            head: CachePadded::new(ShortLock::new(Held(first))),
            tail: CachePadded::new(ShortLock::new(Held(first))),
        }
    }

    /// Appends a value. O(1).
    pub fn push(&self, value: T) {
        let node = Node::boxed(Some(value));
        let mut tail = self.tail.lock();
        // Release: pairs with the acquire in `pop`, for the value. If that load comes first, it
        // finds null, and this value is not in the queue yet.
        // SAFETY: the last node is freed only by a `pop` that has found a node behind it.
        unsafe { &(*tail.0).next }.store(node, Ordering::Release);
        tail.0 = node;
    }

    /// Takes the value that was appended first; `None` if the queue is empty. O(1).
    pub fn pop(&self) -> Option<T> {
        let mut head = self.head.lock();
        let first = head.0;
        // SAFETY: the first node is freed only below, by a thread that has this lock.
        let next = unsafe { &(*first).next }.load(Ordering::Acquire);
        if next.is_null() {
            return None;
        }
        head.0 = next;
        // SAFETY: the value was written before the pointer to the node, and only the holder of this
        // lock takes it. A thread that appends uses nothing but `next` of a node.
        let value = unsafe { (*next).value.take() };
        drop(head);
        // SAFETY: it came from `Node::boxed`. `head` was the only pointer to it: the thread that
        // stored `next` in it has set `tail` to that, or has `tail` locked and does not use this
        // node again.
        drop(unsafe { Box::from_raw(first) });
        value
    }
}

impl<T> Default for TwoLockQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for TwoLockQueue<T> {
    fn drop(&mut self) {
        let mut node = self.head.lock().0;
        while !node.is_null() {
            // SAFETY: each node came from `Node::boxed`, and no other thread has the queue.
            let first = unsafe { Box::from_raw(node) };
            node = first.next.load(Ordering::Relaxed);
        }
    }
}

impl<T> fmt::Debug for TwoLockQueue<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TwoLockQueue").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle, sim))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn values_come_in_order_and_the_rest_is_dropped() {
        let queue = TwoLockQueue::new();
        let counted = Arc::new(());
        for number in 0..9 {
            queue.push((number, Arc::clone(&counted)));
        }
        for number in 0..4 {
            assert_eq!(queue.pop().map(|(number, _)| number), Some(number));
        }
        assert_eq!(Arc::strong_count(&counted), 6);
        drop(queue);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn each_value_is_taken_once_and_in_the_order_of_its_thread() {
        const EACH: u64 = if cfg!(miri) { 40 } else { 4000 };
        let queue = TwoLockQueue::new();
        let mut taken: Vec<Vec<u64>> = std::thread::scope(|scope| {
            for thread in 0..2 {
                let queue = &queue;
                scope.spawn(move || (0..EACH).for_each(|number| queue.push(number * 2 + thread)));
            }
            let take = || {
                let mut taken = Vec::new();
                while (taken.len() as u64) < EACH {
                    match queue.pop() {
                        Some(value) => taken.push(value),
                        None => std::thread::yield_now(),
                    }
                }
                taken
            };
            let takers = [scope.spawn(take), scope.spawn(take)];
            takers.map(|taker| taker.join().unwrap()).into()
        });
        for taken in &taken {
            for thread in 0..2 {
                let of_thread = taken.iter().filter(|value| *value % 2 == thread);
                assert!(of_thread.is_sorted());
            }
        }
        let mut all: Vec<u64> = taken.drain(..).flatten().collect();
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..2 * EACH));
        assert!(queue.pop().is_none());
    }
}
