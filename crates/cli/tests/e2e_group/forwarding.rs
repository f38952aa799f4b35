//! Writes at followers, which these send on to the leader.

use crate::cluster::{Cluster, stop};
use crate::support::eventually;
use crate::support::resp::encode;
use std::fs;

const FORWARD: &[&str] = &["--forward-writes", "yes"];

/// Waits until a follower sends writes to the leader, and gets its replies.
fn has_way(cluster: &Cluster, at: usize) {
    eventually("the follower reaches the leader", || {
        cluster.text(at, "set ~way x") == "+OK\r\n"
    });
}

#[test]
fn a_follower_sends_writes_on_and_shows_them_when_it_answers() {
    let cluster = Cluster::with(1, 2, 2, FORWARD);
    let leader = cluster.leader();
    let follower = 1 - leader;
    has_way(&cluster, follower);
    let mut client = cluster.connect(follower).expect("the node listens");
    for (line, reply) in [
        ("set a 1", "+OK\r\n"),
        ("incr a", ":2\r\n"),
        ("get a", "$1\r\n2\r\n"),
        (
            "incr a x",
            "-ERR wrong number of arguments for 'incr' command\r\n",
        ),
        (
            "incrby a x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("select 3", "+OK\r\n"),
        ("mset b 1 c 2", "+OK\r\n"),
        ("getdel b", "$1\r\n1\r\n"),
        ("getdel b", "$-1\r\n"),
        ("dbsize", ":1\r\n"),
        (
            "txn if absent d then 3 set d 1 2 incr c",
            "*2\r\n:1\r\n*2\r\n+OK\r\n:3\r\n",
        ),
        ("once 1 incr c", ":4\r\n"),
        ("once 1 incr c", ":4\r\n"),
        ("get c", "$1\r\n4\r\n"),
    ] {
        assert_eq!(client.text(line), reply, "{line}");
    }
    // At the leader the id is the same user's.
    let mut direct = cluster.connect(leader).expect("the node listens");
    assert_eq!(direct.text("select 3"), "+OK\r\n");
    assert_eq!(direct.text("once 1 incr c"), ":4\r\n");
    assert_eq!(direct.text("get c"), "$1\r\n4\r\n");
    // In the other version of the protocol, in a pipeline, and with a reply that nobody wants.
    assert!(client.text("hello 3").starts_with('%'));
    assert_eq!(client.text("getdel b"), "_\r\n");
    let long = "x".repeat(300_000);
    let mut pipeline = encode(&["set", "long", &long]);
    pipeline.extend(encode(&["client", "reply", "skip"]));
    pipeline.extend(encode(&["incr", "c"]));
    pipeline.extend(encode(&["getdel", "long"]));
    client.send(&pipeline);
    assert_eq!(client.reply().expect("a reply"), b"+OK\r\n");
    let reply = client.reply().expect("a reply");
    assert_eq!(reply, format!("${}\r\n{long}\r\n", long.len()).as_bytes());
    assert_eq!(client.text("get c"), "$1\r\n5\r\n");
    // What is about the connection stays here.
    for line in ["ets.new t set", "mailbox.new box"] {
        let refused = client.text(line);
        assert!(refused.starts_with("-READONLY "), "{line}: {refused}");
    }
    assert_eq!(client.text("multi"), "+OK\r\n");
    let refused = client.text("set a 1");
    assert!(refused.starts_with("-READONLY "), "{refused}");
    assert!(client.text("exec").starts_with("-EXECABORT "));
    assert_eq!(client.text("set a 3"), "+OK\r\n");
}

/// The client's rights are checked where it is connected, and the node has rights of its own.
#[test]
fn users_write_at_a_follower_what_they_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let password = folder.path().join("password");
    fs::write(&password, "between nodes\n").expect("a file");
    let password = password.to_str().expect("text");
    let user = [
        "--forward-user",
        "node",
        "--forward-password-file",
        password,
    ];
    let cluster = Cluster::with(1, 2, 2, &[FORWARD, &user].concat());
    let leader = cluster.leader();
    let follower = 1 - leader;
    eventually("the leader does not know the node", || {
        let refused = cluster.text(follower, "set a 1");
        refused.starts_with("-TRYAGAIN the leader ") && refused.contains("WRONGPASS")
    });
    for line in [
        "acl setuser app on >secret +set +once +txn +incr +auth ~app:*",
        "acl setuser other on >secret +once +incr +auth ~app:*",
    ] {
        assert_eq!(cluster.text(leader, line), "+OK\r\n", "{line}");
    }
    let rights = ["+client|forwarded", "+client|lastseq", "+select", "+hello"];
    let words = [
        &["acl", "setuser", "node", "on", ">between nodes"][..],
        &rights,
    ]
    .concat();
    assert_eq!(cluster.ask(leader, &words).expect("a reply"), b"+OK\r\n");
    has_way(&cluster, follower);
    let mut client = cluster.connect(follower).expect("the node listens");
    assert_eq!(client.text("auth app secret"), "+OK\r\n");
    assert_eq!(client.text("set app:1 x"), "+OK\r\n");
    // Also what is in a command that is sent on.
    for line in [
        "set closed x",
        "del app:1",
        "once 1 del app:1",
        "once 1 set closed x",
    ] {
        let refused = client.text(line);
        assert!(refused.starts_with("-NOPERM "), "{line}: {refused}");
    }
    let inner = client.text("txn then 3 set app:1 y 2 del app:1");
    assert!(inner.contains("-NOPERM "), "{inner}");
    assert_eq!(client.text("set app:1 z"), "+OK\r\n");
    assert!(client.text("client forwarded node").starts_with("-NOPERM "));
    assert_eq!(client.text("once 1 incr app:2"), ":1\r\n");
    assert_eq!(client.text("auth other secret"), "+OK\r\n");
    assert_eq!(client.text("once 1 incr app:2"), ":2\r\n");
    assert_eq!(client.text("auth app secret"), "+OK\r\n");
    assert_eq!(client.text("once 1 incr app:2"), ":1\r\n");
    // A user that is removed has no way any more.
    assert_eq!(cluster.text(leader, "acl deluser app"), ":1\r\n");
    eventually("the connection of the removed user ends", || {
        client.send(&encode(&["incr", "app:2"]));
        client.reply_or_end().is_none()
    });
}

/// Fails if a write is acknowledged that the leader has not answered.
#[test]
fn a_write_whose_answer_is_lost_is_not_acknowledged() {
    let cluster = Cluster::with(1, 3, 3, FORWARD);
    let old = cluster.leader();
    let follower = (old + 1) % 3;
    has_way(&cluster, follower);
    let mut client = cluster.connect(follower).expect("the node listens");
    assert_eq!(client.text("set a 1"), "+OK\r\n");
    let server = cluster.nodes[old].as_ref().expect("it runs");
    stop(server);
    client.send(&encode(&["set", "lost", "x"]));
    let reply = client.reply_or_end().unwrap_or_default();
    assert!(reply.starts_with(b"-TRYAGAIN "), "{}", reply.escape_ascii());
    assert_eq!(client.reply_or_end(), None, "the connection ends");
    eventually("the next leader gets writes", || {
        cluster.text(follower, "set a 2") == "+OK\r\n"
    });
    server.signal("CONT");
    eventually("the old leader follows, and sends writes on", || {
        cluster.text(old, "incr a") == ":3\r\n"
    });
    assert_eq!(cluster.text(old, "mget a lost"), "*2\r\n$1\r\n3\r\n$-1\r\n");
}
