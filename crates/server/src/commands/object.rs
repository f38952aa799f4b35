//! `OBJECT …`: about the values of keys. None of these counts as a use of the key.

use super::reach::{NOTHING_OF_USERS, key_at, looked_at};
use super::rows::{ANY_TIME, NOTHING};
use super::table::Command;
use super::{Context, Failure, Next, Outcome, describe};
use crate::resp::{Arguments, number};

/// The longest value that Redis keeps together with its header.
const EMBEDDED: usize = 44;

/// The longest text that Redis reads as a number.
const LONGEST_NUMBER: usize = 20;

/// The subcommands of `OBJECT`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new(
        "encoding",
        3,
        encoding,
        &["readonly"],
        &["@keyspace"],
        looked_at(key_at(2)),
    )
    .full_name("object|encoding")
    .tips(&["nondeterministic_output"])
    .docs(
        "generic",
        "2.2.3",
        "O(log n)",
        "OBJECT ENCODING key",
        "The encoding that Redis would choose for the value",
    ),
    Command::new(
        "freq",
        3,
        freq,
        &["readonly"],
        &["@keyspace"],
        looked_at(key_at(2)),
    )
    .full_name("object|freq")
    .tips(&["nondeterministic_output"])
    .docs(
        "generic",
        "4.0.0",
        "O(log n)",
        "OBJECT FREQ key",
        "How often a key is used, from 0 to 255, if keys are evicted by that",
    ),
    Command::new(
        "idletime",
        3,
        idletime,
        &["readonly"],
        &["@keyspace"],
        looked_at(key_at(2)),
    )
    .full_name("object|idletime")
    .tips(&["nondeterministic_output"])
    .docs(
        "generic",
        "2.2.3",
        "O(log n)",
        "OBJECT IDLETIME key",
        "The seconds since a key was used, if keys are evicted by that",
    ),
    Command::new(
        "refcount",
        3,
        refcount,
        &["readonly"],
        &["@keyspace"],
        looked_at(key_at(2)),
    )
    .full_name("object|refcount")
    .tips(&["nondeterministic_output"])
    .docs(
        "generic",
        "2.2.3",
        "O(log n)",
        "OBJECT REFCOUNT key",
        "1 if the key is there",
    ),
    Command::new(
        "help",
        2,
        describe::help,
        ANY_TIME,
        &["@keyspace"],
        NOTHING_OF_USERS,
    )
    .full_name("object|help")
    .docs(
        "generic",
        "6.2.0",
        NOTHING,
        "OBJECT HELP",
        "What the subcommands do",
    ),
];

fn encoding(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let encoding = context.look_at(arguments.get(2), |length, bytes| {
        let is_number = length <= LONGEST_NUMBER && number::parse(bytes).is_some();
        match length {
            _ if is_number => "int",
            0..=EMBEDDED => "embstr",
            _ => "raw",
        }
    });
    context.count_lookup(encoding.is_some());
    match encoding {
        Some(encoding) => context.reply.bulk(encoding.as_bytes()),
        None => context.reply.null(),
    }
    Ok(Next::Reply)
}

/// Looks a key up.
fn is_there(context: &Context<'_>, key: &[u8]) -> bool {
    let is_there = context.length_of(key).is_some();
    context.count_lookup(is_there);
    is_there
}

fn refcount(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if is_there(context, arguments.get(2)) {
        context.reply.integer(1);
    } else {
        context.reply.null();
    }
    Ok(Next::Reply)
}

fn freq(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let key = arguments.get(2);
    if !is_there(context, key) {
        context.reply.null();
        return Ok(Next::Reply);
    }
    let eviction = context.server.store.eviction();
    let frequency = eviction.frequency(context.session.database, key);
    let frequency = frequency.ok_or(Failure::Text(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
         that when switching between policies at runtime LRU and LFU data will take some time to \
         adjust.",
    ))?;
    context.reply.integer(frequency.into());
    Ok(Next::Reply)
}

fn idletime(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let key = arguments.get(2);
    if !is_there(context, key) {
        context.reply.null();
        return Ok(Next::Reply);
    }
    let eviction = context.server.store.eviction();
    let idle = eviction.idle(context.session.database, key);
    let is_lfu = eviction.frequency(context.session.database, key).is_some();
    let idle = idle.ok_or(if is_lfu {
        Failure::Text(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that \
             when switching between policies at runtime LRU and LFU data will take some time to \
             adjust.",
        )
    } else {
        Failure::Text(
            "ERR An LRU maxmemory policy is not selected, idle time not tracked. CONFIG SET \
             maxmemory-policy allkeys-lru tracks it from then on.",
        )
    })?;
    context
        .reply
        .integer(i64::try_from(idle.as_secs()).unwrap_or(i64::MAX));
    Ok(Next::Reply)
}
