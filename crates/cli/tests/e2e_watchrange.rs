//! `WATCHRANGE` on the real server: what a client is shown, and what it makes of that over
//! disconnects, kills and cuts of the log.

mod support;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use support::resp::{Connection, bulk, elements, encode};
use support::{Server, eventually};

fn text(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).into_owned()
}

fn integer(reply: &[u8]) -> i64 {
    let digits = reply
        .strip_prefix(b":")
        .unwrap_or_else(|| panic!("{}", text(reply)));
    text(digits).trim_end().parse().expect("an integer")
}

/// The parts of a message, which is an array in RESP2 and a push in RESP3.
fn parts(message: &[u8]) -> Vec<Vec<u8>> {
    let mut array = message.to_vec();
    assert!(matches!(array[0], b'*' | b'>'), "{}", text(message));
    array[0] = b'*';
    elements(&array)
}

/// A message in words: the kind, the sequence, and what follows.
fn words(message: &[u8]) -> String {
    let parts = parts(message);
    let part = |part: &Vec<u8>| match part[0] {
        b'$' => text(&bulk(part)),
        _ => integer(part).to_string(),
    };
    let mut words: Vec<String> = parts.iter().map(part).collect();
    assert_eq!(words.remove(0), "watchrange");
    words.join(" ")
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

/// A copy of a range that knows only what it was shown.
#[derive(Default)]
struct Replica {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What it was not shown yet; `None` as long as its snapshot is not complete.
    next: Option<i64>,
    /// The last event, over all connections.
    last: i64,
    /// How often it has begun with a snapshot, and has gone on.
    snapshots: usize,
    resumed: usize,
}

impl Replica {
    /// A connection that shows it what it has not seen.
    fn connect(&mut self, server: &Server, protocol: &str) -> Connection {
        let mut client = server.connect();
        assert!(!client.call(&["hello", protocol]).starts_with(b"-"));
        if let Some(next) = self.next {
            let reply = client.call(&["watchrange", "[k", "(l", "from", &next.to_string()]);
            if reply.starts_with(b":") {
                self.resumed += 1;
                return client;
            }
            assert!(reply.starts_with(b"-NOSEQUENCE"), "{}", text(&reply));
        }
        (self.next, self.last) = (None, 0);
        self.entries.clear();
        self.snapshots += 1;
        assert!(
            client
                .call(&["watchrange", "[k", "(l", "snapshot"])
                .starts_with(b":")
        );
        client
    }

    fn apply(&mut self, message: &[u8]) {
        let parts = parts(message);
        let kind = text(&bulk(&parts[3]));
        let sequence = integer(&parts[4]);
        let argument = |at: usize| bulk(&parts[at]);
        match &*kind {
            "row" => {
                let old = self.entries.insert(argument(5), argument(6));
                assert!(old.is_none(), "a row twice");
                return;
            }
            "snapshot" => {
                self.next = Some(sequence + 1);
                return;
            }
            _ => (),
        }
        assert!(sequence > self.last, "{sequence} behind {}", self.last);
        self.last = sequence;
        self.next = self.next.map(|next| next.max(sequence + 1));
        match &*kind {
            "set" => {
                self.entries.insert(argument(5), argument(6));
            }
            "append" => {
                if let Some(value) = self.entries.get_mut(&argument(5)) {
                    value.truncate(usize::try_from(integer(&parts[6])).expect("an offset"));
                    value.extend(argument(7));
                }
            }
            "expire" => (),
            "del" => {
                self.entries.remove(&argument(5));
            }
            "delrange" => {
                let (low, high) = (argument(5), argument(6));
                assert!(low[0] == b'[' && high[0] == b'(', "a part of [k (l");
                let gone = |key: &Vec<u8>| **key >= low[1..] && **key < high[1..];
                self.entries.retain(|key, _| !gone(key));
            }
            other => panic!("{other}"),
        }
    }
}

/// A random write to keys that begin with k, and to others.
fn write(random: &mut SmallRng) -> Vec<String> {
    let key = |random: &mut SmallRng| {
        let first = if random.random_range(0..4) == 0 {
            'j'
        } else {
            'k'
        };
        format!("{first}{}", random.random_range(0..500))
    };
    let one = key(random);
    let value = random.random_range(0..1_000_000_u64).to_string().repeat(3);
    let words: Vec<&str> = match random.random_range(0..24) {
        0..9 => vec!["set", &one, &value],
        9..12 => vec!["del", &one],
        12..15 => vec!["append", &one, &value],
        15 => vec!["set", &one, &value, "px", "1"],
        16 => vec!["set", &one, &value, "ex", "10000"],
        17 => vec!["persist", &one],
        18 => vec!["pexpire", &one, "2"],
        19 => {
            let other = key(random);
            return ["rename", &one, &other].map(str::to_owned).to_vec();
        }
        20 => {
            let high = format!("({one}9");
            return ["delrange".to_owned(), format!("[{one}"), high].to_vec();
        }
        21 if random.random_range(0..40) == 0 => vec!["flushdb"],
        _ => {
            let other = key(random);
            let words = ["mset", &one, &value, &other, &value];
            return words.map(str::to_owned).to_vec();
        }
    };
    words.into_iter().map(str::to_owned).collect()
}

/// What the server has of the range.
fn stored(client: &mut Connection) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let words = elements(&client.call(&["range", "[k", "(l", "withvalues"]));
    let pairs = words.chunks(2).map(|pair| (bulk(&pair[0]), bulk(&pair[1])));
    pairs.collect()
}

/// Random writes of two clients, a replica that is cut off after any number of messages, kills of
/// the server, and cuts of its log. It fails if the replica misses a change or sees one twice, over
/// whatever of these, and in either protocol.
#[test]
fn a_replica_that_is_fed_by_watching_alone_equals_the_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = ["--threads", "2", "--cache", "8mb", "--cache-from", "100"];
    let mut server = Server::kept(directory.path(), &arguments);
    let (mut replica, mut random) = (Replica::default(), SmallRng::seed_from_u64(24));
    // Rounds and commands at least, and what a connection shows at most; in the deep run millions.
    let (rounds, least, most_shown) = match std::env::var_os("TREMULA_DEEP") {
        Some(_) => (100, 4_000_000, 60_000),
        None => (16, 0, 3000),
    };
    let (written, mut round, mut kills) = (AtomicU64::new(0), 0, 0);
    while round < rounds || written.load(Relaxed) < least {
        let is_over = AtomicBool::new(false);
        let seeds: [u64; 2] = [random.random(), random.random()];
        let pauses = random.random_range(1..4);
        thread::scope(|scope| {
            for seed in seeds {
                let (server, is_over, written) = (&server, &is_over, &written);
                scope.spawn(move || {
                    let (mut client, mut random) =
                        (server.connect(), SmallRng::seed_from_u64(seed));
                    while !is_over.load(Relaxed) {
                        let commands: Vec<_> = (0..20).map(|_| write(&mut random)).collect();
                        let pipeline: Vec<u8> = commands
                            .iter()
                            .flat_map(|command| encode(command))
                            .collect();
                        client.send(&pipeline);
                        for _ in commands {
                            client.reply().expect("a reply");
                        }
                        written.fetch_add(20, Relaxed);
                    }
                });
            }
            for _ in 0..pauses {
                let protocol = if random.random() { "2" } else { "3" };
                let mut client = replica.connect(&server, protocol);
                for _ in 0..random.random_range(0..most_shown) {
                    replica.apply(&client.reply().expect("a message"));
                }
                // And nothing more: the connection is gone with what was on its way.
            }
            is_over.store(true, Relaxed);
        });
        match round % 4 {
            1 => {
                server.signal("KILL");
                server.wait();
                server = Server::kept(directory.path(), &arguments);
                kills += 1;
            }
            3 => {
                // A whole segment of the log, so that a snapshot makes some of it superfluous; a
                // second one what the replica needs.
                let (mut client, long) = (server.connect(), "x".repeat(1 << 20));
                for number in 0..70 {
                    let key = format!("j{}", number % 3);
                    assert_eq!(client.call(&["set", &key, &long]), b"+OK\r\n");
                }
                for number in 0..=round / 4 % 2 {
                    // Without a change between them, the second would be in place of the first.
                    assert_eq!(client.text(&format!("set j {number}")), "+OK\r\n");
                    assert_eq!(client.text("save"), "+OK\r\n");
                }
            }
            _ => (),
        }
        let (mut client, mut other) = (replica.connect(&server, "3"), server.connect());
        // Behind the last write, so all that was before it comes.
        assert!(
            !other
                .call(&["set", "kkk", &round.to_string()])
                .starts_with(b"-")
        );
        while replica.entries.get(&b"kkk"[..]) != Some(&round.to_string().into_bytes())
            || replica.next.is_none()
        {
            replica.apply(&client.reply().expect("a message"));
        }
        // What has a time of some milliseconds goes by itself.
        eventually("the replica equals the store", || {
            until_answered(&mut client)
                .iter()
                .for_each(|message| replica.apply(message));
            stored(&mut other) == replica.entries
        });
        round += 1;
    }
    let (written, last) = (written.into_inner(), replica.last);
    let (begun, resumed) = (replica.snapshots, replica.resumed);
    println!(
        "{written} commands, {last} changes, {kills} kills, {begun} snapshots, {resumed} resumes"
    );
    assert!(
        replica.snapshots >= 2,
        "no cut of the log was seen: {}",
        replica.snapshots
    );
    assert!(
        replica.resumed >= 10,
        "it went on {} times",
        replica.resumed
    );
}

/// Every kind of message, the same in both protocols but for the first byte.
#[test]
fn each_change_is_shown_with_its_sequence() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = ["--cache", "8mb", "--cache-from", "10"];
    for protocol in ["2", "3"] {
        let path = directory.path().join(protocol);
        let server = Server::kept(&path, &arguments);
        let (mut client, mut other) = (server.connect(), server.connect());
        client.call(&["hello", protocol]);
        other.text("mset a 1 b 2 c 3");
        other.text("select 1");
        other.text("set b elsewhere");
        other.text("select 0");
        assert_eq!(client.text("watchrange [b (d snapshot"), ":5\r\n");
        let rows: Vec<_> = (0..3)
            .map(|_| words(&client.reply().expect("rows")))
            .collect();
        assert_eq!(
            rows,
            [
                "[b (d row 4 b 2 -1",
                "[b (d row 4 c 3 -1",
                "[b (d snapshot 4"
            ]
        );
        assert_eq!(client.text("watchrange - (b from 1"), ":1\r\n");
        let first = client.reply().expect("what was before");
        assert_eq!(words(&first), "- (b set 1 a 1 -1");
        assert_eq!(first[0], if protocol == "2" { b'*' } else { b'>' });
        for command in [
            "set a 2",
            "set b 3 pxat 99999999999999",
            "persist b",
            "set c 0123456789",
            "append c x",
            "append c yz",
            "delrange (a [c",
            "mset b 1 c 1 d 1",
            "rename b bb",
            "del a c d bb",
            "set b gone px 1",
        ] {
            other.text(command);
        }
        eventually("the key expires", || {
            other.info("stats")["expired_keys"] == "1"
        });
        other.text("flushall");
        let mut shown = Vec::new();
        eventually("everything is shown", || {
            shown.extend(
                until_answered(&mut client)
                    .iter()
                    .map(|message| words(message)),
            );
            shown.len() >= 19
        });
        let of = |range: &str| -> Vec<String> {
            let all = shown
                .iter()
                .filter_map(|message| message.strip_prefix(range));
            all.map(|message| message.trim_start().to_owned()).collect()
        };
        let of_first = of("- (b");
        let removed = ["del 17 a", "delrange 23 - (b"];
        assert_eq!(of_first[..2], ["set 5 a 2 -1", "delrange 11 [a\0 (b"]);
        assert_eq!(of_first[2..], removed);
        let of_rest = of("[b (d");
        assert_eq!(
            of_rest[..12],
            [
                "set 6 b 3 99999999999999",
                "expire 7 b -1",
                "set 8 c 0123456789 -1",
                "set 9 c 0123456789x -1",
                "append 10 c 11 yz",
                "delrange 11 [b (c\0",
                "set 12 b 1 -1",
                "set 13 c 1 -1",
                "set 15 bb 1 -1",
                "del 16 b",
                "del 18 c",
                "del 20 bb",
            ]
        );
        // It may have expired before it was shown.
        let expires = &of_rest[12];
        assert!(
            expires == "del 21 b" || expires.starts_with("set 21 b gone "),
            "{expires}"
        );
        assert_eq!(of_rest[13..], ["del 22 b", "delrange 23 [b (d"]);
    }
}

/// The value of a field in a client's line of `CLIENT LIST`.
fn listed(client: &mut Connection, id: &str, field: &str) -> u64 {
    let line = text(&bulk(&client.call(&["client", "list", "id", id])));
    let mut fields = line.split([' ', '\n']);
    let value = fields.find_map(|word| word.strip_prefix(field)?.strip_prefix('='));
    let value = value.unwrap_or_else(|| panic!("no {field} in {line}"));
    value.parse().expect("a number")
}

/// A watcher that reads nothing while others write is not closed, and takes little memory: what it
/// has missed comes from the log, without a gap. Beside it another one is given everything.
#[test]
fn a_slow_watcher_takes_little_memory_and_misses_nothing() {
    const WRITES: usize = 30_000;
    const BUFFER: u64 = 256 << 10;
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::kept(
        directory.path(),
        &["--watch-buffer", "256kb", "--threads", "2"],
    );
    let [mut slow, mut quick, mut writer, mut other] = [(); 4].map(|()| server.connect());
    let mut ids = Vec::new();
    for client in [&mut slow, &mut quick] {
        client.call(&["hello", "3"]);
        ids.push(integer(&client.text("client id").into_bytes()).to_string());
        assert_eq!(client.text("watchrange - +"), ":1\r\n");
    }
    let seen = thread::scope(|scope| {
        let quick = scope.spawn(move || {
            let sequence = |_| integer(&parts(&quick.reply().expect("an event"))[4]);
            (0..WRITES).map(sequence).collect::<Vec<_>>()
        });
        let value = "v".repeat(1000);
        let mut most = 0;
        for chunk in 0..WRITES / 100 {
            let set = |at| encode(&["set", &format!("k{}", chunk * 100 + at), &value]);
            writer.send(&(0..100).flat_map(set).collect::<Vec<_>>());
            for _ in 0..100 {
                assert_eq!(writer.reply().as_deref(), Some(&b"+OK\r\n"[..]));
            }
            most = most.max(listed(&mut other, &ids[0], "omem"));
        }
        eventually("it has fallen behind", || {
            other.info("stats")["watchrange_behind"] != "0"
        });
        assert!(most > BUFFER / 4, "nothing waited for it: {most}");
        // The buffer, one batch of the log, and a part of them that is being sent.
        assert!(most < 4 * BUFFER + (1 << 20), "{most} bytes waited");
        quick.join().expect("no panic")
    });
    let all: Vec<i64> = (1..=WRITES as i64).collect();
    assert_eq!(seen, all);
    let late = |_| integer(&parts(&slow.reply().expect("an event"))[4]);
    assert_eq!((0..WRITES).map(late).collect::<Vec<_>>(), all);
    // It has come to the tail again, and learns how far it is.
    eventually("it is at the tail", || {
        let reply = slow.call(&["watches"]);
        let watch = text(&reply);
        watch.contains(&format!(":{}\r\n", WRITES + 1)) && watch.contains("tail")
    });
    assert_eq!(other.info("stats")["watchrange_behind"], "0");
    assert_ne!(other.info("stats")["watchrange_fallen_behind"], "0");
}

/// Without a disk a ring of the newest changes can be watched; what is older is refused by name,
/// and ends a watch that needs it.
#[test]
fn in_memory_a_ring_is_kept_if_it_is_asked_for() {
    let server = Server::tremula(&["--memory-only"]);
    let refused = server.connect().text("watchrange - +");
    assert!(refused.starts_with("-ERR nothing can be watched") && refused.contains("--watch-ring"));
    let options = [
        "--memory-only",
        "--watch-ring",
        "64kb",
        "--watch-buffer",
        "4kb",
    ];
    let server = Server::tremula(&options);
    let (mut client, mut other) = (server.connect(), server.connect());
    assert_eq!(client.text("watchrange [a (b"), ":1\r\n");
    let value = "v".repeat(1000);
    other.text("set a 1");
    assert_eq!(
        words(&client.reply().expect("an event")),
        "[a (b set 1 a 1 -1"
    );
    for _ in 0..20_000 {
        other.send(&encode(&["set", "a", &value]));
    }
    for _ in 0..20_000 {
        assert_eq!(other.reply().as_deref(), Some(&b"+OK\r\n"[..]));
    }
    // What the sockets have taken comes; then what the ring does not have any more.
    let mut last = 1;
    let end = loop {
        let message = client.reply().expect("an end");
        let parts = parts(&message);
        if bulk(&parts[3]) == b"end" {
            break words(&message);
        }
        assert_eq!(integer(&parts[4]), last + 1);
        last += 1;
    };
    let oldest = end
        .split("the oldest one is ")
        .nth(1)
        .expect("the oldest one");
    let oldest: i64 = oldest
        .split(';')
        .next()
        .and_then(|text| text.parse().ok())
        .expect("digits");
    assert!(
        end.starts_with(&format!("[a (b end {} NOSEQUENCE", last + 1)),
        "{end}"
    );
    assert!(oldest > last + 1, "{end}");
    assert_eq!(client.text("watches"), "*0\r\n");
    assert_eq!(other.info("stats")["watchrange_lost"], "1");
    let refused = client.text("watchrange [a (b from 2");
    let first = refused
        .split("the oldest one is ")
        .nth(1)
        .expect("the oldest one");
    let first = first.split(';').next().expect("digits").to_owned();
    assert!(
        refused.starts_with("-NOSEQUENCE sequence 2 is not kept"),
        "{refused}"
    );
    assert_eq!(
        client.text(&format!("watchrange [a (b from {first}")),
        format!(":{first}\r\n")
    );
    assert!(words(&client.reply().expect("kept")).starts_with(&format!("[a (b set {first} a v")));
}

/// What is wrong is said, and what may grow has a limit.
#[test]
fn watches_are_limited_and_what_is_wrong_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let limits = [
        "--max-client-watches",
        "2",
        "--max-watches",
        "3",
        "--max-watch-bytes",
        "5kb",
    ];
    let server = Server::kept(directory.path(), &limits);
    let [mut client, mut other] = [(); 2].map(|()| server.connect());
    for (command, error) in [
        (
            "watchrange a b",
            "-ERR min or max not valid string range item",
        ),
        ("watchrange + -", "-ERR no key can be between these bounds"),
        (
            "watchrange [b [a",
            "-ERR no key can be between these bounds",
        ),
        ("watchrange - + PREV", "-ERR PREV needs what keys were"),
        ("watchrange - + PREV PREV", "-ERR syntax error"),
        ("watchrange - + FROM", "-ERR FROM needs a sequence"),
        ("watchrange - + FROM -1", "-ERR FROM needs a sequence"),
        ("watchrange - + FROM x", "-ERR FROM needs a sequence"),
        (
            "watchrange - + FROM 1 SNAPSHOT",
            "-ERR FROM and SNAPSHOT exclude each other",
        ),
        ("watchrange - + SNAPSHOT SNAPSHOT", "-ERR syntax error"),
        ("watchrange - + NOW", "-ERR syntax error"),
        (
            "watchrange - + FROM 7",
            "-NOSEQUENCE there is no sequence 7 yet, the next one is 1",
        ),
        ("watchrange -", "-ERR wrong number of arguments"),
        ("unwatchrange -", "-ERR wrong number of arguments"),
    ] {
        let reply = client.text(command);
        assert!(reply.starts_with(error), "{command}: {reply}");
    }
    assert_eq!(client.text("watches"), "*0\r\n");
    assert_eq!(client.text("unwatchrange"), ":0\r\n");
    assert_eq!(client.text("watchrange - + snapshot"), ":1\r\n");
    assert_eq!(words(&client.reply().expect("no rows")), "- + snapshot 0");
    let twice = client.text("watchrange - +");
    assert!(
        twice.starts_with("-ERR this connection watches a range with these bounds"),
        "{twice}"
    );
    // RESP2 cannot tell replies from messages.
    let get = client.text("get a");
    assert!(
        get.starts_with("-ERR Can't execute 'get'") && get.contains("UNWATCHRANGE"),
        "{get}"
    );
    assert_eq!(client.text("ping"), "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    assert_eq!(client.text("watchrange [a +"), ":1\r\n");
    let full = client.text("watchrange [b +");
    assert!(
        full.contains("at most 2 ranges (--max-client-watches)"),
        "{full}"
    );
    other.call(&["hello", "3"]);
    let long = format!("[{}", "x".repeat(2000));
    let full = text(&other.call(&["watchrange", &long, "+"]));
    assert!(
        full.contains("at most 5120 bytes (--max-watch-bytes)"),
        "{full}"
    );
    assert_eq!(other.text("watchrange - +"), ":1\r\n");
    let full = other.text("watchrange [b +");
    assert!(full.contains("3 watches already (--max-watches)"), "{full}");
    let mut third = server.connect();
    let quotas = third.info("quotas");
    assert_eq!((&*quotas["watches"], &*quotas["max_watches"]), ("3", "3"));
    assert_eq!(third.info("clients")["watchrange_clients"], "2");
    assert_eq!(client.text("unwatchrange [x +"), ":0\r\n");
    assert_eq!(third.text("multi"), "+OK\r\n");
    let refused = third.text("watchrange - +");
    assert!(
        refused.contains("not allowed inside a transaction"),
        "{refused}"
    );
    assert_eq!(third.text("discard"), "+OK\r\n");
    // In RESP3 all commands run, and the event comes before the reply to what was sent later.
    assert_eq!(other.text("set b 1"), "+OK\r\n");
    let shown = words(&other.reply().expect("an event"));
    assert_eq!(shown, "- + set 1 b 1 -1");
    let mut ended = Vec::new();
    client.send(&encode(&["unwatchrange"]));
    let count = loop {
        let reply = client.reply().expect("a reply");
        if reply.starts_with(b":") {
            break integer(&reply);
        }
        ended.push(words(&reply));
    };
    assert_eq!(count, 2);
    assert!(ended.len() <= 2, "{ended:?}");
    assert_eq!(client.text("get b"), "$1\r\n1\r\n");
    assert_eq!(other.text("set c 1"), "+OK\r\n");
    assert_eq!(client.text("ping"), "+PONG\r\n");
    assert_eq!(third.info("quotas")["watches"], "1");
    other.text("reset");
    assert_eq!(client.info("quotas")["watches"], "0");
    assert_eq!(client.info("quotas")["watch_bytes"], "0");
}

/// A user watches what he may read, and no longer than he may.
#[test]
fn a_user_watches_what_is_open_to_him() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::kept(directory.path(), &[]);
    let [mut client, mut admin] = [(); 2].map(|()| server.connect());
    let rules = "acl setuser reader on >secret +@all %R~user:*";
    assert_eq!(admin.text(rules), "+OK\r\n");
    client.text("auth reader secret");
    let refused = client.text("watchrange - +");
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    assert_eq!(client.text("watchrange [user: (user;"), ":1\r\n");
    admin.text("mset user:1 a other 1");
    assert_eq!(
        words(&client.reply().expect("an event")),
        "[user: (user; set 2 user:1 a -1"
    );
    assert_eq!(
        admin.text("acl setuser reader resetkeys %R~user:*"),
        "+OK\r\n"
    );
    assert!(!client.call(&["ping"]).is_empty(), "he may still");
    assert_eq!(
        admin.text("acl setuser reader resetkeys %W~user:*"),
        "+OK\r\n"
    );
    admin.text("set user:1 hidden");
    assert!(client.reply().is_none(), "he is shown nothing more");
}

/// An evicted key is shown as removed.
#[test]
fn evictions_are_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = [
        "--max-memory",
        "24mb",
        "--max-memory-policy",
        "allkeys-random",
    ];
    let server = Server::kept(directory.path(), &options);
    let (mut client, mut other) = (server.connect(), server.connect());
    client.text("hello 3");
    assert_eq!(client.text("watchrange - +"), ":1\r\n");
    let value = "v".repeat(100_000);
    for number in 0..1000 {
        let reply = other.call(&["set", &format!("k{number}"), &value]);
        assert_eq!(text(&reply), "+OK\r\n");
        if other.info("stats")["evicted_keys"] != "0" {
            break;
        }
    }
    let evicted = loop {
        let message = words(&client.reply().expect("a removal"));
        if message.contains(" del ") {
            break message;
        }
    };
    assert!(evicted.starts_with("- + del "), "{evicted}");
}
