//! What users of other collections type on their first day, a test each: short programs that must
//! compile, through the crate `tremula` alone, and do what their names say. What must not compile
//! is in `src/refused.rs`.

mod containers;
mod conversions;
mod errors;
mod iteration;
mod keys;
mod mailboxes;
mod maps;
mod ranges;
mod sets;
mod shards;
mod sharing;
mod tables;
mod values;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Runs a future on this thread, which sleeps while the future waits.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}
