//! Keys that expire, against a model: what has had its time is not there, whatever is asked, and
//! what the database knows of times is neither more nor less than the keys that have some.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use tremula_log::{Log, MemoryLog};
use tremula_store::{
    Database, Direction, Effects, Engine, EvictionSettings, Expiry, Folder, Key, KeyRange, Policy,
    Store, StoreConfig, Update, Value, served_engines,
};

/// When a key expires: long ago, in the far future, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    Past(u8),
    Future(u8),
    Never,
}

impl Time {
    fn expiry(self) -> Option<Expiry> {
        match self {
            Self::Past(number) => Expiry::from_millis(1 + u64::from(number)),
            Self::Future(number) => Expiry::from_millis(Expiry::LAST_MILLIS - u64::from(number)),
            Self::Never => None,
        }
    }

    const fn is_over(self) -> bool {
        matches!(self, Self::Past(_))
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u8, u8, Time),
    Append(u8, u8),
    SetTime(u8, Time),
    ExpireNow(u8),
    Remove(u8),
    RemoveRange(u8, u8),
    Together(Vec<(u8, u8, Time)>),
    RemoveTogether(Vec<u8>),
    ChangeTogether(Vec<(u8, Option<(u8, Time)>)>),
    Expire,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..12_u8;
    let length = || prop::sample::select(&[0, 3, 16, 17, 22, 23, 60][..]);
    let time = || {
        prop_oneof![
            (0..3_u8).prop_map(Time::Past),
            (0..3_u8).prop_map(Time::Future),
            Just(Time::Never),
        ]
    };
    let operation = prop_oneof![
        5 => (key(), length(), time()).prop_map(|(k, l, t)| Operation::Insert(k, l, t)),
        2 => (key(), length()).prop_map(|(k, l)| Operation::Append(k, l)),
        3 => (key(), time()).prop_map(|(k, t)| Operation::SetTime(k, t)),
        1 => key().prop_map(Operation::ExpireNow),
        2 => key().prop_map(Operation::Remove),
        1 => (key(), key()).prop_map(|(low, high)| Operation::RemoveRange(low, high)),
        1 => prop::collection::vec((key(), length(), time()), 0..5).prop_map(Operation::Together),
        1 => prop::collection::vec(key(), 0..5).prop_map(Operation::RemoveTogether),
        1 => prop::collection::vec((key(), prop::option::of((length(), time()))), 0..5)
            .prop_map(Operation::ChangeTogether),
        1 => Just(Operation::Expire),
    ];
    prop::collection::vec(operation, 1..60)
}

fn key(number: u8) -> Key {
    Key::from(&[number][..])
}

fn value(length: u8, time: Time) -> Value {
    Value::from(&vec![b'x'; length.into()][..]).expiring(time.expiry())
}

/// The lengths and times of keys that have not been removed; those that are over are not there.
type Model = BTreeMap<u8, (u8, Time)>;

fn alive(model: &Model, number: u8) -> Option<(u8, Time)> {
    model
        .get(&number)
        .copied()
        .filter(|(_, time)| !time.is_over())
}

fn run(store: &Store, model: &mut Model, operation: &Operation) {
    let database = store.database(0);
    let shown = |value: Option<Value>| value.map(|value| value.len());
    let expected = |old: Option<(u8, Time)>| old.map(|(length, _)| usize::from(length));
    let done = store.commit(|effects| match operation {
        &Operation::Insert(number, length, time) => {
            let before = alive(model, number);
            let old = database.insert(effects, key(number), value(length, time));
            assert_eq!(shown(old), expected(before));
            model.insert(number, (length, time));
        }
        &Operation::Append(number, length) => {
            let bytes = vec![b'y'; length.into()];
            let values = store.values(0);
            let appended = values.append(effects, key(number), &bytes, usize::MAX, usize::MAX);
            appended.expect("no limit");
            let (before, time) = alive(model, number).unwrap_or((0, Time::Never));
            model.insert(number, (before.wrapping_add(length), time));
        }
        &Operation::SetTime(number, time) => {
            let mut seen = None;
            let (is_there, removed) = database.update_expiry(effects, key(number), &mut |before| {
                seen = Some(before.expiry());
                Update::Put(time.expiry())
            });
            let before = alive(model, number);
            assert_eq!(seen, before.map(|(_, time)| time.expiry()));
            assert_eq!(is_there, before.is_some());
            assert!(removed.is_none());
            if let Some((length, _)) = before {
                model.insert(number, (length, time));
            }
        }
        &Operation::ExpireNow(number) => {
            let remove = &mut |_: &Value| Update::Remove;
            let (is_there, removed) = database.update_expiry(effects, key(number), remove);
            let before = alive(model, number);
            assert_eq!(shown(removed), expected(before));
            if is_there {
                model.remove(&number);
            }
        }
        &Operation::Remove(number) => {
            let before = alive(model, number);
            assert_eq!(
                shown(database.remove(effects, &key(number))),
                expected(before)
            );
            model.remove(&number);
        }
        &Operation::RemoveRange(low, high) => {
            let range = low..high.max(low);
            let there = range
                .clone()
                .filter(|number| alive(model, *number).is_some());
            let (from, to) = (key(range.start), key(range.end));
            let bounds = (Bound::Included(&from), Bound::Excluded(&to));
            let removed = database.remove_range(effects, bounds.0, bounds.1);
            // An engine without steps does not see which keys are over.
            let most = model.range(range.clone()).count();
            let exact = there.count();
            let has_steps = Engine::ALL
                .iter()
                .any(|engine| engine.name() == database.engine() && engine.facts().transactional);
            assert!(removed == exact || !has_steps && (exact..=most).contains(&removed));
            model.retain(|number, _| !range.contains(number));
        }
        Operation::Together(entries) => {
            let values = entries.iter().map(|&(number, length, time)| {
                model.insert(number, (length, time));
                (key(number), value(length, time))
            });
            let values = values.collect();
            database.insert_together(effects, values);
        }
        Operation::RemoveTogether(numbers) => {
            let mut there = 0;
            for number in numbers {
                there += usize::from(alive(model, *number).is_some());
                model.remove(number);
            }
            let keys: Vec<Key> = numbers.iter().copied().map(key).collect();
            assert_eq!(database.remove_together(effects, &keys).len(), there);
        }
        Operation::ChangeTogether(changes) => {
            let changes = changes.iter().map(|&(number, new)| {
                match new {
                    Some(new) => model.insert(number, new),
                    None => model.remove(&number),
                };
                (key(number), new.map(|(length, time)| value(length, time)))
            });
            let changes = changes.collect();
            database.change_together(effects, changes);
        }
        Operation::Expire => {}
    });
    done.expect("the log takes it");
    if let Operation::Expire = operation {
        while store.expire(3).expect("the log takes it").1 {}
        model.retain(|_, (_, time)| !time.is_over());
        assert_eq!(database.len(), model.len());
    }
}

/// Compares everything that can be read.
fn check(database: Database<'_>, model: &Model) {
    let there: Vec<(u8, u8)> = (0..12)
        .filter_map(|number| Some((number, alive(model, number)?.0)))
        .collect();
    let shown = |entry: Option<(Key, Value)>| {
        entry.map(|(key, value)| (key.as_bytes()[0], value.len() as u8))
    };
    for number in 0..12 {
        let found = there.iter().find(|(other, _)| *other == number).copied();
        assert_eq!(database.contains_key(&key(number)), found.is_some());
        let value = database.get(&key(number));
        assert_eq!(
            value.as_ref().map(|value| value.len() as u8),
            found.map(|(_, length)| length)
        );
        let expiry = value.and_then(|value| value.expiry());
        assert_eq!(
            expiry,
            alive(model, number).and_then(|(_, time)| time.expiry())
        );
        let next = there.iter().find(|(other, _)| *other > number).copied();
        assert_eq!(shown(database.next(&key(number))), next);
        let prev = there
            .iter()
            .rev()
            .find(|(other, _)| *other < number)
            .copied();
        assert_eq!(shown(database.prev(&key(number))), prev);
    }
    assert_eq!(shown(database.first()), there.first().copied());
    assert_eq!(shown(database.last()), there.last().copied());
    let keys: Vec<Key> = (0..12).map(key).collect();
    let mut together = [false; 12];
    database.get_together(&keys, &mut |at, value| together[at] = value.is_some());
    for (number, is_there) in together.iter().enumerate() {
        assert_eq!(*is_there, alive(model, number as u8).is_some());
    }
    for limit in [0, 1, 2, 5, 12] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let mut found = vec![(key(99), Value::from(&b""[..]))];
            database.scan(KeyRange::all(), direction, limit, &mut found);
            let found = found
                .into_iter()
                .skip(1)
                .map(|entry| shown(Some(entry)).expect("one"));
            let mut expected = there.clone();
            if direction == Direction::Descending {
                expected.reverse();
            }
            expected.truncate(limit);
            assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
    let timed = |(_, time): &&(u8, Time)| time.expiry().is_some();
    assert!(database.expiring() >= model.values().filter(timed).count());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_has_had_its_time_is_not_there(
        operations in operations(),
        engine in prop::sample::select(served_engines().collect::<Vec<_>>()),
        is_logged: bool,
    ) {
        let config = StoreConfig::new(engine);
        let is_logged = is_logged && engine.facts().transactional;
        let directory = tempfile::tempdir().expect("a directory");
        let folder = Folder::new(directory.path());
        let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
        let store = if is_logged {
            Store::recover(&config, Arc::clone(&log), &folder, &mut |_| ()).expect("a store").0
        } else {
            Store::new(&config).expect("a store")
        };
        let mut model = Model::new();
        for operation in &operations {
            run(&store, &mut model, operation);
            check(store.database(0), &model);
        }
        run(&store, &mut model, &Operation::Expire);
        let timed = model.values().filter(|(_, time)| time.expiry().is_some()).count();
        if engine.facts().transactional {
            prop_assert_eq!(store.database(0).expiring(), timed);
        }
        if is_logged {
            store.forward();
            drop(store);
            let (again, _) = Store::recover(&config, log, &folder, &mut |_| ()).expect("a store");
            check(again.database(0), &model);
            prop_assert_eq!(again.database(0).expiring(), timed);
            prop_assert_eq!(again.database(0).len(), model.len());
        }
    }
}

/// The log is applied after the times in it have come, so none of them may count then: only the
/// last one of a key does.
#[test]
fn a_time_that_was_prolonged_before_it_came_is_prolonged_again() {
    let config = StoreConfig::new(Engine::Aspen);
    let directory = tempfile::tempdir().expect("a directory");
    let folder = Folder::new(directory.path());
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let open = || {
        let log = Arc::clone(&log);
        Store::recover(&config, log, &folder, &mut |_| ())
            .expect("a store")
            .0
    };
    let store = open();
    let database = store.database(0);
    let soon = Expiry::from_millis(Expiry::now().millis() + 60_000);
    let far = Time::Future(0).expiry();
    let written = store.commit(|effects| {
        let mut prolong = |number, first: Option<Expiry>, then| {
            let put = value(3, Time::Never).expiring(first);
            database.insert(effects, key(number), put);
            database.update_expiry(effects, key(number), &mut |_| Update::Put(then))
        };
        assert!(prolong(1, soon, far).0);
        assert!(prolong(2, soon, None).0);
        assert!(prolong(3, far, soon).0);
        // As if its time had not come yet.
        assert!(!prolong(4, Time::Past(1).expiry(), far).0);
    });
    written.expect("the log takes it");
    // The same with a time that has come when the log is applied.
    let past = Time::Past(1).expiry();
    let written = store.commit(|effects| {
        database.insert(effects, key(5), value(3, Time::Never));
        database.update_expiry(effects, key(5), &mut |_| Update::Put(past))
    });
    assert!(written.expect("the log takes it").0);
    // A time that comes before the log is applied, but not before it was prolonged.
    loop {
        let brief = Expiry::from_millis(Expiry::now().millis() + 20);
        let written = store.commit(|effects| {
            database.insert(effects, key(6), value(3, Time::Never).expiring(brief));
            database
                .update_expiry(effects, key(6), &mut |_| Update::Put(far))
                .0
        });
        if written.expect("the log takes it") {
            break;
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    store.save(&folder).expect("a snapshot");
    drop(store);
    for _ in 0..2 {
        let store = open();
        let of = |number| {
            store
                .database(0)
                .get(&key(number))
                .map(|value| value.expiry())
        };
        let expected = [Some(far), Some(None), Some(soon), None, None, Some(far)];
        assert_eq!([1, 2, 3, 4, 5, 6].map(of), expected);
        assert_eq!(store.database(0).expiring(), 5);
        // Without the snapshot.
        for path in folder.snapshots().expect("a folder") {
            std::fs::remove_file(path).expect("it goes");
        }
    }
}

/// Of keys with and without times, a volatile policy takes those with some, and then no more.
#[test]
fn volatile_policies_take_only_keys_that_expire() {
    for policy in Policy::ALL
        .into_iter()
        .filter(|policy| policy.name().starts_with("volatile"))
    {
        let eviction = EvictionSettings {
            policy,
            samples: 5,
            places: 1024,
        };
        let config = StoreConfig::new(Engine::Aspen).eviction(Some(eviction));
        let store = Store::new(&config).expect("a store");
        let insert = |database: usize, number: u8, time| {
            let value = value(3, time);
            let inserted = store
                .commit(|effects| store.database(database).insert(effects, key(number), value));
            inserted.expect("no log");
        };
        for number in 0..100 {
            let time = match number % 3 {
                0 => Time::Future(number),
                _ => Time::Never,
            };
            insert(usize::from(number % 2), number, time);
        }
        let mut last = None;
        for _ in 0..34 {
            let next = [0, 1].map(|database| store.database(database).next_expiries(1));
            let next = next.concat().into_iter().min();
            assert!(store.evict_one(), "{policy}");
            if policy == Policy::VolatileTtl {
                assert!(last < next, "{policy}");
                last = next;
            }
        }
        assert!(!store.evict_one(), "{policy}");
        let left = store.database(0).len() + store.database(1).len();
        assert_eq!(left, 66, "{policy}");
    }
}

/// Candidates for eviction are kept from one look to the next. One that persists meanwhile stays.
#[test]
fn volatile_policies_leave_keys_that_persist() {
    const KEYS: u8 = 4;
    for policy in Policy::ALL
        .into_iter()
        .filter(|policy| policy.name().starts_with("volatile"))
    {
        let eviction = EvictionSettings {
            policy,
            samples: 5,
            places: 1024,
        };
        let config = StoreConfig::new(Engine::Aspen).eviction(Some(eviction));
        let store = Store::new(&config).expect("a store");
        let database = store.database(0);
        for number in 0..KEYS {
            let value = value(3, Time::Future(number));
            let inserted = store.commit(|effects| database.insert(effects, key(number), value));
            inserted.expect("no log");
        }
        assert!(store.evict_one(), "{policy}");
        let left: Vec<u8> = (0..KEYS)
            .filter(|number| database.contains_key(&key(*number)))
            .collect();
        assert_eq!(left.len(), usize::from(KEYS) - 1, "{policy}");
        for number in &left {
            let persist = |effects: &mut Effects<'_>| {
                database.update_expiry(effects, key(*number), &mut |_| Update::Put(None))
            };
            store.commit(persist).expect("no log");
        }
        assert!(!store.evict_one(), "{policy}");
        assert_eq!(database.len(), left.len(), "{policy}");
    }
}

/// Keys whose time has come are counted once, whether they are removed, written anew, or go with
/// others.
#[test]
fn each_key_that_expires_is_counted_once() {
    let store = Store::new(&StoreConfig::new(Engine::Aspen)).expect("a store");
    let database = store.database(0);
    let past = Expiry::from_millis(1);
    let commit = |write: &mut dyn FnMut(&mut Effects<'_>)| {
        store.commit(|effects| write(effects)).expect("no log");
    };
    let gone = || Value::from(&b"gone"[..]).expiring(past);
    let stays = || Value::from(&b"stays"[..]);
    for number in 0..6 {
        commit(&mut |effects| drop(database.insert(effects, key(number), gone())));
    }
    commit(&mut |effects| drop(database.insert(effects, key(6), stays())));
    assert_eq!(store.expired(), 0);
    commit(&mut |effects| drop(database.insert(effects, key(0), stays())));
    assert_eq!(store.expired(), 1);
    commit(&mut |effects| drop(database.remove(effects, &key(1))));
    assert_eq!(store.expired(), 2);
    commit(&mut |effects| {
        let entries = vec![(key(0), stays()), (key(2), stays())];
        database.insert_together(effects, entries);
    });
    assert_eq!(store.expired(), 3);
    commit(&mut |effects| {
        let (low, high) = (key(3), key(4));
        let (low, high) = (Bound::Included(&low), Bound::Included(&high));
        assert_eq!(database.remove_range(effects, low, high), 0);
    });
    assert_eq!(store.expired(), 5);
    assert_eq!(store.expire(100).expect("no log"), (1, false));
    assert_eq!(store.expired(), 6);
    assert_eq!(database.len(), 3);
}
