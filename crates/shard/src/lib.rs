#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cache;
pub mod seat;
pub mod series;
mod shards;
pub mod topology;

pub use shards::{
    Access, Balance, Call, CallError, Change, Config, Form, Look, MoveError, Operation, SendError,
    Shape, Shards, StartError, Strategy, UnknownStrategy,
};
