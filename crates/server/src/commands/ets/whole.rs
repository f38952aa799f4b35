//! Commands about a table: making, naming, owning and ending one.

use super::super::{Context, Failure, Outcome};
use super::call::{Call, Progress, Slice, Slices, Value, answer, answer_in_slices, bad, text_of};
use crate::resp::Arguments;
use std::ops::ControlFlow;
use std::sync::Arc;
use tremula_store::Post;
use tremula_table::term::{Atom, Pid};
use tremula_table::{BadArgument, Kind, Options, Problem, Remains, Term};

/// `ETS.NEW name [option ...]`; an option may be a list of options. The table is found by its name.
pub(in super::super) fn new(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    context.session.ets.admit_table(context.server)?;
    let mut made = None;
    let outcome = answer(context, arguments, usize::MAX - 1, |call| {
        let name = call.name(1)?;
        call.may_name(name)?;
        let mut options = vec![Term::from(Atom::PUBLIC)];
        for option in call.from(2) {
            match option {
                Term::List(list) if list.is_proper() => options.extend(list.iter().cloned()),
                option => options.push(option.clone()),
            }
        }
        let mut is_public = true;
        for option in &mut options {
            *option = with_heir(call, option)?;
            is_public &= !wants_owner(option);
        }
        let options = Options::from_term(&Term::list(options))?.named();
        let table = call.commit(|effects| {
            if is_public {
                call.server.store.tables().create(effects, name, options)
            } else {
                call.unchecked_owner().create(effects, name, options)
            }
        })??;
        made = Some(table.id());
        call.term(1).cloned()
    });
    context.session.ets.made.extend(made);
    outcome
}

/// Whether a table with this option belongs to the connection that makes it.
fn wants_owner(option: &Term) -> bool {
    match option {
        Term::Atom(atom) => [Atom::PRIVATE, Atom::PROTECTED].contains(atom),
        Term::Tuple(parts) => {
            matches!(parts.elements(), [Term::Atom(name), _, _] if *name == Atom::HEIR)
        }
        _ => false,
    }
}

/// An option `{heir, Mailbox, Data}` with the mailbox's identifier for its name; others unchanged.
fn with_heir(call: &Call<'_>, option: &Term) -> Result<Term, Failure> {
    if let Term::Tuple(parts) = option
        && let [Term::Atom(option), name, data] = parts.elements()
        && *option == Atom::HEIR
    {
        let (_, heir) = mailbox(call, 2, name)?;
        return Ok(Term::tuple([Atom::HEIR.into(), heir.into(), data.clone()]));
    }
    Ok(option.clone())
}

/// The mailbox with this name, and its identifier.
fn mailbox(call: &Call<'_>, argument: usize, name: &Term) -> Result<(Arc<Post>, Pid), Failure> {
    if let Some(name) = text_of(name) {
        call.may_use_mailbox(name.as_bytes())?;
    }
    let post = text_of(name).and_then(|name| call.server.store.mailboxes().get(name.as_bytes()));
    let found = post.and_then(|post| {
        let pid = post.pid(call.server.store.tables())?;
        Some((post, pid))
    });
    found.ok_or_else(|| {
        bad(
            call.function,
            argument,
            format_args!("{name} is not the name of a mailbox; MAILBOX.NEW makes one"),
        )
    })
}

/// `ETS.DELETE table [key]`.
pub(in super::super) fn delete(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer_in_slices(context, arguments, 2, |call| match call.get(2) {
        None => {
            let table = call.table()?;
            let remains = call.commit(|effects| table.noting(effects).delete_in_steps())??;
            Ok(freeing(remains))
        }
        Some(key) => {
            let table = call.table()?;
            call.is_long(table.has_wide_rows())?;
            call.rows_of(&table, key)?;
            call.commit(|effects| table.noting(effects).delete_key(key))??;
            Ok(Progress::Value(true.into()))
        }
    })
}

/// Frees what has been deleted.
fn freeing(mut remains: Remains) -> Progress {
    Progress::Slices(Slices::new(move |slice| {
        let is_done = remains.free(&mut *slice.may_go_on);
        Ok(is_done.then(|| Term::from(true).into()))
    }))
}

/// `ETS.RENAME table name`.
pub(in super::super) fn rename(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer(context, arguments, 2, |call| {
        call.may_name(call.name(2)?)?;
        let (table, name) = (call.table()?, call.name(2)?);
        call.commit(|effects| table.noting(effects).rename(name))??;
        call.term(2).cloned()
    })
}

/// `ETS.WHEREIS name`.
pub(in super::super) fn whereis(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer(context, arguments, 1, |call| {
        call.may_name(call.name(1)?)?;
        let table = call.unchecked_owner().whereis(call.name(1)?);
        Ok(table.map_or(Atom::UNDEFINED.into(), |table| table.id().into()))
    })
}

/// Tables that `ETS.ALL` copies at once, under the lock that every command needs to find its table.
const PART: usize = 64;

/// `ETS.ALL`: in parts, so that tables which come or go meanwhile may be in the list or not.
pub(in super::super) fn all(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer_in_slices(context, arguments, 0, |call| {
        let (tables, is_seen) = (call.server.store.tables().clone(), call.seen_tables());
        let (mut last, mut names) = (None, Vec::new());
        Ok(Progress::Slices(Slices::new(move |slice| {
            loop {
                let part = tables.made_after(last.as_ref(), PART);
                let seen = part.iter().filter(|table| is_seen(table));
                names.extend(seen.map(|table| Term::from(table.name())));
                let is_last = part.len() < PART;
                last = part.into_iter().next_back();
                if is_last {
                    return Ok(Some(Value::List(std::mem::take(&mut names))));
                }
                if !(slice.may_go_on)() {
                    return Ok(None);
                }
            }
        })))
    })
}

/// `ETS.INFO table [item]`.
pub(in super::super) fn info(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer_in_slices(context, arguments, 2, |call| {
        let name = call.term(1)?;
        let Some(table) = call.find(name)? else {
            return match name {
                Term::Atom(_) | Term::Reference(_) => Ok(Progress::Value(Atom::UNDEFINED.into())),
                _ => Err(call.wrong(1, Problem::NoTable)),
            };
        };
        let mut left = Some(table.info_in_steps(call.get(2))?);
        let steps = move |slice: &mut Slice<'_>| {
            let steps = left.take();
            let steps = steps.map(|steps| steps.step(&mut *slice.may_go_on));
            Ok(match steps {
                Some(ControlFlow::Break(value)) => Some(value.into()),
                Some(ControlFlow::Continue(rest)) => {
                    left = Some(rest);
                    None
                }
                None => None,
            })
        };
        Ok(Progress::Slices(Slices::new(steps).over(&table, false)))
    })
}

/// `ETS.SETOPTS table option`, or a list of options.
pub(in super::super) fn setopts(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer(context, arguments, 2, |call| {
        let options = match call.term(2)? {
            Term::List(list) if list.is_proper() => {
                let options: Result<Vec<_>, _> =
                    list.iter().map(|option| with_heir(call, option)).collect();
                Term::list(options?)
            }
            option => with_heir(call, option)?,
        };
        let table = call.table()?;
        call.commit(|effects| table.noting(effects).setopts(&options))??;
        Ok(true.into())
    })
}

/// `ETS.GIVE_AWAY table mailbox data`.
pub(in super::super) fn give_away(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer(context, arguments, 3, |call| {
        let table = call.table()?;
        let (post, to) = mailbox(call, 2, call.term(2)?)?;
        let data = call.term(3)?.clone();
        call.commit(|effects| {
            table.noting(effects).give_away(&to, data)?;
            post.forward_transfers(effects);
            Ok::<_, BadArgument>(())
        })??;
        Ok(true.into())
    })
}

/// `ETS.SAFE_FIXTABLE table true | false`. The end of the connection releases the table.
pub(in super::super) fn safe_fixtable(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer(context, arguments, 2, |call| {
        call.table()?.safe_fixtable(call.boolean(2)?)?;
        Ok(true.into())
    })
}

/// `ETS.INIT_TABLE table rows [rows ...]`. Erlang has a function that supplies the rows.
pub(in super::super) fn init_table(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer(context, arguments, usize::MAX - 1, |call| {
        let table = call.table()?;
        call.all_rows(&table)?;
        let rows = call.from(2).iter().cloned();
        call.commit(|effects| table.noting(effects).init_table(rows))??;
        Ok(true.into())
    })
}

/// `ETS.DELETE_ALL_OBJECTS table`.
pub(in super::super) fn delete_all_objects(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer_in_slices(context, arguments, 1, |call| {
        let table = call.table()?;
        // The ordered engines free their rows in the one step that removes them.
        if table.kind() == Kind::OrderedSet {
            call.all_rows(&table)?;
        }
        let remains = call.commit(|effects| {
            let mut noting = table.noting(effects);
            noting.delete_all_objects_in_steps()
        })??;
        Ok(freeing(remains))
    })
}
