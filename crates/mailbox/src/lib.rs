#![doc = include_str!("../README.md")]

mod call;
mod claim;
mod closed;
mod config;
mod credits;
mod error;
mod extras;
mod mailbox;
mod monitor;
mod oneshot;
mod permit;
mod queue;
mod recv;
mod selective;
mod sender;
mod shared;
mod sink;
mod stats;
mod waiting;
mod weak;

pub use call::Reply;
pub(crate) use config::Limits;
pub use config::{Config, Mode, UnknownMode};
pub use error::{
    CallError, RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
pub use mailbox::{Mailbox, bounded, mailbox, unbounded};
pub use monitor::Monitor;
pub use oneshot::{OneshotReceiver, OneshotSender, oneshot};
pub use permit::Permit;
pub use recv::{IntoIter, Iter, TryIter};
pub use sender::Sender;
pub use stats::Stats;
pub use weak::WeakSender;
