//! What engines with steps must withstand under random schedules.

use crate::suite::{Make, check, engine, evens, join_all, keys};
use std::ops::Bound;
use tremula_index::key::ByteHead;
use tremula_index::{Aspen, CaTree, Direction, KeyRange, OlcBTree};
use tremula_sync::{Arc, thread};

mod suite {
    pub(crate) use super::{effects_are_numbered_in_their_order, steps_are_seen_whole};
    pub(crate) use crate::suite::Index;
}

engine!(
    steps_of_ca_tree,
    CaTree::<_, _>::with_config(crate::restless()),
    [steps_are_seen_whole, effects_are_numbered_in_their_order]
);

engine!(
    steps_of_b_tree,
    OlcBTree::<_, _>::new(),
    [steps_are_seen_whole, effects_are_numbered_in_their_order]
);

engine!(
    steps_of_aspen,
    Aspen::<_, _, ByteHead, 1>::default(),
    [steps_are_seen_whole, effects_are_numbered_in_their_order]
);

/// Two writers raise the values of two keys together, and one of them splits and clears what lies
/// between; readers see the keys rise together.
pub(crate) fn steps_are_seen_whole(name: &str, make: Make) {
    check(name, make, 8_000, |make| {
        let index = evens(make, 16);
        let mut threads: Vec<_> = [true, false]
            .into_iter()
            .map(|crowds| {
                let index = Arc::clone(&index);
                thread::spawn(move || {
                    let between = KeyRange::new(Bound::Excluded(&2), Bound::Excluded(&12));
                    let over = [
                        KeyRange::only(&12),
                        KeyRange::only(&2),
                        if crowds { between } else { KeyRange::only(&2) },
                    ];
                    index
                        .transactional()
                        .unwrap()
                        .atomically(&over, &mut |step| {
                            let mut value = 0;
                            step.get_with(&2, &mut |found| value = *found);
                            step.insert(2, value + 100);
                            if crowds {
                                for key in 3..9 {
                                    step.insert(key, key);
                                }
                                step.remove_range(between);
                            }
                            step.insert(12, value + 110);
                        });
                })
            })
            .collect();
        let reader = Arc::clone(&index);
        threads.push(thread::spawn(move || {
            let first = reader.get(&2).unwrap();
            assert!(reader.get(&12).unwrap() >= first + 10);
            let last = reader.get(&12).unwrap();
            assert!(reader.get(&2).unwrap() + 10 >= last);
        }));
        let scanner = Arc::clone(&index);
        threads.push(thread::spawn(move || {
            let all = scanner.snapshot(KeyRange::all()).unwrap();
            let value = |key| all.iter().find(|entry| entry.0 == key).unwrap().1;
            assert_eq!(value(2) + 10, value(12), "{all:?}");
        }));
        join_all(threads);
        assert_eq!(keys(&index), [0, 2, 12, 14]);
        assert_eq!(index.get(&12), Some(212));
        assert_eq!(index.len(), 4);
    });
}

/// The numbers that writes get in their closures are in the order in which they happened.
pub(crate) fn effects_are_numbered_in_their_order(name: &str, make: Make) {
    check(name, make, 8_000, |make| {
        let index = evens(make, 8);
        let log = Arc::new(tremula_sync::Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (index, log) = (Arc::clone(&index), Arc::clone(&log));
                thread::spawn(move || {
                    let steps = index.transactional().unwrap();
                    let note = |effect| log.lock().push(effect);
                    steps.atomically(&[KeyRange::only(&0), KeyRange::only(&6)], &mut |step| {
                        step.insert(0, number);
                        step.insert(6, number);
                        note((0, Some(number)));
                        note((6, Some(number)));
                    });
                    let direction =
                        [Direction::Ascending, Direction::Descending][number as usize % 2];
                    steps.pop_with(direction, &mut |key, _| note((*key, None)));
                    let low = KeyRange::new(Bound::Unbounded, Bound::Excluded(&3));
                    if number == 2 {
                        steps.remove_range_with(low, &mut |_| {
                            (0..3).for_each(|key| note((key, None)))
                        });
                    }
                })
            })
            .collect();
        join_all(threads);
        let mut replayed = std::collections::BTreeMap::from([(0, 0), (2, 2), (4, 4), (6, 6)]);
        for (key, value) in log.lock().drain(..) {
            match value {
                Some(value) => replayed.insert(key, value),
                None => replayed.remove(&key),
            };
        }
        let all = index.snapshot(KeyRange::all()).unwrap();
        assert_eq!(all, Vec::from_iter(replayed));
    });
}
