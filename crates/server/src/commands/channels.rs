//! `SUBSCRIBE`, `PUBLISH` and their kin.

use super::reach::NOTHING_OF_USERS;
use super::table::Command;
use super::{Context, Failure, Next, Outcome, describe};
use crate::apart::MANY;
use crate::channels::{Full, Kind, Subscriptions, publish};
use crate::glob;
use crate::resp::{Arguments, Mute, Protocol, Reply};

/// Redis's flags of these commands.
const PUBSUB: &[&str] = &["pubsub", "loading", "stale"];
const CATEGORY: &[&str] = &["@pubsub"];

/// The subcommands of `PUBSUB`.
#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new("channels", -2, names, PUBSUB, CATEGORY, NOTHING_OF_USERS)
        .full_name("pubsub|channels")
        .docs("pubsub", "2.8.0", "O(n) for n channels", "PUBSUB CHANNELS [pattern]",
            "The channels that somebody listens to, or those of them that match"),
    Command::new("numsub", -2, counts, PUBSUB, CATEGORY, NOTHING_OF_USERS)
        .full_name("pubsub|numsub")
        .docs("pubsub", "2.8.0", "O(k) for k channels", "PUBSUB NUMSUB [channel ...]",
            "How many clients listen to each channel, not counting patterns"),
    Command::new("numpat", 2, numpat, PUBSUB, CATEGORY, NOTHING_OF_USERS)
        .full_name("pubsub|numpat")
        .docs("pubsub", "2.8.0", "O(1)", "PUBSUB NUMPAT",
            "How many different patterns somebody listens to"),
    Command::new("shardchannels", -2, names, PUBSUB, CATEGORY, NOTHING_OF_USERS)
        .full_name("pubsub|shardchannels")
        .docs("pubsub", "7.0.0", "O(n) for n channels", "PUBSUB SHARDCHANNELS [pattern]",
            "As `PUBSUB CHANNELS`, for channels of `SSUBSCRIBE`"),
    Command::new("shardnumsub", -2, counts, PUBSUB, CATEGORY, NOTHING_OF_USERS)
        .full_name("pubsub|shardnumsub")
        .docs("pubsub", "7.0.0", "O(k) for k channels", "PUBSUB SHARDNUMSUB [channel ...]",
            "As `PUBSUB NUMSUB`, for channels of `SSUBSCRIBE`"),
    Command::new("help", 2, describe::help, super::rows::ANY_TIME, &[], NOTHING_OF_USERS)
        .full_name("pubsub|help")
        .docs("pubsub", "6.2.0", "O(1)", "PUBSUB HELP", "What the subcommands do"),
];

/// The commands that a subscriber may run whose protocol cannot tell replies from messages.
const WITH_MESSAGES: [&str; 9] = [
    "ping",
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "quit",
    "reset",
];

/// Whether a subscriber may run a command.
pub(super) fn check(
    subscriptions: &Subscriptions,
    protocol: Protocol,
    command: &Command,
) -> Result<(), Failure> {
    let name = command.full_name;
    if protocol == Protocol::Resp3 || subscriptions.total() == 0 || WITH_MESSAGES.contains(&name) {
        return Ok(());
    }
    Err(Failure::Owned(
        format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        )
        .into_bytes(),
    ))
}

/// The same of a client that watches ranges, and may listen too.
pub(super) fn check_watcher(protocol: Protocol, command: &Command) -> Result<(), Failure> {
    const OF_WATCHES: [&str; 3] = ["watchrange", "unwatchrange", "watches"];
    let name = command.full_name;
    if protocol == Protocol::Resp3 || OF_WATCHES.contains(&name) || WITH_MESSAGES.contains(&name) {
        return Ok(());
    }
    Err(Failure::Owned(
        format!(
            "ERR Can't execute '{name}': only WATCHRANGE / UNWATCHRANGE / WATCHES / \
             (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed while ranges are \
             watched with version 2 of the protocol"
        )
        .into_bytes(),
    ))
}

/// Whether the connection gets messages in the form of replies.
pub(super) fn speaks_only_messages(context: &Context<'_>) -> bool {
    let session = &context.session;
    let is_fed = session.subscriptions.is_some() || session.watches.is_some();
    context.reply.protocol == Protocol::Resp2 && is_fed
}

/// What a kind of subscription is called, and what its end is.
const fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Channel => ("subscribe", "unsubscribe"),
        Kind::Pattern => ("psubscribe", "punsubscribe"),
        Kind::Shard => ("ssubscribe", "sunsubscribe"),
    }
}

/// The number that a client learns: channels and patterns count together.
fn shown(subscriptions: Option<&Subscriptions>, kind: Kind) -> usize {
    let count = |kind| subscriptions.map_or(0, |all| all.count(kind));
    match kind {
        Kind::Shard => count(Kind::Shard),
        Kind::Channel | Kind::Pattern => count(Kind::Channel) + count(Kind::Pattern),
    }
}

/// Writes that a subscription has begun or ended.
fn confirm(reply: &mut Reply, word: &str, name: Option<&[u8]>, count: usize) {
    reply.push(3);
    reply.bulk(word.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.count(count);
}

/// Lets all that waits for the connection be sent before the reply.
pub(super) fn empty_outbox(context: &mut Context<'_>) {
    let Some(outbox) = &context.session.outbox else {
        return;
    };
    for piece in outbox.take(usize::MAX) {
        context.reply.unasked(piece);
    }
}

/// Runs `write` without regard to `CLIENT REPLY`: what it writes is no reply.
fn unmuted(context: &mut Context<'_>, write: impl FnOnce(&mut Context<'_>)) {
    let mute = std::mem::replace(&mut context.reply.mute, Mute::Off);
    write(context);
    context.reply.mute = mute;
}

pub(super) fn subscribe(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    join(context, arguments, Kind::Channel)
}

pub(super) fn psubscribe(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    join(context, arguments, Kind::Pattern)
}

pub(super) fn ssubscribe(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    join(context, arguments, Kind::Shard)
}

/// Begins to listen to all of the arguments, or to none.
fn join(context: &mut Context<'_>, arguments: Arguments<'_>, kind: Kind) -> Outcome {
    let outbox = context.outbox()?;
    let channels = &context.server.channels;
    let session = &mut *context.session;
    let all = session.subscriptions.take();
    let all = all.unwrap_or_else(|| channels.subscriber(outbox));
    let limits = &context.server.limits.channels;
    let (mut begun, mut full) = (Vec::new(), None);
    let mut counts = Vec::with_capacity(arguments.len() - 1);
    for name in arguments.skip(1) {
        match all.join(kind, name, limits) {
            Ok(true) => begun.push(name),
            Ok(false) => (),
            Err(why) => {
                full = Some(why);
                break;
            }
        }
        counts.push(shown(Some(&all), kind));
        context.turn.spend(1);
    }
    if let Some(full) = full {
        for name in begun {
            all.leave(kind, name);
        }
        context.session.subscriptions = Some(all).filter(|all| all.total() > 0);
        return Err(refusal(full));
    }
    context.session.subscriptions = Some(all);
    unmuted(context, |context| {
        for (name, count) in arguments.skip(1).zip(counts) {
            confirm(context.reply, words(kind).0, Some(name), count);
        }
    });
    Ok(Next::Reply)
}

fn refusal(full: Full) -> Failure {
    let text = match full {
        Full::Client(most) => format!(
            "ERR a client listens to at most {most} channels and patterns \
             (--max-client-subscriptions)"
        ),
        Full::All(most) => {
            format!("ERR there are {most} subscriptions already (--max-subscriptions)")
        }
        Full::Bytes(most) => format!(
            "ERR the names of all subscriptions take at most {most} bytes \
             (--max-subscription-bytes)"
        ),
        Full::Patterns(most) => {
            format!("ERR all patterns take at most {most} bytes (--max-pattern-bytes)")
        }
    };
    Failure::Owned(text.into_bytes())
}

pub(super) fn unsubscribe(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    leave(context, arguments, Kind::Channel)
}

pub(super) fn punsubscribe(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    leave(context, arguments, Kind::Pattern)
}

pub(super) fn sunsubscribe(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    leave(context, arguments, Kind::Shard)
}

/// Ends to listen to the arguments; without any, to all of a kind.
fn leave(context: &mut Context<'_>, arguments: Arguments<'_>, kind: Kind) -> Outcome {
    let all = &context.session.subscriptions;
    let count = all.as_ref().map_or(0, |all| all.count(kind));
    if arguments.len() == 1 && count >= MANY && !context.is_apart {
        return Ok(Next::Apart);
    }
    let all = context.session.subscriptions.take();
    let names = match (&all, arguments.len()) {
        (Some(all), 1) => all.names(kind),
        (None, 1) => Vec::new(),
        _ => arguments.skip(1).map(Into::into).collect(),
    };
    let mut counts = Vec::with_capacity(names.len());
    for name in &names {
        if let Some(all) = &all {
            all.leave(kind, name);
        }
        counts.push(shown(all.as_ref(), kind));
        context.turn.spend(1);
    }
    let left = shown(all.as_ref(), kind);
    context.session.subscriptions = all.filter(|all| all.total() > 0);
    // What was sent before comes before.
    empty_outbox(context);
    unmuted(context, |context| {
        let word = words(kind).1;
        for (name, count) in names.iter().zip(counts) {
            confirm(context.reply, word, Some(name), count);
        }
        if names.is_empty() {
            confirm(context.reply, word, None, left);
        }
    });
    Ok(Next::Reply)
}

pub(super) fn publish_to_channel(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    send(context, arguments, Kind::Channel)
}

pub(super) fn publish_to_shard(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    send(context, arguments, Kind::Shard)
}

fn send(context: &mut Context<'_>, arguments: Arguments<'_>, kind: Kind) -> Outcome {
    let (channel, payload) = (arguments.get(1), arguments.get(2));
    let count = publish(context.server, kind, channel, payload);
    context.turn.spend(count / RECEIVERS_PER_UNIT);
    // Its own message comes before its reply, as in Redis.
    if context.session.subscriptions.is_some() {
        empty_outbox(context);
    }
    context.reply.count(count);
    Ok(Next::Reply)
}

/// Receivers of a message whose outboxes take about as long to fill as a short command.
const RECEIVERS_PER_UNIT: usize = 8;

/// The kind that a subcommand of `PUBSUB` is about.
fn kind_of(context: &Context<'_>) -> Kind {
    if context.command.name.starts_with("shard") {
        Kind::Shard
    } else {
        Kind::Channel
    }
}

fn names(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() > 3 {
        return Err(Failure::subcommand_arity(arguments));
    }
    let kind = kind_of(context);
    let channels = &context.server.channels;
    if channels.count(kind) >= MANY && !context.is_apart {
        return Ok(Next::Apart);
    }
    let pattern = (arguments.len() == 3).then(|| arguments.get(2));
    let (mut found, mut failed) = (Vec::<Box<[u8]>>::new(), false);
    channels.each(kind, &mut |name| {
        let matches = pattern.is_none_or(|pattern| {
            let matches = glob::matches(pattern, name);
            failed |= matches.is_err();
            matches.unwrap_or(false)
        });
        if matches {
            found.push(name.into());
        }
    });
    if failed {
        return Err(Failure::PATTERN);
    }
    context.reply.array(found.len());
    for name in found {
        context.reply.bulk(&name);
    }
    Ok(Next::Reply)
}

fn counts(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let kind = kind_of(context);
    context.reply.array(2 * (arguments.len() - 2));
    for name in arguments.skip(2) {
        context.reply.bulk(name);
        let listeners = context.server.channels.listeners(kind, name);
        context.reply.count(listeners);
    }
    Ok(Next::Reply)
}

fn numpat(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let count = context.server.channels.count(Kind::Pattern);
    context.reply.count(count);
    Ok(Next::Reply)
}
