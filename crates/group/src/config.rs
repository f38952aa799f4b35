//! The durations and limits of a node.

use std::time::Duration;

/// The durations and limits of a node. All have a default; those under "the same on all nodes" must
/// not differ within a group.
///
/// ```
/// use std::time::Duration;
/// use tremula_group::Config;
///
/// let config = Config { lease: Duration::from_secs(3), ..Config::default() };
/// assert!(config.check().is_ok());
/// let config = Config { margin: Duration::ZERO, ..Config::default() };
/// assert!(config.check().unwrap_err().contains("margin"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// *The same on all nodes.* How long a leader may serve reads after it sent a record that the
    /// log then took.
    pub lease: Duration,
    /// *The same on all nodes.* How much longer than a lease a follower waits before it claims. It
    /// covers what two clocks differ in during a lease, and nothing else.
    pub margin: Duration,
    /// How long a leader that has nothing to write waits before it renews its lease by a record.
    pub renew_every: Duration,
    /// How long effects gather while other messages are under way.
    pub batch_delay: Duration,
    /// Bytes of effects at which a batch is full. A single proposal may have more.
    pub batch_bytes: usize,
    /// Messages that may be under way to the log at once.
    pub window: usize,
    /// Bytes that the log takes as one message; longer batches go in parts.
    pub message_bytes: usize,
    /// How long a leader waits for an answer before it sends a message again; doubles with each
    /// further attempt, four times at most.
    pub retry_after: Duration,
    /// How often a node that does not lead asks the log for its end.
    pub ask_every: Duration,
    /// *The same on all nodes.* Bytes that a batch may have; a node takes no longer one from the
    /// log.
    pub most_batch_bytes: usize,
    /// Bytes that may wait on the leader for the log's confirmation; more are refused.
    pub most_unconfirmed_bytes: usize,
    /// Replies and reads that may wait on a node; more are refused.
    pub most_waiting: usize,
    /// *The same on all nodes.* How many identifiers of clients' commands are remembered.
    pub most_once: usize,
    /// *The same on all nodes.* Bytes of identifiers and first answers that are remembered.
    pub most_once_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: Duration::from_millis(1500),
            // Clocks may differ by a tenth, which no clock does that works.
            margin: Duration::from_millis(300),
            renew_every: Duration::from_millis(400),
            batch_delay: Duration::from_millis(1),
            batch_bytes: 256 << 10,
            window: 64,
            // Below the 1 MiB that JetStream takes by default, with its own headers.
            message_bytes: 1_000_000,
            retry_after: Duration::from_millis(250),
            ask_every: Duration::from_secs(1),
            // A value of Redis has 512 MiB at most.
            most_batch_bytes: 640 << 20,
            most_unconfirmed_bytes: 1 << 30,
            most_waiting: 1 << 20,
            most_once: 100_000,
            most_once_bytes: 64 << 20,
        }
    }
}

/// The least part of a lease that the margin must be: clocks that differ by a hundredth.
const LEAST_MARGIN: u32 = 100;

impl Config {
    /// Whether the figures fit together.
    ///
    /// # Errors
    ///
    /// A sentence that names the figure that does not.
    pub fn check(&self) -> Result<(), String> {
        let least_message = crate::wire::HEADER_BYTES + 1;
        let wrong = [
            (
                self.margin < self.lease / LEAST_MARGIN || self.margin.is_zero(),
                "the margin must be at least a hundredth of the lease",
            ),
            (
                self.renew_every * 2 > self.lease,
                "the lease must be at least twice the time after which it is renewed",
            ),
            (self.window == 0, "the window must be at least 1"),
            (
                self.message_bytes < least_message,
                "message_bytes must be more than the header's",
            ),
            (
                self.most_batch_bytes < self.batch_bytes
                    || self.most_unconfirmed_bytes < self.batch_bytes,
                "the limits of bytes must be at least batch_bytes",
            ),
        ];
        wrong
            .into_iter()
            .find(|(is_wrong, _)| *is_wrong)
            .map_or(Ok(()), |(_, sentence)| Err(sentence.to_owned()))
    }
}
