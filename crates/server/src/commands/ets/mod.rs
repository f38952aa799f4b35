//! The commands of tables: Erlang's `ets`, function by function.
//!
//! | file | holds |
//! |---|---|
//! | `call` | arguments as terms, the answer as text or in the external format, errors |
//! | `whole` | commands about a table: making, naming, owning, ending one |
//! | `rows` | rows by their keys, counters, steps |
//! | `search` | match specifications and patterns, chunks |
//! | `file` | tables in files |
//!
//! A connection works on tables as an owner of its own ([`TableOwner`]), made when it first needs
//! one. What it makes belongs to the server unless it asked for more than a public table.

mod call;
mod file;
mod rows;
mod search;
mod whole;

use super::{Context, Failure, Outcome};
use crate::resp::Arguments;
use crate::server::Shared;
use crate::table_owner::TableOwner;
use call::Format;
pub(super) use file::*;
pub(super) use rows::*;
pub(super) use search::*;
use tremula_table::Owner;
pub(super) use whole::*;

/// What a connection has of tables.
#[derive(Default)]
pub(crate) struct Session {
    owner: Option<TableOwner>,
    format: Format,
}

impl Session {
    fn owner(&mut self, server: &Shared) -> &Owner {
        &self
            .owner
            .get_or_insert_with(|| TableOwner::new(server))
            .owner
    }
}

/// `ETS.FORMAT text | etf`.
pub(super) fn format(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(1);
    context.session.ets.format = if name.eq_ignore_ascii_case(b"text") {
        Format::Text
    } else if name.eq_ignore_ascii_case(b"etf") {
        Format::Etf
    } else {
        let known = "'; there are text and etf";
        return Err(Failure::quoting("ERR there is no format '", name, known));
    };
    context.reply.ok();
    Ok(())
}
