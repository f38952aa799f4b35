//! Effects of writes of several threads: the order in which they are reported is that in which they
//! take effect.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use support::effects::{description, spec, term};
use tremula_index::{Engine, Update};
use tremula_papers::{AnyEngine, PaperEngine};
use tremula_table::table::effect::{Change, Effect, OwnedEffect, Sink};
use tremula_table::{Access, KeyExpiry, Kind, Options, Table, Tables, Term, WriteConcurrency};

/// Effects with numbers, which are drawn where the effects are reported: at the end of a step for
/// all of it.
struct Numbered<'a> {
    next: &'a AtomicU64,
    effects: Vec<(u64, OwnedEffect)>,
    step: Option<Vec<OwnedEffect>>,
}

impl<'a> Numbered<'a> {
    const fn new(next: &'a AtomicU64) -> Self {
        Self {
            next,
            effects: Vec::new(),
            step: None,
        }
    }

    /// Draws numbers. Other threads may run before and after that, so that they get in between if
    /// no lock keeps them out.
    fn draw(&self, count: usize) -> u64 {
        thread::yield_now();
        let first = self.next.fetch_add(count as u64, Ordering::SeqCst);
        thread::yield_now();
        first
    }
}

impl Sink for Numbered<'_> {
    fn effect(&mut self, effect: &Effect<'_>) {
        if let Some(step) = &mut self.step {
            return step.push(effect.into());
        }
        let number = self.draw(1);
        self.effects.push((number, effect.into()));
    }

    fn begin(&mut self) {
        self.step = Some(Vec::new());
    }

    fn end(&mut self) {
        let step = self.step.take().unwrap();
        let first = self.draw(step.len());
        self.effects.extend((first..).zip(step));
    }

    fn abandon(&mut self) {
        self.step = None;
    }
}

/// The options of tables on every kind of store.
fn all_options() -> Vec<Options> {
    let public = || {
        Options::new()
            .access(Access::Public)
            .write_concurrency(WriteConcurrency::On)
    };
    let mut all: Vec<_> = Kind::ALL
        .into_iter()
        .map(|kind| public().kind(kind))
        .collect();
    all.push(public().write_concurrency(WriteConcurrency::Off));
    for engine in [
        AnyEngine::Index(Engine::Locked),
        AnyEngine::Index(Engine::Aspen),
        AnyEngine::Index(Engine::BTree),
        AnyEngine::Index(Engine::LfcaTree),
        AnyEngine::Paper(PaperEngine::SkipList),
        AnyEngine::Paper(PaperEngine::BwTree),
    ] {
        all.push(public().kind(Kind::OrderedSet).engine(engine));
    }
    all
}

fn random_write(
    tables: &Tables,
    table: &Table,
    sink: &mut Numbered<'_>,
    random: &mut StdRng,
    mark: i64,
) {
    const KEYS: i64 = 3;
    let key = random.random_range(0..KEYS);
    let row = |key: i64| Term::tuple([Term::from(key), Term::from(mark)]);
    let is_bag = table.kind().is_bag();
    let mut noting = table.noting(sink);
    match random.random_range(0..24) {
        0..=5 => noting.insert(row(key)).unwrap(),
        6..=9 if !is_bag => {
            let one = Term::from(1);
            noting
                .update_counter_or(&key.into(), &one, row(key))
                .unwrap();
        }
        6..=9 => noting.delete_object(&row(key)).unwrap(),
        10 | 11 => noting.delete_key(&key.into()).unwrap(),
        12 => drop(noting.take(&key.into()).unwrap()),
        13 => drop(noting.insert_new(row(key)).unwrap()),
        14 | 15 => {
            let rows = [row(key), row((key + 1) % KEYS), row((key + 2) % KEYS)];
            noting.insert(Term::list(rows)).unwrap();
        }
        16 => {
            // A whole range in an `ordered_set`, else key by key.
            let range = format!("[{{{{'$1', '_'}}, [{{'<', '$1', {key}}}], [true]}}]");
            noting.select_delete(&spec(&range)).unwrap();
        }
        17 => {
            let by = "[{{'$1', '$2'}, [{is_integer, '$2'}], [{{'$1', {'+', '$2', 1}}}]}]";
            if table.kind() != Kind::Bag {
                noting.select_replace(&spec(by)).unwrap();
            }
        }
        18 => noting.init_table([row(key), row(key + 1)]).unwrap(),
        20..=22 => {
            let time = u64::try_from(mark).unwrap() + 1;
            let update = if time.is_multiple_of(4) {
                Update::Put(None)
            } else {
                Update::Put(Some(time))
            };
            noting.update_expiry(&key.into(), &mut |_| update).unwrap();
        }
        23 => {
            for due in tables.due(u64::MAX, 2) {
                tables.noting(sink).remove_due(&due);
            }
        }
        _ => noting.delete_all_objects().unwrap(),
    }
}

/// Fails if the order of the numbers is not that in which the changes of a key take effect: if an
/// effect is reported before the lock is held or after it is released, or a step has been seen
/// before its end is reported.
#[test]
fn numbers_drawn_in_the_sink_have_the_order_of_effect() {
    // Few writes a round: a later write of a key hides what was wrong with an earlier one.
    const ROUNDS: i64 = 200;
    const WRITES: i64 = 10;
    const THREADS: i64 = 3;
    for options in all_options() {
        let (tables, next) = (Tables::new(), AtomicU64::new(0));
        let mut made = Numbered::new(&next);
        let table = tables.noting(&mut made).create("t", options.clone());
        let table = table.unwrap();
        let ready = AtomicU64::new(0);
        let write = |round: i64, number: i64| {
            // All begin at once.
            ready.fetch_add(1, Ordering::SeqCst);
            while ready.load(Ordering::SeqCst) < ((round + 1) * THREADS) as u64 {
                thread::yield_now();
            }
            let mut sink = Numbered::new(&next);
            let seed = (round * THREADS + number) as u64;
            let mut random = StdRng::seed_from_u64(seed);
            for write in 0..WRITES {
                // Marks differ in all threads.
                let mark = ((round * WRITES + write) * THREADS + number) * 1_000_000;
                random_write(&tables, &table, &mut sink, &mut random, mark);
            }
            sink.effects
        };
        let write = &write;
        let (again, mut effects, mut applied) = (Tables::new(), made.effects, 0);
        for round in 0..ROUNDS {
            thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS)
                    .map(|number| scope.spawn(move || write(round, number)))
                    .collect();
                for thread in threads {
                    effects.extend(thread.join().unwrap());
                }
            });
            effects.sort_by_key(|(number, _)| *number);
            for (number, effect) in effects.drain(..) {
                assert_eq!(number, applied, "each number once");
                again.apply(&effect.borrow()).unwrap();
                applied += 1;
            }
            let again = again.find(&table.id().into()).unwrap();
            let (again, table) = (description(&again), description(&table));
            assert_eq!(again, table, "round {round} on {options:?}");
        }
    }
}

/// Fails if a reader sees a change before its effect is reported: then the number that the reader
/// draws afterwards can be less than that of the effect that it has seen.
#[test]
fn what_is_seen_has_been_reported() {
    const CHANGES: usize = 4_000;
    for options in all_options() {
        if options.kind.is_bag() {
            continue;
        }
        let table = Tables::new().create("t", options).unwrap();
        let next = AtomicU64::new(1);
        let (key, over) = (Term::from(0), AtomicBool::new(false));
        table.insert(term("{0, 0}")).unwrap();
        // The number of the effect that makes the counter so great.
        let numbers: Vec<_> = (0..=CHANGES).map(|_| AtomicU64::new(0)).collect();
        struct Counting<'a>(&'a AtomicU64, &'a [AtomicU64]);
        impl Sink for Counting<'_> {
            fn effect(&mut self, effect: &Effect<'_>) {
                let Change::Rows(rows) = &effect.change else {
                    panic!("{effect:?}");
                };
                if let Term::Integer(value) = rows.to_vec()[0][1] {
                    let number = self.0.fetch_add(1, Ordering::SeqCst);
                    self.1[value as usize].store(number, Ordering::SeqCst);
                }
            }
            fn begin(&mut self) {}
            fn end(&mut self) {}
            fn abandon(&mut self) {}
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..CHANGES {
                    let mut sink = Counting(&next, &numbers);
                    let counted = table.noting(&mut sink).update_counter(&key, &1.into());
                    counted.unwrap();
                }
                over.store(true, Ordering::SeqCst);
            });
            while !over.load(Ordering::SeqCst) {
                let Term::Integer(seen) = table.lookup_element(&key, 2).unwrap() else {
                    panic!("no counter");
                };
                let now = next.fetch_add(1, Ordering::SeqCst);
                let reported = numbers[seen as usize].load(Ordering::SeqCst);
                assert!(seen == 0 || reported != 0 && reported < now, "{seen}");
            }
        });
    }
}

/// Fails if a key that was removed and comes anew goes by its old time, because the time outlived
/// the rows, or was looked at before the lock of the key was taken.
#[test]
fn a_key_that_comes_anew_does_not_go_by_its_old_time() {
    const ROUNDS: i64 = 150;
    for options in all_options() {
        let tables = Tables::new();
        let table = tables.create("t", options.clone()).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let expirer = scope.spawn(|| {
                let mut removed = 0;
                while !is_over.load(Ordering::SeqCst) {
                    thread::yield_now();
                    for due in tables.due(1, 8) {
                        thread::yield_now();
                        removed += usize::from(tables.remove_due(&due));
                    }
                }
                removed
            });
            let writers: Vec<_> = (0..2)
                .map(|number| {
                    let table = &table;
                    scope.spawn(move || {
                        let key = Term::from(number);
                        for round in 0..ROUNDS {
                            table.insert_row((number, round)).unwrap();
                            let put = &mut |_| Update::Put(Some(1));
                            table.update_expiry(&key, put).unwrap();
                            match round % 3 {
                                0 if round % 30 == 0 => {
                                    while table.member(&key).unwrap() {
                                        thread::yield_now();
                                    }
                                }
                                0 => thread::yield_now(),
                                1 => table.delete_object(&(number, round).into()).unwrap(),
                                _ => drop(table.take(&key).unwrap()),
                            }
                            table.delete_key(&key).unwrap();
                            table.insert_row((number, -round)).unwrap();
                            assert_eq!(table.expiry(&key), Ok(KeyExpiry::Never));
                            thread::yield_now();
                            assert_eq!(table.member(&key), Ok(true), "{round}");
                            table.delete_key(&key).unwrap();
                        }
                    })
                })
                .collect();
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            is_over.store(true, Ordering::SeqCst);
            ended.into_iter().for_each(|ended| ended.unwrap());
            assert!(expirer.join().unwrap() > 0, "nothing expired: {options:?}");
        });
    }
}

/// Fails if a write that began before the table had a first time does not forget that time with the
/// key.
#[test]
fn the_first_time_of_a_table_goes_with_its_key() {
    for round in 0..200 {
        let tables = Tables::new();
        let all = all_options();
        let table = tables.create("t", all[round % all.len()].clone()).unwrap();
        let key = Term::from(1);
        table.insert_row((1, 1)).unwrap();
        let ready = AtomicU64::new(0);
        let meet = || {
            ready.fetch_add(1, Ordering::SeqCst);
            while ready.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                meet();
                let put = &mut |_| Update::Put(Some(1));
                table.update_expiry(&key, put).unwrap();
            });
            meet();
            table.delete_key(&key).unwrap();
        });
        table.insert_row((1, 2)).unwrap();
        assert_eq!(table.expiry(&key), Ok(KeyExpiry::Never), "round {round}");
        assert!(tables.due(1, 1).is_empty());
    }
}
