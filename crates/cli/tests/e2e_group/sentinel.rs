//! Clients that find the leader as they find a master by Redis Sentinel.

use crate::cluster::Cluster;
use crate::flat;
use crate::support::eventually;
use crate::support::resp::{Connection, bulk, elements};
use crate::support::scripts::{self, go, node, python, script};
use std::collections::BTreeMap;
use std::process::Command;

/// The descriptions in a reply.
fn described(reply: &[u8]) -> Vec<BTreeMap<String, String>> {
    let text = |reply: &Vec<u8>| String::from_utf8(bulk(reply)).expect("text");
    let one = |fields: Vec<u8>| {
        let words = elements(&fields);
        let pairs = words.chunks_exact(2);
        pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
    };
    elements(reply).into_iter().map(one).collect()
}

fn listen(cluster: &Cluster, at: usize, command: &str) -> Connection {
    let mut connection = cluster.connect(at).expect("the node listens");
    assert!(connection.text(command).starts_with("*3\r\n"), "{command}");
    connection
}

#[test]
fn every_node_names_the_leader_and_the_others_and_tells_of_the_next_one() {
    let mut cluster = Cluster::new(1, 3);
    let old = cluster.leader();
    let port = |at: usize, cluster: &Cluster| cluster.addresses[at].port().to_string();
    let ports = |of: Vec<BTreeMap<String, String>>| {
        let mut ports: Vec<_> = of.iter().map(|node| node["port"].clone()).collect();
        ports.sort();
        ports
    };
    let others = |than: usize, cluster: &Cluster| {
        let mut ports: Vec<_> = (0..3)
            .filter(|at| *at != than)
            .map(|at| port(at, cluster))
            .collect();
        ports.sort();
        ports
    };
    for at in 0..3 {
        eventually("the node has heard the others", || {
            cluster.figure(at, "group_nodes").as_deref() == Some("3")
        });
        let ask = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            cluster.ask(at, &words).expect("a reply")
        };
        eventually("the node knows the leader", || {
            let address = flat(&ask("sentinel get-master-addr-by-name main"));
            address == format!("127.0.0.1 {}", port(old, &cluster))
        });
        assert_eq!(ask("sentinel get-master-addr-by-name other"), b"*-1\r\n");
        let masters = described(&ask("sentinel masters"));
        assert_eq!(masters.len(), 1);
        for (name, value) in [
            ("name", "main"),
            ("ip", "127.0.0.1"),
            ("flags", "master"),
            ("num-slaves", "2"),
            ("num-other-sentinels", "2"),
        ] {
            assert_eq!(masters[0][name], value, "{name}");
        }
        assert_eq!(masters[0]["port"], port(old, &cluster));
        assert_eq!(elements(&ask("sentinel master main")).len() % 2, 0);
        for command in ["replicas", "slaves"] {
            let replicas = described(&ask(&format!("sentinel {command} main")));
            assert!(replicas.iter().all(|node| node["flags"] == "slave"));
            assert_eq!(ports(replicas), others(old, &cluster));
        }
        let sentinels = described(&ask("sentinel sentinels main"));
        assert_eq!(ports(sentinels), others(at, &cluster));
        assert!(ask("sentinel ckquorum main").starts_with(b"+OK 3 usable Sentinels."));
        assert_eq!(
            ask("sentinel master other"),
            b"-ERR No such master with that name\r\n"
        );
    }
    let [one, two] = [1, 2].map(|more| (old + more) % 3);
    let mut listeners = [
        listen(&cluster, one, "subscribe +switch-master"),
        listen(&cluster, two, "psubscribe +switch-*"),
    ];
    cluster.nodes[old] = None;
    let new = cluster.leader();
    let told = format!(
        "main 127.0.0.1 {} 127.0.0.1 {}",
        port(old, &cluster),
        port(new, &cluster)
    );
    for listener in &mut listeners {
        let message = flat(&listener.reply().expect("a message"));
        assert!(
            message.contains(" +switch-master ") && message.ends_with(&told),
            "{message}"
        );
    }
    eventually("the killed node counts as away", || {
        let words = ["sentinel", "replicas", "main"];
        let replicas = described(&cluster.ask(new, &words).expect("a reply"));
        let away = replicas
            .iter()
            .find(|node| node["port"] == port(old, &cluster));
        away.is_some_and(|node| node["flags"].contains("s_down"))
    });
}

/// Runs the script of a client. It prints "kill" when the leader is to be killed, and "passed" at
/// last.
fn passes(command: &mut Command) {
    let mut cluster = Cluster::new(1, 3);
    let leader = cluster.leader();
    for at in 0..3 {
        eventually("the node has heard the others", || {
            cluster.figure(at, "group_nodes").as_deref() == Some("3")
        });
    }
    let ports = cluster.addresses.iter().map(|node| node.port().to_string());
    scripts::passes(command.args(ports), |line| {
        (line == "kill").then(|| {
            cluster.nodes[leader] = None;
            "killed"
        })
    });
}

#[test]
fn the_python_client_finds_the_leader_and_the_next_one() {
    passes(Command::new(python()).arg(script("redis_py_sentinel.py")));
}

#[test]
fn ioredis_finds_the_leader_and_the_next_one() {
    passes(&mut node("ioredis_sentinel.js"));
}

#[test]
fn go_redis_finds_the_leader_and_the_next_one() {
    passes(go().arg("sentinel"));
}
