//! Keys that tables are filled with, made before the time runs.

mod email;
mod key;
mod list;
mod set;

pub use key::Key;
pub use list::{KeyList, Keys};
pub(crate) use set::stamped;
pub use set::{KeySet, MOST_KEYS};
