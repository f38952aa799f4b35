//! Rounds: the clients of a thread that are ready at once are served before any of them gets its
//! reply.
//!
//! Another process that waits for a reply sleeps, and waking it costs the server as much time as a
//! short command takes. If the replies of all who are ready leave together, a process that has many
//! connections is woken once for all of them and not for each. Redis does so too: it writes when it
//! has served all that it has read.
//!
//! The replies do not wait if they would do so for long: while a client of the thread has used up a
//! turn and waits for its next; nor if there is only one client.

use std::cell::Cell;

thread_local! {
    /// The client that was served last.
    static LAST: Cell<u64> = const { Cell::new(u64::MAX) };
    /// How many clients have used up a turn and wait for their next.
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// Whether it pays to serve others before this client, which has been served, gets its reply.
#[inline]
pub(super) fn has_others(client: u64) -> bool {
    LAST.replace(client) != client && WAITING.get() == 0
}

/// Waits for the next turn of a client that has used up one.
pub(super) async fn wait_for_turn() {
    let _waits = Waits::begin();
    tokio::task::yield_now().await;
}

/// A client that waits for its next turn.
struct Waits;

impl Waits {
    fn begin() -> Self {
        WAITING.set(WAITING.get() + 1);
        Self
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        WAITING.set(WAITING.get() - 1);
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
        let (one, other) = (Waits::begin(), Waits::begin());
        assert!(!has_others(3));
        drop(one);
        assert!(!has_others(4));
        drop(other);
        assert!(has_others(5));
    }
}
