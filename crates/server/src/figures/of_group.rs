//! Figures of replication.

use super::definition::Kind::{Counter, Gauge, Text};
use super::definition::{Definition, Reading, Section, Unit, Value, one};
use crate::group::host_and_port;
use std::sync::atomic::Ordering::Relaxed;
use tremula_group::{Report, SnapshotReport};

const PLAIN_TEXT: (super::Kind, Unit) = (Text, Unit::None);
const NUMBER: (super::Kind, Unit) = (Gauge, Unit::None);

fn report(now: &Reading<'_>) -> Option<Report> {
    Some(now.server.group.as_ref()?.report())
}

fn snapshots(now: &Reading<'_>) -> Option<SnapshotReport> {
    Some(now.server.group.as_ref()?.snapshots.lock().clone())
}

/// What is known of the leader, on another node.
fn leader(now: &Reading<'_>) -> Option<Option<String>> {
    let group = now.server.group.as_ref()?;
    (!group.leads()).then(|| group.host.leader())
}

pub(super) const FIGURES: &[Definition] = &[
    one(
        Section::Replication,
        "role",
        "role",
        PLAIN_TEXT,
        "`master`, or `slave` on a node of a group that does not lead",
        |now| {
            let leads = now.server.group.as_ref().is_none_or(|group| group.leads());
            Some(if leads { "master" } else { "slave" }.into())
        },
    ),
    one(
        Section::Replication,
        "connected_slaves",
        "connected_replicas",
        NUMBER,
        "0: nodes of a group read its log, not each other",
        |_| Some(0_u32.into()),
    ),
    one(
        Section::Replication,
        "master_repl_offset",
        "replication_offset",
        NUMBER,
        "The last effect that the group has confirmed; 0 without a group",
        |now| {
            Some(
                report(now)
                    .map_or(0, |report| report.confirmed.get())
                    .into(),
            )
        },
    ),
    one(
        Section::Replication,
        "master_host",
        "leader_host",
        PLAIN_TEXT,
        "Where the group's leader takes clients: the host",
        |now| Some(Value::from(host_and_port(&leader(now)??).0.to_owned())),
    ),
    one(
        Section::Replication,
        "master_port",
        "leader_port",
        PLAIN_TEXT,
        "Where the group's leader takes clients: the port",
        |now| Some(Value::from(host_and_port(&leader(now)??).1.to_owned())),
    ),
    one(
        Section::Replication,
        "master_link_status",
        "leader_link",
        PLAIN_TEXT,
        "`up` if a leader was heard of within its lease, else `down`",
        |now| Some(if leader(now)?.is_some() { "up" } else { "down" }.into()),
    ),
    one(
        Section::Replication,
        "slave_repl_offset",
        "follower_offset",
        NUMBER,
        "The last effect that this follower shows",
        |now| {
            leader(now)?;
            Some(report(now)?.last.get().into())
        },
    ),
    one(
        Section::Replication,
        "group_name",
        "group_name",
        PLAIN_TEXT,
        "The name of the group",
        |now| Some(now.server.group.as_ref()?.name.clone().into()),
    ),
    one(
        Section::Replication,
        "group_node",
        "group_node",
        PLAIN_TEXT,
        "The name of this node in its group",
        |now| Some(now.server.group.as_ref()?.node.clone().into()),
    ),
    one(
        Section::Replication,
        "group_standing",
        "group_standing",
        PLAIN_TEXT,
        "What this node may do: `catching_up`, `follower`, `leader`, `stepped_down`, `refusing`, `behind`",
        |now| Some(report(now)?.standing.name().into()),
    ),
    one(
        Section::Replication,
        "group_refusal",
        "group_refusal",
        PLAIN_TEXT,
        "Why this node serves nothing",
        |now| Some(report(now)?.refusal?.into()),
    ),
    one(
        Section::Replication,
        "group_epoch",
        "group_epoch",
        NUMBER,
        "The number of the leader's term",
        |now| Some(report(now)?.epoch.get().into()),
    ),
    one(
        Section::Replication,
        "group_message",
        "group_message",
        NUMBER,
        "The last message of the group's log that this node has read",
        |now| Some(report(now)?.position.get().into()),
    ),
    one(
        Section::Replication,
        "group_last_effect",
        "group_last_effect",
        NUMBER,
        "The last effect of this node's state; on the leader it may not be confirmed",
        |now| Some(report(now)?.last.get().into()),
    ),
    one(
        Section::Replication,
        "group_forwarded_writes",
        "group_forwarded_writes",
        (Counter, Unit::None),
        "Writes that this node has sent on to the leader, with `--forward-writes`",
        |now| {
            now.server.group.as_ref()?;
            Some(now.server.stats.forwarded.load(Relaxed).into())
        },
    ),
    one(
        Section::Replication,
        "group_nodes",
        "group_nodes",
        NUMBER,
        "Nodes of the group that say that they are there, with this one",
        |now| {
            let nodes = now.server.group.as_ref()?.nodes();
            Some(nodes.iter().filter(|node| !node.is_away()).count().into())
        },
    ),
    one(
        Section::Replication,
        "group_lag_microseconds",
        "group_lag",
        (Gauge, Unit::Microseconds),
        "Since when this follower has heard nothing of the leader: its reads are not older",
        |now| Some((report(now)?.staleness?.as_micros() as u64).into()),
    ),
    one(
        Section::Replication,
        "group_lease_microseconds",
        "group_lease",
        (Gauge, Unit::Microseconds),
        "For how long this leader still serves reads, if the log confirms nothing more",
        |now| Some((report(now)?.lease?.as_micros() as u64).into()),
    ),
    one(
        Section::Replication,
        "group_log_first",
        "group_log_first",
        NUMBER,
        "The first message of the group's log, as of a second ago",
        |now| Some(snapshots(now)?.first.get().into()),
    ),
    one(
        Section::Replication,
        "group_snapshot_message",
        "group_snapshot_message",
        NUMBER,
        "The last message of the group's log that its newest snapshot has",
        |now| Some(snapshots(now)?.newest?.0.get().into()),
    ),
    one(
        Section::Replication,
        "group_snapshot_effect",
        "group_snapshot_effect",
        NUMBER,
        "The last effect that the group's newest snapshot has",
        |now| Some(snapshots(now)?.newest?.1.get().into()),
    ),
    one(
        Section::Replication,
        "group_snapshot_bytes",
        "group_snapshot_bytes",
        (Gauge, Unit::Bytes),
        "The bytes of the group's newest snapshot",
        |now| Some(snapshots(now)?.newest?.2.into()),
    ),
    one(
        Section::Replication,
        "group_snapshots_made",
        "group_snapshots_made",
        (Counter, Unit::None),
        "Snapshots of the group that this node has made",
        |now| Some(snapshots(now)?.made.into()),
    ),
    one(
        Section::Replication,
        "group_snapshots_failed",
        "group_snapshots_failed",
        (Counter, Unit::None),
        "Snapshots of the group that this node has begun and not finished",
        |now| Some(snapshots(now)?.failed.into()),
    ),
    one(
        Section::Replication,
        "group_snapshot_error",
        "group_snapshot_error",
        PLAIN_TEXT,
        "What went wrong last with snapshots of the group, if none was made since",
        |now| Some(snapshots(now)?.error?.into()),
    ),
];
