//! RANGECOUNT, EXPIRERANGE, COPYRANGE, MOVERANGE and SWAPDB; and the limit of `RANGE … SNAPSHOT`.

mod support;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use support::resp::encode;
use support::{Server, eventually};

#[test]
fn ranges_are_counted_and_changed_as_a_whole() {
    let server = Server::tremula(&["--threads", "1", "--max-atomic", "20"]);
    let mut client = server.connect();
    for number in 0..10 {
        client.text(&format!("set a:{number} {number}"));
    }
    for (line, reply) in [
        ("rangecount - +", ":10\r\n"),
        ("rangecount [a:3 (a:6", ":3\r\n"),
        ("rangecount (a:6 [a:3", ":0\r\n"),
        ("rangecount + -", ":0\r\n"),
        (
            "rangecount a b",
            "-ERR min or max not valid string range item\r\n",
        ),
        ("copyrange [a: (a; prefix a: b:", ":10\r\n"),
        ("rangecount [b: (b;", ":10\r\n"),
        ("get b:7", "$1\r\n7\r\n"),
        (
            "copyrange [a:9 [a:9 prefix a: b:",
            "-BUSYKEY Target key name already exists: 'b:9'\r\n",
        ),
        ("set a:9 nine", "+OK\r\n"),
        ("copyrange [a:8 [a:9 prefix a: b: replace", ":2\r\n"),
        ("get b:9", "$4\r\nnine\r\n"),
        ("moverange [b: (b; db 3", ":10\r\n"),
        ("rangecount [b: (b;", ":0\r\n"),
        ("moverange [a:0 [a:4 prefix a: a:0 db 3 replace", ":5\r\n"),
        ("dbsize", ":5\r\n"),
        ("select 3", "+OK\r\n"),
        (
            "keys a*",
            "*5\r\n$4\r\na:00\r\n$4\r\na:01\r\n$4\r\na:02\r\n$4\r\na:03\r\n$4\r\na:04\r\n",
        ),
        ("dbsize", ":15\r\n"),
        // Into itself: the names move up, one after the other.
        ("moverange [a: (a; prefix a:0 a:00", ":5\r\n"),
        ("get a:004", "$1\r\n4\r\n"),
        ("dbsize", ":15\r\n"),
        // Each name is that of the key behind it, which moves as well.
        ("mset x 1 xx 2 xxx 3", "+OK\r\n"),
        ("moverange [x (y prefix x xx", ":3\r\n"),
        (
            "mget x xx xxx xxxx",
            "*4\r\n$-1\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n",
        ),
        (
            "moverange [x [xxx prefix x xx",
            "-BUSYKEY Target key name already exists: 'xxxx'\r\n",
        ),
        ("del xx xxx xxxx", ":3\r\n"),
        (
            "moverange [a: [b:9 prefix a: c:",
            "-ERR a key of the range does not begin with the prefix: 'b:0'\r\n",
        ),
        ("dbsize", ":15\r\n"),
        (
            "moverange [a: (a; replace",
            "-ERR the keys would stay where they are: give another DB, or PREFIX old new\r\n",
        ),
        (
            "moverange [a: (a; db 16",
            "-ERR DB index is out of range\r\n",
        ),
        ("moverange [a: (a; db", "-ERR syntax error\r\n"),
        ("moverange [a: (a; nope", "-ERR syntax error\r\n"),
        ("expirerange [b: (b; 100000", ":10\r\n"),
        ("expirerange [b:0 [b:4 200000 gt", ":5\r\n"),
        ("expirerange [b: (b; 50000 gt", ":0\r\n"),
        (
            "expirerange [b: (b; 50000 nope",
            "-ERR Unsupported option nope\r\n",
        ),
        (
            "expirerange [b: (b; x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("expirerange [b:3 [b:5 0", ":3\r\n"),
        ("rangecount [b: (b;", ":7\r\n"),
        ("copyrange [b:0 [b:0 prefix b d", ":1\r\n"),
    ] {
        assert_eq!(client.text(line), reply, "{line}");
    }
    assert_ne!(client.text("ttl d:0"), ":-1\r\n", "the time goes along");
    for number in 0..30 {
        client.text(&format!("set m:{number} v"));
    }
    for line in [
        "expirerange [m: (m; 1000",
        "copyrange [m: (m; db 5",
        "moverange [m: (m; db 5",
        "swapdb 3 5",
        "swapdb 5 3",
    ] {
        let refused = client.text(line);
        let text = "-ERR the range has more than 20 keys, the limit of one step (--max-atomic)";
        assert!(refused.starts_with(text), "{refused}");
    }
    for line in [
        "expirerange - + 1",
        "copyrange - + db 5",
        "moverange - + db 5",
        "swapdb 0 5",
    ] {
        client.text("multi");
        let refused = client.text(line);
        assert!(
            refused.contains("because it is a step of its own"),
            "{refused}"
        );
        client.text("discard");
    }
    client.text("multi");
    client.text("rangecount [d: (d;");
    client.text("rangecount - +");
    let reply = client.text("exec");
    assert!(
        reply.starts_with("*2\r\n:1\r\n-ERR") && reply.contains("--max-atomic"),
        "{reply}"
    );
}

/// Values that lie in the cache by their names come out of it.
#[test]
fn cached_values_move() {
    let cache = ["--cache", "64mb", "--cache-from", "1"];
    let server = Server::tremula(&[&["--threads", "1"][..], &cache].concat());
    let mut client = server.connect();
    for (line, reply) in [
        ("append a:1 text", ":4\r\n"),
        ("append a:2 more", ":4\r\n"),
        ("moverange [a: (a; prefix a b db 2", ":2\r\n"),
        ("dbsize", ":0\r\n"),
        ("select 2", "+OK\r\n"),
        ("mget b:1 b:2", "*2\r\n$4\r\ntext\r\n$4\r\nmore\r\n"),
        ("append b:1 !", ":5\r\n"),
        ("get b:1", "$5\r\ntext!\r\n"),
        ("set b:3 three px 100000", "+OK\r\n"),
        ("swapdb 2 7", "+OK\r\n"),
        ("dbsize", ":0\r\n"),
        ("select 7", "+OK\r\n"),
        (
            "mget b:1 b:2 b:3",
            "*3\r\n$5\r\ntext!\r\n$4\r\nmore\r\n$5\r\nthree\r\n",
        ),
        ("append b:1 !", ":6\r\n"),
        ("persist b:3", ":1\r\n"),
    ] {
        assert_eq!(client.text(line), reply, "{line}");
    }
}

/// While a range goes to and fro between two databases, a transaction that looks at both finds all
/// of it in one of them.
#[test]
fn a_range_is_in_one_place_at_any_time() {
    let server = Server::tremula(&["--threads", "3", "--gather", "no"]);
    let mut setup = server.connect();
    for number in 0..50 {
        setup.text(&format!("set k:{number} v"));
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let mover = scope.spawn(|| {
            let mut client = server.connect();
            for _ in 0..150 {
                assert_eq!(client.text("moverange [k: (k; db 1"), ":50\r\n");
                client.text("select 1");
                assert_eq!(client.text("moverange [k: (k; db 0"), ":50\r\n");
                client.text("select 0");
                assert_eq!(client.text("swapdb 0 1"), "+OK\r\n");
                assert_eq!(client.text("swapdb 1 0"), "+OK\r\n");
            }
        });
        let reader = scope.spawn(|| {
            let mut client = server.connect();
            let mut looks = 0;
            while !is_over.load(Relaxed) || looks == 0 {
                for line in [
                    "multi",
                    "rangecount [k: (k;",
                    "select 1",
                    "rangecount [k: (k;",
                    "select 0",
                ] {
                    client.text(line);
                }
                let reply = client.text("exec");
                let places = [
                    "*4\r\n:50\r\n+OK\r\n:0\r\n+OK\r\n",
                    "*4\r\n:0\r\n+OK\r\n:50\r\n+OK\r\n",
                ];
                assert!(places.contains(&&reply[..]), "{reply}");
                looks += 1;
            }
        });
        mover.join().expect("no panic");
        is_over.store(true, Relaxed);
        reader.join().expect("no panic");
    });
}

/// What a step has moved is moved after a restart, too.
#[test]
fn moved_ranges_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = ["--threads", "1", "--durability", "always"];
    let mut server = Server::kept(directory.path(), &arguments);
    let mut client = server.connect();
    for number in 0..10 {
        client.text(&format!("set k:{number} {number}"));
    }
    assert_eq!(client.text("moverange [k: (k; prefix k n db 2"), ":10\r\n");
    client.text("multi");
    client.text("set x 1");
    client.text("select 2");
    client.text("del n:0 n:1");
    client.text("expirerange - + 1");
    client.text("discard");
    client.text("multi");
    client.text("set x 1");
    client.text("select 2");
    client.text("del n:0 n:1");
    assert_eq!(client.text("exec"), "*3\r\n+OK\r\n+OK\r\n:2\r\n");
    server.signal("KILL");
    server.wait();
    let server = Server::kept(directory.path(), &arguments);
    let mut client = server.connect();
    assert_eq!(client.text("keys *"), "*1\r\n$1\r\nx\r\n");
    client.text("select 2");
    assert_eq!(client.text("rangecount [n: (n;"), ":8\r\n");
    assert_eq!(client.text("get n:7"), "$1\r\n7\r\n");
}

/// What others change ahead of a range that is read at one moment is copied, and that is limited.
#[test]
fn a_snapshot_ends_when_too_much_is_written_ahead_of_it() {
    const KEYS: usize = 15_000;
    let server = Server::tremula(&["--max-snapshot", "100", "--threads", "1"]);
    let (mut reader, mut writer) = (server.connect(), server.connect());
    let mut write = vec!["MSET".to_owned()];
    // From the end on, where the reader comes last.
    let keys = (0..KEYS).rev();
    write.extend(keys.flat_map(|number| [format!("k{number:05}"), number.to_string()]));
    writer.call(&write);
    eventually("a snapshot is refused", || {
        writer.send(&encode(&write));
        let reply = reader.text("RANGE - + SNAPSHOT");
        writer.reply();
        if reply.starts_with('-') {
            assert_eq!(
                reply,
                "-ERR more than 100 keys were written while the range was read, the limit of a \
                 snapshot (--max-snapshot); ask for a smaller range or a LIMIT, or leave SNAPSHOT \
                 out\r\n"
            );
            return true;
        }
        assert!(reply.starts_with("*15000\r\n"));
        false
    });
    assert_eq!(reader.info("stats")["snapshot_keys_held"], "0");
    assert!(reader.text("RANGE - + SNAPSHOT").starts_with("*15000\r\n"));
}
