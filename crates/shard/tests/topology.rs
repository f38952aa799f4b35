//! The topology reader on recorded folders, and on this machine.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use std::path::Path;
use tremula_shard::topology::{Cpu, Node, allowed, cpu_list, nodes, pin, place};

/// A server with two sockets and two threads a core. The second threads are numbered after all
/// cores.
const TWO_SOCKETS: &[(&str, &str)] = &[
    ("node0/cpulist", "0-15,32-47\n"),
    ("node0/distance", "10 21\n"),
    ("node1/cpulist", "16-31,48-63\n"),
    ("node1/distance", "21 10\n"),
    ("online", "0-1\n"),
    ("possible", "0-1\n"),
];

/// A socket in four parts, and a node of memory without processors.
const FOUR_PARTS: &[(&str, &str)] = &[
    ("node0/cpulist", "0-7\n"),
    ("node1/cpulist", "8-15\n"),
    ("node2/cpulist", "16-23\n"),
    ("node10/cpulist", "24-31\n"),
    ("node3/cpulist", "\n"),
    ("power/control", "auto\n"),
];

fn recorded(tree: &[(&str, &str)]) -> Vec<Node> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in tree {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    nodes(folder.path()).unwrap()
}

fn cpus(range: std::ops::Range<usize>) -> Vec<Cpu> {
    range.map(Cpu).collect()
}

#[test]
fn two_sockets_are_two_nodes() {
    let nodes = recorded(TWO_SOCKETS);
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes[1].number, 1);
    assert_eq!(nodes[1].cpus, [cpus(16..32), cpus(48..64)].concat());
}

#[test]
fn nodes_come_in_the_order_of_their_numbers_and_have_processors() {
    let nodes = recorded(FOUR_PARTS);
    let numbers: Vec<usize> = nodes.iter().map(|node| node.number).collect();
    assert_eq!(numbers, [0, 1, 2, 10]);
}

#[test]
fn workers_fill_one_node_after_the_other_and_only_what_is_allowed() {
    let nodes = recorded(TWO_SOCKETS);
    let all = cpus(0..64);
    let placed = place(40, &all, &nodes);
    assert_eq!(placed[..16], cpus(0..16));
    assert_eq!(placed[16..32], cpus(32..48));
    assert_eq!(placed[32..40], cpus(16..24));
    // A container with three processors on the second socket, and one that no node lists.
    let some = [20, 21, 50, 77].map(Cpu);
    assert_eq!(place(6, &some, &nodes), [20, 21, 50, 77, 20, 21].map(Cpu));
    assert_eq!(place(3, &[], &nodes), []);
    assert_eq!(place(2, &some, &[]), [20, 21].map(Cpu));
}

#[test]
fn errors_name_what_is_wrong() {
    for (list, part) in [
        ("0-3,x", "x"),
        ("5-2", "5-2"),
        ("0,,1", ""),
        ("-1", "-1"),
        ("0-99999999", "0-99999999"),
    ] {
        let error = cpu_list(list).unwrap_err().to_string();
        assert!(error.contains(&format!("'{part}' in '{list}'")), "{error}");
    }
    let error = nodes(Path::new("/no/such/folder")).unwrap_err().to_string();
    assert!(error.contains("/no/such/folder"), "{error}");
    assert!(pin(Cpu(1 << 20)).is_err());
}

#[test]
fn a_thread_can_be_pinned_to_each_processor_that_it_may_use() {
    let before = allowed().unwrap();
    assert!(!before.is_empty());
    for cpu in before {
        std::thread::spawn(move || {
            pin(cpu).unwrap();
            assert_eq!(allowed().unwrap(), [cpu]);
        })
        .join()
        .unwrap();
    }
}

proptest! {
    #[test]
    fn any_text_is_a_list_or_an_error(text in "[0-9,\\- \n]{0,40}|\\PC{0,40}") {
        if let Ok(cpus) = cpu_list(&text) {
            prop_assert!(cpus.is_sorted());
        }
    }
}
