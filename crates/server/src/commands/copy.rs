//! `COPY`, `MOVE`, `RENAME`, `RENAMENX`: values that go to another key.

use super::strings::drop_from;
use super::{Command, Context, Failure, Next, Outcome};
use crate::memory::note_access;
use crate::resp::{Arguments, number};
use tremula_store::{DATABASES, Key, Lifetime, Moved, Place, Update, Value, Way};

/// `COPY source destination [DB index] [REPLACE]`.
pub(super) fn copy(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let own = context.session.database;
    let (to, replaces) = copy_options(arguments, own)?;
    let (source, destination) = (arguments.get(1), arguments.get(2));
    if source == destination && to == own {
        return Err(Failure::SAME_KEY);
    }
    let way = Way {
        leaves: false,
        replaces,
    };
    let moved = carry(context, source, (to, destination), way)?;
    context.note_lookup(source, !matches!(moved, Moved::Absent));
    context
        .reply
        .integer(matches!(moved, Moved::Done(_)).into());
    Ok(Next::Reply)
}

/// The database that a value is copied to, and whether it replaces another.
fn copy_options(arguments: Arguments<'_>, own: usize) -> Result<(usize, bool), Failure> {
    let (mut to, mut replaces) = (own, false);
    let mut options = arguments.skip(3);
    while let Some(option) = options.next() {
        if option.eq_ignore_ascii_case(b"replace") {
            replaces = true;
        } else if option.eq_ignore_ascii_case(b"db")
            && let Some(index) = options.next()
        {
            to = database(index)?;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok((to, replaces))
}

/// The database to which `COPY` or `MOVE` brings a value from its own one.
pub(super) fn target(
    command: &Command,
    arguments: Arguments<'_>,
    own: usize,
) -> Result<usize, Failure> {
    if command.full_name == "move" {
        database(arguments.get(2))
    } else {
        copy_options(arguments, own).map(|(to, _)| to)
    }
}

/// `MOVE key db`.
pub(super) fn move_key(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (key, own) = (arguments.get(1), context.session.database);
    let to = database(arguments.get(2))?;
    if to == own {
        return Err(Failure::SAME_KEY);
    }
    let way = Way {
        leaves: true,
        replaces: false,
    };
    let moved = carry(context, key, (to, key), way)?;
    context
        .reply
        .integer(matches!(moved, Moved::Done(_)).into());
    Ok(Next::Reply)
}

pub(super) fn rename(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    rename_key(context, arguments, true)?;
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn renamenx(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let is_done = rename_key(context, arguments, false)?;
    context.reply.integer(is_done.into());
    Ok(Next::Reply)
}

/// Renames a key. Returns whether it did.
fn rename_key(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replaces: bool,
) -> Result<bool, Failure> {
    let (from, to) = (arguments.get(1), arguments.get(2));
    let own = context.session.database;
    if from == to {
        let is_there = context.database().contains_key(&Key::from(from));
        // It is there under its new name already.
        return if is_there {
            Ok(replaces)
        } else {
            Err(Failure::NO_SUCH_KEY)
        };
    }
    let way = Way {
        leaves: true,
        replaces,
    };
    match carry(context, from, (own, to), way)? {
        Moved::Absent => Err(Failure::NO_SUCH_KEY),
        moved => Ok(matches!(moved, Moved::Done(_))),
    }
}

/// Lets a value go from a key of the selected database to another key, as one step.
fn carry(
    context: &mut Context<'_>,
    from: &[u8],
    (number, to): (usize, &[u8]),
    way: Way,
) -> Result<Moved, Failure> {
    let own = context.session.database;
    note_access(context.server, own, from);
    let (from, to) = (Key::from(from), Key::from(to));
    let source = Place {
        database: own,
        key: &from,
    };
    let target = Place {
        database: number,
        key: &to,
    };
    loop {
        let databases = context.databases;
        let moved = context.commit(|effects| databases.carry(effects, source, target, way))?;
        match moved {
            Moved::Cached => leave_cache(context, &from)?,
            Moved::Done(old) => {
                note_access(context.server, number, to.as_bytes());
                drop_from(context.server, number, old);
                return Ok(Moved::Done(None));
            }
            moved => return Ok(moved),
        }
    }
}

/// Takes a value out of the cache, where it lies by its key, and into the index.
fn leave_cache(context: &mut Context<'_>, key: &Key) -> Result<(), Failure> {
    let values = context.values();
    let mut decide = |current: Option<&[u8]>| match current {
        Some(bytes) => Update::Put(Value::from(bytes)),
        None => Update::Keep,
    };
    context.commit(|effects| values.update(effects, key.clone(), Lifetime::Kept, &mut decide))
}

/// The number of a database.
pub(super) fn database(index: &[u8]) -> Result<usize, Failure> {
    let index = number::parse(index).ok_or(Failure::NOT_AN_INTEGER)?;
    let index = i32::try_from(index).map_err(|_| Failure::BEYOND_INT)?;
    let index = usize::try_from(index).ok();
    index
        .filter(|index| *index < DATABASES)
        .ok_or(Failure::DATABASE)
}
