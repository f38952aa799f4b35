//! Users: what a real Redis 7.0 lets them do, and what only Tremula has.

mod hidden;
#[path = "../support/mod.rs"]
mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use support::resp::{Connection, elements, encode};
use support::{PATIENCE, Server};

/// Users that are made at random, and rules of each.
const USERS: usize = 150;
const MOST_RULES: usize = 8;

/// Words of rules that both servers know. Patterns and keys are over the letters a and b.
const RULES: &[&str] = &[
    "allkeys",
    "resetkeys",
    "~*",
    "~a*",
    "~b",
    "~[ab]b",
    "%R~a",
    "%W~b*",
    "%RW~ab",
    "%R~*",
    "%W~*",
    "+@all",
    "-@all",
    "allcommands",
    "nocommands",
    "+@read",
    "-@read",
    "+@write",
    "-@write",
    "+@string",
    "-@string",
    "+@keyspace",
    "+@fast",
    "-@fast",
    "+@slow",
    "-@slow",
    "+@dangerous",
    "-@dangerous",
    "+@admin",
    "-@admin",
    "+@connection",
    "-@connection",
    "+@transaction",
    "-@blocking",
    "+@sortedset",
    "-@hash",
    "+get",
    "-get",
    "+set",
    "-set",
    "+client",
    "-client",
    "+client|id",
    "-client|id",
    "+client|kill",
    "-client|kill",
    "+config",
    "-config|get",
    "+config|get",
    "+acl",
    "-acl",
    "+acl|whoami",
    "-acl|list",
    "+select|0",
    "+ping|a",
    "+select",
    "-select",
    "+mget",
    "+mset",
    "+command",
    "-command|count",
    "(+get ~a)",
    "(+@write %W~b)",
    "(~ab +@all -set)",
    "clearselectors",
    "reset",
    "on",
    "off",
    "nopass",
    "resetpass",
    ">pw",
    // Refused by both.
    "+nope",
    "+@nope",
    "+client|nope",
    "-select|0",
    "+client|kill|x",
    "%~a",
    "%X~a",
    "~a\tb",
    "foo",
    "#12",
    "<other",
    "(on)",
    "(+nope)",
    "(+get",
    "",
];

/// Commands that both servers check alike.
const TRIED: &[&str] = &[
    "get KEY",
    "set KEY v",
    "set KEY v GET",
    "setnx KEY v",
    "getset KEY v",
    "getdel KEY",
    "copy KEY KEY",
    "touch KEY KEY",
    "mget KEY KEY",
    "mset KEY v KEY v",
    "incr KEY",
    "incrbyfloat KEY 1",
    "append KEY v",
    "strlen KEY",
    "getrange KEY 0 1",
    "setrange KEY 0 v",
    "del KEY KEY",
    "unlink KEY",
    "exists KEY KEY",
    "type KEY",
    "keys *",
    "scan 0",
    "dbsize",
    "ping",
    "ping a",
    "echo a",
    "select 0",
    "select 1",
    "info",
    "config get x",
    "config help",
    "client id",
    "client list",
    "client kill x",
    "client info",
    "client setname x",
    "client pause 0",
    "client no-evict on",
    "command",
    "command count",
    "command docs",
    "acl whoami",
    "acl list",
    "acl cat",
    "acl setuser x",
    "acl log",
    "acl genpass",
    "auth x",
    "hello",
    "quit",
    "reset",
    "multi",
    "exec",
    "discard",
    "watch KEY",
    "unwatch",
    // Errors of the question itself.
    "get",
    "nope",
    "client nope",
];

fn key(random: &mut StdRng) -> String {
    // Redis's patterns never match the empty key.
    let length = random.random_range(1..3);
    (0..length)
        .map(|_| *['a', 'b'].choose(random).expect("a letter"))
        .collect()
}

fn arguments(words: &str, random: &mut StdRng) -> Vec<Vec<u8>> {
    words
        .split(' ')
        .map(|word| match word {
            "KEY" => key(random).into_bytes(),
            word => word.as_bytes().to_vec(),
        })
        .collect()
}

/// For users with random rules, both servers take the same words and allow the same commands. This
/// would fail on a wrong category or a wrong access of a command, on rules that are applied in
/// another order, and on other texts of refusals.
#[test]
fn users_may_do_what_redis_lets_them() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "1"]));
    let (mut theirs, mut ours) = (redis.connect(), tremula.connect());
    let seed = std::env::var("TREMULA_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    println!("seed {seed}");
    let random = &mut StdRng::seed_from_u64(seed);
    let (mut allowed, mut refused, mut different) = (0, 0, Vec::new());
    for user in 0..USERS {
        let name = format!("user{user}");
        // Word by word, so that a refused one does not take the others with it.
        for _ in 0..random.random_range(1..=MOST_RULES) {
            let rule = RULES.choose(random).expect("a rule");
            let command = ["acl", "setuser", &name, rule];
            same(&mut theirs, &mut ours, &command);
        }
        for tried in TRIED {
            let mut command: Vec<_> = ["acl", "dryrun", &name].map(|word| word.into()).into();
            command.extend(arguments(tried, random));
            let (expected, reply) = (theirs.call(&command), ours.call(&command));
            if reply != expected {
                let rules = theirs.call(&["acl", "list"]);
                let [command, expected, reply, rules] = [
                    command.join(&b' '),
                    expected,
                    reply.clone(),
                    elements(&rules)
                        .into_iter()
                        .find(|line| {
                            line.windows(name.len() + 1)
                                .any(|part| part == format!("{name} ").as_bytes())
                        })
                        .unwrap_or_default(),
                ]
                .map(|bytes| bytes.escape_ascii().to_string());
                different.push(format!("{command}: {reply}, not {expected} for {rules}"));
            }
            *(if reply == b"+OK\r\n" {
                &mut allowed
            } else {
                &mut refused
            }) += 1;
        }
    }
    assert!(
        different.is_empty(),
        "{} like {:#?}",
        different.len(),
        &different[..different.len().min(40)]
    );
    assert!(allowed > 1000 && refused > 1000, "{allowed}, {refused}");
}

/// Sends a command to both servers, which have to give the same reply.
fn same<T: AsRef<[u8]>>(theirs: &mut Connection, ours: &mut Connection, command: &[T]) -> Vec<u8> {
    let (expected, reply) = (theirs.call(command), ours.call(command));
    if reply != expected {
        let shown: Vec<_> = command
            .iter()
            .map(|word| word.as_ref().escape_ascii().to_string())
            .collect();
        let [reply, expected] = [&reply, &expected].map(|bytes| bytes.escape_ascii().to_string());
        panic!("{shown:?}: {reply}, not {expected}");
    }
    reply
}

/// The same commands by the same users, with the errors, the log and the replies of both servers.
#[test]
fn passwords_and_refusals_are_those_of_redis() {
    let (redis, tremula) = (Server::redis(), Server::tremula(&["--threads", "1"]));
    let (mut theirs, mut ours) = (redis.connect(), tremula.connect());
    for words in [
        "acl setuser one on >pw >other ~a* %R~b +@all -@dangerous +acl|log +client|list",
        "acl setuser two on nopass +get +ping",
        "acl setuser three >pw",
        "set b 1",
        "set c 2",
        "acl whoami",
        "acl users",
        "acl getuser nobody",
        "acl deluser default",
        "acl deluser nobody",
        "acl genpass 0",
        "acl genpass x",
        "acl cat nope",
        "acl log x",
        "acl nope",
        "acl",
        "auth pw",
        "auth one pw more",
        "auth one wrong",
        "auth three pw",
        "auth nobody pw",
        "hello 3 auth one wrong",
        "auth one other",
        "acl whoami",
        "get a",
        "get b",
        "get c",
        "set b x",
        "mget a c",
        "mset a 1 c 2",
        "exists c",
        "config get maxmemory",
        "auth two anything",
        "acl whoami",
        "get a",
        "ping",
        "client id",
        "auth default any",
    ] {
        let command: Vec<_> = words.split(' ').collect();
        // Redis takes any password for a user who needs none, and so does Tremula once a user has
        // one.
        same(&mut theirs, &mut ours, &command);
    }
    for words in [
        "acl setuser default >pw",
        "acl log reset",
        "ping",
        "reset",
        "ping",
        "get a",
        "nope",
        "get",
        "hello 3",
        "auth pw",
        "ping",
        "acl setuser default nopass",
        "auth x",
    ] {
        let command: Vec<_> = words.split(' ').collect();
        same(&mut theirs, &mut ours, &command);
    }
    let log = |connection: &mut Connection| -> Vec<Vec<Vec<u8>>> {
        let entries = elements(&connection.call(&["acl", "log", "100"]));
        let without_times = entries.iter().map(|entry| elements(entry)[..10].to_vec());
        without_times.collect()
    };
    for connection in [&mut theirs, &mut ours] {
        connection.call(&["acl", "log", "reset"]);
    }
    for words in [
        "auth one wrong",
        "auth one wrong",
        "auth one pw",
        "get c",
        "set b 1",
        "get c",
        "config get x",
        "auth default x",
    ] {
        let command: Vec<_> = words.split(' ').collect();
        same(&mut theirs, &mut ours, &command);
    }
    assert_eq!(log(&mut ours), log(&mut theirs));
}

/// What a client may send before it has proved who it is is small, and too much is answered before
/// it has arrived.
#[test]
fn a_stranger_gets_little_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    fs::write(&file, "secret\n").expect("written");
    let file = file.to_str().expect("a path");
    let redis = Server::redis();
    redis
        .connect()
        .call(&["config", "set", "requirepass", "secret"]);
    let tremula = Server::tremula(&["--threads", "1", "--password-file", file]);
    let (ours, theirs) = (&tremula, &redis);
    for bytes in [
        b"*11\r\n".to_vec(),
        b"*2\r\n$16385\r\n".to_vec(),
        encode(&["hello", "3", "auth", "default", "secret", "setname", "x"]),
        encode(&["get", "x"]),
        encode(&["auth", "secre"]),
        encode(&["auth", "secret"]),
    ] {
        let mut replies = [ours, theirs].map(|server| {
            let mut connection = server.connect();
            connection.send(&bytes);
            connection.finish();
            let mut all = Vec::new();
            while let Some(reply) = connection.reply() {
                all.extend(elements(&reply).into_iter().next().unwrap_or(reply));
            }
            all.escape_ascii().to_string()
        });
        replies.sort();
        assert_eq!(replies[0], replies[1], "{}", bytes.escape_ascii());
    }
    let mut known = tremula.connect();
    assert_eq!(known.text("auth secret"), "+OK\r\n");
    let many = vec!["x"; 100];
    assert_eq!(known.call(&[&["del"][..], &many].concat()), b":0\r\n");
}

/// The end of a connection that the server closes.
fn ends(connection: &mut Connection) {
    while connection.reply().is_some() {}
}

/// The file of users is read at the start, on `ACL LOAD` and on SIGHUP. A user that has not changed
/// stays connected; a wrong file changes nothing; and what is saved is what is read.
#[test]
fn the_file_of_users_is_read_again_and_closes_only_who_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users.acl");
    let text = "user default on nopass ~* &* tables:* mailboxes:* +@all\n\
                user one on >pw ~a* +@all\nuser two on >pw ~b* +@all\n";
    fs::write(&path, text).expect("written");
    let file = path.to_str().expect("a path");
    let tremula = Server::tremula(&["--threads", "2", "--acl-file", file]);
    let mut operator = tremula.connect();
    let login = |user: &str| {
        let mut connection = tremula.connect();
        assert_eq!(connection.text(&format!("auth {user} pw")), "+OK\r\n");
        connection
    };
    let (mut one, mut two, mut two_again) = (login("one"), login("two"), login("two"));
    let list = operator.text("client list");
    assert!(
        list.contains(" user=one ") && list.contains(" user=default "),
        "{list}"
    );

    assert_eq!(operator.text("acl save"), "+OK\r\n");
    assert_eq!(operator.text("acl load"), "+OK\r\n");
    assert_eq!(one.text("get a"), "$-1\r\n", "nothing has changed");

    fs::write(&path, text.replace("~b*", "~c*")).expect("written");
    assert_eq!(operator.text("acl load"), "+OK\r\n");
    assert_eq!(one.text("get a"), "$-1\r\n", "not changed");
    ends(&mut two);
    ends(&mut two_again);

    fs::write(&path, "user one on +nope\n").expect("written");
    let reply = operator.text("acl load");
    assert!(
        reply.starts_with("-ERR ") && reply.contains(":1: '+nope': Unknown command"),
        "{reply}"
    );
    tremula.signal("HUP");
    assert_eq!(one.text("get a"), "$-1\r\n", "a wrong file changes nothing");

    fs::write(&path, "user three on >pw ~* +@all\n").expect("written");
    tremula.signal("HUP");
    ends(&mut one);
    let deadline = Instant::now() + PATIENCE;
    while operator.text("acl users") != "*2\r\n$7\r\ndefault\r\n$5\r\nthree\r\n" {
        assert!(Instant::now() < deadline, "the users are not read");
        thread::sleep(Duration::from_millis(10));
    }

    // If the server has come to the first signal only now, the second one reads the file once more,
    // which does not have `four` yet.
    let saved = loop {
        assert_eq!(operator.text("acl setuser four on >pw"), "+OK\r\n");
        assert_eq!(operator.text("acl save"), "+OK\r\n");
        let saved = fs::read_to_string(&path).expect("read");
        if saved.lines().count() == 3 {
            break saved;
        }
        assert!(Instant::now() < deadline, "{saved}");
    };
    assert!(saved.contains("user four "), "{saved}");
    assert!(!saved.contains("pw"), "only hashes: {saved}");
}

/// Removing a user closes its connections, also the own one, which gets its reply.
#[test]
fn removed_users_lose_their_connections() {
    let tremula = Server::tremula(&["--threads", "2"]);
    let mut operator = tremula.connect();
    operator.text("acl setuser one on >pw +@all ~*");
    let login = || {
        let mut connection = tremula.connect();
        assert_eq!(connection.text("auth one pw"), "+OK\r\n");
        connection
    };
    let (mut first, mut second, mut third) = (login(), login(), login());
    assert_eq!(
        operator.text("client kill user nobody"),
        "-ERR No such user 'nobody'\r\n"
    );
    first.send(&encode(&["client", "kill", "user", "one"]));
    assert_eq!(first.reply().expect("a reply"), b":2\r\n", "not itself");
    ends(&mut second);
    ends(&mut third);
    let mut second = login();
    second.send(&encode(&["acl", "deluser", "one", "nobody"]));
    assert_eq!(second.reply().expect("a reply"), b":1\r\n");
    ends(&mut second);
    ends(&mut first);
    assert_eq!(operator.text("ping"), "+PONG\r\n");
    assert_eq!(
        operator.text("auth one pw"),
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
    );
}

/// A server does not start with a wrong file, and says where it is wrong.
#[test]
fn a_wrong_file_of_users_is_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users.acl");
    let file = path.to_str().expect("a path");
    for (text, flag, expected) in [
        (
            "user one on\nuser one off\n",
            "--acl-file",
            ":2: Duplicate user 'one'",
        ),
        ("\n", "--password-file", "its first line is empty"),
    ] {
        fs::write(&path, text).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        let output = support::run(command.args(["serve", "--port", "0", flag, file]), b"");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains(expected),
            "{error}"
        );
    }
}

/// Failed tries are in the server's log, with the client and the user, and the password is not.
#[test]
fn failed_tries_are_logged() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    let command = command.args(["serve", "--port", "0", "--threads", "1"]);
    let mut tremula = Server::of(command.stderr(Stdio::piped()));
    let mut log = BufReader::new(tremula.log()).lines();
    let mut client = tremula.connect();
    client.text("acl setuser one on >pw");
    client.text("auth one guess");
    let line = log.next().expect("a line").expect("text");
    assert!(
        line.contains("user one") && line.contains("addr=127.0.0.1"),
        "{line}"
    );
    assert!(!line.contains("guess"), "{line}");
}
