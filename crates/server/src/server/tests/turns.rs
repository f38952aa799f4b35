//! No command holds its thread: while it runs, another client of the thread is answered.
//!
//! They fail if a command runs to its end at once: then its whole reply is there before the other
//! client's.

use super::visitor::{Visitor, visits};
use super::*;
use crate::apart::MANY;
use std::io::ErrorKind;
use std::ops::Range;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const KEYS: usize = 15_000;

/// Behind a reply, the mark of its end.
const MARK: &[u8] = b"$3\r\nend\r\n";

impl Visitor {
    /// Sends commands, each a list of words, and at last asks for the mark, all in one packet.
    async fn send_with_mark(&mut self, commands: &[Vec<String>]) -> io::Result<()> {
        let mut packet = Vec::new();
        for command in commands.iter().chain([&words("ECHO end")]) {
            packet.extend(format!("*{}\r\n", command.len()).bytes());
            for word in command {
                packet.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
            }
        }
        self.0.write_all(&packet).await
    }

    /// Reads replies up to the mark.
    async fn replies(&mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while !all.ends_with(MARK) {
            self.0.read_buf(&mut all).await?;
        }
        Ok(all)
    }

    /// How much of the replies has arrived, up to this number of bytes.
    fn arrived(&self, most: usize) -> usize {
        let mut bytes = vec![std::mem::MaybeUninit::uninit(); most];
        match socket2::SockRef::from(&self.0).peek(&mut bytes) {
            Ok(arrived) => arrived,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("the connection is lost: {error}"),
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn key(number: usize) -> String {
    format!("key:{number:05}")
}

/// A command with every key, and perhaps with something behind each.
fn with_keys(name: &str, behind: Option<&str>) -> Vec<String> {
    let keys = (0..KEYS).flat_map(|number| [Some(key(number)), behind.map(str::to_owned)]);
    std::iter::once(name.to_owned())
        .chain(keys.flatten())
        .collect()
}

/// Lets a client send commands, and lets the other be answered while they run. Returns the replies.
async fn visit(
    slow: &mut Visitor,
    other: &mut Visitor,
    commands: &[Vec<String>],
    least: usize,
) -> io::Result<String> {
    let name = commands[0].join(" ").chars().take(30).collect::<String>();
    slow.send_with_mark(commands).await?;
    let runs = format!("cmd={} ", commands[0][0].to_ascii_lowercase());
    loop {
        other.send("CLIENT LIST").await?;
        let list = other.reply().await?;
        let arrived = slow.arrived(least);
        assert!(arrived < least, "{name} held its thread until its reply");
        if list.contains(&runs) {
            break;
        }
    }
    let replies = slow.replies().await?;
    assert!(replies.len() >= least, "{name}");
    let replies = &replies[..replies.len() - MARK.len()];
    Ok(String::from_utf8_lossy(replies).into_owned())
}

/// Keeps the thread apart busy, lets a client send a command, and lets the other be answered
/// meanwhile. Returns the reply. Fails if the command does not wait for the thread apart.
async fn apart(
    slow: &mut Visitor,
    other: &mut Visitor,
    command: Vec<String>,
) -> io::Result<String> {
    let shown = command.join(" ").chars().take(60).collect::<String>();
    let (release, released) = std_mpsc::channel::<()>();
    let busy = tokio::task::spawn_blocking(move || released.recv());
    let name = command[0].to_ascii_lowercase();
    slow.send_with_mark(&[command]).await?;
    loop {
        other.send("CLIENT LIST").await?;
        let list = other.reply().await?;
        assert_eq!(slow.arrived(1), 0, "{shown} held its thread");
        if list.contains(&format!("cmd={name} ")) || list.contains(&format!("cmd={name}|")) {
            break;
        }
    }
    drop(release);
    let _ = busy.await.expect("it only waits");
    let replies = slow.replies().await?;
    let replies = &replies[..replies.len() - MARK.len()];
    Ok(String::from_utf8_lossy(replies).into_owned())
}

/// A command with an argument many times.
fn with_many(name: &str, argument: &str) -> Vec<String> {
    let many = std::iter::repeat_n(argument.to_owned(), MANY);
    words(name).into_iter().chain(many).collect()
}

/// A list of rows: these numbers, behind this key or each its own.
fn rows(numbers: Range<usize>, key: Option<&str>) -> String {
    let row = |number: usize| match key {
        Some(key) => format!("{{{key},{number}}}"),
        None => format!("{{{number},{number}}}"),
    };
    format!("[{}]", numbers.map(row).collect::<Vec<_>>().join(","))
}

/// What reads much, changes many rows at one moment, or frees many, runs on the thread apart.
#[test]
fn steps_that_take_long_go_to_the_thread_apart() {
    visits(async |slow, other| {
        let command = |name: &str, arguments: &[&str]| {
            let arguments = arguments.iter().map(|argument| (*argument).to_owned());
            words(name).into_iter().chain(arguments).collect::<Vec<_>>()
        };
        let quiet = |text: &str| words(text);
        let few = 2 * MANY;
        let (list, bag) = (rows(0..few, None), rows(0..few, Some("k")));
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let everything = "[{{'$1','_'},[{'>','$1',5}],[true]}]";
        let all_true = bulk("true");
        for text in [
            "ETS.NEW o ordered_set",
            "ETS.NEW b bag",
            "ETS.NEW d duplicate_bag",
            "MAILBOX.NEW m",
        ] {
            slow.send_with_mark(&[quiet(text)]).await?;
            slow.replies().await?;
        }
        let deleted = bulk(&(few - 6).to_string());
        for (command, expected) in [
            (command("ETS.INSERT o", &[&list]), &*all_true),
            (command("ETS.INSERT_NEW o", &[&list]), &bulk("false")),
            (command("ETS.SELECT_DELETE o", &[everything]), &deleted),
            (command("ETS.INSERT o", &[&list]), &all_true),
            (command("ETS.INIT_TABLE o {1,1}", &[]), &all_true),
            (command("ETS.INSERT o", &[&list]), &all_true),
            (command("ETS.DELETE_ALL_OBJECTS o", &[]), &all_true),
            (command("ETS.INSERT b", &[&bag]), &all_true),
            (command("ETS.INSERT d", &[&bag]), &all_true),
            (command("ETS.INSERT b {k,1}", &[]), &all_true),
            (command("ETS.LOOKUP b k", &[]), &bulk(&bag)),
            (command("ETS.LOOKUP_ELEMENT d k 1", &[]), "$"),
            (command("ETS.FIRST_LOOKUP b", &[]), "$"),
            (
                command("ETS.SELECT_COUNT d", &["[{{k,7},[],[true]}]"]),
                &bulk("1"),
            ),
            (command("ETS.DELETE_OBJECT b {k,7}", &[]), &all_true),
            (command("ETS.DELETE b k", &[]), &all_true),
            (command("ETS.TAKE d k", &[]), &bulk(&bag)),
            (
                command("ETS.TABFILE_INFO file", &[]),
                "-ERR this server keeps no files",
            ),
            (command("ETS.MATCH_SPEC_RUN", &[&list, everything]), "$"),
            (with_many("INFO", "none"), "$0\r\n\r\n"),
            (with_many("CONFIG GET", "*none*"), "*0\r\n"),
            (with_many("COMMAND INFO", "none"), "*1024\r\n$-1\r\n"),
            (with_many("COMMAND DOCS", "none"), "*0\r\n"),
            (with_many("MAILBOX.SEND m", "message"), ":1024\r\n"),
            (command("MAILBOX.DROP m", &[]), ":1024\r\n"),
            // It owns tables, perhaps.
            (command("RESET", &[]), "+RESET\r\n"),
        ] {
            let shown = command.join(" ").chars().take(60).collect::<String>();
            let replies = apart(slow, other, command).await?;
            assert!(replies.starts_with(expected), "{shown}: {replies:.100}");
        }
        Ok(())
    });
}

/// The tables of a client that leaves are freed on the thread apart: while that is busy, they are
/// still there.
#[test]
fn a_client_that_leaves_does_not_hold_its_thread() {
    visits(async |slow, other| {
        slow.send("ETS.NEW mine private").await?;
        assert_eq!(slow.reply().await?, "mine");
        let (release, released) = std_mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || released.recv());
        slow.0.shutdown().await?;
        for _ in 0..200 {
            other.send("ETS.INFO mine owner").await?;
            assert_ne!(other.reply().await?, "undefined");
        }
        drop(release);
        let _ = busy.await.expect("it only waits");
        loop {
            other.send("ETS.INFO mine owner").await?;
            if other.reply().await? == "undefined" {
                return Ok(());
            }
        }
    });
}

#[test]
fn no_command_holds_its_thread() {
    visits(async |slow, other| {
        let all = [with_keys("MSET", Some("v"))];
        assert_eq!(visit(slow, other, &all, 5 + MARK.len()).await?, "+OK\r\n");
        let listed: String = (0..KEYS)
            .map(|at| format!("$9\r\n{}\r\n", key(at)))
            .collect();
        let list = format!("*{KEYS}\r\n{listed}");
        let with_values: String = (0..KEYS)
            .map(|at| format!("$9\r\n{}\r\n$1\r\nv\r\n", key(at)))
            .collect();
        let with_values = format!("*{}\r\n{with_values}", 2 * KEYS);
        let values = format!("*{KEYS}\r\n{}", "$1\r\nv\r\n".repeat(KEYS));
        let count = format!(":{KEYS}\r\n");
        for (command, expected) in [
            (words("KEYS *"), list.clone()),
            (words("KEYS *5*4*3*2*1*0*"), "*0\r\n".to_owned()),
            (
                words("SCAN 0 COUNT 15001"),
                format!("*2\r\n$1\r\n0\r\n{list}"),
            ),
            (words("RANGE - +"), list.clone()),
            (words("RANGE - + SNAPSHOT"), list.clone()),
            (words("RANGE - + WITHVALUES"), with_values),
            (with_keys("MGET", None), values),
            (with_keys("EXISTS", None), count.clone()),
            (with_keys("DEL", None), count.clone()),
        ] {
            let least = expected.len() + MARK.len();
            let replies = visit(slow, other, &[command], least).await?;
            assert!(replies == expected, "{replies:.100}");
        }

        // A pipeline gives way between its commands, short ones and such as write long replies.
        let reply = ":0\r\n".repeat(KEYS);
        let commands = vec![words("DBSIZE"); KEYS];
        assert_eq!(visit(slow, other, &commands, reply.len()).await?, reply);

        // What is of one moment runs on the thread apart.
        let backwards: String = (0..KEYS)
            .rev()
            .map(|at| format!("$9\r\n{}\r\n", key(at)))
            .collect();
        let backwards = format!("*{KEYS}\r\n{backwards}");
        for (removal, expected) in [
            ("RANGE + - REV SNAPSHOT", &backwards),
            ("FLUSHALL", &"+OK\r\n".to_owned()),
            ("FLUSHDB", &"+OK\r\n".to_owned()),
            ("DELRANGE - +", &count),
        ] {
            visit(slow, other, &all, 5).await?;
            let replies = apart(slow, other, words(removal)).await?;
            assert!(replies.starts_with(expected), "{replies:.100}");
        }

        // Long values are copied in pieces, and the replies to some of them sent in pieces.
        let long = "x".repeat(4 << 20);
        let length = |length: usize| format!(":{length}\r\n");
        let bulk = format!("${}\r\n{long}\r\n", long.len());
        for (command, expected) in [
            (
                vec!["SET".to_owned(), "k".to_owned(), long.clone()],
                "+OK\r\n".to_owned(),
            ),
            (
                vec!["MSET".to_owned(), "k".to_owned(), long.clone()],
                "+OK\r\n".to_owned(),
            ),
            (words("GET k"), bulk),
            (words("APPEND k y"), length(long.len() + 1)),
            (words("SETRANGE k 6000000 z"), length(6_000_001)),
            (words("SETRANGE fresh 6000000 z"), length(6_000_001)),
        ] {
            let least = expected.len() + MARK.len();
            let replies = visit(slow, other, &[command], least).await?;
            assert!(replies == expected, "{replies:.100}");
        }
        slow.send("GETRANGE k 4194302 4194305").await?;
        assert_eq!(slow.reply().await?, "xxy\0");
        Ok(())
    });
}

/// Turns that ended because their time was over.
async fn turns_spent(client: &mut Visitor) -> io::Result<u64> {
    client.send("INFO everything").await?;
    let info = client.reply().await?;
    let figure = info
        .lines()
        .find_map(|line| line.strip_prefix("turns_spent:"));
    Ok(figure.expect("the figure").parse().expect("a number"))
}

/// Fails if the clock is read after several such commands only, as after short ones.
#[test]
fn each_command_that_may_be_slow_ends_its_turn() {
    const TIMES: u8 = 10;
    visits(async |slow, other| {
        let before = turns_spent(other).await?;
        let commands = vec![words("CLIENT LIST"); usize::from(TIMES)];
        slow.send_with_mark(&commands).await?;
        slow.replies().await?;
        let spent = turns_spent(other).await? - before;
        assert!(spent >= u64::from(TIMES), "{spent} turns");
        Ok(())
    });
}
