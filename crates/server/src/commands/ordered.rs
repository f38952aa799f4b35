//! The commands that Redis lacks, which exist because the keys are ordered.

use super::atomic::too_many;
use super::listing::{Element, Listing, Source, list};
use super::{Context, Failure, Next, Outcome, Step, View, Work, apart, begin, past};
use crate::apart::job;
use crate::resp::{Arguments, number};
use crate::server::Shared;
use crate::users::{Interval, Reason};
use std::ops::Bound;
use std::sync::mpsc::Receiver;
use tremula_store::{
    Database, Databases, Direction, Key, KeyRange, ONE_MOMENT, Point, Span, Text, TooManyKeys,
    Value, Walk, snapshot,
};

/// `RANGE start end [AS OF sequence | time] [LIMIT n] [REV] [WITHVALUES] [SNAPSHOT]`.
///
/// Up to [`ONE_MOMENT`](tremula_store::ONE_MOMENT) keys the reply is of one moment. With `SNAPSHOT`
/// it is so at any size. The range is read while others write, and what they change is copied
/// before, up to [`MAX_SNAPSHOT`](crate::limits::MAX_SNAPSHOT) keys. With `REV`, and on an engine
/// that cannot do this, the whole range is copied first, up to as many keys.
///
/// With `AS OF` it is as it was, see [`past`](super::past).
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
    let (Some(low), Some(high)) = (low.lower(), high.upper()) else {
        context.reply.array(0);
        return Ok(Next::Reply);
    };
    let range = Wanted {
        low,
        high,
        direction,
        limit: options.limit,
    };
    if let Some(point) = options.as_of {
        return past::range(context, arguments, range, point, options.with_values);
    }
    match (options.snapshot, options.with_values) {
        (false, true) => {
            let source = range.walk(context);
            list::<(Key, Value)>(context, arguments, source, None, None)
        }
        (false, false) => {
            let source = range.walk(context);
            list::<Key>(context, arguments, source, None, None)
        }
        // Copied as a whole, so that the number of keys that are hidden would show.
        (true, _) if View::of(context).is_some() && !is_open(context, arguments) => {
            Err(Failure::Denied(Reason::Key, arguments.get(1).to_vec()))
        }
        (true, true) => begin(context, arguments, Snapshot::<(Key, Value)>::new(range)),
        (true, false) => begin(context, arguments, Snapshot::<Key>::new(range)),
    }
}

/// What a `RANGE` asks for.
pub(super) struct Wanted {
    pub(super) low: Bound<Key>,
    pub(super) high: Bound<Key>,
    pub(super) direction: Direction,
    pub(super) limit: usize,
}

impl Wanted {
    fn walk(self, context: &Context<'_>) -> Source {
        Source::walk(context, self.low, self.high, self.direction, self.limit)
    }
}

/// Whether the user may read every key between the bounds.
fn is_open(context: &Context<'_>, arguments: Arguments<'_>) -> bool {
    let user = context.session.identity.user();
    interval_of(arguments)
        .zip(user)
        .is_some_and(|(interval, user)| user.sees_all_in(context.command, &interval))
}

/// The keys between the bounds that the first two arguments are, in either order; `None` if they
/// are no bounds.
pub(crate) fn interval_of(arguments: Arguments<'_>) -> Option<Interval> {
    let (low, high) = held_bounds(arguments)?;
    let bytes = |bound: &Bound<Key>| bound.as_ref().map(|key| key.as_bytes().to_vec());
    let (low, high) = (bytes(&low), bytes(&high));
    Some(Interval::between(
        low.as_ref().map(Vec::as_slice),
        high.as_ref().map(Vec::as_slice),
    ))
}

/// As [`interval_of`].
pub(super) fn held_bounds(arguments: Arguments<'_>) -> Option<Bounds> {
    let one = parse_bound(arguments.get(1)).ok()?;
    let other = parse_bound(arguments.get(2)).ok()?;
    let is_reversed = arguments
        .skip(3)
        .any(|option| option.eq_ignore_ascii_case(b"rev"));
    let (low, high) = if is_reversed {
        (other, one)
    } else {
        (one, other)
    };
    Some((low.lower()?, high.upper()?))
}

/// The keys between the bounds that the first two arguments are; `None` if none can be there.
///
/// # Errors
///
/// They are no bounds.
pub(super) fn span_of(arguments: Arguments<'_>) -> Result<Option<Span>, Failure> {
    let (low, high) = (
        parse_bound(arguments.get(1))?,
        parse_bound(arguments.get(2))?,
    );
    let bounds = low.lower().zip(high.upper());
    Ok(bounds.map(|(low, high)| {
        let (low, high) = (low.as_ref(), high.as_ref());
        Span::new(low.map(Key::as_bytes), high.map(Key::as_bytes))
    }))
}

/// Where a range begins and ends.
type Bounds = (Bound<Key>, Bound<Key>);

type Copied = Result<Vec<(Key, Value)>, TooManyKeys>;

/// A range of one moment: a list, of copies that the thread apart makes first if it must be.
enum Snapshot<E> {
    Begins(Option<Wanted>),
    Copies(Receiver<Copied>),
    Lists(Box<Listing<E>>),
}

impl<E: Element> Snapshot<E> {
    const fn new(range: Wanted) -> Self {
        Self::Begins(Some(range))
    }

    /// The list of what is there now, if it can be read without a copy of all of it first.
    fn list_as_it_is(context: &Context<'_>, range: &Wanted) -> Option<Listing<E>> {
        if range.direction == Direction::Descending {
            return None;
        }
        let keys = KeyRange::new(range.low.as_ref(), range.high.as_ref());
        let source = Source::Snapshot {
            walk: Box::new(context.database().begin_snapshot(keys)?),
            most: range.limit,
            held: context.server.store.snapshots().hold(0),
        };
        Some(Listing::new(context, source, None, None))
    }

    /// The list of the copies.
    fn list(context: &Context<'_>, copied: Copied) -> Result<Listing<E>, Failure> {
        let snapshots = context.server.store.snapshots();
        let copies = copied.map_err(|TooManyKeys| {
            snapshots.refuse();
            too_long(context.server.limits.max_snapshot)
        })?;
        let source = Source::Copies {
            _held: snapshots.hold(copies.len()),
            copies: copies.into_iter(),
        };
        Ok(Listing::new(context, source, None, None))
    }
}

impl<E: Element> Work for Snapshot<E> {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        loop {
            match self {
                Self::Begins(range) => {
                    let Some(range) = range.take() else {
                        return Ok(Step::Done);
                    };
                    if let Some(listing) = Self::list_as_it_is(context, &range) {
                        *self = Self::Lists(Box::new(listing));
                        continue;
                    }
                    let (number, most) =
                        (context.session.database, context.server.limits.max_snapshot);
                    let copy = move |databases: Databases<'_>| {
                        let database = databases.database(number);
                        let keys = KeyRange::new(range.low.as_ref(), range.high.as_ref());
                        snapshot(database, keys, range.direction, range.limit, most)
                    };
                    if context.databases.are_held() {
                        let copied = copy(context.databases);
                        *self = Self::Lists(Box::new(Self::list(context, copied)?));
                        continue;
                    }
                    let (job, copied) = job(move |server| copy(server.store.free()));
                    *self = Self::Copies(copied);
                    return Ok(Step::Apart(job));
                }
                Self::Copies(copied) => {
                    let copied = copied.try_recv().map_err(|_| Failure::STOPPING)?;
                    *self = Self::Lists(Box::new(Self::list(context, copied)?));
                }
                Self::Lists(listing) => return listing.step(context, arguments),
            }
        }
    }
}

/// What to do where a snapshot is refused.
pub(super) const WAY_OUT: &str = "ask for a smaller range or a LIMIT, or leave SNAPSHOT out";

fn too_long(most: usize) -> Failure {
    let text = format!(
        "ERR the range has more than {most} keys, the limit of a snapshot (--max-snapshot); {WAY_OUT}"
    );
    Failure::Owned(text.into_bytes())
}

/// Removes the range at one moment: on the thread apart if there may be many keys in it.
pub(super) fn delrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let Some((low, high)) = bounds(arguments)? else {
        context.reply.count(0);
        return Ok(Next::Reply);
    };
    let number = context.session.database;
    // In a transaction the range is held already.
    let has_few = has_few_keys(context, &low, &high);
    if context.databases.are_held() {
        let most = context.server.limits.transactions.max_atomic;
        let range = KeyRange::new(low.as_ref(), high.as_ref());
        if context.database().has_more_than(range, most) {
            return Err(too_many(most));
        }
    }
    let remove = move |databases: Databases<'_>| {
        let (low, high) = (low.as_ref(), high.as_ref());
        databases.commit(|effects| databases.database(number).remove_range(effects, low, high))
    };
    context.session.has_written = true;
    if has_few {
        let removed = remove(context.databases)?;
        context.reply.count(removed);
        return Ok(Next::Reply);
    }
    let name = context.command.full_name;
    let remove = move |server: &Shared| remove(server.store.free().caused_by(name));
    apart(context, arguments, remove, |context, removed| {
        context.session.has_written = true;
        context.reply.count(removed?);
        Ok(())
    })
}

/// Whether a range has so few keys now that removing them takes less than a turn.
fn has_few_keys(context: &Context<'_>, low: &Bound<Key>, high: &Bound<Key>) -> bool {
    if context.databases.are_held() || context.database().len() <= ONE_MOMENT {
        return true;
    }
    let mut some = Vec::new();
    let range = KeyRange::new(low.as_ref(), high.as_ref());
    let most = ONE_MOMENT + 1;
    context
        .database()
        .scan(range, Direction::Ascending, most, &mut some);
    some.len() < most
}

pub(super) fn first(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    match View::of(context) {
        None => reply_entry(context, |database| database.first()),
        Some(view) => seek(
            context,
            arguments,
            view,
            Bound::Unbounded,
            Direction::Ascending,
        ),
    }
}

pub(super) fn last(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    match View::of(context) {
        None => reply_entry(context, |database| database.last()),
        Some(view) => seek(
            context,
            arguments,
            view,
            Bound::Unbounded,
            Direction::Descending,
        ),
    }
}

pub(super) fn next(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let key = Key::from(arguments.get(1));
    match View::of(context) {
        None => reply_entry(context, |database| database.next(&key)),
        Some(view) => seek(
            context,
            arguments,
            view,
            Bound::Excluded(key),
            Direction::Ascending,
        ),
    }
}

pub(super) fn prev(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let key = Key::from(arguments.get(1));
    match View::of(context) {
        None => reply_entry(context, |database| database.prev(&key)),
        Some(view) => seek(
            context,
            arguments,
            view,
            Bound::Excluded(key),
            Direction::Descending,
        ),
    }
}

/// Answers with the first entry from a bound on that the user sees.
fn seek(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    view: View,
    from: Bound<Key>,
    direction: Direction,
) -> Outcome {
    let (low, high) = match direction {
        Direction::Ascending => (from, Bound::Unbounded),
        Direction::Descending => (Bound::Unbounded, from),
    };
    let walk = Walk::new(low, high, direction, usize::MAX);
    begin(context, arguments, Seek { walk, view })
}

struct Seek {
    walk: Walk,
    view: View,
}

impl Work for Seek {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        while let Some((key, value)) = self.walk.next(context.database()) {
            // If the cache has evicted the value, the key is gone too.
            if self.view.shows(&key)
                && let Some(text) = context.values().text(&key, &value)
            {
                write_entry(context, &key, text);
                return Ok(Step::Done);
            }
            if context.turn.spend(1) {
                return Ok(Step::Rest);
            }
        }
        context.reply.null_array();
        Ok(Step::Done)
    }
}

/// Writes key and value, or a null array. If the cache has evicted the value, the key is gone too,
/// and the entry that is there instead is found next.
fn reply_entry(
    context: &mut Context<'_>,
    find: impl Fn(Database<'_>) -> Option<(Key, Value)>,
) -> Outcome {
    loop {
        let Some((key, value)) = find(context.database()) else {
            context.reply.null_array();
            return Ok(Next::Reply);
        };
        if let Some(text) = context.values().text(&key, &value) {
            write_entry(context, &key, text);
            return Ok(Next::Reply);
        }
    }
}

fn write_entry(context: &mut Context<'_>, key: &Key, text: Text) {
    context.reply.array(2);
    context.reply.bulk(key.as_bytes());
    context.reply.value(text);
}

struct RangeOptions {
    limit: usize,
    reverse: bool,
    with_values: bool,
    snapshot: bool,
    as_of: Option<Point>,
}

impl RangeOptions {
    fn parse(arguments: Arguments<'_>) -> Result<Self, Failure> {
        let mut options = Self {
            limit: usize::MAX,
            reverse: false,
            with_values: false,
            snapshot: false,
            as_of: None,
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
            } else if name.eq_ignore_ascii_case(b"as") {
                let of = rest.next().filter(|word| word.eq_ignore_ascii_case(b"of"));
                of.ok_or(Failure::SYNTAX)?;
                options.as_of = Some(past::point(rest.next().ok_or(Failure::SYNTAX)?)?);
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
    fn lower(self) -> Option<Bound<Key>> {
        match self {
            Self::Key(bound) => Some(bound),
            Self::BeforeAll => Some(Bound::Unbounded),
            Self::BehindAll => None,
        }
    }

    /// This bound as the upper one; `None` if no key is below it.
    fn upper(self) -> Option<Bound<Key>> {
        match self {
            Self::Key(bound) => Some(bound),
            Self::BeforeAll => None,
            Self::BehindAll => Some(Bound::Unbounded),
        }
    }
}

/// The bounds that the first two arguments are; `None` if no key is between them.
pub(super) fn bounds(arguments: Arguments<'_>) -> Result<Option<Bounds>, Failure> {
    let low = parse_bound(arguments.get(1))?;
    let high = parse_bound(arguments.get(2))?;
    Ok(low.lower().zip(high.upper()))
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
