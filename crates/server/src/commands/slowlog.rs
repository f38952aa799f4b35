//! `SLOWLOG …`: the last commands that took long.

use super::reach::NOTHING_OF_USERS;
use super::rows::{ANY_TIME, NOTHING};
use super::table::Command;
use super::{Context, Failure, Next, Outcome, describe};
use crate::resp::{Arguments, number};

/// Entries that `SLOWLOG GET` shows, if no other number is asked for.
const ENTRIES: usize = 10;

/// The subcommands of `SLOWLOG`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new(
        "get",
        -2,
        get,
        &["admin", "loading", "stale"],
        &[],
        NOTHING_OF_USERS,
    )
    .full_name("slowlog|get")
    .tips(&["request_policy:all_nodes", "nondeterministic_output"])
    .docs(
        "server",
        "2.2.12",
        "O(n) for n entries",
        "SLOWLOG GET [count]",
        "The last commands that took long, 10 of them or count; -1 is all",
    ),
    Command::new(
        "len",
        2,
        len,
        &["admin", "loading", "stale"],
        &[],
        NOTHING_OF_USERS,
    )
    .full_name("slowlog|len")
    .tips(&[
        "request_policy:all_nodes",
        "response_policy:agg_sum",
        "nondeterministic_output",
    ])
    .docs(
        "server",
        "2.2.12",
        NOTHING,
        "SLOWLOG LEN",
        "How many are kept",
    ),
    Command::new(
        "reset",
        2,
        reset,
        &["admin", "loading", "stale"],
        &[],
        NOTHING_OF_USERS,
    )
    .full_name("slowlog|reset")
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
    .docs(
        "server",
        "2.2.12",
        "O(n) for n entries",
        "SLOWLOG RESET",
        "Forget them",
    ),
    Command::new("help", 2, describe::help, ANY_TIME, &[], NOTHING_OF_USERS)
        .full_name("slowlog|help")
        .docs(
            "server",
            "6.2.0",
            NOTHING,
            "SLOWLOG HELP",
            "What the subcommands do",
        ),
];

fn get(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let count = match arguments.len() {
        2 => ENTRIES,
        3 => match number::parse(arguments.get(2)) {
            Some(-1) => usize::MAX,
            count => count
                .and_then(|count| usize::try_from(count).ok())
                .ok_or(Failure::Text(
                    "ERR count should be greater than or equal to -1",
                ))?,
        },
        _ => return Err(Failure::arity(context.command)),
    };
    let entries = context.server.slowlog.newest(count);
    let reply = &mut *context.reply;
    reply.array(entries.len());
    for entry in entries {
        let integer = |number| i64::try_from(number).unwrap_or(i64::MAX);
        reply.array(6);
        reply.integer(i64::try_from(entry.id).unwrap_or(i64::MAX));
        reply.integer(integer(entry.time.as_secs().into()));
        reply.integer(integer(entry.took.as_micros()));
        reply.array(entry.arguments.len());
        for argument in &entry.arguments {
            reply.bulk(argument);
        }
        reply.bulk(entry.address.as_bytes());
        reply.bulk(&entry.client);
    }
    Ok(Next::Reply)
}

fn len(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.reply.count(context.server.slowlog.len());
    Ok(Next::Reply)
}

fn reset(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.server.slowlog.reset();
    context.reply.ok();
    Ok(Next::Reply)
}
