//! The Bw-tree with many values under one key. Under loom a leaf is split above three pairs.

use tremula_index::KeyRange;
use tremula_papers::BwMultiMap;
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

fn map(values: impl IntoIterator<Item = u32>) -> Arc<BwMultiMap<u32, u32>> {
    let map = BwMultiMap::new();
    for value in values {
        assert!(map.insert(5, value));
    }
    Arc::new(map)
}

#[test]
fn a_pair_of_a_bw_multi_map_is_inserted_by_one() {
    check("a_pair_of_a_bw_multi_map_is_inserted_by_one", 3, || {
        let map = map([1]);
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || other.insert(5, 2));
        let here = map.insert(5, 2);
        assert!(here != writer.join().unwrap());
        assert_eq!(map.values(&5), [1, 2]);
    });
}

/// The values fill two leaves. It would fail if one leaf were seen as of an earlier moment than the
/// other.
#[test]
fn values_of_a_bw_multi_map_are_of_one_moment() {
    check("values_of_a_bw_multi_map_are_of_one_moment", 3, || {
        let map = map([1, 2, 3, 4, 5]);
        assert!(map.shape().get("leaves").unwrap() > 1);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            let values = other.values(&5);
            let (first, last) = (values.contains(&1), values.contains(&9));
            assert!(!first || !last, "{values:?}");
        });
        assert!(map.remove(&5, &1));
        assert!(map.insert(5, 9));
        reader.join().unwrap();
        assert_eq!(map.values(&5), [2, 3, 4, 5, 9]);
    });
}

#[test]
fn all_values_of_a_bw_multi_map_are_removed_at_one_moment() {
    check(
        "all_values_of_a_bw_multi_map_are_removed_at_one_moment",
        3,
        || {
            let map = map([1, 2, 3, 4, 5]);
            assert!(map.insert(6, 1) && map.insert(4, 1));
            let other = Arc::clone(&map);
            let reader = thread::spawn(move || {
                let (last, first) = (other.contains(&5, &5), other.contains(&5, &1));
                assert!(last || !first, "the end was removed before the beginning");
                let count = other.count(&5);
                assert!(count == 5 || count == 0, "{count}");
            });
            assert_eq!(map.remove_all(&5), 5);
            reader.join().unwrap();
            assert_eq!(map.snapshot(KeyRange::all()), [(4, 1), (6, 1)]);
        },
    );
}
