//! `RANGE … AS OF` on the real server: states of the past by sequence and by time, over snapshots,
//! kills and cuts of the log; who may see what; and that nobody waits for it.

mod support;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use support::resp::{Connection, bulk, elements};
use support::{Server, eventually, has_answer};

fn text(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).into_owned()
}

/// The bulks of a reply, with spaces between.
fn words(reply: &[u8]) -> String {
    assert_eq!(reply[0], b'*', "{}", text(reply));
    let words: Vec<String> = elements(reply)
        .iter()
        .map(|word| text(&bulk(word)))
        .collect();
    words.join(" ")
}

/// The sequence of the last change of a key.
fn version(client: &mut Connection, key: &str) -> u64 {
    let reply = elements(&client.call(&["getv", key]));
    let digits = text(&reply[1]);
    digits
        .trim_start_matches(':')
        .trim()
        .parse()
        .expect("a version")
}

/// The server's time, as `AS OF` takes it.
fn now(client: &mut Connection) -> String {
    let time = words(&client.call(&["time"]));
    let (seconds, micros) = time.split_once(' ').expect("two numbers");
    format!("@{seconds}.{micros:0>6}")
}

/// Each state of the past is what the keys were, by its sequence and by a time, in any order and of
/// any part, over snapshots and kills, while all of the log is kept.
#[test]
fn a_range_is_shown_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = ["--log-keep", "1gb", "--cache", "8mb", "--cache-from", "20"];
    let mut server = Server::kept(directory.path(), &arguments);
    let mut random = SmallRng::seed_from_u64(5);
    let (mut keys, mut states) = (BTreeMap::new(), vec![BTreeMap::new()]);
    let mut times = BTreeMap::new();
    for round in 0..3 {
        let mut client = server.connect();
        for _ in 0..60 {
            let key = format!("k{:02}", random.random_range(0..30));
            let value = format!("v{}", states.len());
            let old: String = keys.get(&key).cloned().unwrap_or_default();
            match random.random_range(0..5) {
                0 if keys.remove(&key).is_some() => {
                    assert_eq!(client.call(&["del", &key]), b":1\r\n");
                }
                1 => {
                    client.call(&["append", &key, &value]);
                    keys.insert(key, old + &value);
                }
                _ => {
                    assert_eq!(client.call(&["set", &key, &value]), b"+OK\r\n");
                    keys.insert(key, value);
                }
            }
            states.push(keys.clone());
        }
        // What was written by then, the log has written by then.
        assert!(client.call(&["waitaof", "1", "0", "0"]).starts_with(b"*2"));
        times.insert(now(&mut client), states.len() - 1);
        assert_eq!(client.text("save"), "+OK\r\n");
        if round == 1 {
            server.signal("KILL");
            server.wait();
            server = Server::kept(directory.path(), &arguments);
        }
    }
    let mut client = server.connect();
    let shown = |state: &BTreeMap<String, String>, low: &str| {
        let from = state.range(low.to_owned()..);
        from.map(|(key, value)| format!("{key} {value}"))
            .collect::<Vec<_>>()
    };
    for _ in 0..60 {
        let sequence = random.random_range(0..states.len());
        let state = &states[sequence];
        let of = sequence.to_string();
        let all = client.call(&["range", "-", "+", "as", "of", &of, "withvalues"]);
        assert_eq!(words(&all), shown(state, "").join(" "), "as of {sequence}");
        let low = format!("k{:02}", random.random_range(0..30));
        let mut expected = shown(state, &low);
        expected.reverse();
        expected.truncate(3);
        let reply = client.call(&[
            "range",
            "+",
            &format!("[{low}"),
            "REV",
            "LIMIT",
            "3",
            "AS",
            "OF",
            &of,
            "WITHVALUES",
        ]);
        assert_eq!(words(&reply), expected.join(" "), "as of {sequence}");
    }
    for (time, last) in &times {
        let keys: Vec<&str> = states[*last].keys().map(String::as_str).collect();
        let reply = client.call(&["range", "-", "+", "as", "of", time]);
        assert_eq!(words(&reply), keys.join(" "), "{time}");
    }
    assert_eq!(
        words(&client.call(&["range", "-", "+", "as", "of", "1970-01-02T00:00:00Z"])),
        ""
    );
    assert_eq!(client.info("stats")["past_ranges"], "124");
    assert_eq!(client.info("stats")["gathered_bytes"], "0");
}

/// A key that had not expired then is there, though it has since; a user sees what he may, and no
/// limit counts what he may not; and what is wrong is said.
#[test]
fn what_is_shown_of_the_past_is_what_was_there_and_may_be_seen() {
    let directory = tempfile::tempdir().expect("a directory");
    let limits = ["--max-gathered", "64kb", "--max-past", "1mb"];
    let server = Server::kept(directory.path(), &limits);
    let [mut client, mut user] = [(); 2].map(|()| server.connect());
    client.text("set stays 1");
    client.text("set goes 1 px 100000");
    let there = version(&mut client, "goes");
    client.text("pexpire goes 1");
    eventually("it expires", || client.info("stats")["expired_keys"] == "1");
    let mut range = |of: &str| words(&client.call(&["range", "-", "+", "as", "of", of]));
    assert_eq!(range(&there.to_string()), "goes stays");
    assert_eq!(range(&(there + 2).to_string()), "stays");
    assert_eq!(
        range("2100-01-01T00:00:00Z"),
        "stays",
        "a time to come is now"
    );

    let long = "x".repeat(40_000);
    client.call(&[
        "mset", "other:1", &long, "other:2", &long, "user:1", "a", "user:2", "b",
    ]);
    let of = version(&mut client, "user:2").to_string();
    let large = client.call(&["range", "-", "+", "as", "of", &of]);
    assert!(
        text(&large).starts_with("-OOM the range as it was"),
        "{}",
        text(&large)
    );
    assert_eq!(
        client.text("acl setuser reader on >secret +@all %R~user:*"),
        "+OK\r\n"
    );
    user.text("auth reader secret");
    let seen = user.call(&[
        "range",
        "-",
        "+",
        "limit",
        "2",
        "as",
        "of",
        &of,
        "withvalues",
    ]);
    assert_eq!(words(&seen), "user:1 a user:2 b");
    client.text("del user:1");
    let seen = user.call(&["range", "-", "+", "rev", "as", "of", &of]);
    assert_eq!(words(&seen), "", "REV begins with the upper bound");
    let seen = user.call(&["range", "+", "-", "rev", "as", "of", &of]);
    assert_eq!(words(&seen), "user:2 user:1");

    for (command, error) in [
        ("range - + as", "-ERR syntax error"),
        ("range - + as of", "-ERR syntax error"),
        ("range - + as if 1", "-ERR syntax error"),
        (
            "range - + as of yesterday",
            "-ERR AS OF: 'yesterday' is no state; write the number",
        ),
        ("range - + as of -1", "-ERR AS OF: '-1' is no state"),
        (
            "range - + as of 999",
            "-NOSEQUENCE there is no sequence 999 yet, the last one is 9",
        ),
    ] {
        let reply = client.text(command);
        assert!(reply.starts_with(error), "{command}: {reply}");
    }
    client.text("multi");
    client.text("range - + as of 1");
    let refused = client.text("exec");
    assert!(
        refused.contains("ERR RANGE with AS OF is not allowed inside"),
        "{refused}"
    );
    for number in 0..30 {
        client.call(&["set", &format!("filler{number}"), &long]);
    }
    let last = version(&mut client, "filler29").to_string();
    let far = client.call(&["range", "[user", "(uses", "as", "of", &last]);
    let far = text(&far);
    assert!(
        far.starts_with("-ERR more than 1048576 bytes") && far.contains("--max-past"),
        "{far}"
    );
}

/// While a long past is read, others are served, by the same thread and by the one apart. What a
/// snapshot has made superfluous goes; then the error names the oldest state, and that is there.
#[test]
fn nobody_waits_for_the_past_and_it_ends_where_the_log_does() {
    const WRITES: usize = 300;
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::kept(
        directory.path(),
        &["--threads", "1", "--snapshot-every", "0"],
    );
    let [mut client, mut other] = [(); 2].map(|()| server.connect());
    assert_eq!(client.text("set first 1"), "+OK\r\n");
    let long = "x".repeat(1 << 20);
    for number in 0..WRITES {
        let key = format!("long{}", number % 4);
        assert_eq!(client.call(&["set", &key, &long]), b"+OK\r\n");
    }
    assert_eq!(client.text("set last 1"), "+OK\r\n");
    let of = version(&mut client, "last").to_string();
    let as_of =
        |client: &mut Connection, of: &str| client.call(&["range", "[f", "[last", "as", "of", of]);
    let mut served = 0;
    client.send(&support::resp::encode(&[
        "range", "[f", "[last", "as", "of", &of,
    ]));
    while !has_answer(&client) {
        // The first needs the worker's thread, and the second the one apart.
        assert_eq!(other.text("ping"), "+PONG\r\n");
        assert!(other.text("range [f [g snapshot").starts_with("*1\r\n"));
        served += 1;
    }
    assert_eq!(words(&client.reply().expect("a reply")), "first last");
    assert!(served > 3, "others were served {served} times");

    for _ in 0..2 {
        assert_eq!(client.text("save"), "+OK\r\n");
        assert_eq!(client.call(&["set", "long0", &long]), b"+OK\r\n");
    }
    let refused = text(&as_of(&mut client, "1"));
    let oldest = refused
        .rsplit("sequence ")
        .next()
        .expect("a sequence")
        .trim();
    assert!(
        refused.starts_with("-NOSEQUENCE nothing that is kept leads to the state of sequence 1"),
        "{refused}"
    );
    assert_eq!(words(&as_of(&mut client, oldest)), "first last");
    let before = oldest.parse::<u64>().expect("a sequence") - 1;
    assert!(as_of(&mut client, &before.to_string()).starts_with(b"-NOSEQUENCE"));
    let early = text(&as_of(&mut client, "@1"));
    assert!(
        early.contains("the state of @1.000000; the oldest one is that of"),
        "{early}"
    );
}

/// Without a disk the past is read from the ring, if there is one and it has all of it.
#[test]
fn in_memory_the_past_is_what_the_ring_has() {
    let server = Server::tremula(&["--memory-only"]);
    let refused = server.connect().text("range - + as of 1");
    assert!(
        refused.starts_with("-ERR nothing is known of the past"),
        "{refused}"
    );
    let server = Server::tremula(&["--memory-only", "--watch-ring", "64kb"]);
    let mut client = server.connect();
    client.text("mset a 1 b 2");
    client.text("del a");
    assert_eq!(
        words(&client.call(&["range", "-", "+", "as", "of", "2"])),
        "a b"
    );
    assert_eq!(
        words(&client.call(&["range", "-", "+", "as", "of", "3"])),
        "b"
    );
    assert_eq!(
        words(&client.call(&["range", "-", "+", "as", "of", "0"])),
        ""
    );
    let long = "x".repeat(40_000);
    for _ in 0..3 {
        client.call(&["set", "c", &long]);
    }
    let refused = client.text("range - + as of 3");
    assert!(
        refused.starts_with("-NOSEQUENCE") && refused.contains("the log begins at sequence 6"),
        "{refused}"
    );
}
