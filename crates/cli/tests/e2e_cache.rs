//! Large values that are appended to, in the cache of `tremula serve --cache`: compared with a real
//! `redis-server`, and with the cache full.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::process::Command;
use support::resp::{Connection, bulk, elements};
use support::{Server, run};

const STRATEGIES: [&str; 3] = ["threading", "local_set", "affinity"];

/// A command on one of few keys, mostly an append of up to 6 KB.
fn command(random: &mut StdRng) -> Vec<Vec<u8>> {
    let key = format!("key:{}", random.random_range(0..6));
    let words = |words: &[&str]| -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    };
    let length = *[0, 3, 700, 6000].choose(random).expect("some");
    let byte = random.random_range(b'a'..=b'z');
    let value = String::from_utf8(vec![byte; length]).expect("letters");
    let mut position = || random.random_range(-30_000..30_000_i32).to_string();
    let (first, last) = (position(), position());
    match random.random_range(0..40) {
        0..18 => words(&["APPEND", &key, &value]),
        18..24 => words(&["GETRANGE", &key, &first, &last]),
        24..27 => words(&["STRLEN", &key]),
        27..29 => words(&["GET", &key]),
        29 => words(&["SET", &key, &value]),
        30 => words(&[
            "SETRANGE",
            &key,
            &random.random_range(0..20_000).to_string(),
            &value,
        ]),
        31 => words(&["DEL", &key, "key:0"]),
        32 => words(&["SET", &key, &value, "XX", "GET"]),
        33 => words(&["GETSET", &key, &value]),
        34 => words(&["GETDEL", &key]),
        35 => words(&["MGET", &key, "key:1", "key:2"]),
        36 => words(&["INCR", &key]),
        37 => words(&["SETNX", &key, &value]),
        38 => words(&["EXISTS", &key, "key:3"]),
        _ => words(&["DBSIZE"]),
    }
}

/// Would fail if a value depended on where it is: in the index while it is short or was set, or in
/// the cache after an append.
#[test]
fn large_values_are_what_they_are_in_redis() {
    let redis = Server::redis();
    for strategy in STRATEGIES {
        let tremula = Server::tremula(&["--strategy", strategy, "--cache", "64mb"]);
        let mut connections = [redis.connect(), tremula.connect()];
        let mut random = StdRng::seed_from_u64(7);
        let flushed = connections
            .each_mut()
            .map(|connection| connection.text("FLUSHALL"));
        assert_eq!(flushed[0], flushed[1]);
        for step in 0..4000 {
            let command = command(&mut random);
            let [expected, reply] = connections
                .each_mut()
                .map(|connection| connection.call(&command));
            assert!(
                expected == reply,
                "{strategy}, step {step}: {} of {} bytes differs, {} and {} bytes",
                command[..command.len().min(2)].concat().escape_ascii(),
                command.last().map_or(0, Vec::len),
                expected.len(),
                reply.len()
            );
        }
    }
}

fn append(connection: &mut Connection, key: &str, value: &[u8]) -> String {
    let reply = connection.call(&[&b"APPEND"[..], key.as_bytes(), value]);
    String::from_utf8(reply).expect("a number")
}

/// A cache of 8 MiB in eight shards, and 32 MiB of values. Most values are evicted with their keys,
/// and the remaining ones are complete.
#[test]
fn the_least_recently_used_values_go_with_their_keys() {
    for strategy in STRATEGIES {
        let server = Server::tremula(&["--strategy", strategy, "--cache", "8mb"]);
        let mut client = server.connect();
        let piece = vec![b'x'; 32 * 1024];
        for key in 0..1024 {
            let reply = append(&mut client, &format!("key:{key}"), &piece);
            assert_eq!(reply, ":32768\r\n");
        }
        assert_eq!(client.text("STRLEN key:1023"), ":32768\r\n", "the last one");
        assert_eq!(client.text("EXISTS key:0"), ":0\r\n", "the first one");
        assert_eq!(client.text("GET key:0"), "$-1\r\n");
        let keys = elements(&client.call(&["KEYS", "*"]));
        assert!((16..=256).contains(&keys.len()), "{} keys", keys.len());
        assert_eq!(client.text("DBSIZE"), format!(":{}\r\n", keys.len()));
        for key in &keys {
            let value = bulk(&client.call(&[b"GET".to_vec(), bulk(key)]));
            assert_eq!(value, piece);
        }
        // A value that was set stays, because it is in the index.
        client.call(&[&b"SET"[..], b"set", &piece]);
        for key in 0..1024 {
            append(&mut client, &format!("other:{key}"), &piece);
        }
        assert_eq!(client.text("STRLEN set"), ":32768\r\n");
    }
}

/// A value that no shard of the cache has room for.
#[test]
fn a_value_too_large_for_the_cache_is_kept_in_the_index() {
    let server = Server::tremula(&["--cache", "1mb"]);
    let mut client = server.connect();
    let piece = vec![b'x'; 50_000];
    for count in 1..=20 {
        let reply = append(&mut client, "long", &piece);
        assert_eq!(reply, format!(":{}\r\n", count * 50_000));
    }
    let value = bulk(&client.call(&["GET", "long"]));
    assert!(value.len() == 1_000_000 && value.iter().all(|byte| *byte == b'x'));
}

#[test]
fn bad_options_are_refused() {
    for (arguments, told) in [
        (&["--cache", "1000"][..], "1048576"),
        (&["--cache", "much"], "'much'"),
        (&["--cache", "1mb", "--strategy", "sharing"], "'sharing'"),
        (&["--strategy", "affinity"], "--cache"),
        (&["--cache-from", "10"], "--cache"),
        (&["--cache", "1mb", "--cache-from", "-1"], "-1"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        let output = run(command.arg("serve").args(arguments), b"");
        let text = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text.contains(told), "{arguments:?}: {text}");
    }
}
