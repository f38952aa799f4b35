//! Versions of values, against a model: a key has another version exactly when it was changed, and
//! where there is a log, the version is the number of the record that says so.

mod support;

use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use support::{new_folder, new_log, open};
use tremula_log::{Log, Sequence};
use tremula_store::{
    CacheSettings, Engine, Expiry, Hold, Key, LEAST_CACHE, Lifetime, Place, Store, StoreConfig,
    Strategy as Shards, Update, Value, Version, Way, check_logged, served_engines,
};

const KEYS: u8 = 8;
const DATABASES: usize = 2;

/// A key of one byte in one of the databases.
type Name = (usize, u8);

#[derive(Clone, Debug)]
enum Operation {
    Insert(Name, u8),
    /// Changes the value, or leaves it.
    Update(Name, Option<u8>),
    Append(Name, u8),
    Replace(Name, u8),
    SetTime(Name, bool),
    Remove(Name),
    RemoveRange(usize, u8, u8),
    Together(usize, Vec<(u8, u8)>),
    TogetherIfAbsent(usize, Vec<(u8, u8)>),
    ChangeTogether(usize, Vec<(u8, Option<u8>)>),
    RemoveTogether(usize, Vec<u8>),
    Carry(Name, Name, bool, bool),
    /// These inserts and removals, in one step.
    Hold(Vec<(Name, Option<u8>)>),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..KEYS;
    let name = || (0..DATABASES, key());
    let database = || 0..DATABASES;
    let length = || prop::sample::select(&[0, 3, 10, 11, 16, 17, 60][..]);
    let entries = || prop::collection::vec((key(), length()), 0..5);
    let operation = prop_oneof![
        4 => (name(), length()).prop_map(|(k, l)| Operation::Insert(k, l)),
        2 => (name(), prop::option::of(length())).prop_map(|(k, l)| Operation::Update(k, l)),
        4 => (name(), length()).prop_map(|(k, l)| Operation::Append(k, l)),
        2 => (name(), length()).prop_map(|(k, l)| Operation::Replace(k, l)),
        3 => (name(), any::<bool>()).prop_map(|(k, t)| Operation::SetTime(k, t)),
        2 => name().prop_map(Operation::Remove),
        1 => (database(), key(), key()).prop_map(|(d, l, h)| Operation::RemoveRange(d, l, h)),
        2 => (database(), entries()).prop_map(|(d, e)| Operation::Together(d, e)),
        1 => (database(), entries()).prop_map(|(d, e)| Operation::TogetherIfAbsent(d, e)),
        2 => (database(), prop::collection::vec((key(), prop::option::of(length())), 0..6))
            .prop_map(|(d, e)| Operation::ChangeTogether(d, e)),
        1 => (database(), prop::collection::vec(key(), 0..4))
            .prop_map(|(d, e)| Operation::RemoveTogether(d, e)),
        3 => (name(), name(), any::<bool>(), any::<bool>())
            .prop_map(|(from, to, leaves, replaces)| Operation::Carry(from, to, leaves, replaces)),
        2 => prop::collection::vec((name(), prop::option::of(length())), 0..6)
            .prop_map(Operation::Hold),
    ];
    prop::collection::vec(operation, 1..40)
}

fn key(number: u8) -> Key {
    Key::from(&[number][..])
}

fn value(length: u8) -> Value {
    Value::from(&vec![b'x'; length.into()][..])
}

fn time(is_far: bool) -> Option<Expiry> {
    Expiry::from_millis(Expiry::LAST_MILLIS - u64::from(is_far))
}

/// The keys that are there, with their versions.
fn versions(store: &Store) -> BTreeMap<Name, Version> {
    let mut all = BTreeMap::new();
    for database in 0..DATABASES {
        for number in 0..KEYS {
            if let Some((text, version)) = store.values(database).versioned(&key(number)) {
                // It is the one that the entry carries.
                let entry = store.database(database).get(&key(number));
                let carried = entry.as_ref().map(Value::version);
                assert_eq!(carried, Some(version));
                assert!(text.iter().all(|byte| *byte == b'x'));
                all.insert((database, number), version);
            }
        }
    }
    all
}

/// Runs an operation. Returns which of the keys that are there before or afterwards it changes.
fn run(store: &Store, before: &BTreeMap<Name, Version>, operation: &Operation) -> Vec<Name> {
    let mut changed = Vec::new();
    let done = store.commit(|effects| match operation {
        &Operation::Insert(name, length) => {
            let old = store
                .database(name.0)
                .insert(effects, key(name.1), value(length));
            store.values(name.0).dropped(old);
            changed.push(name);
        }
        &Operation::Update(name, length) => {
            let decide = &mut |_: Option<&[u8]>| {
                let value = length.map(value);
                value.map_or(Update::Keep, Update::Put)
            };
            let values = store.values(name.0);
            values.update(effects, key(name.1), Lifetime::Kept, decide);
            changed.extend(length.map(|_| name));
        }
        &Operation::Append(name, length) => {
            let bytes = vec![b'x'; length.into()];
            let values = store.values(name.0);
            let appended = values.append(effects, key(name.1), &bytes, usize::MAX, usize::MAX);
            appended.expect("no limit");
            changed.push(name);
        }
        &Operation::Replace(name, length) => {
            let values = store.values(name.0);
            let old = store.database(name.0).get(&key(name.1));
            // The first one comes too late: the key has another value.
            let other = Value::from(&[b'z'; 99][..]);
            for (old, fits) in [(Some(&other), false), (old.as_ref(), true)] {
                let replaced = values.replace(effects, key(name.1), old, value(length));
                assert_eq!(replaced.is_ok(), fits);
            }
            values.dropped(old);
            changed.push(name);
        }
        &Operation::SetTime(name, is_far) => {
            let mut is_new = false;
            let database = store.database(name.0);
            database.update_expiry(effects, key(name.1), &mut |value| {
                is_new = value.expiry() != time(is_far);
                Update::Put(time(is_far))
            });
            changed.extend(is_new.then_some(name));
        }
        &Operation::Remove(name) => {
            let old = store.database(name.0).remove(effects, &key(name.1));
            store.values(name.0).dropped(old);
        }
        &Operation::RemoveRange(database, low, high) => {
            let (low, high) = (key(low.min(high)), key(high));
            let (low, high) = (Bound::Included(&low), Bound::Excluded(&high));
            store.database(database).remove_range(effects, low, high);
        }
        Operation::Together(database, entries) => {
            let each = entries
                .iter()
                .map(|(number, length)| (key(*number), value(*length)));
            for old in store
                .database(*database)
                .insert_together(effects, each.collect())
            {
                store.values(*database).dropped(Some(old));
            }
            changed.extend(entries.iter().map(|(number, _)| (*database, *number)));
        }
        Operation::TogetherIfAbsent(database, entries) => {
            let each = entries
                .iter()
                .map(|(number, length)| (key(*number), value(*length)));
            let database_of = store.database(*database);
            if database_of.insert_together_if_absent(effects, each.collect()) {
                changed.extend(entries.iter().map(|(number, _)| (*database, *number)));
            }
        }
        Operation::ChangeTogether(database, entries) => {
            let each = entries
                .iter()
                .map(|(number, length)| (key(*number), length.map(value)));
            store
                .database(*database)
                .change_together(effects, each.collect());
            let mut last = BTreeMap::new();
            last.extend(entries.iter().map(|(number, length)| (*number, length)));
            let put = last.into_iter().filter(|(_, length)| length.is_some());
            changed.extend(put.map(|(number, _)| (*database, number)));
        }
        Operation::RemoveTogether(database, numbers) => {
            let keys: Vec<Key> = numbers.iter().copied().map(key).collect();
            for old in store.database(*database).remove_together(effects, &keys) {
                store.values(*database).dropped(Some(old));
            }
        }
        &Operation::Carry(from, to, leaves, replaces) if from != to => {
            let (one, other) = (key(from.1), key(to.1));
            let from = Place {
                database: from.0,
                key: &one,
            };
            let into = Place {
                database: to.0,
                key: &other,
            };
            let way = Way { leaves, replaces };
            if let tremula_store::Moved::Done(old) = store.free().carry(effects, from, into, way) {
                store.values(to.0).dropped(old);
                changed.push(to);
            }
        }
        Operation::Carry(..) | Operation::Hold(_) => {}
    });
    done.expect("the log takes it");
    if let Operation::Hold(changes) = operation {
        hold(store, changes, &mut changed);
    }
    changed.retain(|name| !matches!(operation, Operation::Remove(_)) || before.contains_key(name));
    changed
}

/// Makes several changes in one step, if the engine has steps. Fewer numbers are reserved for them
/// than they need, or more.
fn hold(store: &Store, changes: &[(Name, Option<u8>)], changed: &mut Vec<Name>) {
    let holds: Vec<Hold> = changes
        .iter()
        .map(|((database, number), _)| Hold::key(*database, key(*number)))
        .collect();
    let held = store.hold(&holds, 3, |databases| {
        for ((database, number), length) in changes {
            let database = databases.database(*database);
            let done = databases.commit(|effects| match length {
                Some(length) => database.insert(effects, key(*number), value(*length)),
                None => database.remove(effects, &key(*number)),
            });
            done.expect("the log takes it");
        }
    });
    if held.is_ok() {
        changed.extend(changes.iter().map(|(name, _)| *name));
    }
}

/// Runs the operations, and looks at all versions after each. Returns each version that was seen,
/// with its key.
fn check(store: &Store, operations: &[Operation]) -> HashSet<(Name, Version)> {
    let mut seen = HashSet::new();
    let mut before = versions(store);
    for operation in operations {
        let changed = run(store, &before, operation);
        let after = versions(store);
        for (name, version) in &after {
            let was = before.get(name);
            if changed.contains(name) {
                let is_new = seen.insert((*name, *version));
                assert!(is_new, "{operation:?}: {name:?} had {version} before");
            } else {
                assert_eq!(Some(version), was, "{operation:?} does not change {name:?}");
            }
        }
        before = after;
    }
    let distinct: HashSet<Version> = seen.iter().map(|(_, version)| *version).collect();
    assert_eq!(distinct.len(), seen.len(), "two changes have one version");
    assert!(!distinct.contains(&Version::NONE));
    seen
}

fn config(engine: Engine, is_cached: bool) -> StoreConfig {
    let cache = CacheSettings {
        strategy: Shards::default(),
        bytes: LEAST_CACHE,
        from: 40,
    };
    StoreConfig::new(engine).cache(is_cached.then_some(cache))
}

/// The keys that the records of a log say are there, with the numbers of the records that made
/// their values; and all numbers of such records, each with its key. Kinds of records are those of
/// `tremula_store::effects::record`; keys have one byte, and lengths fit into one.
#[derive(Default)]
struct Told {
    last: BTreeMap<Name, Version>,
    made: HashSet<(Name, Version)>,
}

impl Told {
    fn read(log: &dyn Log) -> Self {
        let mut told = Self::default();
        for entry in log.read(Sequence::FIRST).expect("the beginning") {
            let entry = entry.expect("no damage");
            let numbers = entry.first().get()..;
            for (number, record) in numbers.zip(entry.records()) {
                told.take(number, record);
            }
        }
        told
    }

    fn take(&mut self, number: u64, record: &[u8]) {
        /// A time as LEB128 ends with its first byte below 128.
        fn behind_time(bytes: &[u8]) -> &[u8] {
            let end = bytes.iter().position(|byte| *byte < 128).expect("an end");
            &bytes[end + 1..]
        }
        let &[kind, database, ref rest @ ..] = record else {
            return;
        };
        let put = match kind {
            1 | 4 => rest[1],
            10 => behind_time(rest)[1],
            11 => behind_time(rest)[0],
            2 => {
                self.last.remove(&(database.into(), rest[0]));
                return;
            }
            3 => {
                let [1, 1, low, 2, 1, high] = rest else {
                    panic!("the range of a test, not {rest:?}");
                };
                let is_in = |name: &Name| (*low..*high).contains(&name.1);
                let database = usize::from(database);
                self.last
                    .retain(|name, _| name.0 != database || !is_in(name));
                return;
            }
            other => panic!("a record of kind {other}"),
        };
        let version = Version::new(number).expect("a short log");
        let name = (usize::from(database), put);
        self.last.insert(name, version);
        self.made.insert((name, version));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 200 }))]

    #[test]
    fn a_version_changes_exactly_when_the_key_does(
        operations in operations(),
        is_cached: bool,
    ) {
        for engine in served_engines() {
            let store = Store::new(&config(engine, is_cached)).expect("a served engine");
            check(&store, &operations);
        }
    }

    #[test]
    fn a_version_is_the_number_of_its_record(operations in operations(), is_cached: bool) {
        for engine in served_engines().filter(|engine| check_logged(*engine).is_ok()) {
            let (_directory, folder) = new_folder();
            let log = new_log();
            let (store, _) = open(&config(engine, is_cached), &log, &folder);
            let seen = check(&store, &operations);
            store.forward();
            let told = Told::read(&*log);
            prop_assert_eq!(&versions(&store), &told.last);
            prop_assert!(seen.is_subset(&told.made), "{:?}", seen.difference(&told.made));
            // And when the store is opened again: from the log, and from a snapshot.
            drop(store);
            let (store, recovered) = open(&config(engine, is_cached), &log, &folder);
            prop_assert!(recovered.snapshot.is_none());
            prop_assert_eq!(&versions(&store), &told.last);
            store.save(&folder).expect("a snapshot");
            drop(store);
            let (store, recovered) = open(&config(engine, is_cached), &log, &folder);
            prop_assert!(recovered.snapshot.is_some() && recovered.records == 0);
            prop_assert_eq!(&versions(&store), &told.last);
        }
    }
}

/// Writers give one key different values, freely and in steps, while others read it. A version that
/// is not that of its value, or not yet when the value is seen, would be another one than that of
/// the record in which the value is.
#[test]
fn whoever_reads_a_value_sees_the_version_of_its_record() {
    const WRITES: u32 = 4000;
    let bytes = |writer: u32, number: u32| [writer.to_be_bytes(), number.to_be_bytes()].concat();
    for engine in served_engines().filter(|engine| check_logged(*engine).is_ok()) {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let (store, _) = open(&StoreConfig::new(engine), &log, &folder);
        let is_over = AtomicBool::new(false);
        let seen: HashMap<Version, Vec<u8>> = thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut seen = HashMap::new();
                        while !is_over.load(Ordering::Acquire) {
                            store.database(0).get_with(&key(0), &mut |value| {
                                let before = seen.insert(value.version(), value.to_vec());
                                assert!(before.is_none_or(|before| *before == **value));
                            });
                        }
                        seen
                    })
                })
                .collect();
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let store = &store;
                    scope.spawn(move || {
                        for number in 0..WRITES {
                            let value = || Value::from(bytes(writer, number));
                            let done = store.commit(|effects| {
                                let database = store.database(0);
                                if number.is_multiple_of(2) {
                                    database.insert(effects, key(0), value());
                                } else {
                                    let both = vec![(key(0), value()), (key(1), value())];
                                    database.insert_together(effects, both);
                                }
                            });
                            done.expect("the log takes it");
                        }
                    })
                })
                .collect();
            writers
                .into_iter()
                .for_each(|writer| writer.join().expect("no panic"));
            is_over.store(true, Ordering::Release);
            let seen = readers.into_iter().map(|reader| reader.join());
            seen.flat_map(|seen| seen.expect("no panic")).collect()
        });
        assert!(!seen.is_empty());
        store.forward();
        let mut records = HashMap::new();
        for entry in log.read(Sequence::FIRST).expect("the beginning") {
            let entry = entry.expect("no damage");
            for (number, record) in (entry.first().get()..).zip(entry.records()) {
                records.insert(Version::new(number).expect("a short log"), record.to_vec());
            }
        }
        for (version, bytes) in seen {
            let record = &records[&version];
            assert_eq!(record[..4], [1, 0, 1, 0], "{engine}: it puts the key");
            assert_eq!(record[4..], bytes, "{engine}: {version}");
        }
    }
}

/// A store that is opened again gives no number that a value of before has.
#[test]
fn versions_go_on_behind_those_of_before() {
    let (_directory, folder) = new_folder();
    let log = new_log();
    let config = StoreConfig::new(Engine::Aspen);
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let (store, _) = open(&config, &log, &folder);
        for number in 0..KEYS {
            let done = store.commit(|effects| {
                let database = store.database(0);
                database.insert(effects, key(number), value(3));
            });
            done.expect("the log takes it");
            let version = versions(&store)[&(0, number)];
            assert!(seen.insert(version), "{version} comes again");
            assert_eq!(version.get(), store.last_effect().get());
        }
        store.save(&folder).expect("a snapshot");
    }
}
