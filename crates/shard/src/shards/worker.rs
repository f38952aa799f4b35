//! Which worker a thread is, or stands in for.

use crate::topology::{self, Cpu};
use std::cell::Cell;
use tremula_sync::thread::{self, JoinHandle};

tremula_sync::thread_local! {
    /// Which worker of which shards this thread is.
    static ME: Cell<Option<(u32, usize)>> = const { Cell::new(None) };
}

/// Whether this thread is a worker of any shards.
pub(super) fn is_worker() -> bool {
    ME.with(|me| me.get()).is_some()
}

/// Which worker of these shards this thread is, if it is one.
#[inline]
pub(super) fn worker_of(shards: u32) -> Option<usize> {
    let me = ME.with(|me| me.get());
    me.and_then(|(of, worker)| (of == shards).then_some(worker))
}

/// Whether this thread is any worker of these shards.
pub(super) fn is_worker_of_any(shards: u32) -> bool {
    worker_of(shards).is_some()
}

pub(super) fn note_worker(shards: u32, worker: usize) {
    ME.with(|me| me.set(Some((shards, worker))));
}

/// While it lives, this thread counts as a worker: it runs the requests of other callers as the
/// worker would. So it must not wait for calls, least of all for a call that it is running.
pub(super) struct Role(Option<(u32, usize)>);

impl Role {
    pub(super) fn of_worker(shards: u32, worker: usize) -> Self {
        Self(ME.with(|me| me.replace(Some((shards, worker)))))
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        ME.with(|me| me.set(self.0));
    }
}

/// Pins the thread. If the system refuses, the thread runs anywhere, which is slower but correct.
pub(super) fn pin(cpu: Cpu) {
    let _ = topology::pin(cpu);
}

/// Waits for threads to end, except for the calling one.
pub(super) fn join(threads: Vec<JoinHandle<()>>) {
    let me = thread::current().id();
    for thread in threads {
        if thread.thread().id() != me {
            // An error cannot occur: a worker catches the panics of its jobs.
            let _ = thread.join();
        }
    }
}
