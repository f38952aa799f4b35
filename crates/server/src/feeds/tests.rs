//! A model of the way between reading the log and being given its tail.
//!
//! Each step of a watcher's connection and of the tail's thread runs under one lock, or touches
//! what nobody else does. So whatever the threads do is an order of these steps, and here they are
//! done in random orders: what a watcher is shown must be each change of its range, once.

use super::watcher::HasRead;
use super::*;
use crate::outbox::{Own, Piece, tests::outboxes};
use crate::resp::Reply;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;
use tremula_log::{Log, MemoryLog};
use tremula_store::{Engine, Events, Key, Sequence, StoreConfig, Value};

/// The steps of one model: some hundred of each kind.
const STEPS: usize = 1500;

/// A watch, and what its client has seen.
struct Client {
    own: Own,
    watches: Watches,
    span: Span,
    /// What was read and has not gone on.
    read: Option<HasRead>,
    seen: Vec<u64>,
}

/// The threads of a server, each between two steps.
struct Model {
    store: Arc<Store>,
    log: MemoryLog,
    feeds: Arc<Feeds>,
    limits: FeedLimits,
    /// The thread of the tail, if it runs.
    tail: Option<Events>,
    clients: Vec<Client>,
    /// What has happened: the sequence and the key of each change.
    changes: Vec<(u64, Vec<u8>)>,
}

/// The sequences in messages as clients get them.
fn sequences(own: &Own, most: usize) -> Vec<u64> {
    let mut reply = Reply::new(0);
    own.take(most)
        .into_iter()
        .for_each(|piece: Piece| reply.unasked(piece));
    let mut all = Vec::new();
    while !reply.unsent().is_empty() {
        all.extend_from_slice(reply.unsent());
        reply.sent(reply.unsent().len());
    }
    let text = String::from_utf8_lossy(&all);
    let after = text.split("$3\r\nset\r\n:").skip(1);
    let digits = after.filter_map(|rest| rest.split("\r\n").next());
    digits
        .map(|digits| digits.parse().expect("a sequence"))
        .collect()
}

impl Model {
    fn new(owns: Vec<Own>, random: &mut SmallRng) -> Self {
        let log = MemoryLog::held();
        let config = StoreConfig::new(Engine::BTree);
        let store = Store::logging(&config, Arc::new(log.clone())).expect("a store");
        let store = Arc::new(store);
        let limits = FeedLimits {
            watch_buffer: crate::limits::Bytes(1 << 10),
            ..FeedLimits::default()
        };
        let feeds = Arc::new(Feeds::new(&store, &limits));
        let clients = owns.into_iter().map(|own| {
            let high = [random.random_range(b'b'..b'f')];
            Client {
                watches: feeds.watches(own.share()),
                own,
                span: Span::new(Bound::Unbounded, Bound::Excluded(&high)),
                read: None,
                seen: Vec::new(),
            }
        });
        Self {
            clients: clients.collect(),
            store,
            log,
            feeds,
            limits,
            tail: None,
            changes: Vec::new(),
        }
    }

    fn write(&mut self, random: &mut SmallRng) {
        let key = vec![random.random_range(b'a'..b'f')];
        let value = Value::from(&[0; 200][..]);
        let put = self.store.commit(|effects| {
            let database = self.store.database(0);
            database.insert(effects, Key::from(&key[..]), value)
        });
        put.expect("a log that takes all");
        self.store.forward();
        self.changes.push((self.store.last_effect().get(), key));
    }

    /// What the thread of the tail does when it is woken.
    fn give(&mut self) {
        if let Some(events) = &mut self.tail
            && self.log.durable() >= events.awaited()
            && !self.feeds.give_batch(events).expect("a whole log")
        {
            self.tail = None;
        }
    }

    /// Starts the thread of the tail, if going on would.
    fn start(&mut self, next: Sequence) {
        let first = lock(&self.feeds.tail).start(next, self.log.durable());
        if let Some(first) = first {
            self.tail = Some(self.store.events(first).expect("a log"));
        }
    }

    /// A step of a client's connection.
    fn client(&mut self, at: usize, random: &mut SmallRng) {
        let client = &mut self.clients[at];
        if client.watches.count() == 0 {
            let next = client.seen.last().map_or(1, |last| last + 1);
            let name = Name {
                database: 0,
                start: b"-"[..].into(),
                end: client.span.high().unwrap_or_default().into(),
                span: client.span.clone(),
                has_previous: false,
            };
            let since = Since::Sequence(Sequence::new(next));
            self.start(Sequence::new(next));
            let begun = self.clients[at].watches.begin(name, since, &self.limits);
            return assert!(begun.is_ok(), "{:?}", begun.err());
        }
        match random.random_range(0..10) {
            0 if client.read.is_none() => {
                // What was on its way comes before the reply.
                client.watches.end(None);
                self.take(at, usize::MAX);
            }
            0..5 => self.take(at, random.random_range(0..2000)),
            _ => self.read(at),
        }
    }

    /// A client takes what waits.
    fn take(&mut self, at: usize, most: usize) {
        let client = &mut self.clients[at];
        client.seen.extend(sequences(&client.own, most));
        let expected = self
            .changes
            .iter()
            .filter(|(_, key)| client.span.contains(key));
        let mut expected = expected.map(|(sequence, _)| sequence);
        for seen in &client.seen {
            assert_eq!(Some(seen), expected.next(), "of client {at}");
        }
    }

    /// The thread apart reads for a client, or lets it be given what comes.
    fn read(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let watcher = lock(&client.watches.group.watchers)[0].clone();
        match client.read.take() {
            None => {
                if client.own.bytes() < self.limits.watch_buffer.0 {
                    client.read = self.feeds.read(&watcher);
                }
            }
            Some(read) => {
                let next = read.follower.next_sequence();
                self.start(next);
                self.feeds.go_on(&watcher, read);
            }
        }
    }
}

/// It fails if a watcher misses a change or gets one twice where it goes from reading to being
/// given, falls behind, ends or goes on.
#[tokio::test]
async fn no_change_is_missed_on_the_way_to_the_tail_and_back() {
    let (mut fallen, mut events) = (0, 0);
    for seed in 0..40 {
        let mut random = SmallRng::seed_from_u64(seed);
        let owns: [Own; 3] = outboxes().await;
        let mut model = Model::new(owns.into(), &mut random);
        for _ in 0..STEPS {
            match random.random_range(0..10) {
                0..2 => model.write(&mut random),
                2 => {
                    let last = model.store.last_effect().get();
                    let durable = model.log.durable().get();
                    let up_to = random.random_range(durable..=last);
                    model.log.make_durable(Sequence::new(up_to));
                }
                3..5 => model.give(),
                _ => model.client(random.random_range(0..3), &mut random),
            }
        }
        model.log.make_durable(model.store.last_effect());
        for at in 0..3 {
            let behind = |model: &Model| {
                let client = &model.clients[at];
                let of_span = model
                    .changes
                    .iter()
                    .filter(|(_, key)| client.span.contains(key));
                client.seen.len() < of_span.count()
            };
            for _ in 0..100_000 {
                if !behind(&model) {
                    break;
                }
                model.give();
                model.client(at, &mut random);
                model.take(at, usize::MAX);
            }
            assert!(!behind(&model), "client {at} misses changes");
        }
        fallen += model.feeds.fallen();
        events += model.feeds.events();
    }
    assert!(
        fallen > 100 && events > 10_000,
        "{fallen} fell behind, of {events} events"
    );
}
