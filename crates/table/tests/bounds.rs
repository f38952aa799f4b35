//! Tables whose terms have bounds, and what is done in steps.

use std::ops::ControlFlow;
use tremula_table::table::effect::Recording;
use tremula_table::term::{Bounds, OutOfBounds};
use tremula_table::{
    Access, Heir, Kind, MatchSpec, Options, Problem, Table, Tables, Term, WriteConcurrency,
};

fn term(text: &str) -> Term {
    text.parse().unwrap()
}

fn spec(text: &str) -> MatchSpec {
    MatchSpec::compile(&term(text)).unwrap()
}

fn bounded(kind: Kind, bytes: usize, depth: usize) -> Table {
    let options = Options::new().kind(kind).access(Access::Public);
    let tables = Tables::bounded(Bounds { bytes, depth });
    tables.create("t", options).unwrap()
}

/// Fails if a few replacements make a term beyond the bounds, in a table of any type that they work
/// on, or if a refused one changes the table.
#[test]
fn nothing_larger_than_the_bounds_is_made() {
    let twice = spec("[{{'$1', '$2'}, [], [{{'$1', {{'$2', '$2'}}}}]}]");
    for kind in [Kind::Set, Kind::OrderedSet, Kind::DuplicateBag] {
        let table = bounded(kind, 10_000, 1000);
        table.insert(term("[{1, a}, {1, b}]")).unwrap();
        // Terms that have been doubled so often would not fit into any memory.
        let error = (0..100).find_map(|_| {
            let before = table.tab2list().unwrap();
            let refused = table.select_replace(&twice).err()?;
            assert_eq!(table.tab2list().unwrap(), before, "{kind}");
            Some(refused)
        });
        let error = error.expect("it ends");
        let Problem::OutOfBounds(OutOfBounds::Bytes {
            bytes,
            limit: 10_000,
        }) = error.problem
        else {
            panic!("{error}");
        };
        assert!((10_001..20_200).contains(&bytes), "{bytes}");
        let largest = table.tab2list().unwrap().into_iter().map(Term::from);
        assert!(
            largest
                .map(|row| row.heap_bytes())
                .all(|bytes| bytes <= 10_000)
        );
    }
}

/// Fails if a row that is refused leaves a trace.
#[test]
fn what_is_refused_changes_nothing() {
    for kind in Kind::ALL {
        let table = bounded(kind, 500, 3);
        table.insert(term("[{1, 5}, {2, a}]")).unwrap();
        let rows = table.tab2list().unwrap();
        let (large, deep) = (Term::binary(&[7; 500]), term("{{{a}}}"));
        let row = |key: i64, value: &Term| Term::tuple([Term::from(key), value.clone()]);
        for value in [&large, &deep] {
            assert!(table.insert(row(3, value)).is_err());
            assert!(
                table
                    .insert(Term::list([row(4, &Term::NIL), row(1, value)]))
                    .is_err()
            );
            assert!(table.insert_new(row(5, value)).is_err());
            assert!(table.insert_row((6, value)).is_err());
            assert!(
                table
                    .init_table([row(7, &Term::NIL), row(8, value)])
                    .is_err()
            );
            let update = row(2, value);
            assert!(table.update_element(&Term::from(1), &update).is_err());
            assert!(
                table
                    .update_counter_or(
                        &Term::from(9),
                        &term("{2, 1}"),
                        Term::tuple([Term::NIL, Term::from(1), value.clone(),])
                    )
                    .is_err()
            );
        }
        let digits = format!("1{}", "0".repeat(1500));
        assert!(
            table
                .update_counter(&Term::from(1), &term(&digits))
                .is_err()
        );
        assert_eq!(table.tab2list().unwrap(), rows, "{kind}");
    }
}

/// An atom takes 16 bytes in a term, and up to a thousand where it is written out, as in a log.
#[test]
fn what_is_too_long_when_it_is_written_out_is_refused() {
    const LIMIT: usize = 100_000;
    let atom = |letter: &str| term(&format!("'{}'", letter.repeat(255)));
    let atoms = |count| Term::list(vec![atom("\u{10348}"); count]);
    for kind in Kind::ALL {
        let tables = Tables::for_log(Bounds {
            bytes: LIMIT,
            depth: 100,
        });
        let mut log = Recording::new();
        let mut owner = tables.owner();
        let pid = owner.pid().clone();
        let options = || Options::new().kind(kind).access(Access::Public);
        let table = owner.noting(&mut log).create("t", options()).unwrap();
        let heir = |count| {
            Some(Heir {
                pid: pid.clone(),
                data: atoms(count),
            })
        };
        table.noting(&mut log).insert_row((1, atoms(90))).unwrap();
        table.noting(&mut log).set_heir(heir(90)).unwrap();
        let before = table.tab2list().unwrap();
        let (one, place) = (Term::from(1), Term::from(2));
        let other = options().heir(pid.clone(), atoms(110));
        let mut refused = vec![
            table.noting(&mut log).insert_row((2, atoms(110))).err(),
            table
                .noting(&mut log)
                .insert_new(Term::tuple([Term::from(2), atoms(110)]))
                .err(),
            table.noting(&mut log).set_heir(heir(110)).err(),
            owner.noting(&mut log).create("other", other).err(),
        ];
        if !kind.is_bag() {
            let update = Term::tuple([place, atoms(110)]);
            refused.push(table.noting(&mut log).update_element(&one, &update).err());
        }
        if kind != Kind::Bag {
            let twice = spec("[{{'$1', '$2'}, [], [{{'$1', {{'$2', '$2'}}}}]}]");
            refused.push(table.noting(&mut log).select_replace(&twice).err());
        }
        for (at, error) in refused.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("{kind}: {at} was taken"));
            let expected = Problem::OutOfBounds(OutOfBounds::External { limit: LIMIT });
            assert_eq!(error.problem, expected, "{kind}: {at}");
        }
        assert_eq!(table.tab2list().unwrap(), before, "{kind}");
        // A range that is too long to write out goes key by key.
        let long = Term::tuple([term("const"), atoms(110)]);
        let greater = Term::tuple([term("'<'"), term("'$1'"), long]);
        let clause = Term::tuple([term("{'$1', '_'}"), Term::list([greater]), term("[true]")]);
        let spec = MatchSpec::compile(&Term::list([clause])).unwrap();
        assert_eq!(table.noting(&mut log).select_delete(&spec), Ok(1), "{kind}");
        owner.end(&mut log);
    }
}

fn filled(kind: Kind, write: WriteConcurrency, rows: i64) -> Table {
    let options = Options::new().kind(kind).write_concurrency(write);
    let table = Tables::new().create("t", options).unwrap();
    let value = Term::binary(&[7; 100]);
    let row = |key| {
        Term::tuple([
            Term::from(key),
            value.clone(),
            Term::list([Term::from(key)]),
        ])
    };
    table
        .insert(Term::list((0..rows).map(row).collect::<Vec<_>>()))
        .unwrap();
    table
}

/// Fails if a description in steps differs from one that is made at once.
#[test]
fn a_description_in_steps_is_what_it_is_at_once() {
    for kind in Kind::ALL {
        let table = filled(kind, WriteConcurrency::On, 3000);
        for item in [
            None,
            Some(term("memory")),
            Some(term("binary")),
            Some(term("owner")),
        ] {
            let at_once = match &item {
                None => table.info_term(),
                Some(item) => table.info_item(item).unwrap(),
            };
            let mut left = table.info_in_steps(item.as_ref()).unwrap();
            let mut steps = 1;
            let in_steps = loop {
                let mut rows = 7;
                let may_go_on = || {
                    rows -= 1;
                    rows > 0
                };
                match left.step(may_go_on) {
                    ControlFlow::Continue(rest) => left = rest,
                    ControlFlow::Break(term) => break term,
                }
                steps += 1;
            };
            assert_eq!(in_steps, at_once, "{kind}, {item:?}");
            let visits = item.is_none_or(|item| item != term("owner"));
            assert_eq!(steps > 400, visits, "{kind}: {steps}");
        }
        table.delete().unwrap();
        assert_eq!(table.info_term(), term("undefined"));
    }
}

/// Fails if rows are there after a deletion, or if freeing them in steps frees too many or none.
#[test]
fn deleted_rows_are_gone_at_once_and_freed_in_steps() {
    for kind in Kind::ALL {
        for write in [WriteConcurrency::Off, WriteConcurrency::On] {
            let table = filled(kind, write, 3000);
            let mut remains = table.delete_all_objects_in_steps().unwrap();
            assert_eq!(table.size().unwrap(), 0);
            assert!(table.tab2list().unwrap().is_empty());
            table.insert(term("{1, new}")).unwrap();
            let mut steps = 1;
            while !remains.free(|| false) {
                steps += 1;
            }
            assert_eq!(steps > 1, kind != Kind::OrderedSet, "{kind}: {steps}");
            assert_eq!(table.tab2list().unwrap(), [(1, term("new"))]);

            let table = filled(kind, write, 3000);
            let other = table.clone();
            let mut remains = table.delete_in_steps().unwrap();
            assert!(other.is_deleted() && other.lookup(&Term::from(1)).is_err());
            let mut steps = 1;
            while !remains.free(|| false) {
                steps += 1;
            }
            assert!(steps >= 3000, "{kind}: {steps}");
            assert!(table.delete_in_steps().is_err());
        }
    }
}
