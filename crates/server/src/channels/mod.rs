//! Channels: who listens, and how a message reaches them.
//!
//! ```text
//!  PUBLISH ──> the channel's part of the table ──> the channel ──> an outbox for each subscriber
//!                    │ one lock of 64                 its lock          │
//!                    └──> the part's list of patterns ──> …             └──> its own connection
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `topic` | channels, each with its subscribers, and the table of them |
//! | `patterns` | the patterns that every message is compared with |
//! | `subscriber` | what one client listens to |
//! | `message` | a message as it is sent |
//!
//! What holds:
//!
//! 1. A message is written once, and its bytes are shared by all who get it, of both protocols.
//! 2. All subscribers of a channel get its messages in the same order. A thread that publishes
//!    holds the lock of the channel, and, if there are patterns, that of the channel's part.
//! 3. A subscription that has been confirmed gets every later message, and one that has been ended
//!    gets none: the outbox is emptied before the end is confirmed.
//! 4. A client that sends a command after it could know of a message gets the message before the
//!    reply: what waits is sent before a command is read.
//! 5. Threads that publish to different channels share no lock, but for the short one of a part
//!    that both channels happen to be in.
//! 6. A subscriber that does not read is closed; no other one waits for it.

mod message;
mod patterns;
mod subscriber;
mod topic;

use crate::clients::{Client, Ending};
use crate::glob;
use crate::limits::ChannelLimits;
use crate::lock::lock;
use crate::outbox::{Bounds, Outbox};
use crate::server::Shared;
use message::message;
use patterns::Patterns;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use subscriber::Subscriber;
use topic::{Name, Topics};

/// What can be listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Channel,
    /// All channels that match.
    Pattern,
    /// A channel of `SSUBSCRIBE`, which patterns do not match.
    Shard,
}

impl Kind {
    const COUNT: usize = 3;
    const ALL: [Self; Self::COUNT] = [Self::Channel, Self::Pattern, Self::Shard];
}

/// Bytes that a subscription counts with besides its name: a place in the table and in the client's
/// own list, and what the allocator adds.
const EACH: usize = 200;

/// Why a subscription is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The client has as many as it may have.
    Client(usize),
    /// There are as many as there may be.
    All(usize),
    /// Their names take as many bytes as they may.
    Bytes(usize),
    /// The patterns do.
    Patterns(usize),
}

/// All channels and patterns of a server.
pub(crate) struct Channels {
    channels: Topics,
    shards: Topics,
    patterns: Patterns,
    subscribers: Mutex<BTreeMap<u64, Arc<Subscriber>>>,
    /// Subscriptions of all clients, and their bytes.
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Subscribers that were closed because they did not keep up.
    slow: AtomicU64,
}

impl Default for Channels {
    fn default() -> Self {
        Self {
            channels: Topics::new(),
            shards: Topics::new(),
            patterns: Patterns::new(),
            subscribers: Mutex::default(),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            slow: AtomicU64::new(0),
        }
    }
}

/// What one client listens to. It ends when this is dropped.
pub(crate) struct Subscriptions {
    channels: Arc<Channels>,
    subscriber: Arc<Subscriber>,
}

impl Subscriptions {
    /// How many of a kind there are.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.subscriber.count(kind)
    }

    /// How many there are.
    pub(crate) fn total(&self) -> usize {
        Kind::ALL.into_iter().map(|kind| self.count(kind)).sum()
    }

    /// What the client listens to, of a kind.
    pub(crate) fn names(&self, kind: Kind) -> Vec<Arc<[u8]>> {
        self.subscriber.names(kind)
    }

    /// Begins to listen. Returns whether that is new.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub(crate) fn join(
        &self,
        kind: Kind,
        name: &[u8],
        limits: &ChannelLimits,
    ) -> Result<bool, Full> {
        let subscriber = &self.subscriber;
        if subscriber.listens(kind, name) {
            return Ok(false);
        }
        let most = limits.max_client_subscriptions;
        if self.total() >= most {
            return Err(Full::Client(most));
        }
        let name = Name::from(name);
        self.channels.take_place(&name, limits)?;
        let joined = match kind {
            Kind::Channel => {
                self.channels.channels.join(&name, subscriber);
                Ok(())
            }
            Kind::Shard => {
                self.channels.shards.join(&name, subscriber);
                Ok(())
            }
            Kind::Pattern => {
                let most = limits.max_pattern_bytes.0;
                let joined = self.channels.patterns.join(&name, subscriber, most);
                joined.map_err(|_| Full::Patterns(most))
            }
        };
        if joined.is_err() {
            self.channels.give_place_back(&name);
        }
        joined?;
        subscriber.insert(kind, name);
        Ok(true)
    }

    /// Ends to listen. Returns whether the client did.
    pub(crate) fn leave(&self, kind: Kind, name: &[u8]) -> bool {
        let subscriber = &self.subscriber;
        let Some(name) = subscriber.remove(kind, name) else {
            return false;
        };
        match kind {
            Kind::Channel => self.channels.channels.leave(&name, subscriber),
            Kind::Shard => self.channels.shards.leave(&name, subscriber),
            Kind::Pattern => self.channels.patterns.leave(&name, subscriber),
        }
        self.channels.give_place_back(&name);
        true
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        for kind in Kind::ALL {
            for name in self.names(kind) {
                self.leave(kind, &name);
            }
        }
        lock(&self.channels.subscribers).remove(&self.subscriber.id());
    }
}

impl Channels {
    /// Lets the client of an outbox listen.
    pub(crate) fn subscriber(self: &Arc<Self>, outbox: Arc<Outbox>) -> Subscriptions {
        let subscriber = Arc::new(Subscriber::new(outbox));
        lock(&self.subscribers).insert(subscriber.id(), Arc::clone(&subscriber));
        Subscriptions {
            channels: Arc::clone(self),
            subscriber,
        }
    }

    fn take_place(&self, name: &[u8], limits: &ChannelLimits) -> Result<(), Full> {
        let bytes = name.len() + EACH;
        let count = self.count.fetch_add(1, Relaxed) + 1;
        let held = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        let full = if count > limits.max_subscriptions {
            Full::All(limits.max_subscriptions)
        } else if held > limits.max_subscription_bytes.0 {
            Full::Bytes(limits.max_subscription_bytes.0)
        } else {
            return Ok(());
        };
        self.give_place_back(name);
        Err(full)
    }

    fn give_place_back(&self, name: &[u8]) {
        self.count.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(name.len() + EACH, Relaxed);
    }

    /// Subscriptions of all clients, and what their names take.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.count.load(Relaxed), self.bytes.load(Relaxed))
    }

    /// How many different channels or patterns are listened to.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channel => self.channels.count(),
            Kind::Pattern => self.patterns.count(),
            Kind::Shard => self.shards.count(),
        }
    }

    /// Bytes of the patterns, each counted with some more.
    pub(crate) fn pattern_bytes(&self) -> usize {
        self.patterns.bytes()
    }

    /// How many clients listen.
    pub(crate) fn clients(&self) -> usize {
        lock(&self.subscribers).len()
    }

    /// Subscribers that were closed because they did not keep up.
    pub(crate) fn slow(&self) -> u64 {
        self.slow.load(Relaxed)
    }

    fn topics(&self, kind: Kind) -> &Topics {
        match kind {
            Kind::Shard => &self.shards,
            Kind::Channel | Kind::Pattern => &self.channels,
        }
    }

    /// How many clients listen to a channel.
    pub(crate) fn listeners(&self, kind: Kind, name: &[u8]) -> usize {
        let topics = self.topics(kind);
        let topic = topics.get(topics.part_of(name), name);
        topic.map_or(0, |topic| topic.count())
    }

    /// Shows the names of the channels that somebody listens to, in no order.
    pub(crate) fn each(&self, kind: Kind, show: &mut dyn FnMut(&[u8])) {
        self.topics(kind).each(show);
    }

    /// The clients that listen to something that does not pass.
    pub(crate) fn clients_beyond(
        &self,
        passes: impl Fn(&Client, Kind, &[u8]) -> bool,
    ) -> Vec<Arc<Client>> {
        let subscribers: Vec<_> = lock(&self.subscribers).values().cloned().collect();
        let beyond = subscribers.into_iter().filter(|subscriber| {
            let client = subscriber.outbox.client();
            !subscriber.all(&|kind, name| passes(client, kind, name))
        });
        beyond
            .map(|subscriber| Arc::clone(subscriber.outbox.client()))
            .collect()
    }

    fn send(
        &self,
        kind: Kind,
        channel: &[u8],
        payload: &[u8],
        bounds: Bounds,
        is_slow: &mut dyn FnMut(&Client),
    ) -> usize {
        let topics = self.topics(kind);
        let part = topics.part_of(channel);
        let has_patterns = kind != Kind::Shard && self.patterns.count() > 0;
        let patterns = has_patterns.then(|| self.patterns.seen(part));
        let mut count = 0;
        if let Some(topic) = topics.get(part, channel) {
            let name: &[u8] = match kind {
                Kind::Shard => b"smessage",
                Kind::Channel | Kind::Pattern => b"message",
            };
            let message = message(&[name, channel, payload]);
            count += topic.send(&message, bounds, is_slow);
        }
        for topic in patterns.iter().flat_map(|seen| seen.topics.iter()) {
            // A pattern that takes too long to match matches nothing.
            if glob::matches(&topic.name, channel).unwrap_or(false) {
                let message = message(&[b"pmessage", &topic.name, channel, payload]);
                count += topic.send(&message, bounds, is_slow);
            }
        }
        count
    }
}

/// Sends a message to all who listen to a channel, and returns how many these are. A client that
/// listens in several ways counts and gets it as often.
///
/// O(s + p) for s subscribers and p patterns. Subscribers that do not keep up are closed.
pub(crate) fn publish(server: &Shared, kind: Kind, channel: &[u8], payload: &[u8]) -> usize {
    let live = &server.live;
    let bounds = Bounds {
        hard: match live.max_pubsub_buffer.bytes() {
            0 => usize::MAX,
            hard => hard,
        },
        soft: live.soft_pubsub_buffer.bytes(),
        patience: Duration::from_secs(live.soft_pubsub_seconds.get()),
    };
    let channels = &server.channels;
    channels.send(kind, channel, payload, bounds, &mut |client| {
        if server.clients.end(client, Ending::SlowSubscriber) {
            channels.slow.fetch_add(1, Relaxed);
            tracing::warn!(
                "closed {}, a subscriber that does not keep up",
                client.who()
            );
        }
    })
}

#[cfg(test)]
mod tests;
