//! The contention map: what the leaves of a map were, second by second.
//!
//! | file | holds |
//! |---|---|
//! | `column` | one moment: buckets of keys and their figures |
//! | `bounds` | which keys a bucket has, and how buckets of equal weight are chosen |
//! | `recorder` | what a walk adds to the picture |
//! | `series` | columns, encoded as differences, within a number of bytes |
//!
//! ```text
//!   walk --leaves--> recorder --column each second--> series (an hour)
//!   sampled keys --^        \--sum of ten seconds---> series (a day)
//! ```

mod bounds;
mod column;
mod recorder;
mod series;

pub use bounds::LONGEST_KEY;
pub(crate) use bounds::{Bounds, hex, unhex};
pub(crate) use column::Column;
pub use recorder::WEIGHT_OF_WAIT;
pub(crate) use recorder::{OwnedLeaf, Recorder};
pub(crate) use series::Series;

/// The most buckets of a column.
pub(crate) const MOST_BUCKETS: usize = 256;

/// The seconds of the fine series, an hour.
pub(crate) const FINE_COLUMNS: usize = 3600;

/// The seconds of a column of the coarse series, and how many such columns are kept: a day.
pub(crate) const COARSE_SECONDS: u64 = 10;
pub(crate) const COARSE_COLUMNS: usize = 8640;

/// What one series of one map may hold. A map at rest needs a tenth of it.
pub(crate) const SERIES_BYTES: usize = 2 << 20;

/// What the series of all maps may hold together.
pub(crate) const ALL_BYTES: usize = 64 << 20;
