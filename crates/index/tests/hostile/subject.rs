//! The subjects: an index, a multi-map or a container of hostile keys and values, with its
//! operations by name.

use super::support::suite::Random;
use super::temper;
use super::values::{Key, Value};
use std::ops::{Bound, ControlFlow};
use std::sync::{Mutex, TryLockError};
use tremula_index::container::Container;
use tremula_index::{Direction, KeyRange, OrderedIndex, OrderedMap, Update};

/// The most entries that a scan or visit with a lying order may return before it is ended.
pub(crate) const MOST: usize = 100;

/// A map of any type.
pub(crate) trait Subject: Send + Sync {
    /// The names of the operations. Frequent ones are listed several times.
    fn operations(&self) -> &'static [&'static str];

    /// Runs one operation with random keys.
    fn operate(&self, operation: &str, random: &mut Random);

    /// What user code that calls a map does.
    fn call(&self);
}

/// Makes a map that holds these entries, or some of them.
pub(crate) type Maker<K> = fn(Vec<(K, Value)>) -> Box<dyn OrderedIndex<K, Value>>;

/// An engine's map.
pub(crate) struct Index<const FORM: u8>(OrderedMap<Key<FORM>, Value, AnyIndex<FORM>>);

type AnyIndex<const FORM: u8> = Box<dyn OrderedIndex<Key<FORM>, Value>>;

impl<const FORM: u8> Index<FORM> {
    pub(crate) fn new(make: Maker<Key<FORM>>, random: &mut Random) -> Self {
        let count = [0, 1, 30, 200][random.below(4) as usize];
        let entries = (0..count).map(|number| (Key::new(number), Value::new()));
        Self(OrderedMap::on(make(entries.collect())))
    }
}

/// What a closure that gets a value does.
fn look(value: &Value) {
    value.check();
    temper::call();
}

fn look_at_entry<const FORM: u8>(key: &Key<FORM>, value: &Value) {
    key.number();
    look(value);
}

pub(crate) fn bound<T>(random: &mut Random, key: &T) -> Bound<T>
where
    T: Clone,
{
    match random.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key.clone()),
        _ => Bound::Included(key.clone()),
    }
}

pub(crate) fn direction(random: &mut Random) -> Direction {
    match random.below(2) {
        0 => Direction::Ascending,
        _ => Direction::Descending,
    }
}

/// A closure for `update`, which may panic.
fn decide(random: &mut Random) -> impl FnMut(Option<&Value>) -> Update<Value> + use<> {
    let decision = random.below(4);
    move |old| {
        if let Some(old) = old {
            look(old);
        }
        match decision {
            0 | 1 => Update::Put(Value::new()),
            2 => Update::Keep,
            _ => Update::Remove,
        }
    }
}

/// Does something over a range under locks, if the engine can.
fn step<const FORM: u8>(
    map: &dyn OrderedIndex<Key<FORM>, Value>,
    operation: &str,
    range: KeyRange<'_, Key<FORM>>,
    random: &mut Random,
) {
    let Some(steps) = map.transactional() else {
        return;
    };
    let keys = [Key::any(), Key::any(), Key::any()];
    let look_at_all = &mut |key: &Key<FORM>, value: &Value| {
        look_at_entry(key, value);
        ControlFlow::Continue(())
    };
    if operation == "step" {
        let over = [
            range,
            KeyRange::only(&keys[0]),
            KeyRange::only(&keys[1]),
            KeyRange::only(&keys[2]),
        ];
        steps.atomically(&over, &mut |step| {
            for _ in 0..random.below(9) {
                let key = &keys[random.below(3) as usize];
                match random.below(5) {
                    0 | 1 => drop(step.insert(key.clone(), Value::new())),
                    2 => drop(step.remove(key)),
                    3 => drop(step.get_with(key, &mut look)),
                    _ => step.range(range, look_at_all),
                }
            }
            if random.below(9) == 0 {
                step.remove_range(range);
            }
        });
        steps.walk(&mut |_| ControlFlow::Continue(()));
    } else if random.below(4) == 0 {
        steps.remove_range_with(range, &mut |view| view.range(KeyRange::all(), look_at_all));
    }
}

impl<const FORM: u8> Subject for Index<FORM> {
    fn operations(&self) -> &'static [&'static str] {
        &[
            "insert",
            "insert",
            "insert",
            "insert",
            "insert",
            "insert",
            "insert",
            "insert",
            "insert_if_absent",
            "insert_if_absent",
            "remove",
            "remove",
            "remove",
            "remove",
            "update",
            "update",
            "update",
            "get",
            "get_with",
            "contains_key",
            "get_many",
            "first",
            "last",
            "next",
            "prev",
            "step_with",
            "pop_first",
            "pop_last",
            "scan",
            "scan",
            "range",
            "range_that_writes",
            "range_from_both_ends",
            "snapshot",
            "remove_range",
            "pop_with",
            "remove_range_with",
            "step",
            "step",
            "len",
            "shape",
        ]
    }

    fn operate(&self, operation: &str, random: &mut Random) {
        let map = self.0.engine();
        let key = Key::any();
        let other = Key::any();
        let bounds = (bound(random, &key), bound(random, &other));
        let range = KeyRange::new(bounds.0.as_ref(), bounds.1.as_ref());
        let direction = direction(random);
        let entries = match operation {
            "insert" => return drop(map.insert(key, Value::new())),
            "insert_if_absent" => return drop(map.insert_if_absent(key, Value::new())),
            "remove" => return drop(map.remove(&key)),
            "update" => return drop(map.update(key, &mut decide(random))),
            "get" => return map.get(&key).iter().for_each(look),
            "get_with" => {
                map.get_with(&key, &mut look);
                return;
            }
            "contains_key" => {
                map.contains_key(&key);
                return;
            }
            "get_many" => {
                let keys = [key, other, Key::any(), Key::any()];
                let mut values = Vec::new();
                map.get_many(&keys, &mut values);
                return values.iter().flatten().for_each(look);
            }
            "first" => Vec::from_iter(map.first()),
            "last" => Vec::from_iter(map.last()),
            "next" => Vec::from_iter(map.next(&key)),
            "prev" => Vec::from_iter(map.prev(&key)),
            "step_with" => {
                map.step_with(&key, direction, &mut look_at_entry);
                return;
            }
            "pop_first" => Vec::from_iter(map.pop_first()),
            "pop_last" => Vec::from_iter(map.pop_last()),
            "scan" => {
                let mut entries = Vec::new();
                let limit = [0, 1, 7, MOST][random.below(4) as usize];
                map.scan(range, direction, limit, &mut entries);
                entries
            }
            "range" => {
                let mut left = random.below(MOST as u32);
                return map.range(range, direction, &mut |key, value| {
                    look_at_entry(key, value);
                    left = left.saturating_sub(1);
                    match left {
                        0 => ControlFlow::Break(()),
                        _ => ControlFlow::Continue(()),
                    }
                });
            }
            "range_that_writes" => {
                let mut left = random.below(MOST as u32);
                return map.range(range, direction, &mut |key, value| {
                    match left % 3 {
                        0 => drop(map.remove(key)),
                        1 => drop(map.insert(Key::any(), value.clone())),
                        _ => {}
                    }
                    look_at_entry(key, value);
                    left = left.saturating_sub(1);
                    match left {
                        0 => ControlFlow::Break(()),
                        _ => ControlFlow::Continue(()),
                    }
                });
            }
            "range_from_both_ends" => {
                let mut range = self.0.range(bounds.clone());
                let end = |_| match random.below(2) {
                    0 => range.next(),
                    _ => range.next_back(),
                };
                (0..MOST).map_while(end).collect()
            }
            "snapshot" => map.snapshot(range).unwrap_or_default(),
            "remove_range" if random.below(4) == 0 => {
                map.remove_range(range);
                return;
            }
            "pop_with" => (map.transactional())
                .and_then(|steps| steps.pop_with(direction, &mut look_at_entry))
                .into_iter()
                .collect(),
            "remove_range_with" | "step" => return step(map, operation, range, random),
            "shape" => return drop(map.shape()),
            _ => {
                map.len();
                return;
            }
        };
        for (key, value) in &entries {
            look_at_entry(key, value);
        }
    }

    fn call(&self) {
        let map = self.0.engine();
        let key = Key::any();
        map.get_with(&key, &mut Value::check);
        map.insert(Key::any(), Value::new());
        map.update(Key::any(), &mut |_| Update::Remove);
        map.remove(&key);
        drop(map.last());
    }
}

/// A sequential container of keys of this form. User code that calls it in the middle of an
/// operation does nothing.
#[derive(Default)]
pub(crate) struct Contained<const FORM: u8, C>(Mutex<C>);

impl<const FORM: u8, C: Container<Key<FORM>, Value>> Contained<FORM, C> {
    fn with(&self, work: impl FnOnce(&mut C)) {
        match self.0.try_lock() {
            Ok(mut container) => work(&mut container),
            Err(TryLockError::Poisoned(poisoned)) => work(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

impl<const FORM: u8, C: Container<Key<FORM>, Value>> Subject for Contained<FORM, C> {
    fn operations(&self) -> &'static [&'static str] {
        &[
            "insert",
            "insert",
            "insert",
            "insert",
            "insert",
            "insert",
            "insert_if_absent",
            "remove",
            "remove",
            "remove",
            "update",
            "update",
            "get",
            "first",
            "last",
            "next",
            "prev",
            "pop_first",
            "pop_last",
            "visit",
            "visit",
            "split_range",
            "split",
            "split",
            "count",
        ]
    }

    fn operate(&self, operation: &str, random: &mut Random) {
        self.with(|map| operate_on_container(map, operation, random));
    }

    fn call(&self) {
        self.with(|map| {
            map.insert(Key::any(), Value::new());
            map.remove(&Key::any());
        });
    }
}

fn operate_on_container<const FORM: u8, C: Container<Key<FORM>, Value>>(
    map: &mut C,
    operation: &str,
    random: &mut Random,
) {
    let (key, other) = (Key::any(), Key::any());
    let bounds = (bound(random, &key), bound(random, &other));
    let range = KeyRange::new(bounds.0.as_ref(), bounds.1.as_ref());
    let entry = match operation {
        "insert" => return drop(map.insert(key, Value::new())),
        "insert_if_absent" => return drop(map.insert_if_absent(key, Value::new())),
        "remove" => return drop(map.remove(&key)),
        "update" => return drop(map.update(key, &mut decide(random))),
        "get" => return map.get(&key).into_iter().for_each(look),
        "first" => map.first(),
        "last" => map.last(),
        "next" => map.next(&key),
        "prev" => map.prev(&key),
        "pop_first" => return drop(map.pop_first()),
        "pop_last" => return drop(map.pop_last()),
        "visit" => {
            let mut left = random.below(MOST as u32);
            let visited = map.visit(range, direction(random), &mut |key, value| {
                look_at_entry(key, value);
                left = left.saturating_sub(1);
                match left {
                    0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            });
            let _ = visited;
            return;
        }
        "split_range" => {
            let taken = map.split_range(range);
            taken.count();
            return;
        }
        "split" => {
            if let Some((key, upper)) = map.split() {
                match random.below(3) {
                    0 => {}
                    1 => map.join(key, upper),
                    // At another key than that of the split.
                    _ => map.join(other, upper),
                }
            }
            return;
        }
        _ => {
            let _ = (map.count(), map.depth(), map.bytes());
            return;
        }
    };
    if let Some((key, value)) = entry {
        look_at_entry(key, value);
    }
}
