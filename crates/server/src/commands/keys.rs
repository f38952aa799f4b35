//! Commands on keys with any values, and on whole databases.

use super::listing::{Source, list};
use super::strings::drop_from;
use super::{Context, Failure, Next, Outcome, Step, View, Work, apart, begin};
use crate::apart::job;
use crate::glob;
use crate::memory::note_access;
use crate::notices;
use crate::resp::Arguments;
use crate::server::Shared;
use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, Range};
use std::sync::mpsc::Receiver;
use tremula_store::{
    DATABASES, Databases, Direction, Key, ONE_MOMENT, Unlogged, Value, Walk, prefix_bounds,
};

pub(super) fn del(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    context.session.has_written = true;
    if arguments.len() == 2 {
        let (key, database) = (Key::from(arguments.get(1)), context.database());
        let old = context.commit(|effects| database.remove(effects, &key))?;
        let removed = drop_from(context.server, context.session.database, old);
        context.reply.count(removed.into());
        return Ok(Next::Reply);
    }
    let remove: Count = |server, databases, number, keys| {
        let database = databases.database(number);
        let removed = databases.commit(|effects| database.remove_together(effects, keys))?;
        let removed = removed.into_iter();
        Ok(removed
            .filter(|old| drop_from(server, number, Some(old.clone())))
            .count())
    };
    count_keys(context, arguments, remove, Look::No)
}

pub(super) fn exists(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() == 2 {
        let key = Key::from(arguments.get(1));
        let is_there = context.database().contains_key(&key);
        context.note_lookup(arguments.get(1), is_there);
        context.reply.count(is_there.into());
        return Ok(Next::Reply);
    }
    count_keys(context, arguments, count_present, Look::Only)
}

/// A key, each with the same chance.
pub(super) fn randomkey(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    // Whether counting the parts of the index takes long.
    const MANY_KEYS: usize = 1 << 20;
    let database = context.database();
    if database.len() >= MANY_KEYS && !context.is_apart {
        return Ok(Next::Apart);
    }
    let random = RandomState::new().hash_one(context.client.id);
    match database.random_key(random) {
        Some(key) => context.reply.bulk(key.as_bytes()),
        None => context.reply.null(),
    }
    Ok(Next::Reply)
}

/// As [`exists`], and a use of the keys.
pub(super) fn touch(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    count_keys(context, arguments, count_present, Look::AndUse)
}

fn count_present(
    server: &Shared,
    databases: Databases<'_>,
    number: usize,
    keys: &[Key],
) -> Result<usize, Unlogged> {
    let mut count = 0;
    let mut missed = Vec::new();
    let tells = server.live.notices().has_misses();
    let mut show = |at: usize, value: Option<&Value>| match value {
        Some(_) => count += 1,
        None => missed.extend(tells.then_some(at)),
    };
    databases.database(number).get_together(keys, &mut show);
    for at in missed {
        notices::missed(server, number, keys[at].as_bytes());
    }
    Ok(count)
}

/// Answers with what `count` makes of all keys among the arguments, in one step.
fn count_keys(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    count: Count,
    look: Look,
) -> Outcome {
    let (keys, counted) = (Vec::new(), None);
    let work = Counting {
        keys,
        count,
        look,
        counted,
    };
    begin(context, arguments, work)
}

/// Whether counting is a lookup of the keys, and whether it is a use of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    No,
    Only,
    AndUse,
}

/// Counts keys of the database with this number.
type Count = fn(&Shared, Databases<'_>, usize, &[Key]) -> Result<usize, Unlogged>;

struct Counting {
    keys: Vec<Key>,
    count: Count,
    look: Look,
    counted: Option<Receiver<Result<usize, Unlogged>>>,
}

impl Work for Counting {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        if let Some(counted) = &self.counted {
            let counted = counted.try_recv().map_err(|_| Failure::STOPPING)??;
            context.session.has_written = true;
            self.answer(context, arguments, counted);
            return Ok(Step::Done);
        }
        while self.keys.len() + 1 < arguments.len() {
            let key = arguments.get(self.keys.len() + 1);
            if self.look == Look::AndUse {
                note_access(context.server, context.session.database, key);
            }
            self.keys.push(Key::from(key));
            if context.turn.spend(1) && self.keys.len() + 1 < arguments.len() {
                return Ok(Step::Rest);
            }
        }
        let (number, keys) = (context.session.database, std::mem::take(&mut self.keys));
        let count = self.count;
        if keys.len() > ONE_MOMENT && !context.databases.are_held() {
            let (frees, name) = (self.look == Look::No, context.command.full_name);
            let (job, counted) = job(move |server| {
                let databases = server.store.free().caused_by(name);
                let counted = count(server, databases, number, &keys);
                if frees {
                    server.store.database(number).tidy();
                }
                counted
            });
            self.counted = Some(counted);
            return Ok(Step::Apart(job));
        }
        let counted = count(context.server, context.databases, number, &keys)?;
        self.answer(context, arguments, counted);
        Ok(Step::Done)
    }
}

impl Counting {
    fn answer(&self, context: &mut Context<'_>, arguments: Arguments<'_>, counted: usize) {
        if self.look != Look::No {
            let missed = arguments.len() - 1 - counted;
            context.stripe.hits.add(counted as u64);
            context.stripe.misses.add(missed as u64);
        }
        context.reply.count(counted);
    }
}

pub(super) fn type_of(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let exists = context
        .database()
        .contains_key(&Key::from(arguments.get(1)));
    context.note_lookup(arguments.get(1), exists);
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
fn flush(context: &mut Context<'_>, arguments: Arguments<'_>, numbers: Range<usize>) -> Outcome {
    let is_long = || {
        let database = |number| context.databases.database(number);
        let keys: usize = numbers.clone().map(|number| database(number).len()).sum();
        keys > ONE_MOMENT
    };
    let is_apart = !context.databases.are_held() && is_long();
    let empty = move |databases: Databases<'_>| {
        databases.commit(|effects| {
            for number in numbers {
                let database = databases.database(number);
                database.remove_range(effects, Bound::Unbounded, Bound::Unbounded);
            }
        })
    };
    context.session.has_written = true;
    if is_apart {
        let empty = move |server: &Shared| empty(server.store.free());
        return apart(context, arguments, empty, |context, emptied| {
            emptied?;
            context.session.has_written = true;
            context.reply.ok();
            Ok(())
        });
    }
    empty(context.databases)?;
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
