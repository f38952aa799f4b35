//! `DEBUG`: what tests of clients use, and nothing that harms.

use super::{Context, Failure, Next, Outcome, Waiting, describe};
use crate::glob;
use crate::limits::DebugAccess;
use crate::resp::{Arguments, Reply, number};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The longest time that `DEBUG SLEEP` takes.
const LONGEST_SLEEP: f64 = 60.0 * 60.0;

/// The most bytes of a pattern and a text that `DEBUG STRINGMATCH-LEN` compares.
const LONGEST_MATCH: i64 = 1 << 20;

/// Bytes that `DEBUG LOG` writes.
const LONGEST_LINE: usize = 1 << 10;

/// The lines of `DEBUG HELP`.
const HELP: [(&str, &str); 7] = [
    ("ERROR <text>", "Answers with an error."),
    ("LOG <text>", "Writes a line to the log."),
    (
        "PROTOCOL <type>",
        "An example of a type of replies: string, integer, double, null, array, set, map, attrib, \
         verbatim, true, false or bignum.",
    ),
    (
        "SET-ACTIVE-EXPIRE <0|1>",
        "Whether keys whose time has come are removed at once. They are not there anyway.",
    ),
    (
        "SLEEP <seconds>",
        "Answers after a time. Other clients go on.",
    ),
    (
        "STRINGMATCH-LEN <length> <pattern>",
        "Matches a pattern with a text of this length.",
    ),
    ("HELP", "Prints this help."),
];

pub(super) fn debug(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let access = context.server.limits.watch.enable_debug_command;
    let is_allowed = match access {
        DebugAccess::No => false,
        DebugAccess::Local => context.client.is_local(),
        DebugAccess::Yes => true,
    };
    if !is_allowed {
        return Err(Failure::Text(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \
             \"local\", you can run it from a local connection, otherwise you need to set this \
             option in the configuration file, and then restart the server.",
        ));
    }
    let name = arguments.get(1).to_ascii_lowercase();
    match (&name[..], arguments.len()) {
        (b"sleep", 3) => sleep(arguments),
        (b"protocol", 3) => protocol(context, arguments),
        (b"stringmatch-len", 4) => string_match(context, arguments),
        (b"set-active-expire", 3) => {
            let is_on = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)? != 0;
            context.server.expires.store(is_on, Relaxed);
            context.reply.ok();
            Ok(Next::Reply)
        }
        (b"log", 3) => {
            let text = arguments.get(2);
            let text = &text[..text.len().min(LONGEST_LINE)];
            tracing::warn!("DEBUG LOG: {}", text.escape_ascii());
            context.reply.ok();
            Ok(Next::Reply)
        }
        (b"error", 3) => Err(Failure::Owned(arguments.get(2).to_vec())),
        (b"help", 2) => {
            describe::help_lines(context.reply, "DEBUG", HELP.into_iter());
            Ok(Next::Reply)
        }
        _ => Err(Failure::quoting(
            "ERR unknown subcommand or wrong number of arguments for '",
            arguments.get(1),
            "'. Try DEBUG HELP.",
        )),
    }
}

/// Waits without holding the thread.
fn sleep(arguments: Arguments<'_>) -> Outcome {
    let seconds = std::str::from_utf8(arguments.get(2)).ok();
    let seconds = seconds.and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.filter(|seconds| (0.0..=LONGEST_SLEEP).contains(seconds));
    let seconds = seconds.ok_or(Failure::Text(
        "ERR DEBUG SLEEP takes a number of seconds from 0 to 3600",
    ))?;
    Ok(Next::Wait(Waiting {
        time: Some(Duration::from_secs_f64(seconds)),
        is_blocked: false,
        answer: Reply::ok,
    }))
}

fn protocol(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let reply = &mut *context.reply;
    match &arguments.get(2).to_ascii_lowercase()[..] {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.typed(b",3.141\r\n", b"$5\r\n3.141\r\n"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.typed(
                    if number == 1 { b"#t\r\n" } else { b"#f\r\n" },
                    if number == 1 { b":1\r\n" } else { b":0\r\n" },
                );
            }
        }
        b"attrib" => {
            reply.typed(
                b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n",
                b"",
            );
            reply.bulk(b"Some real reply following the attribute");
        }
        b"verbatim" => reply.text("This is a verbatim\nstring"),
        b"true" => reply.typed(b"#t\r\n", b":1\r\n"),
        b"false" => reply.typed(b"#f\r\n", b":0\r\n"),
        b"bignum" => reply.typed(
            b"(1234567999999999999999999999999999999\r\n",
            b"$37\r\n1234567999999999999999999999999999999\r\n",
        ),
        _ => {
            return Err(Failure::Text(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(Next::Reply)
}

fn string_match(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let length = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let length = usize::try_from(length.clamp(0, LONGEST_MATCH)).unwrap_or(0);
    let text = vec![b'a'; length];
    // A pattern that would take too long is no match.
    let matches = glob::matches(arguments.get(3), &text).unwrap_or(false);
    context.reply.integer(matches.into());
    Ok(Next::Reply)
}
