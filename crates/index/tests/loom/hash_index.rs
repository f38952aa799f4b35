//! Every interleaving of readers of a hash map with changes of its table.
//!
//! A table begins with two homes here. The readers are the spawned threads, as with the B+tree.

use tremula_index::hash_index::{HashIndex, Sought};
use tremula_index::key::ByteHead;
use tremula_index::{Direction, Update};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

type Map = HashIndex<u32, u32, ByteHead>;

/// Keys in the order of their hashes.
fn sought<R>(key: u32, work: impl FnOnce(&Sought<'_, u32>) -> R) -> R {
    let compare = |other: &u32| other.cmp(&key);
    let head = <ByteHead as tremula_index::key::KeyHead<u32>>::head(&key);
    work(&Sought::new(u64::from(key) << 32, head, &compare))
}

fn change(map: &Map, key: u32, update: Update<u32>) -> Option<u32> {
    sought(key, |sought| map.update(sought, || key, |_| update))
}

fn put(map: &Map, key: u32, value: u32) -> Option<u32> {
    change(map, key, Update::Put(value))
}

fn get(map: &Map, key: u32) -> Option<u32> {
    sought(key, |sought| map.get_with(sought, |value| *value))
}

fn map(keys: impl IntoIterator<Item = u32>) -> Arc<Map> {
    let map = Map::new(1);
    for key in keys {
        put(&map, key, key);
    }
    Arc::new(map)
}

#[test]
fn a_hash_reader_finds_an_entry_while_it_moves() {
    check("a_hash_reader_finds_an_entry_while_it_moves", 3, || {
        let map = map([2]);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || assert_eq!(get(&other, 2), Some(2)));
        // Its home is that of the other entry, which moves on.
        put(&map, 1, 1);
        reader.join().unwrap();
        assert_eq!(get(&map, 1), Some(1));
    });
}

#[test]
fn a_hash_reader_finds_an_entry_while_it_moves_back() {
    check(
        "a_hash_reader_finds_an_entry_while_it_moves_back",
        3,
        || {
            let map = map([1, 2]);
            let other = Arc::clone(&map);
            let reader = thread::spawn(move || assert_eq!(get(&other, 2), Some(2)));
            change(&map, 1, Update::Remove);
            reader.join().unwrap();
            assert_eq!(get(&map, 1), None);
        },
    );
}

#[test]
fn a_hash_reader_finds_an_entry_while_the_table_grows() {
    check(
        "a_hash_reader_finds_an_entry_while_the_table_grows",
        2,
        || {
            let map = map([2]);
            let places = map.figures().places;
            let other = Arc::clone(&map);
            let reader = thread::spawn(move || assert_eq!(get(&other, 2), Some(2)));
            put(&map, 1, 1);
            put(&map, 3, 3);
            reader.join().unwrap();
            assert!(map.figures().places > places);
        },
    );
}

#[test]
fn a_hash_reader_sees_the_old_value_or_the_new_one() {
    check("a_hash_reader_sees_the_old_value_or_the_new_one", 3, || {
        let map = map([1]);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            let first = get(&other, 1);
            let second = get(&other, 1);
            assert!(first == Some(1) || first == Some(5));
            assert!(second == Some(5) || second == first);
        });
        assert_eq!(put(&map, 1, 5), Some(1));
        reader.join().unwrap();
    });
}

#[test]
fn of_two_hash_writers_none_is_lost() {
    check("of_two_hash_writers_none_is_lost", 2, || {
        let map = map([]);
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || {
            let add = |old: Option<&u32>| Update::Put(old.copied().unwrap_or(0) + 1);
            sought(1, |sought| other.update(sought, || 1, add));
        });
        let add = |old: Option<&u32>| Update::Put(old.copied().unwrap_or(0) + 1);
        sought(1, |sought| map.update(sought, || 1, add));
        writer.join().unwrap();
        assert_eq!(get(&map, 1), Some(2));
    });
}

#[test]
fn a_hash_scan_is_of_one_moment() {
    check("a_hash_scan_is_of_one_moment", 2, || {
        let map = map([2]);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            let mut seen = Vec::new();
            other.scan(None, None, Direction::Ascending, usize::MAX, &mut seen);
            let keys: Vec<_> = seen.into_iter().map(|(key, _)| key).collect();
            assert!([&[2][..], &[1, 2], &[1]].contains(&&*keys), "{keys:?}");
        });
        put(&map, 1, 1);
        change(&map, 2, Update::Remove);
        reader.join().unwrap();
    });
}
