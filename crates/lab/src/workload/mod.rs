//! What the contestants are asked to do: operation streams, made before the time runs, and the jobs
//! that carry them. Everything random here comes from [`generator`], so that one seed gives one
//! workload.

mod adaptation;
mod attack;
mod counter;
mod ets;
mod ets_bench;
mod expiry;
mod feeds;
mod job;
mod long_scan;
mod mix;
mod range_update;
mod redis;
mod remove;
mod sequential;
mod shard_cache;
mod signals;
mod snapshots;
mod transactions;
mod ycsb;
mod zipfian;

pub use crate::random::{Purpose, generator, part, part_of};
pub use adaptation::{ADAPTATION_SCAN, AdaptationJob, AdaptationPhase, HOT_KEYS};
pub use attack::{Attack, AttackJob};
pub use counter::{CounterJob, CounterMix, READ_PERIOD};
pub use ets::{BINARY_BYTES, EtsJob, EtsMix, Rows, SELECTED_KEYS, Selected, Selects};
pub use ets_bench::{EtsBenchJob, EtsOperation, GROUP, LIST_LENGTH, SEARCHES, State};
pub use expiry::{Expiring, ExpiryJob};
pub use feeds::{Feed, FeedJob};
pub use job::{AppendJob, BatchJob, FillJob, Job, LookupStyle, RowJob, SequentialWork, TableJob};
pub use long_scan::{ExpectedScan, LONG_SCAN, LongScanJob, expected_scans};
pub use mix::{
    Kind, MOST_RANGE, Mix, MixJob, Operation, SEQUENCE_STEPS, STREAM_LENGTH, Shares, random_half,
    rotate, rotation_step, stream,
};
pub use range_update::{LongScan, RangeUpdateJob, SCAN_LENGTHS, scans};
pub use redis::{ObserveJob, Pipelining, RedisCommand, RedisJob};
pub use remove::RemoveJob;
pub use sequential::{SEQUENTIAL_SCAN, SequentialJob, SequentialOperation};
pub use shard_cache::{CacheTraffic, HOT_IDS, ShardCacheJob, ValueSize};
pub use signals::{Message, MessageKind, SignalsJob, Stamp, Traffic};
pub use snapshots::{Company, SnapshotJob, update_stream};
pub use transactions::{Transaction, TransactionJob};
pub use ycsb::{
    Action, Distribution, LONGEST_SCAN, Phase, YcsbJob, YcsbMix, actions, draw_keys, stream_length,
};
pub use zipfian::ScatteredZipfian;
