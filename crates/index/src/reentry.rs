//! In a debug build, a closure that calls the index that is running it panics with an explanation.
//!
//! An index runs the closures of `get_with`, `step_with` and `update`, and those of steps
//! ([`Transactional`](crate::Transactional)), while it holds a lock, or in an attempt that restarts
//! if something changes; which of these depends on the engine. A closure that calls the same index
//! waits for ever on some engines and works on others. So that a program does not first fail when
//! its engine is changed, a debug build notes for each thread the indexes whose closures are
//! running, and checks the note at the beginning of every operation. Two kinds of user code are not
//! noted: the closure of `range`, which runs with no lock held, and the `drop` of keys and values,
//! which runs after the locks have been released.
//!
//! Release builds and builds under a model checker check nothing.

#[cfg(all(debug_assertions, not(any(loom, shuttle))))]
mod noted {
    use std::cell::RefCell;
    use std::ptr;

    tremula_sync::system::thread_local! {
        /// The addresses of the indexes whose closures this thread is running, innermost last.
        static RUNNING: RefCell<Vec<*const ()>> = const { RefCell::new(Vec::new()) };
    }

    fn address<I: ?Sized>(index: &I) -> *const () {
        ptr::from_ref(index).cast()
    }

    /// Removes the note, also when the closure panics.
    struct Noted;

    impl Drop for Noted {
        fn drop(&mut self) {
            let _ = RUNNING.try_with(|running| running.borrow_mut().pop());
        }
    }

    /// Runs a closure that `index` calls.
    pub(crate) fn during<I: ?Sized, R>(index: &I, closure: impl FnOnce() -> R) -> R {
        // In a thread that is ending, the notes may already be gone.
        let noted = RUNNING.try_with(|running| running.borrow_mut().push(address(index)));
        let _noted = noted.is_ok().then_some(Noted);
        closure()
    }

    /// Panics if it is called by a closure that `index` is running.
    #[track_caller]
    pub(crate) fn check<I: ?Sized>(index: &I) {
        let is_running = RUNNING
            .try_with(|running| running.borrow().contains(&address(index)))
            .unwrap_or(false);
        assert!(
            !is_running,
            "a closure given to get_with, step_with or update of an index, or to a step, has called the \
             same index: some engines would wait for ever for a lock that this thread holds, so no closure may do \
             it (only a debug build looks)"
        );
    }
}

#[cfg(all(debug_assertions, not(any(loom, shuttle))))]
pub(crate) use noted::{check, during};

#[cfg(not(all(debug_assertions, not(any(loom, shuttle)))))]
#[inline(always)]
pub(crate) fn check<I: ?Sized>(_: &I) {}

#[cfg(not(all(debug_assertions, not(any(loom, shuttle)))))]
#[inline(always)]
pub(crate) fn during<I: ?Sized, R>(_: &I, closure: impl FnOnce() -> R) -> R {
    closure()
}
