//! `WATCHRANGE`, `UNWATCHRANGE` and `WATCHES`.

use super::channels::empty_outbox;
use super::ordered::span_of;
use super::{Context, Failure, Next, Outcome};
use crate::feeds::{Name, Refused, text};
use crate::resp::{Arguments, number};
use tremula_store::{Sequence, Since};

const NO_LOG: Failure = Failure::Text(
    "ERR nothing can be watched, because there is no log; start with --watch-ring BYTES, or \
     without --memory-only",
);
const PREV: Failure = Failure::Text(
    "ERR PREV needs what keys were before their changes, which the log has with --log-previous yes; \
     without, RANGE [key [key AS OF sequence WITHVALUES shows it, with the sequence before the event's",
);
const BOTH: Failure = Failure::Text(
    "ERR FROM and SNAPSHOT exclude each other: a snapshot is followed by what comes behind it",
);
const EMPTY: Failure = Failure::Text("ERR no key can be between these bounds");
const FROM: Failure = Failure::Text("ERR FROM needs a sequence, an integer of 0 or more");

/// With what a watch begins, and whether it shows what was before each change.
fn options_of(arguments: Arguments<'_>) -> Result<(Since, bool), Failure> {
    let (mut since, mut has_previous) = (None, false);
    let mut rest = arguments.skip(3);
    while let Some(option) = rest.next() {
        let chosen = if option.eq_ignore_ascii_case(b"from") {
            let from = rest.next().and_then(number::parse);
            let from = from.and_then(|from| u64::try_from(from).ok()).ok_or(FROM)?;
            Since::Sequence(Sequence::new(from))
        } else if option.eq_ignore_ascii_case(b"snapshot") {
            Since::Snapshot
        } else if option.eq_ignore_ascii_case(b"prev") && !has_previous {
            has_previous = true;
            continue;
        } else {
            return Err(Failure::SYNTAX);
        };
        match since.replace(chosen) {
            None => (),
            Some(before) if (before == Since::Snapshot) == (chosen == Since::Snapshot) => {
                return Err(Failure::SYNTAX);
            }
            Some(_) => return Err(BOTH),
        }
    }
    Ok((since.unwrap_or(Since::Now), has_previous))
}

/// `WATCHRANGE start end [FROM sequence | SNAPSHOT] [PREV]`: answers with the first sequence that
/// the watch may show.
pub(super) fn watchrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (since, has_previous) = options_of(arguments)?;
    let span = span_of(arguments)?.filter(|span| !span.is_empty());
    let name = Name {
        database: context.session.database,
        start: arguments.get(1).into(),
        end: arguments.get(2).into(),
        span: span.ok_or(EMPTY)?,
        has_previous,
    };
    if context.server.store.log().is_none() {
        return Err(NO_LOG);
    }
    if has_previous && !context.server.limits.feeds.log_previous {
        return Err(PREV);
    }
    let outbox = context.outbox()?;
    let (feeds, limits) = (&context.server.feeds, &context.server.limits.feeds);
    let watches = context.session.watches.take();
    let watches = watches.unwrap_or_else(|| feeds.watches(outbox));
    let begun = watches.begin(name, since, limits);
    context.session.watches = Some(watches).filter(|watches| watches.count() > 0);
    let first = begun.map_err(refusal)?;
    context.reply.sequence(first);
    Ok(Next::Reply)
}

fn refusal(refused: Refused) -> Failure {
    let text = match refused {
        Refused::Twice => "ERR this connection watches a range with these bounds already; \
                           UNWATCHRANGE ends that"
            .to_owned(),
        Refused::Client(most) => {
            format!("ERR a client watches at most {most} ranges (--max-client-watches)")
        }
        Refused::All(most) => format!("ERR there are {most} watches already (--max-watches)"),
        Refused::Bytes(most) => {
            format!("ERR the bounds of all watches take at most {most} bytes (--max-watch-bytes)")
        }
        Refused::Log(error) => text(&error),
    };
    Failure::Owned(text.into_bytes())
}

/// `UNWATCHRANGE [start end]`: answers with the number of watches that have ended. What was on its
/// way comes before that.
pub(super) fn unwatchrange(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let bounds = match arguments.len() {
        1 => None,
        3 => Some((arguments.get(1), arguments.get(2))),
        _ => return Err(Failure::arity(context.command)),
    };
    if context.session.holds_much() && !context.is_apart {
        return Ok(Next::Apart);
    }
    let watches = context.session.watches.take();
    let ended = watches.as_ref().map_or(0, |watches| watches.end(bounds));
    context.session.watches = watches.filter(|watches| watches.count() > 0);
    empty_outbox(context);
    context.reply.count(ended);
    Ok(Next::Reply)
}

/// `WATCHES`: the ranges that this connection watches, and how far each has come.
pub(super) fn watches(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let watches = context.session.watches.as_ref();
    let seen = watches.map_or_else(Vec::new, |watches| watches.seen());
    // All that is before where they are comes before the reply.
    empty_outbox(context);
    let reply = &mut *context.reply;
    reply.array(seen.len());
    for watch in seen {
        reply.map(5);
        reply.bulk(b"start");
        reply.bulk(&watch.name.start);
        reply.bulk(b"end");
        reply.bulk(&watch.name.end);
        reply.bulk(b"database");
        reply.count(watch.name.database);
        reply.bulk(b"next");
        reply.sequence(watch.next);
        reply.bulk(b"reads");
        reply.bulk(watch.from.as_bytes());
    }
    Ok(Next::Reply)
}
