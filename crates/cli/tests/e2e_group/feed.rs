//! Watched ranges that go on at another node.

use crate::cluster::Cluster;
use crate::support::resp::{Connection, bulk, elements};

/// Events up to the one that puts this value.
fn until(connection: &mut Connection, last: &str, events: &mut Vec<(u64, String)>) {
    loop {
        let message = connection.reply().expect("an event");
        let parts = elements(&message);
        let text = |at: usize| String::from_utf8(bulk(&parts[at])).expect("text");
        assert_eq!(text(0), "watchrange");
        let number = parts.iter().find(|part| part.starts_with(b":"));
        let number = number.expect("a number")[1..].to_vec();
        let number = String::from_utf8(number).expect("text");
        // Behind the value comes when its key expires.
        let value = text(parts.len() - 2);
        events.push((number.trim_end().parse().expect("a number"), value.clone()));
        if value == last {
            return;
        }
    }
}

/// Fails if an event is missing or comes twice when a client goes on where it was, at a follower
/// that has become the leader, and at one that follows another leader now.
#[test]
fn a_watch_goes_on_at_another_node_from_its_sequence() {
    let mut cluster = Cluster::new(1, 3);
    let old = cluster.leader();
    let mut next = cluster.text(old, "watchrange [w: (w;");
    for number in 0..20 {
        let line = format!("set w:{} v{number}", number % 3);
        assert_eq!(cluster.text(old, &line), "+OK\r\n");
    }
    next = next.trim_end().trim_start_matches(':').to_owned();
    let mut events = Vec::new();
    let mut watcher = cluster.connect(old).expect("the node listens");
    let begun = watcher.text(&format!("watchrange [w: (w; from {next}"));
    assert_eq!(begun, format!(":{next}\r\n"));
    until(&mut watcher, "v9", &mut events);
    drop(watcher);
    cluster.nodes[old] = None;
    let new = cluster.leader();
    for number in 20..40 {
        let line = format!("set w:{} v{number}", number % 3);
        assert_eq!(cluster.text(new, &line), "+OK\r\n");
    }
    let third = (0..3).find(|at| *at != old && *at != new).expect("a node");
    let seen = events.clone();
    for at in [new, third] {
        let mut events = seen.clone();
        let (last, _) = events.last().expect("an event");
        let mut watcher = cluster.connect(at).expect("the node listens");
        watcher.text(&format!("watchrange [w: (w; from {}", last + 1));
        until(&mut watcher, "v39", &mut events);
        let values: Vec<_> = events.iter().map(|(_, value)| value.clone()).collect();
        let expected: Vec<_> = (0..40).map(|number| format!("v{number}")).collect();
        assert_eq!(values, expected);
        assert!(events.is_sorted_by(|one, other| one.0 < other.0));
    }
}
