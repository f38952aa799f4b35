//! Clients that are silent, hold much, are many, or ask for what is not theirs.

use crate::support::resp::{Connection, bulk, encode};
use crate::support::{PATIENCE, Server, eventually, run};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The value of a field of `INFO clients`.
fn figure(client: &mut Connection, name: &str) -> u64 {
    let text = client.text("INFO clients");
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = value.unwrap_or_else(|| panic!("no {name} in {text}"));
    value.parse().expect("a number")
}

/// The value of a field in the line of a client.
fn field(line: &str, name: &str) -> String {
    let value = line
        .split_whitespace()
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value
        .unwrap_or_else(|| panic!("no {name} in {line}"))
        .to_owned()
}

/// A server whose log can be read, started by a shell command in front of `tremula serve`.
pub(crate) struct Logged {
    pub(crate) server: Server,
    lines: mpsc::Receiver<String>,
}

impl Logged {
    pub(crate) fn start(before: &str, arguments: &str) -> Self {
        let tremula = env!("CARGO_BIN_EXE_tremula");
        let script = format!("{before}exec '{tremula}' serve --port 0 {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stderr(Stdio::piped());
        let mut server = Server::of(&mut command);
        let log = BufReader::new(server.log());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { server, lines }
    }

    /// Waits for a line that has a part.
    pub(crate) fn expect(&self, part: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => seen.push(line),
                Err(_) => panic!("no line with {part:?} in the log: {seen:?}"),
            }
        }
    }
}

/// Fails if half a request counts as a sign of life, or if a client that waits for a message counts
/// as idle.
#[test]
fn silent_clients_and_half_requests_are_closed_and_waiting_ones_are_not() {
    let server = Server::tremula(&["--threads", "1", "--timeout", "1"]);
    let mut waiting = server.connect();
    waiting.text("MAILBOX.NEW letters");
    waiting.send(&encode(&["MAILBOX.RECV", "letters", "BLOCK", "0"]));
    let mut silent = server.connect();
    let mut half = server.connect();
    half.send(b"*2\r\n$3\r\nGET\r\n$400000000\r\nabc");
    let mut dripping = server.connect();
    dripping.send(b"*1\r\n$100\r\n");
    let dripped = thread::spawn(move || {
        let mut other = dripping.stream.try_clone().expect("a handle");
        thread::spawn(move || {
            use std::io::Write;
            while other.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(100));
            }
        });
        dripping.reply()
    });
    let told =
        Some(b"-ERR closed because the command did not arrive within --timeout\r\n".to_vec());
    assert_eq!(half.reply(), told);
    assert_eq!(half.reply(), None);
    assert_eq!(silent.reply(), None, "it expects no reply, so it gets none");
    assert_eq!(dripped.join().expect("the end"), told);
    let mut other = server.connect();
    assert_eq!(other.text("MAILBOX.SEND letters hello"), ":1\r\n");
    assert_eq!(waiting.reply().as_deref(), Some(&b"$5\r\nhello\r\n"[..]));
}

#[test]
fn silent_clients_do_not_lock_out_an_operator_who_can_close_them() {
    let server = Server::tremula(&["--max-clients", "5", "--reserved-clients", "2"]);
    let mut silent: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for client in &mut silent {
        assert_eq!(client.text("PING"), "+PONG\r\n");
    }
    let mut operator = server.connect();
    assert_eq!(operator.text("PING"), "+PONG\r\n");
    let mut second = server.connect();
    assert_eq!(second.text("PING"), "+PONG\r\n");
    let full = Some(b"-ERR max number of clients reached\r\n".to_vec());
    assert_eq!(server.connect().reply(), full);
    assert_eq!(operator.text("CLIENT KILL TYPE normal"), ":6\r\n");
    for client in &mut silent {
        assert_eq!(client.reply(), None);
    }
    eventually("free places", || {
        figure(&mut operator, "connected_clients") == 1
    });
}

/// Each filter of `CLIENT KILL` closes the clients that it names, and no other.
#[test]
fn clients_are_closed_by_every_filter() {
    let server = Server::tremula(&[]);
    let mut operator = server.connect();
    for filter in ["ID", "ADDR", "old"] {
        let mut victim = server.connect();
        let mut bystander = server.connect();
        let line = victim.text("CLIENT INFO");
        let line = line.lines().nth(1).expect("a line");
        let killed = match filter {
            "ID" => operator.text(&format!("CLIENT KILL ID {}", field(line, "id"))),
            "ADDR" => operator.text(&format!(
                "CLIENT KILL ADDR {} USER default",
                field(line, "addr")
            )),
            _ => operator.text(&format!("CLIENT KILL {}", field(line, "addr"))),
        };
        assert!(
            [":1\r\n", "+OK\r\n"].contains(&&*killed),
            "{filter}: {killed}"
        );
        assert_eq!(victim.reply(), None, "{filter}");
        assert_eq!(bystander.text("PING"), "+PONG\r\n");
    }
    let laddr = format!("CLIENT KILL LADDR {}", server.address);
    let mut victim = server.connect();
    assert_eq!(victim.text("PING"), "+PONG\r\n");
    assert_ne!(operator.text(&laddr), ":0\r\n");
    assert_eq!(victim.reply(), None);
    for (command, reply) in [
        ("CLIENT KILL TYPE pubsub", ":0\r\n"),
        ("CLIENT KILL MAXAGE 1000", ":0\r\n"),
        ("CLIENT KILL ID 999999", ":0\r\n"),
        ("CLIENT KILL 1.2.3.4:5", "-ERR No such client\r\n"),
        (
            "CLIENT KILL ID 0",
            "-ERR client-id should be greater than 0\r\n",
        ),
        ("CLIENT KILL ID 1 SKIPME maybe", "-ERR syntax error\r\n"),
        ("CLIENT KILL USER bob", "-ERR No such user 'bob'\r\n"),
        (
            "CLIENT KILL TYPE cats",
            "-ERR Unknown client type 'cats'\r\n",
        ),
    ] {
        assert_eq!(operator.text(command), reply, "{command}");
    }
    eventually("the others have left", || {
        operator.text("CLIENT LIST").matches("\nid=").count() == 1
    });
    assert_eq!(operator.text("CLIENT KILL TYPE normal SKIPME no"), ":1\r\n");
    assert_eq!(operator.reply(), None, "itself, after the reply");
}

/// Six clients each send half of an argument that would fit alone. Fails if the total is not
/// limited, if another than the largest is closed, or if `NO-EVICT` does not exempt.
#[test]
fn unfinished_arguments_of_several_clients_stay_within_the_total() {
    const PART: usize = 1 << 20;
    // Buffers grow by doubling, to up to 5.2 MiB here. So the exempt one and another always fit,
    // and seven never do.
    const LIMIT: u64 = 11 << 20;
    // The operator's own buffer counts while its command runs.
    const OWN: u64 = 64 << 10;
    let logged = Logged::start("", "--threads 2 --max-client-buffers 11mb");
    let server = &logged.server;
    let mut exempt = server.connect();
    assert_eq!(exempt.text("CLIENT NO-EVICT on"), "+OK\r\n");
    let argument = |size: usize| {
        let head = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$400000000\r\n";
        [&head[..], &vec![b'x'; size]].concat()
    };
    exempt.send(&argument(3 * PART));
    let mut operator = server.connect();
    eventually("it has arrived", || {
        figure(&mut operator, "client_buffers") >= 3 << 20
    });
    let mut small = server.connect();
    small.text("CLIENT SETNAME small");
    small.send(&argument(16 << 10));
    eventually("it has arrived, too", || {
        let list = operator.text("CLIENT LIST");
        let line = list.lines().find(|line| line.contains("name=small"));
        line.is_some_and(|line| field(line, "qbuf") != "0")
    });
    let mut all: Vec<_> = (1..=6).map(|_| server.connect()).collect();
    for client in &mut all {
        client.send(&argument(2 * PART));
    }
    logged.expect("whose buffers held");
    eventually("the largest are closed", || {
        figure(&mut operator, "client_buffers") <= LIMIT + OWN
            && figure(&mut operator, "clients_closed_by_server") > 0
    });
    // A client is listed until its thread comes to it.
    let mut list = String::new();
    eventually("they are gone", || {
        list = operator.text("CLIENT LIST");
        list.lines().filter(|line| line.starts_with("id=")).count() < 9
    });
    assert!(list.contains("flags=e "), "{list}");
    assert!(list.contains("name=small "), "{list}");
    let closed = 9 - list.lines().filter(|line| line.starts_with("id=")).count();
    assert!(closed < 6, "{closed} of 6 closed: {list}");
    // What is left can be completed.
    exempt.send(&vec![b'x'; 1 << 20]);
    assert_eq!(operator.text("PING"), "+PONG\r\n");
}

/// A client leaves its replies unread. Fails if it may do so for ever.
#[test]
fn a_client_that_leaves_too_much_unread_is_closed_with_a_line_in_the_log() {
    let logged = Logged::start(
        "",
        "--threads 1 --soft-output-buffer 1mb --soft-output-seconds 1",
    );
    let mut other = logged.server.connect();
    let long = vec![b'x'; 24 << 20];
    other.call(&[&b"SET"[..], b"long", &long]);
    let mut slow = logged.server.connect();
    slow.text("CLIENT SETNAME slow");
    slow.send(&encode(&["GET", "long"]));
    eventually("its replies wait", || {
        let list = other.text("CLIENT LIST");
        let line = list.lines().find(|line| line.contains("name=slow"));
        line.is_some_and(|line| {
            field(line, "obl")
                .parse::<usize>()
                .is_ok_and(|n| n > 1 << 20)
        })
    });
    let line = logged.expect("left its replies unread");
    assert!(line.contains("name=slow"), "{line}");
    eventually("it is closed", || {
        figure(&mut other, "connected_clients") == 1
    });
}

#[test]
fn names_have_a_limit_and_so_do_ids_in_a_list() {
    let server = Server::tremula(&["--max-listed-clients", "100"]);
    let mut client = server.connect();
    let name = "n".repeat(64);
    assert_eq!(client.text(&format!("CLIENT SETNAME {name}")), "+OK\r\n");
    let refused = "-ERR Client names cannot have more than 64 bytes (--max-client-name), and this has 100000.\r\n";
    let long = "n".repeat(100_000);
    assert_eq!(client.text(&format!("CLIENT SETNAME {long}")), refused);
    assert_eq!(client.text(&format!("HELLO 3 SETNAME {long}")), refused);
    let refused = client.text(&format!("CLIENT SETINFO LIB-NAME {long}"));
    assert!(refused.starts_with("-ERR lib-name cannot have more than 64 bytes"));
    assert_eq!(client.text("CLIENT GETNAME"), format!("$64\r\n{name}\r\n"));
    assert_eq!(client.text("CLIENT SETINFO LIB-NAME redis-x"), "+OK\r\n");
    assert_eq!(client.text("CLIENT SETINFO LIB-VER 1.2"), "+OK\r\n");
    let id = client.text("CLIENT ID");
    let id = id.trim_start_matches(':').trim_end();
    let list = bulk(
        &client
            .text(&format!("CLIENT LIST ID {id} 999 {id}"))
            .into_bytes(),
    );
    let list = String::from_utf8(list).expect("text");
    assert_eq!(list.lines().count(), 2, "as often as it is asked for");
    for (name, value) in [
        ("lib-name", "redis-x"),
        ("lib-ver", "1.2"),
        ("name", &name),
        ("flags", "N"),
        ("cmd", "client|list"),
    ] {
        assert_eq!(field(&list, name), value);
    }
    for name in [
        "fd",
        "qbuf",
        "qbuf-free",
        "argv-mem",
        "obl",
        "oll",
        "omem",
        "tot-mem",
        "events",
    ] {
        field(&list, name);
    }
    let many: Vec<_> = ["CLIENT", "LIST", "ID"]
        .into_iter()
        .chain(std::iter::repeat_n(id, 101))
        .collect();
    let refused = String::from_utf8(client.call(&many)).expect("text");
    assert_eq!(
        refused,
        "-ERR CLIENT LIST takes at most 100 ids (--max-listed-clients), and there are 101\r\n"
    );
}

#[test]
fn a_password_is_refused_while_there_are_none() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    let refused = client.text("AUTH secret");
    assert!(refused.starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(client.text("AUTH default secret"), refused);
    assert_eq!(
        client.text("HELLO 3 AUTH default secret SETNAME x"),
        refused
    );
    let unknown = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    assert_eq!(client.text("AUTH bob secret"), unknown);
    assert_eq!(
        client.text("CLIENT GETNAME"),
        "$-1\r\n",
        "nothing has changed"
    );
    assert_eq!(client.text("PING"), "+PONG\r\n");
}

#[test]
fn groups_and_commands_can_be_switched_off() {
    let server = Server::tremula(&[
        "--disable",
        "ets,mailbox",
        "--deny-commands",
        "keys,CLIENT|list",
    ]);
    let mut client = server.connect();
    for (command, name) in [
        ("ETS.NEW t", "ets.new"),
        ("MAILBOX.NEW m", "mailbox.new"),
        ("KEYS *", "keys"),
        ("CLIENT LIST", "client|list"),
    ] {
        assert_eq!(
            client.text(command),
            format!("-NOPERM this server is started without the command '{name}'\r\n")
        );
    }
    assert_eq!(client.text("SET a 1"), "+OK\r\n");
    assert!(client.text("CLIENT ID").starts_with(':'));
}

#[test]
fn a_pause_holds_commands_and_ends() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut operator = server.connect();
    let mut writer = server.connect();
    let mut reader = server.connect();
    assert_eq!(operator.text("CLIENT PAUSE 1000000 WRITE"), "+OK\r\n");
    // A shorter one does not end it.
    assert_eq!(operator.text("CLIENT PAUSE 1 WRITE"), "+OK\r\n");
    writer.send(&encode(&["SET", "a", "1"]));
    writer.send(&encode(&["GET", "a"]));
    for _ in 0..20 {
        assert_eq!(reader.text("GET a"), "$-1\r\n");
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(operator.text("CLIENT UNPAUSE"), "+OK\r\n");
    assert_eq!(writer.reply().as_deref(), Some(&b"+OK\r\n"[..]));
    assert_eq!(writer.reply().as_deref(), Some(&b"$1\r\n1\r\n"[..]));
    assert_eq!(operator.text("CLIENT PAUSE 1000000"), "+OK\r\n");
    reader.send(&encode(&["GET", "a"]));
    assert_eq!(operator.text("CLIENT UNPAUSE"), "+OK\r\n");
    assert_eq!(reader.reply().as_deref(), Some(&b"$1\r\n1\r\n"[..]));
    assert_eq!(
        operator.text("CLIENT PAUSE 1 SOME"),
        "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n"
    );
}

#[test]
fn replies_can_be_switched_off() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    for command in [
        "CLIENT REPLY SKIP",
        "SET a 1",
        "GET a",
        "CLIENT REPLY OFF",
        "SET a 2",
        "nonsense",
        "KEYS *",
        "CLIENT REPLY SKIP",
        "GET a",
        "CLIENT REPLY ON",
        "GET a",
    ] {
        client.send(format!("{command}\r\n").as_bytes());
    }
    for expected in ["$1\r\n1\r\n", "+OK\r\n", "$1\r\n2\r\n"] {
        assert_eq!(client.reply().as_deref(), Some(expected.as_bytes()));
    }
}

#[test]
fn a_waiting_client_can_be_unblocked() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut operator = server.connect();
    operator.text("MAILBOX.NEW letters");
    let mut waiting = server.connect();
    let id = waiting.text("CLIENT ID");
    let id = id.trim_start_matches(':').trim_end();
    assert_eq!(operator.text(&format!("CLIENT UNBLOCK {id}")), ":0\r\n");
    for (reason, reply) in [
        ("", "$-1\r\n"),
        (" TIMEOUT", "$-1\r\n"),
        (
            " ERROR",
            "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
        ),
    ] {
        waiting.send(&encode(&["MAILBOX.RECV", "letters", "BLOCK", "0"]));
        eventually("it waits", || {
            operator.text(&format!("CLIENT UNBLOCK {id}{reason}")) == ":1\r\n"
        });
        assert_eq!(waiting.reply().as_deref(), Some(reply.as_bytes()));
    }
}

#[test]
fn signals_of_terminals_and_log_rotation_do_not_end_it() {
    let mut logged = Logged::start("", "");
    let mut client = logged.server.connect();
    client.text("SET a 1");
    for signal in ["HUP", "USR1", "USR2"] {
        logged.server.signal(signal);
        logged.expect(&format!("SIG{signal}: "));
        assert_eq!(client.text("GET a"), "$1\r\n1\r\n", "SIG{signal}");
    }
    logged.server.signal("TERM");
    assert_eq!(logged.server.wait().code(), Some(0));
}

#[test]
fn fewer_files_than_clients_are_named_at_the_start() {
    let logged = Logged::start("ulimit -n 60; ", "--threads 1 --max-clients 1000");
    let line = logged.expect("--max-clients is");
    assert!(line.contains("20 instead of 1000"), "{line}");
    let mut first = logged.server.connect();
    assert_eq!(figure(&mut first, "maxclients"), 20);
    let clients: Vec<_> = (0..40).map(|_| logged.server.connect()).collect();
    let refused = clients.into_iter().filter_map(|mut client| {
        client.send(&encode(&["PING"]));
        client.reply().filter(|reply| reply != b"+PONG\r\n")
    });
    let refused: Vec<_> = refused.collect();
    assert!(!refused.is_empty());
    for text in refused {
        assert_eq!(text, b"-ERR max number of clients reached\r\n");
    }
    assert_eq!(first.text("PING"), "+PONG\r\n");

    let script = format!(
        "ulimit -n 30; exec '{}' serve --port 0 --threads 1",
        env!("CARGO_BIN_EXE_tremula")
    );
    let output = run(Command::new("sh").args(["-c", &script]), b"");
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(text.contains("lets this process open 30 files"), "{text}");
}

/// The limit sinks while the server runs, as if something else had taken the files. Fails if
/// surplus clients get no answer, or if each is a line in the log.
#[test]
fn clients_are_answered_when_no_file_can_be_opened() {
    let logged = Logged::start("", "--threads 1");
    let mut first = logged.server.connect();
    assert_eq!(first.text("PING"), "+PONG\r\n");
    let status = Command::new("prlimit")
        .args([
            "--pid",
            &logged.server.process().to_string(),
            "--nofile=24:24",
        ])
        .status()
        .expect("prlimit runs");
    assert!(status.success());
    let mut refused = 0;
    let mut held = Vec::new();
    for _ in 0..60 {
        let mut client = logged.server.connect();
        client.send(&encode(&["PING"]));
        match client.reply().as_deref() {
            Some(b"+PONG\r\n") => held.push(client),
            Some(text) => {
                assert!(text.starts_with(
                    b"-ERR max number of clients reached: the server can open no more files"
                ));
                refused += 1;
            }
            None => panic!("no answer"),
        }
    }
    assert!(refused > 30, "{refused}");
    logged.expect("cannot accept clients");
    assert_eq!(first.text("PING"), "+PONG\r\n");
    drop(held);
    eventually("they come in again", || {
        let mut client = logged.server.connect();
        client.send(&encode(&["PING"]));
        client.reply().as_deref() == Some(b"+PONG\r\n")
    });
    let more: Vec<_> = logged.lines.try_iter().collect();
    assert!(more.is_empty(), "one line a minute: {more:?}");
}
