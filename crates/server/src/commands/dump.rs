//! `DUMP` and `RESTORE`: values in the form of Redis's files.

use super::strings::drop_from;
use super::{Context, Failure, Next, Outcome};
use crate::apart::LONG;
use crate::rdb::{self, BadPayload};
use crate::resp::{Arguments, number};
use tremula_store::{Expiry, Key, Lifetime, Update, Value};

pub(super) fn dump(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let key = Key::from(arguments.get(1));
    let value = context.database().get(&key);
    let text = value.and_then(|value| context.values().text(&key, &value));
    if text.as_ref().is_some_and(|text| text.len() >= LONG) && !context.is_apart {
        return Ok(Next::Apart);
    }
    context.note_lookup(arguments.get(1), text.is_some());
    match text {
        Some(text) => context.reply.bulk(&rdb::payload(&text)),
        None => context.reply.null(),
    }
    Ok(Next::Reply)
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`.
pub(super) fn restore(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.get(3).len() >= LONG && !context.is_apart {
        return Ok(Next::Apart);
    }
    store(context, arguments)?;
    Ok(Next::Reply)
}

/// What `RESTORE` is asked for.
#[derive(Clone, Copy, Default)]
struct Options {
    /// Whether the value may take the place of another.
    replaces: bool,
    /// Whether the ttl is a time, in milliseconds since 1970 began.
    is_time: bool,
}

fn options(arguments: Arguments<'_>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let (mut has_idle_time, mut has_frequency) = (false, false);
    let mut rest = arguments.skip(4);
    while let Some(option) = rest.next() {
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        if is("replace") {
            options.replaces = true;
        } else if is("absttl") {
            options.is_time = true;
        } else if is("idletime")
            && !has_frequency
            && let Some(time) = rest.next()
        {
            has_idle_time = true;
            let time = number::parse(time).ok_or(Failure::NOT_AN_INTEGER)?;
            if time < 0 {
                return Err(Failure::Text("ERR Invalid IDLETIME value, must be >= 0"));
            }
        } else if is("freq")
            && !has_idle_time
            && let Some(frequency) = rest.next()
        {
            has_frequency = true;
            let frequency = number::parse(frequency).ok_or(Failure::NOT_AN_INTEGER)?;
            if !(0..=255).contains(&frequency) {
                return Err(Failure::Text(
                    "ERR Invalid FREQ value, must be >= 0 and <= 255",
                ));
            }
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(options)
}

fn store(context: &mut Context<'_>, arguments: Arguments<'_>) -> Result<(), Failure> {
    const BUSY: Failure = Failure::Text("BUSYKEY Target key name already exists.");
    const INVALID_TTL: Failure = Failure::Text("ERR Invalid TTL value, must be >= 0");
    let options = options(arguments)?;
    let replaces = options.replaces;
    let key = Key::from(arguments.get(1));
    // Before anything is said of the payload, as in Redis.
    if !replaces && context.database().contains_key(&key) {
        return Err(BUSY);
    }
    let ttl = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    if ttl < 0 {
        return Err(INVALID_TTL);
    }
    let time = match ttl {
        0 => None,
        _ if options.is_time => Some(ttl),
        _ => Some(ttl.saturating_add(Expiry::now().millis() as i64)),
    };
    let time = time.and_then(|time| u64::try_from(time).ok());
    let expiry = time.map(|time| Expiry::from_millis(time).ok_or(INVALID_TTL));
    let expiry = expiry.transpose()?;
    let value = rdb::read_payload(arguments.get(3)).map_err(|bad| match bad {
        BadPayload::Envelope => Failure::Text("ERR DUMP payload version or checksum are wrong"),
        BadPayload::Kind(kind) => Failure::Owned(
            format!("ERR the payload holds a value of the type {kind}, and there are only strings")
                .into_bytes(),
        ),
        BadPayload::Format => Failure::Text("ERR Bad data format"),
    })?;
    if value.len() > context.server.live.max_argument.bytes() {
        return Err(Failure::TOO_LONG);
    }
    if expiry.is_some_and(Expiry::is_over) {
        if replaces {
            let database = context.database();
            let old = context.commit(|effects| database.remove(effects, &key))?;
            drop_from(context.server, context.session.database, old);
        }
        context.reply.ok();
        return Ok(());
    }
    let mut value = Some(Value::from(value).expiring(expiry));
    if replaces {
        let database = context.database();
        let value = value.take().unwrap_or_else(|| Value::from(&b""[..]));
        let old = context.commit(|effects| database.insert(effects, key, value))?;
        drop_from(context.server, context.session.database, old);
    } else {
        let values = context.values();
        let mut decide = |current: Option<&[u8]>| match value.take_if(|_| current.is_none()) {
            Some(value) => Update::Put(value),
            None => Update::Keep,
        };
        context
            .commit(|effects| values.update(effects, key, Lifetime::New(expiry), &mut decide))?;
        if value.is_some() {
            return Err(BUSY);
        }
    }
    context.reply.ok();
    Ok(())
}
