//! The combining lock: a short lock whose holder also does what waiting threads want done.
//!
//! Sources: Hendler, Incze, Shavit and Tzafrir, "Flat Combining and the Synchronization-Parallelism
//! Tradeoff", SPAA 2010 (the holder works for all); Klaftenegger, Sagonas and Winblad, "Queue
//! Delegation Locking", IEEE TPDS 29(3), 2018 (requests wait in a queue, in the order of their
//! arrival, and a thread that waits looks at a word of its own).
//!
//! ```text
//!   word ── set while a thread has the value
//!   published ──> request of C ──> request of B ──> request of A
//!                 done: false      done: false      done: false
//!                    ^                ^                ^
//!                 C looks here     B looks here     A looks here, and at `word`
//! ```
//!
//! A thread takes the lock if it is free. Otherwise it publishes its request, which lies on its
//! stack, and waits until the request is done. The holder takes all published requests, does them
//! in the order in which they were published, and releases the lock.
//!
//! So threads that wait do not fight for one word, as they do at a
//! [`ShortLock`](crate::ShortLock): there each release costs as many transfers of the line as
//! threads wait, and a queue that has formed by chance stays. And a waiting thread that the system
//! has stopped keeps nobody waiting, unlike in a queue lock, which hands the lock over to it.
//!
//! # When to use it
//!
//! Where many threads meet at a few dozen instructions that call no user code. If threads seldom
//! meet, a [`ShortLock`](crate::ShortLock) does the same, and its guard waits. A request may be
//! done by any thread, so it must not depend on the calling thread.
//!
//! A checker cannot explore spinning. Under a checker the word is a lock of the checker's own, and
//! what is checked is the list, the requests and who does them. ThreadSanitizer checks the
//! orderings of the word.
//!
//! # Invariants
//!
//! 1. Only the thread that has set `word` uses the value, and takes requests from the list.
//! 2. A request in the list belongs to a thread that waits in [`CombiningLock::run`], and stays
//!    where it is until it is done. Nobody accesses it after that but this thread.
//! 3. The holder does every request that it takes before it releases the lock. So a thread that
//!    takes the lock finds its own request in the list, or done.
//! 4. Each waiting thread looks again and again whether the lock is free, so a request that the
//!    last holder has missed is done. The thread that published first looks most often. One is
//!    enough, and each look takes the line from the holder.

use crate::Backoff;
use crate::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::cell::{MutPtr, UnsafeCell};
use std::any::Any;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

/// How often a waiting thread looks at its request before it yields its core, and again each time
/// it gets the core back. With the pauses between, about as long as scheduling takes. The thread
/// that published first also looks whether the lock is free: at once, because a holder that was
/// about to leave has missed it, and then less and less often, down to once in this many looks.
#[cfg(not(any(loom, shuttle)))]
const LOOKS: u64 = 64;

/// After how many looks another thread looks whether the lock is free: some 20 µs. It matters only
/// if the system has stopped the thread that published first.
#[cfg(not(any(loom, shuttle)))]
const RARELY: u64 = 16 * LOOKS;

/// The processor's pauses between two looks.
#[cfg(not(any(loom, shuttle)))]
const PAUSES: u32 = 2;

/// How often a holder takes the published requests before it leaves the rest to a thread that
/// waits. Under a checker once, so that small models reach that case.
const ROUNDS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 4 };

/// A mutex for a few dozen instructions at which many threads meet, and which call no user code. A
/// thread that finds it taken publishes its request, and the thread that has the lock does that,
/// too, in the order of arrival: flat combining (Hendler and others, SPAA 2010) with the queue of
/// queue delegation locking (Klaftenegger and others, IEEE TPDS 2018). So threads that wait do not
/// fight for one line. If they seldom meet, a [`ShortLock`](crate::ShortLock) does the same.
///
/// Not reentrant: a request that calls the same lock deadlocks.
///
/// ```
/// use tremula_sync::CombiningLock;
///
/// let lock = CombiningLock::<_>::new(Vec::new());
/// std::thread::scope(|scope| {
///     for number in 0..4 {
///         let lock = &lock;
///         scope.spawn(move || lock.run(|numbers| numbers.push(number)));
///     }
/// });
/// assert_eq!(lock.run(|numbers| numbers.len()), 4);
/// ```
#[repr(C)]
pub struct CombiningLock<T, C = ()> {
    word: Word,
    /// The request that was published last; it leads to the one before. Null if all are taken.
    published: AtomicPtr<Published<T>>,
    value: UnsafeCell<T>,
    carried: PhantomData<fn(C) -> C>,
}

// SAFETY: the lock admits one thread at a time, so the value moves from thread to thread. Requests
// carry `C` to the thread that does them, and back.
unsafe impl<T: Send, C: Send> Sync for CombiningLock<T, C> {}
// SAFETY: moving the lock moves the value. While it moves nobody waits, so the list is empty.
unsafe impl<T: Send, C> Send for CombiningLock<T, C> {}

/// Whether a thread has the value.
#[cfg(not(any(loom, shuttle)))]
struct Word(AtomicBool);

#[cfg(not(any(loom, shuttle)))]
impl Word {
    const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    #[inline]
    #[cfg_attr(sim, track_caller)]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the Release store of the last holder.
        !self.0.swap(true, Ordering::Acquire)
    }

    #[cfg_attr(sim, track_caller)]
    fn seems_free(&self) -> bool {
        // Relaxed: only a hint whether the exchange can succeed.
        !self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn give_back(&self) {
        // Release: pairs with the exchange by which the next holder comes.
        self.0.store(false, Ordering::Release);
    }
}

/// The same, made of a lock of the checker.
#[cfg(any(loom, shuttle))]
struct Word(crate::primitives::RawRwLock);

#[cfg(any(loom, shuttle))]
impl Word {
    fn new() -> Self {
        Self(crate::primitives::RawRwLock::new())
    }

    fn try_take(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    fn take(&self) {
        self.0.lock_exclusive();
    }

    fn give_back(&self) {
        // SAFETY: only the thread that has taken it gives it back.
        unsafe { self.0.unlock_exclusive() };
    }
}

/// The part of a request that has the same type for all.
struct Published<T> {
    /// The request that was published before; null if there was none, and [`unlinked`] until the
    /// thread that has published this one has written it. The holder that takes the requests turns
    /// the list around.
    before: AtomicPtr<Published<T>>,
    /// Does the request.
    serve: unsafe fn(*const Published<T>, &mut T),
    done: AtomicBool,
}

#[repr(C)]
struct Request<T, F, R> {
    published: Published<T>,
    content: UnsafeCell<Content<F, R>>,
}

enum Content<F, R> {
    Wanted(F),
    Done(Result<R, Box<dyn Any + Send>>),
    Taken,
}

impl<T, F: FnOnce(&mut T) -> R, R> Request<T, F, R> {
    fn new(operation: F) -> Self {
        Self {
            published: Published {
                before: AtomicPtr::new(unlinked()),
                serve: Self::serve,
                done: AtomicBool::new(false),
            },
            content: UnsafeCell::new(Content::Wanted(operation)),
        }
    }

    /// # Safety
    ///
    /// `published` is the first field of such a request, which is not done, and the calling thread
    /// has taken it from the list.
    unsafe fn serve(published: *const Published<T>, value: &mut T) {
        // SAFETY: the request begins with its first field, and lives until it is done.
        let request = unsafe { &*published.cast::<Self>() };
        let content = request.content.get_mut();
        // SAFETY: the thread that waits looks at the content after the request is done.
        let content = unsafe { content.deref() };
        if let Content::Wanted(operation) = std::mem::replace(content, Content::Taken) {
            *content = Content::Done(catch_unwind(AssertUnwindSafe(|| operation(value))));
        }
    }

    /// What the operation returned. Passes its panic on.
    fn result(self) -> R {
        let content = self.content.get_mut();
        // SAFETY: the request is done, so only the calling thread accesses it.
        let content = std::mem::replace(unsafe { content.deref() }, Content::Taken);
        match content {
            Content::Done(Ok(result)) => result,
            Content::Done(Err(panic)) => resume_unwind(panic),
            _ => unreachable!("a request that is done has a result"),
        }
    }
}

/// Holds a [`CombiningLock`]. Dropping it does what other threads have published meanwhile, and
/// releases the lock.
pub struct CombiningLockGuard<'a, T, C = ()> {
    lock: &'a CombiningLock<T, C>,
    value: ManuallyDrop<MutPtr<T>>,
    /// Waiters spin, so the holder must not be a task that moves to another thread.
    not_send: PhantomData<*mut ()>,
}

impl<T, C> Deref for CombiningLockGuard<'_, T, C> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock.
        unsafe { (*self.value).deref() }
    }
}

impl<T, C> DerefMut for CombiningLockGuard<'_, T, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock.
        unsafe { (*self.value).deref() }
    }
}

impl<T, C> Drop for CombiningLockGuard<'_, T, C> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: dropped once, here. A checker must see that the pointer is gone before others
        // make theirs.
        unsafe { ManuallyDrop::drop(&mut self.value) };
        // Relaxed: a hint. A request that this thread misses is done by a thread that waits.
        if !self.lock.published.load(Ordering::Relaxed).is_null() {
            self.lock.serve_published();
        }
        self.lock.word.give_back();
    }
}

impl<T, C> CombiningLock<T, C> {
    /// A free lock around `value`.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            word: Word::new(),
            published: AtomicPtr::new(ptr::null_mut()),
            value: UnsafeCell::new(value),
            carried: PhantomData,
        }
    }

    /// Does `operation` on the value while no other thread has it, and returns what it returns.
    /// `operation` runs on this thread or on another that holds the lock; meanwhile this thread
    /// waits.
    ///
    /// # Panics
    ///
    /// If `operation` panics, on this thread. The lock is released, and the value stays as the
    /// operation left it.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn run<R: Send>(&self, operation: impl FnOnce(&mut T) -> R + Send) -> R {
        // SAFETY: the operation and its result are `Send`.
        unsafe { self.run_anywhere(operation) }
    }

    /// As [`run`](Self::run), with something that the operation takes or leaves, and that comes
    /// back. Threads share the lock only if that is `Send`, so here it need not be known to be.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use tremula_sync::CombiningLock;
    ///
    /// let lock = CombiningLock::<Vec<u8>, Option<u8>>::new(Vec::new());
    /// let (rest, length) = lock.run_with(Some(7), |bytes, carried| {
    ///     bytes.extend(carried.take());
    ///     bytes.len()
    /// });
    /// assert_eq!((rest, length), (None, 1));
    /// ```
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn run_with<R: Send>(
        &self,
        mut carried: C,
        operation: impl FnOnce(&mut T, &mut C) -> R + Send,
    ) -> (C, R) {
        let operation = |value: &mut T| {
            let result = operation(value, &mut carried);
            (carried, result)
        };
        // SAFETY: the operation and its result are `Send`. If threads share the lock, so is what
        // is carried.
        unsafe { self.run_anywhere(operation) }
    }

    /// # Safety
    ///
    /// If threads share the lock, then `operation` may run on another thread, and its result may
    /// come from there.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    unsafe fn run_anywhere<R>(&self, operation: impl FnOnce(&mut T) -> R) -> R {
        match self.try_lock() {
            Some(mut guard) => operation(&mut guard),
            None => self.publish(operation),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn try_lock(&self) -> Option<CombiningLockGuard<'_, T, C>> {
        self.word.try_take().then(|| self.guard())
    }

    /// The calling thread has taken the lock.
    #[inline]
    fn guard(&self) -> CombiningLockGuard<'_, T, C> {
        CombiningLockGuard {
            lock: self,
            value: ManuallyDrop::new(self.value.get_mut()),
            not_send: PhantomData,
        }
    }

    #[cold]
    #[cfg_attr(sim, track_caller)]
    fn publish<R>(&self, operation: impl FnOnce(&mut T) -> R) -> R {
        let request = Request::new(operation);
        // From the whole request, which `serve` accesses through this pointer.
        let mine = ptr::from_ref(&request).cast::<Published<T>>();
        // One step that cannot fail, and then the link: threads that try an exchange until no other
        // came first take the line from each other as often as the square of their number. Release:
        // the holder that takes the request sees it whole.
        let before = self.published.swap(mine.cast_mut(), Ordering::Release);
        // Release: pairs with the holder's load. The exchange has shown the holder the request;
        // this shows it that the thread has done the last of what it does to the link.
        request.published.before.store(before, Ordering::Release);
        self.wait(&request.published.done, before.is_null());
        request.result()
    }

    /// Waits until the thread's request is done. `is_first` if none was in the list before.
    #[cfg(not(any(loom, shuttle)))]
    #[cfg_attr(sim, track_caller)]
    fn wait(&self, done: &AtomicBool, is_first: bool) {
        let mut looks = 0;
        let mut next_try = if is_first { 0 } else { RARELY };
        loop {
            // Acquire: pairs with the Release store of the holder that did the request.
            if done.load(Ordering::Acquire) {
                return;
            }
            if looks == next_try {
                if self.word.seems_free()
                    && let Some(guard) = self.try_lock()
                {
                    return served(guard, done);
                }
                next_try += if is_first {
                    looks.clamp(1, LOOKS)
                } else {
                    RARELY
                };
            }
            (0..PAUSES).for_each(|_| crate::spin_loop());
            looks += 1;
            if looks % LOOKS == 0 {
                crate::thread::yield_now();
            }
        }
    }

    /// The same without spinning, which a checker cannot explore: the thread looks at its request
    /// once, and then waits for the lock.
    #[cfg(any(loom, shuttle))]
    fn wait(&self, done: &AtomicBool, _is_first: bool) {
        if !done.load(Ordering::Acquire) {
            self.word.take();
            served(self.guard(), done);
        }
    }

    /// Does the published requests. The calling thread holds the lock.
    #[cold]
    #[cfg_attr(sim, track_caller)]
    fn serve_published(&self) {
        for _ in 0..ROUNDS {
            // Acquire: pairs with the Release exchanges by which the requests were published. Each
            // continues the release sequence of those before.
            let last = self.published.swap(ptr::null_mut(), Ordering::Acquire);
            if last.is_null() {
                return;
            }
            // SAFETY: the requests of the list live until they are done (invariant 2), and only the
            // holder takes them (invariant 1).
            unsafe { self.serve_all(first_of(last)) };
        }
    }

    /// # Safety
    ///
    /// The calling thread holds the lock, and has taken these requests from the list.
    unsafe fn serve_all(&self, first: *const Published<T>) {
        let value = self.value.get_mut();
        let mut next = first;
        while !next.is_null() {
            // SAFETY: the request lives until it is done.
            let request = unsafe { &*next };
            // Relaxed: the calling thread has written it.
            let after = request.before.load(Ordering::Relaxed);
            // SAFETY: as the caller promises; the calling thread holds the lock.
            unsafe { (request.serve)(next, value.deref()) };
            // Release: the thread that waits sees the result. The request may be gone after this.
            request.done.store(true, Ordering::Release);
            next = after;
        }
    }
}

/// Releases the lock, which does the published requests. The one of the calling thread, which
/// waited, is among them, unless another holder has done it since the thread looked.
#[cfg_attr(sim, track_caller)]
fn served<T, C>(guard: CombiningLockGuard<'_, T, C>, done: &AtomicBool) {
    drop(guard);
    debug_assert!(done.load(Ordering::Relaxed), "invariant 3 of CombiningLock");
}

/// What a request leads to that has been published, and whose thread has not yet written which one
/// was published before. No request is at this address.
fn unlinked<T>() -> *mut Published<T> {
    ptr::without_provenance_mut(1)
}

/// Turns a list of requests around, and returns the one that was published first. From then on
/// `before` leads to the request after. Waits for threads that have published a request and not yet
/// linked it, which is their next step.
///
/// # Safety
///
/// The calling thread has taken the requests from the list.
unsafe fn first_of<T>(last: *mut Published<T>) -> *const Published<T> {
    let mut first = ptr::null_mut();
    let mut next = last;
    while !next.is_null() {
        // SAFETY: a request that is not done lives.
        let request = unsafe { &*next };
        let backoff = Backoff::new();
        let before = loop {
            // Acquire: pairs with the Release store of the thread that has published it.
            let before = request.before.load(Ordering::Acquire);
            if before != unlinked() {
                break before;
            }
            backoff.wait();
        };
        request.before.store(first, Ordering::Relaxed);
        first = next;
        next = before;
    }
    first
}

impl<T: Default, C> Default for CombiningLock<T, C> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(all(test, not(any(loom, shuttle, sim))))]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    /// Fails if a request is lost or done twice, or if two run at once.
    #[test]
    fn each_request_is_done_once() {
        const THREADS: u64 = 8;
        const EACH: u64 = 20_000;
        let lock = CombiningLock::<_>::new((0_u64, 0_u64));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let lock = &lock;
                scope.spawn(move || {
                    for i in 0..EACH {
                        let one = lock.run(move |(count, sum)| {
                            *count += 1;
                            *sum += thread * EACH + i;
                            i
                        });
                        assert_eq!(one, i, "the result of another request");
                    }
                });
            }
        });
        let all = THREADS * EACH;
        assert_eq!(lock.run(|value| *value), (all, all * (all - 1) / 2));
    }

    /// Fails if a holder that has requests to do loses the panic of one, or the requests after it.
    #[test]
    fn a_panic_reaches_the_thread_whose_request_it_is() {
        let lock = CombiningLock::<_>::new(0);
        let inside = Barrier::new(2);
        let all_wait = || {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(60) {
                let last = lock.published.load(Ordering::Acquire);
                // SAFETY: the holder is this thread, and takes no request meanwhile.
                let before =
                    |last: *mut Published<_>| unsafe { (*last).before.load(Ordering::Acquire) };
                if !last.is_null() && ![ptr::null_mut(), unlinked()].contains(&before(last)) {
                    return true;
                }
                std::thread::yield_now();
            }
            false
        };
        let results = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                lock.run(|value| {
                    inside.wait();
                    assert!(all_wait());
                    *value += 1;
                });
            });
            inside.wait();
            let panics = scope.spawn(|| lock.run(|_| panic!("on purpose")));
            let adds = scope.spawn(|| lock.run(|value| *value += 10));
            [holder, panics, adds].map(|thread| thread.join().is_ok())
        });
        assert_eq!(results, [true, false, true]);
        assert_eq!(lock.run(|value| *value), 11);
        let panicked = catch_unwind(AssertUnwindSafe(|| lock.run(|_| panic!("on purpose"))));
        assert!(panicked.is_err());
        assert_eq!(lock.run(|value| *value), 11, "the lock is free");
    }
}
