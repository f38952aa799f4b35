#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod apart;
mod channels;
pub mod cli;
mod clients;
mod commands;
mod connection;
mod descriptors;
mod expirer;
mod extended;
mod feeds;
mod figures;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod gather;
mod glob;
mod group;
pub mod http;
mod huge_pages;
mod keeper;
pub mod limits;
pub mod listen;
pub mod load;
mod lock;
pub mod log_keep;
pub mod logs;
mod machine;
mod memory;
pub mod moment;
mod notices;
mod outbox;
mod persist;
mod rdb;
mod resp;
mod server;
mod service;
pub mod settings;
mod shelf;
#[cfg(feature = "otel")]
mod spans;
mod startup;
pub mod transfer;
mod transport;
mod turn;
mod users;
mod watch;

pub use commands::command_table;
pub use descriptors::TooFew;
pub use figures::figure_table;
pub use group::{Group, GroupArgs, GroupError, rejoin};
#[cfg(feature = "jetstream")]
pub use group::{PublishArgs, check_package, publish};
pub use persist::{DirectoryError, Durability, PersistArgs, Persistence, SNAPSHOT_EVERY};
pub use server::{Config, DRAIN_TIME, Server, StartError};
pub use transport::{AuthClients, CertificateError, SocketMode, TlsFiles, UnixError, UnixSocket};
pub use users::FileError;
