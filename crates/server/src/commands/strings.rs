//! Commands on values as strings of bytes.

use super::copying::{Claim, Copying, Patched, Patching, answer, at_once, with_value};
use super::expiry::Unit;
use super::{Context, Failure, Next, Outcome, Step, Work, begin};
use crate::apart::{LONG, free, job};
use crate::limits::REPLY_BATCH;
use crate::memory::note_access;
use crate::resp::{Arguments, number};
use crate::server::Shared;
use std::ops::Range;
use std::sync::mpsc::Receiver;
use tremula_store::{
    Changed, Database, Databases, Key, Lifetime, ONE_MOMENT, Part, Text, TooLong, Unlogged, Update,
    Value, checked_end,
};

pub(super) fn get(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    reply_value(context, arguments.get(1));
    Ok(Next::Reply)
}

/// Copies the value under `key` straight into the output; a long one is shared.
fn reply_value(context: &mut Context<'_>, key: &[u8]) {
    let values = context.values();
    let reply = &mut *context.reply;
    let mut copy = |_, part: Part<'_>| reply.part(&part);
    let is_there = values.read(&Key::from(key), |length| 0..length, &mut copy);
    if !is_there {
        reply.null();
    }
    context.note_lookup(key, is_there);
}

/// `GETV key`: the value and its version, or a null array.
pub(super) fn getv(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let found = context.values().versioned(&Key::from(arguments.get(1)));
    context.note_lookup(arguments.get(1), found.is_some());
    match found {
        Some((text, version)) => {
            context.reply.array(2);
            context.reply.value(text);
            context.reply.version(version);
        }
        None => context.reply.null_array(),
    }
    Ok(Next::Reply)
}

pub(super) fn mget(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    context.reply.array(arguments.len() - 1);
    if arguments.len() == 2 {
        reply_value(context, arguments.get(1));
        return Ok(Next::Reply);
    }
    begin(context, arguments, Getting::default())
}

/// Copies the values of all keys, as of one moment, and writes them while they are sent.
#[derive(Default)]
struct Getting {
    keys: Vec<Key>,
    copied: Option<Receiver<Vec<Option<Value>>>>,
    values: Option<std::vec::IntoIter<Option<Value>>>,
    /// The argument of the next value.
    next: usize,
}

/// The values of keys as of one moment.
fn together(database: Database<'_>, keys: &[Key]) -> Vec<Option<Value>> {
    let mut values = vec![None; keys.len()];
    database.get_together(keys, &mut |at, value| values[at] = value.cloned());
    values
}

impl Work for Getting {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        while self.keys.len() + 1 < arguments.len() {
            let key = arguments.get(self.keys.len() + 1);
            note_access(context.server, context.session.database, key);
            self.keys.push(Key::from(key));
            if context.turn.spend(1) {
                return Ok(Step::Rest);
            }
        }
        let values = match (&mut self.values, &self.copied) {
            (Some(values), _) => values,
            (None, Some(copied)) => {
                let copied = copied.try_recv().map_err(|_| Failure::STOPPING)?;
                self.values.insert(copied.into_iter())
            }
            (None, None) if self.keys.len() > ONE_MOMENT && !context.databases.are_held() => {
                let (number, keys) = (context.session.database, self.keys.clone());
                let (job, copied) =
                    job(move |server| together(server.store.database(number), &keys));
                self.copied = Some(copied);
                return Ok(Step::Apart(job));
            }
            (None, None) => {
                let copied = together(context.database(), &self.keys);
                self.values.insert(copied.into_iter())
            }
        };
        for value in values {
            let key = &self.keys[self.next];
            self.next += 1;
            match value.and_then(|value| context.values().text(key, &value)) {
                Some(text) => {
                    context.stripe.hits.add(1);
                    context.reply.value(text);
                }
                None => {
                    context.note_lookup(key.as_bytes(), false);
                    context.reply.null();
                }
            }
            if context.turn.spend(1) || context.reply.len() >= REPLY_BATCH {
                context.reply.stream();
                return Ok(Step::Rest);
            }
        }
        Ok(Step::Done)
    }
}

/// The condition under which a value is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    Always,
    IfAbsent,
    IfPresent,
    /// If the key has this value.
    IfEqual(&'a [u8]),
}

impl Condition<'_> {
    fn holds(self, current: Option<&[u8]>) -> bool {
        match self {
            Self::Always => true,
            Self::IfAbsent => current.is_none(),
            Self::IfPresent => current.is_some(),
            Self::IfEqual(value) => current == Some(value),
        }
    }
}

/// How a value is stored.
#[derive(Clone, Copy)]
pub(super) struct Storing<'a> {
    pub(super) condition: Condition<'a>,
    /// Whether the answer is the value before.
    pub(super) wants_old: bool,
    pub(super) lifetime: Lifetime,
}

impl Storing<'_> {
    pub(super) const ALWAYS: Self = Self {
        condition: Condition::Always,
        wants_old: false,
        lifetime: Lifetime::New(None),
    };
}

pub(super) fn set(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_options(arguments)?;
    with_value(context, arguments, 2, |context, arguments, value| {
        let storing = set_options(arguments)?;
        store_value(context, arguments.get(1), value, storing)
    })
}

/// What a `SET` that does not give the key a time is called in notices.
const KEEPS_TIME: &str = "set|keepttl";

/// Stores a value, and answers as `SET` does.
pub(super) fn store_value(
    context: &mut Context<'_>,
    name: &[u8],
    value: Value,
    storing: Storing<'_>,
) -> Result<(), Failure> {
    let key = Key::from(name);
    let values = context.values();
    if let (Condition::Always, Lifetime::New(expiry)) = (storing.condition, storing.lifetime) {
        let (database, value) = (context.database(), value.expiring(expiry));
        let old = context.commit(|effects| database.insert(effects, key, value))?;
        if storing.wants_old {
            let old = values.taken(old);
            reply_old(context, name, old);
        } else {
            drop_value(context, old);
            context.reply.ok();
        }
        return Ok(());
    }
    let mut value = Some(value);
    let mut old = None;
    let mut stored = false;
    let mut decide = |current: Option<&[u8]>| {
        if storing.wants_old {
            old = current.map(|current| Text::Plain(Value::from(current)));
        }
        if !storing.condition.holds(current) {
            return Update::Keep;
        }
        stored = true;
        value.take().map_or(Update::Keep, Update::Put)
    };
    let lifetime = storing.lifetime;
    if lifetime == Lifetime::Kept {
        context.databases = context.databases.caused_by(KEEPS_TIME);
    }
    context.commit(|effects| values.update(effects, key, lifetime, &mut decide))?;
    match (storing.wants_old, stored) {
        (true, _) => reply_old(context, name, old),
        (false, true) => context.reply.ok(),
        (false, false) => context.reply.null(),
    }
    Ok(())
}

/// Drops a value that was taken out of the index. Returns whether it still existed.
fn drop_value(context: &Context<'_>, value: Option<Value>) -> bool {
    drop_from(context.server, context.session.database, value)
}

/// Drops a value that was taken out of the index of the database with this number.
pub(super) fn drop_from(server: &Shared, number: usize, value: Option<Value>) -> bool {
    let Some(value) = value else { return false };
    if value.len() < LONG {
        return server.store.values(number).dropped(Some(value));
    }
    free(value.len(), value);
    true
}

/// The options of `SET`.
fn set_options(arguments: Arguments<'_>) -> Result<Storing<'_>, Failure> {
    let mut storing = Storing::ALWAYS;
    let (mut keeps, mut time) = (false, None);
    let mut options = arguments.skip(3);
    while let Some(option) = options.next() {
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        let is_free = |wanted| [Condition::Always, wanted].contains(&storing.condition);
        if is("nx") && is_free(Condition::IfAbsent) {
            storing.condition = Condition::IfAbsent;
        } else if is("xx") && is_free(Condition::IfPresent) {
            storing.condition = Condition::IfPresent;
        } else if is("ifeq")
            && storing.condition == Condition::Always
            && let Some(value) = options.next()
        {
            storing.condition = Condition::IfEqual(value);
        } else if is("get") {
            storing.wants_old = true;
        } else if is("keepttl") && time.is_none() {
            keeps = true;
        } else if let Some(unit) = Unit::of_option(option)
            && !keeps
            // As in Redis, the same one may come again.
            && time.is_none_or(|(before, _)| before == unit)
            && let Some(argument) = options.next()
        {
            time = Some((unit, argument));
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    if keeps {
        storing.lifetime = Lifetime::Kept;
    } else if let Some((unit, argument)) = time {
        storing.lifetime = Lifetime::New(Some(unit.option(argument, "set")?));
    }
    Ok(storing)
}

/// Answers with the value before, which was looked up for that.
pub(super) fn reply_old(context: &mut Context<'_>, key: &[u8], old: Option<Text>) {
    context.note_lookup(key, old.is_some());
    match old {
        Some(old) => context.reply.value(old),
        None => context.reply.null(),
    }
}

pub(super) fn setnx(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    with_value(context, arguments, 2, store_if_absent)
}

fn store_if_absent(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    value: Value,
) -> Result<(), Failure> {
    let key = Key::from(arguments.get(1));
    let mut value = Some(value);
    let mut stored = false;
    let values = context.values();
    let mut decide = |current: Option<&[u8]>| {
        stored = current.is_none();
        match value.take() {
            Some(value) if stored => Update::Put(value),
            _ => Update::Keep,
        }
    };
    let fresh = Lifetime::New(None);
    context.commit(|effects| values.update(effects, key, fresh, &mut decide))?;
    context.reply.integer(stored.into());
    Ok(())
}

pub(super) fn getset(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    with_value(context, arguments, 2, |context, arguments, value| {
        let key = Key::from(arguments.get(1));
        let database = context.database();
        let old = context.commit(|effects| database.insert(effects, key, value))?;
        let old = context.values().taken(old);
        reply_old(context, arguments.get(1), old);
        Ok(())
    })
}

pub(super) fn getdel(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (key, database) = (Key::from(arguments.get(1)), context.database());
    let old = context.commit(|effects| database.remove(effects, &key))?;
    let old = context.values().taken(old);
    reply_old(context, arguments.get(1), old);
    Ok(Next::Reply)
}

/// `DELIFEQ key value`, as Valkey has it.
pub(super) fn delifeq(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (key, value) = (Key::from(arguments.get(1)), arguments.get(2));
    let mut is_removed = false;
    let values = context.values();
    let mut decide = |current: Option<&[u8]>| {
        is_removed = current == Some(value);
        if is_removed {
            Update::Remove
        } else {
            Update::Keep
        }
    };
    let kept = Lifetime::Kept;
    context.commit(|effects| values.update(effects, key, kept, &mut decide))?;
    context.reply.integer(is_removed.into());
    Ok(Next::Reply)
}

pub(super) fn mset(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::arity(context.command));
    }
    begin(context, arguments, Setting::default())
}

pub(super) fn msetnx(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::arity(context.command));
    }
    let setting = Setting {
        if_absent: true,
        ..Setting::default()
    };
    begin(context, arguments, setting)
}

/// Stores values, all in one step.
#[derive(Default)]
struct Setting {
    /// Whether all keys have to be absent.
    if_absent: bool,
    entries: Vec<(Key, Value)>,
    copying: Copying,
    stored: Option<Receiver<Result<bool, Unlogged>>>,
}

/// Stores the values, and drops those before. Returns whether it did.
fn store_together(
    server: &Shared,
    databases: Databases<'_>,
    number: usize,
    entries: Vec<(Key, Value)>,
    if_absent: bool,
) -> Result<bool, Unlogged> {
    let database = databases.database(number);
    if if_absent {
        return databases.commit(|effects| database.insert_together_if_absent(effects, entries));
    }
    let replaced = databases.commit(|effects| database.insert_together(effects, entries))?;
    for old in replaced {
        drop_from(server, number, Some(old));
    }
    Ok(true)
}

impl Setting {
    fn answer(&self, context: &mut Context<'_>, is_stored: bool) {
        if self.if_absent {
            context.reply.integer(is_stored.into());
        } else {
            context.reply.ok();
        }
    }
}

impl Work for Setting {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        if let Some(stored) = &self.stored {
            let is_stored = stored.try_recv().map_err(|_| Failure::STOPPING)??;
            context.session.has_written = true;
            self.answer(context, is_stored);
            return Ok(Step::Done);
        }
        while 2 * self.entries.len() + 1 < arguments.len() {
            let next = 2 * self.entries.len() + 1;
            let bytes = arguments.get(next + 1);
            let Some(value) = self.copying.go_on(bytes, context.turn)? else {
                return Ok(Step::Rest);
            };
            if self.entries.is_empty() {
                self.entries.reserve((arguments.len() / 2).min(ONE_MOMENT));
            }
            let key = arguments.get(next);
            note_access(context.server, context.session.database, key);
            self.entries.push((Key::from(key), value));
            let is_over = context.turn.spend(1) || context.turn.spend_bytes(bytes.len());
            if is_over && next + 2 < arguments.len() {
                return Ok(Step::Rest);
            }
        }
        let (number, entries) = (context.session.database, std::mem::take(&mut self.entries));
        let databases = context.databases;
        if entries.len() > ONE_MOMENT && !databases.are_held() {
            let (if_absent, name) = (self.if_absent, context.command.full_name);
            let (job, stored) = job(move |server| {
                let databases = server.store.free().caused_by(name);
                store_together(server, databases, number, entries, if_absent)
            });
            self.stored = Some(stored);
            return Ok(Step::Apart(job));
        }
        context.session.has_written = true;
        let is_stored = store_together(context.server, databases, number, entries, self.if_absent)?;
        self.answer(context, is_stored);
        Ok(Step::Done)
    }
}

pub(super) fn strlen(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let key = Key::from(arguments.get(1));
    let mut count = 0;
    let mut note = |length, _: Part<'_>| count = length;
    let is_there = context.values().read(&key, |_| 0..0, &mut note);
    context.note_lookup(arguments.get(1), is_there);
    context.reply.count(count);
    Ok(Next::Reply)
}

pub(super) fn append(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let appended = try_append(context, arguments, 0)?;
    answer(context, arguments, appended)
}

fn try_append(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    attempts: u32,
) -> Result<Patched, Failure> {
    let limit = context.server.live.max_argument.bytes();
    let (key, suffix) = (Key::from(arguments.get(1)), arguments.get(2));
    let values = context.values();
    let changed =
        context.commit(|effects| values.append(effects, key, suffix, limit, at_once(attempts)))?;
    Ok(match changed.map_err(|TooLong| Failure::TOO_LONG)? {
        Changed::To(length) => {
            context.turn.spend_bytes(length);
            Patched::To(length)
        }
        Changed::Long(old) => Patched::Goes(Patching {
            offset: old.len(),
            old: Some(old),
            argument: 2,
            new: Vec::new(),
            attempts,
            again: try_append,
            claim: Claim::None,
        }),
    })
}

pub(super) fn getrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let first = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let last = number::parse(arguments.get(3)).ok_or(Failure::NOT_AN_INTEGER)?;
    let key = Key::from(arguments.get(1));
    let values = context.values();
    let reply = &mut *context.reply;
    let mut copy = |_, part: Part<'_>| reply.part(&part);
    let is_there = values.read(&key, move |length| part(length, first, last), &mut copy);
    if !is_there {
        reply.bulk(b"");
    }
    context.note_lookup(arguments.get(1), is_there);
    Ok(Next::Reply)
}

/// The range of the bytes from `first` to `last`, inclusive. Negative positions count from the end.
fn part(length: usize, first: i64, last: i64) -> Range<usize> {
    // Redis checks this before the length.
    if first < 0 && last < 0 && first > last {
        return 0..0;
    }
    let signed = i64::try_from(length).unwrap_or(i64::MAX);
    let from_start = |position: i64| {
        let position = if position < 0 {
            signed + position
        } else {
            position
        };
        usize::try_from(position).unwrap_or(0)
    };
    let end = from_start(last).saturating_add(1).min(length);
    let start = from_start(first);
    if start < end { start..end } else { 0..0 }
}

pub(super) fn setrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let patched = try_setrange(context, arguments, 0)?;
    answer(context, arguments, patched)
}

fn try_setrange(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    attempts: u32,
) -> Result<Patched, Failure> {
    let offset = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let offset = usize::try_from(offset).map_err(|_| Failure::OFFSET)?;
    let patch = arguments.get(3);
    let limit = context.server.live.max_argument.bytes();
    let at_once = at_once(attempts);
    let values = context.values();
    let mut is_long = false;
    let mut length = Ok(0);
    let mut decide = |current: Option<&[u8]>| {
        let current = current.unwrap_or_default();
        if patch.is_empty() {
            length = Ok(current.len());
            return Update::Keep;
        }
        let end = checked_end(offset, patch.len(), limit);
        length = end.map(|end| end.max(current.len()));
        let (Ok(end), Ok(length)) = (end, length) else {
            return Update::Keep;
        };
        if length > at_once {
            is_long = true;
            return Update::Keep;
        }
        Update::Put(Value::build(length, |bytes| {
            bytes[..current.len()].copy_from_slice(current);
            bytes[offset..end].copy_from_slice(patch);
        }))
    };
    let key = Key::from(arguments.get(1));
    let kept = Lifetime::Kept;
    context.commit(|effects| values.update(effects, key, kept, &mut decide))?;
    let length = length.map_err(|TooLong| Failure::TOO_LONG)?;
    if !is_long {
        context.turn.spend_bytes(length);
        return Ok(Patched::To(length));
    }
    let key = Key::from(arguments.get(1));
    let old = context.database().get(&key);
    if old.as_ref().is_some_and(|old| old.cached().is_some()) {
        // The cache has its values under locks of its own.
        return try_setrange(context, arguments, u32::MAX);
    }
    Ok(Patched::Goes(Patching {
        old,
        offset,
        argument: 3,
        new: Vec::new(),
        attempts,
        again: try_setrange,
        claim: Claim::None,
    }))
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
                &b"This is a string"[part(16, first, last)],
                expected.as_bytes(),
                "{first} {last}"
            );
        }
        assert_eq!(part(0, 0, -1), 0..0);
    }
}
