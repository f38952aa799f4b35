//! Keys of tables whose rows expire: an extension, with the options, replies and errors that
//! `EXPIRE` and its kin have for keys.

use super::super::expiry::{TimeChange, Unit, left, seconds};
use super::super::{Context, Failure, Next, Outcome};
use super::call::{Call, called};
use crate::resp::Arguments;
use tremula_store::{Expiry, Table, Update};
use tremula_table::{KeyExpiry, Term};

pub(in super::super) fn expire(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_time(context, arguments, Unit::Seconds)
}

pub(in super::super) fn pexpire(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_time(context, arguments, Unit::Millis)
}

pub(in super::super) fn expireat(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_time(context, arguments, Unit::AtSeconds)
}

pub(in super::super) fn pexpireat(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_time(context, arguments, Unit::AtMillis)
}

pub(in super::super) fn ttl(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    show_time(context, arguments, |expiry| seconds(left(expiry)))
}

pub(in super::super) fn pttl(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    show_time(context, arguments, left)
}

pub(in super::super) fn expiretime(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    show_time(context, arguments, |expiry| seconds(expiry.millis()))
}

pub(in super::super) fn pexpiretime(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    show_time(context, arguments, Expiry::millis)
}

pub(in super::super) fn persist(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    on_key(context, arguments, |call, table, key| {
        change_time(call, table, key, &mut |before| match before {
            Some(_) => Update::Put(None),
            None => Update::Keep,
        })
    })
}

/// Gives the key a time, or removes its rows if the time is over.
fn set_time(context: &mut Context<'_>, arguments: Arguments<'_>, unit: Unit) -> Outcome {
    let command = context.command;
    on_key(context, arguments, |call, table, key| {
        // Behind the look at the table, which the user may not have.
        let change = TimeChange::read(command, arguments.behind(1), unit)?;
        // Rows that are removed are freed at once.
        call.is_long(table.has_wide_rows())?;
        call.rows_of(table, key)?;
        change_time(call, table, key, &mut |before| change.decide(before))
    })
}

/// Changes when the rows of a key expire. Returns whether that was to be changed.
fn change_time(
    call: &Call<'_>,
    table: &Table,
    key: &Term,
    decide: &mut dyn FnMut(Option<Expiry>) -> Update<Option<Expiry>>,
) -> Result<i64, Failure> {
    let mut is_changed = false;
    let decide = &mut |before| {
        let decided = decide(before);
        is_changed = !matches!(decided, Update::Keep);
        decided
    };
    call.commit(|effects| table.update_expiry(effects, key, decide))??;
    Ok(is_changed.into())
}

/// Answers with the time of a key, with -1 if it has none, or with -2 if it has no rows.
fn show_time(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    show: fn(Expiry) -> u64,
) -> Outcome {
    on_key(context, arguments, |_, table, key| {
        Ok(match table.expiry(key)? {
            KeyExpiry::NoRows => -2,
            KeyExpiry::Never => -1,
            KeyExpiry::At(time) => {
                let expiry = Expiry::from_millis(time.min(Expiry::LAST_MILLIS));
                expiry.map_or(-1, |expiry| i64::try_from(show(expiry)).unwrap_or(i64::MAX))
            }
        })
    })
}

/// Runs a call on a key of a table, and answers with a number.
fn on_key(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    run: impl FnOnce(&Call<'_>, &Table, &Term) -> Result<i64, Failure>,
) -> Outcome {
    let shown = called(context, arguments.part(1..3), |call| {
        run(call, &call.table()?, call.term(2)?)
    })?;
    let Some(number) = shown else {
        return Ok(Next::Apart);
    };
    context.reply.integer(number);
    Ok(Next::Reply)
}
