//! Channels on the real server, beside a real Redis 7.0 where both answer alike.

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use support::resp::{Connection, bulk, elements, encode};
use support::{Server, eventually};

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// What comes until everything that was sent before has been answered.
fn until_answered(connection: &mut Connection) -> Vec<Vec<u8>> {
    connection.send(&encode(&["ping", "a-mark"]));
    let mut all = Vec::new();
    loop {
        let reply = connection.reply().expect("a reply");
        if reply.windows(6).any(|window| window == b"a-mark") {
            return all;
        }
        all.push(reply);
    }
}

/// One after another, on connection 0 or 1 of each server, in either protocol.
const SCRIPT: &[(usize, &str)] = &[
    (0, "subscribe x y x"),
    (0, "psubscribe h?llo \\*"),
    (1, "publish hello 1"),
    (1, "publish x 2"),
    (1, "publish nobody 3"),
    (1, "publish * 4"),
    (0, "ping"),
    (0, "ping hi"),
    (0, "ping a b"),
    (0, "get x"),
    (0, "nope"),
    (0, "hello"),
    (0, "ssubscribe x"),
    (1, "spublish x 5"),
    (1, "publish x 6"),
    (1, "pubsub numsub x y z"),
    (1, "pubsub numsub"),
    (1, "pubsub numpat"),
    (1, "pubsub channels x"),
    (1, "pubsub channels nope*"),
    (1, "pubsub shardchannels"),
    (1, "pubsub shardnumsub x y"),
    (0, "unsubscribe x nope"),
    (0, "unsubscribe"),
    (0, "unsubscribe"),
    (0, "punsubscribe h?llo"),
    (0, "punsubscribe h?llo"),
    (0, "punsubscribe"),
    (0, "punsubscribe"),
    (0, "sunsubscribe"),
    (0, "sunsubscribe"),
    (0, "get x"),
    (1, "pubsub"),
    (1, "pubsub nope"),
    (1, "pubsub channels a b"),
    (1, "pubsub numpat x"),
    (1, "publish a"),
    (1, "spublish a"),
    (1, "subscribe"),
    (1, "psubscribe"),
    (1, "ssubscribe"),
    (0, "subscribe again"),
    (1, "flushall"),
    (1, "publish again 7"),
    (0, "reset"),
    (1, "publish again 8"),
    (1, "pubsub channels"),
    (0, "get x"),
    (
        0,
        "command info subscribe psubscribe publish unsubscribe punsubscribe",
    ),
    (
        0,
        "command info pubsub|channels pubsub|numsub pubsub|numpat pubsub|help",
    ),
];

#[test]
fn replies_and_messages_equal_those_of_redis() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "2"]));
    let mut different = Vec::new();
    for protocol in ["2", "3"] {
        let mut servers = [&redis, &tremula].map(|server| [server.connect(), server.connect()]);
        for [one, _] in &mut servers {
            assert!(!one.call(&["hello", protocol]).starts_with(b"-"));
        }
        for (at, line) in SCRIPT {
            let [theirs, ours] = servers.each_mut().map(|connections| {
                connections[*at].send(&encode(&words(line)));
                let [one, other] = connections;
                [until_answered(one), until_answered(other)].map(|replies| replies.concat())
            });
            // The version of the protocol and the client's number are not compared.
            if theirs != ours && !line.starts_with("hello") {
                let shown =
                    [theirs, ours].map(|sides| sides.map(|side| side.escape_ascii().to_string()));
                different.push(format!(
                    "RESP{protocol}: {line}\n  {:?}\n  {:?}",
                    shown[0], shown[1]
                ));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// A subscriber of RESP3 that publishes to itself gets its message before the reply, as from Redis;
/// `CLIENT REPLY OFF` silences replies, not messages.
#[test]
fn own_messages_and_silence_are_as_in_redis() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "1"]));
    let [theirs, ours] = [&redis, &tremula].map(|server| {
        let (mut client, mut other) = (server.connect(), server.connect());
        client.call(&["hello", "3"]);
        client.send(&encode(&["subscribe", "c"]));
        client.send(&encode(&["publish", "c", "mine"]));
        let mut all: Vec<_> = (0..3).map(|_| client.reply()).collect();
        client.send(&encode(&["client", "reply", "off"]));
        client.send(&encode(&["publish", "c", "silent"]));
        client.send(&encode(&["subscribe", "d"]));
        all.extend((0..2).map(|_| client.reply()));
        other.call(&["publish", "d", "more"]);
        all.push(client.reply());
        client.send(&encode(&["unsubscribe", "c", "d"]));
        all.extend((0..2).map(|_| client.reply()));
        all.into_iter()
            .map(|reply| reply.expect("a reply").escape_ascii().to_string())
            .collect::<Vec<_>>()
    });
    assert_eq!(ours, theirs);
}

/// Subscribers of both protocols, by channel and by pattern, on several threads and over TLS's kin
/// of long values: each gets every message of every sender, all in one order.
#[test]
fn every_subscriber_gets_every_message_in_one_order() {
    const SENDERS: usize = 3;
    const EACH: usize = 400;
    let server = Server::tremula(&["--threads", "3", "--gather", "no"]);
    let mut subscribers: Vec<_> = (0..9).map(|_| server.connect()).collect();
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        if number % 3 == 2 {
            subscriber.call(&["hello", "3"]);
        }
        let request = if number % 2 == 0 {
            ["subscribe", "news"]
        } else {
            ["psubscribe", "n*"]
        };
        subscriber.call(&request);
    }
    let receivers = format!(":{}\r\n", subscribers.len());
    let long = "x".repeat(100_000);
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (server, receivers, long) = (&server, &receivers, &long);
            scope.spawn(move || {
                let mut client = server.connect();
                for number in 0..EACH {
                    // Some are shared with the replies, not copied.
                    let long = if number % 100 == 99 { &long[..] } else { "" };
                    let payload = format!("{sender} {number} {long}");
                    let reply = client.call(&["publish", "news", &payload]);
                    assert_eq!(reply, receivers.as_bytes());
                }
            });
        }
        let readers: Vec<_> = subscribers
            .iter_mut()
            .map(|subscriber| {
                scope.spawn(move || {
                    let message = |_| {
                        let message = elements(&subscriber.reply().expect("a message"));
                        bulk(message.last().expect("its text"))
                    };
                    (0..SENDERS * EACH).map(message).collect::<Vec<_>>()
                })
            })
            .collect();
        let all: Vec<_> = readers
            .into_iter()
            .map(|reader| reader.join().expect("no panic"))
            .collect();
        for other in &all[1..] {
            assert!(*other == all[0], "another order");
        }
        let different: BTreeSet<_> = all[0].iter().collect();
        assert_eq!(different.len(), SENDERS * EACH);
        for sender in 0..SENDERS {
            let prefix = format!("{sender} ");
            let own = all[0]
                .iter()
                .filter(|text| text.starts_with(prefix.as_bytes()));
            for (number, text) in own.enumerate() {
                assert!(text.starts_with(format!("{sender} {number} ").as_bytes()));
            }
        }
    });
}

/// Nothing comes behind the confirmation that a subscription has ended, and nothing is lost while
/// one goes on.
#[test]
fn nothing_comes_after_the_end() {
    let server = Server::tremula(&["--threads", "2", "--gather", "no"]);
    let mut subscriber = server.connect();
    subscriber.call(&["hello", "3"]);
    // What a client has sent itself waits when the next command of the pipeline runs.
    let commands: [&[&str]; 4] = [
        &["subscribe", "own"],
        &["publish", "own", "m"],
        &["unsubscribe", "own"],
        &["ping"],
    ];
    let pipeline: Vec<u8> = commands.iter().flat_map(|words| encode(words)).collect();
    for _ in 0..3 {
        subscriber.send(&pipeline);
        let replies: Vec<_> = (0..5)
            .map(|_| subscriber.reply().expect("a reply"))
            .collect();
        let first = |word: &[u8]| {
            let has = |reply: &Vec<u8>| reply.windows(word.len()).any(|part| part == word);
            replies.iter().position(has).expect("it is there")
        };
        let (message, end) = (first(b"\r\nmessage\r\n"), first(b"unsubscribe"));
        assert!(message < end, "a message behind the end");
    }
    // What others send while a command waits comes before the next one of the pipeline, too.
    let mut other = server.connect();
    let commands: [&[&str]; 4] = [
        &["subscribe", "waits"],
        &["wait", "1", "500"],
        &["unsubscribe", "waits"],
        &["ping"],
    ];
    let pipeline: Vec<u8> = commands.iter().flat_map(|words| encode(words)).collect();
    subscriber.send(&pipeline);
    support::eventually("it waits", || {
        other.info("clients")["blocked_clients"] == "1"
    });
    assert_eq!(other.call(&["publish", "waits", "m"]), b":1\r\n");
    let replies: Vec<_> = (0..5)
        .map(|_| {
            subscriber
                .reply()
                .expect("a reply")
                .escape_ascii()
                .to_string()
        })
        .collect();
    let at = |word: &str| {
        let has = |reply: &String| reply.contains(word);
        replies.iter().position(has).expect("it is there")
    };
    assert!(at("\\nmessage") < at("unsubscribe"), "{replies:?}");
    subscriber.call(&["subscribe", "stays"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.connect();
            let mut number = 0;
            while !is_over.load(Relaxed) {
                client.call(&["publish", "comes-and-goes", "m"]);
                client.call(&["publish", "stays", &number.to_string()]);
                number += 1;
            }
        });
        let mut next = None;
        let mut read = |reply: &[u8]| {
            let parts = elements(reply);
            assert_eq!(bulk(&parts[0]), b"message");
            if bulk(&parts[1]) == b"stays" {
                let text = String::from_utf8(bulk(&parts[2])).expect("text");
                let number: u64 = text.parse().expect("a number");
                assert_eq!(*next.get_or_insert(number), number, "in order, none lost");
                next = Some(number + 1);
            }
            bulk(&parts[1]) == b"stays"
        };
        for _ in 0..300 {
            subscriber.send(&encode(&["subscribe", "comes-and-goes"]));
            subscriber.send(&encode(&["unsubscribe", "comes-and-goes"]));
            subscriber.send(&encode(&["ping"]));
            let mut ended = false;
            loop {
                let reply = subscriber.reply().expect("a reply");
                if reply == b"+PONG\r\n" {
                    break;
                }
                if reply.windows(11).any(|window| window == b"unsubscribe") {
                    ended = true;
                } else if !reply.windows(9).any(|window| window == b"subscribe") {
                    let stays = read(&reply);
                    assert!(stays || !ended, "a message behind the end");
                }
            }
        }
        is_over.store(true, Relaxed);
    });
}

#[test]
fn limits_are_kept_and_named() {
    let server = Server::tremula(&[
        "--threads",
        "1",
        "--max-client-subscriptions",
        "3",
        "--max-subscriptions",
        "5",
        "--max-subscription-bytes",
        "2kb",
        "--max-pattern-bytes",
        "200",
    ]);
    let (mut one, mut two) = (server.connect(), server.connect());
    let mut operator = server.connect();
    one.call(&["hello", "3"]);
    two.call(&["hello", "3"]);
    let refused = one.text("subscribe a b c d");
    assert!(refused.starts_with("-ERR") && refused.contains("--max-client-subscriptions"));
    assert_eq!(
        operator.info("quotas")["subscriptions"],
        "0",
        "none of them"
    );
    one.send(&encode(&["subscribe", "a", "b", "c"]));
    assert_eq!(until_answered(&mut one).len(), 3);
    assert_eq!(
        one.text("subscribe a"),
        ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:3\r\n"
    );
    assert!(one.text("psubscribe p").contains("at most 3"));
    let refused = two.text("subscribe a b c");
    assert!(
        refused.contains("5 subscriptions already (--max-subscriptions)"),
        "{refused}"
    );
    let long = "x".repeat(2048);
    let refused = String::from_utf8(two.call(&["subscribe", &long])).expect("text");
    assert!(refused.contains("--max-subscription-bytes"), "{refused}");
    let refused = String::from_utf8(two.call(&["psubscribe", &long[..190]])).expect("text");
    assert!(refused.contains("--max-pattern-bytes"), "{refused}");
    assert!(two.text("psubscribe p*").starts_with(">3"));
    let quotas = operator.info("quotas");
    assert_eq!(quotas["subscriptions"], "4");
    assert_eq!(quotas["max_client_subscriptions"], "3");
    assert_eq!(quotas["pattern_bytes"], "66");
    drop((one, two));
    eventually("they have left", || {
        operator.info("quotas")["subscription_bytes"] == "0"
    });
    assert_eq!(operator.text("pubsub channels"), "*0\r\n");
    assert_eq!(operator.info("clients")["pubsub_clients"], "0");
}

/// A subscriber that does not read is closed; what waits for it is freed, and others go on.
#[test]
fn a_slow_subscriber_is_closed() {
    let limits = ["--max-pubsub-buffer", "1mb", "--soft-pubsub-buffer", "0"];
    let server = Server::tremula(&[&["--threads", "1"][..], &limits].concat());
    let (mut slow, mut quick, mut client) = (server.connect(), server.connect(), server.connect());
    slow.call(&["subscribe", "c"]);
    quick.call(&["subscribe", "c"]);
    assert_eq!(client.info("stats")["pubsub_channels"], "1");
    let payload = "m".repeat(32 << 10);
    // The system's buffers take some megabytes.
    let mut rounds = 0;
    while client.info("stats")["pubsub_slow_clients_closed"] == "0" {
        rounds += 1;
        assert!(rounds < 2000, "it is not closed");
        client.call(&["publish", "c", &payload]);
        quick.reply().expect("a message");
    }
    eventually("it is gone", || {
        client.info("clients")["pubsub_clients"] == "1"
    });
    assert_eq!(client.text("publish c last"), ":1\r\n");
    assert!(quick.reply().expect("a message").ends_with(b"last\r\n"));
    // A soft limit, which `CONFIG SET` can change.
    let set = "config set client-output-buffer-limit";
    let reply = client.call(&[&words(set)[..], &["pubsub 0 64k 1"]].concat());
    assert_eq!(reply, b"+OK\r\n");
    let shown = client.text("config get client-output-buffer-limit");
    assert!(shown.contains("pubsub 0 64000 1\r\n"), "{shown}");
}

/// The names of those who are closed are in the list of what they may hear no longer.
#[test]
fn users_hear_and_say_what_their_rules_let_them() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut admin = server.connect();
    assert_eq!(
        admin.text("acl setuser u on >pw +@all ~* &news.* &w?"),
        "+OK\r\n"
    );
    let user = |protocol| {
        let mut client = server.connect();
        client.call(&["hello", protocol, "auth", "u", "pw"]);
        client
    };
    let mut client = user("3");
    const DENIED: &str =
        "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n";
    for (line, is_open) in [
        ("subscribe news.a", true),
        ("subscribe news.a other", false),
        ("subscribe wa", true),
        ("ssubscribe other", false),
        ("ssubscribe news.b", true),
        ("psubscribe news.*", true),
        ("psubscribe news.a", false),
        ("psubscribe news.a*", false),
        ("psubscribe *", false),
        ("publish news.c m", true),
        ("publish other m", false),
        ("spublish other m", false),
        ("publish news. news.x", true),
    ] {
        client.send(&encode(&words(line)));
        let replies = until_answered(&mut client).concat();
        let is_denied = replies == DENIED.as_bytes();
        assert_eq!(is_denied, !is_open, "{line}: {}", replies.escape_ascii());
    }
    assert_eq!(
        admin.text("acl dryrun u publish other m"),
        "$57\r\nThis user has no permissions to access the 'other' channel\r\n"
            .replace("$57", "$58")
    );
    let log = admin.text("acl log 1");
    assert!(log.contains("channel") && log.contains("other"), "{log}");
    // More rules, and other ones that still cover it, close nobody.
    admin.text("acl setuser u &more");
    admin.text("acl setuser u resetchannels &news.* &w*");
    assert_eq!(client.text("ping"), "+PONG\r\n");
    let (mut by_pattern, mut idle) = (user("2"), user("2"));
    by_pattern.call(&["psubscribe", "news.*"]);
    idle.call(&["ping"]);
    // One that covers the channels, but not the pattern.
    admin.text("acl setuser u resetchannels &news* &w*");
    assert_eq!(by_pattern.reply(), None, "closed");
    assert_eq!(idle.text("ping"), "+PONG\r\n", "it listens to nothing");
    assert_eq!(client.reply(), None, "it listened to the pattern, too");
    // New users may use no channel, unless a setting says so.
    for (default, reply) in [("resetchannels", DENIED), ("allchannels", ":0\r\n")] {
        admin.text(&format!("config set acl-pubsub-default {default}"));
        admin.text(&format!("acl setuser {default} on nopass +@all ~*"));
        let mut client = server.connect();
        client.call(&["auth", default, "any"]);
        assert_eq!(client.text("publish c m"), reply);
    }
}

#[test]
fn operators_see_and_close_subscribers() {
    let server = Server::tremula(&["--threads", "1", "--timeout", "1"]);
    let mut subscriber = server.connect();
    subscriber.call(&["client", "setname", "listens"]);
    subscriber.send(&encode(&["subscribe", "a", "b"]));
    subscriber.send(&encode(&["psubscribe", "c*"]));
    subscriber.send(&encode(&["ssubscribe", "d"]));
    until_answered(&mut subscriber);
    let mut operator = server.connect();
    let list = operator.text("client list type pubsub");
    assert!(list.contains("name=listens"), "{list}");
    assert_eq!(list.matches("cmd=").count(), 1, "{list}");
    assert!(
        list.contains("flags=P ") && list.contains("sub=2 psub=1 ssub=1 "),
        "{list}"
    );
    assert!(!operator.text("client list type normal").contains("listens"));
    // Longer than the timeout.
    let mut idle = server.connect();
    idle.call(&["ping"]);
    assert_eq!(idle.reply(), None, "closed, because it is silent");
    let mut operator = server.connect();
    assert_eq!(operator.text("publish c1 m"), ":1\r\n");
    assert!(subscriber.reply().expect("a message").ends_with(b"m\r\n"));
    assert_eq!(operator.text("client kill type pubsub"), ":1\r\n");
    assert_eq!(subscriber.reply(), None);
    eventually("nobody listens", || {
        operator.text("publish c1 m") == ":0\r\n"
    });
}
