//! Closures that call the index that is running them, on every engine.
//!
//! A debug build panics with an explanation for every operation and engine, even where the call
//! would work. Each test here fails on: an operation without the check, which hangs on some engines
//! and returns on others; a note that outlives a closure that has panicked, or that is taken for
//! one of another index; a panic where a closure may call the index: in `range`.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tremula_index::{Direction, Engine, KeyRange, OrderedIndex, Update};

pub(crate) type Index = dyn OrderedIndex<u64, u64>;

pub(crate) fn ignore<T>(_: T) {}

/// An operation of an index.
type Operation = fn(&Index);

/// All operations, by name.
const OPERATIONS: [(&str, Operation); 21] = [
    ("get_with", |index| ignore(index.get_with(&1, &mut |_| ()))),
    ("get", |index| ignore(index.get(&1))),
    ("contains_key", |index| ignore(index.contains_key(&1))),
    ("get_many", |index| index.get_many(&[1, 2], &mut Vec::new())),
    ("insert", |index| ignore(index.insert(1, 1))),
    ("insert_if_absent", |index| {
        ignore(index.insert_if_absent(1, 1))
    }),
    ("remove", |index| ignore(index.remove(&1))),
    ("update", |index| {
        ignore(index.update(1, &mut |_| Update::Keep))
    }),
    ("first", |index| ignore(index.first())),
    ("last", |index| ignore(index.last())),
    ("next", |index| ignore(index.next(&1))),
    ("prev", |index| ignore(index.prev(&1))),
    ("step_with", |index| {
        ignore(index.step_with(&1, Direction::Ascending, &mut |_, _| ()))
    }),
    ("pop_first", |index| ignore(index.pop_first())),
    ("pop_last", |index| ignore(index.pop_last())),
    ("scan", |index| {
        index.scan(KeyRange::all(), Direction::Ascending, 1, &mut Vec::new())
    }),
    ("range", |index| {
        let visit = &mut |_: &u64, _: &u64| ControlFlow::Break(());
        index.range(KeyRange::all(), Direction::Ascending, visit);
    }),
    ("snapshot", |index| ignore(index.snapshot(KeyRange::all()))),
    ("remove_range", |index| {
        ignore(index.remove_range(KeyRange::all()))
    }),
    ("len, is_empty", |index| {
        ignore((index.len(), index.is_empty()))
    }),
    ("shape", |index| ignore(index.shape())),
];

/// Makes an index run a closure.
type Caller = fn(&Index, &mut dyn FnMut());

/// The three operations whose closures must not call the index; each closure calls what it is
/// given.
const CALLERS: [(&str, Caller); 3] = [
    ("get_with", |index, call| {
        assert!(index.get_with(&5, &mut |_| call()));
    }),
    ("update", |index, call| {
        index.update(5, &mut |_| {
            call();
            Update::Keep
        });
    }),
    ("step_with", |index, call| {
        assert!(index.step_with(&4, Direction::Ascending, &mut |_, _| call()));
    }),
];

pub(crate) fn panics_with_a_sentence(what: &str, work: impl FnOnce()) {
    let panic = catch_unwind(AssertUnwindSafe(work)).expect_err(what);
    let sentence = panic.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(
        sentence.contains("has called the same index"),
        "{what}: {sentence}"
    );
}

pub(crate) fn check(name: &str, index: &Index) {
    index.insert(5, 5);
    for (caller, call_from) in CALLERS {
        for (operation, call) in OPERATIONS {
            let what = format!("{name}: {operation} in {caller}");
            panics_with_a_sentence(&what, || call_from(index, &mut || call(index)));
            // The panic has removed the note, and released what the operation held.
            assert_eq!(index.get(&5), Some(5), "{what}");
        }
    }
    // A closure may call another index of the same type, and that index's closures may call neither
    // of the two.
    let other = Engine::CaTree.create::<u64, u64>();
    other.insert(5, 5);
    for (caller, call_from) in CALLERS {
        let mut called = false;
        call_from(index, &mut || {
            OPERATIONS.iter().for_each(|(_, call)| call(&*other));
            other.insert(5, 5);
            called = true;
        });
        assert!(called, "{name}: {caller}");
        panics_with_a_sentence(name, || {
            call_from(index, &mut || {
                call_from(&*other, &mut || ignore(index.get(&1)));
            });
        });
        assert_eq!((index.len(), other.len()), (1, 1), "{name}: {caller}");
    }
    // The closure of `range` runs with no lock held.
    let mut visited = 0;
    index.range(KeyRange::all(), Direction::Ascending, &mut |_, _| {
        visited += 1;
        OPERATIONS.iter().for_each(|(_, call)| call(index));
        ControlFlow::Break(())
    });
    assert_eq!(visited, 1, "{name}");
}
