//! Figures of channels and of those who listen.

use super::definition::Kind::{Counter, Gauge};
use super::definition::{Definition, Section, Unit, one};
use crate::channels::Kind;

const COUNT: (super::Kind, Unit) = (Counter, Unit::None);
const NUMBER: (super::Kind, Unit) = (Gauge, Unit::None);
const BYTES: (super::Kind, Unit) = (Gauge, Unit::Bytes);

pub(super) const FIGURES: &[Definition] = &[
    one(
        Section::Clients,
        "pubsub_clients",
        "pubsub_clients",
        NUMBER,
        "Clients that listen to channels",
        |now| Some(now.server.channels.clients().into()),
    ),
    one(
        Section::Stats,
        "pubsub_channels",
        "pubsub_channels",
        NUMBER,
        "Channels that somebody listens to",
        |now| Some(now.server.channels.count(Kind::Channel).into()),
    ),
    one(
        Section::Stats,
        "pubsub_patterns",
        "pubsub_patterns",
        NUMBER,
        "Different patterns of channels that somebody listens to",
        |now| Some(now.server.channels.count(Kind::Pattern).into()),
    ),
    one(
        Section::Stats,
        "pubsubshard_channels",
        "pubsub_shard_channels",
        NUMBER,
        "Channels of `SSUBSCRIBE` that somebody listens to",
        |now| Some(now.server.channels.count(Kind::Shard).into()),
    ),
    one(
        Section::Stats,
        "pubsub_slow_clients_closed",
        "pubsub_slow_clients_closed",
        COUNT,
        "Clients that were closed because messages waited for them",
        |now| Some(now.server.channels.slow().into()),
    ),
    one(
        Section::Quotas,
        "subscriptions",
        "subscriptions",
        NUMBER,
        "Channels and patterns that all clients together listen to",
        |now| Some(now.server.channels.held().0.into()),
    ),
    one(
        Section::Quotas,
        "max_subscriptions",
        "max_subscriptions",
        NUMBER,
        "The limit of these",
        |now| Some(now.server.limits.channels.max_subscriptions.into()),
    ),
    one(
        Section::Quotas,
        "max_client_subscriptions",
        "max_client_subscriptions",
        NUMBER,
        "Those that one client may have",
        |now| Some(now.server.limits.channels.max_client_subscriptions.into()),
    ),
    one(
        Section::Quotas,
        "subscription_bytes",
        "subscription_bytes",
        BYTES,
        "What their names take, each counted with 200 bytes more",
        |now| Some(now.server.channels.held().1.into()),
    ),
    one(
        Section::Quotas,
        "max_subscription_bytes",
        "max_subscription_bytes",
        BYTES,
        "The limit of these",
        |now| Some(now.server.limits.channels.max_subscription_bytes.0.into()),
    ),
    one(
        Section::Quotas,
        "pattern_bytes",
        "pattern_bytes",
        BYTES,
        "What different patterns take, each counted with 64 bytes more",
        |now| Some(now.server.channels.pattern_bytes().into()),
    ),
    one(
        Section::Quotas,
        "max_pattern_bytes",
        "max_pattern_bytes",
        BYTES,
        "The limit of these",
        |now| Some(now.server.limits.channels.max_pattern_bytes.0.into()),
    ),
];
