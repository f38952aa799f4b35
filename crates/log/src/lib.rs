#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod batch;
mod config;
mod copy;
mod disk;
mod error;
mod faults;
mod files;
pub mod inspect;
mod log;
mod memory;
mod sequence;
mod signal;
mod watermark;

pub use batch::{Batch, Entry, Records};
pub use config::{Config, Keep};
pub use copy::{Copied, CopyError, Point, Reached, copy, last_at};
pub use disk::os::LockedDirectory;
pub use error::{Damage, Failure, Fenced, Full, OpenError, ReadError, Refused, Stopped};
pub use faults::FaultyDisk;
pub use files::{FileLog, Opened, Stats};
pub use log::{Log, Reader, Tail, Ticket};
pub use memory::MemoryLog;
pub use sequence::{Chain, Sequence};
pub use watermark::{Until, Watermark};
