//! Commands that change all keys of a range as one atomic step, and `RANGECOUNT`.

use super::atomic::{cannot_hold, too_many};
use super::copy::database as parse_database;
use super::expiry::{TimeChange, Unit};
use super::ordered::bounds;
use super::strings::drop_from;
use super::{Context, Failure, Next, Outcome, Step, View, Work, begin};
use crate::resp::{Arguments, number};
use std::collections::BTreeSet;
use std::ops::Bound;
use tremula_store::{
    DATABASES, Databases, Direction, Hold, Key, KeyRange, Update, Value, Walk, prefix_bounds,
};

/// `RANGECOUNT start end`: the keys that the user sees, in batches as `RANGE` reads them.
pub(super) fn rangecount(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let Some((low, high)) = bounds(arguments)? else {
        context.reply.count(0);
        return Ok(Next::Reply);
    };
    let counting = Counting {
        walk: Walk::new(low, high, Direction::Ascending, usize::MAX),
        view: View::of(context),
        looked: 0,
        count: 0,
    };
    begin(context, arguments, counting)
}

struct Counting {
    walk: Walk,
    view: Option<View>,
    looked: usize,
    count: usize,
}

impl Work for Counting {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        let most = context.server.limits.transactions.max_atomic;
        while let Some((key, _)) = self.walk.next(context.database()) {
            self.looked += 1;
            if context.databases.are_held() && self.looked > most {
                return Err(too_many(most));
            }
            let is_shown = self.view.as_ref().is_none_or(|view| view.shows(&key));
            self.count += usize::from(is_shown);
            if context.turn.spend(1) {
                return Ok(Step::Rest);
            }
        }
        context.reply.count(self.count);
        Ok(Step::Done)
    }
}

/// `EXPIRERANGE start end milliseconds [NX|XX|GT|LT]`: lets all keys of a range expire, or removes
/// them if the time is over. Answers with how many it has changed.
pub(super) fn expirerange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let change = TimeChange::read(context.command, arguments.behind(1), Unit::Millis)?;
    let Some((low, high)) = bounds(arguments)? else {
        context.reply.count(0);
        return Ok(Next::Reply);
    };
    if !context.is_apart {
        return Ok(Next::Apart);
    }
    let number = context.session.database;
    let hold = Hold {
        database: number,
        low: low.clone(),
        high: high.clone(),
    };
    context.session.has_written = true;
    let (changed, removed) = step(context, &[hold], |context, databases| {
        let entries = entries(context, databases, number, (&low, &high))?;
        databases.expect(entries.len());
        let mut changed = 0;
        let mut removed = Vec::new();
        for (key, _) in entries {
            let mut decide = |before: &Value| {
                let decided = change.decide(before.expiry());
                changed += usize::from(!matches!(decided, Update::Keep));
                decided
            };
            let database = databases.database(number);
            let (_, old) =
                databases.commit(|effects| database.update_expiry(effects, key, &mut decide))?;
            removed.extend(old);
        }
        Ok((changed, removed))
    })?;
    for old in removed {
        drop_from(context.server, number, Some(old));
    }
    context.reply.count(changed);
    Ok(Next::Reply)
}

/// The options of `COPYRANGE` and `MOVERANGE`.
struct Way<'a> {
    /// What each name begins with, and what stands in its place.
    prefix: Option<(&'a [u8], &'a [u8])>,
    database: usize,
    replaces: bool,
}

impl<'a> Way<'a> {
    fn read(context: &Context<'_>, arguments: Arguments<'a>) -> Result<Self, Failure> {
        let own = context.session.database;
        let mut way = Self {
            prefix: None,
            database: own,
            replaces: false,
        };
        let mut options = arguments.skip(3);
        while let Some(option) = options.next() {
            let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
            if is("replace") {
                way.replaces = true;
            } else if is("db") {
                way.database = parse_database(options.next().ok_or(Failure::SYNTAX)?)?;
            } else if is("prefix") {
                let (old, new) = (options.next(), options.next());
                way.prefix = Some(old.zip(new).ok_or(Failure::SYNTAX)?);
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        let stays = way.prefix.is_none_or(|(old, new)| old == new);
        if stays && way.database == own {
            return Err(Failure::Text(
                "ERR the keys would stay where they are: give another DB, or PREFIX old new",
            ));
        }
        Ok(way)
    }

    /// The new name of a key.
    fn name(&self, key: &Key, longest: usize) -> Result<Key, Failure> {
        let Some((old, new)) = self.prefix else {
            return Ok(key.clone());
        };
        let Some(rest) = key.as_bytes().strip_prefix(old) else {
            return Err(Failure::quoting(
                "ERR a key of the range does not begin with the prefix: '",
                key.as_bytes(),
                "'",
            ));
        };
        if new.len() + rest.len() > longest {
            return Err(Failure::TOO_LONG);
        }
        Ok(Key::from(&[new, rest].concat()[..]))
    }
}

/// `COPYRANGE start end [PREFIX old new] [DB index] [REPLACE]`.
pub(super) fn copyrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    carry(context, arguments, false)
}

/// `MOVERANGE start end [PREFIX old new] [DB index] [REPLACE]`.
pub(super) fn moverange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    carry(context, arguments, true)
}

/// Lets all values of a range be under other names, or in another database, all or none. Answers
/// with how many they are.
fn carry(context: &mut Context<'_>, arguments: Arguments<'_>, leaves: bool) -> Outcome {
    let way = Way::read(context, arguments)?;
    let Some((low, high)) = bounds(arguments)? else {
        context.reply.count(0);
        return Ok(Next::Reply);
    };
    if !context.is_apart {
        return Ok(Next::Apart);
    }
    let own = context.session.database;
    let source = Hold {
        database: own,
        low: low.clone(),
        high: high.clone(),
    };
    let (target_low, target_high) = match way.prefix {
        Some((_, new)) => prefix_bounds(new),
        None => (low.clone(), high.clone()),
    };
    let target = Hold {
        database: way.database,
        low: target_low,
        high: target_high,
    };
    let longest = context.server.live.max_argument.bytes();
    context.session.has_written = true;
    let (count, dropped) = step(context, &[source, target], |context, databases| {
        let entries = entries(context, databases, own, (&low, &high))?;
        let (from, to) = (databases.database(own), databases.database(way.database));
        let mut names = Vec::with_capacity(entries.len());
        for (key, _) in &entries {
            names.push(way.name(key, longest)?);
        }
        let moved: BTreeSet<&Key> = entries.iter().map(|(key, _)| key).collect();
        let leaves_too = |name: &Key| leaves && own == way.database && moved.contains(name);
        let is_taken = |name: &&Key| to.contains_key(name) && !leaves_too(name);
        if let Some(taken) = names.iter().find(is_taken).filter(|_| !way.replaces) {
            return Err(Failure::quoting(
                "BUSYKEY Target key name already exists: '",
                taken.as_bytes(),
                "'",
            ));
        }
        let values: Vec<_> = entries
            .iter()
            .map(|(key, value)| out_of_cache(databases, own, key, value))
            .collect();
        databases.expect(2 * entries.len());
        let mut dropped = Vec::new();
        if leaves {
            for (key, _) in &entries {
                let old = databases.commit(|effects| from.remove(effects, key))?;
                dropped.extend(old.map(|old| (own, old)));
            }
        }
        let mut count = 0;
        for (name, value) in names.into_iter().zip(values) {
            // It was evicted from the cache meanwhile.
            let Some(value) = value else { continue };
            let old = databases.commit(|effects| to.insert(effects, name, value))?;
            dropped.extend(old.map(|old| (way.database, old)));
            count += 1;
        }
        Ok((count, dropped))
    })?;
    for (number, old) in dropped {
        drop_from(context.server, number, Some(old));
    }
    context.reply.count(count);
    Ok(Next::Reply)
}

/// A value as it can be under another key, or in another database: long ones are shared, and what
/// lies in the cache by its name comes out of it. `None` if it was evicted meanwhile.
fn out_of_cache(
    databases: Databases<'_>,
    number: usize,
    key: &Key,
    value: &Value,
) -> Option<Value> {
    match value.cached() {
        None => Some(value.clone()),
        Some(_) => {
            let text = databases.values(number).text(key, value);
            text.map(|text| Value::from(&*text).expiring(value.expiry()))
        }
    }
}

/// `SWAPDB index1 index2`: each database has the keys of the other one, as one atomic step. The
/// keys are moved, so that what is watched, followed and logged sees each of them.
pub(super) fn swapdb(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let index = |at, wrong| {
        let index = number::parse(arguments.get(at)).and_then(|index| i32::try_from(index).ok());
        index.ok_or(Failure::Text(wrong))
    };
    let first = index(1, "ERR invalid first DB index")?;
    let second = index(2, "ERR invalid second DB index")?;
    let number = |index| {
        let index = usize::try_from(index).ok();
        let index = index.filter(|index| *index < DATABASES);
        index.ok_or(Failure::DATABASE)
    };
    let numbers = [number(first)?, number(second)?];
    if numbers[0] == numbers[1] {
        context.reply.ok();
        return Ok(Next::Reply);
    }
    if !context.is_apart {
        return Ok(Next::Apart);
    }
    context.session.has_written = true;
    let dropped = step(
        context,
        &numbers.map(Hold::database),
        |context, databases| {
            let whole = (&Bound::Unbounded, &Bound::Unbounded);
            let mut all = Vec::new();
            for number in numbers {
                let entries = entries(context, databases, number, whole)?;
                all.push(
                    entries
                        .into_iter()
                        .map(|(key, value)| {
                            let value = out_of_cache(databases, number, &key, &value);
                            (key, value)
                        })
                        .collect::<Vec<_>>(),
                );
            }
            databases.expect(2 * all.iter().map(Vec::len).sum::<usize>());
            let mut dropped = Vec::new();
            for (number, entries) in numbers.into_iter().zip(&all) {
                let database = databases.database(number);
                for (key, _) in entries {
                    let old = databases.commit(|effects| database.remove(effects, key))?;
                    dropped.extend(old.map(|old| (number, old)));
                }
            }
            for (number, entries) in numbers.into_iter().rev().zip(all) {
                let database = databases.database(number);
                for (key, value) in entries {
                    if let Some(value) = value {
                        databases.commit(|effects| database.insert(effects, key, value))?;
                    }
                }
            }
            Ok(dropped)
        },
    )?;
    for (number, old) in dropped {
        drop_from(context.server, number, Some(old));
    }
    context.reply.ok();
    Ok(Next::Reply)
}

/// Runs a step that holds ranges.
fn step<R>(
    context: &mut Context<'_>,
    holds: &[Hold],
    run: impl FnOnce(&mut Context<'_>, Databases<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let (server, name) = (context.server, context.command.full_name);
    let ran = server.store.hold(holds, 1, |databases| {
        run(context, databases.caused_by(name))
    });
    ran.map_err(cannot_hold)?
}

/// The entries of a range that a step holds.
fn entries(
    context: &Context<'_>,
    databases: Databases<'_>,
    number: usize,
    (low, high): (&Bound<Key>, &Bound<Key>),
) -> Result<Vec<(Key, Value)>, Failure> {
    let most = context.server.limits.transactions.max_atomic;
    let mut entries = Vec::new();
    let range = KeyRange::new(low.as_ref(), high.as_ref());
    let database = databases.database(number);
    let limit = most.saturating_add(1);
    database.scan(range, Direction::Ascending, limit, &mut entries);
    if entries.len() > most {
        let text = format!(
            "ERR the range has more than {most} keys, the limit of one step (--max-atomic): take \
             it in parts"
        );
        return Err(Failure::Owned(text.into_bytes()));
    }
    Ok(entries)
}
