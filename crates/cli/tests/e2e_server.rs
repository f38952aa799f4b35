//! The real `tremula serve` as a process: how it starts and ends, what it refuses, and what clients
//! cannot make it do.

mod support;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use support::resp::{Connection, bulk, elements, encode};
use support::{PATIENCE, Server, eventually, root, run};

/// Runs `tremula serve` with arguments with which it exits at once.
fn serve(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    run(
        command.args(["serve", "--memory-only"]).args(arguments),
        b"",
    )
}

/// The standard error of a failure to start.
fn failure(arguments: &[&str]) -> String {
    let output = serve(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn texts(reply: &[u8]) -> Vec<String> {
    let text = |element: &Vec<u8>| String::from_utf8(bulk(element)).expect("text");
    elements(reply).iter().map(text).collect()
}

#[test]
fn it_says_in_one_line_where_it_is() {
    let server = Server::tremula(&["--threads", "2", "--engine", "locked"]);
    let expected = format!(
        "tremula {} ready on {} (engine locked, 2 threads, memory only)\n",
        env!("CARGO_PKG_VERSION"),
        server.address
    );
    assert_eq!(server.ready_line, expected);
    assert!(server.address.ip().is_loopback());
    assert_eq!(server.connect().text("PING"), "+PONG\r\n");
}

#[test]
fn the_lab_is_said_to_be_a_command_of_its_own() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    let output = run(command.args(["lab", "run", "ycsb", "--help"]), b"");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(
        text,
        "error: the lab is a command of its own; use: tremula-lab run ycsb --help\n"
    );
}

#[test]
fn both_signals_end_it_with_success() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::tremula(&[]);
        let mut idle = server.connect();
        assert_eq!(idle.text("PING"), "+PONG\r\n");
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "SIG{signal}");
        assert_eq!(idle.reply(), None);
    }
}

/// Would fail if the signal closed connections before their commands were answered: the replies are
/// far larger than the system's buffers, so most are not sent yet by then.
#[test]
fn commands_in_flight_get_their_replies() {
    const LENGTH: usize = 1 << 20;
    const COMMANDS: usize = 48;
    let mut server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    client.call(&[&b"SET"[..], b"long", &vec![b'x'; LENGTH]]);
    client.send(&encode(&["GET", "long"]).repeat(COMMANDS));
    assert_eq!(bulk(&client.reply().expect("a reply")).len(), LENGTH);
    server.signal("TERM");
    for _ in 1..COMMANDS {
        assert_eq!(bulk(&client.reply().expect("a reply")).len(), LENGTH);
    }
    assert_eq!(client.reply(), None);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_taken_port_is_one_clear_line() {
    let server = Server::tremula(&[]);
    let text = failure(&["--port", &server.port()]);
    assert_eq!(text.lines().count(), 1, "{text}");
    let expected = format!("error: cannot listen on {}: ", server.address);
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.contains("in use"), "{text}");
}

#[test]
fn bad_flags_are_named() {
    for (arguments, named) in [
        (&["--nonsense"][..], "--nonsense"),
        (&["--threads", "0"], "--threads"),
        (&["--threads", "100000"], "100000 is not in 1..=1024"),
        (&["--max-clients", "0"], "0 is not in 1..=1000000"),
        (&["--max-argument", "0"], "it is at least 64 and at most"),
        (&["--max-arguments", "1"], "1 is not in 8..=2147483647"),
        (&["--max-query-buffer", "1"], "it is at least 1kb"),
        (&["--max-output-buffer", "10"], "it is at least 1kb"),
        (
            &["--timeout", "31536001"],
            "31536001 is not in 0..=31536000",
        ),
        (
            &["--deny-commands", "get,nothing"],
            "there is no command 'nothing'",
        ),
        (&["--disable", "strings"], "possible values: ets, mailbox"),
        (
            &["--engine", "btree"],
            "unknown engine 'btree'; there are: aspen ca_tree lfca_tree b_tree art masstree locked",
        ),
        (
            &["--engine", "skip_list"],
            "unknown engine 'skip_list'; there are: aspen ca_tree lfca_tree b_tree art masstree locked",
        ),
        (&["--bind", "nowhere"], "--bind"),
        (&["--max-argument", "1tb"], "'1tb' is not a number of bytes"),
        (&["--load-key", "a"], "--load"),
    ] {
        let text = failure(arguments);
        assert!(text.starts_with("error: "), "{text}");
        assert!(text.contains(named), "{text}");
    }
}

#[test]
fn one_client_too_many_is_told_so() {
    let server = Server::tremula(&["--max-clients", "2", "--reserved-clients", "0"]);
    let mut first = server.connect();
    let mut second = server.connect();
    assert_eq!(first.text("PING"), "+PONG\r\n");
    assert_eq!(second.text("PING"), "+PONG\r\n");
    let mut third = server.connect();
    let expected = b"-ERR max number of clients reached\r\n".to_vec();
    assert_eq!(third.reply(), Some(expected));
    assert_eq!(third.reply(), None);
    assert_eq!(second.text("PING"), "+PONG\r\n");
    drop(first);
    eventually("a free place", || {
        let mut again = server.connect();
        again.send(&encode(&["PING"]));
        again.reply().is_some_and(|reply| reply == b"+PONG\r\n")
    });
}

#[test]
fn a_protocol_error_closes_its_connection_and_no_other() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut other = server.connect();
    let mut broken = server.connect();
    broken.send(b"PING\r\n*1\r\n:1\r\nPING\r\n");
    assert_eq!(broken.reply().as_deref(), Some(&b"+PONG\r\n"[..]));
    let error = &b"-ERR Protocol error: expected '$', got ':'\r\n"[..];
    assert_eq!(broken.reply().as_deref(), Some(error));
    assert_eq!(broken.reply(), None);
    assert_eq!(other.text("PING"), "+PONG\r\n");
}

#[test]
fn a_request_beyond_a_limit_is_refused() {
    let server = Server::tremula(&[
        "--max-argument",
        "1kb",
        "--max-arguments",
        "10",
        "--max-query-buffer",
        "8kb",
    ]);
    for (input, error) in [
        ("*1\r\n$1025\r\n".to_owned(), "invalid bulk length"),
        ("*11\r\n".to_owned(), "invalid multibulk length"),
        (
            format!(
                "*10\r\n{}",
                format!("$1024\r\n{}\r\n", "x".repeat(1024)).repeat(9)
            ),
            "query buffer limit of 8192 bytes exceeded",
        ),
    ] {
        let mut client = server.connect();
        client.send(input.as_bytes());
        let expected = format!("-ERR Protocol error: {error}\r\n");
        assert_eq!(client.reply(), Some(expected.into_bytes()));
        assert_eq!(client.reply(), None);
    }
    let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    let mut client = server.connect();
    assert_eq!(
        client.text(&format!("SET a {}", "x".repeat(1000))),
        "+OK\r\n"
    );
    assert_eq!(
        client.text(&format!("APPEND a {}", "x".repeat(25))),
        too_long
    );
    assert_eq!(client.text("SETRANGE a 1024 x"), too_long);
    assert_eq!(client.text("STRLEN a"), ":1000\r\n");
}

#[test]
fn a_reply_beyond_the_limit_is_an_error_and_the_connection_goes_on() {
    let server = Server::tremula(&["--max-output-buffer", "100kb"]);
    let mut client = server.connect();
    for number in 0..200 {
        let key = format!("key:{number:03}:{}", "k".repeat(600));
        client.call(&["SET", &key, &"v".repeat(600)]);
    }
    let error =
        b"-ERR reply exceeds the output buffer limit of 102400 bytes (--max-output-buffer)\r\n";
    let mget: Vec<_> = std::iter::once("MGET".to_owned())
        .chain((0..200).map(|number| format!("key:{number:03}:{}", "k".repeat(600))))
        .collect();
    for command in [
        "KEYS *".split(' ').map(str::to_owned).collect(),
        "RANGE - +"
            .split(' ')
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    ] {
        let mut client = server.connect();
        client.send(&encode(&["PING"]));
        client.send(&encode(&command));
        client.send(&encode(&["PING"]));
        assert_eq!(client.reply().as_deref(), Some(&b"+PONG\r\n"[..]));
        assert_eq!(
            client.reply().as_deref(),
            Some(&error[..]),
            "{}",
            command[0]
        );
        assert_eq!(client.reply().as_deref(), Some(&b"+PONG\r\n"[..]));
    }
    // Values of MGET are sent as they are read, and none of them is too long.
    client.send(&encode(&mget));
    let values = client.reply().expect("values");
    assert_eq!(elements(&values).len(), 200);
    // A page of SCAN ends early instead.
    let mut cursor = "0".to_owned();
    let mut found = 0;
    loop {
        let page = elements(&client.call(&["SCAN", &cursor, "COUNT", "1000"]));
        cursor = String::from_utf8(bulk(&page[0])).expect("a number");
        found += elements(&page[1]).len();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found, 200);
}

/// Would fail if the server went on running the commands of a client that reads no replies.
#[test]
fn a_client_that_does_not_read_takes_no_memory_and_no_time_of_others() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut other = server.connect();
    other.call(&[&b"SET"[..], b"long", &vec![b'x'; 1 << 20]]);
    let before = server.resident_kib();
    let mut slow: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send(&encode(&["GET", "long"]).repeat(500));
    }
    for _ in 0..100 {
        assert_eq!(other.text("PING"), "+PONG\r\n");
        thread::sleep(Duration::from_millis(3));
    }
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 200 << 10, "{grown} KiB more, of 2 GiB of replies");
    for client in &mut slow {
        for _ in 0..500 {
            assert_eq!(client.reply().expect("a reply").len(), (1 << 20) + 12);
        }
    }
}

#[test]
fn declared_lengths_take_no_memory() {
    let server = Server::tremula(&[]);
    let mut other = server.connect();
    assert_eq!(other.text("PING"), "+PONG\r\n");
    let before = server.resident_kib();
    let mut clients: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(b"*1048576\r\n$536870912\r\nabc");
    }
    eventually("all are connected", || {
        other.text("INFO clients").contains("connected_clients:101")
    });
    for _ in 0..20 {
        assert_eq!(other.text("PING"), "+PONG\r\n");
    }
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more, of 50 GiB declared");
}

#[test]
fn clients_from_elsewhere_are_refused_in_protected_mode() {
    // Sends no packet. It finds the address that the machine would send from.
    let outward = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    let bind = ["--bind", "0.0.0.0"];
    let server = Server::tremula(&bind);
    let open = Server::tremula(&[&bind[..], &["--protected-mode", "no"]].concat());
    let at =
        |server: &Server, ip: IpAddr| Connection::new(SocketAddr::new(ip, server.address.port()));
    let local: IpAddr = [127, 0, 0, 1].into();
    assert_eq!(at(&server, local).text("PING"), "+PONG\r\n");
    match outward.map(|address| address.ip()) {
        Ok(ip) if !ip.is_loopback() && !ip.is_unspecified() => {
            let denied = at(&server, ip).reply().expect("a refusal");
            assert!(denied.starts_with(b"-DENIED "), "{}", denied.escape_ascii());
            let mut operator = at(&server, local);
            assert_eq!(operator.text("CONFIG SET protected-mode no"), "+OK\r\n");
            assert_eq!(at(&server, ip).text("PING"), "+PONG\r\n");
            assert_eq!(operator.text("CONFIG SET protected-mode yes"), "+OK\r\n");
            let denied = at(&server, ip).reply().expect("a refusal");
            assert!(denied.starts_with(b"-DENIED "), "{}", denied.escape_ascii());
            assert_eq!(at(&open, ip).text("PING"), "+PONG\r\n");
        }
        _ => println!("this machine has only loopback; nothing can come from elsewhere"),
    }
}

#[test]
fn ranges_and_neighbours_follow_the_order_of_the_keys() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    for (number, key) in ["a", "b", "b1", "c", "d"].into_iter().enumerate() {
        client.call(&["SET", key, &number.to_string()]);
    }
    let range = |client: &mut Connection, command: &str| {
        texts(&client.call(&command.split(' ').collect::<Vec<_>>()))
    };
    for (command, expected) in [
        ("RANGE - +", &["a", "b", "b1", "c", "d"][..]),
        ("RANGE [b (d", &["b", "b1", "c"]),
        ("RANGE (b +", &["b1", "c", "d"]),
        ("RANGE - + LIMIT 2", &["a", "b"]),
        ("RANGE - + LIMIT 0", &[]),
        ("RANGE - + limit -1 rev", &[]),
        ("RANGE + - REV LIMIT 2", &["d", "c"]),
        ("RANGE (d [b rev", &["c", "b1", "b"]),
        ("RANGE + -", &[]),
        ("RANGE [z [a", &[]),
        ("RANGE [b [b1 WITHVALUES", &["b", "1", "b1", "2"]),
        ("FIRST", &["a", "0"]),
        ("LAST", &["d", "4"]),
        ("NEXT b", &["b1", "2"]),
        ("NEXT bb", &["c", "3"]),
        ("PREV a1", &["a", "0"]),
    ] {
        assert_eq!(range(&mut client, command), expected, "{command}");
    }
    assert_eq!(client.text("NEXT d"), "*-1\r\n");
    assert_eq!(client.text("PREV a"), "*-1\r\n");
    assert_eq!(
        client.text("RANGE a b"),
        "-ERR min or max not valid string range item\r\n"
    );
    assert_eq!(
        client.text("RANGE - + LIMIT x"),
        "-ERR value is not an integer or out of range\r\n"
    );
    assert_eq!(client.text("RANGE - + LIMIT"), "-ERR syntax error\r\n");
    assert_eq!(client.text("DELRANGE (a [c"), ":3\r\n");
    assert_eq!(client.text("DELRANGE + -"), ":0\r\n");
    client.text("HELLO 3");
    assert_eq!(
        client.text("RANGE - + WITHVALUES"),
        "*2\r\n*2\r\n$1\r\na\r\n$1\r\n0\r\n*2\r\n$1\r\nd\r\n$1\r\n4\r\n"
    );
    assert_eq!(client.text("NEXT d"), "_\r\n");
    let shape = client.text("SHAPE");
    assert!(
        shape.starts_with('%') && shape.contains("$6\r\nengine\r\n$"),
        "{shape}"
    );
    assert_eq!(client.text("FLUSHDB"), "+OK\r\n");
    assert_eq!(client.text("FIRST"), "_\r\n");
}

/// With more keys than one batch, the options of a range mean the same with `SNAPSHOT` in both
/// versions of the protocol, and the copies are counted and limited.
#[test]
fn snapshots_show_what_ranges_show_and_are_counted_and_limited() {
    const KEYS: usize = 2_500;
    let server = Server::tremula(&["--max-snapshot", "2500"]);
    let mut client = server.connect();
    let mut fill = vec!["MSET".to_owned()];
    fill.extend((0..KEYS).flat_map(|number| [format!("k{number:04}"), number.to_string()]));
    client.call(&fill);
    let options = [
        "",
        " LIMIT 7",
        " LIMIT 2000",
        " LIMIT -1",
        " WITHVALUES",
        " withvalues limit 9",
    ];
    for protocol in ["2", "3"] {
        client.text(&format!("HELLO {protocol}"));
        for options in options {
            for bounds in ["- +", "(k0007 [k2300", "[k0100 (k0100", "+ -"] {
                let plain = client.text(&format!("RANGE {bounds}{options}"));
                let copied = client.text(&format!("RANGE {bounds} SNAPSHOT{options}"));
                assert_eq!(plain, copied, "{bounds} {options}");
                let (low, high) = bounds.split_once(' ').expect("two bounds");
                let plain = client.text(&format!("RANGE {high} {low} REV{options}"));
                let copied = client.text(&format!("RANGE {high} {low}{options} snapshot rev"));
                assert_eq!(plain, copied, "{bounds} {options}, reversed");
            }
        }
    }
    let figure = |client: &mut Connection, name: &str| -> u64 {
        let info = client.text("INFO stats");
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.strip_prefix(':'));
        number.expect("the figure").parse().expect("a number")
    };
    let (taken, copied) = (
        figure(&mut client, "snapshots_taken"),
        figure(&mut client, "snapshot_keys_copied"),
    );
    client.text("RANGE [k0000 (k0030 SNAPSHOT");
    assert_eq!(figure(&mut client, "snapshots_taken"), taken + 1);
    assert_eq!(figure(&mut client, "snapshot_keys_copied"), copied + 30);
    client.text("SET l one-more");
    assert_eq!(
        client.text("RANGE + - REV SNAPSHOT"),
        "-ERR the range has more than 2500 keys, the limit of a snapshot (--max-snapshot); \
         ask for a smaller range or a LIMIT, or leave SNAPSHOT out\r\n"
    );
    assert_eq!(figure(&mut client, "snapshots_refused"), 1);
    assert_eq!(figure(&mut client, "snapshot_keys_held"), 0);
    assert!(
        client
            .text("RANGE + - REV SNAPSHOT LIMIT 2500")
            .starts_with("*2500\r\n")
    );
    // This way only what is written meanwhile is copied before it is read.
    assert!(client.text("RANGE - + SNAPSHOT").starts_with("*2501\r\n"));
    assert_eq!(figure(&mut client, "snapshot_keys_held"), 0);
    assert!(client.text("RANGE - +").starts_with("*2501\r\n"));
    assert_eq!(
        client.text("CONFIG GET max-snapshot"),
        "%1\r\n$12\r\nmax-snapshot\r\n$4\r\n2500\r\n"
    );
}

/// Increments would be lost if a read-modify-write were not one step.
#[test]
fn counters_lose_nothing_under_contention() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 2_000;
    let server = Server::tremula(&["--threads", "4", "--gather", "no"]);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                let commands = [encode(&["INCR", "n"]), encode(&["APPEND", "s", "x"])].concat();
                client.send(&commands.repeat(ROUNDS));
                for _ in 0..2 * ROUNDS {
                    assert!(client.reply().expect("a reply").starts_with(b":"));
                }
            });
        }
    });
    let mut client = server.connect();
    let total = CLIENTS * ROUNDS;
    assert_eq!(
        bulk(&client.call(&["GET", "n"])),
        total.to_string().as_bytes()
    );
    assert_eq!(client.text("STRLEN s"), format!(":{total}\r\n"));
}

/// The oracle: keys named `stay:` are present from before the first scan until after the last, so
/// each scan must return all of them, while other keys between them come and go.
#[test]
fn scans_miss_nothing_that_stays() {
    const STAYING: usize = 300;
    let server = Server::tremula(&["--threads", "2", "--gather", "no"]);
    let mut client = server.connect();
    for number in 0..STAYING {
        client.call(&["SET", &format!("stay:{number:03}:x"), "v"]);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut client = server.connect();
                for round in 0.. {
                    if done.load(Relaxed) {
                        return;
                    }
                    let number = round * 7 % STAYING;
                    let key = format!("stay:{number:03}:w{writer}:{}", round % 5);
                    client.call(&["SET", &key, "noise"]);
                    let gone = format!(
                        "stay:{:03}:w{writer}:{}",
                        (round + 150) * 7 % STAYING,
                        round % 5
                    );
                    client.call(&["DEL", &gone]);
                }
            });
        }
        let scanners: Vec<_> = (0..4)
            .map(|scanner| {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.connect();
                    let count = [1, 3, 10, 64][scanner].to_string();
                    for _ in 0..5 {
                        scan_once(&mut client, &count, STAYING);
                    }
                })
            })
            .collect();
        for scanner in scanners {
            scanner.join().expect("a scan that misses nothing");
        }
        done.store(true, Relaxed);
    });
}

fn scan_once(client: &mut Connection, count: &str, staying: usize) {
    let mut seen = vec![false; staying];
    let mut cursor = "0".to_owned();
    loop {
        let page = elements(&client.call(&["SCAN", &cursor, "COUNT", count, "MATCH", "stay:*:x"]));
        for key in elements(&page[1]) {
            let key = String::from_utf8(bulk(&key)).expect("text");
            let number: usize = key[5..8].parse().expect("a number");
            seen[number] = true;
        }
        cursor = String::from_utf8(bulk(&page[0])).expect("a number");
        cursor.parse::<u64>().expect("a cursor of 64 bits");
        if cursor == "0" {
            break;
        }
    }
    assert!(seen.iter().all(|seen| *seen));
}

#[test]
fn the_example_data_loads_and_answers_a_range() {
    let file = root().join("examples/data/unicode-names.tsv");
    let server = Server::tremula(&["--load", file.to_str().expect("a path in UTF-8")]);
    let mut client = server.connect();
    assert_eq!(client.text("DBSIZE"), ":32177\r\n");
    let arrows = client.call(&["RANGE", "[U+002190", "[U+0021FF", "WITHVALUES"]);
    let arrows = texts(&arrows);
    assert_eq!(arrows.len(), 2 * 112, "the block of arrows");
    assert_eq!(
        arrows[..4],
        [
            "U+002190",
            "LEFTWARDS ARROW\tSm",
            "U+002191",
            "UPWARDS ARROW\tSm"
        ]
    );
    assert!(
        arrows
            .iter()
            .skip(1)
            .step_by(2)
            .all(|name| name.contains("ARROW") || name.contains("HARPOON"))
    );
}

/// A file that is removed when dropped.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("tremula-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::File::create(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("a file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn every_format_loads() {
    let tsv = File::new("a.tsv", "k\t1\t2\n");
    let csv = File::new("a.csv", "id,name\n7,\"a, b\"\n");
    let json = File::new("a.data", "{\"id\":\"k\",\"v\":{\"n\":1}}\n");
    for (arguments, key, value) in [
        (&["--load", tsv.path()][..], "k", "1\t2"),
        (
            &[
                "--load",
                csv.path(),
                "--load-key",
                "name",
                "--load-value",
                "id",
            ],
            "a, b",
            "7",
        ),
        (&["--load", csv.path(), "--load-header"], "7", "a, b"),
        (
            &[
                "--load",
                json.path(),
                "--load-format",
                "jsonl",
                "--load-key",
                "id",
                "--load-value",
                "v",
            ],
            "k",
            "{\"n\":1}",
        ),
    ] {
        let server = Server::tremula(arguments);
        let mut client = server.connect();
        assert_eq!(bulk(&client.call(&["GET", key])), value.as_bytes());
        assert_eq!(client.text("DBSIZE"), ":1\r\n");
    }
}

#[test]
fn a_bad_file_is_told_with_its_line() {
    let tsv = File::new("b.tsv", "a\tb\n\nc\n");
    let csv = File::new("b.csv", "a,b\nc,d,e\n");
    let json = File::new("b.jsonl", "{\"key\":1,\"v\":2}\n{\"key\":\n");
    let unknown = File::new("b.data", "");
    for (file, told) in [
        (tsv.path(), ":3: 1 column, expected at least 2\n"),
        (csv.path(), ":2: 3 columns, expected 2 as before\n"),
        (json.path(), ":2: column 7: EOF while parsing a value\n"),
    ] {
        assert_eq!(
            failure(&["--port", "0", "--load", file]),
            format!("error: {file}{told}")
        );
    }
    let text = failure(&["--port", "0", "--load", unknown.path()]);
    assert!(text.contains("--load-format"), "{text}");
    let text = failure(&["--port", "0", "--load", "/nowhere.tsv"]);
    assert!(
        text.starts_with("error: cannot read /nowhere.tsv: "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// A cut anywhere in the middle of a command must not change what it means.
#[test]
fn a_command_may_come_a_byte_at_a_time() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let input = [encode(&["SET", "key", "value"]), b"get key\r\n".to_vec()].concat();
    for byte in input {
        stream.write_all(&[byte]).expect("it is taken");
        thread::sleep(Duration::from_millis(1));
    }
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).expect("the replies");
    assert_eq!(&reply, b"+OK\r\n$5\r\nvalue\r\n");
}
