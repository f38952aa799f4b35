//! The counts of a mailbox.

/// What a mailbox has counted since it was made, for tuning.
///
/// ```
/// use tremula_mailbox::{Config, mailbox};
///
/// let (sender, mailbox) = mailbox(Config::default());
/// sender.send(1).unwrap();
/// assert_eq!(mailbox.stats().uncontended_sends, 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Ordinary messages whose sender had to wait for a lock.
    pub contended_sends: u64,
    /// Ordinary messages whose sender did not have to wait.
    pub uncontended_sends: u64,
    /// How often slots were installed.
    pub installs: u32,
    /// How often slots were removed.
    pub removals: u32,
    /// How often a slot grew slots of its own.
    pub growths: u32,
    /// How often a slot's own slots were removed.
    pub shrinks: u32,
    /// How often the slots were flushed.
    pub flushes: u64,
    /// Messages that came through slots.
    pub flushed: u64,
}

impl Stats {
    /// All ordinary messages that were sent.
    #[must_use]
    pub const fn sends(&self) -> u64 {
        self.contended_sends + self.uncontended_sends
    }

    /// The average number of messages per flush of the slots; 0 without flushes.
    #[must_use]
    pub fn messages_a_flush(&self) -> f64 {
        if self.flushes == 0 {
            return 0.0;
        }
        self.flushed as f64 / self.flushes as f64
    }
}
