//! Work to be done later, stored without an allocation if what it captures is small.

use std::mem::{MaybeUninit, size_of};

/// How many words a closure may capture without an allocation: enough for a vector, or for a boxed
/// trait object and a pointer.
const WORDS: usize = 3;

type Data = MaybeUninit<[usize; WORDS]>;

/// A closure that runs once. Dropping it without running it leaks what it captures.
pub(super) struct Work {
    /// Takes the closure out of `data` and runs it.
    call: unsafe fn(*mut Data),
    data: Data,
}

// SAFETY: `Work::new` requires that the closure may run, and be dropped, in any thread.
unsafe impl Send for Work {}

impl Work {
    /// # Safety
    ///
    /// The closure may run in any thread, and everything that it captures stays alive until it has
    /// run.
    #[inline]
    pub(super) unsafe fn new<F: FnOnce() -> R, R>(work: F) -> Self {
        let mut data = Data::uninit();
        if size_of::<F>() <= size_of::<Data>() && align_of::<F>() <= align_of::<Data>() {
            // SAFETY: the condition has checked that it fits.
            unsafe { data.as_mut_ptr().cast::<F>().write(work) };
            Self {
                call: call_in_place::<F, R>,
                data,
            }
        } else {
            // SAFETY: a pointer fits.
            unsafe { data.as_mut_ptr().cast::<Box<F>>().write(Box::new(work)) };
            Self {
                call: call_boxed::<F, R>,
                data,
            }
        }
    }

    pub(super) fn run(mut self) {
        // SAFETY: `new` made `call` and `data` for each other, and this is the only run.
        unsafe { (self.call)(&raw mut self.data) };
    }
}

/// # Safety
///
/// `data` holds an `F`, which nobody uses afterwards.
unsafe fn call_in_place<F: FnOnce() -> R, R>(data: *mut Data) {
    // SAFETY: passed on to the caller.
    let work = unsafe { data.cast::<F>().read() };
    work();
}

/// # Safety
///
/// `data` holds a `Box<F>`, which nobody uses afterwards.
unsafe fn call_boxed<F: FnOnce() -> R, R>(data: *mut Data) {
    // SAFETY: passed on to the caller.
    let work = unsafe { data.cast::<Box<F>>().read() };
    work();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn work_of_any_size_runs_with_what_it_captured() {
        let sum = Cell::new(0);
        let large = [1_u64, 2, 3, 4, 5];
        let small = 10_u64;
        // SAFETY: both run here and now.
        unsafe {
            Work::new(|| sum.set(sum.get() + small)).run();
            Work::new(move || {
                drop(Box::new(large));
            })
            .run();
            let sum = &sum;
            Work::new(move || sum.set(sum.get() + large.iter().sum::<u64>())).run();
        }
        assert_eq!(sum.get(), 25);
    }
}
