//! Many things that are retired together: in parts, each of which is one piece of work. So they
//! take little room in limbo, and a range that is removed to make room needs little itself.

use super::Guard;
use crate::thread;

/// The things in a part: enough that the piece of work around them weighs little beside them, and
/// few enough that a thread's turn at freeing, which counts pieces, stays short.
const A_PART: usize = 16;

impl Guard<'_> {
    /// Runs `free` for each of the things after all guards that exist now are gone; at the latest
    /// when the collector is dropped. If some panic, it still runs for all others, and then the
    /// first panic goes on.
    ///
    /// Beside the things themselves this takes a few bytes for each of them, where
    /// [`defer_unchecked`](Self::defer_unchecked) takes some words.
    ///
    /// # Safety
    ///
    /// For each of the things, as for [`defer_unchecked`](Self::defer_unchecked).
    pub unsafe fn defer_each<T>(
        &self,
        things: impl IntoIterator<Item = T>,
        free: impl Fn(T) + Copy,
    ) {
        let mut things = things.into_iter();
        loop {
            let part: Vec<T> = things.by_ref().take(A_PART).collect();
            if part.is_empty() {
                return;
            }
            // SAFETY: the caller's promise.
            unsafe { self.defer_unchecked(move || run_each(part, free)) };
        }
    }
}

/// Runs `run` for each of the things, even if it panics for some. The first panic goes on after
/// that, unless the thread is panicking already.
pub(super) fn run_each<T>(things: Vec<T>, run: impl Fn(T)) {
    let mut first = None;
    for thing in things {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(thing)));
        if let Err(payload) = result {
            match &first {
                None => first = Some(payload),
                // Dropping a payload may panic as well.
                Some(_) => std::mem::forget(payload),
            }
        }
    }
    if let Some(payload) = first {
        if thread::panicking() {
            std::mem::forget(payload);
        } else {
            std::panic::resume_unwind(payload);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::Collector;
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn each_is_freed_once_and_not_before_the_guards_are_gone() {
        for count in [0, 1, A_PART - 1, A_PART, 5 * A_PART + 1] {
            let freed: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let sum = || freed.iter().map(|freed| freed.load(Relaxed)).sum::<usize>();
            let collector = Collector::new();
            let free = |freed: &AtomicUsize| {
                freed.fetch_add(1, Relaxed);
            };
            {
                let guard = collector.pin();
                // SAFETY: the counters outlive the collector.
                unsafe { guard.defer_each(&freed, free) };
                assert_eq!(sum(), 0);
            }
            drop(collector);
            assert!(freed.iter().all(|freed| freed.load(Relaxed) == 1));
        }
    }

    #[test]
    fn a_panic_leaves_nothing_unfreed_and_goes_on() {
        let freed = AtomicUsize::new(0);
        let free = |number: usize| {
            freed.fetch_add(1, Relaxed);
            assert!(number % 10 != 3, "the number {number}");
        };
        let result = catch_unwind(AssertUnwindSafe(|| {
            let collector = Collector::new();
            // SAFETY: the counter outlives the collector.
            unsafe { collector.pin().defer_each(0..100, free) };
        }));
        let payload = result.expect_err("some have panicked");
        assert_eq!(
            payload.downcast_ref::<String>().map(String::as_str),
            Some("the number 3")
        );
        assert_eq!(freed.load(Relaxed), 100);
    }
}
