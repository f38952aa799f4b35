#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cli;
mod clients;
mod commands;
mod connection;
mod cursors;
mod engines;
mod extended;
mod glob;
mod key;
mod keyspace;
pub mod limits;
pub mod load;
mod mailboxes;
mod resp;
mod server;
mod small_bytes;
mod snapshots;
mod table_owner;
mod value;
mod value_cache;
mod values;

pub use commands::command_table;
pub use cursors::{MAX_CURSOR_BYTES, MAX_CURSORS};
pub use engines::{UnfitEngine, served_engines};
pub use key::Key;
pub use keyspace::{DATABASES, Keyspace, ONE_MOMENT};
pub use server::{Config, DRAIN_TIME, Server, StartError};
pub use value::Value;
pub use value_cache::{CACHED_FROM, CacheSettings, LEAST_CACHE};
