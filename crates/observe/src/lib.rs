#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod assets;
mod embedded;
mod history;
mod http;
mod map;
mod observed;
mod observer;
mod open_metrics;
mod process;

pub use embedded::Maps;
#[doc(hidden)]
pub use http::fuzz;
pub use http::{Page, Settings};
pub use map::{LONGEST_KEY, WEIGHT_OF_WAIT};
pub use observed::{
    Access, Answer, ClientInfo, CommandInfo, CommandSecond, KeyInfo, Keys, Leaf, LogSecond,
    MailboxInfo, MapInfo, MemorySecond, Observed, ObservedMap, Overview, Refusal, ReplicaSecond,
    Reply, Sampled, Second, Section, ShardInfo, SlowCommand, SlowKey, SnapshotSecond, Visitor,
};
pub use open_metrics::{MetricKind, Metrics};
pub use process::resident_bytes;
