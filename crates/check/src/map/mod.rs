//! Ordered maps from `u64` to `u64`: their operations, their specification, and what of it is
//! promised to concurrent threads.
//!
//! All but a few operations are linearizable: one order of all calls explains all answers. The
//! others promise less, and are checked against that:
//!
//! - `get_many`: each lookup is linearizable by itself.
//! - `range`: keys in strict order and inside the bounds. Each key that it shows was present with
//!   that value at some moment of the call, and each key that it skips was absent at some moment.
//! - `len` and `is_empty`: exact when nothing else is under way, otherwise off by at most what the
//!   calls under way add and remove.
//!
//! A map may promise less of other operations too ([`MapHistory::loosely`],
//! [`Subject::of_one_moment`](crate::record::Subject::of_one_moment)). It may promise more of
//! `range`: that a range of up to a number of entries is as of one moment
//! ([`MapHistory::with_ranges_of_one_moment`],
//! [`Subject::ranges_of_one_moment`](crate::record::Subject::ranges_of_one_moment)).
//!
//! [`MapHistory::check`] checks all of that, for one group of keys after another. A group is the
//! keys that calls of one moment tie together; if there are only point operations, each key is a
//! group. [`MapHistory::check_by_key`] always looks at single keys, and so finds less, but in
//! histories that are too long for the other check.

mod count;
mod groups;
mod history;
mod number;
mod operation;
mod specification;
mod well_formed;

pub use history::{Checked, Failure, MapHistory};
pub(crate) use operation::key_range;
pub use operation::{Change, Kind, Operation, Response, Span};
pub use specification::MapSpecification;
