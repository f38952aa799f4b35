//! Keys that get other names, go to other databases and come from other servers, beside a real
//! Redis 7.0.

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use support::resp::{Connection, bulk, encode};
use support::{Server, eventually};

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Compared byte for byte.
const SCRIPT: &[&str] = &[
    "set a 1",
    "rename a b",
    "get a",
    "get b",
    "rename a b",
    "rename b b",
    "rename nope nope",
    "set c 3",
    "rename b c",
    "get c",
    "dbsize",
    "rename a",
    "renamenx c d",
    "renamenx nope d",
    "renamenx nope nope",
    "renamenx d d",
    "set e 5",
    "renamenx d e",
    "mget d e",
    "move d 9",
    "move d 9",
    "move nope 9",
    "move e 0",
    "move e 16",
    "move e -1",
    "move e x",
    "move e 99999999999",
    "select 9",
    "get d",
    "set e other",
    "select 0",
    "move e 9",
    "get e",
    "copy e f",
    "copy e f",
    "copy e f replace",
    "copy e e",
    "copy e e db 0",
    "copy e e db 9",
    "copy e e db 9 replace",
    "copy nope f replace",
    "copy e f db x",
    "copy e f nope",
    "psetex p 100000000 v",
    "rename p q",
    "pexpiretime p",
    "persist q",
    "persist q",
    "setex old 1000 x",
    "set new y",
    "rename new old",
    "ttl old",
    "msetnx m1 1 m2 2",
    "msetnx m2 3 m3 4",
    "mget m1 m2 m3",
    "msetnx m4 1 m4 2",
    "get m4",
    "msetnx m5",
    "msetnx m5 1 m6",
    "flushdb",
    "randomkey",
    "randomkey x",
    "set only 1",
    "randomkey",
    "set l1 ohmytext",
    "set l2 mynewtext",
    "lcs l1 l2",
    "lcs l1 l2 len",
    "lcs l1 l2 idx",
    "lcs l1 l2 idx minmatchlen 4",
    "lcs l1 l2 idx minmatchlen -4",
    "lcs l1 l2 idx minmatchlen 4 withmatchlen",
    "lcs l1 l2 idx withmatchlen",
    "lcs l1 l2 len idx",
    "lcs l1 l2 nope",
    "lcs l1 l2 idx minmatchlen",
    "lcs l1 l2 idx minmatchlen x",
    "lcs l1 nope",
    "lcs l1 nope len",
    "lcs nope nope idx",
    "lcs l1 l1 idx",
    "lcs l1",
    "set n 10",
    "dump n",
    "set n -300",
    "dump n",
    "set n 70000",
    "dump n",
    "set n 007",
    "dump n",
    "set n abc",
    "dump n",
    "dump nope",
    "dump",
    "restore r 0 nope",
    "restore n 0 nope",
    "restore r x nope",
    "restore r -1 nope",
    "restore r 0 nope freq 256",
    "restore r 0 nope freq x",
    "restore r 0 nope idletime -1",
    "restore r 0 nope idletime 1 freq 1",
    "restore r 0 nope nope",
    "restore r 0",
    "command info rename renamenx move copy randomkey msetnx lcs dump restore",
    "command getkeys rename a b",
    "command getkeys lcs a b",
    "command getkeys restore a 0 x",
];

#[test]
fn replies_equal_those_of_redis() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "2"]));
    let (mut theirs, mut ours) = (redis.connect(), tremula.connect());
    let mut different = Vec::new();
    for line in SCRIPT {
        let [expected, found] = [&mut theirs, &mut ours]
            .map(|client| client.call(&words(line)).escape_ascii().to_string());
        if expected != found {
            different.push(format!("{line}\n  {expected}\n  {found}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Values go both ways between the servers, also such as Redis compresses.
#[test]
fn payloads_are_read_by_both() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "1"]));
    let (mut theirs, mut ours) = (redis.connect(), tremula.connect());
    let values: [&[u8]; 12] = [
        b"",
        b"0",
        b"-1",
        b"127",
        b"-32768",
        b"2147483647",
        b"2147483648",
        b"-0",
        b"\xff\x00",
        &[b'a'; 63],
        &[b'b'; 16384],
        &[b'c'; 3_000_000],
    ];
    for value in values {
        for is_ours in [false, true] {
            let (from, to) = match is_ours {
                false => (&mut theirs, &mut ours),
                true => (&mut ours, &mut theirs),
            };
            assert_eq!(from.call(&[&b"set"[..], b"k", value]), b"+OK\r\n");
            let payload = bulk(&from.call(&[&b"dump"[..], b"k"]));
            to.call(&[&b"del"[..], b"k"]);
            let restore = |more: &[&str]| -> Vec<Vec<u8>> {
                let request = [&b"restore"[..], b"k", b"0", &payload];
                let more = more.iter().map(|word| word.as_bytes());
                request
                    .into_iter()
                    .chain(more)
                    .map(<[u8]>::to_vec)
                    .collect()
            };
            assert_eq!(to.call(&restore(&[])), b"+OK\r\n");
            assert_eq!(bulk(&to.call(&[&b"get"[..], b"k"])), value);
            assert!(to.call(&restore(&[])).starts_with(b"-BUSYKEY"));
            assert_eq!(to.call(&restore(&["replace", "freq", "9"])), b"+OK\r\n");
            let mut damaged = payload.clone();
            damaged[0] ^= 1;
            let request: [&[u8]; 5] = [b"restore", b"k", b"0", &damaged, b"replace"];
            let refused = to.call(&request);
            assert!(
                refused.starts_with(b"-ERR DUMP payload"),
                "{}",
                refused.escape_ascii()
            );
        }
    }
    theirs.call(&["rpush", "list", "x"]);
    let payload = bulk(&theirs.call(&["dump", "list"]));
    let refused = ours.call(&[&b"restore"[..], b"l", b"0", &payload]);
    assert_eq!(
        refused,
        b"-ERR the payload holds a value of the type list, and there are only strings\r\n"
    );
    // With a time.
    ours.call(&["set", "k", "v"]);
    let payload = bulk(&ours.call(&["dump", "k"]));
    for (ttl, more, is_there) in [
        ("100000", &[][..], true),
        ("1", &[&b"absttl"[..]], false),
        ("4102444800000", &[&b"absttl"[..]], true),
    ] {
        let request = [
            &[&b"restore"[..], b"t", ttl.as_bytes(), &payload, b"replace"],
            more,
        ]
        .concat();
        assert_eq!(ours.call(&request), b"+OK\r\n", "{ttl}");
        let left = ours.text("pttl t");
        assert_eq!(!left.starts_with(":-"), is_there, "{ttl}: {left}");
    }
}

/// While threads rename a key to and fro, exactly one of its names is there at any time; values
/// that go between two databases, in both directions at once, are neither lost nor doubled, and
/// nobody waits for ever.
#[test]
fn a_value_is_in_one_place_at_any_time() {
    let server = Server::tremula(&["--threads", "3", "--gather", "no"]);
    let mut setup = server.connect();
    setup.text("set a v");
    for number in 0..20 {
        setup.text(&format!("set m{number} v"));
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = [
            ("rename a b", "rename b a"),
            ("renamenx a b", "renamenx b a"),
        ]
        .into_iter()
        .map(|(there, back)| {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                for _ in 0..1500 {
                    // One of the two may be refused, because the other thread was first.
                    client.text(there);
                    client.text(back);
                }
            })
        })
        .collect();
        let movers: Vec<_> = [(0, 1), (1, 0), (0, 1)]
            .into_iter()
            .map(|(from, to)| {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.connect();
                    client.text(&format!("select {from}"));
                    for round in 0..1500 {
                        client.text(&format!("move m{} {to}", round % 20));
                    }
                })
            })
            .collect();
        let (server, over) = (&server, &is_over);
        let reader = scope.spawn(move || {
            let mut client = server.connect();
            let mut looks = 0;
            while !over.load(Relaxed) {
                assert_eq!(client.text("exists a b"), ":1\r\n");
                looks += 1;
            }
            looks
        });
        for thread in writers.into_iter().chain(movers) {
            thread.join().expect("no panic");
        }
        is_over.store(true, Relaxed);
        assert!(reader.join().expect("no panic") > 0);
    });
    let mut places = BTreeSet::new();
    for database in 0..2 {
        setup.text(&format!("select {database}"));
        for number in 0..20 {
            if setup.text(&format!("exists m{number}")) == ":1\r\n" {
                assert!(places.insert(number), "m{number} twice");
            }
        }
    }
    assert_eq!(places.len(), 20);
}

/// Values in the cache come out of it.
#[test]
fn cached_values_get_other_names() {
    let cache = ["--cache", "64mb", "--cache-from", "1"];
    let server = Server::tremula(&[&["--threads", "1"][..], &cache].concat());
    let mut client = server.connect();
    for (line, reply) in [
        ("append a text", ":4\r\n"),
        ("expire a 1000", ":1\r\n"),
        ("rename a b", "+OK\r\n"),
        ("get b", "$4\r\ntext\r\n"),
        ("append b more", ":8\r\n"),
        ("copy b c", ":1\r\n"),
        ("move b 3", ":1\r\n"),
        ("append c end", ":11\r\n"),
        ("get c", "$11\r\ntextmoreend\r\n"),
        ("renamenx c a", ":1\r\n"),
        ("exists a b c", ":1\r\n"),
        ("dump nope", "$-1\r\n"),
    ] {
        assert_eq!(client.text(line), reply, "{line}");
    }
    assert_ne!(client.text("ttl a"), ":-1\r\n");
}

/// Every key is as likely, also in an index of many leaves.
#[test]
fn random_keys_are_random() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    let keys = 3000;
    let load: Vec<u8> = (0..keys)
        .flat_map(|number| encode(&["set", &format!("key:{number:04}"), "v"]))
        .collect();
    client.send(&load);
    (0..keys).for_each(|_| drop(client.reply()));
    let mut tenths = [0; 10];
    let asked = 5000;
    for _ in 0..asked {
        let key = String::from_utf8(bulk(&client.call(&["randomkey"]))).expect("text");
        let number: usize = key[4..].parse().expect("a number");
        tenths[number * 10 / keys] += 1;
    }
    // Each gets 500 of 5000, and 100 more or fewer once in a million times.
    assert!(
        tenths.iter().all(|count| (390..=610).contains(count)),
        "{tenths:?}"
    );
    client.text("flushall");
    eventually("it is empty", || client.text("randomkey") == "$-1\r\n");
}

/// The version in the reply of `GETV`, which has this value.
fn version_of(client: &mut Connection, key: &str, value: &str) -> u64 {
    let reply = client.text(&format!("getv {key}"));
    let begin = format!("*2\r\n${}\r\n{value}\r\n:", value.len());
    let digits = reply
        .strip_prefix(&begin)
        .and_then(|rest| rest.strip_suffix("\r\n"));
    let digits = digits.unwrap_or_else(|| panic!("GETV {key}: {reply}"));
    digits.parse().expect("a number")
}

#[test]
fn a_version_changes_with_every_change_of_its_key_and_with_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = ["--cache", "8mb", "--cache-from", "20"];
    for is_kept in [false, true] {
        let server = if is_kept {
            Server::kept(directory.path(), &cache)
        } else {
            Server::tremula(&cache)
        };
        let mut client = server.connect();
        assert_eq!(client.text("getv k"), "*-1\r\n");
        for line in ["getv", "getv k other"] {
            let told = "-ERR wrong number of arguments for 'getv' command\r\n";
            assert_eq!(client.text(line), told);
        }
        let mut seen = BTreeSet::new();
        let mut last = 0;
        // The second value goes into the cache, where it is appended to.
        let long = [
            "0123456789",
            "0123456789abcdefghijklm",
            "0123456789abcdefghijklmno",
        ];
        for (line, value, changes) in [
            ("set k 0123456789", long[0], true),
            ("set k 0123456789", long[0], true),
            ("set k other nx", long[0], false),
            ("get k", long[0], false),
            ("touch k", long[0], false),
            ("set o 1", long[0], false),
            ("append k abcdefghijklm", long[1], true),
            ("append k no", long[2], true),
            ("getrange k 0 3", long[2], false),
            ("pexpireat k 99999999999999", long[2], true),
            ("pexpireat k 99999999999999", long[2], false),
            ("persist k", long[2], true),
            ("persist k", long[2], false),
            ("copy o k replace", "1", true),
            ("incr k", "2", true),
            ("incr o", "2", false),
            ("mset k 3 o 3 k 4", "4", true),
            ("rename k k", "4", false),
            ("delifeq k 3", "4", false),
        ] {
            let reply = client.text(line);
            assert!(!reply.starts_with('-'), "{line}: {reply}");
            let version = version_of(&mut client, "k", value);
            assert_eq!(seen.insert(version), changes, "{line}");
            assert!(changes || version == last, "{line}");
            assert!(
                version > last || !changes || !is_kept,
                "{line}: not in order"
            );
            last = version;
        }
        client.text("rename k l");
        assert_eq!(client.text("getv k"), "*-1\r\n");
        assert!(seen.insert(version_of(&mut client, "l", "4")));
        client.text("hello 3");
        assert_eq!(client.text("getv k"), "_\r\n");
        assert!(!seen.insert(version_of(&mut client, "l", "4")));
    }
}
