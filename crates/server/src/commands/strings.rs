//! Commands on values as strings of bytes.

use super::{Context, Failure, Outcome};
use crate::resp::{Arguments, number};
use crate::{Key, Value};
use tremula_index::Update;

pub(super) fn get(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    reply_value(context, arguments.get(1));
    Ok(())
}

/// Copies the value under `key` straight into the output.
fn reply_value(context: &mut Context<'_>, key: &[u8]) {
    let database = context.database();
    let reply = &mut *context.reply;
    if !database.get_with(&Key::from(key), &mut |value| reply.bulk(value)) {
        reply.null();
    }
}

pub(super) fn mget(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    context.reply.array(arguments.len() - 1);
    for key in arguments.skip(1) {
        reply_value(context, key);
        if context.reply.is_full() {
            break;
        }
    }
    Ok(())
}

/// When `SET` stores.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    IfAbsent,
    IfPresent,
}

pub(super) fn set(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (condition, wants_old) = set_options(arguments)?;
    let (key, value) = (Key::from(arguments.get(1)), Value::from(arguments.get(2)));
    let database = context.database();
    if condition == Condition::Always {
        let old = database.insert(key, value);
        if wants_old {
            reply_old(context, old.as_ref());
        } else {
            context.reply.ok();
        }
        return Ok(());
    }
    let mut value = Some(value);
    let mut old = None;
    let mut stored = false;
    database.update(key, &mut |current| {
        if wants_old {
            old = current.cloned();
        }
        if current.is_some() != (condition == Condition::IfPresent) {
            return Update::Keep;
        }
        stored = true;
        value.take().map_or(Update::Keep, Update::Put)
    });
    match (wants_old, stored) {
        (true, _) => reply_old(context, old.as_ref()),
        (false, true) => context.reply.ok(),
        (false, false) => context.reply.null(),
    }
    Ok(())
}

/// The options of `SET`: when to store, and whether to return what was there.
fn set_options(arguments: Arguments<'_>) -> Result<(Condition, bool), Failure> {
    let mut condition = Condition::Always;
    let mut wants_old = false;
    for option in arguments.skip(3) {
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        if is("nx") && condition != Condition::IfPresent {
            condition = Condition::IfAbsent;
        } else if is("xx") && condition != Condition::IfAbsent {
            condition = Condition::IfPresent;
        } else if is("get") {
            wants_old = true;
        } else if is("keepttl") {
            // No key has a time to live, so every one keeps it.
        } else if ["ex", "px", "exat", "pxat"].iter().any(|name| is(name)) {
            let name = String::from_utf8_lossy(option).to_ascii_uppercase();
            return Err(Failure::Owned(
                format!("ERR SET option {name} is not supported: keys do not expire").into_bytes(),
            ));
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok((condition, wants_old))
}

fn reply_old(context: &mut Context<'_>, old: Option<&Value>) {
    match old {
        Some(old) => context.reply.bulk(old),
        None => context.reply.null(),
    }
}

pub(super) fn setnx(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (key, value) = (Key::from(arguments.get(1)), Value::from(arguments.get(2)));
    let stored = context.database().insert_if_absent(key, value).is_ok();
    context.reply.integer(stored.into());
    Ok(())
}

pub(super) fn getset(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (key, value) = (Key::from(arguments.get(1)), Value::from(arguments.get(2)));
    let old = context.database().insert(key, value);
    reply_old(context, old.as_ref());
    Ok(())
}

pub(super) fn getdel(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let old = context.database().remove(&Key::from(arguments.get(1)));
    reply_old(context, old.as_ref());
    Ok(())
}

pub(super) fn mset(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::arity(context.command));
    }
    let database = context.database();
    for index in (1..arguments.len()).step_by(2) {
        let value = Value::from(arguments.get(index + 1));
        database.insert(Key::from(arguments.get(index)), value);
    }
    context.reply.ok();
    Ok(())
}

pub(super) fn strlen(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut length = 0;
    let key = Key::from(arguments.get(1));
    context
        .database()
        .get_with(&key, &mut |value| length = value.len());
    context.reply.count(length);
    Ok(())
}

pub(super) fn append(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let suffix = arguments.get(2);
    let limit = context.server.limits.max_argument.0;
    let mut length = Ok(0);
    context
        .database()
        .update(Key::from(arguments.get(1)), &mut |current| {
            let Some(current) = current else {
                length = Ok(suffix.len());
                return Update::Put(Value::from(suffix));
            };
            length = checked_end(current.len(), suffix.len(), limit);
            let Ok(length) = length else {
                return Update::Keep;
            };
            Update::Put(Value::build(length, |bytes| {
                let (front, back) = bytes.split_at_mut(current.len());
                front.copy_from_slice(current);
                back.copy_from_slice(suffix);
            }))
        });
    context
        .reply
        .count(length.map_err(|TooLong| Failure::TOO_LONG)?);
    Ok(())
}

pub(super) fn getrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let first = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let last = number::parse(arguments.get(3)).ok_or(Failure::NOT_AN_INTEGER)?;
    let key = Key::from(arguments.get(1));
    let database = context.database();
    let reply = &mut *context.reply;
    if !database.get_with(&key, &mut |value| reply.bulk(slice(value, first, last))) {
        reply.bulk(b"");
    }
    Ok(())
}

/// The bytes from `first` to `last`, both included; negative positions count from the end.
fn slice(value: &[u8], first: i64, last: i64) -> &[u8] {
    // Redis looks at this before it looks at the length.
    if first < 0 && last < 0 && first > last {
        return b"";
    }
    let length = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let from_start = |position: i64| {
        let position = if position < 0 {
            length + position
        } else {
            position
        };
        usize::try_from(position).unwrap_or(0)
    };
    let end = from_start(last).saturating_add(1).min(value.len());
    value.get(from_start(first)..end).unwrap_or(b"")
}

pub(super) fn setrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let offset = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let offset = usize::try_from(offset).map_err(|_| Failure::OFFSET)?;
    let patch = arguments.get(3);
    let limit = context.server.limits.max_argument.0;
    let mut length = Ok(0);
    context
        .database()
        .update(Key::from(arguments.get(1)), &mut |current| {
            let current = current.map_or(&[][..], |value| value);
            if patch.is_empty() {
                length = Ok(current.len());
                return Update::Keep;
            }
            let end = checked_end(offset, patch.len(), limit);
            length = end.map(|end| end.max(current.len()));
            let (Ok(end), Ok(length)) = (end, length) else {
                return Update::Keep;
            };
            Update::Put(Value::build(length, |bytes| {
                bytes[..current.len()].copy_from_slice(current);
                bytes[offset..end].copy_from_slice(patch);
            }))
        });
    context
        .reply
        .count(length.map_err(|TooLong| Failure::TOO_LONG)?);
    Ok(())
}

/// A value would be longer than an argument may be.
#[derive(Clone, Copy)]
struct TooLong;

fn checked_end(start: usize, length: usize, limit: usize) -> Result<usize, TooLong> {
    start
        .checked_add(length)
        .filter(|end| *end <= limit)
        .ok_or(TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_cut_as_getrange_cuts_them() {
        for (first, last, expected) in [
            (0, 3, "This"),
            (-3, -1, "ing"),
            (0, -1, "This is a string"),
            (10, 100, "string"),
            (5, 2, ""),
            (-1, -3, ""),
            (-100, 1, "Th"),
            (16, 20, ""),
            (i64::MIN, i64::MAX, "This is a string"),
            (i64::MAX, i64::MAX, ""),
            (0, -100, "T"),
        ] {
            assert_eq!(
                slice(b"This is a string", first, last),
                expected.as_bytes(),
                "{first} {last}"
            );
        }
        assert_eq!(slice(b"", 0, -1), b"");
    }
}
