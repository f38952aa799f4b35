//! How shards are run.

use super::other::OtherForm;
use std::num::NonZeroUsize;

/// Who runs what is to be done with a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The caller, on its own thread, with the shard's lock. The default.
    #[default]
    Threading,
    /// The worker that owns the shard: a thread with a tokio runtime and a `LocalSet`.
    LocalSet,
    /// The worker that owns the shard: a thread pinned to a core.
    Affinity,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 3] = [Self::Threading, Self::LocalSet, Self::Affinity];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threading => "threading",
            Self::LocalSet => "local_set",
            Self::Affinity => "affinity",
        }
    }
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// A name that is no [`Strategy`]'s.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no strategy '{0}'; there are threading, local_set and affinity")]
pub struct UnknownStrategy(pub String);

impl std::str::FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        let found = Self::ALL
            .into_iter()
            .find(|strategy| strategy.name() == name);
        found.ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}

/// How requests travel.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Form {
    /// Routed by the calling thread, queued at the shard, told to its worker by an adaptive
    /// mailbox, answered by a slot that is used again; run by the caller where that is sound and
    /// quicker. The default.
    #[default]
    Direct,
    /// A way that another crate has.
    #[doc(hidden)]
    Other(&'static dyn OtherForm),
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Other(form) => form.name(),
        }
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Form {}

/// When a worker that has more to do than others gives shards away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Requests by a worker after which loads are compared; one whose caller found the shard in use
    /// counts for sixteen. 4096: about a millisecond of small ones.
    pub window: u64,
    /// How much more than the average, in percent of it, a worker must have had. 20.
    pub tolerance: u64,
}

impl Default for Balance {
    fn default() -> Self {
        Self {
            window: 4096,
            tolerance: 20,
        }
    }
}

/// The configuration of [`Shards`](super::Shards).
///
/// ```
/// use tremula_shard::{Config, Strategy};
///
/// let config = Config::new("affinity".parse::<Strategy>().unwrap()).workers(2).shards(64);
/// assert_eq!(config.strategy, Strategy::Affinity);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Who runs requests.
    pub strategy: Strategy,
    /// How requests travel.
    pub form: Form,
    /// Threads; if not given, as many as the process may run at once.
    pub workers: Option<NonZeroUsize>,
    /// Shards; if not given, 32 a worker: enough that some can be given away.
    pub shards: Option<NonZeroUsize>,
    /// Requests that may be queued at a shard. 1024.
    pub capacity: NonZeroUsize,
    /// Whether, and when, workers give shards away. They do by default.
    pub balance: Option<Balance>,
    /// Whether a caller runs its request itself when nothing is queued at the shard and nobody runs,
    /// and a few of those of others that came meanwhile, rather than wake the worker. It does by
    /// default, where states may change threads.
    pub delegate: bool,
}

impl Config {
    /// The default configuration under this strategy.
    #[must_use]
    pub fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            form: Form::default(),
            workers: None,
            shards: None,
            capacity: NonZeroUsize::new(1024).expect("not 0"),
            balance: Some(Balance::default()),
            delegate: true,
        }
    }

    /// Sets how requests travel.
    #[must_use]
    pub const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets how many workers there are; 0 stands for as many as the process may run at once.
    #[must_use]
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = NonZeroUsize::new(workers);
        self
    }

    /// Sets how many shards there are; 0 stands for 32 a worker.
    #[must_use]
    pub const fn shards(mut self, shards: usize) -> Self {
        self.shards = NonZeroUsize::new(shards);
        self
    }

    /// Sets how many requests may be queued at a shard; 0 is taken for 1.
    #[must_use]
    pub const fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = match NonZeroUsize::new(capacity) {
            Some(capacity) => capacity,
            None => NonZeroUsize::MIN,
        };
        self
    }

    /// Sets when workers give shards away.
    #[must_use]
    pub const fn balance(mut self, balance: Option<Balance>) -> Self {
        self.balance = balance;
        self
    }

    /// Sets whether callers run requests themselves.
    #[must_use]
    pub const fn delegate(mut self, delegate: bool) -> Self {
        self.delegate = delegate;
        self
    }

    /// How many workers there are.
    #[doc(hidden)]
    #[must_use]
    pub fn worker_count(&self) -> usize {
        let may_run =
            || tremula_sync::system::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.workers.map_or_else(may_run, NonZeroUsize::get)
    }

    /// How many shards there are.
    #[doc(hidden)]
    #[must_use]
    pub fn shard_count(&self) -> usize {
        /// Shards of a worker.
        const EACH: usize = 32;
        let shards = self.shards.map(NonZeroUsize::get);
        shards.unwrap_or_else(|| self.worker_count().saturating_mul(EACH))
    }
}
