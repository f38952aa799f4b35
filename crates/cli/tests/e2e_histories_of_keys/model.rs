//! What keys do that expire, have versions, are watched and are changed by several commands at
//! once, when one client uses them.
//!
//! A reply does not say at which moment of its call the server looked at the clock. So a key has a
//! span of times, one of which is its own: `PX 5` in a call from 100 to 103 gives a time from 105
//! to 108. A call that finds the key was at a moment before that time, and leaves only the later
//! ones of the span; a call that does not find it leaves the earlier ones, and the key is gone for
//! good. `PTTL`, `PEXPIRETIME` and the events of a watcher narrow the span further. Client and
//! server read one clock, so what is left of the span is just what is possible.
//!
//! Where a reply fits two ways (a `TXN` may have failed since a key had expired, or for another
//! condition), the model goes both: its state is the set of all worlds that explain the replies.
//! The operations contain their replies for this, and the answer only says whether a world is left.

use crate::commands::{Command, Condition, Reply, Time, When};
use crate::feed::{Change, Feed};
use crate::world::{Slot, Value, Watched, World, new};
use std::fmt;
use std::ops::RangeInclusive;
use tremula_check::Specification;

/// The keys.
pub(crate) const KEYS: usize = 4;

/// A call with its reply, the client, and the clock in milliseconds before and behind it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) client: usize,
    pub(crate) command: Command,
    pub(crate) reply: Reply,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl fmt::Display for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {}..={}", self.command, self.from, self.to)
    }
}

/// Whether a reply is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    This(Reply),
    SomethingElse,
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::This(reply) => reply.fmt(out),
            Self::SomethingElse => out.write_str("something else"),
        }
    }
}

/// The model, for some clients.
pub(crate) struct Keys {
    pub(crate) clients: usize,
    /// Whether later changes of a key have larger versions.
    pub(crate) is_logged: bool,
    /// Whether no key gets a time: then a read says nothing of times.
    pub(crate) is_timeless: bool,
    /// What a watcher was shown.
    pub(crate) feed: Option<Feed>,
}

impl Keys {
    /// The worlds in which it is decided whether a key is there.
    fn look(&self, mut world: World, key: usize, call: &Call) -> Vec<World> {
        let Some((first, last)) = world.slots[key]
            .value
            .as_ref()
            .and_then(|value| value.expires)
        else {
            return vec![world];
        };
        let mut worlds = Vec::new();
        if first <= call.to {
            let mut gone = world.clone();
            gone.slots[key].value = None;
            gone.slots[key].expired = true;
            worlds.push(gone);
        }
        if call.from < last
            && let Some(value) = &mut world.slots[key].value
        {
            value.expires = Some((first.max(call.from + 1), last));
            value.is_found = true;
            worlds.push(world);
        }
        worlds
    }

    fn look_at(
        &self,
        world: World,
        keys: impl IntoIterator<Item = usize>,
        call: &Call,
    ) -> Vec<World> {
        let mut worlds = vec![world];
        for key in keys {
            let all = worlds.into_iter();
            worlds = all.flat_map(|world| self.look(world, key, call)).collect();
        }
        worlds
    }

    /// The worlds in which a key is now something else, as the watcher was shown.
    fn change(
        &self,
        mut world: World,
        key: usize,
        to: Option<Value>,
        (by, call): (&Command, &Call),
    ) -> Vec<World> {
        let slot = &mut world.slots[key];
        slot.changes += 1;
        let was_expired = std::mem::take(&mut slot.expired);
        slot.value = to.map(|value| Value {
            version: None,
            ..value
        });
        let Some(feed) = &self.feed else {
            return vec![world];
        };
        let is_retimed = matches!(
            by,
            Command::Expire(..) | Command::Persist(_) | Command::Getex(..)
        );
        let mut worlds = Vec::new();
        let mut starts = vec![world.clone()];
        if was_expired && let Some((_, Change::Del)) = feed.event(key, world.slots[key].events) {
            world.slots[key].events += 1;
            starts.push(world);
        }
        for mut world in starts {
            let slot = &mut world.slots[key];
            let Some((sequence, change)) = feed.event(key, slot.events) else {
                continue;
            };
            slot.events += 1;
            let fits = match (&mut slot.value, change) {
                (None, Change::Del) => true,
                (None, Change::Delrange) => matches!(by, Command::Delrange(_)),
                (Some(value), Change::Set(text, expires)) => {
                    value.is_hidden = false;
                    value.text == text && value.narrow(expires)
                }
                (Some(value), Change::Expire(expires)) => is_retimed && value.narrow(expires),
                // A time that was over when the command came to it removes the key at once.
                (Some(value), Change::Del) if is_retimed => {
                    let is_over = value.expires.is_some_and(|(first, _)| first <= call.to);
                    slot.value = None;
                    is_over
                }
                // Its time had come when it was shown.
                (Some(value), Change::Del) => {
                    value.is_hidden = true;
                    value.expires.is_some()
                }
                _ => false,
            };
            if fits {
                if let Some(value) = &mut slot.value {
                    value.version = Some(sequence);
                }
                worlds.push(world);
            }
        }
        worlds
    }

    /// The worlds behind a command that is a part of `call`, or all of it, if its reply is this.
    fn run(&self, world: World, command: &Command, reply: &Reply, call: &Call) -> Vec<World> {
        let keys = keys_of(command);
        let worlds = self.look_at(world, keys, call);
        let each = worlds.into_iter();
        each.flat_map(|world| self.decided(world, command, reply, call))
            .collect()
    }

    /// The same, once it is decided which of the command's keys are there.
    fn decided(&self, world: World, command: &Command, reply: &Reply, call: &Call) -> Vec<World> {
        let of = |key: usize| world.slots[key].value.clone();
        let text = |value: &Option<Value>| {
            let text = value.as_ref().map(|value| Reply::Text(value.text));
            text.unwrap_or(Reply::Nil)
        };
        let only_if = |fits: bool, world: World| if fits { vec![world] } else { vec![] };
        let count = |fits: bool| Reply::Integer(fits.into());
        match command {
            Command::Get(key) => only_if(*reply == text(&of(*key)), world),
            Command::Getv(key) => self.shown(world, *key, reply),
            Command::Set(key, value, time, when) => {
                let before = of(*key);
                let is_set = match when {
                    When::Always => true,
                    When::Not => before.is_none(),
                    When::Already => before.is_some(),
                };
                if *reply != if is_set { Reply::Ok } else { Reply::Nil } {
                    return vec![];
                }
                if !is_set {
                    return vec![world];
                }
                let value = new(*value, *time, before.as_ref(), call);
                self.change(world, *key, Some(value), (command, call))
            }
            Command::Replace(key, value, time) => {
                let before = of(*key);
                if *reply != text(&before) {
                    return vec![];
                }
                let value = new(*value, *time, before.as_ref(), call);
                self.change(world, *key, Some(value), (command, call))
            }
            Command::Mset(entries) => {
                let mut worlds = only_if(*reply == Reply::Ok, world);
                for (key, value) in entries {
                    let value = new(*value, Time::Never, None, call);
                    let to = |world| self.change(world, *key, Some(value.clone()), (command, call));
                    worlds = worlds.into_iter().flat_map(to).collect();
                }
                worlds
            }
            Command::Del(_) | Command::Getdel(_) => {
                let key = keys_of(command)[0];
                let before = of(key);
                let expected = match command {
                    Command::Del(_) => count(before.is_some()),
                    _ => text(&before),
                };
                match before {
                    _ if *reply != expected => vec![],
                    None => vec![world],
                    Some(_) => self.change(world, key, None, (command, call)),
                }
            }
            Command::Range(keys) => {
                let there = keys.clone().filter_map(|key| Some((key, of(key)?)));
                let entries = there.flat_map(|(key, value)| [key as u64, value.text]);
                let all = Reply::List(entries.map(Reply::Text).collect());
                only_if(*reply == all, world)
            }
            Command::Delrange(keys) => self.delrange(world, keys, reply, (command, call)),
            Command::Expire(key, time, when) => {
                let before = of(*key).filter(|before| match when {
                    When::Always => true,
                    When::Not => before.expires.is_none(),
                    When::Already => before.expires.is_some(),
                });
                match before {
                    _ if *reply != count(before.is_some()) => vec![],
                    None => vec![world],
                    Some(before) => self.retime(world, *key, &before, *time, (command, call)),
                }
            }
            Command::Persist(key) => {
                let before = of(*key).filter(|before| before.expires.is_some());
                match before {
                    _ if *reply != count(before.is_some()) => vec![],
                    None => vec![world],
                    Some(before) => self.retime(world, *key, &before, Time::Never, (command, call)),
                }
            }
            Command::Getex(key, time) => {
                let before = of(*key);
                match before {
                    _ if *reply != text(&before) => vec![],
                    None => vec![world],
                    Some(before) => self.retime(world, *key, &before, *time, (command, call)),
                }
            }
            Command::Pttl(key) | Command::Pexpiretime(key) => {
                let is_left = matches!(command, Command::Pttl(_));
                self.timed(world, *key, reply, is_left, call)
            }
            Command::Txn(conditions, branches) => {
                let Reply::List(parts) = reply else {
                    return vec![];
                };
                let mut all = conditions.iter();
                let hold = all.all(|condition| world.holds(condition));
                match parts.as_slice() {
                    [which, Reply::List(replies)] if *which == count(hold) => {
                        let branch = &branches[usize::from(!hold)];
                        self.step(world, branch, replies, call)
                    }
                    _ => vec![],
                }
            }
            Command::Watch(keys) => {
                if *reply != Reply::Ok {
                    return vec![];
                }
                let mut world = world;
                for key in keys {
                    let stamp = world.stamp(*key);
                    let watched = &mut world.watched[call.client];
                    if watched.iter().all(|(other, _)| other != key) {
                        watched.push((*key, stamp));
                    }
                }
                world.watched[call.client].sort_unstable();
                vec![world]
            }
            Command::Unwatch => {
                let mut world = world;
                world.watched[call.client].clear();
                only_if(*reply == Reply::Ok, world)
            }
            Command::Exec(commands) => self.exec(world, commands, reply, call),
            Command::End => {
                let Some(feed) = &self.feed else {
                    return vec![world];
                };
                let is_all = |(key, slot): (usize, &Slot)| match &slot.value {
                    Some(value) => feed.left(key, slot.events) == 0 && !value.is_hidden,
                    None if slot.expired => {
                        feed.left(key, slot.events) == 1 && feed.ends_with_del(key)
                    }
                    None => feed.left(key, slot.events) == 0,
                };
                only_if(world.slots.iter().enumerate().all(is_all), world)
            }
        }
    }

    /// `EXEC`, if nothing that the client watched has changed, or else a nil.
    fn exec(&self, world: World, commands: &[Command], reply: &Reply, call: &Call) -> Vec<World> {
        let watched = world.watched[call.client].clone();
        let keys: Vec<usize> = watched.iter().map(|(key, _)| *key).collect();
        let mut after = Vec::new();
        for mut world in self.look_at(world, keys, call) {
            let mut each = watched.iter();
            let is_unchanged = each.all(|(key, stamp)| world.stamp(*key) == *stamp);
            world.watched[call.client].clear();
            match reply {
                Reply::Nil if !is_unchanged => after.push(world),
                Reply::List(replies) if is_unchanged => {
                    after.extend(self.step(world, commands, replies, call));
                }
                _ => {}
            }
        }
        after
    }

    /// Commands one after another, as one step.
    fn step(
        &self,
        world: World,
        commands: &[Command],
        replies: &[Reply],
        call: &Call,
    ) -> Vec<World> {
        if commands.len() != replies.len() {
            return vec![];
        }
        // What is there when it begins, is there until it ends.
        let mut worlds = self.look_at(world, 0..KEYS, call);
        for (command, reply) in commands.iter().zip(replies) {
            let all = worlds.into_iter();
            worlds = all
                .flat_map(|world| self.run(world, command, reply, call))
                .collect();
        }
        worlds
    }

    /// The worlds in which `GETV` may answer so: what it shows for the first time is the version
    /// from then on, and none that was shown before.
    fn shown(&self, mut world: World, key: usize, reply: &Reply) -> Vec<World> {
        let slot = &mut world.slots[key];
        let fits = match (&mut slot.value, reply) {
            (None, Reply::Nil) => true,
            (Some(value), Reply::List(parts)) => match parts.as_slice() {
                [Reply::Text(text), Reply::Integer(version)] if *text == value.text => {
                    let version = u64::try_from(*version).unwrap_or(0);
                    let is_new = if self.is_logged {
                        version > slot.shown
                    } else {
                        version != slot.shown && version > 0
                    };
                    let fits = match value.version {
                        Some(known) => version == known,
                        None => is_new,
                    };
                    (value.version, slot.shown) = (Some(version), version);
                    fits
                }
                _ => false,
            },
            _ => false,
        };
        if fits { vec![world] } else { vec![] }
    }

    fn timed(
        &self,
        mut world: World,
        key: usize,
        reply: &Reply,
        is_left: bool,
        call: &Call,
    ) -> Vec<World> {
        let Reply::Integer(number) = reply else {
            return vec![];
        };
        let fits = match &mut world.slots[key].value {
            None => *number == -2,
            Some(value) if value.expires.is_none() => *number == -1,
            Some(value) => match u64::try_from(*number) {
                Err(_) => false,
                // The clock may have gone on between the look at the key and this.
                Ok(0) if is_left => value.within(0, call.to),
                Ok(left) if is_left => value.within(call.from + left, call.to + left),
                Ok(time) => value.within(time, time),
            },
        };
        if fits { vec![world] } else { vec![] }
    }

    /// The worlds in which a key that is there expires at another time, or at the same.
    fn retime(
        &self,
        world: World,
        key: usize,
        before: &Value,
        time: Time,
        (command, call): (&Command, &Call),
    ) -> Vec<World> {
        let after = Value {
            is_hidden: before.is_hidden,
            ..new(before.text, time, Some(before), call)
        };
        let mut worlds = Vec::new();
        // The same time is no change.
        let is_same = match (before.expires, after.expires) {
            (None, None) => true,
            (Some(_), Some((first, last))) => {
                let mut same = world.clone();
                if let Some(value) = &mut same.slots[key].value
                    && value.within(first, last)
                {
                    worlds.push(same);
                }
                time == Time::Kept
            }
            _ => false,
        };
        if is_same {
            return vec![world];
        }
        worlds.extend(self.change(world, key, Some(after), (command, call)));
        worlds
    }

    fn delrange(
        &self,
        world: World,
        keys: &RangeInclusive<usize>,
        reply: &Reply,
        (command, call): (&Command, &Call),
    ) -> Vec<World> {
        let there = |key: &usize| world.slots[*key].value.is_some();
        let removed = keys.clone().filter(there).count();
        if *reply != Reply::Integer(removed as i64) {
            return vec![];
        }
        let mut worlds = vec![world];
        for key in keys.clone() {
            let each = worlds.into_iter();
            worlds = each
                .flat_map(|world| match &world.slots[key].value {
                    Some(_) => self.change(world, key, None, (command, call)),
                    None => self.delrange_of_none(world, key),
                })
                .collect();
        }
        worlds
    }

    /// A removed range is one event, also for the keys that were not there; perhaps none, if there
    /// were no keys.
    fn delrange_of_none(&self, mut world: World, key: usize) -> Vec<World> {
        let Some(feed) = &self.feed else {
            return vec![world];
        };
        let mut worlds = vec![world.clone()];
        let slot = &mut world.slots[key];
        if slot.expired && feed.event(key, slot.events).map(|event| event.1) == Some(Change::Del) {
            slot.events += 1;
            slot.expired = false;
            worlds.push(world.clone());
        }
        let mut shown = Vec::new();
        for world in &worlds {
            let mut world = world.clone();
            let slot = &mut world.slots[key];
            let event = feed.event(key, slot.events).map(|event| event.1);
            if event == Some(Change::Delrange) {
                slot.events += 1;
                slot.expired = false;
                shown.push(world);
            }
        }
        worlds.extend(shown);
        worlds
    }
}

/// The keys whose presence decides what a command does. Those inside an `EXEC` are looked at when
/// they come; those of a `TXN`'s conditions all at once, before its commands.
fn keys_of(command: &Command) -> Vec<usize> {
    match command {
        Command::Get(key)
        | Command::Getv(key)
        | Command::Set(key, ..)
        | Command::Replace(key, ..)
        | Command::Del(key)
        | Command::Getdel(key)
        | Command::Expire(key, ..)
        | Command::Persist(key)
        | Command::Getex(key, _)
        | Command::Pttl(key)
        | Command::Pexpiretime(key) => vec![*key],
        Command::Mset(entries) => entries.iter().map(|(key, _)| *key).collect(),
        Command::Range(keys) | Command::Delrange(keys) => keys.clone().collect(),
        Command::Watch(keys) => keys.clone(),
        Command::Txn(conditions, _) => {
            let keys = conditions.iter().map(|condition| match condition {
                Condition::Value(key, _)
                | Condition::Version(key, _)
                | Condition::Present(key)
                | Condition::Absent(key) => *key..=*key,
                Condition::Empty(keys) => keys.clone(),
            });
            let mut keys: Vec<usize> = keys.flatten().collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        }
        Command::End => (0..KEYS).collect(),
        Command::Unwatch | Command::Exec(_) => vec![],
    }
}

impl Specification for Keys {
    type State = Vec<World>;
    type Operation = Call;
    type Response = Answer;

    fn initial(&self) -> Vec<World> {
        vec![World {
            slots: Default::default(),
            watched: vec![Watched::new(); self.clients],
        }]
    }

    fn step(&self, worlds: &mut Vec<World>, call: &Call) -> Answer {
        let before = std::mem::take(worlds).into_iter();
        *worlds = before
            .flat_map(|world| self.run(world, &call.command, &call.reply, call))
            .collect();
        for value in worlds.iter_mut().flat_map(World::values) {
            value.is_found = false;
        }
        worlds.sort_unstable();
        worlds.dedup();
        if worlds.is_empty() {
            Answer::SomethingElse
        } else {
            Answer::This(call.reply.clone())
        }
    }

    fn only_reads(&self, call: &Call, _: Option<&Answer>) -> bool {
        self.is_timeless && matches!(call.command, Command::Get(_) | Command::Range(_))
    }
}
