//! Ordered maps from `u64` to `u64`: their operations, their specification, and what of it is
//! promised when threads use them at once.
//!
//! All but a few are linearizable: one order of all calls explains all answers. The others
//! promise less, and are held to that:
//!
//! - `get_many`: each lookup is linearizable by itself.
//! - `range`: keys in strict order and inside the bounds. Each key that it shows was there with
//!   that value at some moment of the call, and each that it passes over was away at some moment.
//! - `len` and `is_empty`: exact when nothing else is under way, else off by at most what the
//!   calls under way add and take.
//!
//! A map may promise less of other operations too, and say so ([`MapHistory::loosely`],
//! [`Subject::of_one_moment`](crate::record::Subject::of_one_moment)). Or more of `range`: that one
//! of so many entries is of one moment ([`MapHistory::with_ranges_of_one_moment`],
//! [`Subject::ranges_of_one_moment`](crate::record::Subject::ranges_of_one_moment)).
//!
//! [`MapHistory::check`] checks all of that, for one group of keys after another: the keys that
//! some call of one moment came by together. Where there are only point operations that is each
//! key alone. [`MapHistory::check_by_key`] looks at single keys in any case, and hence finds less,
//! in histories too long for more.

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
