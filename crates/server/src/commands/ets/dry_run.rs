//! Whether a user may use the tables and mailboxes that a command names, without running it.

use super::super::reach::TermReach;
use super::super::{Command, Context};
use super::call::{read, text_of};
use crate::resp::Arguments;
use crate::server::Shared;
use crate::users::{Reason, User};
use tremula_table::Term;
use tremula_table::term::Atom;

/// What a user may not use of the tables and mailboxes that the arguments name, if there is
/// something. Arguments that are no terms are the command's to refuse.
pub(in super::super) fn denial(
    context: &mut Context<'_>,
    user: &User,
    command: &'static Command,
    arguments: Arguments<'_>,
) -> Option<(Reason, Vec<u8>)> {
    let server = context.server;
    let limits = context.session.ets.limits(server, context.client);
    let term = |argument: usize| read(arguments.get(argument), limits).ok();
    let refused = |name: String| {
        let is_open = user.may_use_table(command, name.as_bytes());
        (!is_open).then(|| (Reason::Table, name.into_bytes()))
    };
    let table = |argument| refused(name_of(server, &term(argument)?)?);
    let continuation = || match term(1)? {
        Term::Tuple(parts) => match parts.first()? {
            Term::Tuple(place) => refused(name_of(server, place.first()?)?),
            _ => None,
        },
        _ => None,
    };
    let mailbox = |name: &Term| {
        let name = text_of(name)?.into_bytes();
        let is_open = user.may_use_mailbox(command, &name);
        (!is_open).then_some((Reason::Mailbox, name))
    };
    match command.reach.terms {
        TermReach::None => None,
        TermReach::Table => table(1),
        TermReach::Continuation => continuation(),
        TermReach::Search if arguments.len() == 2 => continuation(),
        TermReach::Search => table(1),
        TermReach::TwoTables => table(1).or_else(|| table(2)),
        TermReach::TableAndMailbox => table(1).or_else(|| mailbox(&term(2)?)),
        TermReach::TableAndHeirs => table(1).or_else(|| {
            let options = (2..arguments.len()).filter_map(term);
            let mut heirs = options.flat_map(|option| heirs_in(&option));
            heirs.find_map(|heir| mailbox(&heir))
        }),
        TermReach::Files => {
            let are_open = user.may_use_all_tables(command);
            (!are_open).then(|| (Reason::Table, b"*".to_vec()))
        }
    }
}

/// The name of the table that a term stands for: a name, whether the table is there or not, or an
/// identifier.
fn name_of(server: &Shared, term: &Term) -> Option<String> {
    match term {
        Term::Atom(name) => Some(name.text().to_owned()),
        Term::Reference(_) => {
            let table = server.store.tables().find(term)?;
            Some(table.name().text().to_owned())
        }
        _ => None,
    }
}

/// The heirs that an option names, or the options of a list.
fn heirs_in(option: &Term) -> Vec<Term> {
    match option {
        Term::List(list) if list.is_proper() => list.iter().filter_map(heir_in).collect(),
        option => heir_in(option).into_iter().collect(),
    }
}

fn heir_in(option: &Term) -> Option<Term> {
    let Term::Tuple(parts) = option else {
        return None;
    };
    match parts.elements() {
        [Term::Atom(name), heir, _] if *name == Atom::HEIR => Some(heir.clone()),
        _ => None,
    }
}
