//! Time series in memory, compressed as Gorilla does: T. Pelkonen et al., *Gorilla: A Fast,
//! Scalable, In-Memory Time Series Database*, PVLDB 8(12), 2015.
//!
//! [`SeriesCache`] is the map of section 4.2. A series has one open block, to which points are
//! appended, and closed blocks, which never change. Each block covers a fixed span of time, and old
//! blocks are dropped. [`Block`] is the compression by itself.

mod bits;
mod block;
mod codec;
mod store;

pub use block::{Block, BlockError, Points};
pub use store::{LatePoint, SeriesCache, SeriesConfig};

/// A value at a time, whose unit the user chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The time.
    pub timestamp: i64,
    /// The value.
    pub value: f64,
}
