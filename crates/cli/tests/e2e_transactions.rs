//! MULTI, EXEC, DISCARD, WATCH and UNWATCH, beside a real Redis 7.0.

mod support;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use support::resp::{Connection, encode};
use support::{Server, eventually};

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Compared byte for byte. Before a line, `2:` sends it on another connection.
const SCRIPT: &[&str] = &[
    "multi",
    "set a 1",
    "incr a",
    "get a",
    "get nope",
    "incr nope nope",
    "exec",
    "multi",
    "set a 1",
    "incr a",
    "set b x",
    "incr b",
    "get a",
    "exec",
    "mget a b",
    "exec",
    "discard",
    "multi",
    "set a 9",
    "discard",
    "get a",
    "multi",
    "multi",
    "watch a",
    "set a 3",
    "exec",
    "get a",
    "multi",
    "nosuch x",
    "set a 4",
    "exec",
    "get a",
    "multi",
    "get",
    "exec",
    "multi",
    "discard",
    "multi",
    "exec",
    "multi",
    "select 3",
    "set c 3",
    "select 0",
    "get c",
    "move a 3",
    "exists a",
    "select 3",
    "get a",
    "rename a z",
    "copy z y db 5",
    "dbsize",
    "exec",
    "keys z",
    "select 5",
    "get y",
    "select 0",
    "multi",
    "mset x1 1 x2 2 x3 3",
    "msetnx x3 3 x4 4",
    "msetnx x5 5 x6 6",
    "mget x1 x2 x3 x4 x5 x6",
    "del x1 x2 nope",
    "exists x1 x3 x3",
    "touch x3 nope",
    "append x3 abc",
    "setrange x3 2 ZZ",
    "getrange x3 1 3",
    "strlen x3",
    "getset x3 new",
    "getdel x3",
    "getex x5 ex 1000",
    "persist x5",
    "expire x5 -1",
    "exists x5",
    "incrbyfloat f 1.5",
    "type f",
    "object encoding f",
    "dump f",
    "set l1 ohmytext",
    "set l2 mynewtext",
    "lcs l1 l2",
    "setnx l1 x",
    "set l1 x xx get",
    "set l1 y ifnope",
    "exec",
    "multi",
    "ping",
    "ping x",
    "echo x",
    "publish nobody x",
    "flushdb",
    "dbsize",
    "randomkey",
    "set k v",
    "keys *",
    "randomkey",
    "scan 0",
    "flushall",
    "dbsize",
    "exec",
    "unwatch",
    "watch",
    "watch w",
    "2:set w 1",
    "multi",
    "set q 1",
    "exec",
    "get q",
    "watch w",
    "multi",
    "set q 2",
    "exec",
    "get q",
    "watch w",
    "2:set w 1",
    "multi",
    "get q",
    "exec",
    "watch v w",
    "2:del w",
    "multi",
    "get q",
    "exec",
    "watch w",
    "2:set w 1",
    "unwatch",
    "multi",
    "get q",
    "exec",
    "watch w",
    "2:set w 1",
    "multi",
    "discard",
    "multi",
    "get q",
    "exec",
    "watch w",
    "2:expire w 1000",
    "multi",
    "get q",
    "exec",
    "watch w",
    "2:append w x",
    "multi",
    "get q",
    "exec",
    "watch w",
    "2:rename q q2",
    "multi",
    "get w",
    "exec",
    "watch w q2",
    "2:rename q2 w",
    "multi",
    "get w",
    "exec",
    "watch w",
    "2:flushall",
    "multi",
    "get w",
    "exec",
    "watch w",
    "set w mine",
    "multi",
    "get w",
    "exec",
    "select 4",
    "watch w",
    "select 0",
    "2:set w 5",
    "multi",
    "get w",
    "exec",
    "watch w",
    "2:get w",
    "multi",
    "set w 6",
    "get w",
    "exec",
    "watch w",
    "multi",
    "reset",
    "exec",
    "2:set w 7",
    "multi",
    "get w",
    "exec",
    "multi x",
    "exec x",
    "discard x",
    "unwatch x",
    "command getkeys watch a b",
    "command info multi exec discard watch unwatch",
    "config set maxmemory 1",
    "multi",
    "get w",
    "set w 9",
    "exec",
    "multi",
    "get w",
    "exec",
    "config set maxmemory 0",
    "get w",
];

#[test]
fn replies_equal_those_of_redis() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "2"]));
    for protocol in ["2", "3"] {
        let mut clients = [&redis, &tremula].map(|server| [server.connect(), server.connect()]);
        let mut different = Vec::new();
        for [client, _] in &mut clients {
            client.call(&["hello", protocol]);
            client.call(&["flushall"]);
        }
        for line in SCRIPT {
            let (at, line) = line.strip_prefix("2:").map_or((0, *line), |line| (1, line));
            let [expected, found] = [0, 1].map(|server| {
                let client: &mut Connection = &mut clients[server][at];
                client.call(&words(line)).escape_ascii().to_string()
            });
            if expected != found {
                different.push(format!("{line}\n  {expected}\n  {found}"));
            }
        }
        assert!(different.is_empty(), "{}", different.join("\n"));
    }
}

/// The numbers under keys, each a bulk string.
fn numbers(reply: &str) -> Vec<i64> {
    let lines = reply.split("\r\n");
    lines.filter_map(|line| line.parse().ok()).collect()
}

/// Coins go from account to account by transactions of all kinds, in two databases; a client that
/// reads all accounts in one transaction always finds the same sum, and nobody waits for ever.
#[test]
fn transactions_of_many_clients_are_atomic() {
    let server = Server::tremula(&["--threads", "3", "--gather", "no"]);
    let mut setup = server.connect();
    const ACCOUNTS: usize = 8;
    for database in 0..2 {
        setup.text(&format!("select {database}"));
        for account in 0..ACCOUNTS {
            setup.text(&format!("set a{account} 100"));
        }
    }
    let is_over = AtomicBool::new(false);
    let read: Vec<String> = {
        let all: Vec<String> = (0..ACCOUNTS).map(|account| format!("a{account}")).collect();
        let all = all.join(" ");
        [
            "multi",
            "select 1",
            &format!("mget {all}"),
            "select 0",
            &format!("mget {all}"),
            "exec",
        ]
        .map(str::to_owned)
        .into()
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.connect();
                    for round in 0..600 {
                        let (from, to) = ((round * 7 + writer) % ACCOUNTS, (round * 3) % ACCOUNTS);
                        let (one, other) = (round % 2, (round / 2) % 2);
                        if writer == 0 {
                            // With what was read before, unless somebody was faster.
                            client.text("select 0");
                            client.text(&format!("watch a{from} a{to}"));
                            if from == to {
                                client.text("unwatch");
                                continue;
                            }
                            let reply = client.text(&format!("mget a{from} a{to}"));
                            let before = numbers(&reply);
                            let (some, more) = (before[0] - 3, before[1] + 3);
                            for line in [
                                "multi",
                                &format!("set a{from} {some}"),
                                &format!("set a{to} {more}"),
                                "exec",
                            ] {
                                client.text(line);
                            }
                            continue;
                        }
                        // As a pipeline.
                        let lines = [
                            "multi".to_owned(),
                            format!("select {one}"),
                            format!("decrby a{from} 5"),
                            format!("select {other}"),
                            format!("incrby a{to} 5"),
                            "exec".to_owned(),
                        ];
                        let request: Vec<u8> =
                            lines.iter().flat_map(|line| encode(&words(line))).collect();
                        client.send(&request);
                        for _ in 0..5 {
                            client.reply();
                        }
                        let done =
                            String::from_utf8(client.reply().expect("a reply")).expect("text");
                        assert!(done.starts_with("*4\r\n+OK\r\n:"), "{done}");
                    }
                })
            })
            .collect();
        let (server, over, read) = (&server, &is_over, &read);
        let reader = scope.spawn(move || {
            let mut client = server.connect();
            let mut looks = 0;
            while !over.load(Relaxed) || looks == 0 {
                let replies: Vec<String> = read.iter().map(|line| client.text(line)).collect();
                let all = replies.last().expect("a reply").replace('*', "*x");
                let sum: i64 = numbers(&all.replace('$', "$x")).iter().sum();
                assert_eq!(sum, 2 * 100 * ACCOUNTS as i64, "{all}");
                looks += 1;
            }
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
        is_over.store(true, Relaxed);
        reader.join().expect("no panic");
    });
}

/// Many clients add one to a number that they have read and watch: none is lost.
#[test]
fn watched_numbers_lose_nothing() {
    let server = Server::tremula(&["--threads", "3", "--gather", "no"]);
    server.connect().text("set n 0");
    let added: usize = thread::scope(|scope| {
        let adders: Vec<_> = (0..4)
            .map(|_| {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.connect();
                    let mut added = 0;
                    for _ in 0..400 {
                        client.text("watch n");
                        let next = numbers(&client.text("get n"))[0] + 1;
                        client.text("multi");
                        client.text(&format!("set n {next}"));
                        added += usize::from(client.text("exec") == "*1\r\n+OK\r\n");
                    }
                    added
                })
            })
            .collect();
        adders
            .into_iter()
            .map(|adder| adder.join().expect("no panic"))
            .sum()
    });
    assert!(added > 0);
    let reply = server.connect().text("get n");
    assert_eq!(numbers(&reply), [added as i64]);
}

/// Every limit is an error that names its number and its flag, and nothing has run.
#[test]
fn limits_are_named() {
    let server = Server::tremula(&[
        "--threads",
        "1",
        "--max-atomic",
        "20",
        "--max-queued",
        "3",
        "--max-watched-keys",
        "2",
    ]);
    let mut client = server.connect();
    for number in 0..30 {
        client.text(&format!("set k{number:02} v"));
    }
    for (line, error) in [
        (
            "keys *",
            "more than 20 keys, the limit within a transaction (--max-atomic)",
        ),
        ("range - +", "more than 20 keys"),
        ("range + - rev", "more than 20 keys"),
        ("range - + limit 21", "more than 20 keys"),
        ("range - + snapshot", "more than 20 keys"),
        ("last", "more than 20 keys"),
        ("dbsize", "more than 20 keys"),
        ("delrange - +", "more than 20 keys"),
        ("scan 0 count 100", "more than 20 keys"),
    ] {
        client.text("multi");
        assert_eq!(client.text(line), "+QUEUED\r\n", "{line}");
        let reply = client.text("exec");
        assert!(
            reply.starts_with("*1\r\n-ERR") && reply.contains(error),
            "{line}: {reply}"
        );
    }
    for (line, reply) in [
        (
            "range - + limit 2",
            "*1\r\n*2\r\n$3\r\nk00\r\n$3\r\nk01\r\n",
        ),
        ("range [k28 + ", "-ERR"),
        ("delrange [k28 [k29", "*1\r\n:2\r\n"),
        ("first", "*1\r\n*2\r\n$3\r\nk00\r\n$1\r\nv\r\n"),
        ("next k00", "*1\r\n*2\r\n$3\r\nk01\r\n$1\r\nv\r\n"),
    ] {
        client.text("multi");
        client.text(line);
        let found = client.text("exec");
        assert!(found.contains(reply), "{line}: {found}");
    }
    client.text("multi");
    for _ in 0..3 {
        assert_eq!(client.text("set x 1"), "+QUEUED\r\n");
    }
    let refused = client.text("set x 2");
    assert_eq!(
        refused,
        "-ERR a transaction has at most 3 commands (--max-queued)\r\n"
    );
    assert!(client.text("exec").starts_with("-EXECABORT"));
    assert_eq!(client.text("exists x"), ":0\r\n");
    let refused = client.text("watch a b c");
    assert_eq!(
        refused,
        "-ERR a client watches at most 2 keys (--max-watched-keys)\r\n"
    );
    client.text("config set client-query-buffer-limit 2048");
    client.text("multi");
    let long = "x".repeat(1500);
    assert_eq!(client.text(&format!("set x {long}")), "+QUEUED\r\n");
    let refused = client.text(&format!("set x {long}"));
    assert!(
        refused.contains("at most 2048 bytes (--max-query-buffer)"),
        "{refused}"
    );
    assert!(client.text("exec").starts_with("-EXECABORT"));
    assert_eq!(client.text("exists x"), ":0\r\n");
}

/// What is no key is refused with the reason, and so is the transaction.
#[test]
fn what_is_not_held_is_refused() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    for (line, why) in [
        (
            "ets.new t",
            "rows of tables are not held together with keys",
        ),
        (
            "mailbox.send m x",
            "messages are not held together with keys",
        ),
        ("client list", "it is about more than keys"),
        ("subscribe c", "it is about more than keys"),
        ("monitor", "it is about more than keys"),
        ("watchrange - +", "it is about the connection"),
        ("shape", "it waits for others"),
        ("wait 0 0", "it waits for others"),
    ] {
        client.text("multi");
        let reply = client.text(line);
        let name = line.split(' ').next().expect("a name");
        let text = "-ERR Command not allowed inside a transaction: '";
        assert!(
            reply.starts_with(text) && reply.contains(name) && reply.contains(why),
            "{reply}"
        );
        assert!(client.text("exec").starts_with("-EXECABORT"), "{line}");
    }
}

/// A user's rights count when the commands run.
#[test]
fn rights_are_looked_at_again() {
    let server = Server::tremula(&["--threads", "1"]);
    let (mut admin, mut user) = (server.connect(), server.connect());
    admin.text("acl setuser u on >p ~a* +@all");
    assert_eq!(user.text("auth u p"), "+OK\r\n");
    user.text("multi");
    assert!(user.text("set b 1").starts_with("-NOPERM"));
    assert!(user.text("exec").starts_with("-EXECABORT"));
    user.text("multi");
    user.text("set a1 1");
    user.text("get a1");
    admin.text("acl setuser u -set");
    let reply = user.text("exec");
    assert!(
        reply.starts_with("*2\r\n-NOPERM") && reply.ends_with("$-1\r\n"),
        "{reply}"
    );
    assert!(admin.text("acl log").contains("set"));
}

/// Values in the cache are changed with the others.
#[test]
fn cached_values_are_held() {
    let cache = ["--cache", "64mb", "--cache-from", "1"];
    let server = Server::tremula(&[&["--threads", "1"][..], &cache].concat());
    let (mut client, mut other) = (server.connect(), server.connect());
    client.text("append a text");
    client.text("watch a");
    other.text("append a more");
    client.text("multi");
    client.text("get a");
    assert_eq!(client.text("exec"), "*-1\r\n");
    client.text("multi");
    for line in [
        "append a !",
        "get a",
        "rename a b",
        "append b ?",
        "getrange b 4 -1",
        "copy b c",
        "del b",
        "get c",
    ] {
        client.text(line);
    }
    let expected = "*8\r\n:9\r\n$9\r\ntextmore!\r\n+OK\r\n:10\r\n$6\r\nmore!?\r\n:1\r\n:1\r\n$10\r\ntextmore!?\r\n";
    assert_eq!(client.text("exec"), expected);
}

/// Monitors and figures see each command when it runs, and the list of clients what waits.
#[test]
fn transactions_are_seen() {
    let server = Server::tremula(&["--threads", "1"]);
    let (mut client, mut watcher, mut other) =
        (server.connect(), server.connect(), server.connect());
    assert_eq!(watcher.text("monitor"), "+OK\r\n");
    client.text("multi");
    client.text("set a 1");
    client.text("get a");
    eventually("the list shows what waits", || {
        let list = other.text("client list");
        list.contains("flags=x ")
            && list.contains(" multi=2 ")
            && !list.contains("multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0")
    });
    client.text("exec");
    let mut seen = String::new();
    while !seen.contains("\"exec\"") {
        seen.push_str(&String::from_utf8_lossy(&watcher.reply().expect("a line")));
    }
    let at = |text: &str| {
        seen.find(text)
            .unwrap_or_else(|| panic!("no {text} in {seen}"))
    };
    assert!(at("\"multi\"") < at("\"set\" \"a\" \"1\"") && at("\"set\"") < at("\"get\" \"a\""));
    let figures = other.text("info commandstats");
    for name in [
        "cmdstat_set:calls=1,",
        "cmdstat_get:calls=1,",
        "cmdstat_exec:calls=1,",
        "cmdstat_multi:calls=1,",
    ] {
        assert!(figures.contains(name), "{name} in {figures}");
    }
    assert!(other.text("client list").contains(" multi=-1 "));
}

/// An engine without steps says so, and nothing has run.
#[test]
fn an_engine_without_steps_refuses() {
    let server = Server::tremula(&["--threads", "1", "--engine", "locked"]);
    let mut client = server.connect();
    client.text("multi");
    client.text("set a 1");
    let refused = client.text("exec");
    assert_eq!(
        refused,
        "-EXECABORT Transaction discarded because of: engine 'locked' has no steps over several keys\r\n"
    );
    assert_eq!(client.text("exists a"), ":0\r\n");
}
