//! The commands of tables: Erlang's `ets`, function by function.
//!
//! | file | holds |
//! |---|---|
//! | `call` | arguments as terms, the answer as text or in the external format, errors |
//! | `whole` | commands about a table: making, naming, owning, ending one |
//! | `rows` | rows by their keys, counters, steps |
//! | `expiry` | keys whose rows expire |
//! | `search` | match specifications and patterns, chunks |
//! | `dry_run` | what a user may use, for `ACL DRYRUN` |
//! | `writing` | terms in replies, large ones in slices |
//! | `file` | tables in files |
//!
//! A connection works on tables as an owner of its own ([`TableOwner`]), created when it first
//! needs one. A table that it makes is the server's if it is public and has no heir, else the
//! connection's.

mod call;
mod dry_run;
mod expiry;
mod file;
mod rows;
mod search;
mod whole;
mod writing;

use super::{Context, Failure, Next, Outcome};
use crate::clients::Client;
use crate::resp::Arguments;
use crate::server::Shared;
use call::Format;
pub(super) use dry_run::denial;
pub(super) use expiry::*;
pub(super) use file::*;
pub(super) use rows::*;
pub(super) use search::*;
use tremula_store::TableOwner;
use tremula_table::Term;
use tremula_table::term::{Limits, Reference};
pub(super) use whole::*;

/// The state of a connection for the commands of tables.
#[derive(Default)]
pub(crate) struct Session {
    owner: Option<TableOwner>,
    format: Format,
    /// The limits of reading terms, with the quota of atoms of the client's address.
    limits: Option<Limits>,
    /// The tables that it has made; some may be deleted.
    made: Vec<Reference>,
}

impl Session {
    /// Begins anew, but for the atoms that have been made.
    pub(super) fn reset(&mut self) {
        self.owner = None;
        self.format = Format::default();
    }

    /// Whether it may own tables, or fix them.
    pub(in super::super) fn is_owner(&self) -> bool {
        self.owner.is_some()
    }

    fn limits(&mut self, server: &Shared, client: &Client) -> &Limits {
        let limits = || {
            let quota = server
                .clients
                .atoms
                .of(client.address(), &server.limits.terms);
            Limits::default().atom_quota(Some(quota))
        };
        self.limits.get_or_insert_with(limits)
    }

    fn owner(&mut self, server: &Shared) -> &TableOwner {
        self.owner.get_or_insert_with(|| server.store.table_owner())
    }

    /// Whether the connection may make another table. Threads that ask at the same moment may make
    /// one each.
    fn admit_table(&mut self, server: &Shared) -> Result<(), Failure> {
        let quotas = &server.limits.quotas;
        let tables = server.store.tables();
        let refuse = |limit: usize, flag: &str, whose: &str| {
            let text = format!(
                "ERR there are {limit} tables{whose}, the limit of {flag}; ETS.DELETE makes room"
            );
            Err(Failure::Owned(text.into_bytes()))
        };
        if tables.len() >= quotas.max_tables {
            return refuse(quotas.max_tables, "--max-tables", "");
        }
        if self.made.len() >= quotas.max_client_tables {
            self.made
                .retain(|id| tables.find(&Term::from(id.clone())).is_some());
            if self.made.len() >= quotas.max_client_tables {
                let whose = " of this client";
                return refuse(quotas.max_client_tables, "--max-client-tables", whose);
            }
        }
        Ok(())
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
    Ok(Next::Reply)
}

#[cfg(test)]
mod tests {
    use crate::commands::table;

    /// All functions of Erlang's `ets`, except those that only work on compiled specifications.
    const FUNCTIONS: &str = "all delete delete_all_objects delete_object file2tab first first_lookup \
        foldl foldr from_dets fun2ms give_away i info init_table insert insert_new is_compiled_ms last \
        last_lookup lookup lookup_element match match_delete match_object match_spec_compile \
        match_spec_run member new next next_lookup prev prev_lookup rename repair_continuation \
        safe_fixtable select select_count select_delete select_replace select_reverse setopts slot \
        tab2file tab2list tabfile_info table take test_ms to_dets update_counter update_element \
        whereis";

    #[test]
    fn every_function_is_a_command_or_the_readme_says_why_not() {
        let readme = include_str!("../../../README.md");
        let (_, absent) = readme
            .split_once("### Functions without a command")
            .expect("the section of functions without a command");
        for function in FUNCTIONS.split_whitespace() {
            let is_there = table::lookup(format!("ets.{function}").as_bytes()).is_some();
            let row = absent.lines().find(|line| {
                let names = line.split('|').nth(1).unwrap_or_default();
                names.contains(&format!("`{function}`"))
            });
            assert!(is_there != row.is_some(), "{function}: {row:?}");
        }
    }
}
