//! Answers of commands with ids, and notes: in the log with their steps, and behind snapshots.

use std::sync::Arc;
use tremula_log::{Log, MemoryLog, Sequence};
use tremula_store::{Asked, Engine, Folder, Hold, Key, Store, StoreConfig, Value};

const CONFIG: StoreConfig = StoreConfig::new(Engine::Aspen);

/// Puts a value, as the command with an id.
fn put(store: &Store, id: &[u8], value: Vec<u8>) {
    let key = Key::from(&b"key"[..]);
    let Asked::New(begun) = store.ask(id) else {
        panic!("the id is new");
    };
    assert!(matches!(store.ask(id), Asked::Runs));
    let put = store.hold(&[Hold::key(0, key.clone())], 1, |databases| {
        databases.will_answer();
        // As a command that knows better how much it changes.
        databases.expect(1);
        let value = Value::from(value);
        let database = databases.database(0);
        let put = databases.commit(|effects| database.insert(effects, key.clone(), value));
        put.expect("the log takes it");
        databases.answer(&begun, id);
    });
    put.expect("a step");
}

fn answer(store: &Store, id: &[u8]) -> Option<Box<[u8]>> {
    match store.ask(id) {
        Asked::Answered(answer) => Some(answer),
        Asked::New(_) => None,
        Asked::Runs => panic!("nothing runs"),
    }
}

/// A log's batch gets no further step from 256 KiB on, so two steps would be in two of them.
#[test]
fn an_answer_is_in_the_log_with_its_step() {
    let log = Arc::new(MemoryLog::new());
    let store = Store::logging(&CONFIG, Arc::clone(&log) as Arc<dyn Log>).expect("a store");
    put(&store, b"id", vec![0; 300 << 10]);
    store.forward();
    let entries = log.read(Sequence::FIRST).expect("a reader");
    let records = entries.map(|entry| entry.expect("an entry").records().count());
    assert_eq!(records.collect::<Vec<_>>(), [2]);
}

#[test]
fn answers_and_notes_are_there_from_a_snapshot_and_from_the_log_behind_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = Folder::new(directory.path());
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let open = || {
        let store = Store::recover(&CONFIG, Arc::clone(&log), &folder, &mut |_| ());
        store.expect("a store").0
    };
    let note = |store: &Store, name: &[u8], text: &[u8]| {
        store.note(name, text).expect("the log takes it");
    };
    let store = open();
    put(&store, b"first", vec![1]);
    for name in [&b"stays"[..], b"changes", b"goes"] {
        note(&store, name, b"before");
    }
    store.save(&folder).expect("a snapshot");
    put(&store, b"second", vec![2]);
    note(&store, b"changes", b"behind");
    note(&store, b"goes", b"");
    store.sync().expect("a log");
    drop(store);
    let store = open();
    for id in [&b"first"[..], b"second"] {
        assert_eq!(answer(&store, id).as_deref(), Some(id));
    }
    assert_eq!(answer(&store, b"third"), None);
    assert_eq!(store.kept_answers(), (2, 2 * (5 + 6)));
    let noted = |name: &[u8]| store.noted(name);
    assert_eq!(noted(b"stays").as_deref(), Some(&b"before"[..]));
    assert_eq!(noted(b"changes").as_deref(), Some(&b"behind"[..]));
    assert_eq!(noted(b"goes"), None);
    let mut new = store.new_notes();
    new.sort();
    let names: Vec<_> = new.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, [&b"changes"[..], b"goes", b"stays"]);
    assert!(store.new_notes().is_empty());
}
