#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod access;
mod answers;
mod cursors;
mod database;
mod databases;
mod deadlines;
mod disk;
mod effects;
mod engines;
mod eviction;
mod expiry;
mod follow;
mod held;
mod kept;
mod kept_mail;
mod keyspace;
pub mod local;
mod mailboxes;
mod moving;
mod notes;
mod notices;
mod parts;
mod past;
mod recover;
mod reports;
mod snapshot_walk;
mod snapshots;
mod store;
mod table_owner;
mod tables;
mod value;
mod value_cache;
mod values;
mod version;

pub use answers::{Asked, Begun, MOST_ANSWER_BYTES, MOST_ANSWERS, MOST_ID_BYTES, OVER_ALL_BYTES};
pub use cursors::{CursorQuotas, Cursors, MAX_CURSOR_BYTES, MAX_CURSORS, Position};
pub use database::Database;
pub use databases::Databases;
pub use disk::{
    CopiedStore, CopyStoreError, FileFailure, Folder, LOG_FOLDER, RecoverError, SaveError, Saved,
    SnapshotError, backup, restore,
};
pub use effects::{BadRecord, DATABASES, Effects, Unlogged};
pub use engines::{CannotLog, UnfitEngine, check_logged, parse_engine, served_engines};
pub use eviction::{EvictionSettings, Evictor, Policy};
pub use expiry::{Expiry, NoExpiry};
pub use follow::{
    Event, Events, Follower, Following, Happened, Previous, Since, Span, Watch, WatchError,
    WatchStream,
};
pub use held::{CannotHold, Hold};
pub use keyspace::{Keyspace, ONE_MOMENT, TooManyKeys, Walk, prefix_bounds, snapshot};
pub use mailboxes::{CannotAdd, Lease, MailboxQuotas, Mailboxes, NotSent, Post};
pub use moving::{Moved, Place, Way};
pub use notes::Note;
pub use notices::{Cause, Happening, Listener, Notice};
pub use past::{Past, PastError, PastRange, PastReader};
pub use recover::{Progress, Recovered};
pub use snapshot_walk::SnapshotWalk;
pub use snapshots::{Held, Snapshots};
pub use store::{OpenError, Store, StoreConfig};
pub use table_owner::TableOwner;
pub use tables::{Changing, Table, Tables};
/// A key: any bytes, ordered byte by byte as unsigned numbers, a prefix before what extends it.
pub use tremula_index::key::ByteString as Key;
pub use tremula_index::key::INLINE_BYTES;
pub use tremula_index::{Direction, Engine, KeyRange, Update};
pub use tremula_log::{Log, Point, Sequence, Stopped};
pub use tremula_shard::Strategy;
pub use value::{INLINE_VALUE_BYTES, Value};
pub use value_cache::{CACHED_FROM, CacheSettings, LEAST_CACHE};
pub use values::{Changed, Lifetime, Part, Text, TooLong, Values, checked_end};
pub use version::Version;
