//! Notices: from them alone one knows which keys there are.
//!
//! The tests would fail if a write had no notice, or two, or one with the wrong key, database
//! or cause; if a key were called new that was there, or expired before its time; or if a notice
//! came while the locks are held.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use tremula_store::{
    Cause, Database, Databases, Direction, Effects, Engine, EvictionSettings, Expiry, Happening,
    Hold, Key, KeyRange, Listener, Moved, Notice, Place, Policy, Store, StoreConfig, Update, Value,
    Way, served_engines,
};

/// Keeps all notices.
struct Kept(Arc<Mutex<Vec<Notice>>>);

impl Listener for Kept {
    fn changed(&self, notices: Vec<Notice>) {
        self.0.lock().expect("no panic").extend(notices);
    }
}

/// A store, its notices, and the keys that there are by these.
struct Seen {
    store: Store,
    notices: Arc<Mutex<Vec<Notice>>>,
    keys: BTreeSet<(usize, Key)>,
}

impl Seen {
    fn new(config: &StoreConfig) -> Self {
        let store = Store::new(config).expect("a store");
        let notices = Arc::default();
        assert!(store.listen(Box::new(Kept(Arc::clone(&notices)))));
        assert!(
            !store.listen(Box::new(Kept(Arc::default()))),
            "a second one"
        );
        store.let_listen(true);
        let keys = BTreeSet::new();
        Self {
            store,
            notices,
            keys,
        }
    }

    /// Takes the notices in, all of which have this cause.
    fn take_in(&mut self, cause: Cause) {
        for notice in self.notices.lock().expect("no panic").drain(..) {
            if notice.happening != Happening::Expired {
                assert_eq!(notice.cause, cause, "{notice:?}");
            }
            let place = (notice.database, notice.key.clone());
            match notice.happening {
                Happening::Put { is_new, .. } => {
                    assert_eq!(self.keys.insert(place), is_new, "{notice:?}");
                }
                Happening::Removed | Happening::Expired => {
                    assert!(self.keys.remove(&place), "{notice:?}");
                }
                Happening::Expires | Happening::Persists => {
                    assert!(self.keys.contains(&place), "{notice:?}");
                }
            }
        }
    }

    /// Removes what has expired, and compares all keys.
    fn check(&mut self) {
        while self.store.expire(100).expect("no log").1 {}
        self.take_in(Cause::Caller(""));
        let mut found = BTreeSet::new();
        for (number, database) in self.store.databases().enumerate() {
            let mut all = Vec::new();
            database.scan(KeyRange::all(), Direction::Ascending, 1000, &mut all);
            found.extend(all.into_iter().map(|(key, _)| (number, key)));
        }
        assert_eq!(found, self.keys);
    }
}

fn key(random: &mut StdRng) -> Key {
    Key::from(format!("key {}", random.random_range(0..8)).as_bytes())
}

/// A value that expires in the far future, has expired, or never does.
fn value(random: &mut StdRng) -> Value {
    let expiry = match random.random_range(0..4) {
        0 => Expiry::from_millis(1),
        1 => Expiry::from_millis(Expiry::LAST_MILLIS),
        _ => None,
    };
    Value::from(&b"value"[..]).expiring(expiry)
}

/// Changes a database in some way.
fn change(
    databases: Databases<'_>,
    effects: &mut Effects<'_>,
    database: Database<'_>,
    random: &mut StdRng,
) {
    let number = random.random_range(0..2);
    match random.random_range(0..9) {
        0..2 => drop(database.insert(effects, key(random), value(random))),
        2 => drop(database.remove(effects, &key(random))),
        3 => {
            let entries = (0..3).map(|_| (key(random), value(random))).collect();
            database.insert_together(effects, entries);
        }
        4 => {
            let keys: Vec<_> = (0..3).map(|_| key(random)).collect();
            database.remove_together(effects, &keys);
        }
        5 => {
            let other = |random: &mut StdRng| random.random_bool(0.5).then(|| value(random));
            let changes = (0..3).map(|_| (key(random), other(random))).collect();
            database.change_together(effects, changes);
        }
        6 => {
            let decided = match random.random_range(0..4) {
                0 => Update::Keep,
                1 => Update::Remove,
                2 => Update::Put(None),
                _ => Update::Put(Expiry::from_millis(Expiry::LAST_MILLIS - 1)),
            };
            database.update_expiry(effects, key(random), &mut |_| decided);
        }
        7 => {
            let entries = (0..2).map(|_| (key(random), value(random))).collect();
            database.insert_together_if_absent(effects, entries);
        }
        _ => {
            let (from, to) = (key(random), key(random));
            if from != to {
                let (database, other) = (number, random.random_range(0..2));
                let from = Place {
                    database,
                    key: &from,
                };
                let to = Place {
                    database: other,
                    key: &to,
                };
                let way = Way {
                    leaves: random.random(),
                    replaces: random.random(),
                };
                let _: Moved = databases.carry(effects, from, to, way);
            }
        }
    }
}

#[test]
fn from_the_notices_one_knows_all_keys() {
    for engine in served_engines() {
        let mut seen = Seen::new(&StoreConfig::new(engine));
        let mut random = StdRng::seed_from_u64(7);
        for round in 0..3_000 {
            let databases = seen.store.free().caused_by("test");
            let number = random.random_range(0..2);
            let database = databases.database(number);
            if round % 4 == 3 && engine.facts().transactional {
                let holds = [Hold::database(0), Hold::database(1)];
                let step = seen.store.hold(&holds, 9, |databases| {
                    let databases = databases.caused_by("test");
                    for _ in 0..3 {
                        let database = databases.database(number);
                        databases
                            .commit(|effects| change(databases, effects, database, &mut random))
                            .expect("no log");
                    }
                    assert!(
                        seen.notices.lock().expect("no panic").is_empty(),
                        "too early"
                    );
                });
                step.expect("an engine with steps");
            } else {
                databases
                    .commit(|effects| change(databases, effects, database, &mut random))
                    .expect("no log");
            }
            seen.take_in(Cause::Caller("test"));
            if round % 10 == 0 {
                seen.check();
            }
        }
    }
}

/// Keys go for want of room, those that expire next, and such whose time has come.
#[test]
fn what_goes_for_want_of_room_has_that_cause() {
    for policy in [Policy::Lru, Policy::VolatileTtl] {
        let settings = EvictionSettings {
            policy,
            samples: 5,
            places: 1 << 8,
        };
        let mut seen = Seen::new(&StoreConfig::new(Engine::Aspen).eviction(Some(settings)));
        let last = Expiry::from_millis(Expiry::LAST_MILLIS);
        let database = seen.store.database(0);
        for number in 0..20_u8 {
            let value = Value::from(&b"value"[..]).expiring(last);
            let put = |effects: &mut Effects<'_>| {
                database.insert(effects, Key::from(&[number][..]), value);
            };
            seen.store.commit(put).expect("no log");
        }
        seen.take_in(Cause::Caller(""));
        assert_eq!(seen.keys.len(), 20);
        while seen.store.evict_one() {}
        seen.take_in(Cause::Eviction);
        assert!(seen.keys.is_empty(), "{policy}: {:?}", seen.keys);
    }
}

#[test]
fn there_are_no_notices_while_they_are_turned_off() {
    let mut seen = Seen::new(&StoreConfig::new(Engine::Aspen));
    let database = seen.store.database(0);
    let put = |byte: u8| {
        let (key, value) = (Key::from(&[byte][..]), Value::from(&b"value"[..]));
        seen.store
            .commit(|effects| drop(database.insert(effects, key, value)))
            .expect("no log");
    };
    seen.store.let_listen(false);
    put(1);
    seen.store.let_listen(true);
    put(2);
    let range = (Bound::Unbounded, Bound::Unbounded);
    let removed = seen
        .store
        .commit(|effects| database.remove_range(effects, range.0, range.1));
    assert_eq!(removed.expect("no log"), 2, "without a notice");
    seen.take_in(Cause::Caller(""));
    assert_eq!(seen.keys.len(), 1);
}
