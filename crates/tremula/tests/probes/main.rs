//! What users of other collections type on their first day, a test each: short programs that must
//! compile, through the crate `tremula` alone, and do what their names say. What must not compile
//! is in `src/refused.rs`.

mod containers;
mod conversions;
mod errors;
mod iteration;
mod keys;
mod mailboxes;
mod maps;
mod ranges;
mod sets;
mod shards;
mod sharing;
#[path = "../../../mailbox/tests/support/mod.rs"]
mod support;
mod tables;
mod values;
