//! The configuration of a mailbox.

use std::num::NonZeroUsize;

/// How a mailbox accepts messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Messages are written in place while senders do not contend, and through slots when they do.
    /// The default.
    #[default]
    Auto,
    /// Messages are written in place while senders do not contend, and never through slots.
    ///
    /// Named after Erlang's mode that places messages on the receiver's heap.
    OnHeap,
    /// Messages are never written in place, and go through slots when senders contend.
    ///
    /// Named after Erlang's mode that keeps messages off the receiver's heap.
    OffHeap,
}

impl Mode {
    /// Every mode. A later version may have more.
    pub const ALL: [Self; 3] = [Self::Auto, Self::OnHeap, Self::OffHeap];

    /// The name, as Erlang spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::OnHeap => "on_heap",
            Self::OffHeap => "off_heap",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// The error for a name that no [`Mode`] has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no mailbox mode '{0}'; there are auto, on_heap and off_heap")]
pub struct UnknownMode(pub String);

impl std::str::FromStr for Mode {
    type Err = UnknownMode;

    /// The mode of this name. Case does not matter.
    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let known = |mode: &Self| mode.name().eq_ignore_ascii_case(name);
        let found = Self::ALL.into_iter().find(known);
        found.ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

/// The configuration of a mailbox. By default it is unbounded, in mode [`Auto`](Mode::Auto), with
/// measured thresholds.
///
/// ```
/// use tremula_mailbox::{Config, Mode, mailbox};
///
/// let config = Config::default().mode(Mode::OffHeap).bounded(100);
/// let (sender, mut mailbox) = mailbox(config);
/// sender.send(1).unwrap();
/// assert_eq!(mailbox.recv(), Ok(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    mode: Mode,
    capacity: Option<NonZeroUsize>,
    limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            capacity: None,
            limits: Limits::DEFAULT,
        }
    }
}

impl Config {
    /// Sets the mode.
    #[must_use]
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Limits the mailbox to `capacity` messages, including urgent ones. Senders wait while it is
    /// full.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0: nothing could ever be sent.
    #[must_use]
    pub const fn bounded(mut self, capacity: usize) -> Self {
        self.capacity = NonZeroUsize::new(capacity);
        assert!(
            self.capacity.is_some(),
            "a mailbox needs a capacity of 1 message at least"
        );
        self
    }

    /// Sets how many slots are installed under contention: 1 to 64, the default. A number outside
    /// this range is clamped to it.
    #[must_use]
    pub const fn slots(mut self, slots: u32) -> Self {
        self.limits.slots = match slots {
            0 => 1,
            1..=63 => slots as u8,
            _ => 64,
        };
        self
    }

    /// Sets how much a contended send adds to the measure of contention, and how much an
    /// uncontended one subtracts: 10 and 1 by default.
    ///
    /// If the second number is negative, contention always rises. Tests use this to get slots
    /// without contention.
    #[must_use]
    pub const fn weights(mut self, contended: u16, uncontended: i32) -> Self {
        self.limits.contended = contended;
        self.limits.uncontended = uncontended;
        self
    }

    /// Sets the contention above which slots are installed.
    #[must_use]
    pub const fn install_above(mut self, contention: i32) -> Self {
        self.limits.install_above = contention;
        self
    }

    /// Sets the contention of one slot above which it grows slots of its own.
    #[must_use]
    pub const fn grow_above(mut self, contention: i32) -> Self {
        self.limits.grow_above = contention;
        self
    }

    /// Sets when slots are removed: after each `window` flushes of the slots, if they brought fewer
    /// than `fewest` messages each on average.
    #[must_use]
    pub const fn remove_below(mut self, fewest: f32, window: u32) -> Self {
        self.limits.fewest = fewest;
        self.limits.window = window;
        self
    }

    /// The capacity, if the mailbox is bounded.
    #[must_use]
    pub const fn capacity(&self) -> Option<usize> {
        match self.capacity {
            Some(capacity) => Some(capacity.get()),
            None => None,
        }
    }

    pub(crate) const fn limits(&self) -> Limits {
        let mut limits = self.limits;
        limits.mode = self.mode;
        limits
    }
}

/// The thresholds as the queue reads them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    pub(crate) mode: Mode,
    pub(crate) slots: u8,
    pub(crate) contended: u16,
    pub(crate) uncontended: i32,
    pub(crate) install_above: i32,
    pub(crate) grow_above: i32,
    pub(crate) window: u32,
    pub(crate) fewest: f32,
}

impl Limits {
    /// Those of Erlang/OTP 25, except `contended`, which is 1 there: slots then come only when more
    /// than half of all sends had to wait, which two cores that send without pause never reach.
    /// With 10 they come when a tenth had to wait, and messages are received faster.
    const DEFAULT: Self = Self {
        mode: Mode::Auto,
        slots: 64,
        contended: 10,
        uncontended: 1,
        install_above: 50,
        grow_above: 50,
        window: 8192,
        fewest: 1.5,
    };

    /// Whether messages may be written in place.
    #[inline]
    pub(crate) const fn has_ring(&self) -> bool {
        !matches!(self.mode, Mode::OffHeap)
    }

    /// Whether slots may be installed.
    #[inline]
    pub(crate) const fn has_slots(&self) -> bool {
        !matches!(self.mode, Mode::OnHeap)
    }
}
