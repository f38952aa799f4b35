//! `LATENCY …`: how long commands and events take.

use super::reach::NOTHING_OF_USERS;
use super::rows::{ADMIN, ANY_TIME, NOTHING};
use super::table::{self, Command};
use super::{Context, Failure, Next, Outcome, describe};
use crate::figures::CommandSum;
use crate::resp::Arguments;
use crate::watch::{self, Event, Sample};
use std::fmt::Write;

/// Columns and rows of `LATENCY GRAPH`.
const COLUMNS: usize = 80;
const ROWS: u64 = 4;

/// The subcommands of `LATENCY`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new("doctor", 2, doctor, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("latency|doctor")
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ])
        .docs(
            "server",
            "2.8.13",
            NOTHING,
            "LATENCY DOCTOR",
            "What took long, and what to do about it",
        ),
    Command::new("graph", 3, graph, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("latency|graph")
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ])
        .docs(
            "server",
            "2.8.13",
            NOTHING,
            "LATENCY GRAPH event",
            "The times of an event as a drawing",
        ),
    Command::new("histogram", -2, histogram, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("latency|histogram")
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ])
        .docs(
            "server",
            "7.0.0",
            "O(n) for n commands",
            "LATENCY HISTOGRAM [command ...]",
            "How often commands took how long",
        ),
    Command::new("history", 3, history, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("latency|history")
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ])
        .docs(
            "server",
            "2.8.13",
            NOTHING,
            "LATENCY HISTORY event",
            "When an event took long, and how long",
        ),
    Command::new("latest", 2, latest, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("latency|latest")
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ])
        .docs(
            "server",
            "2.8.13",
            NOTHING,
            "LATENCY LATEST",
            "The last and the longest time of each event",
        ),
    Command::new("reset", -2, reset, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("latency|reset")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .docs(
            "server",
            "2.8.13",
            NOTHING,
            "LATENCY RESET [event ...]",
            "Forget events, and count them",
        ),
    Command::new("help", 2, describe::help, ANY_TIME, &[], NOTHING_OF_USERS)
        .full_name("latency|help")
        .docs(
            "server",
            "2.8.13",
            NOTHING,
            "LATENCY HELP",
            "What the subcommands do",
        ),
];

/// The event with this name.
fn event(name: &[u8]) -> Option<Event> {
    Event::ALL
        .into_iter()
        .find(|event| name.eq_ignore_ascii_case(event.name().as_bytes()))
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn latest(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let latencies = &context.server.latencies;
    let known = Event::ALL.into_iter().filter_map(|event| {
        let history = latencies.history(event)?;
        let last = *history.samples.back()?;
        Some((event, last, history.longest))
    });
    let known: Vec<_> = known.collect();
    let reply = &mut *context.reply;
    reply.array(known.len());
    for (event, last, longest) in known {
        reply.array(4);
        reply.bulk(event.name().as_bytes());
        reply.integer(integer(last.time));
        reply.integer(integer(last.milliseconds));
        reply.integer(integer(longest));
    }
    Ok(Next::Reply)
}

fn history(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let history = event(arguments.get(2)).and_then(|event| context.server.latencies.history(event));
    let samples = history.unwrap_or_default().samples;
    let reply = &mut *context.reply;
    reply.array(samples.len());
    for sample in samples {
        reply.array(2);
        reply.integer(integer(sample.time));
        reply.integer(integer(sample.milliseconds));
    }
    Ok(Next::Reply)
}

fn reset(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let latencies = &context.server.latencies;
    let named = arguments.skip(2).filter_map(event);
    let events: Vec<_> = match arguments.len() {
        2 => Event::ALL.to_vec(),
        _ => named.collect(),
    };
    let forgotten = events.into_iter().filter(|event| latencies.reset(*event));
    context.reply.count(forgotten.count());
    Ok(Next::Reply)
}

fn doctor(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let server = context.server;
    let mut text = String::new();
    if server.live.long_event().is_none() {
        text += "No events are kept. CONFIG SET latency-monitor-threshold 100 keeps those of 100 \
                 milliseconds and more.\n";
    }
    let mut is_quiet = true;
    for event in Event::ALL {
        let Some(history) = server.latencies.history(event) else {
            continue;
        };
        is_quiet = false;
        let sum: u64 = history
            .samples
            .iter()
            .map(|sample| sample.milliseconds)
            .sum();
        let count = history.samples.len();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}: {count} seconds in which it took long, {} ms on average, {} ms at most. {}.",
            event.name(),
            sum / (count as u64).max(1),
            history.longest,
            sentence(event.advice()),
        );
    }
    if is_quiet {
        text += "Nothing has taken long since the last LATENCY RESET.\n";
    }
    context.reply.text(&text);
    Ok(Next::Reply)
}

/// A text that begins with a capital.
fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_ascii_uppercase() + rest
}

fn graph(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(2);
    let known =
        event(name).and_then(|event| Some((event, context.server.latencies.history(event)?)));
    let Some((event, history)) = known else {
        return Err(Failure::quoting(
            "ERR No samples available for event '",
            name,
            "'",
        ));
    };
    let samples: Vec<_> = history.samples.into_iter().collect();
    let drawing = draw(
        event,
        &samples[samples.len().saturating_sub(COLUMNS)..],
        history.longest,
    );
    context.reply.text(&drawing);
    Ok(Next::Reply)
}

/// A column for each sample, as high as it took long, and under it how long ago it was.
fn draw(event: Event, samples: &[Sample], longest: u64) -> String {
    let most = samples
        .iter()
        .map(|sample| sample.milliseconds)
        .max()
        .unwrap_or(0);
    let least = samples
        .iter()
        .map(|sample| sample.milliseconds)
        .min()
        .unwrap_or(0);
    let mut text = format!(
        "{} - high {most} ms, low {least} ms (all time high {longest} ms)\n{}\n",
        event.name(),
        "-".repeat(COLUMNS),
    );
    let height = |sample: &Sample| (sample.milliseconds * ROWS).div_ceil(most.max(1)).max(1);
    for row in (1..=ROWS).rev() {
        text.extend(
            samples
                .iter()
                .map(|sample| if height(sample) >= row { '#' } else { ' ' }),
        );
        text.push('\n');
    }
    let now = watch::now().as_secs();
    let ages: Vec<String> = samples
        .iter()
        .map(|sample| age(now.saturating_sub(sample.time)))
        .collect();
    let longest = ages.iter().map(String::len).max().unwrap_or(0);
    for at in 0..longest {
        let letters = ages.iter().map(|age| age.chars().nth(at).unwrap_or(' '));
        text.extend(letters);
        text.push('\n');
    }
    text
}

/// A time in a few letters.
fn age(seconds: u64) -> String {
    const UNITS: [(u64, char); 3] = [(24 * 60 * 60, 'd'), (60 * 60, 'h'), (60, 'm')];
    let unit = UNITS.into_iter().find(|(unit, _)| seconds >= *unit);
    let (unit, letter) = unit.unwrap_or((1, 's'));
    format!("{}{letter}", seconds / unit)
}

fn histogram(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let stripes = &context.server.figures.stripes;
    let mut shown: Vec<(&'static Command, CommandSum)> = Vec::new();
    if arguments.len() == 2 {
        shown.extend(stripes.commands());
    }
    for name in arguments.skip(2) {
        let Some(command) = table::lookup_full(name) else {
            continue;
        };
        let rows = match command.subcommands {
            [] => std::slice::from_ref(command),
            subcommands => subcommands,
        };
        for row in rows {
            if shown.iter().all(|(other, _)| !std::ptr::eq(*other, row)) {
                shown.push((row, stripes.command(row)));
            }
        }
    }
    shown.retain(|(_, sum)| sum.times.count() > 0);
    let reply = &mut *context.reply;
    reply.map(shown.len());
    for (command, sum) in shown {
        reply.bulk(command.full_name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(integer(sum.times.count()));
        reply.bulk(b"histogram_usec");
        let bounds = sum.times.cumulative();
        reply.map(bounds.len());
        for (micros, count) in bounds {
            reply.integer(integer(micros));
            reply.integer(integer(count));
        }
    }
    Ok(Next::Reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_has_a_column_for_each_sample() {
        let now = watch::now().as_secs();
        let sample = |ago, milliseconds| Sample {
            time: now.saturating_sub(ago),
            milliseconds,
        };
        let drawing = draw(
            Event::Command,
            &[sample(7200, 1), sample(150, 50), sample(86_400, 100)],
            300,
        );
        let lines: Vec<_> = drawing.lines().collect();
        assert_eq!(
            lines[0],
            "command - high 100 ms, low 1 ms (all time high 300 ms)"
        );
        assert_eq!(lines[2..], ["  #", "  #", " ##", "###", "221", "hmd"]);
    }
}
