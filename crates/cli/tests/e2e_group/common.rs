//! Users and settings that are the same on all nodes.

use crate::cluster::Cluster;
use crate::flat;
use crate::support::eventually;

fn shows(cluster: &Cluster, at: usize, line: &str, reply: &str) {
    let words: Vec<_> = line.split(' ').collect();
    eventually(line, || {
        let shown = cluster.ask(at, &words);
        shown.is_some_and(|shown| flat(&shown).contains(reply))
    });
}

#[test]
fn users_and_settings_are_the_same_on_all_nodes_and_behind_a_failover() {
    let mut cluster = Cluster::with(1, 3, 3, &["--max-memory", "1gb"]);
    let old = cluster.leader();
    let follower = (old + 1) % 3;
    for line in [
        "acl setuser gone on nopass +@all ~*",
        "acl setuser alice on >secret +get +set ~a:* resetchannels &news",
        "acl setuser bob on nopass (+get ~b:*) -@all",
        "config set maxmemory-policy allkeys-lru notify-keyspace-events KEA",
        "config set maxmemory 900mb",
    ] {
        assert_eq!(cluster.text(old, line), "+OK\r\n", "{line}");
    }
    shows(&cluster, follower, "acl users", "gone");
    let mut gone = cluster.connect(follower).expect("the node listens");
    assert_eq!(gone.text("auth gone x"), "+OK\r\n");
    assert_eq!(cluster.text(old, "acl deluser gone nobody"), ":1\r\n");
    // As where he was removed.
    eventually("the connection of a removed user ends", || {
        gone.send(b"*1\r\n$4\r\nPING\r\n");
        gone.reply_or_end().is_none()
    });
    let users = cluster.text(old, "acl list");
    let check = |cluster: &Cluster, at: usize| {
        eventually("the users are the same", || {
            cluster.text(at, "acl list") == users
        });
        shows(cluster, at, "config get maxmemory-policy", "allkeys-lru");
        shows(cluster, at, "config get notify-keyspace-events", "AKE");
        let mut alice = cluster.connect(at).expect("the node listens");
        assert_eq!(alice.text("auth alice secret"), "+OK\r\n");
        assert!(alice.text("get b:1").starts_with("-NOPERM"));
    };
    for at in 0..3 {
        check(&cluster, at);
    }
    // The size of a machine's memory is its own.
    shows(&cluster, follower, "config get maxmemory", "1073741824");
    for line in [
        "acl setuser eve on",
        "acl deluser alice",
        "config set maxmemory-policy noeviction",
        "config set requirepass x",
    ] {
        let refused = cluster.text(follower, line);
        assert!(refused.starts_with("-READONLY "), "{line}: {refused}");
    }
    assert_eq!(
        cluster.text(follower, "config set maxmemory 800mb"),
        "+OK\r\n"
    );
    cluster.nodes[old] = None;
    let new = cluster.leader();
    check(&cluster, new);
    assert_eq!(
        cluster.text(new, "acl setuser carol on nopass +ping"),
        "+OK\r\n"
    );
    let users = cluster.text(new, "acl list");
    cluster.start_again(old);
    eventually("the users are the same", || {
        cluster.text(old, "acl list") == users
    });
    check_old(&cluster, old);
}

/// What a node has read again from its own log.
fn check_old(cluster: &Cluster, at: usize) {
    shows(cluster, at, "config get maxmemory-policy", "allkeys-lru");
    shows(cluster, at, "config get notify-keyspace-events", "AKE");
}
