//! Commands on keys with any values, and on whole databases.

use super::{Context, Failure, Next, Outcome};
use crate::glob;
use crate::resp::Arguments;
use std::ops::ControlFlow;
use tremula_store::{Direction, KeyRange};
use tremula_store::{Key, Value};
use tremula_store::{prefix_bounds, walk};

pub(super) fn del(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let values = context.values();
    count_keys(context, arguments, |database, key| {
        values.dropped(database.remove(key))
    })
}

pub(super) fn exists(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    count_keys(context, arguments, |database, key| {
        database.contains_key(key)
    })
}

fn count_keys(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    mut counts: impl FnMut(&tremula_store::Database, &Key) -> bool,
) -> Outcome {
    let database = context.database();
    let count = arguments
        .skip(1)
        .filter(|key| counts(database, &Key::from(*key)))
        .count();
    context.reply.count(count);
    Ok(Next::Reply)
}

pub(super) fn type_of(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let exists = context
        .database()
        .contains_key(&Key::from(arguments.get(1)));
    context.reply.simple(if exists { "string" } else { "none" });
    Ok(Next::Reply)
}

/// Visits only the keys that begin with the pattern's literal prefix.
pub(super) fn keys(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let pattern = arguments.get(1);
    let (low, high) = prefix_bounds(&glob::literal_prefix(pattern));
    let range = KeyRange::new(low.as_ref(), high.as_ref());
    let database = context.database();
    let reply = &mut *context.reply;
    let opened = reply.open_array();
    let mut count = 0;
    walk(
        database,
        range,
        Direction::Ascending,
        usize::MAX,
        |key: &Key, _: &Value| {
            if glob::matches(pattern, key.as_bytes()) {
                reply.bulk(key.as_bytes());
                count += 1;
            }
            if reply.is_full() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        },
    );
    reply.close_array(opened, count);
    Ok(Next::Reply)
}

pub(super) fn dbsize(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.reply.count(context.database().len());
    Ok(Next::Reply)
}

pub(super) fn flushdb(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    flush_options(arguments)?;
    context.database().remove_range(KeyRange::all());
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn flushall(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    flush_options(arguments)?;
    for database in context.server.store.databases() {
        database.remove_range(KeyRange::all());
    }
    context.reply.ok();
    Ok(Next::Reply)
}

/// `ASYNC` and `SYNC` are accepted and mean the same, because other threads serve other clients.
fn flush_options(arguments: Arguments<'_>) -> Result<(), Failure> {
    let known = |option: &[u8]| {
        option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync")
    };
    match arguments.len() {
        1 => Ok(()),
        2 if known(arguments.get(1)) => Ok(()),
        _ => Err(Failure::SYNTAX),
    }
}
