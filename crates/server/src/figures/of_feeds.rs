//! Figures of watched ranges.

use super::definition::Kind::{Counter, Gauge};
use super::definition::{Definition, Section, Unit, one};

const COUNT: (super::Kind, Unit) = (Counter, Unit::None);
const NUMBER: (super::Kind, Unit) = (Gauge, Unit::None);
const BYTES: (super::Kind, Unit) = (Gauge, Unit::Bytes);

pub(super) const FIGURES: &[Definition] = &[
    one(
        Section::Clients,
        "watchrange_clients",
        "watchrange_clients",
        NUMBER,
        "Clients that watch ranges",
        |now| Some(now.server.feeds.clients().into()),
    ),
    one(
        Section::Stats,
        "watchrange_events",
        "watchrange_events",
        COUNT,
        "Events of watched ranges, each counted for every watcher",
        |now| Some(now.server.feeds.events().into()),
    ),
    one(
        Section::Stats,
        "watchrange_behind",
        "watchrange_behind",
        NUMBER,
        "Watches that read the log, because they are behind",
        |now| Some(now.server.feeds.behind().into()),
    ),
    one(
        Section::Stats,
        "watchrange_fallen_behind",
        "watchrange_fallen_behind",
        COUNT,
        "How often a watch has fallen behind, because more waited than `--watch-buffer`",
        |now| Some(now.server.feeds.fallen().into()),
    ),
    one(
        Section::Stats,
        "watchrange_lost",
        "watchrange_lost",
        COUNT,
        "Watches that have ended because the log did not have what came next",
        |now| Some(now.server.feeds.lost().into()),
    ),
    one(
        Section::Quotas,
        "watches",
        "watches",
        NUMBER,
        "Ranges that all clients together watch",
        |now| Some(now.server.feeds.held().0.into()),
    ),
    one(
        Section::Quotas,
        "max_watches",
        "max_watches",
        NUMBER,
        "The limit of these",
        |now| Some(now.server.limits.feeds.max_watches.into()),
    ),
    one(
        Section::Quotas,
        "max_client_watches",
        "max_client_watches",
        NUMBER,
        "Those that one client may have",
        |now| Some(now.server.limits.feeds.max_client_watches.into()),
    ),
    one(
        Section::Quotas,
        "watch_bytes",
        "watch_bytes",
        BYTES,
        "What their bounds take, counted three times, and each watch with 500 bytes more",
        |now| Some(now.server.feeds.held().1.into()),
    ),
    one(
        Section::Quotas,
        "max_watch_bytes",
        "max_watch_bytes",
        BYTES,
        "The limit of these",
        |now| Some(now.server.limits.feeds.max_watch_bytes.0.into()),
    ),
];
