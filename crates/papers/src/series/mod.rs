//! Time series in memory, compressed as Gorilla does: T. Pelkonen et al., *Gorilla: A Fast,
//! Scalable, In-Memory Time Series Database*, PVLDB 8(12), 2015.
//!
//! [`SeriesCache`] is the map of section 4.2: a series has one open block, to which points are
//! appended, and closed ones, which never change; each block covers a fixed span of time, and old
//! ones go. [`Block`] is the compression by itself.

mod bits;
mod block;
mod codec;
mod store;

pub use block::{Block, BlockError, Points};
pub use store::{LatePoint, SeriesCache, SeriesConfig};

/// A value at a moment. The unit of timestamps is the user's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When.
    pub timestamp: i64,
    /// What.
    pub value: f64,
}
