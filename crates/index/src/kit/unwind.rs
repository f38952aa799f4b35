//! Cleaning up when user code panics.

use std::mem;

/// Runs `work`; if it panics, `clean_up` runs before the panic goes on.
#[inline]
pub fn on_unwind<R>(clean_up: impl FnOnce(), work: impl FnOnce() -> R) -> R {
    struct Armed<C: FnOnce()>(Option<C>);

    impl<C: FnOnce()> Drop for Armed<C> {
        fn drop(&mut self) {
            if let Some(clean_up) = self.0.take() {
                clean_up();
            }
        }
    }

    let armed = Armed(Some(clean_up));
    let result = work();
    mem::forget(armed);
    result
}
