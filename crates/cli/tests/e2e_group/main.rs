//! Groups of nodes whose log real servers of NATS have: writes on the leader, reads on followers,
//! and what happens when one of them dies, stops, or has lost what it had.

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod common;
mod feed;
mod forwarding;
mod history;
mod keeper;
mod nemesis;
mod proxy;
mod secured;
mod sentinel;
mod snapshots;

use cluster::{Cluster, View};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use support::resp::{bulk, elements, encode};
use support::{eventually, run};

/// A reply as words; `-` for what is not there.
fn flat(reply: &[u8]) -> String {
    match reply {
        [b'*', ..] => {
            let words = elements(reply).into_iter().map(|word| flat(&word));
            words.collect::<Vec<_>>().join(" ")
        }
        b"$-1\r\n" => "-".to_owned(),
        [b'$', ..] => String::from_utf8(bulk(reply)).expect("text"),
        _ => String::from_utf8_lossy(&reply[1..]).trim_end().to_owned(),
    }
}

/// What writers know: for each key, the last value that was acknowledged, and the last that was
/// sent.
type Known = BTreeMap<String, (u64, u64)>;

/// Raises counters of its own until `is_over`, by whichever node takes writes.
fn write(cluster: &View, writer: usize, is_over: &AtomicBool) -> Known {
    let mut known = Known::new();
    let mut connection = None;
    let mut at = 0;
    for round in 0_u64.. {
        if is_over.load(SeqCst) {
            break;
        }
        let key = format!("w{writer}:{}", round % 16);
        let (_, sent) = known.get(&key).copied().unwrap_or((0, 0));
        let Some(open) = &mut connection else {
            at = (at + 1) % cluster.addresses.len();
            connection = cluster.connect(at);
            if connection.is_none() {
                thread::sleep(Duration::from_millis(5));
            }
            continue;
        };
        let value = sent + 1;
        open.send(&encode(&["set", &key, &value.to_string()]));
        let reply = open.reply_or_end();
        match reply.as_deref() {
            Some(b"+OK\r\n") => {
                known.insert(key, (value, value));
            }
            Some(refused) if refused.starts_with(b"-READONLY") => connection = None,
            // It may have happened.
            _ => {
                known.entry(key).or_default().1 = value;
                connection = None;
            }
        }
    }
    known
}

/// Checks at one node that nothing that was acknowledged is missing.
fn check(cluster: &Cluster, at: usize, known: &Known) {
    let mut connection = cluster.connect(at).expect("the node listens");
    for (key, (acknowledged, sent)) in known {
        let reply = connection.call(&["get", key]);
        let value = match &reply[..] {
            b"$-1\r\n" => 0,
            reply => String::from_utf8(bulk(reply))
                .expect("text")
                .parse()
                .expect("a number"),
        };
        assert!(
            (*acknowledged..=*sent).contains(&value),
            "node {at}, {key}: {value}, acknowledged {acknowledged}, sent {sent}"
        );
    }
}

/// Waits until a node shows what another one does.
fn catch_up(cluster: &Cluster, at: usize, leader: usize) {
    eventually("the node catches up", || {
        let of = |at| cluster.figure(at, "master_repl_offset");
        of(at).is_some() && of(at) == of(leader)
    });
}

#[test]
fn followers_show_what_the_leader_writes_and_refuse_writes() {
    let cluster = Cluster::new(1, 2);
    let leader = cluster.leader();
    let follower = 1 - leader;
    let long = "x".repeat(3_000_000);
    for command in [
        &["mset", "a", "1", "b", "2"][..],
        &["incr", "a"],
        &["append", "b", "3"],
        &["set", "gone", "x", "px", "50"],
        &["set", "long", &long],
        &["ets.new", "t", "ordered_set"],
        &["ets.insert", "t", "{1,a}"],
    ] {
        let reply = cluster.ask(leader, command).expect("a reply");
        assert_ne!(reply[0], b'-', "{command:?}: {}", reply.escape_ascii());
    }
    catch_up(&cluster, follower, leader);
    let mut connection = cluster.connect(follower).expect("the node listens");
    assert_eq!(flat(&connection.call(&["mget", "a", "b"])), "2 23");
    assert_eq!(bulk(&connection.call(&["get", "long"])).len(), long.len());
    assert_eq!(flat(&connection.call(&["ets.lookup", "t", "1"])), "[{1,a}]");
    eventually("the leader expires the key", || {
        connection.text("exists gone") == ":0\r\n"
    });
    // A write that was just made, read on a follower.
    let mut writer = cluster.connect(leader).expect("the node listens");
    for value in ["4", "5", "6"] {
        assert_eq!(writer.text(&format!("set own {value}")), "+OK\r\n");
        let sequence = flat(&writer.call(&["client", "lastseq"]));
        let reached = flat(&connection.call(&["waitseq", &sequence, "0"]));
        let number = |text: &str| text.parse::<u64>().expect("a number");
        assert!(
            number(&reached) >= number(&sequence),
            "{reached} of {sequence}"
        );
        assert_eq!(flat(&connection.call(&["get", "own"])), value);
    }
    let late = connection.text("waitseq 1000000000 20");
    assert!(late.starts_with("-TRYAGAIN effect 1000000000 "), "{late}");
    let refused = String::from_utf8(connection.call(&["set", "a", "3"])).expect("text");
    let address = cluster.addresses[leader].to_string();
    assert!(
        refused.starts_with("-READONLY ") && refused.contains(&address),
        "{refused}"
    );
    let role = flat(&connection.call(&["role"]));
    let port = cluster.addresses[leader].port();
    assert!(
        role.starts_with(&format!("slave 127.0.0.1 {port} connected")),
        "{role}"
    );
    let role = cluster.ask(leader, &["role"]).expect("a reply");
    let role = flat(&role);
    assert!(role.starts_with("master "), "{role}");
}

#[test]
fn a_killed_leader_is_replaced_and_no_acknowledged_write_is_lost() {
    let mut cluster = Cluster::new(3, 3);
    let mut leader = cluster.leader();
    for round in 0..2 {
        let is_over = AtomicBool::new(false);
        let nodes = std::mem::take(&mut cluster.nodes);
        let mut nodes: Vec<_> = nodes;
        let known = thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    scope.spawn({
                        let (view, is_over) = (cluster.view(), &is_over);
                        move || write(&view, 10 * round + writer, is_over)
                    })
                })
                .collect();
            thread::sleep(Duration::from_millis(500));
            nodes[leader] = None;
            eventually("another node leads", || {
                (0..3).any(|at| {
                    let standing = cluster.figure(at, "group_standing");
                    at != leader && standing.as_deref() == Some("leader")
                })
            });
            thread::sleep(Duration::from_millis(500));
            is_over.store(true, SeqCst);
            let known = writers
                .into_iter()
                .map(|writer| writer.join().expect("no panic"));
            known.flatten().collect::<Known>()
        });
        cluster.nodes = nodes;
        assert!(known.values().any(|(acknowledged, _)| *acknowledged > 0));
        let killed = leader;
        leader = cluster.leader();
        assert_ne!(leader, killed);
        check(&cluster, leader, &known);
        cluster.start_again(killed);
        for at in (0..3).filter(|at| *at != leader) {
            catch_up(&cluster, at, leader);
            check(&cluster, at, &known);
        }
    }
}

/// Stops the leader until another node leads, and lets it go on. Meanwhile a client has sent it a
/// command.
fn stopped(command: &[&str]) {
    let cluster = Cluster::new(1, 3);
    let old = cluster.leader();
    let set = ["set", "key", "old"];
    assert_eq!(cluster.ask(old, &set).as_deref(), Some(&b"+OK\r\n"[..]));
    let server = cluster.nodes[old].as_ref().expect("it runs");
    let mut client = cluster.connect(old).expect("it listens");
    cluster::stop(server);
    client.send(&encode(command));
    let mut new = None;
    eventually("another node leads", || {
        new = (0..3).find(|at| {
            let set = ["set", "key", "new"];
            *at != old && cluster.ask(*at, &set).as_deref() == Some(b"+OK\r\n")
        });
        new.is_some()
    });
    server.signal("CONT");
    // An error, or a closed connection.
    let reply = client.reply_or_end().unwrap_or_default();
    assert!(
        reply.is_empty() || reply.starts_with(b"-TRYAGAIN"),
        "{}",
        reply.escape_ascii()
    );
    eventually("the old leader follows", || {
        cluster.figure(old, "group_standing").as_deref() == Some("follower")
    });
    catch_up(&cluster, old, new.expect("a leader"));
    let mut connection = cluster.connect(old).expect("it listens");
    assert_eq!(flat(&connection.call(&["mget", "key", "lost"])), "new -");
}

#[test]
fn a_leader_that_was_stopped_shows_nothing_old() {
    stopped(&["get", "key"]);
}

#[test]
fn a_leader_that_was_stopped_confirms_nothing() {
    stopped(&["set", "lost", "x"]);
}

#[test]
fn nodes_refuse_a_log_that_has_lost_what_they_have_read() {
    let mut cluster = Cluster::new(1, 2);
    let leader = cluster.leader();
    catch_up(&cluster, 1 - leader, leader);
    cluster.nats[0].kill();
    let store = cluster.folder().join("nats0");
    std::fs::remove_dir_all(store).expect("the folder goes");
    cluster.nats[0].again();
    for at in 0..2 {
        eventually("the node refuses", || {
            cluster.figure(at, "group_standing").as_deref() == Some("refusing")
        });
        let why = cluster.figure(at, "group_refusal").unwrap_or_default();
        assert!(why.contains("lost its tail"), "{why}");
        let reply = cluster.ask(at, &["get", "~probe"]).expect("a reply");
        assert!(reply.starts_with(b"-MISCONF "), "{}", reply.escape_ascii());
    }
    // A start changes nothing: the log has been made anew, and is shorter than the node's own.
    cluster.start_again(leader);
    eventually("the node refuses", || {
        cluster.figure(leader, "group_standing").as_deref() == Some("refusing")
    });
}

/// Fails if a command is carried out again by a leader that has not run it.
#[test]
fn a_retry_at_the_next_leader_gets_the_first_answer() {
    let mut cluster = Cluster::new(1, 3);
    let old = cluster.leader();
    for (line, reply) in [
        ("once 1 incr counter", ":1\r\n"),
        (
            "once 2 incrby counter x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "once 3 txn then 2 incr counter 3 set other 1",
            "*2\r\n:1\r\n*2\r\n:2\r\n+OK\r\n",
        ),
    ] {
        for _ in 0..2 {
            assert_eq!(cluster.text(old, line), reply, "{line}");
        }
    }
    cluster.nodes[old] = None;
    let new = cluster.leader();
    assert_ne!(new, old);
    assert_eq!(cluster.text(new, "del other"), ":1\r\n");
    assert_eq!(cluster.text(new, "once 1 incr counter"), ":1\r\n");
    assert!(
        cluster
            .text(new, "once 2 incrby counter 5")
            .starts_with("-ERR value")
    );
    let reply = cluster.text(new, "once 3 txn then 2 incr counter 3 set other 1");
    assert_eq!(reply, "*2\r\n:1\r\n*2\r\n:2\r\n+OK\r\n");
    assert_eq!(
        cluster.text(new, "mget counter other"),
        "*2\r\n$1\r\n2\r\n$-1\r\n"
    );
    let follower = (0..3).find(|at| *at != old && *at != new).expect("a node");
    let refused = cluster.text(follower, "once 1 incr counter");
    assert!(refused.starts_with("-READONLY "), "{refused}");
}

/// Its processes outlive the command that starts them.
#[test]
fn a_cluster_for_trying_out_comes_up_fails_over_and_goes_down() {
    let tried = cluster::Tried::new();
    let cluster = |command| tried.run(command);
    let up = cluster("up");
    assert!(
        up.contains("node3 is started") && up.contains(" leads; try:"),
        "{up}"
    );
    let line = |status: &str| {
        let leader = status.lines().find(|line| line.contains(" leader "));
        let words = leader?.split_whitespace().map(str::to_owned);
        Some(words.collect::<Vec<_>>())
    };
    let leader = line(&cluster("status")).expect("a leader");
    let killed = run(Command::new("kill").args(["-9", &leader[1]]), b"");
    assert!(killed.status.success());
    eventually("another node leads", || {
        line(&cluster("status")).is_some_and(|other| other[0] != leader[0])
    });
    let again = cluster("up");
    assert!(
        again.contains(&format!("{} is started", leader[0])),
        "{again}"
    );
    let down = cluster("down");
    assert_eq!(down.lines().count(), 6, "{down}");
    assert_eq!(cluster("status").matches("does not run").count(), 6);
}

/// Fails if an acknowledged write is lost or is there twice, if two leaders answer, or if a
/// follower goes back.
#[test]
fn histories_over_faults_are_right() {
    nemesis::campaign();
}
