//! Commands on keys with any values, and on whole databases.

use super::listing::{Source, list};
use super::strings::drop_value;
use super::{Context, Failure, Next, Outcome, Step, View, Work, apart, begin};
use crate::glob;
use crate::memory::note_access;
use crate::resp::Arguments;
use crate::server::Shared;
use std::ops::{Bound, Range};
use tremula_store::{DATABASES, Direction, Key, KeyRange, ONE_MOMENT, Walk, prefix_bounds};

pub(super) fn del(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    count_keys(context, arguments, |context, key| {
        let removed = context.database().remove(key);
        drop_value(context, removed)
    })
}

pub(super) fn exists(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    count_keys(context, arguments, |context, key| {
        let is_there = context.database().contains_key(key);
        context.note_lookup(is_there);
        is_there
    })
}

/// As [`exists`], and a use of the keys.
pub(super) fn touch(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    count_keys(context, arguments, |context, key| {
        note_access(context.server, context.session.database, key.as_bytes());
        let is_there = context.database().contains_key(key);
        context.note_lookup(is_there);
        is_there
    })
}

/// Counts the keys among the arguments for which `counts` says so. Each key is a step of its own.
fn count_keys(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    counts: fn(&Context<'_>, &Key) -> bool,
) -> Outcome {
    let work = Counting {
        next: 1,
        count: 0,
        counts,
    };
    begin(context, arguments, work)
}

struct Counting {
    /// The argument that comes next.
    next: usize,
    count: usize,
    counts: fn(&Context<'_>, &Key) -> bool,
}

impl Work for Counting {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        while self.next < arguments.len() {
            let key = Key::from(arguments.get(self.next));
            self.count += usize::from((self.counts)(context, &key));
            self.next += 1;
            if context.turn.spend(1) && self.next < arguments.len() {
                return Ok(Step::Rest);
            }
        }
        context.reply.count(self.count);
        Ok(Step::Done)
    }
}

pub(super) fn type_of(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let exists = context
        .database()
        .contains_key(&Key::from(arguments.get(1)));
    context.note_lookup(exists);
    context.reply.simple(if exists { "string" } else { "none" });
    Ok(Next::Reply)
}

/// Visits only the keys that begin with the pattern's literal prefix.
pub(super) fn keys(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (low, high) = prefix_bounds(&glob::literal_prefix(arguments.get(1)));
    let source = Source::walk(context, low, high, Direction::Ascending, usize::MAX);
    list::<Key>(context, arguments, source, Some(1), None)
}

/// The keys that the user sees: a number that is kept, or counted if some are hidden from him.
pub(super) fn dbsize(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let Some(view) = View::of(context) else {
        context.reply.count(context.database().len());
        return Ok(Next::Reply);
    };
    let walk = Walk::new(
        Bound::Unbounded,
        Bound::Unbounded,
        Direction::Ascending,
        usize::MAX,
    );
    let count = 0;
    begin(context, arguments, CountingSeen { walk, view, count })
}

struct CountingSeen {
    walk: Walk,
    view: View,
    count: usize,
}

impl Work for CountingSeen {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        while let Some((key, _)) = self.walk.next(context.database()) {
            self.count += usize::from(self.view.shows(&key));
            if context.turn.spend(1) {
                return Ok(Step::Rest);
            }
        }
        context.reply.count(self.count);
        Ok(Step::Done)
    }
}

pub(super) fn flushdb(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    flush_options(arguments)?;
    let number = context.session.database;
    flush(context, arguments, number..number + 1)
}

pub(super) fn flushall(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    flush_options(arguments)?;
    flush(context, arguments, 0..DATABASES)
}

/// Empties databases: each at one moment, on the thread apart if there are many keys.
fn flush(context: &mut Context<'_>, arguments: Arguments<'_>, databases: Range<usize>) -> Outcome {
    let keys: usize = databases
        .clone()
        .map(|number| context.server.store.database(number).len())
        .sum();
    let empty = move |server: &Shared| {
        for number in databases {
            server.store.database(number).remove_range(KeyRange::all());
        }
    };
    if keys > ONE_MOMENT {
        return apart(context, arguments, empty, |context, ()| context.reply.ok());
    }
    empty(context.server);
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
