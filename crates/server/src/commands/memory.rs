//! `MEMORY …`: what holds memory.

use super::reach::{NOTHING_OF_USERS, key_at, looked_at};
use super::rows::{ANY_TIME, NOTHING};
use super::table::Command;
use super::{Context, Failure, Next, Outcome, describe};
use crate::figures::MemoryNow;
use crate::resp::{Arguments, number};
use tremula_store::{INLINE_BYTES, INLINE_VALUE_BYTES, Key, Part};
use tremula_sync::counting_allocator::{self, give_back};

/// What an entry takes besides long bytes: two slots of 24 bytes in a leaf that is about three
/// quarters full.
const ENTRY: usize = 64;

/// What a long key or value takes besides its bytes: the counts of those who share it, and what an
/// allocator rounds up.
const LONG: usize = 24;

/// Bytes of a value that are looked at, to tell what it is.
const LOOKED_AT: usize = 64;

/// The subcommands of `MEMORY`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new("doctor", 2, doctor, &[], &[], NOTHING_OF_USERS)
        .full_name("memory|doctor")
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ])
        .docs(
            "server",
            "4.0.0",
            "O(n) for n clients",
            "MEMORY DOCTOR",
            "What is wrong with the memory, and what to do about it",
        ),
    Command::new("malloc-stats", 2, malloc_stats, &[], &[], NOTHING_OF_USERS)
        .full_name("memory|malloc-stats")
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ])
        .docs(
            "server",
            "4.0.0",
            NOTHING,
            "MEMORY MALLOC-STATS",
            "What is known of the allocator",
        ),
    Command::new("purge", 2, purge, &[], &[], NOTHING_OF_USERS)
        .full_name("memory|purge")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .docs(
            "server",
            "4.0.0",
            "O(n) for n freed pages",
            "MEMORY PURGE",
            "Give freed memory back to the system",
        ),
    Command::new("stats", 2, stats, &[], &[], NOTHING_OF_USERS)
        .full_name("memory|stats")
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ])
        .docs(
            "server",
            "4.0.0",
            "O(n) for n clients",
            "MEMORY STATS",
            "What holds how much memory",
        ),
    Command::new("usage", -3, usage, &["readonly"], &[], looked_at(key_at(2)))
        .full_name("memory|usage")
        .docs(
            "server",
            "4.0.0",
            "O(log n)",
            "MEMORY USAGE key [SAMPLES count]",
            "The bytes that a key and its value take",
        ),
    Command::new("help", 2, describe::help, ANY_TIME, &[], NOTHING_OF_USERS)
        .full_name("memory|help")
        .docs(
            "server",
            "4.0.0",
            NOTHING,
            "MEMORY HELP",
            "What the subcommands do",
        ),
];

fn usage(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    match arguments.len() {
        3 => (),
        // Values have no parts, so there is nothing to sample.
        5 if arguments.get(3).eq_ignore_ascii_case(b"samples") => {
            let samples = number::parse(arguments.get(4)).ok_or(Failure::NOT_AN_INTEGER)?;
            if samples < 0 {
                return Err(Failure::SYNTAX);
            }
        }
        _ => return Err(Failure::SYNTAX),
    }
    let key = arguments.get(2);
    match context.length_of(key) {
        Some(length) => context.reply.count(entry_bytes(key.len(), length)),
        None => context.reply.null(),
    }
    Ok(Next::Reply)
}

/// The bytes that an entry takes, with a key and a value of these lengths.
fn entry_bytes(key: usize, value: usize) -> usize {
    let one = |length: usize, in_place: usize| {
        if length <= in_place { 0 } else { length + LONG }
    };
    ENTRY + one(key, INLINE_BYTES) + one(value, INLINE_VALUE_BYTES)
}

fn stats(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let now = MemoryNow::new(context.server);
    let keys: usize = context
        .server
        .store
        .databases()
        .map(|database| database.len())
        .sum();
    let overhead = now.used.saturating_sub(now.dataset());
    let per_key = now.dataset().checked_div(keys as u64).unwrap_or(0);
    let share = now.dataset() as f64 * 100.0 / now.used.max(1) as f64;
    let whole = [
        ("peak.allocated", now.peak),
        ("total.allocated", now.used),
        ("resident", now.resident),
        ("clients.normal", now.buffers),
        ("clients.monitors", now.monitors),
        ("mailboxes", now.mailboxes),
        ("cursors", now.cursors),
        ("slowlog", now.slowlog),
        ("regions", now.regions),
        ("maxmemory", now.limit),
        ("overhead.total", overhead),
        ("keys.count", keys as u64),
        ("keys.bytes-per-key", per_key),
        ("dataset.bytes", now.dataset()),
    ];
    let reply = &mut *context.reply;
    reply.map(whole.len() + 3);
    for (name, value) in whole {
        reply.bulk(name.as_bytes());
        reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }
    for (name, value) in [
        ("dataset.percentage", share),
        (
            "peak.percentage",
            now.used as f64 * 100.0 / now.peak.max(1) as f64,
        ),
        ("fragmentation", now.fragmentation()),
    ] {
        reply.bulk(name.as_bytes());
        reply.double(value);
    }
    Ok(Next::Reply)
}

/// Bytes below which a ratio says nothing.
const SMALL: u64 = 64 << 20;

fn doctor(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let now = MemoryNow::new(context.server);
    let mut text = String::new();
    if now.limit == 0 {
        text += "There is no limit of memory, so clients can fill the machine: CONFIG SET \
                 maxmemory sets one.\n";
    } else if now.used > now.limit / 10 * 9 {
        text += "More than nine tenths of maxmemory are used: commands that need memory will be \
                 refused soon, or keys evicted (maxmemory-policy).\n";
    }
    if now.used >= SMALL && now.fragmentation() > 1.5 {
        text += "The process holds much more memory than is used: MEMORY PURGE gives freed pages \
                 back to the system now; the server does so by itself in quiet times.\n";
    }
    if now.used >= SMALL && now.peak > now.used / 2 * 3 {
        text += "Much more memory was used at some time than is now: that is where the resident \
                 memory may come from.\n";
    }
    if now.buffers > now.used / 2 && now.buffers >= SMALL {
        text += "The buffers of clients hold more than half of the memory: CLIENT LIST shows \
                 whose (tot-mem), and maxmemory-clients limits them.\n";
    }
    if text.is_empty() {
        text += "Nothing is wrong with the memory.\n";
    }
    context.reply.text(&text);
    Ok(Next::Reply)
}

fn malloc_stats(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let now = MemoryNow::new(context.server);
    let allocator = counting_allocator::name().unwrap_or("unknown");
    let text = format!(
        "Allocator: {allocator}. It is not asked for statistics. Counted around it:\n\
         allocated: {}\npeak: {}\nresident: {}\noutside of it: {}\n",
        now.used, now.peak, now.resident, now.regions
    );
    context.reply.text(&text);
    Ok(Next::Reply)
}

/// Gives back what this worker's thread apart holds now, and lets every other thread do so at its
/// next look, within about a second.
fn purge(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    if !context.is_apart {
        return Ok(Next::Apart);
    }
    context.server.memory.purge();
    context.server.store.tidy(give_back);
    give_back();
    context.reply.ok();
    Ok(Next::Reply)
}

impl Context<'_> {
    /// The length of a value, without noting that the key is used.
    pub(super) fn length_of(&self, key: &[u8]) -> Option<usize> {
        self.look_at(key, |length, _| length)
    }

    /// Looks at the length of a value and at its first bytes, if the key is there, without noting
    /// that it is used.
    pub(super) fn look_at<R>(&self, key: &[u8], look: impl Fn(usize, &[u8]) -> R) -> Option<R> {
        let mut found = None;
        let mut show = |length, part: Part<'_>| found = Some(look(length, part.bytes()));
        let first = |length: usize| 0..length.min(LOOKED_AT);
        self.values().read(&Key::from(key), first, &mut show);
        found
    }
}
