//! Deeply nested terms: no function on terms is recursive. On a thread with a small stack a
//! recursion would end the process.

use std::hash::{BuildHasher, RandomState};
use std::thread;
use tremula_index::key::KeyHead;
use tremula_table::term::{Atom, Exact, Limits, LocalFun, Pid, TermHead, Tuple};
use tremula_table::{MatchSpec, Term};

const DEPTH: usize = 1_000_000;

/// The depth: a recursion with one byte per level would overflow the small stack.
const DEEP: usize = 150_000;

/// The stack: enough to start a thread, and too little for a recursion.
const STACK: usize = 128 << 10;

/// Wraps one level around a term.
type Wrap = fn(Term) -> Term;

const WRAPS: [(&str, Wrap); 6] = [
    ("tuple", |term| Term::tuple([term])),
    ("list", |term| Term::list([term])),
    ("tail", |term| Term::list_with_tail([Term::from(1)], term)),
    ("value", |term| Term::map(vec![(Term::from(1), term)])),
    ("key", |term| Term::map(vec![(term, Term::from(1))])),
    ("middle", |term| {
        Term::tuple([Term::from(1), Term::list([term, Term::from(2)]), Term::NIL])
    }),
];

fn nested(wrap: Wrap, depth: usize) -> Term {
    let bottom = Term::try_from(0.5).unwrap();
    (0..depth).fold(bottom, |term, _| wrap(term))
}

/// Runs on a thread with a small stack.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new()
        .stack_size(STACK)
        .spawn(work)
        .unwrap();
    thread.join().unwrap();
}

#[test]
fn nothing_recurs() {
    on_small_stack(|| {
        for (name, wrap) in WRAPS {
            let depth = if name == "list" { DEPTH } else { DEEP };
            let (one, two) = (nested(wrap, depth), nested(wrap, depth));
            assert!(one == two && one.is_identical(&two), "{name}");
            assert!(one.cmp(&wrap(two.clone())).is_ne(), "{name}");
            let keys = RandomState::new();
            assert_eq!(keys.hash_one(&one), keys.hash_one(&two), "{name}");
            assert_eq!(keys.hash_one(Exact(one.clone())), keys.hash_one(Exact(two)));
            let (row, other) = (Tuple::from((&one, 1)), Tuple::from((one.clone(), 1)));
            assert!(row == other && row == (&one, 1), "{name}");
            assert!(row.to_string().len() > depth, "{name}");
            assert_eq!(keys.hash_one(&row), keys.hash_one(&other), "{name}");
            assert!(one.heap_bytes() >= depth * 32, "{name}");
            let _ = TermHead::head(&one);
            let text = one.to_string();
            let read = Term::parse(&text, &Limits::NONE).unwrap();
            assert!(read.is_identical(&one), "{name}");
            let bytes = one.to_etf().unwrap();
            let decoded = Term::from_etf(&bytes, &Limits::NONE).unwrap();
            assert!(decoded.is_identical(&one), "{name}");
            // Drops all of them, here.
        }
    });
}

/// A specification with this head and body.
fn spec(head: Term, body: Term) -> Term {
    let clause = [Term::tuple([head]), Term::NIL, Term::list([body])];
    Term::list([Term::tuple(clause)])
}

#[test]
fn match_specifications_do_not_recur() {
    on_small_stack(|| {
        let variable = Term::atom("$1").unwrap();
        for (name, wrap) in WRAPS.into_iter().filter(|(name, _)| *name != "key") {
            // A deeply nested pattern, and what it binds at the bottom.
            let pattern = (0..DEEP).fold(variable.clone(), |term, _| wrap(term));
            let value = nested(wrap, DEEP);
            let Term::Tuple(row) = Term::tuple([value.clone()]) else {
                panic!("a row");
            };
            let compiled = MatchSpec::compile(&spec(pattern, variable.clone())).unwrap();
            let bottom = Term::try_from(0.5).unwrap();
            assert!(compiled.run(&row).unwrap().is_identical(&bottom), "{name}");
            let [interval] = compiled.key_intervals(0).try_into().unwrap();
            assert!(interval.contains(&value), "{name}");
            assert!(compiled.explain(0).len() > 10);
        }
        for wrap in [
            |term| Term::tuple([Term::tuple([term])]),
            |term| Term::list([term]),
            |term| Term::map(vec![(Term::from(1), term)]),
            |term| Term::tuple([Term::atom("andalso").unwrap(), Term::from(true), term]),
            |term| Term::tuple([Term::atom("max").unwrap(), term, Term::from(1)]),
        ] as [Wrap; 5]
        {
            // A deeply nested body.
            let body = (0..DEEP).fold(variable.clone(), |term, _| wrap(term));
            let compiled = MatchSpec::compile(&spec(variable.clone(), body.clone())).unwrap();
            let Term::Tuple(row) = Term::tuple([Term::from(7)]) else {
                panic!("a row");
            };
            assert!(compiled.run(&row).is_some());
            // A deeply nested body with an error at the bottom.
            let wrong = (0..DEEP).fold(Term::tuple([]), |term, _| wrap(term));
            let error = MatchSpec::compile(&spec(variable.clone(), wrong)).unwrap_err();
            assert!(error.path.len() > DEEP);
        }
    });
}

#[test]
fn functions_may_hold_functions() {
    fn wrap(term: Term) -> Term {
        Term::from(LocalFun {
            module: Atom::OK,
            index: 0,
            old_unique: 0,
            old_index: 0,
            unique: [0; 16],
            arity: 0,
            pid: Pid::new(Atom::NO_NODE, 0, 0, 0),
            free: Tuple::new([term]),
        })
    }
    on_small_stack(|| {
        let one = nested(wrap, DEEP);
        assert!(one == nested(wrap, DEEP));
        let bytes = one.to_etf().unwrap();
        assert!(
            Term::from_etf(&bytes, &Limits::NONE)
                .unwrap()
                .is_identical(&one)
        );
    });
}

#[test]
fn a_term_that_two_threads_drop_at_once_is_dropped_by_both() {
    for (_, wrap) in WRAPS {
        let term = nested(wrap, DEEP);
        let other = term.clone();
        let dropper = thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || drop(other))
            .unwrap();
        on_small_stack(move || drop(term));
        dropper.join().unwrap();
    }
}

#[test]
fn a_long_list_is_no_deep_one() {
    let list = Term::list((0..1_000_000).map(Term::from));
    let limits = Limits::default().nesting(1);
    assert_eq!(list.to_string().parse::<Term>(), Ok(list.clone()));
    assert_eq!(Term::from_etf(&list.to_etf().unwrap(), &limits), Ok(list));
}
