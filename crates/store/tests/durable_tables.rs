//! The tables of a store with a log are, when it is opened again, what they were.

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use support::{new_folder, new_log};
use tremula_log::{Batch, Log, MemoryLog, Sequence};
use tremula_mailbox::{Config, Mode};
use tremula_store::{Engine, Expiry, Folder, Recovered, Store, StoreConfig, Table, Update};
use tremula_table::term::Bounds;
use tremula_table::{Access, BadArgument, Kind, MatchSpec, Options, Outcome, Term};

fn open(log: &Arc<dyn Log>, folder: &Folder) -> (Store, Recovered) {
    support::open(&StoreConfig::new(Engine::Aspen), log, folder)
}

fn term(text: &str) -> Term {
    let read = text.parse();
    read.unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn spec(text: &str) -> MatchSpec {
    MatchSpec::compile(&term(text)).expect("a specification")
}

/// Every table by its number, as effects that make it: options first, then the rows of each key.
fn contents(store: &Store) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for table in store.tables().made_after(None, usize::MAX) {
        let mut effects = Vec::new();
        table.describe(&mut |effect| {
            let mut bytes = Vec::new();
            effect.encode(&mut bytes).expect("short terms");
            effects.push(bytes);
            ControlFlow::Continue(())
        });
        // A hash table has its keys in another order each time.
        effects[2..].sort();
        let found = store.tables().find(&table.name().into());
        assert_eq!(found.map(|found| found.id()), Some(table.id()), "its name");
        all.insert(table.number(), effects);
    }
    all
}

#[derive(Clone, Debug)]
enum Operation {
    Create(u8, u8),
    Delete(u8),
    Rename(u8, u8),
    Insert(u8, Vec<(i8, i8)>),
    InsertNew(u8, Vec<(i8, i8)>),
    Take(u8, i8),
    DeleteKey(u8, i8),
    DeleteObject(u8, i8, i8),
    Count(u8, i8, i8),
    Replace(u8, i8, i8),
    DeleteAll(u8),
    InitTable(u8, Vec<(i8, i8)>),
    DeleteFound(u8, i8),
    DeleteRange(u8, i8),
    ReplaceFound(u8, i8),
    Protect(u8, bool),
    /// A time that is long ago, or in the far future, or none.
    SetTime(u8, i8, Option<(bool, u8)>),
    Expire,
    Save,
}

const KINDS: [Kind; 4] = [Kind::Set, Kind::OrderedSet, Kind::Bag, Kind::DuplicateBag];

fn rows(pairs: &[(i8, i8)]) -> Term {
    let rows = pairs.iter();
    let row = |(key, value): &(i8, i8)| Term::tuple([Term::from(*key), Term::from(*value)]);
    Term::list(rows.map(row).collect::<Vec<_>>())
}

fn run(store: &Store, folder: &Folder, operation: &Operation) {
    let name = |number: &u8| format!("t{number}");
    let find = |number: &u8| store.tables().find(&term(&name(number)));
    let on = |number: &u8, write: &mut dyn FnMut(&Table)| {
        if let Some(table) = find(number) {
            write(&table);
        }
    };
    // A refusal changes nothing, and leaves nothing in the log.
    let on_each =
        |table: &Table, write: &mut dyn FnMut(&mut Noting<'_>) -> Result<(), BadArgument>| {
            let done = store.commit(|effects| write(&mut table.noting(effects)));
            let _ = done.expect("the log takes it");
        };
    match operation {
        Operation::Create(number, kind) => {
            let kind_of = KINDS[usize::from(kind % 4)];
            let mut options = Options::new().kind(kind_of).access(Access::Public).named();
            if kind / 4 % 2 == 1 {
                options = options.keypos(2);
            }
            if kind / 8 % 2 == 1 {
                options = options.compressed();
            }
            let made = store.commit(|effects| {
                let _ = store.tables().create(effects, &name(number), options);
            });
            made.expect("the log takes it");
        }
        Operation::Delete(number) => on(number, &mut |table| {
            on_each(table, &mut |noting| noting.delete());
        }),
        Operation::Rename(number, other) => on(number, &mut |table| {
            on_each(table, &mut |noting| noting.rename(&name(other)));
        }),
        Operation::Insert(number, pairs) => on(number, &mut |table| {
            on_each(table, &mut |noting| noting.insert(rows(pairs)));
        }),
        Operation::InsertNew(number, pairs) => on(number, &mut |table| {
            on_each(table, &mut |noting| {
                noting.insert_new(rows(pairs)).map(drop)
            });
        }),
        Operation::Take(number, key) => on(number, &mut |table| {
            on_each(table, &mut |noting| {
                noting.take(&Term::from(*key)).map(drop)
            });
        }),
        Operation::DeleteKey(number, key) => on(number, &mut |table| {
            on_each(table, &mut |noting| noting.delete_key(&Term::from(*key)));
        }),
        Operation::DeleteObject(number, key, value) => on(number, &mut |table| {
            let row = Term::tuple([Term::from(*key), Term::from(*value)]);
            on_each(table, &mut |noting| noting.delete_object(&row));
        }),
        Operation::Count(number, key, by) => on(number, &mut |table| {
            let default = Term::tuple([Term::from(*key), Term::from(0)]);
            on_each(table, &mut |noting| {
                let (key, by) = (Term::from(*key), Term::from(*by));
                noting
                    .update_counter_or(&key, &by, default.clone())
                    .map(drop)
            });
        }),
        Operation::Replace(number, key, value) => on(number, &mut |table| {
            let update = Term::tuple([Term::from(2), Term::from(*value)]);
            on_each(table, &mut |noting| {
                noting.update_element(&Term::from(*key), &update).map(drop)
            });
        }),
        Operation::DeleteAll(number) => on(number, &mut |table| {
            on_each(table, &mut |noting| noting.delete_all_objects());
        }),
        Operation::InitTable(number, pairs) => on(number, &mut |table| {
            on_each(table, &mut |noting| noting.init_table([rows(pairs)]));
        }),
        Operation::DeleteFound(number, value) => on(number, &mut |table| {
            let found = format!("[{{{{'_', '$1'}}, [{{'<', '$1', {value}}}], [true]}}]");
            change(store, |table| table.delete_found(spec(&found)), table);
        }),
        Operation::DeleteRange(number, key) => on(number, &mut |table| {
            let found = format!("[{{{{'$1', '_'}}, [{{'<', '$1', {key}}}], [true]}}]");
            change(store, |table| table.delete_found(spec(&found)), table);
        }),
        Operation::ReplaceFound(number, value) => on(number, &mut |table| {
            let found =
                format!("[{{{{'$1', '$2'}}, [{{'>', '$2', {value}}}], [{{{{'$1', 7}}}}]}}]");
            change(store, |table| table.replace_found(spec(&found)), table);
        }),
        Operation::Protect(number, is_protected) => on(number, &mut |table| {
            let access = if *is_protected {
                Access::Protected
            } else {
                Access::Public
            };
            on_each(table, &mut |noting| noting.set_access(access));
        }),
        Operation::SetTime(number, key, time) => on(number, &mut |table| {
            let expiry = time.and_then(|(is_over, time)| match is_over {
                true => Expiry::from_millis(1 + u64::from(time)),
                false => Expiry::from_millis(Expiry::LAST_MILLIS - u64::from(time)),
            });
            let set = store.commit(|effects| {
                let put = &mut |_| Update::Put(expiry);
                table.update_expiry(effects, &Term::from(*key), put)
            });
            let _ = set.expect("the log takes it");
        }),
        Operation::Expire => {
            store.expire(2).expect("the log takes it");
        }
        Operation::Save => {
            store.save(folder).expect("a snapshot");
        }
    }
}

type Noting<'a> = tremula_table::Noting<'a, tremula_table::Table>;

/// Runs a search that changes what it finds, a key in each step.
fn change(
    store: &Store,
    begin: impl FnOnce(&Table) -> tremula_store::Changing,
    table: &Table,
) -> usize {
    let mut changing = begin(table);
    loop {
        let step = store.commit(|effects| changing.step(effects, || false));
        match step.expect("the log takes it") {
            Ok(ControlFlow::Continue(rest)) => changing = rest,
            Ok(ControlFlow::Break(Outcome::Count(count))) => return count,
            Ok(ControlFlow::Break(other)) => panic!("{other:?} is no count"),
            // Such a table cannot be searched like that.
            Err(_) => return 0,
        }
    }
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let (table, small) = (|| 0..4_u8, || -4..5_i8);
    let pairs = move || prop::collection::vec((small(), small()), 0..6);
    let operation = prop_oneof![
        4 => (table(), 0..16_u8).prop_map(|(table, kind)| Operation::Create(table, kind)),
        1 => table().prop_map(Operation::Delete),
        2 => (table(), table()).prop_map(|(table, other)| Operation::Rename(table, other)),
        8 => (table(), pairs()).prop_map(|(table, pairs)| Operation::Insert(table, pairs)),
        3 => (table(), pairs()).prop_map(|(table, pairs)| Operation::InsertNew(table, pairs)),
        2 => (table(), small()).prop_map(|(table, key)| Operation::Take(table, key)),
        2 => (table(), small()).prop_map(|(table, key)| Operation::DeleteKey(table, key)),
        2 => (table(), small(), small())
            .prop_map(|(table, key, value)| Operation::DeleteObject(table, key, value)),
        3 => (table(), small(), small())
            .prop_map(|(table, key, by)| Operation::Count(table, key, by)),
        2 => (table(), small(), small())
            .prop_map(|(table, key, value)| Operation::Replace(table, key, value)),
        1 => table().prop_map(Operation::DeleteAll),
        1 => (table(), pairs()).prop_map(|(table, pairs)| Operation::InitTable(table, pairs)),
        1 => (table(), small()).prop_map(|(table, value)| Operation::DeleteFound(table, value)),
        1 => (table(), small()).prop_map(|(table, key)| Operation::DeleteRange(table, key)),
        1 => (table(), small()).prop_map(|(table, value)| Operation::ReplaceFound(table, value)),
        1 => (table(), any::<bool>()).prop_map(|(table, is)| Operation::Protect(table, is)),
        4 => (table(), small(), any::<Option<(bool, u8)>>())
            .prop_map(|(table, key, time)| Operation::SetTime(table, key, time)),
        1 => Just(Operation::Expire),
        1 => Just(Operation::Save),
    ];
    prop::collection::vec(operation, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_was_done_to_tables_is_there_again(operations in operations()) {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let (store, _) = open(&log, &folder);
        for operation in &operations {
            run(&store, &folder, operation);
        }
        let expected = contents(&store);
        drop(store);
        let (store, recovered) = open(&log, &folder);
        let has_saved = operations.iter().any(|one| matches!(one, Operation::Save));
        prop_assert_eq!(recovered.snapshot.is_some(), has_saved);
        prop_assert_eq!(&contents(&store), &expected);
        // What the snapshot has is all that there is.
        store.save(&folder).expect("a snapshot");
        drop(store);
        let (store, recovered) = open(&log, &folder);
        prop_assert_eq!(recovered.records, 0);
        prop_assert_eq!(&contents(&store), &expected);
        drop(store);
        let (_empty, folder) = new_folder();
        let (store, _) = open(&log, &folder);
        prop_assert_eq!(&contents(&store), &expected);
    }
}

/// Several threads write the same few tables and keys, make and delete tables, and give them other
/// names, while snapshots are made: if a number were taken outside the lock, or a snapshot had a
/// table without what was written before, something would come back older than it was.
#[test]
fn what_threads_do_to_tables_at_once_is_there_again() {
    for round in 0..6_u64 {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let (store, _) = open(&log, &folder);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let store = &store;
            let writers: Vec<_> = (0..3)
                .map(|writer| scope.spawn(move || write_at_random(store, writer + 3 * round)))
                .collect();
            let (folder, is_over) = (&folder, &is_over);
            scope.spawn(move || {
                store.save(folder).expect("a snapshot");
                while !is_over.load(Ordering::Acquire) {
                    store.save(folder).expect("a snapshot");
                }
            });
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            is_over.store(true, Ordering::Release);
            ended.into_iter().for_each(|ended| ended.expect("a writer"));
        });
        let expected = contents(&store);
        drop(store);
        let (store, recovered) = open(&log, &folder);
        assert!(recovered.snapshot.is_some());
        assert_eq!(contents(&store), expected, "with a snapshot");
        let (_empty, folder) = new_folder();
        let (store, _) = open(&log, &folder);
        assert_eq!(contents(&store), expected, "from the log alone");
    }
}

fn write_at_random(store: &Store, writer: u64) {
    let mut state = writer * 0x9e37_79b9 + 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let (_unused, folder) = new_folder();
    for _ in 0..2_500 {
        let (table, other) = (next(3) as u8, next(3) as u8);
        let (key, value) = (next(4) as i8, next(100) as i8);
        let operation = match next(30) {
            0 => Operation::Create(table, next(16) as u8),
            1 => Operation::Rename(table, other),
            2 if value < 30 => Operation::Delete(table),
            3 => Operation::DeleteAll(table),
            4 => Operation::InitTable(table, vec![(key, value), (key + 1, value)]),
            5 => Operation::Take(table, key),
            6 => Operation::DeleteKey(table, key),
            7 => Operation::DeleteRange(table, key),
            8 => Operation::ReplaceFound(table, value),
            9 => Operation::DeleteFound(table, value),
            10..=13 => Operation::Count(table, key, 1),
            14..=17 => Operation::Insert(table, vec![(key, value), (key + 1, value)]),
            18 => Operation::Protect(table, value < 50),
            19 => Operation::Expire,
            20..=24 => {
                let time = (value > 20).then_some((value < 60, value as u8));
                Operation::SetTime(table, key, time)
            }
            _ => Operation::Insert(table, vec![(key, value)]),
        };
        run(store, &folder, &operation);
        if next(16) == 0 {
            store.forward();
        }
    }
    store.forward();
}

/// A list of rows is there as a whole or not at all, whatever beginning of the log a crash leaves,
/// and so is what replaces a whole table.
#[test]
fn no_beginning_of_the_log_has_half_of_a_list_of_rows() {
    let (_directory, folder) = new_folder();
    let log = new_log();
    let (store, _) = open(&log, &folder);
    run(&store, &folder, &Operation::Create(0, 1));
    store.forward();
    for round in 0..20_i8 {
        let pairs = [1, 2, 3, 4].map(|key| (key, round));
        run(
            &store,
            &folder,
            &match round % 2 {
                0 => Operation::Insert(0, pairs.to_vec()),
                _ => Operation::InitTable(0, pairs.to_vec()),
            },
        );
        store.forward();
    }
    drop(store);
    let mut prefix: Vec<Batch> = Vec::new();
    let mut seen = Vec::new();
    for entry in log.read(Sequence::FIRST).expect("the beginning") {
        let mut batch = Batch::new();
        let entry = entry.expect("no damage");
        entry.records().for_each(|record| batch.push(record));
        prefix.push(batch);
        let shorter = MemoryLog::new();
        for batch in &prefix {
            shorter.append(batch, None).expect("room");
        }
        let shorter: Arc<dyn Log> = Arc::new(shorter);
        let (store, _) = open(&shorter, &folder);
        let table = store.tables().find(&term("t0")).expect("the table");
        let value = |key: i8| table.lookup_element(&Term::from(key), 2).ok();
        let values = [1, 2, 3, 4].map(value);
        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        seen.extend(values[0].clone());
    }
    assert_eq!(seen.len(), 20, "{seen:?}");
}

/// A crash ends the connections that owned tables: their tables are deleted, unless an heir is
/// there. New tables get other numbers than all before.
#[test]
fn tables_of_a_connection_end_with_it_over_a_crash() {
    let (_directory, folder) = new_folder();
    for saves in [false, true] {
        let log = new_log();
        let (store, _) = open(&log, &folder);
        let owner = store.table_owner();
        let heir = store
            .mailboxes()
            .add(b"heir", Mode::default(), Config::default());
        let heir = heir.expect("a mailbox").pid(store.tables());
        let made = store.commit(|effects| {
            let tables = store.tables();
            let private = Options::new().access(Access::Private).named();
            let inherited = Options::new().heir(heir.expect("it is there"), term("data"));
            let public = Options::new().access(Access::Public).named();
            owner.create(effects, "private", private)?;
            owner.create(effects, "inherited", inherited.named())?;
            let kept = tables.create(effects, "kept", public)?;
            kept.noting(effects).insert_row((1, 2))?;
            Ok::<_, BadArgument>(kept)
        });
        let kept = made.expect("the log takes it").expect("new tables");
        store.forward();
        if saves {
            store.save(&folder).expect("a snapshot");
        }
        // The crash: nobody ends the owner in the log, but the next start. The mailbox is not kept.
        let (again, _) = open(&log, &folder);
        let there = again.tables().made_after(None, 10);
        let names: Vec<_> = there.iter().map(|table| table.name().text()).collect();
        assert_eq!(names, ["kept"], "saves: {saves}");
        assert_eq!(there[0].number(), kept.number());
        let made = again.commit(|effects| {
            again
                .tables()
                .create(effects, "new", Options::new().named())
        });
        let new = made.expect("the log takes it").expect("a new table");
        assert!(new.number() > kept.number() && !contents(&again).is_empty());
        drop(again);
        // That they ended stands in the log.
        let (again, _) = open(&log, &folder);
        assert_eq!(again.tables().len(), 2);
        std::mem::forget(owner);
    }
}

/// A connection that leaves in an orderly way: its heir gets the table, and the log has that.
#[test]
fn the_end_of_an_owner_is_in_the_log() {
    let (_directory, folder) = new_folder();
    let log = new_log();
    let (store, _) = open(&log, &folder);
    let owner = store.table_owner();
    let made = store.commit(|effects| {
        owner.create(effects, "private", Options::new().access(Access::Private))?;
        store.tables().create(effects, "kept", Options::new())
    });
    made.expect("the log takes it").expect("new tables");
    drop(owner);
    let expected = contents_of_unnamed(&store);
    assert_eq!(expected, ["kept"]);
    store.forward();
    let from_log = new_folder();
    let (again, _) = open(&log, &from_log.1);
    assert_eq!(contents_of_unnamed(&again), expected);
}

fn contents_of_unnamed(store: &Store) -> Vec<&'static str> {
    let all = store.tables().made_after(None, usize::MAX);
    all.iter().map(|table| table.name().text()).collect()
}

/// A table that is beyond the bounds of the store that is opened is not dropped in silence.
#[test]
fn a_row_beyond_the_bounds_is_refused_with_the_reason() {
    for saves in [false, true] {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let (store, _) = open(&log, &folder);
        run(&store, &folder, &Operation::Create(0, 0));
        let table = store.tables().find(&term("t0")).expect("the table");
        let row = Term::tuple([Term::from(1), Term::binary(&[0; 3000])]);
        let done = store.commit(|effects| table.noting(effects).insert(row));
        done.expect("the log takes it").expect("a row");
        if saves {
            store.save(&folder).expect("a snapshot");
        }
        drop(store);
        let bounds = Bounds {
            bytes: 1000,
            depth: 10,
        };
        let config = StoreConfig::new(Engine::Aspen).term_bounds(bounds);
        let refused = Store::recover(&config, Arc::clone(&log), &folder, &mut |_| ());
        let error = refused.err().expect("a refusal").to_string();
        assert!(error.contains("beyond the bounds"), "{error}");
    }
}
