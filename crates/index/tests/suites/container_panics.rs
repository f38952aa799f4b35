//! Every container under panics in user code (`Ord`, `Clone`, the closure of `update`): an
//! operation is done or not begun, nothing is lost or freed twice.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::support::counted::{Counted, Ledger};
use crate::support::fuse::{Fragile, burn, with_fuse, without_fuse};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use tremula_index::container::Container;
use tremula_index::{Direction, KeyRange, Update};

/// Key of the tests of panics: comparing and cloning it burns the fuse.
pub(crate) type FragileKey = Counted<Fragile<u32>>;
/// Value of the tests of panics: cloning it burns the fuse.
pub(crate) type FragileValue = Counted<Fragile<u32>>;

/// Whichever call of user code (`Ord`, `Clone`, a closure) panics in an operation, the container is
/// valid, and has the contents from before or after the operation. Nothing is lost or freed twice.
pub(crate) fn panics<C: Container<FragileKey, FragileValue>>() {
    let ledger = Ledger::default();
    for entries in [0, 1, 2, 3, 8, 33, 150] {
        for number in 0..OPERATIONS {
            for key in [0, 1, entries, 2 * entries - entries.min(1), 2 * entries + 1] {
                // From the first call of user code until the operation makes no more.
                for calls in 0.. {
                    if !panics_at::<C>(&ledger, entries, number, key, calls) {
                        break;
                    }
                }
                assert_eq!(ledger.alive(), 0);
            }
        }
    }
    ledger.assert_settled();
}

/// The operations that [`fragile_operation`] knows.
const OPERATIONS: u32 = 18;

/// Runs one operation with a fuse on a fresh container; returns whether the fuse blew.
fn panics_at<C: Container<FragileKey, FragileValue>>(
    ledger: &Ledger,
    count: u32,
    number: u32,
    key: u32,
    calls: u32,
) -> bool {
    let mut container = C::default();
    let mut before = BTreeMap::new();
    for n in 0..count {
        // In mixed order, each key once: 7 divides none of the counts.
        let key = (n * 7 % count) * 2;
        container.insert(ledger.make(Fragile(key)), ledger.make(Fragile(key)));
        before.insert(key, key);
    }
    let blown = with_fuse(calls, || {
        fragile_operation(&mut container, ledger, number, key)
    })
    .is_none();

    let case = format!("operation {number} on {key} of {count}, panic at call {calls}");
    container.check();
    let mut found = BTreeMap::new();
    let _ = container.visit(KeyRange::all(), Direction::Ascending, &mut |key, value| {
        found.insert(key.value.0, value.value.0);
        ControlFlow::Continue(())
    });
    assert_eq!(container.count(), found.len(), "{case}");
    let after = model_operation(before.clone(), number, key);
    if blown {
        assert!(found == before || found == after, "{case}: {found:?}");
    } else {
        assert_eq!(found, after, "{case}");
    }
    blown
}

fn fragile_operation<C: Container<FragileKey, FragileValue>>(
    container: &mut C,
    ledger: &Ledger,
    number: u32,
    key: u32,
) {
    let key = ledger.make(Fragile(key));
    let value = ledger.make(Fragile(1000));
    let other = ledger.make(Fragile(key.value.0 + 9));
    let range = KeyRange::new(Bound::Included(&key), Bound::Excluded(&other));
    let decide = |decision: fn(FragileValue) -> Update<FragileValue>| {
        let mut value = Some(ledger.make(Fragile(1000)));
        move |_: Option<&FragileValue>| {
            burn();
            value.take().map_or(Update::Keep, decision)
        }
    };
    let mut visit = |_: &FragileKey, _: &FragileValue| {
        burn();
        ControlFlow::Continue(())
    };
    match number {
        0 => drop(container.get(&key).is_some()),
        1 => drop(container.insert(key, value)),
        2 => drop(container.insert_if_absent(key, value)),
        3 => drop(container.remove(&key)),
        4 => drop(container.update(key, &mut decide(Update::Put))),
        5 => drop(container.update(key, &mut decide(|_| Update::Keep))),
        6 => drop(container.update(key, &mut decide(|_| Update::Remove))),
        7 => drop(container.next(&key).is_some()),
        8 => drop(container.prev(&key).is_some()),
        9 => drop(container.pop_first()),
        10 => drop(container.pop_last()),
        11 => drop(container.visit(range, Direction::Ascending, &mut visit)),
        12 => drop(container.visit(range, Direction::Descending, &mut visit)),
        13 => drop(container.split_range(range)),
        14 => drop(container.split_range(KeyRange::new(Bound::Excluded(&key), Bound::Unbounded))),
        15 => drop(container.split_range(KeyRange::new(Bound::Unbounded, Bound::Included(&key)))),
        16 => {
            // A join runs no user code, so only the split can panic.
            if let Some((key, upper)) = container.split() {
                let separator = without_fuse(|| C::separator(key));
                container.join_at(separator, upper);
            }
        }
        _ => {
            let mut upper = C::default();
            let separator = C::separator(ledger.make(Fragile(1000)));
            without_fuse(|| {
                for key in 1000..1020 {
                    upper.insert(ledger.make(Fragile(key)), ledger.make(Fragile(key)));
                }
            });
            container.join_at(separator, upper);
        }
    }
}

/// The contents that [`fragile_operation`] should leave.
fn model_operation(mut model: BTreeMap<u32, u32>, number: u32, key: u32) -> BTreeMap<u32, u32> {
    match number {
        1 | 4 => drop(model.insert(key, 1000)),
        2 => drop(model.entry(key).or_insert(1000)),
        3 | 6 => drop(model.remove(&key)),
        9 => drop(model.pop_first()),
        10 => drop(model.pop_last()),
        13 => model.retain(|candidate, _| !(key..key + 9).contains(candidate)),
        14 => model.retain(|candidate, _| *candidate <= key),
        15 => model.retain(|candidate, _| *candidate > key),
        17 => model.extend((1000..1020).map(|key| (key, key))),
        _ => {}
    }
    model
}
