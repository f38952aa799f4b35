//! The thread apart: each worker has one besides its own, for single steps that take long.
//!
//! Some steps cannot be interrupted, because they take effect at one moment, or because the memory
//! of a long value is freed by one call. The worker hands these to its thread apart, and serves its
//! other clients meanwhile.

use crate::server::Shared;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use tokio::runtime::Handle;

/// Bytes from which it takes longer to free a value, or to copy it, than to call another thread.
pub(crate) const LONG: usize = 1 << 20;

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
    if let Err(error) = tokio::task::spawn_blocking(move || job(&server)).await
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
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
