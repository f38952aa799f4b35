//! Every interleaving of a reader with changes of nodes: writes, splits, merges, and the making and
//! removal of a root.
//!
//! Nodes hold four entries here, and three separators. The readers are the spawned threads, because
//! the checker would not explore everything for a thread that reads before it writes.

use tremula_index::key::{ByteHead, KeyHead, TextHead};
use tremula_index::{Direction, KeyRange, OlcBTree, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

type Tree = OlcBTree<u32, u32>;

/// Entries of a full leaf.
const FULL: u32 = 4;

/// A tree with these keys, each its own value.
fn tree(keys: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    let tree = Tree::new();
    for key in keys {
        tree.insert(key, key);
    }
    Arc::new(tree)
}

fn figure(tree: &Tree, name: &str) -> u64 {
    tree.shape().get(name).unwrap()
}

fn keys(tree: &Tree) -> Vec<u32> {
    tree.snapshot(KeyRange::all())
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect()
}

#[test]
fn a_reader_never_sees_half_an_insertion() {
    check("a_reader_never_sees_half_an_insertion", 3, || {
        let tree = tree([10, 30]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            // Moved to another leaf during the search.
            assert_eq!(other.get(&30), Some(30));
        });
        tree.insert(20, 20);
        reader.join().unwrap();
        assert_eq!(keys(&tree), [10, 20, 30]);
    });
}

#[test]
fn a_reader_finds_everything_while_the_root_grows() {
    check("a_reader_finds_everything_while_the_root_grows", 2, || {
        let tree = tree((1..=FULL).map(|n| n * 10));
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || assert_eq!(other.get(&40), Some(40)));
        tree.insert(25, 25);
        reader.join().unwrap();
        assert_eq!(figure(&tree, "splits"), 1);
        assert_eq!(keys(&tree), [10, 20, 25, 30, 40]);
    });
}

/// Two leaves under a root: 10, 20 and 30, 40.
fn two_leaves() -> Arc<Tree> {
    let tree = tree([10, 20, 30, 40, 25]);
    tree.remove(&25);
    assert_eq!(figure(&tree, "leaves"), 2);
    tree
}

#[test]
fn a_reader_finds_everything_while_a_leaf_splits() {
    check("a_reader_finds_everything_while_a_leaf_splits", 1, || {
        let tree = two_leaves();
        tree.insert(32, 32);
        tree.insert(34, 34);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || assert_eq!(other.get(&40), Some(40)));
        tree.insert(36, 36);
        reader.join().unwrap();
        assert_eq!(figure(&tree, "leaves"), 3);
        assert_eq!(keys(&tree), [10, 20, 30, 32, 34, 36, 40]);
    });
}

#[test]
fn a_reader_finds_everything_while_leaves_merge_and_the_root_shrinks() {
    check(
        "a_reader_finds_everything_while_leaves_merge_and_the_root_shrinks",
        2,
        || {
            let tree = two_leaves();
            tree.remove(&10);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || assert_eq!(other.get(&40), Some(40)));
            // The left leaf becomes empty and takes over the right one.
            tree.remove(&20);
            reader.join().unwrap();
            assert_eq!(figure(&tree, "merges"), 1);
            assert_eq!(keys(&tree), [30, 40]);
        },
    );
}

#[test]
fn a_step_goes_on_from_its_leaf_while_that_is_merged() {
    check(
        "a_step_goes_on_from_its_leaf_while_that_is_merged",
        2,
        || {
            let tree = two_leaves();
            tree.remove(&10);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                let step = |key, direction| {
                    let mut found = None;
                    other.step_with(&key, direction, &mut |key, _| found = Some(*key));
                    found
                };
                // The second step begins in the leaf of the first, which may be gone.
                assert_eq!(step(30, Direction::Ascending), Some(40));
                assert_eq!(step(40, Direction::Descending), Some(30));
            });
            // The left leaf becomes empty and takes over the right one.
            tree.remove(&20);
            reader.join().unwrap();
            assert_eq!(figure(&tree, "merges"), 1);
        },
    );
}

#[test]
fn neighbours_are_found_while_leaves_split() {
    check("neighbours_are_found_while_leaves_split", 2, || {
        let tree = two_leaves();
        tree.insert(22, 22);
        tree.insert(24, 24);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let (below, _) = other.prev(&30).unwrap();
            assert!(below == 24 || below == 26, "{below} below 30");
        });
        tree.insert(26, 26);
        reader.join().unwrap();
        assert_eq!(keys(&tree), [10, 20, 22, 24, 26, 30, 40]);
    });
}

#[test]
fn a_snapshot_of_two_leaves_is_of_one_moment() {
    check("a_snapshot_of_two_leaves_is_of_one_moment", 2, || {
        let tree = two_leaves();
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let entries = other.snapshot(KeyRange::all()).unwrap();
            let (first, last) = (entries[0].1, entries[3].1);
            // The first is written before the last.
            assert!((first, last) != (10, 41), "{entries:?}");
        });
        tree.insert(10, 11);
        tree.insert(40, 41);
        reader.join().unwrap();
    });
}

#[test]
fn a_batch_of_lookups_finds_everything_while_a_leaf_splits() {
    check(
        "a_batch_of_lookups_finds_everything_while_a_leaf_splits",
        1,
        || {
            let tree = two_leaves();
            tree.insert(32, 32);
            tree.insert(34, 34);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                let mut found = Vec::new();
                other.get_many(&[40, 20], &mut found);
                assert_eq!(found, [Some(40), Some(20)]);
            });
            tree.insert(36, 36);
            reader.join().unwrap();
        },
    );
}

#[test]
fn writers_of_one_leaf_lose_nothing() {
    check("writers_of_one_leaf_lose_nothing", 2, || {
        let tree = two_leaves();
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            other.insert(12, 12);
        });
        tree.insert(14, 14);
        writer.join().unwrap();
        assert_eq!(keys(&tree), [10, 12, 14, 20, 30, 40]);
        assert_eq!(tree.len(), 6);
    });
}

#[test]
fn a_writer_that_waited_for_a_leaf_follows_its_key() {
    check("a_writer_that_waited_for_a_leaf_follows_its_key", 2, || {
        let tree = two_leaves();
        tree.insert(32, 32);
        tree.insert(34, 34);
        let other = Arc::clone(&tree);
        // This key moves to the right of the leaf that the other thread may already have reached.
        let writer = thread::spawn(move || {
            other.insert(40, 41);
        });
        tree.insert(36, 36);
        writer.join().unwrap();
        assert_eq!(keys(&tree), [10, 20, 30, 32, 34, 36, 40]);
        assert_eq!(tree.get(&40), Some(41));
    });
}

/// A tree of one leaf with the keys 1 and 2, which share ten bytes, each its own value.
fn tree_of_text<H: KeyHead<String>>() -> Arc<OlcBTree<String, u32, H>> {
    let entries = (1..=2).map(|number| (text(number), number));
    Arc::new(OlcBTree::from_sorted(entries).unwrap())
}

fn text(number: u32) -> String {
    format!("user:0001:{number}")
}

/// A reader looks for a key beside a writer who inserts another.
fn reader_beside_insertion<H: KeyHead<String>>(
    name: &'static str,
    preemptions: usize,
    inserted: &'static str,
) {
    check(name, preemptions, move || {
        let tree = tree_of_text::<H>();
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            assert_eq!(other.get(&text(2)), Some(2));
        });
        tree.insert(inserted.to_owned(), 0);
        reader.join().unwrap();
        assert_eq!(tree.len(), 3);
    });
}

#[test]
fn a_reader_finds_a_key_while_the_prefix_of_its_leaf_becomes_shorter() {
    let name = "a_reader_finds_a_key_while_the_prefix_of_its_leaf_becomes_shorter";
    reader_beside_insertion::<ByteHead>(name, 2, "user:0");
}

#[test]
fn a_reader_finds_a_key_while_the_prefix_of_its_leaf_of_text_becomes_shorter() {
    let name = "a_reader_finds_a_key_while_the_prefix_of_its_leaf_of_text_becomes_shorter";
    reader_beside_insertion::<TextHead<ByteHead>>(name, 2, "user:0");
}

#[test]
fn a_reader_finds_a_key_while_its_leaf_of_text_gets_another_block() {
    let name = "a_reader_finds_a_key_while_its_leaf_of_text_gets_another_block";
    let long = "user:0001:0, which takes more words than are left in the block";
    // A block has many words, each of which is a step.
    reader_beside_insertion::<TextHead<ByteHead>>(name, 1, long);
}

/// A reader looks for a key while the prefix of its leaf becomes longer.
fn reader_beside_split<H: KeyHead<String>>(name: &'static str, preemptions: usize) {
    check(name, preemptions, || {
        let tree = tree_of_text::<H>();
        for key in ["a", "b"] {
            tree.insert(key.to_owned(), 0);
        }
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            assert_eq!(other.get(&text(2)), Some(2));
        });
        // Between the others and those with the prefix, so the leaf is split there.
        tree.insert("c".to_owned(), 0);
        reader.join().unwrap();
        assert_eq!(tree.shape().get("splits"), Some(1));
    });
}

#[test]
fn a_reader_finds_a_key_while_the_prefix_of_its_leaf_becomes_longer() {
    let name = "a_reader_finds_a_key_while_the_prefix_of_its_leaf_becomes_longer";
    reader_beside_split::<ByteHead>(name, 2);
}

#[test]
fn a_reader_finds_a_key_while_the_prefix_of_its_leaf_of_text_becomes_longer() {
    let name = "a_reader_finds_a_key_while_the_prefix_of_its_leaf_of_text_becomes_longer";
    reader_beside_split::<TextHead<ByteHead>>(name, 1);
}

#[test]
fn a_key_that_lies_aside_is_read_whole_or_not_at_all() {
    check(
        "a_key_that_lies_aside_is_read_whole_or_not_at_all",
        2,
        || {
            let tree = tree_of_text::<TextHead<ByteHead>>();
            let long = || text(2) + &"s".repeat(200);
            tree.insert(long(), 3);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                if let Some((key, value)) = other.next(&text(2)) {
                    assert_eq!((key, value), (long(), 3));
                }
            });
            assert_eq!(tree.remove(&long()), Some(3));
            reader.join().unwrap();
            assert_eq!(tree.len(), 2);
        },
    );
}

/// The keys of a snapshot that is taken beside `write`.
fn snapshot_beside(
    name: &'static str,
    preemptions: usize,
    made: fn() -> Arc<Tree>,
    write: fn(&Tree),
    is_a_moment: fn(&[u32]) -> bool,
) {
    check(name, preemptions, move || {
        let tree = made();
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let seen = keys(&other);
            assert!(is_a_moment(&seen), "{seen:?}");
        });
        write(&tree);
        reader.join().unwrap();
        let after = keys(&tree);
        assert!(is_a_moment(&after), "{after:?}");
    });
}

#[test]
fn a_snapshot_shows_what_came_before_what_it_shows() {
    snapshot_beside(
        "a_snapshot_shows_what_came_before_what_it_shows",
        2,
        two_leaves,
        |tree| {
            tree.insert(11, 11);
            tree.insert(31, 31);
        },
        |seen| seen.contains(&11) || !seen.contains(&31),
    );
}

#[test]
fn a_snapshot_shows_a_step_of_two_leaves_whole_or_not() {
    snapshot_beside(
        "a_snapshot_shows_a_step_of_two_leaves_whole_or_not",
        2,
        two_leaves,
        |tree| {
            let steps = tree.transactional().unwrap();
            let over = [KeyRange::only(&20), KeyRange::only(&30)];
            steps.atomically(&over, &mut |step| {
                step.remove(&20);
                step.remove(&30);
            });
        },
        |seen| seen.contains(&20) == seen.contains(&30),
    );
}

#[test]
fn a_snapshot_shows_all_while_leaves_are_merged() {
    snapshot_beside(
        "a_snapshot_shows_all_while_leaves_are_merged",
        2,
        || {
            let tree = two_leaves();
            tree.remove(&30);
            tree
        },
        |tree| {
            tree.remove(&40);
            tree.remove(&10);
        },
        |seen| seen.contains(&20) && (seen.contains(&10) || !seen.contains(&40)),
    );
}

/// Two keys of a leaf are noted, and the third change copies it. The snapshot, which is read part
/// by part, may come to it before, between and after these.
#[test]
fn a_snapshot_undoes_what_is_noted_beside_it() {
    check("a_snapshot_undoes_what_is_noted_beside_it", 2, || {
        let tree = two_leaves();
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let (mut entries, cursor) = (Vec::new(), other.begin_snapshot(KeyRange::all()));
            let mut cursor = cursor.unwrap();
            while other.read_snapshot(&mut cursor, 1, &mut entries) {}
            let seen = |key| {
                entries
                    .iter()
                    .find(|entry| entry.0 == key)
                    .map(|entry| entry.1)
            };
            // In the order in which they are written.
            let written = [seen(40) == Some(41), seen(30).is_none(), seen(35).is_some()];
            assert!(written.is_sorted_by(|one, next| one >= next), "{entries:?}");
            assert!(entries.is_sorted() && seen(10).is_some() && seen(20).is_some());
        });
        tree.insert(40, 41);
        tree.remove(&30);
        tree.insert(35, 35);
        reader.join().unwrap();
        assert_eq!(keys(&tree), [10, 20, 35, 40]);
    });
}
