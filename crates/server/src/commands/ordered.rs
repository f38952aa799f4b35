//! The commands that Redis lacks, which exist because the keys are ordered.

use super::{Context, Failure, Next, Outcome};
use crate::resp::{Arguments, Protocol, number};
use std::ops::{Bound, ControlFlow};
use tremula_store::{Direction, KeyRange};
use tremula_store::{Key, Value};
use tremula_store::{TooManyKeys, snapshot, walk};

/// `RANGE start end [LIMIT n] [REV] [WITHVALUES] [SNAPSHOT]`.
///
/// Up to [`ONE_MOMENT`](tremula_store::ONE_MOMENT) keys the reply is of one moment. With `SNAPSHOT`
/// it is so at any size: that copies the whole range first, and is refused beyond
/// [`MAX_SNAPSHOT`](crate::limits::MAX_SNAPSHOT) keys.
///
/// With `REV` the range is walked from its upper end, and `start` is the upper bound, as in
/// `ZRANGE … BYLEX REV` and `ZREVRANGEBYLEX`. Values come as in `ZRANGE … WITHSCORES`: behind
/// each key in version 2 of the protocol, in pairs in version 3.
pub(super) fn range(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let options = RangeOptions::parse(arguments)?;
    let (mut low, mut high) = (
        parse_bound(arguments.get(1))?,
        parse_bound(arguments.get(2))?,
    );
    let mut direction = Direction::Ascending;
    if options.reverse {
        std::mem::swap(&mut low, &mut high);
        direction = Direction::Descending;
    }
    let (database, values) = (context.database(), context.values());
    let reply = &mut *context.reply;
    let opened = reply.open_array();
    let mut count = 0;
    let mut visit = |key: &Key, value: &Value| {
        let text = if options.with_values {
            match values.text(key, value) {
                // The value has been evicted since.
                None => return ControlFlow::Continue(()),
                text => text,
            }
        } else {
            None
        };
        if options.with_values && reply.protocol == Protocol::Resp3 {
            reply.array(2);
        }
        reply.bulk(key.as_bytes());
        count += 1;
        if let Some(text) = text {
            reply.bulk(&text);
            count += usize::from(reply.protocol == Protocol::Resp2);
        }
        if reply.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    if let (Some(low), Some(high)) = (low.lower(), high.upper()) {
        let range = KeyRange::new(low, high);
        if options.snapshot {
            let most = context.server.limits.max_snapshot;
            let snapshots = context.server.store.snapshots();
            let copies = snapshot(database, range, direction, options.limit, most);
            let copies = snapshots.hold(copies.map_err(|TooManyKeys| {
                snapshots.refuse();
                too_long(most)
            })?);
            let _ = copies
                .entries()
                .iter()
                .try_for_each(|(key, value)| visit(key, value));
        } else {
            walk(database, range, direction, options.limit, &mut visit);
        }
    }
    reply.close_array(opened, count);
    Ok(Next::Reply)
}

fn too_long(most: usize) -> Failure {
    let way_out = "ask for a smaller range or a LIMIT, or leave SNAPSHOT out";
    let text = format!(
        "ERR the range has more than {most} keys, the limit of a snapshot (--max-snapshot); {way_out}"
    );
    Failure::Owned(text.into_bytes())
}

pub(super) fn delrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (low, high) = (
        parse_bound(arguments.get(1))?,
        parse_bound(arguments.get(2))?,
    );
    let removed = match (low.lower(), high.upper()) {
        (Some(low), Some(high)) => context.database().remove_range(KeyRange::new(low, high)),
        _ => 0,
    };
    context.reply.count(removed);
    Ok(Next::Reply)
}

pub(super) fn first(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let entry = context.database().first();
    reply_entry(context, entry)
}

pub(super) fn last(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let entry = context.database().last();
    reply_entry(context, entry)
}

pub(super) fn next(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let entry = context.database().next(&Key::from(arguments.get(1)));
    reply_entry(context, entry)
}

pub(super) fn prev(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let entry = context.database().prev(&Key::from(arguments.get(1)));
    reply_entry(context, entry)
}

/// Writes key and value, or a null array.
///
/// A value that has been evicted since is empty, because the entry existed.
fn reply_entry(context: &mut Context<'_>, entry: Option<(Key, Value)>) -> Outcome {
    match entry {
        Some((key, value)) => {
            let text = context.values().text(&key, &value);
            context.reply.array(2);
            context.reply.bulk(key.as_bytes());
            context.reply.bulk(text.as_deref().unwrap_or_default());
        }
        None => context.reply.null_array(),
    }
    Ok(Next::Reply)
}

pub(super) fn shape(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let shape = context.database().shape();
    context.reply.map(1 + shape.figures.len());
    context.reply.bulk(b"engine");
    context.reply.bulk(shape.engine.as_bytes());
    for (name, value) in shape.figures {
        context.reply.bulk(name.as_bytes());
        context
            .reply
            .integer(i64::try_from(value).unwrap_or(i64::MAX));
    }
    Ok(Next::Reply)
}

struct RangeOptions {
    limit: usize,
    reverse: bool,
    with_values: bool,
    snapshot: bool,
}

impl RangeOptions {
    fn parse(arguments: Arguments<'_>) -> Result<Self, Failure> {
        let mut options = Self {
            limit: usize::MAX,
            reverse: false,
            with_values: false,
            snapshot: false,
        };
        let mut rest = arguments.skip(3);
        while let Some(name) = rest.next() {
            if name.eq_ignore_ascii_case(b"limit") {
                let limit = rest.next().ok_or(Failure::SYNTAX)?;
                let limit = number::parse(limit).ok_or(Failure::NOT_AN_INTEGER)?;
                // A negative limit means no limit, as in ZRANGEBYLEX.
                options.limit = usize::try_from(limit).unwrap_or(usize::MAX);
            } else if name.eq_ignore_ascii_case(b"rev") {
                options.reverse = true;
            } else if name.eq_ignore_ascii_case(b"withvalues") {
                options.with_values = true;
            } else if name.eq_ignore_ascii_case(b"snapshot") {
                options.snapshot = true;
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(options)
    }
}

/// A bound as in `ZRANGEBYLEX`: `[key`, `(key`, `-` before all keys and `+` behind them.
enum RangeBound {
    Key(Bound<Key>),
    BeforeAll,
    BehindAll,
}

impl RangeBound {
    /// This bound as the lower one; `None` if no key is above it.
    fn lower(&self) -> Option<Bound<&Key>> {
        match self {
            Self::Key(bound) => Some(bound.as_ref()),
            Self::BeforeAll => Some(Bound::Unbounded),
            Self::BehindAll => None,
        }
    }

    /// This bound as the upper one; `None` if no key is below it.
    fn upper(&self) -> Option<Bound<&Key>> {
        match self {
            Self::Key(bound) => Some(bound.as_ref()),
            Self::BeforeAll => None,
            Self::BehindAll => Some(Bound::Unbounded),
        }
    }
}

fn parse_bound(text: &[u8]) -> Result<RangeBound, Failure> {
    match text {
        b"-" => Ok(RangeBound::BeforeAll),
        b"+" => Ok(RangeBound::BehindAll),
        [b'[', key @ ..] => Ok(RangeBound::Key(Bound::Included(Key::from(key)))),
        [b'(', key @ ..] => Ok(RangeBound::Key(Bound::Excluded(Key::from(key)))),
        _ => Err(Failure::BOUND),
    }
}
