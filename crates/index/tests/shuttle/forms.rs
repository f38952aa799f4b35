//! Scans between borrowed forms of keys, while the tree changes: under a checker they soon take
//! locks, or freeze their range.

use crate::{restless, restless_lfca};
use tremula_index::{CaTree, Direction, LfcaTree, OlcBTree, OrderedIndex, OrderedMap};
use tremula_sync::{Arc, model, thread};

fn name(number: u32) -> String {
    format!("quaking aspen {number:02}")
}

/// It would miss an entry that stays, or return one twice, if the range that is locked or frozen
/// were not the one between the forms.
fn scans_by_forms_see_every_stable_key<E: OrderedIndex<String, u32> + 'static>(
    test: &str,
    make: fn() -> E,
) {
    model::check(test, 10_000, move || {
        let map = OrderedMap::on(make());
        for number in (0..16).step_by(2) {
            map.insert(name(number), number);
        }
        let map = Arc::new(map);
        let mut threads = Vec::new();
        for first in [3, 7] {
            let map = Arc::clone(&map);
            threads.push(thread::spawn(move || {
                for number in [first, first + 2, first] {
                    if map.insert(name(number), number).is_some() {
                        map.remove(&*name(number));
                    }
                }
            }));
        }
        for (low, high) in [(4, 12), (0, 10)] {
            let (from, to) = (name(low), name(high));
            for direction in [Direction::Ascending, Direction::Descending] {
                let entries = map.scan_by(&*from..&*to, direction, usize::MAX);
                let even = entries.iter().map(|(_, number)| *number);
                let mut even: Vec<_> = even.filter(|number| number % 2 == 0).collect();
                even.sort_unstable();
                assert!(even.into_iter().eq((low..high).step_by(2)), "{entries:?}");
            }
            assert_eq!(map.at_or_above(&*from), Some((name(low), low)));
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn of_a_ca_tree_see_every_stable_key() {
    scans_by_forms_see_every_stable_key("forms::ca_tree", || {
        CaTree::<_, _>::with_config(restless())
    });
}

#[test]
fn of_an_lfca_tree_see_every_stable_key() {
    scans_by_forms_see_every_stable_key("forms::lfca_tree", || {
        LfcaTree::<_, _>::with_config(restless_lfca())
    });
}

#[test]
fn of_a_b_tree_see_every_stable_key() {
    scans_by_forms_see_every_stable_key("forms::b_tree", OlcBTree::<_, _>::new);
}
