//! What an operator uses to watch the server, on the real one, and beside a real Redis 7.0 where
//! both answer alike.

mod support;

use std::thread;
use std::time::{Duration, Instant};
use support::resp::{Connection, bulk, elements, encode};
use support::{PATIENCE, Server};

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Replies and errors that are byte for byte those of Redis.
#[test]
fn operators_get_the_replies_of_redis() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "1"]));
    let (mut theirs, mut ours) = (redis.connect(), tremula.connect());
    let long = "x".repeat(45);
    let (mut compared, mut different) = (0, Vec::new());
    for line in [
        "slowlog",
        "slowlog nope",
        "slowlog len x",
        "slowlog reset",
        "slowlog len",
        "slowlog get",
        "slowlog get x",
        "slowlog get -2",
        "slowlog get -1",
        "set n 12",
        "set big 12345678901234567890",
        "set s abc",
        &format!("set long {long}"),
        "object",
        "object nope",
        "object encoding",
        "object encoding absent",
        "object encoding n",
        "object encoding big",
        "object encoding s",
        "object encoding long",
        "object refcount s",
        "object refcount absent",
        "object freq s",
        "object freq absent",
        "object idletime absent",
        "latency",
        "latency nope",
        "latency latest",
        "latency history",
        "latency history nope",
        "latency history command",
        "latency reset",
        "latency reset nope command",
        "latency graph nope",
        "latency graph command",
        "latency histogram nope",
        "config",
        "config nope",
        "config set",
        "config set timeout",
        "config set nope 1",
        "config set timeout 1 nope",
        "config set timeout 1 nope 2",
        "config set timeout x",
        "config set maxmemory x",
        "config set maxmemory -1",
        "config set maxmemory 1 maxmemory 2",
        "config set databases 7",
        "config set latency-tracking perhaps",
        "config set slowlog-log-slower-than -2",
        "config set slowlog-log-slower-than x",
        "config set client-output-buffer-limit nope",
        "config set client-output-buffer-limit normal",
        "config get timeout",
        "config set timeout 77 slowlog-max-len 99 maxmemory-policy allkeys-lfu",
        "config get slowlog-max-*",
        "config get MAXMEMORY-policy",
        "config set maxmemory 100mb",
        "config get maxmemory",
        "config set maxmemory 1k",
        "config get maxmemory",
        "config set maxmemory 0 maxmemory-policy noeviction",
        "config rewrite",
        "config resetstat",
        "memory",
        "memory nope",
        "memory usage",
        "memory usage absent",
        "memory usage s nope 1",
        "memory usage s samples x",
        "memory usage s samples -1",
        "memory purge",
        "time x",
        "role",
        "role x",
        "wait 0 0",
        "wait x 0",
        "wait 0 x",
        "wait 0 -1",
        "wait -1 0",
        "wait 1 20",
        "shutdown nope",
        "shutdown abort",
        "shutdown now abort",
        "monitor x",
        "lolwut version x",
        "debug sleep 0",
        "debug",
    ] {
        compare(&mut theirs, &mut ours, &words(line), &mut different);
        compared += 1;
    }
    assert!(compared > 80, "{compared}");
    for name in [
        "slowlog|get",
        "slowlog|len",
        "slowlog|reset",
        "slowlog|help",
        "latency|doctor",
        "latency|graph",
        "latency|histogram",
        "latency|history",
        "latency|latest",
        "latency|reset",
        "latency|help",
        "memory|doctor",
        "memory|malloc-stats",
        "memory|purge",
        "memory|stats",
        "memory|usage",
        "memory|help",
        "object|encoding",
        "object|freq",
        "object|idletime",
        "object|refcount",
        "object|help",
        "config|get",
        "config|set",
        "config|rewrite",
        "config|resetstat",
        "config|help",
        "monitor",
        "time",
        "role",
        "shutdown",
        "wait",
        "lolwut",
        "debug",
    ] {
        let command = ["command", "info", name];
        compare(&mut theirs, &mut ours, &command, &mut different);
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// Sends a command to both servers, and notes if their replies differ.
fn compare(
    theirs: &mut Connection,
    ours: &mut Connection,
    command: &[&str],
    different: &mut Vec<String>,
) {
    let (expected, reply) = (theirs.call(command), ours.call(command));
    if reply != expected {
        let [reply, expected] = [&reply, &expected].map(|bytes| bytes.escape_ascii().to_string());
        different.push(format!("{}: {reply}, not {expected}", command.join(" ")));
    }
}

/// The counts of commands and errors are those of Redis; only their times differ.
#[test]
fn calls_rejections_and_failures_are_counted_as_redis_counts_them() {
    let servers = [Server::redis(), Server::tremula(&["--threads", "2"])];
    let counted = servers.each_ref().map(|server| {
        let mut client = server.connect();
        for line in [
            "config resetstat",
            "set a 1",
            "get a",
            "get b",
            "get",
            "get a b",
            "set a x",
            "incr a",
            "incrby a x",
            "nope",
            "config nope",
            "config set nope 1",
            "object encoding a",
            "auth x",
            "acl setuser one on >pw +get ~b",
            "auth one pw",
            "get a",
            "get b",
            "set b 1",
            "auth default any",
            "mset a 1 b 2",
            "mget a b c",
        ] {
            client.call(&words(line));
        }
        // In one write, so that many are timed together.
        let pipeline: Vec<u8> = [encode(&["get", "a"]), encode(&["incr", "s"])]
            .concat()
            .repeat(20);
        client.send(&[pipeline, encode(&["get", "a"]).repeat(50)].concat());
        (0..90).for_each(|_| drop(client.reply().expect("a reply")));
        let mut fields = client.info("commandstats");
        for (field, value) in &mut fields {
            let usec: Vec<_> = value
                .split(',')
                .filter(|part| part.starts_with("usec"))
                .collect();
            let number = |part: &str| -> f64 {
                let (_, number) = part.split_once('=').expect("a number");
                number.parse().expect("a number")
            };
            let calls = number(value.split(',').next().expect("calls"));
            let average = number(usec[1]);
            assert!(
                (number(usec[0]) - average * calls).abs() <= 1.0 + calls / 100.0,
                "{field}:{value}"
            );
            let rest: Vec<_> = value
                .split(',')
                .filter(|part| !part.starts_with("usec"))
                .collect();
            *value = rest.join(",");
        }
        fields.extend(client.info("errorstats"));
        let stats = client.info("stats");
        for name in ["total_error_replies", "keyspace_hits", "evicted_keys"] {
            if name != "keyspace_hits" {
                fields.insert(name.to_owned(), stats[name].clone());
            }
        }
        let times = client.info("latencystats");
        assert!(
            times["latency_percentiles_usec_get"].starts_with("p50="),
            "{times:?}"
        );
        assert!(
            times["latency_percentiles_usec_get"].contains(",p99.9="),
            "{times:?}"
        );
        let histogram = client.call(&["latency", "histogram", "get"]);
        let parts = elements(&elements(&histogram)[1]);
        assert_eq!(bulk(&parts[0]), b"calls");
        fields.insert(
            "calls of the histogram".to_owned(),
            parts[1].escape_ascii().to_string(),
        );
        let counts = elements(&parts[3]);
        let last = counts.last().expect("a bound").escape_ascii().to_string();
        fields.insert("the last of its counts".to_owned(), last);
        fields
    });
    let [theirs, ours] = counted;
    assert_eq!(ours, theirs);
}

/// The words of an entry of the slow log, and its time in microseconds.
fn entry(reply: &[u8]) -> (Vec<String>, u64) {
    let parts = elements(reply);
    let took = String::from_utf8_lossy(&parts[2]);
    let took = took
        .trim()
        .trim_start_matches(':')
        .parse()
        .expect("a number");
    let shown = |word: &Vec<u8>| bulk(word).escape_ascii().to_string();
    (elements(&parts[3]).iter().map(shown).collect(), took)
}

fn entries(client: &mut Connection, count: &str) -> Vec<(Vec<String>, u64)> {
    let reply = client.call(&["slowlog", "get", count]);
    elements(&reply).iter().map(|reply| entry(reply)).collect()
}

/// The slow log of both servers after the same commands, with all trimming and hiding.
#[test]
fn the_slow_log_keeps_and_hides_what_that_of_redis_does() {
    let servers = [Server::redis(), Server::tremula(&["--threads", "1"])];
    let logs = servers.each_ref().map(|server| {
        let mut client = server.connect();
        client.text("client setname me");
        client.text("config set slowlog-log-slower-than 0 slowlog-max-len 100");
        client.text("slowlog reset");
        let long = "y".repeat(200);
        for command in [
            &["set", "a", &long][..],
            &["mget"; 33],
            &["mget"; 32],
            &["mget"; 40],
            &["set", "bytes", "\u{1}\n"],
            &["get", "a"],
            &["acl", "setuser", "someone", "on", ">pw", "+get"],
            &["config", "set", "requirepass", ""],
            &["config", "set", "timeout", "0", "requirepass", ""],
            &["config", "set", "timeout", "0"],
            &["hello", "2", "auth", "someone", "pw", "setname", "me"],
            &["auth", "default", "x"],
            &["auth", "default", "x", "y"],
            &["config", "get", "requirepass"],
            &["incr", "a"],
            &["exec"],
            &["nope", "x"],
            &["get"],
        ] {
            client.call(command);
        }
        // Each by itself, although they come together.
        client.send(&encode(&["strlen", "a"]).repeat(3));
        (0..3).for_each(|_| drop(client.reply().expect("a reply")));
        let reply = client.call(&["slowlog", "get", "1"]);
        let parts = elements(&elements(&reply)[0]);
        assert_eq!(bulk(&parts[5]), b"me");
        let address = String::from_utf8(bulk(&parts[4])).expect("text");
        let own = client.stream.local_addr().expect("an address").to_string();
        assert_eq!(address, own);
        let mut kept: Vec<_> = entries(&mut client, "-1")
            .into_iter()
            .map(|(words, _)| words)
            .collect();
        kept.reverse();
        client.text("config set slowlog-max-len 5");
        assert_eq!(entries(&mut client, "100").len(), 5);
        client.text("config set slowlog-log-slower-than -1");
        client.text("slowlog reset");
        client.text("ping");
        assert_eq!(client.text("slowlog len"), ":0\r\n");
        client.text("config set slowlog-log-slower-than 1000000");
        client.text("ping");
        assert_eq!(client.text("slowlog len"), ":0\r\n");
        kept
    });
    let [mut theirs, ours] = logs;
    // Redis stops at the syntax before it hides; here what may be a password is hidden.
    for words in &mut theirs {
        if words.len() == 4 && words[0] == "auth" {
            words[1..].fill("(redacted)".to_owned());
        }
    }
    assert_eq!(ours, theirs);
    assert!(ours.len() > 15, "{ours:?}");
}

/// A command in several turns, and one that begins on another thread, have one entry with all of
/// their time, and its arguments.
#[test]
fn a_long_command_has_one_entry_with_the_time_of_all_its_steps() {
    let server = Server::tremula(&[
        "--threads",
        "1",
        "--turn",
        "10us",
        "--slowlog-log-slower-than",
        "-1",
        "--latency-monitor-threshold",
        "1",
        "--enable-debug-command",
        "local",
    ]);
    let mut client = server.connect();
    for part in 0..50 {
        let mut command = vec!["mset".to_owned()];
        command.extend((0..400).map(|key| format!("k{part:02}{:03}", key / 2)));
        client.call(&command);
    }
    client.text("config set slowlog-log-slower-than 0");
    client.text("slowlog reset");
    client.text("keys *");
    client.call(&["set", "long", &"z".repeat(2 << 20)]);
    client.text("debug sleep 0.05");
    let kept = entries(&mut client, "-1");
    let words: Vec<_> = kept.iter().map(|(words, _)| words.join(" ")).collect();
    let cut = format!("set long {}... (2097024 more bytes)", "z".repeat(128));
    assert_eq!(words, ["debug sleep 0.05", &cut, "keys *", "slowlog reset"]);
    let took: Vec<u64> = kept.iter().map(|(_, took)| *took).collect();
    assert!(took[0] >= 50_000 && took[2] > took[3], "{took:?}");
    let stats = client.info("commandstats");
    assert!(stats["cmdstat_keys"].starts_with("calls=1,"), "{stats:?}");
    let latest = client.call(&["latency", "latest"]);
    let events: Vec<_> = elements(&latest)
        .iter()
        .map(|event| bulk(&elements(event)[0]))
        .collect();
    assert!(
        events.contains(&b"command".to_vec()),
        "{}",
        latest.escape_ascii()
    );
    for (line, expected) in [
        ("latency graph command", "command - high "),
        ("latency doctor", "command: "),
    ] {
        let text = client.text(line);
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(client.text("latency reset command"), ":1\r\n");
    assert_eq!(client.text("latency history command"), "*0\r\n");
}

/// `DEBUG SLEEP` and `WAIT` hold no thread.
#[test]
fn a_command_that_waits_lets_others_run() {
    let server = Server::tremula(&["--threads", "1", "--enable-debug-command", "yes"]);
    let (mut sleeper, mut waiter, mut other) =
        (server.connect(), server.connect(), server.connect());
    let id = waiter.text("client id");
    sleeper.send(&[encode(&["ping"]), encode(&["debug", "sleep", "1000"])].concat());
    assert_eq!(
        sleeper.reply().as_deref(),
        Some(&b"+PONG\r\n"[..]),
        "the reply before it is sent"
    );
    waiter.send(&[encode(&["wait", "1", "0"]), encode(&["ping"])].concat());
    let deadline = Instant::now() + PATIENCE;
    while other.info("clients")["blocked_clients"] != "1" {
        assert!(Instant::now() < deadline, "it does not wait");
        thread::sleep(Duration::from_millis(5));
    }
    let unblock = format!("client unblock {} error", id.trim().trim_start_matches(':'));
    assert_eq!(other.text(&unblock), ":1\r\n");
    assert_eq!(
        waiter.reply().as_deref(),
        Some(&b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"[..])
    );
    assert_eq!(waiter.reply().as_deref(), Some(&b"+PONG\r\n"[..]));
    assert!(other.info("commandstats")["cmdstat_wait"].ends_with("failed_calls=1"));
    // A sleeper that leaves is gone.
    drop(sleeper);
    while other.info("clients")["connected_clients"] != "2" {
        assert!(Instant::now() < deadline, "it stays");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A line of a monitor without its time and address: the database and the quoted words.
fn shown(line: &[u8]) -> String {
    let line = String::from_utf8(line.to_vec()).expect("text");
    let (head, words) = line
        .trim_end()
        .split_once("] ")
        .expect("a line of a monitor");
    let (time, rest) = head.split_once(" [").expect("a database");
    assert!(time.starts_with('+') && time.contains('.'), "{line}");
    let (database, address) = rest.split_once(' ').expect("an address");
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    format!("{database} {words}")
}

#[test]
fn a_monitor_sees_what_redis_shows_and_no_passwords() {
    let servers = [
        Server::redis(),
        Server::tremula(&["--threads", "2", "--gather", "no"]),
    ];
    let seen = servers.each_ref().map(|server| {
        let (mut monitor, mut client) = (server.connect(), server.connect());
        assert_eq!(monitor.text("monitor"), "+OK\r\n");
        for command in [
            &["acl", "setuser", "one", "on", ">secret", "+@all", "~*"][..],
            &["config", "set", "requirepass", "secret"],
            &["config", "set", "requirepass", ""],
            &["auth", "one", "secret"],
            &["auth", "one", "wrong-secret"],
            &["hello", "3", "auth", "one", "secret"],
            &["hello", "2"],
            &["select", "3"],
            &["set", "a\"b\\", "\u{1}\r\n\t\u{7f}"],
            &["incr", "a\"b\\"],
            &["get"],
            &["nope"],
            &["object", "encoding", "a"],
            &["mget", "a", "b"],
        ] {
            client.call(command);
        }
        client.send(&encode(&["get", "x"]).repeat(3));
        (0..3).for_each(|_| drop(client.reply().expect("a reply")));
        client.text("echo end");
        let mut lines = Vec::new();
        while lines
            .last()
            .is_none_or(|line: &String| !line.ends_with("\"end\""))
        {
            lines.push(shown(&monitor.reply().expect("a line")));
        }
        assert_eq!(
            monitor.text("reset"),
            "+RESET\r\n",
            "it may end its watching"
        );
        client.text("ping");
        assert_eq!(monitor.text("echo quiet"), "$5\r\nquiet\r\n");
        let all = lines.join("\n");
        assert!(!all.contains("secret"), "{all}");
        lines
    });
    let [theirs, ours] = seen;
    assert_eq!(ours, theirs);
}

/// A monitor that does not read is closed, and what it was to see is freed.
#[test]
fn a_slow_monitor_is_closed() {
    let server = Server::tremula(&["--threads", "1", "--max-output-buffer", "64kb"]);
    let (mut monitor, mut client) = (server.connect(), server.connect());
    assert_eq!(monitor.text("monitor"), "+OK\r\n");
    let value = "v".repeat(32 << 10);
    // The system's buffers take some megabytes; then its own limit closes it, long before that of
    // all clients.
    let mut rounds = 0;
    while client.info("clients")["monitors"] != "0" {
        rounds += 1;
        assert!(rounds < 40, "it is not closed");
        let pipeline = encode(&["set", "k", &value]).repeat(50);
        client.send(&pipeline);
        (0..50).for_each(|_| drop(client.reply().expect("a reply")));
    }
    let list = client.text("client list");
    assert_eq!(list.matches("cmd=").count(), 1, "{list}");
}

/// `SHUTDOWN` answers what has arrived from others, and ends the process with success.
#[test]
fn shutdown_ends_the_server_as_sigterm_does() {
    let mut server = Server::tremula(&["--threads", "2"]);
    let (mut client, mut operator) = (server.connect(), server.connect());
    client.text("set a 1");
    assert!(
        operator
            .text("shutdown save")
            .starts_with("-ERR nothing can be saved")
    );
    client.send(&encode(&["get", "a"]));
    assert_eq!(client.reply().as_deref(), Some(&b"$1\r\n1\r\n"[..]));
    operator.send(&encode(&["shutdown", "nosave", "now"]));
    assert_eq!(operator.reply(), None);
    assert_eq!(client.reply(), None);
    assert!(server.wait().success());
}

#[test]
fn memory_and_lolwut_answer_people() {
    let server = Server::tremula(&["--threads", "1", "--max-memory", "1gb"]);
    let mut client = server.connect();
    let per_key = |client: &mut Connection| {
        let stats = elements(&client.call(&["memory", "stats"]));
        let at = stats
            .iter()
            .position(|name| name.ends_with(b"keys.bytes-per-key\r\n"));
        stats[at.expect("a figure") + 1].clone()
    };
    assert_eq!(per_key(&mut client), b":0\r\n", "without keys");
    client.call(&["set", "long", &"x".repeat(1000)]);
    assert_ne!(per_key(&mut client), b":0\r\n");
    client.text("set short 1");
    let size = |client: &mut Connection, key: &str| -> u64 {
        let reply = client.text(&format!("memory usage {key} samples 0"));
        reply
            .trim()
            .trim_start_matches(':')
            .parse()
            .expect("a number")
    };
    assert!((1000..1200).contains(&size(&mut client, "long")));
    assert!((20..200).contains(&size(&mut client, "short")));
    for (line, expected) in [
        ("memory doctor", "Nothing is wrong"),
        ("memory malloc-stats", "mimalloc"),
        ("memory stats", "dataset.bytes"),
        ("lolwut", "Tremula ver. "),
        ("lolwut version 5 30", "Tremula ver. "),
    ] {
        let text = client.text(line);
        assert!(text.contains(expected), "{line}: {text}");
    }
    assert_eq!(client.text("memory purge"), "+OK\r\n");
    let stats = elements(&client.call(&["memory", "stats"]));
    assert!(stats.len() > 20 && stats.len().is_multiple_of(2));
    client.text("hello 3");
    let stats = client.call(&["memory", "stats"]);
    assert!(stats.starts_with(b"%") && stats.windows(3).any(|part| part == b"\r\n,"));
}

/// `keyspace_hits` and `keyspace_misses` count the same lookups as in Redis.
#[test]
fn lookups_count_as_in_redis() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "1"]));
    let servers = [redis, tremula];
    let mut clients = servers.each_ref().map(Server::connect);
    for line in [
        "mset a 1 b 2 c text",
        "get a",
        "get x",
        "mget a x b",
        "strlen a",
        "strlen x",
        "getrange a 0 1",
        "getrange x 0 1",
        "exists a x a",
        "touch a x b",
        "type a",
        "type x",
        "copy a d",
        "copy a d replace",
        "copy x d",
        "object encoding a",
        "object refcount x",
        "object refcount a",
        "memory usage a",
        "getset a 2",
        "getset y 2",
        "getdel y",
        "getdel y",
        "set a 3 get",
        "set z 3 get",
        "set a 4 nx get",
        "set a 4 nx",
        "setnx a 4",
        "incr a",
        "append a 1",
        "setrange a 0 1",
        "incrbyfloat a 1",
        "keys *",
        "scan 0",
        "dbsize",
        "del a x",
    ] {
        let [theirs, ours] = clients.each_mut().map(|client| {
            client.text(line);
            let stats = client.info("stats");
            ["keyspace_hits", "keyspace_misses"].map(|field| stats[field].clone())
        });
        assert_eq!(ours, theirs, "hits and misses up to: {line}");
    }
}

/// A look at a key's type or presence is no use of the key, and `TOUCH` is one.
#[test]
fn looks_at_keys_are_no_uses() {
    let server = Server::tremula(&["--max-memory-policy", "allkeys-lfu"]);
    let mut client = server.connect();
    client.text("set key v");
    let mut used = |line: &str| {
        for _ in 0..300 {
            client.text(line);
        }
        let frequency = client.text("object freq key");
        frequency[1..].trim().parse::<u32>().expect("a frequency")
    };
    let before = used("ping");
    assert_eq!(["type key", "exists key"].map(&mut used), [before; 2]);
    assert!(used("touch key") > before);
}
