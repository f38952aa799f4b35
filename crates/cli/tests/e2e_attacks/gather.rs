//! Clients gather on few threads and spread to more when these are busy. Nothing shows it but the
//! figures.

use crate::support::ets::{ask, await_answer};
use crate::support::load::{busy_beside, fill};
use crate::support::resp::{Connection, encode};
use crate::support::{PATIENCE, Server, run};
use std::process::Command;
use std::time::Instant;

fn server(threads: &str) -> Server {
    let server = Server::tremula(&["--threads", threads]);
    fill(&mut server.connect());
    server
}

/// A line of `INFO threads`, behind its name.
fn line(client: &mut Connection, name: &str) -> String {
    let text = client.text("INFO threads");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .to_owned()
}

fn figure(client: &mut Connection, name: &str) -> u64 {
    line(client, name).parse().expect("a number")
}

/// The clients of each of two threads.
fn clients(client: &mut Connection) -> [u64; 2] {
    ["thread0", "thread1"].map(|name| {
        let line = line(client, name);
        let count = line
            .strip_prefix("clients=")
            .and_then(|rest| rest.split(',').next());
        count.expect("a count").parse().expect("a number")
    })
}

/// Repeats `work` while two clients keep the server busy, until it returns `true`.
fn under_load(server: &Server, work: impl FnMut() -> bool) {
    busy_beside(server, || eventually(work));
}

/// Waits for a condition. Where other processes take the processors, the server takes its time:
/// one try to take its share may be half a minute after the other.
fn eventually(mut work: impl FnMut() -> bool) {
    let deadline = Instant::now() + 5 * PATIENCE;
    while !work() {
        assert!(Instant::now() < deadline, "never");
    }
}

/// A client with everything that belongs to its connection: a name, a database, a private table,
/// and half a command.
struct Subject {
    client: Connection,
    number: usize,
    count: u64,
}

impl Subject {
    fn new(server: &Server, number: usize) -> Self {
        let mut client = server.connect();
        for (command, reply) in [
            (format!("CLIENT SETNAME subject-{number}"), "+OK\r\n"),
            (format!("SELECT {}", number + 1), "+OK\r\n"),
            (format!("SET own {number}"), "+OK\r\n"),
        ] {
            assert_eq!(client.text(&command), reply);
        }
        ask(&mut client, &format!("ETS.NEW  t{number}  private"));
        ask(
            &mut client,
            &format!("ETS.INSERT  t{number}  {{1, {number}}}"),
        );
        Self {
            client,
            number,
            count: 0,
        }
    }

    /// Sends commands in one packet, of which the last is not whole, and checks the replies. The
    /// client may move before the rest of the last one is sent.
    fn work(&mut self, between: impl FnOnce()) {
        let last = encode(&["ECHO", "half"]);
        let (half, rest) = last.split_at(last.len() / 2);
        let counts = encode(&["INCR", "count"]).repeat(3);
        self.client.send(&[&counts, half].concat());
        for _ in 0..3 {
            self.count += 1;
            let expected = format!(":{}\r\n", self.count).into_bytes();
            assert_eq!(self.client.reply(), Some(expected), "in order");
        }
        between();
        self.client.send(rest);
        assert_eq!(self.client.reply().as_deref(), Some(&b"$4\r\nhalf\r\n"[..]));
    }

    fn has_all(&mut self) {
        let Self {
            client,
            number,
            count,
        } = self;
        assert_eq!(client.text("GET own"), format!("$1\r\n{number}\r\n"));
        let length = count.to_string().len();
        assert_eq!(
            client.text("GET count"),
            format!("${length}\r\n{count}\r\n")
        );
        let rows = ask(client, &format!("ETS.LOOKUP  t{number}  1"));
        assert_eq!(rows, format!("[{{1,{number}}}]"), "it owns its table");
        let name = client.text("CLIENT GETNAME");
        assert!(name.contains(&format!("subject-{number}")), "{name}");
    }
}

/// The threads of the subjects, as others see them.
fn threads(operator: &mut Connection, subjects: usize) -> Vec<String> {
    let list = operator.text("CLIENT LIST");
    let thread = |number| {
        let name = format!(" name=subject-{number} ");
        let line = list.lines().find(|line| line.contains(&name));
        let behind = line.and_then(|line| line.split("io-thread=").nth(1));
        let thread = behind.and_then(|behind| behind.split(' ').next());
        thread.expect("the client is listed").to_owned()
    };
    (0..subjects).map(thread).collect()
}

/// Fails if clients stay on one thread, if they do not come together again, if a move loses or
/// reorders a reply, or if something of a connection stays behind.
#[test]
fn clients_spread_and_gather_with_all_that_is_theirs() {
    const SUBJECTS: usize = 6;
    let server = server("2");
    let mut operator = server.connect();
    let mut subjects: Vec<_> = (0..SUBJECTS)
        .map(|number| Subject::new(&server, number))
        .collect();
    let mut waiting: Vec<_> = (0..2)
        .map(|number| {
            let mut client = server.connect();
            client.text(&format!("MAILBOX.NEW letters{number}"));
            let name = format!("letters{number}");
            client.send(&encode(&["MAILBOX.RECV", &name, "BLOCK", "0"]));
            client
        })
        .collect();
    assert_eq!(figure(&mut operator, "open_threads"), 1);
    assert_eq!(threads(&mut operator, SUBJECTS), ["0"; SUBJECTS]);
    under_load(&server, || {
        for subject in &mut subjects {
            subject.work(|| assert_eq!(operator.text("CLIENT PAUSE 1 WRITE"), "+OK\r\n"));
        }
        threads(&mut operator, SUBJECTS).contains(&"1".to_owned())
    });
    assert_eq!(figure(&mut operator, "open_threads"), 2);
    assert!(figure(&mut operator, "spreads") > 0);
    assert!(figure(&mut operator, "moved_clients") > 0);
    subjects.iter_mut().for_each(Subject::has_all);
    // What waits for a message is not moved, and stays where it is.
    eventually(|| {
        for subject in &mut subjects {
            subject.work(|| ());
        }
        let threads = threads(&mut operator, SUBJECTS);
        figure(&mut operator, "open_threads") == 1 && threads.iter().all(|one| *one == threads[0])
    });
    assert!(figure(&mut operator, "gathers") > 0);
    subjects.iter_mut().for_each(Subject::has_all);
    for (number, client) in waiting.iter_mut().enumerate() {
        let sent = operator.text(&format!("MAILBOX.SEND letters{number} letter"));
        assert_eq!(sent, ":1\r\n");
        assert_eq!(client.reply().as_deref(), Some(&b"$6\r\nletter\r\n"[..]));
        assert_eq!(client.text("PING"), "+PONG\r\n");
    }
    // Those that waited move with their next commands.
    eventually(|| {
        waiting.iter_mut().for_each(|client| {
            client.text("PING");
        });
        clients(&mut operator).contains(&0)
    });
    // The owner of a table is the connection, wherever it is.
    subjects.truncate(1);
    await_answer(&mut operator, "ETS.ALL", "[t0]");
}

#[test]
fn one_thread_keeps_its_clients_and_many_share_them_if_told_to() {
    let one = server("1");
    let mut client = one.connect();
    let mut rounds = 0;
    under_load(&one, || {
        rounds += 1;
        assert_eq!(figure(&mut client, "spreads"), 0);
        rounds > 50
    });
    assert_eq!(figure(&mut client, "open_threads"), 1);

    let even = Server::tremula(&["--threads", "2", "--gather", "no"]);
    let mut client = even.connect();
    let _others: Vec<_> = (0..9).map(|_| even.connect()).collect();
    eventually(|| clients(&mut client).iter().sum::<u64>() == 10);
    assert!(!clients(&mut client).contains(&0));
    assert_eq!(figure(&mut client, "open_threads"), 2);
    assert_eq!(
        client.text("CONFIG GET gather"),
        "*2\r\n$6\r\ngather\r\n$2\r\nno\r\n"
    );

    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    let wrong = run(command.args(["serve", "--gather", "perhaps"]), b"");
    assert!(!wrong.status.success());
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("perhaps"), "{said}");
}
