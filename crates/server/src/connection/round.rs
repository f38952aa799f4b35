//! Rounds: the clients of a thread that are ready at once are served before any of them gets its
//! reply.
//!
//! Another process that waits for a reply sleeps, and waking it costs the server as much time as a
//! short command takes. If the replies of all who are ready leave together, a process that has many
//! connections is woken once for all of them and not for each. Redis does so too: it writes when it
//! has served all that it has read.
//!
//! The replies do not wait if they would do so for long: while a client of the thread runs what
//! takes longer than a turn, whether it waits for its next or for room for its reply; nor if there
//! is only one client.

use super::Connection;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

thread_local! {
    /// The client that was served last.
    static LAST: Cell<u64> = const { Cell::new(u64::MAX) };
    /// How many clients run what takes longer than a turn.
    static SLOW: Cell<usize> = const { Cell::new(0) };
}

/// Whether it pays to serve others before this client, which has been served, gets its reply.
#[inline]
pub(super) fn has_others(client: u64) -> bool {
    LAST.replace(client) != client && SLOW.get() == 0
}

/// A client that runs what takes longer than a turn, until this is dropped on the same thread.
pub(super) struct Slow(());

impl Slow {
    pub(super) fn begin() -> Self {
        SLOW.set(SLOW.get() + 1);
        Self(())
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // At the end of the server, the thread apart may drop a client of a worker.
        SLOW.set(SLOW.get().saturating_sub(1));
    }
}

impl Connection {
    /// What it runs takes longer than a turn, or has a long reply.
    pub(super) fn goes_slowly(&mut self) {
        self.slow.get_or_insert_with(Slow::begin);
    }

    /// Lets the other clients of the thread run.
    pub(super) async fn give_way(&mut self) {
        self.server.stats.turns_spent.fetch_add(1, Relaxed);
        self.publish();
        self.goes_slowly();
        tokio::task::yield_now().await;
        self.turn.again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_wait_for_others_but_not_for_long_turns() {
        assert!(has_others(1));
        assert!(!has_others(1), "it is the only one");
        assert!(has_others(2));
        let (one, other) = (Slow::begin(), Slow::begin());
        assert!(!has_others(3));
        drop(one);
        assert!(!has_others(4));
        drop(other);
        assert!(has_others(5));
    }
}
