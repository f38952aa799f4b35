//! Channels against a model, and with threads.

use super::*;
use crate::outbox::{Own, Piece, tests::outboxes};
use crate::resp::Reply;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::thread;

const WIDE: Bounds = Bounds {
    hard: usize::MAX,
    soft: 0,
    patience: Duration::ZERO,
};

/// Everything that waits, as the client of RESP2 gets it.
fn received(own: &Own) -> Vec<u8> {
    let mut reply = Reply::new(0);
    for piece in own.take(usize::MAX) {
        reply.unasked(piece);
    }
    let mut all = Vec::new();
    while !reply.unsent().is_empty() {
        all.extend_from_slice(reply.unsent());
        reply.sent(reply.unsent().len());
    }
    all
}

fn wire(parts: &[&str]) -> String {
    let parts = parts
        .iter()
        .map(|part| format!("${}\r\n{part}\r\n", part.len()));
    let parts: Vec<_> = parts.collect();
    format!("*{}\r\n{}", parts.len(), parts.concat())
}

fn publish_to(channels: &Channels, kind: Kind, channel: &str, payload: &str) -> usize {
    let is_slow = &mut |_: &Client| panic!("nobody is slow");
    channels.send(kind, channel.as_bytes(), payload.as_bytes(), WIDE, is_slow)
}

const NAMES: [&str; 6] = ["a", "b", "ab", "?", "a*", "*"];
const KINDS: [Kind; 3] = [Kind::Channel, Kind::Pattern, Kind::Shard];

/// A wrong receiver, a message too many or too few, a wrong order, count or number of receivers
/// would fail.
#[tokio::test]
async fn clients_get_what_a_model_says() {
    let mut random = StdRng::seed_from_u64(7);
    let channels = Arc::new(Channels::default());
    let limits = ChannelLimits::default();
    let owns: [Own; 4] = outboxes().await;
    let all = owns.each_ref().map(|own| channels.subscriber(own.share()));
    let mut model = owns.each_ref().map(|_| [const { BTreeSet::new() }; 3]);
    let mut expected = vec![String::new(); owns.len()];
    for step in 0..20_000 {
        let who = random.random_range(0..owns.len());
        let kind = KINDS[random.random_range(0..3)];
        let name = NAMES[random.random_range(0..NAMES.len())];
        match random.random_range(0..4) {
            0 => {
                let joined = all[who].join(kind, name.as_bytes(), &limits);
                let is_new = model[who][kind as usize].insert(name);
                assert_eq!(joined, Ok(is_new));
            }
            1 => {
                let left = all[who].leave(kind, name.as_bytes());
                assert_eq!(left, model[who][kind as usize].remove(name));
            }
            _ => {
                let kind = [Kind::Channel, Kind::Shard][random.random_range(0..2)];
                let payload = step.to_string();
                let mut count = 0;
                for (who, listens) in model.iter().enumerate() {
                    if listens[kind as usize].contains(name) {
                        count += 1;
                        let word = if kind == Kind::Shard {
                            "smessage"
                        } else {
                            "message"
                        };
                        expected[who] += &wire(&[word, name, &payload]);
                    }
                    for pattern in listens[Kind::Pattern as usize].iter() {
                        let matches = glob::matches(pattern.as_bytes(), name.as_bytes());
                        if kind == Kind::Channel && matches == Ok(true) {
                            count += 1;
                            expected[who] += &wire(&["pmessage", pattern, name, &payload]);
                        }
                    }
                }
                assert_eq!(publish_to(&channels, kind, name, &payload), count, "{step}");
            }
        }
        for who in 0..owns.len() {
            let got = String::from_utf8(received(&owns[who])).expect("text");
            assert_eq!(
                got,
                std::mem::take(&mut expected[who]),
                "client {who}, step {step}"
            );
        }
        for kind in KINDS {
            let listened: BTreeSet<_> = model.iter().flat_map(|of| &of[kind as usize]).collect();
            assert_eq!(channels.count(kind), listened.len());
            let shown = model.iter().map(|of| of[kind as usize].contains(name));
            let shown = shown.filter(|listens| *listens).count();
            if kind != Kind::Pattern {
                assert_eq!(channels.listeners(kind, name.as_bytes()), shown);
            }
        }
    }
    drop(all);
    assert_eq!((channels.held(), channels.clients()), ((0, 0), 0));
    assert_eq!(channels.pattern_bytes(), 0);
    assert!(KINDS.into_iter().all(|kind| channels.count(kind) == 0));
}

/// The bytes of a message are one text for all who get it.
#[tokio::test]
async fn subscribers_share_the_bytes_of_a_message() {
    let channels = Arc::new(Channels::default());
    let limits = ChannelLimits::default();
    let owns: [Own; 3] = outboxes().await;
    let all = owns.each_ref().map(|own| channels.subscriber(own.share()));
    for subscriptions in &all {
        for kind in [Kind::Channel, Kind::Pattern] {
            assert_eq!(subscriptions.join(kind, b"news", &limits), Ok(true));
        }
    }
    assert_eq!(
        publish_to(&channels, Kind::Channel, "news", &"x".repeat(100)),
        6
    );
    let taken: Vec<_> = owns.iter().map(|own| own.take(usize::MAX)).collect();
    for at in 0..2 {
        let Piece::Message(first) = &taken[0][at] else {
            panic!("a message");
        };
        for others in &taken[1..] {
            let Piece::Message(other) = &others[at] else {
                panic!("a message");
            };
            assert!(first.is_same(other));
        }
    }
}

/// Threads that publish to one channel, while another client comes and goes, in the second round
/// with patterns: two clients that stay, one of them by a pattern then, see the same messages in
/// the same order, and each sender's in his.
#[tokio::test]
async fn all_subscribers_see_one_order() {
    see_one_order(Kind::Channel, "c").await;
    see_one_order(Kind::Pattern, "?").await;
}

async fn see_one_order(other_kind: Kind, other_name: &str) {
    const SENDERS: usize = 3;
    const EACH: usize = 3000;
    const BESIDE: usize = 30;
    let channels = Arc::new(Channels::default());
    let limits = ChannelLimits::default();
    let [first, second, passing, beside] = outboxes().await;
    let owns = [first, second];
    let stay = owns.each_ref().map(|own| channels.subscriber(own.share()));
    stay[0].join(Kind::Channel, b"c", &limits).expect("room");
    let other = stay[1].join(other_kind, other_name.as_bytes(), &limits);
    other.expect("room");
    // A message is compared with these before the other's pattern. So it is long on its way from
    // the one to the other, and another overtakes it there if they are not kept in order.
    let beside = channels.subscriber(beside.share());
    let count = if other_kind == Kind::Pattern {
        BESIDE
    } else {
        0
    };
    for number in 0..count {
        let pattern = format!("*{number:03}*x*y*z");
        let joined = beside.join(Kind::Pattern, pattern.as_bytes(), &limits);
        joined.expect("room");
    }
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let channels = &channels;
            scope.spawn(move || {
                for number in 0..EACH {
                    let payload = format!("{sender} {number}");
                    assert!(publish_to(channels, Kind::Channel, "c", &payload) >= 2);
                }
            });
        }
        let passes = channels.subscriber(passing.share());
        for number in 0..EACH {
            let (kind, name) = match number % 2 {
                0 => (Kind::Channel, "c".to_owned()),
                _ => (other_kind, format!("*{number}")),
            };
            passes.join(kind, name.as_bytes(), &limits).expect("room");
            passes.leave(kind, name.as_bytes());
            drop(passing.take(usize::MAX));
        }
    });
    let [direct, other] = owns.each_ref().map(|own| {
        let text = String::from_utf8(received(own)).expect("text");
        let lines = text.lines().filter(|line| line.contains(' '));
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(direct.len(), SENDERS * EACH);
    assert!(direct == other, "another order");
    for sender in 0..SENDERS {
        let own = direct
            .iter()
            .filter(|line| line.starts_with(&sender.to_string()));
        let numbers: Vec<usize> = own
            .map(|line| line[2..].parse().expect("a number"))
            .collect();
        assert!(numbers.is_sorted() && numbers.len() == EACH);
    }
}

#[tokio::test]
async fn each_limit_is_kept_and_named() {
    let channels = Arc::new(Channels::default());
    let [own] = outboxes().await;
    let all = channels.subscriber(own.share());
    let room = ChannelLimits::default();
    let bytes = |bytes| crate::limits::Bytes(bytes);
    all.join(Kind::Channel, b"one", &room).expect("room");
    let held = channels.held();
    for (limits, kind, full) in [
        (
            ChannelLimits {
                max_client_subscriptions: 1,
                ..room.clone()
            },
            Kind::Shard,
            Full::Client(1),
        ),
        (
            ChannelLimits {
                max_subscriptions: 1,
                ..room.clone()
            },
            Kind::Channel,
            Full::All(1),
        ),
        (
            ChannelLimits {
                max_subscription_bytes: bytes(held.1 + 10),
                ..room.clone()
            },
            Kind::Channel,
            Full::Bytes(held.1 + 10),
        ),
        (
            ChannelLimits {
                max_pattern_bytes: bytes(10),
                ..room.clone()
            },
            Kind::Pattern,
            Full::Patterns(10),
        ),
    ] {
        assert_eq!(all.join(kind, b"two", &limits), Err(full));
        assert_eq!((channels.held(), all.total()), (held, 1), "as before");
        assert_eq!(all.join(Kind::Channel, b"one", &limits), Ok(false));
        assert_eq!(all.join(kind, b"two", &room), Ok(true));
        assert!(all.leave(kind, b"two"));
    }
}

#[tokio::test]
async fn who_does_not_keep_up_is_named_and_gets_nothing_more() {
    let channels = Arc::new(Channels::default());
    let limits = ChannelLimits::default();
    let [slow, quick] = outboxes().await;
    let all = [&slow, &quick].map(|own| channels.subscriber(own.share()));
    for one in &all {
        one.join(Kind::Channel, b"c", &limits).expect("room");
    }
    let bounds = Bounds { hard: 200, ..WIDE };
    let mut named = 0;
    for _ in 0..10 {
        let is_slow = &mut |_: &Client| named += 1;
        assert_eq!(channels.send(Kind::Channel, b"c", b"m", bounds, is_slow), 2);
        assert!(!received(&quick).is_empty());
    }
    assert_eq!(named, 1, "once");
    assert!(received(&slow).is_empty());
}
