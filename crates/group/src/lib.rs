#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod action;
mod config;
mod leader;
mod node;
mod once;
mod position;
mod record;
mod refusal;
mod replica;
mod time;
mod window;
mod wire;

pub use action::{Action, Attempt, Outcome, Ready, Role};
pub use config::Config;
pub use node::{Freshness, Node, Start};
pub use once::{Answer, OnceTable};
pub use position::{Epoch, MessageId, Point, Position, Reign};
pub use record::{Effects, MOST_ID_BYTES, Record, records};
pub use refusal::{Refusal, TryAgain, Unreadable};
pub use time::Moment;
