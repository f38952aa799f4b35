//! Commands about what is kept on the disk: `SAVE`, `BGSAVE`, `LASTSAVE`, `WAITAOF`, `WAITSEQ`,
//! `CLIENT DURABILITY`, `CLIENT LASTSEQ`.

use super::{Context, Failure, Next, Outcome, apart};
use crate::persist::{Durability, Persistence, save_apart};
use crate::resp::{Arguments, number};
use crate::server::Shared;
use std::sync::Arc;
use std::time::Duration;
use tremula_store::Sequence;

const MEMORY_ONLY: Failure = Failure::Text(
    "ERR nothing can be saved, because keys are only in memory; start with --dir, and without --memory-only",
);
const NO_EFFECTS: Failure = Failure::Text(
    "ERR effects have no numbers, because keys are only in memory; start with --dir, and without --memory-only",
);
const IN_PROGRESS: Failure = Failure::Text("ERR Background save already in progress");

fn persistence<'a>(context: &Context<'a>) -> Result<&'a Arc<Persistence>, Failure> {
    context.server.persistence.as_ref().ok_or(MEMORY_ONLY)
}

/// Makes a snapshot, and answers when it is on the disk. Other clients go on.
pub(super) fn save(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let saving = persistence(context)?.begin_save().ok_or(IN_PROGRESS)?;
    let save = |server: &Shared| saving.run(&server.store).map(|_| ());
    apart(context, arguments, save, |context, saved| {
        saved.map_err(|error| Failure::Owned(format!("ERR {error}").into_bytes()))?;
        context.reply.ok();
        Ok(())
    })
}

/// Begins a snapshot.
pub(super) fn bgsave(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut schedules = false;
    for word in arguments.skip(1) {
        if !word.eq_ignore_ascii_case(b"schedule") || schedules {
            return Err(Failure::SYNTAX);
        }
        schedules = true;
    }
    let saving = persistence(context)?.begin_save().ok_or(IN_PROGRESS)?;
    save_apart(&context.server.store, saving);
    context.reply.simple("Background saving started");
    Ok(Next::Reply)
}

/// When the last snapshot was made; without any, when the server started, as in Redis.
pub(super) fn lastsave(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let time = persistence(context)?.last_save_time();
    context
        .reply
        .integer(i64::try_from(time).unwrap_or(i64::MAX));
    Ok(Next::Reply)
}

/// Waits until what this connection has written or seen is on the disk, here and on replicas, of
/// which there are none.
pub(super) fn waitaof(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let count = |at| number::parse(arguments.get(at)).ok_or(Failure::NOT_AN_INTEGER);
    let (here, replicas) = (count(1)?, count(2)?);
    let timeout = number::parse(arguments.get(3));
    let timeout = timeout.ok_or(Failure::Text(
        "ERR timeout is not an integer or out of range",
    ))?;
    let timeout = u64::try_from(timeout).map_err(|_| Failure::Text("ERR timeout is negative"))?;
    if !(0..=1).contains(&here) {
        return Err(Failure::Text(
            "ERR value is out of range, must be between 0 and 1",
        ));
    }
    if replicas < 0 {
        return Err(Failure::Text("ERR value is out of range, must be positive"));
    }
    if here == 1 && context.server.persistence.is_none() {
        return Err(Failure::Text(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled; start with --dir, and without --memory-only",
        ));
    }
    Ok(Next::Durable(Awaited {
        here: here == 1,
        replicas: replicas > 0,
        sequence: None,
        timeout: (timeout > 0).then(|| Duration::from_millis(timeout)),
    }))
}

/// `WAITSEQ sequence timeout`: waits until this server shows an effect, and the group has confirmed
/// it, if there is one.
pub(super) fn waitseq(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let number = |at| {
        let number = number::parse(arguments.get(at)).ok_or(Failure::NOT_AN_INTEGER)?;
        u64::try_from(number).map_err(|_| Failure::NOT_AN_INTEGER)
    };
    let (sequence, timeout) = (number(1)?, number(2)?);
    if context.server.store.log().is_none() {
        return Err(NO_EFFECTS);
    }
    Ok(Next::Durable(Awaited {
        here: true,
        replicas: false,
        sequence: Some(Sequence::new(sequence)),
        timeout: (timeout > 0).then(|| Duration::from_millis(timeout)),
    }))
}

/// `CLIENT LASTSEQ`: the last effect that this connection has made or can have seen.
pub(super) fn client_lastseq(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    if context.server.store.log().is_none() {
        return Err(NO_EFFECTS);
    }
    // In a group it goes out when that effect is confirmed.
    context.session.shows_keys = true;
    let last = context.server.store.last_effect().get();
    context
        .reply
        .integer(i64::try_from(last).unwrap_or(i64::MAX));
    Ok(Next::Reply)
}

/// What a `WAITAOF` or a `WAITSEQ` waits for.
pub(crate) struct Awaited {
    /// This server's disk.
    pub(crate) here: bool,
    /// The disks of replicas: in vain.
    pub(crate) replicas: bool,
    /// An effect, in the place of all that the connection can have seen.
    pub(crate) sequence: Option<Sequence>,
    /// `None` is for ever.
    pub(crate) timeout: Option<Duration>,
}

/// `CLIENT DURABILITY always|everysec|no|default`: when this connection's writes are on the disk.
pub(super) fn client_durability(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    persistence(context)?;
    let word = arguments.get(2).to_ascii_lowercase();
    let text = String::from_utf8_lossy(&word);
    if text == "default" {
        context.session.durability = None;
    } else {
        let chosen: Durability = text
            .parse()
            .map_err(|error| Failure::Owned(format!("ERR {error} and default").into_bytes()))?;
        context.session.durability = Some(chosen);
    }
    context.reply.ok();
    Ok(Next::Reply)
}
