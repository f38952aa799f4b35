//! Rows by their keys: insert, look up, count, delete, and go from key to key.

use super::super::{Context, Failure, Outcome};
use super::call::{Call, answer};
use crate::resp::Arguments;
use tremula_store::Table;
use tremula_table::term::{Atom, Tuple};
use tremula_table::{BadArgument, Kind, Term};

type Run = fn(&Call<'_>, Table) -> Result<Term, Failure>;

fn on_table(context: &mut Context<'_>, arguments: Arguments<'_>, most: usize, run: Run) -> Outcome {
    answer(context, arguments, most, |call| {
        let table = call.table()?;
        call.is_long(table.has_wide_rows())?;
        run(call, table)
    })
}

pub(super) fn list_of(rows: Vec<Tuple>) -> Term {
    Term::list(rows.into_iter().map(Term::from).collect::<Vec<_>>())
}

pub(in super::super) fn insert(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        looks_for(call, &table, call.term(2)?)?;
        let rows = call.term(2)?.clone();
        call.commit(|effects| table.noting(effects).insert(rows))??;
        Ok(true.into())
    })
}

/// Goes to the thread apart if an insertion looks for a row among many: in a bag, where no row is
/// there twice.
fn looks_for(call: &Call<'_>, table: &Table, rows: &Term) -> Result<(), Failure> {
    match rows {
        _ if table.kind() != Kind::Bag => Ok(()),
        Term::Tuple(row) => table
            .key_of(row)
            .map_or(Ok(()), |key| call.rows_of(table, key)),
        _ => call.all_rows(table),
    }
}

pub(in super::super) fn insert_new(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        looks_for(call, &table, call.term(2)?)?;
        let rows = call.term(2)?.clone();
        let are_new = call.commit(|effects| table.noting(effects).insert_new(rows))??;
        Ok(are_new.into())
    })
}

pub(in super::super) fn lookup(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        call.rows_of(&table, call.term(2)?)?;
        Ok(list_of(table.lookup(call.term(2)?)?))
    })
}

/// `ETS.LOOKUP_ELEMENT table key position [default]`.
pub(in super::super) fn lookup_element(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    on_table(context, arguments, 4, |call, table| {
        let (key, position) = (call.term(2)?, call.position(3)?);
        call.rows_of(&table, key)?;
        Ok(match call.get(4) {
            None => table.lookup_element(key, position)?,
            Some(default) => table.lookup_element_or(key, position, default.clone())?,
        })
    })
}

pub(in super::super) fn member(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        Ok(table.member(call.term(2)?)?.into())
    })
}

pub(in super::super) fn take(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        let key = call.term(2)?;
        call.rows_of(&table, key)?;
        let taken = call.commit(|effects| table.noting(effects).take(key))??;
        Ok(list_of(taken))
    })
}

pub(in super::super) fn delete_object(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        let object = call.term(2)?;
        if let Term::Tuple(row) = object
            && let Some(key) = table.key_of(row)
        {
            call.rows_of(&table, key)?;
        }
        call.commit(|effects| table.noting(effects).delete_object(object))??;
        Ok(true.into())
    })
}

/// `ETS.UPDATE_COUNTER table key update [default]`.
pub(in super::super) fn update_counter(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    on_table(context, arguments, 4, |call, table| {
        let (key, update) = (call.term(2)?, call.term(3)?);
        let counted = call.commit(|effects| match call.get(4) {
            None => table.noting(effects).update_counter(key, update),
            Some(default) => {
                let mut noting = table.noting(effects);
                noting.update_counter_or(key, update, default.clone())
            }
        })?;
        Ok(counted?)
    })
}

/// `ETS.UPDATE_ELEMENT table key update [default]`.
pub(in super::super) fn update_element(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    on_table(context, arguments, 4, |call, table| {
        let (key, update) = (call.term(2)?, call.term(3)?);
        let updated = call.commit(|effects| match call.get(4) {
            None => table.noting(effects).update_element(key, update),
            Some(default) => {
                let mut noting = table.noting(effects);
                noting.update_element_or(key, update, default.clone())
            }
        })?;
        Ok(updated?.into())
    })
}

fn key_or_end(key: Result<Option<Term>, BadArgument>) -> Result<Term, Failure> {
    Ok(key?.unwrap_or_else(|| Atom::END_OF_TABLE.into()))
}

/// Goes to the thread apart if a key that is not known yet may have many rows.
fn rows_of_any(call: &Call<'_>, table: &Table) -> Result<(), Failure> {
    if table.kind().is_bag() {
        call.all_rows(table)?;
    }
    Ok(())
}

type KeyAndRows = Option<(Term, Vec<Tuple>)>;

fn rows_or_end(found: Result<KeyAndRows, BadArgument>) -> Result<Term, Failure> {
    Ok(match found? {
        Some((key, rows)) => Term::tuple([key, list_of(rows)]),
        None => Atom::END_OF_TABLE.into(),
    })
}

pub(in super::super) fn first(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 1, |_, table| key_or_end(table.first()))
}

pub(in super::super) fn last(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 1, |_, table| key_or_end(table.last()))
}

pub(in super::super) fn next(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        key_or_end(table.next(call.term(2)?))
    })
}

pub(in super::super) fn prev(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        key_or_end(table.prev(call.term(2)?))
    })
}

pub(in super::super) fn first_lookup(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    on_table(context, arguments, 1, |call, table| {
        rows_of_any(call, &table)?;
        rows_or_end(table.first_lookup())
    })
}

pub(in super::super) fn last_lookup(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    on_table(context, arguments, 1, |call, table| {
        rows_of_any(call, &table)?;
        rows_or_end(table.last_lookup())
    })
}

pub(in super::super) fn next_lookup(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        rows_of_any(call, &table)?;
        rows_or_end(table.next_lookup(call.term(2)?))
    })
}

pub(in super::super) fn prev_lookup(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    on_table(context, arguments, 2, |call, table| {
        rows_of_any(call, &table)?;
        rows_or_end(table.prev_lookup(call.term(2)?))
    })
}
