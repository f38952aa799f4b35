#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod action;
mod clock;
mod config;
mod host;
#[cfg(feature = "jetstream")]
mod jetstream;
mod leader;
mod node;
mod once;
mod position;
mod record;
mod refusal;
mod replica;
mod saved;
mod shelf;
mod time;
mod window;
mod wire;

pub use action::{Action, Attempt, Outcome, Ready, Role};
pub use clock::boot_time;
pub use config::Config;
pub use host::{Engine, Host, Presence, Report, Standing, State};
#[cfg(feature = "jetstream")]
pub use jetstream::{JetStream, Keeper, Packing, Settings, SettingsError, publish_snapshot};
pub use node::{Freshness, Node, Start};
pub use once::{Answer, OnceTable};
pub use position::{Epoch, MessageId, Point, Position, Reign};
pub use record::{Effects, MOST_ID_BYTES, Record, records};
pub use refusal::{Refusal, TryAgain, Unreadable};
pub use saved::SavedPoint;
pub use shelf::{Extent, Manifest, Peer, Shelf, SnapshotReport, maker};
pub use time::Moment;
