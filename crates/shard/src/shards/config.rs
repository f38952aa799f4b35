//! The configuration of shards.

use super::other::OtherForm;
use std::num::NonZeroUsize;

/// Which thread runs a function on a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// The caller, on its own thread, with the shard's lock. The default.
    #[default]
    Threading,
    /// The worker that owns the shard: a thread with a tokio runtime and a `LocalSet`. Only with
    /// the feature `tokio`.
    #[cfg(feature = "tokio")]
    LocalSet,
    /// The worker that owns the shard: a thread pinned to a core.
    Affinity,
}

impl Strategy {
    /// Every strategy, `LocalSet` among them if the feature `tokio` is on.
    ///
    /// ```
    /// use tremula_shard::Strategy;
    ///
    /// assert!(Strategy::ALL.contains(&Strategy::Affinity));
    /// ```
    pub const ALL: &'static [Self] = &[
        Self::Threading,
        #[cfg(feature = "tokio")]
        Self::LocalSet,
        Self::Affinity,
    ];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threading => "threading",
            #[cfg(feature = "tokio")]
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

/// A name that no [`Strategy`] has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no strategy '{0}'; there are threading, affinity and, with the feature 'tokio', local_set"
)]
pub struct UnknownStrategy(pub String);

impl std::str::FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        let found = Self::ALL.iter().find(|strategy| strategy.name() == name);
        found
            .copied()
            .ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}

/// How requests travel.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Form {
    /// The calling thread routes a request and queues it at the shard, an adaptive mailbox notifies
    /// the worker, and a reusable slot carries the answer. The caller runs the request itself where
    /// that is sound and faster. The default.
    #[default]
    Direct,
    /// A way that another crate implements.
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
///
/// ```
/// use tremula_shard::{Balance, Config};
///
/// let config = Config::default().balance(Some(Balance::default().window(1 << 16)));
/// assert_eq!(config.balance.unwrap().tolerance, 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Balance {
    /// Requests of a worker after which loads are compared. A request whose caller found the shard
    /// in use counts as sixteen. The default is 4096, about a millisecond of small requests.
    pub window: u64,
    /// By how many percent a worker's load must exceed the average. The default is 20.
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

impl Balance {
    /// Sets the number of requests after which loads are compared.
    #[must_use]
    pub const fn window(mut self, window: u64) -> Self {
        self.window = window;
        self
    }

    /// Sets by how many percent a worker's load must exceed the average.
    #[must_use]
    pub const fn tolerance(mut self, tolerance: u64) -> Self {
        self.tolerance = tolerance;
        self
    }
}

/// The configuration of [`Shards`](super::Shards). The default is that of
/// [`Strategy::Threading`].
///
/// ```
/// use tremula_shard::{Config, Strategy};
///
/// let config = Config::new("affinity".parse::<Strategy>().unwrap()).workers(2).shards(64);
/// assert_eq!(config.strategy, Strategy::Affinity);
/// assert_eq!(Config::default(), Config::new(Strategy::Threading));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Which thread runs requests.
    pub strategy: Strategy,
    /// How requests travel.
    pub form: Form,
    /// The number of workers. By default, as many as the process can run at once.
    pub workers: Option<NonZeroUsize>,
    /// The number of shards. By default 32 for each worker, enough that some can be given away.
    pub shards: Option<NonZeroUsize>,
    /// Requests that may be queued at a shard. The default is 1024.
    pub capacity: NonZeroUsize,
    /// Whether, and when, workers give shards away. By default they do.
    pub balance: Option<Balance>,
    /// Whether a caller runs its request itself if nothing is queued at the shard and no thread
    /// runs a request there, and then a few requests of others that came meanwhile, instead of
    /// waking the worker. By default it does, if states may change threads.
    pub delegate: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Strategy::default())
    }
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

    /// Sets which thread runs requests.
    #[must_use]
    pub const fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets how requests travel.
    #[must_use]
    pub const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets the number of workers; 0 means as many as the process can run at once.
    #[must_use]
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = NonZeroUsize::new(workers);
        self
    }

    /// Sets the number of shards; 0 means 32 for each worker.
    #[must_use]
    pub const fn shards(mut self, shards: usize) -> Self {
        self.shards = NonZeroUsize::new(shards);
        self
    }

    /// Sets how many requests may be queued at a shard; 0 means 1.
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
