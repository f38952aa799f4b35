//! Keys that expire: `EXPIRE` and its kin, and the options with which other commands give a time.

use super::copying::with_value;
use super::strings::{Storing, drop_from, reply_old, store_value};
use super::{Command, Context, Failure, Next, Outcome};
use crate::resp::{Arguments, number};
use tremula_store::{Expiry, Key, Lifetime, Update, Value};

/// How a client gives a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds from now on.
    Seconds,
    /// Milliseconds from now on.
    Millis,
    /// Seconds since 1970 began.
    AtSeconds,
    /// Milliseconds since 1970 began.
    AtMillis,
}

impl Unit {
    /// The unit of an option.
    pub(super) fn of_option(option: &[u8]) -> Option<Self> {
        let named = [
            ("ex", Self::Seconds),
            ("px", Self::Millis),
            ("exat", Self::AtSeconds),
            ("pxat", Self::AtMillis),
        ];
        let is = |(name, _): &&(&str, Self)| option.eq_ignore_ascii_case(name.as_bytes());
        named.iter().find(is).map(|(_, unit)| *unit)
    }

    /// The time that this argument gives, in milliseconds since 1970 began; it may be before that.
    fn read(self, time: i64) -> Option<i64> {
        let millis = match self {
            Self::Seconds | Self::AtSeconds => time.checked_mul(1000)?,
            Self::Millis | Self::AtMillis => time,
        };
        match self {
            Self::Seconds | Self::Millis => millis.checked_add(Expiry::now().millis() as i64),
            Self::AtSeconds | Self::AtMillis => Some(millis),
        }
    }

    /// The time that an option of a command gives, which has to be above zero.
    pub(super) fn option(self, argument: &[u8], command: &str) -> Result<Expiry, Failure> {
        let time = number::parse(argument).ok_or(Failure::NOT_AN_INTEGER)?;
        let millis = Some(time).filter(|time| *time > 0);
        let millis = millis.and_then(|time| self.read(time));
        millis.and_then(expiry).ok_or_else(|| invalid(command))
    }
}

/// A time in milliseconds since 1970 began; `None` if it was before. What comes after the last one
/// that a key can have is that one.
fn expiry(millis: i64) -> Option<Expiry> {
    let millis = u64::try_from(millis).ok()?;
    Expiry::from_millis(millis.min(Expiry::LAST_MILLIS))
}

fn invalid(command: &str) -> Failure {
    Failure::Owned(format!("ERR invalid expire time in '{command}' command").into_bytes())
}

/// When `EXPIRE` and its kin change something.
#[derive(Clone, Copy, Default)]
struct Conditions {
    if_never: bool,
    if_expiring: bool,
    if_later: bool,
    if_sooner: bool,
}

impl Conditions {
    fn read(arguments: Arguments<'_>) -> Result<Self, Failure> {
        let mut found = Self::default();
        for option in arguments.skip(3) {
            let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
            if is("nx") {
                found.if_never = true;
            } else if is("xx") {
                found.if_expiring = true;
            } else if is("gt") {
                found.if_later = true;
            } else if is("lt") {
                found.if_sooner = true;
            } else {
                return Err(Failure::quoting("ERR Unsupported option ", option, ""));
            }
        }
        if found.if_never && (found.if_expiring || found.if_later || found.if_sooner) {
            return Err(Failure::Text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if found.if_later && found.if_sooner {
            return Err(Failure::Text(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(found)
    }

    /// Whether a key that expires then may expire at `after`. No time is later than all others.
    fn hold(self, before: Option<Expiry>, after: i64) -> bool {
        let before = before.map(|before| before.millis() as i64);
        !(self.if_never && before.is_some()
            || self.if_expiring && before.is_none()
            || self.if_later && before.is_none_or(|before| after <= before)
            || self.if_sooner && before.is_some_and(|before| after >= before))
    }
}

pub(super) fn expire(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_time(context, arguments, Unit::Seconds)
}

pub(super) fn pexpire(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_time(context, arguments, Unit::Millis)
}

pub(super) fn expireat(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_time(context, arguments, Unit::AtSeconds)
}

pub(super) fn pexpireat(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    set_time(context, arguments, Unit::AtMillis)
}

/// A time that keys get if conditions hold.
pub(super) struct TimeChange {
    conditions: Conditions,
    millis: i64,
}

impl TimeChange {
    /// Reads what comes behind a key: the time, and conditions.
    pub(super) fn read(
        command: &Command,
        arguments: Arguments<'_>,
        unit: Unit,
    ) -> Result<Self, Failure> {
        let conditions = Conditions::read(arguments)?;
        let time = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
        let millis = unit.read(time);
        let millis = millis.ok_or_else(|| invalid(command.name))?;
        Ok(Self { conditions, millis })
    }

    /// What becomes of a key that expires then: it is removed if its new time is over.
    pub(super) fn decide(&self, before: Option<Expiry>) -> Update<Option<Expiry>> {
        match expiry(self.millis) {
            _ if !self.conditions.hold(before, self.millis) => Update::Keep,
            Some(after) if !after.is_over() => Update::Put(Some(after)),
            _ => Update::Remove,
        }
    }
}

/// Gives the key a time, or removes it if the time is over.
fn set_time(context: &mut Context<'_>, arguments: Arguments<'_>, unit: Unit) -> Outcome {
    let change = TimeChange::read(context.command, arguments, unit)?;
    let mut is_changed = false;
    change_time(context, arguments.get(1), &mut |before| {
        let decided = change.decide(before.expiry());
        is_changed = !matches!(decided, Update::Keep);
        decided
    })?;
    context.reply.integer(is_changed.into());
    Ok(Next::Reply)
}

/// Changes when a key expires, if it is there.
fn change_time(
    context: &mut Context<'_>,
    key: &[u8],
    decide: &mut dyn FnMut(&Value) -> Update<Option<Expiry>>,
) -> Result<(), Failure> {
    let (key, database) = (Key::from(key), context.database());
    let (_, removed) = context.commit(|effects| database.update_expiry(effects, key, decide))?;
    drop_from(context.server, context.session.database, removed);
    Ok(())
}

pub(super) fn persist(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut is_changed = false;
    change_time(context, arguments.get(1), &mut |before| {
        is_changed = before.expiry().is_some();
        Update::Put(None)
    })?;
    context.reply.integer(is_changed.into());
    Ok(Next::Reply)
}

pub(super) fn ttl(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    show_time(context, arguments, |expiry| seconds(left(expiry)))
}

pub(super) fn pttl(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    show_time(context, arguments, left)
}

pub(super) fn expiretime(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    show_time(context, arguments, |expiry| seconds(expiry.millis()))
}

pub(super) fn pexpiretime(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    show_time(context, arguments, Expiry::millis)
}

/// Milliseconds from now on.
pub(super) fn left(expiry: Expiry) -> u64 {
    expiry.millis().saturating_sub(Expiry::now().millis())
}

/// The nearest number of seconds.
pub(super) const fn seconds(millis: u64) -> u64 {
    (millis + 500) / 1000
}

/// Answers with a key's time, with -1 if it does not expire, or with -2 if there is no such key.
fn show_time(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    show: fn(Expiry) -> u64,
) -> Outcome {
    let mut shown = -2;
    let key = Key::from(arguments.get(1));
    let is_there = context.database().get_with(&key, &mut |value| {
        let time = value.expiry().map(show);
        shown = time.map_or(-1, |time| i64::try_from(time).unwrap_or(i64::MAX));
    });
    context.note_lookup(arguments.get(1), is_there);
    context.reply.integer(shown);
    Ok(Next::Reply)
}

pub(super) fn setex(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    // Before the value is copied.
    Unit::Seconds.option(arguments.get(2), "setex")?;
    with_value(context, arguments, 3, |context, arguments, value| {
        store_expiring(context, arguments, value, Unit::Seconds, "setex")
    })
}

pub(super) fn psetex(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    Unit::Millis.option(arguments.get(2), "psetex")?;
    with_value(context, arguments, 3, |context, arguments, value| {
        store_expiring(context, arguments, value, Unit::Millis, "psetex")
    })
}

fn store_expiring(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    value: Value,
    unit: Unit,
    command: &str,
) -> Result<(), Failure> {
    let expiry = unit.option(arguments.get(2), command)?;
    let storing = Storing {
        lifetime: Lifetime::New(Some(expiry)),
        ..Storing::ALWAYS
    };
    store_value(context, arguments.get(1), value, storing)
}

/// What `GETEX` does with a key's time.
enum Getex<'a> {
    Keeps,
    Persists,
    Sets(Unit, &'a [u8]),
}

impl<'a> Getex<'a> {
    /// Reads the options. As in Redis, one may come again.
    fn read(arguments: Arguments<'a>) -> Result<Self, Failure> {
        let mut found = Self::Keeps;
        let mut options = arguments.skip(2);
        while let Some(option) = options.next() {
            if option.eq_ignore_ascii_case(b"persist") && !matches!(found, Self::Sets(..)) {
                found = Self::Persists;
            } else if let Some(unit) = Unit::of_option(option)
                && let Some(time) = options.next()
                && match found {
                    Self::Keeps => true,
                    Self::Persists => false,
                    Self::Sets(before, _) => before == unit,
                }
            {
                found = Self::Sets(unit, time);
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(found)
    }
}

pub(super) fn getex(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let getex = Getex::read(arguments)?;
    let change = match getex {
        Getex::Keeps => Update::Keep,
        Getex::Persists => Update::Put(None),
        // A time that cannot be matters only to a key that is there. If another thread makes one
        // now, that comes behind this reply: its value must not be shown without the time.
        Getex::Sets(..)
            if !context
                .database()
                .contains_key(&Key::from(arguments.get(1))) =>
        {
            reply_old(context, arguments.get(1), None);
            return Ok(Next::Reply);
        }
        Getex::Sets(unit, time) => match unit.option(time, "getex")? {
            expiry if expiry.is_over() => Update::Remove,
            expiry => Update::Put(Some(expiry)),
        },
    };
    let (key, database) = (Key::from(arguments.get(1)), context.database());
    let mut value = None;
    let text = if change == Update::Keep {
        value = database.get(&key);
        value.and_then(|value| context.values().text(&key, &value))
    } else {
        let (_, removed) = context.commit(|effects| {
            database.update_expiry(effects, key.clone(), &mut |current| {
                value = Some(current.clone());
                change
            })
        })?;
        match (removed, value) {
            (Some(removed), _) => context.values().taken(Some(removed)),
            (None, value) => value.and_then(|value| context.values().text(&key, &value)),
        }
    };
    reply_old(context, arguments.get(1), text);
    Ok(Next::Reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_are_refused() {
        let of = |unit: Unit, text: &str| unit.option(text.as_bytes(), "set").ok();
        assert_eq!(of(Unit::AtMillis, "5"), Expiry::from_millis(5));
        assert_eq!(of(Unit::AtSeconds, "5"), Expiry::from_millis(5000));
        for text in ["0", "-1", "x", "", "1.5", "9223372036854775808"] {
            assert_eq!(of(Unit::AtMillis, text), None, "{text}");
            assert_eq!(of(Unit::Millis, text), None, "{text}");
        }
        assert_eq!(
            of(Unit::Millis, "9223372036854775807"),
            None,
            "now and that"
        );
        for text in ["281474976710655", "281474976710656", "9223372036854775807"] {
            let last = Expiry::from_millis(Expiry::LAST_MILLIS);
            assert_eq!(of(Unit::AtMillis, text), last, "{text}");
        }
        assert_eq!(of(Unit::Seconds, "9223372036854775"), None);
        let now = Expiry::now();
        let soon = of(Unit::Millis, "1").expect("a time");
        assert!(soon > now);
    }

    #[test]
    fn conditions_compare_as_redis_does() {
        let at = Expiry::from_millis;
        let never = Conditions {
            if_never: true,
            ..Conditions::default()
        };
        let expiring = Conditions {
            if_expiring: true,
            ..Conditions::default()
        };
        let later = Conditions {
            if_later: true,
            ..Conditions::default()
        };
        let sooner = Conditions {
            if_sooner: true,
            ..Conditions::default()
        };
        for (conditions, before, after, expected) in [
            (Conditions::default(), None, 5, true),
            (never, None, 5, true),
            (never, at(5), 5, false),
            (expiring, None, 5, false),
            (expiring, at(5), 5, true),
            (later, None, i64::MAX, false),
            (later, at(5), 5, false),
            (later, at(5), 6, true),
            (sooner, None, 5, true),
            (sooner, at(5), 5, false),
            (sooner, at(5), -1, true),
        ] {
            assert_eq!(
                conditions.hold(before, after),
                expected,
                "{before:?} {after}"
            );
        }
    }
}
