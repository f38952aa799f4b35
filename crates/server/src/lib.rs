#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cli;
mod clients;
mod commands;
mod connection;
mod extended;
mod glob;
pub mod limits;
pub mod load;
mod resp;
mod server;
mod turn;

pub use commands::command_table;
pub use server::{Config, DRAIN_TIME, Server, StartError};
