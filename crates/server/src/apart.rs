//! The thread apart: each worker has one besides its own, for single steps that take long.
//!
//! Some steps cannot be interrupted, because they take effect at one moment, because they read a
//! long argument, or because the memory of a long value is freed by one call. The worker hands
//! these to its thread apart, and serves its other clients meanwhile.
//!
//! A command that [begins there](crate::commands::Next::Apart) takes its connection's input, output
//! and session along, so it is written as any other.

use crate::server::Shared;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use tokio::runtime::Handle;

/// Bytes from which it takes longer to free a value, or to copy it, than to call another thread.
pub(crate) const LONG: usize = 1 << 20;

/// Bytes from which it takes longer to read terms, or words that are looked up, than to call
/// another thread.
pub(crate) const LONG_WORDS: usize = 16 << 10;

/// The number of arguments, of rows of a table, or of messages of a mailbox, from which one step
/// over all of them takes longer than to call another thread.
pub(crate) const MANY: usize = 1 << 10;

/// A step for the thread apart.
pub(crate) type Job = Box<dyn FnOnce(&Shared) + Send>;

/// A step for the thread apart, and where its result will be.
pub(crate) fn job<R: Send + 'static>(
    run: impl FnOnce(&Shared) -> R + Send + 'static,
) -> (Job, Receiver<R>) {
    let (result, receiver) = channel();
    let job = Box::new(move |server: &Shared| {
        // The connection may be gone.
        let _ = result.send(run(server));
    });
    (job, receiver)
}

/// Runs a step on the thread apart. A panic goes on in the caller.
pub(crate) async fn run(server: &Arc<Shared>, job: Job) {
    let server = Arc::clone(server);
    away(move || job(&server)).await;
}

/// What `run` returns on the thread apart; `None` if the server ends before. A panic goes on in the
/// caller.
pub(crate) async fn away<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    match tokio::task::spawn_blocking(run).await {
        Ok(result) => Some(result),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

/// Drops what holds this number of bytes: on the thread apart if that takes long.
pub(crate) fn free<T: Send + 'static>(bytes: usize, value: T) {
    if bytes >= LONG
        && let Ok(runtime) = Handle::try_current()
    {
        runtime.spawn_blocking(move || drop(value));
    }
}
