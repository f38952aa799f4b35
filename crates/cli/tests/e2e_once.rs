//! ONCE: commands that clients send again because they do not know whether they were carried out.

mod support;

use std::thread;
use support::resp::Connection;
use support::{Server, eventually};

/// Each command twice: the second time nothing changes, and the reply is the first one.
#[test]
fn a_command_that_comes_again_gets_its_first_reply_and_changes_nothing() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    for (line, reply) in [
        ("once 1 incr a", ":1\r\n"),
        ("once 2 incr a", ":2\r\n"),
        ("once 3 set a x get", "$1\r\n2\r\n"),
        ("once 4 getdel a", "$1\r\nx\r\n"),
        ("once 5 getdel a", "$-1\r\n"),
        ("once 6 append b 12", ":2\r\n"),
        ("once 7 mset c 1 d 2", "+OK\r\n"),
        ("once 8 del c d nope", ":2\r\n"),
        (
            "once 9 incr b 1",
            "-ERR wrong number of arguments for 'incr' command\r\n",
        ),
        (
            "once 10 incrby b x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "once 11 txn if absent e then 3 set e 1 2 incr b else 2 get e",
            "*2\r\n:1\r\n*2\r\n+OK\r\n:13\r\n",
        ),
        ("ONCE 12 DELRANGE - +", ":2\r\n"),
    ] {
        for _ in 0..2 {
            assert_eq!(client.text(line), reply, "{line}");
        }
    }
    // The id counts, and nothing else.
    assert_eq!(client.text("once 12 set other value"), ":2\r\n");
    assert_eq!(client.text("get other"), "$-1\r\n");
    // The other version of the protocol spells what is not there in another way.
    assert!(client.text("hello 3").starts_with('%'));
    assert_eq!(client.text("once 5 getdel a"), "_\r\n");
    assert_eq!(client.text("once 13 set a 1 get"), "_\r\n");
    let stats = server.connect().info("stats");
    // All but that with a wrong number of arguments, which was not carried out.
    assert_eq!(stats["once_ids"], "12");
    assert_eq!(stats["once_repeated"], "13");
}

#[test]
fn what_makes_no_sense_with_an_id_is_refused_and_not_remembered() {
    let server = Server::tremula(&["--threads", "1", "--disable", "mailbox"]);
    let mut client = server.connect();
    let long = "x".repeat(257);
    for (line, reply) in [
        (
            &format!("once {long} incr a")[..],
            "-ERR an id of ONCE has 1 to 256 bytes\r\n",
        ),
        (
            "once 1 get a",
            "-ERR Command not allowed with ONCE: 'get', because it changes no keys\r\n",
        ),
        (
            "once 1 once 2 incr a",
            "-ERR Command not allowed with ONCE: 'once', because it is about more than keys\r\n",
        ),
        (
            "once 1 multi",
            "-ERR Command not allowed with ONCE: 'multi', because it is about more than keys\r\n",
        ),
        (
            "once 1 subscribe a",
            "-ERR Command not allowed with ONCE: 'subscribe', because it is about more than keys\r\n",
        ),
        (
            "once 1 ets.new t set",
            "-ERR Command not allowed with ONCE: 'ets.new', because rows of tables are not held \
             together with keys\r\n",
        ),
        (
            "once 1 copyrange - + x",
            "-ERR Command not allowed with ONCE: 'copyrange', because it is a step of its own\r\n",
        ),
        (
            "once 1 nope",
            "-ERR unknown command 'nope', with args beginning with: \r\n",
        ),
        (
            "once 1 txn if",
            "-ERR wrong number of arguments for 'txn' command\r\n",
        ),
        (
            "once 1 txn get a b",
            "-ERR TXN: THEN expected, not 'get'\r\n",
        ),
        (
            "once 1",
            "-ERR wrong number of arguments for 'once' command\r\n",
        ),
    ] {
        assert_eq!(client.text(line), reply, "{line}");
    }
    assert_eq!(client.text("multi"), "+OK\r\n");
    let refused = client.text("once 1 incr a");
    assert!(
        refused.starts_with("-ERR Command not allowed inside a transaction: 'once'"),
        "{refused}"
    );
    assert!(client.text("exec").starts_with("-EXECABORT "));
    assert_eq!(client.info("stats")["once_ids"], "0");
    assert_eq!(client.text("once 1 incr a"), ":1\r\n");
}

/// The command is checked as if it came alone, and nobody gets what another user was answered.
#[test]
fn users_have_their_own_ids_and_rights() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    let rules = ["on", ">secret", "+once", "+getdel", "~open:*"].join(" ");
    for name in ["one", "two"] {
        assert_eq!(
            client.text(&format!("acl setuser {name} {rules}")),
            "+OK\r\n"
        );
    }
    assert_eq!(client.text("mset open:1 a closed:1 b"), "+OK\r\n");
    let [mut one, mut two] = ["one", "two"].map(|name| {
        let mut client = server.connect();
        assert_eq!(client.text(&format!("auth {name} secret")), "+OK\r\n");
        client
    });
    assert_eq!(one.text("once 1 getdel open:1"), "$1\r\na\r\n");
    assert_eq!(two.text("once 1 getdel open:1"), "$-1\r\n");
    assert_eq!(one.text("once 1 getdel open:1"), "$1\r\na\r\n");
    for line in ["once 2 getdel closed:1", "once 2 set open:1 x"] {
        let refused = one.text(line);
        assert!(refused.starts_with("-NOPERM "), "{line}: {refused}");
    }
    assert_eq!(client.text("get closed:1"), "$1\r\nb\r\n");
}

/// Fails if two copies of a command that come at once are both carried out.
#[test]
fn copies_that_come_at_once_are_carried_out_once() {
    const COMMANDS: usize = 500;
    let server = Server::tremula(&["--threads", "2", "--gather", "no"]);
    let send = || {
        let mut client = server.connect();
        for number in 0..COMMANDS {
            loop {
                let reply = client.text(&format!("once {number} incr counter:{number}"));
                if !reply.starts_with("-TRYAGAIN") {
                    assert_eq!(reply, ":1\r\n");
                    break;
                }
            }
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(send))));
    let stats = server.connect().info("stats");
    assert_eq!(stats["once_ids"], COMMANDS.to_string());
}

/// Answers from the log, from a snapshot, and from the log behind one.
#[test]
fn answers_are_there_after_a_kill_and_after_an_orderly_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let start = || Server::kept(directory.path(), &["--durability", "always"]);
    let check = |client: &mut Connection, ids: i32| {
        for id in 0..ids {
            let reply = client.text(&format!("once {id} incr counter"));
            assert_eq!(reply, format!(":{}\r\n", id + 1));
        }
        assert_eq!(client.text("get counter"), format!("$1\r\n{ids}\r\n"));
    };
    let mut ids = 0;
    for round in 0..4 {
        let mut server = start();
        let mut client = server.connect();
        check(&mut client, ids.max(1));
        ids = ids.max(1);
        if round == 1 {
            assert_eq!(client.text("save"), "+OK\r\n");
        }
        let reply = client.text(&format!("once {ids} incr counter"));
        assert_eq!(reply, format!(":{}\r\n", ids + 1));
        ids += 1;
        if round == 2 {
            server.signal("TERM");
            assert!(server.wait().success());
        }
    }
    let server = start();
    check(&mut server.connect(), ids);
}

/// Values that are longer than an answer may be.
#[test]
fn a_long_reply_is_not_kept_but_its_command_is_not_carried_out_again() {
    let server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    let value = "x".repeat(200_000);
    assert_eq!(client.call(&["set", "a", &value]), b"+OK\r\n");
    let reply = client.text("once 1 getdel a");
    assert_eq!(reply, format!("$200000\r\n{value}\r\n"));
    assert_eq!(client.call(&["set", "a", "new"]), b"+OK\r\n");
    let again = client.text("once 1 getdel a");
    assert!(
        again.starts_with(
            "-ERR the command with this id was carried out; its reply of 200011 bytes"
        ),
        "{again}"
    );
    assert_eq!(client.text("get a"), "$3\r\nnew\r\n");
    eventually("the answer is small", || {
        let stats = client.info("stats");
        stats["once_bytes"].parse::<usize>().expect("a number") < 1000
    });
}
