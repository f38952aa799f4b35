//! Every interleaving of a split or a join with a reader and a writer.

use avl::Avl;
use tremula_index::key::NoHead;
use tremula_index::{CaTree, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

#[path = "../../../papers/src/avl/mod.rs"]
#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "it is a file of tremula-papers"
)]
mod avl;

/// With the binary container, which treats the tree in the same way with fewer steps.
type Tree = CaTree<u32, u32, NoHead, Avl<u32, u32>>;

/// A tree with these keys, each its own value.
fn tree(keys: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    let tree = Tree::default();
    for key in keys {
        tree.insert(key, key);
    }
    Arc::new(tree)
}

fn figure(tree: &Tree, name: &str) -> u64 {
    tree.shape().get(name).unwrap()
}

fn keys(tree: &Tree) -> Vec<u32> {
    tree.snapshot(tremula_index::KeyRange::all())
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect()
}

#[test]
fn a_split_loses_no_write() {
    check("a_split_loses_no_write", 5, || {
        let tree = tree([1, 2]);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert(3, 3), None);
            assert_eq!(other.remove(&1), Some(1));
        });
        tree.split_now(&1);
        writer.join().unwrap();
        assert_eq!(keys(&tree), [2, 3]);
        assert_eq!(tree.len(), 2);
    });
}

#[test]
fn a_split_hides_nothing_from_a_reader() {
    check("a_split_hides_nothing_from_a_reader", 5, || {
        let tree = tree([1, 2]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            assert_eq!(other.get(&1), Some(1));
            assert_eq!(other.next(&1), Some((2, 2)));
        });
        tree.split_now(&1);
        assert_eq!(figure(&tree, "base_nodes"), 2);
        reader.join().unwrap();
    });
}

#[test]
fn a_join_loses_no_write() {
    check("a_join_loses_no_write", 3, || {
        let tree = tree([1, 2]);
        tree.split_now(&1);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert(3, 3), None);
            assert_eq!(other.remove(&1), Some(1));
        });
        tree.join_now(&1);
        writer.join().unwrap();
        assert_eq!(keys(&tree), [2, 3]);
    });
}

#[test]
fn a_join_hides_nothing_from_a_reader() {
    check("a_join_hides_nothing_from_a_reader", 3, || {
        let tree = tree([1, 2]);
        tree.split_now(&1);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            assert_eq!(other.next(&1), Some((2, 2)));
            assert_eq!(other.get(&1), Some(1));
        });
        tree.join_now(&2);
        reader.join().unwrap();
    });
}

#[test]
fn joins_of_neighbours_meet() {
    check("joins_of_neighbours_meet", 3, || {
        // Three base nodes: both threads need the middle one, and one thread unlinks the route node
        // above the other's.
        let tree = tree([1, 2, 3]);
        tree.split_now(&1);
        tree.split_now(&3);
        let other = Arc::clone(&tree);
        let joiner = thread::spawn(move || other.join_now(&1));
        tree.join_now(&3);
        joiner.join().unwrap();
        assert_eq!(keys(&tree), [1, 2, 3]);
        let joins = figure(&tree, "joins");
        assert_eq!(
            figure(&tree, "base_nodes") + joins,
            figure(&tree, "splits") + 1
        );
    });
}

#[test]
fn a_writer_a_reader_and_a_split_meet() {
    check("a_writer_a_reader_and_a_split_meet", 2, || {
        let tree = tree([1, 2]);
        let (first, second) = (Arc::clone(&tree), Arc::clone(&tree));
        let writer = thread::spawn(move || assert_eq!(first.insert(3, 3), None));
        let reader = thread::spawn(move || assert_eq!(second.get(&2), Some(2)));
        tree.split_now(&2);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(keys(&tree), [1, 2, 3]);
    });
}

#[test]
fn a_step_over_two_base_nodes_is_seen_whole() {
    check("a_step_over_two_base_nodes_is_seen_whole", 2, || {
        let tree = tree([1, 2, 3, 4]);
        tree.split_now(&1);
        assert_eq!(figure(&tree, "base_nodes"), 2);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let first = other.get(&1);
            let last = other.get(&4);
            assert!(first == Some(1) || last == Some(40));
        });
        let steps = OrderedIndex::transactional(&*tree).unwrap();
        let over = [
            tremula_index::KeyRange::only(&1),
            tremula_index::KeyRange::only(&4),
        ];
        steps.atomically(&over, &mut |step| {
            step.insert(1, 10);
            step.insert(4, 40);
        });
        reader.join().unwrap();
        assert_eq!(keys(&tree), [1, 2, 3, 4]);
    });
}
