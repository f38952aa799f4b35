//! What one contestant does in one measurement.

use super::{
    AdaptationJob, AttackJob, CounterJob, EtsBenchJob, EtsJob, ExpiryJob, FeedJob, LongScanJob,
    MixJob, ObserveJob, RangeUpdateJob, RedisJob, RemoveJob, SequentialJob, ShardCacheJob,
    SignalsJob, SnapshotJob, TransactionJob, YcsbJob,
};
use crate::keys::{KeyList, KeySet, Keys};
use crate::measure::Span;

/// What one contestant does in one measurement, by kind of contestant. All contestants of a run get
/// the same job.
#[derive(Clone, Debug)]
pub enum Job {
    /// Use an ordered table of keys and values.
    Table(TableJob),
    /// Use a table of rows.
    Rows(RowJob),
    /// Use an ordered table of keys and values with one thread.
    Sequential(SequentialWork),
    /// Send messages to one receiver.
    Signals(SignalsJob),
    /// Receive commands as a server.
    Redis(RedisJob),
    /// Receive transactions as a server.
    Transactions(TransactionJob),
    /// Show clients what others write.
    Feeds(FeedJob),
    /// Receive commands as a server, with and without an open page.
    Observe(ObserveJob),
    /// Serve a client while others attack it.
    Attack(AttackJob),
    /// Let keys expire.
    Expiry(ExpiryJob),
    /// Add to one counter, and read it, until the time is up.
    Counter(CounterJob),
    /// Append to a cache in shards, or get from it, until the time is up.
    ShardCache(ShardCacheJob),
}

/// What an ordered table of keys and values is used for.
#[derive(Clone, Debug)]
pub enum TableJob {
    /// Insert 0..`keys` into an empty table; each thread a contiguous part, ascending.
    InsertRanges {
        /// How many keys.
        keys: u64,
        /// How many threads.
        threads: usize,
    },
    /// Run operation streams against a half filled table until the time is up.
    Mix(MixJob),
    /// Update by some threads and scan by others until the time is up.
    RangeUpdate(RangeUpdateJob),
    /// Fill a table, use it in several ways one after the other, and observe it meanwhile.
    Adaptation(AdaptationJob),
    /// Fill a table, then run operation streams against it, one after the other.
    Ycsb(Keys<YcsbJob<u64>, YcsbJob<String>>),
    /// All threads append to one table.
    Append(AppendJob),
    /// Look many keys up, one by one and in batches.
    Batch(Keys<BatchJob<u64>, BatchJob<String>>),
    /// Fill a table, then remove all of its keys.
    Remove(RemoveJob),
    /// Fill a table, then scan many entries at a time until the time is up.
    LongScan(LongScanJob),
    /// Fill a table, then update its keys until the time is up, with or without snapshots.
    Snapshots(SnapshotJob),
    /// Fill an empty table in a process of its own and weigh it.
    Fill(FillJob),
}

/// What a table of rows is used for.
#[derive(Clone, Debug)]
pub enum RowJob {
    /// Run operation streams against a half filled table until the time is up.
    Mix(EtsJob),
    /// Do one operation until the time is up.
    Bench(EtsBenchJob),
}

/// Fill a table, use it and empty it, all with one thread.
pub type SequentialWork = Keys<SequentialJob<u64>, SequentialJob<String>>;

impl Job {
    /// The mean length of the keys, or messages, in bytes.
    #[must_use]
    pub fn key_bytes(&self) -> f64 {
        match self {
            Self::Table(job) => job.key_bytes(),
            Self::Rows(_) | Self::Counter(_) | Self::ShardCache(_) => size_of::<u64>() as f64,
            Self::Sequential(Keys::Integers(job)) => job.keys.mean_length(),
            Self::Sequential(Keys::Texts(job)) => job.keys.mean_length(),
            Self::Signals(job) => job.message.bytes() as f64,
            Self::Redis(_) | Self::Observe(_) => RedisJob::KEY_BYTES as f64,
            Self::Transactions(_) => TransactionJob::KEY_BYTES as f64,
            Self::Feeds(_) => FeedJob::KEY_BYTES as f64,
            Self::Attack(_) => AttackJob::KEY_BYTES as f64,
            Self::Expiry(_) => ExpiryJob::KEY_BYTES as f64,
        }
    }
}

impl TableJob {
    fn key_bytes(&self) -> f64 {
        match self {
            Self::Ycsb(Keys::Integers(job)) => job.keys.mean_length(),
            Self::Ycsb(Keys::Texts(job)) => job.keys.mean_length(),
            Self::Batch(Keys::Integers(job)) => job.keys.mean_length(),
            Self::Batch(Keys::Texts(job)) => job.keys.mean_length(),
            // Its keys are made in another process, from the same seed.
            Self::Fill(job) if !job.key_set.is_integers() => job.make_keys().mean_length(),
            _ => size_of::<u64>() as f64,
        }
    }
}

/// Appending to one table, with keys that are read from the clock.
#[derive(Clone, Copy, Debug)]
pub struct AppendJob {
    /// How many keys are inserted in all; each thread inserts its part.
    pub count: u64,
    /// How many threads.
    pub threads: usize,
}

/// How keys are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupStyle {
    /// One call a key.
    OneByOne,
    /// One call a batch.
    Batched,
}

/// Lookups of many keys, in two ways.
#[derive(Clone, Debug)]
pub struct BatchJob<K> {
    /// What the table is filled with.
    pub keys: KeyList<K>,
    /// The keys that each thread looks up, repeatedly.
    pub streams: Vec<Vec<K>>,
    /// How many keys make a batch.
    pub batch: usize,
    /// The ways, in the order of measurement.
    pub styles: Vec<LookupStyle>,
    /// How long the threads warm up, and how long their operations count.
    pub span: Span,
}

/// Filling a table, to be weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillJob {
    /// Which keys, and in which order.
    pub key_set: KeySet,
    /// How many keys.
    pub count: u64,
    /// How many threads; each inserts its part.
    pub threads: usize,
    /// The seed of random keys.
    pub seed: u64,
    /// The run; random keys depend on it as well.
    pub run: usize,
}

impl FillJob {
    /// The keys that are inserted.
    #[must_use]
    pub fn make_keys(&self) -> Keys<KeyList<u64>, KeyList<String>> {
        self.key_set
            .make(self.count, 0, self.threads, self.seed, self.run)
    }
}
