//! What a mailbox has counted.

/// What a mailbox has counted since it was made, for the curious and for tuning.
///
/// ```
/// use tremula_mailbox::{Config, mailbox};
///
/// let (sender, mailbox) = mailbox(Config::default());
/// sender.send(1).unwrap();
/// assert_eq!(mailbox.stats().uncontended_sends, 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Ordinary messages whose sender had to wait for a lock.
    pub contended_sends: u64,
    /// Ordinary messages whose sender did not.
    pub uncontended_sends: u64,
    /// How often slots were installed.
    pub installs: u32,
    /// How often they were removed.
    pub removals: u32,
    /// How often a slot grew slots of its own.
    pub growths: u32,
    /// How often it shrank back.
    pub shrinks: u32,
    /// How often the slots were flushed.
    pub flushes: u64,
    /// Messages that came by way of slots.
    pub flushed: u64,
}

impl Stats {
    /// All ordinary messages that were sent.
    #[must_use]
    pub const fn sends(&self) -> u64 {
        self.contended_sends + self.uncontended_sends
    }

    /// Messages a flush of the slots brought on average; 0 if there was none.
    #[must_use]
    pub fn messages_a_flush(&self) -> f64 {
        if self.flushes == 0 {
            return 0.0;
        }
        self.flushed as f64 / self.flushes as f64
    }
}
