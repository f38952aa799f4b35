//! `CLIENT PAUSE`: commands wait for a time.

use crate::commands::Command;
use crate::lock::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often a connection whose command waits looks whether the pause is over, or the connection
/// is to end.
const LOOK: Duration = Duration::from_millis(10);

/// Until when commands wait, and which.
#[derive(Default)]
pub(crate) struct Pause {
    /// Whether there may be a pause, so that commands take no lock without one.
    is_set: AtomicBool,
    until: Mutex<Option<Until>>,
}

#[derive(Clone, Copy)]
struct Until {
    end: Instant,
    only_writes: bool,
}

impl Pause {
    /// Pauses for a time from now. A pause never gets shorter or weaker by another, as in Redis.
    pub(crate) fn begin(&self, time: Duration, only_writes: bool) {
        let mut until = lock(&self.until);
        let now = Instant::now();
        let before = until.filter(|until| until.end > now);
        // A time that the clock does not have is as good as one that ends in a century.
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        let end = now.checked_add(time.min(CENTURY)).unwrap_or(now);
        *until = Some(Until {
            end: before.map_or(end, |before| before.end.max(end)),
            only_writes: only_writes && before.is_none_or(|before| before.only_writes),
        });
        self.is_set.store(true, Relaxed);
    }

    pub(crate) fn end(&self) {
        *lock(&self.until) = None;
        self.is_set.store(false, Relaxed);
    }

    /// Whether a command has to wait, which `writes` or does not. `CLIENT UNPAUSE` never does.
    pub(crate) fn holds(&self, command: &Command, writes: impl FnOnce() -> bool) -> bool {
        if !self.is_set.load(Relaxed) || command.full_name == "client|unpause" {
            return false;
        }
        let Some(until) = *lock(&self.until) else {
            return false;
        };
        let is_held = !until.only_writes || writes();
        is_held && Instant::now() < until.end
    }

    /// Waits a little while a pause may last.
    pub(crate) async fn wait(&self) {
        tokio::time::sleep(LOOK).await;
    }
}
