//! Figures of commands.

use super::definition::Kind::{Counter, Gauge, Histogram};
use super::definition::{Definition, Family, Reading, Section, Unit, Value, member, one};
use std::sync::atomic::Ordering::Relaxed;

const COUNT: (super::Kind, Unit) = (Counter, Unit::None);
const BYTES: (super::Kind, Unit) = (Counter, Unit::Bytes);

fn snapshots(now: &Reading<'_>, at: usize) -> Option<Value> {
    let (_, value) = now.server.store.snapshots().figures()[at];
    Some(value.into())
}

pub(super) const FIGURES: &[Definition] = &[
    one(
        Section::Stats,
        "total_connections_received",
        "connections",
        COUNT,
        "Connections that were accepted, also those that were refused then",
        |now| Some(now.server.stats.connections.load(Relaxed).into()),
    ),
    one(
        Section::Stats,
        "total_commands_processed",
        "commands",
        COUNT,
        "Requests that were answered",
        |now| {
            Some(
                now.server
                    .figures
                    .stripes
                    .sum(|stripe| &stripe.requests)
                    .into(),
            )
        },
    ),
    one(
        Section::Stats,
        "total_net_input_bytes",
        "read_bytes",
        BYTES,
        "What clients have sent",
        |now| Some(now.server.figures.stripes.sum(|stripe| &stripe.read).into()),
    ),
    one(
        Section::Stats,
        "total_net_output_bytes",
        "sent_bytes",
        BYTES,
        "What clients were sent",
        |now| Some(now.server.figures.stripes.sum(|stripe| &stripe.sent).into()),
    ),
    one(
        Section::Stats,
        "rejected_connections",
        "rejected_connections",
        COUNT,
        "Connections that were refused",
        |now| Some(now.server.stats.rejected.load(Relaxed).into()),
    ),
    one(
        Section::Stats,
        "turns_spent",
        "turns_spent",
        COUNT,
        "Turns that ended because their time was over",
        |now| Some(now.server.stats.turns_spent.load(Relaxed).into()),
    ),
    one(
        Section::Stats,
        "gathered_bytes",
        "gathered_bytes",
        (Gauge, Unit::Bytes),
        "What lists hold that are not sent yet",
        |now| Some(now.server.gathering.bytes().into()),
    ),
    one(
        Section::Stats,
        "past_ranges",
        "past_ranges",
        COUNT,
        "Ranges that were read as they had been, with AS OF",
        |now| Some(now.server.stats.past_ranges.load(Relaxed).into()),
    ),
    one(
        Section::Stats,
        "once_ids",
        "once_ids",
        (Gauge, Unit::None),
        "Ids of `ONCE` whose answers are remembered",
        |now| Some(now.server.store.kept_answers().0.into()),
    ),
    one(
        Section::Stats,
        "once_bytes",
        "once_bytes",
        (Gauge, Unit::Bytes),
        "What the ids and answers of `ONCE` hold",
        |now| Some(now.server.store.kept_answers().1.into()),
    ),
    one(
        Section::Stats,
        "once_repeated",
        "once_repeated",
        COUNT,
        "Commands of `ONCE` that came again, and got the first answer",
        |now| Some(now.server.stats.repeated.load(Relaxed).into()),
    ),
    one(
        Section::Stats,
        "expired_keys",
        "expired_keys",
        COUNT,
        "Keys that were removed because their time had come",
        |now| Some(now.server.store.expired().into()),
    ),
    one(
        Section::Stats,
        "expired_table_keys",
        "expired_table_keys",
        COUNT,
        "Keys of tables whose rows were removed because their time had come",
        |now| Some(now.server.store.expired_table_keys().into()),
    ),
    one(
        Section::Stats,
        "evicted_keys",
        "evicted_keys",
        COUNT,
        "Keys that went because memory was short",
        |now| Some(now.server.store.eviction().evicted().into()),
    ),
    one(
        Section::Stats,
        "evicted_clients",
        "evicted_clients",
        COUNT,
        "Clients that were closed because buffers held too much",
        |now| Some(now.server.clients.evicted.load(Relaxed).into()),
    ),
    one(
        Section::Stats,
        "total_error_replies",
        "error_replies",
        COUNT,
        "Replies that were errors",
        |now| {
            Some(
                now.server
                    .figures
                    .stripes
                    .sum(|stripe| &stripe.errors)
                    .into(),
            )
        },
    ),
    one(
        Section::Stats,
        "keyspace_hits",
        "key_hits",
        COUNT,
        "Lookups that found their key",
        |now| Some(now.server.figures.stripes.sum(|stripe| &stripe.hits).into()),
    ),
    one(
        Section::Stats,
        "keyspace_misses",
        "key_misses",
        COUNT,
        "Lookups that did not find it",
        |now| {
            Some(
                now.server
                    .figures
                    .stripes
                    .sum(|stripe| &stripe.misses)
                    .into(),
            )
        },
    ),
    one(
        Section::Stats,
        "snapshots_taken",
        "snapshots",
        COUNT,
        "Snapshots that were taken",
        |now| snapshots(now, 0),
    ),
    one(
        Section::Stats,
        "snapshots_refused",
        "refused_snapshots",
        COUNT,
        "Snapshots that would have been too long",
        |now| snapshots(now, 1),
    ),
    one(
        Section::Stats,
        "snapshot_keys_copied",
        "snapshot_copied_keys",
        COUNT,
        "Keys that snapshots have copied",
        |now| snapshots(now, 2),
    ),
    one(
        Section::Stats,
        "snapshot_keys_held",
        "snapshot_held_keys",
        (Gauge, Unit::None),
        "Copies of these that are there now",
        |now| snapshots(now, 3),
    ),
    Definition::Each(Family {
        section: Section::Commands,
        label: "command",
        field: "cmdstat_",
        members: &[
            member("calls", "command_calls", COUNT, "How often the command ran"),
            member(
                "usec",
                "command_microseconds",
                (Counter, Unit::Microseconds),
                "The time that this took",
            ),
            member(
                "usec_per_call",
                "command_average_microseconds",
                (Gauge, Unit::Microseconds),
                "The average of it",
            ),
            member(
                "rejected_calls",
                "command_rejected_calls",
                COUNT,
                "How often it was refused before it ran",
            ),
            member(
                "failed_calls",
                "command_failed_calls",
                COUNT,
                "How often it ran and failed",
            ),
        ],
        rows: |now, write| {
            for (command, sum) in now.server.figures.stripes.commands() {
                let micros = sum.nanoseconds as f64 / 1000.0;
                let values = [
                    sum.calls.into(),
                    (sum.nanoseconds / 1000).into(),
                    Value::Decimal(micros / sum.calls.max(1) as f64, 2),
                    sum.rejected.into(),
                    sum.failed.into(),
                ];
                write(command.full_name, &values);
            }
        },
    }),
    Definition::Each(Family {
        section: Section::Errors,
        label: "code",
        field: "errorstat_",
        members: &[member("count", "errors", COUNT, "Errors with this code")],
        rows: |now, write| {
            for (code, count) in now.server.figures.stripes.errors() {
                write(&code, &[count.into()]);
            }
        },
    }),
    Definition::Each(Family {
        section: Section::Latencies,
        label: "command",
        field: "latency_percentiles_usec_",
        members: &[member(
            "",
            "command_times",
            (Histogram, Unit::Microseconds),
            "How long the command takes, by percentiles",
        )],
        rows: |now, write| {
            let percentiles = now.server.live.percentiles();
            for (command, sum) in now.server.figures.stripes.commands() {
                if sum.times.count() > 0 {
                    write(
                        command.full_name,
                        &[Value::Percentiles(sum.times, percentiles.clone())],
                    );
                }
            }
        },
    }),
];
