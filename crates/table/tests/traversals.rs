//! Compares searches in steps with the same searches at once, and checks what a specification says
//! about whole ranges.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::ControlFlow;
use tremula_table::{
    Action, Kind, MatchSpec, Options, Outcome, Problem, Table, Tables, Term, Traversal,
};

const KINDS: [Kind; 4] = [Kind::Set, Kind::OrderedSet, Kind::Bag, Kind::DuplicateBag];

fn compile(text: &str) -> MatchSpec {
    MatchSpec::compile(&text.parse().unwrap()).unwrap()
}

fn filled(kind: Kind, rows: i64) -> Table {
    let table = Tables::new()
        .create("t", Options::new().kind(kind))
        .unwrap();
    for row in 0..rows {
        // Bags have three rows per key.
        let key = if kind.is_bag() { row / 3 } else { row };
        let row = Term::tuple([Term::from(key), Term::from(row)]);
        table.insert(row).unwrap();
    }
    table
}

/// All rows, in the table's order.
fn rows(table: &Table) -> Vec<Term> {
    let rows = table.tab2list().unwrap().into_iter();
    rows.map(Term::from).collect()
}

/// Lets a step visit this number of rows.
fn at_most(rows: usize) -> impl FnMut() -> bool {
    let mut left = rows;
    move || {
        left = left.saturating_sub(1);
        left > 0
    }
}

fn run(mut traversal: Traversal, rows: usize) -> (Outcome, usize) {
    let mut steps = 1;
    loop {
        match traversal.step(at_most(rows)).unwrap() {
            ControlFlow::Continue(rest) => traversal = rest,
            ControlFlow::Break(outcome) => return (outcome, steps),
        }
        steps += 1;
    }
}

fn found(outcome: Outcome) -> Vec<Term> {
    match outcome {
        Outcome::Found(found) => found,
        other => panic!("{other:?} is not all that was found"),
    }
}

fn count(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Count(count) => count,
        other => panic!("{other:?} is no count"),
    }
}

const SPECS: [&str; 4] = [
    "[{{'$1', '$2'}, [{'==', {'rem', '$2', 7}, 3}], ['$2']}]",
    "[{{'$1', '$2'}, [{'>=', '$1', 20}, {'<', '$1', 90}], ['$2']}]",
    "[{{'_', '_'}, [{'==', 1, 2}], ['$_']}]",
    "[{{5, '$2'}, [], ['$2']}, {{77, '$2'}, [], ['$2']}]",
];

#[test]
fn slices_find_what_one_search_does() {
    for kind in KINDS {
        let table = filled(kind, 300);
        for spec in SPECS.map(compile) {
            for rows in [0, 1, 7, 64, 299, 300, 301, usize::MAX] {
                for reverse in [false, true] {
                    let limit = None;
                    let action = Action::Select { reverse, limit };
                    let (all, _) = run(table.traverse(spec.clone(), action), rows);
                    let at_once = if reverse {
                        table.select_reverse(&spec)
                    } else {
                        table.select(&spec)
                    };
                    assert_eq!(found(all), at_once.unwrap(), "{kind}, {rows}");

                    let limit = Some(4);
                    let action = Action::Select { reverse, limit };
                    let mut next = table.traverse(spec.clone(), action);
                    let mut at_once = if reverse {
                        table.select_reverse_limit(&spec, 4).unwrap()
                    } else {
                        table.select_limit(&spec, 4).unwrap()
                    };
                    loop {
                        let (Outcome::Chunk(chunk), _) = run(next, rows) else {
                            panic!("a search with a limit gives chunks");
                        };
                        let (Some(chunk), Some(other)) = (&chunk, &at_once) else {
                            assert!(chunk.is_none() && at_once.is_none());
                            break;
                        };
                        assert_eq!(chunk.found, other.found, "{kind}, {rows}");
                        let (Some(rest), Some(other)) = (&chunk.rest, &other.rest) else {
                            assert!(chunk.rest.is_none() && other.rest.is_none());
                            break;
                        };
                        next = table.traverse_on(rest);
                        at_once = table.select_next(other).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn slices_change_what_one_search_does() {
    let is_old = "[{{'$1', '$2'}, [{'==', {'rem', '$2', 7}, 3}], [true]}]";
    for kind in KINDS {
        for rows in [1, 10, 1000] {
            let (sliced, table) = (filled(kind, 300), filled(kind, 300));
            let spec = compile(is_old);
            let (counted, steps) = run(sliced.traverse(spec.clone(), Action::Count), rows);
            assert_eq!(count(counted), table.select_count(&spec).unwrap());
            let keys = if kind.is_bag() { 100 } else { 300 };
            assert!(steps >= keys / rows, "{steps} steps of {rows} rows");
            if kind != Kind::Bag {
                let spec =
                    compile("[{{'$1', '$2'}, [{'<', '$1', 50}], [{{'$1', {'+', '$2', 1}}}]}]");
                let (replaced, _) = run(sliced.traverse(spec.clone(), Action::Replace), rows);
                assert_eq!(count(replaced), table.select_replace(&spec).unwrap());
            }
            let (deleted, _) = run(sliced.traverse(spec.clone(), Action::Delete), rows);
            assert_eq!(count(deleted), table.select_delete(&spec).unwrap());
            assert_eq!(sliced.size().unwrap(), table.size().unwrap());
            let all = |table: &Table| {
                let mut all = self::rows(table);
                all.sort();
                all
            };
            assert_eq!(all(&sliced), all(&table), "{kind}, {rows}");
        }
    }
}

#[test]
fn a_search_goes_on_while_the_table_changes_and_ends_with_it() {
    let table = filled(Kind::OrderedSet, 100);
    let all = compile("[{{'$1', '_'}, [], ['$1']}]");
    let action = Action::Select {
        reverse: false,
        limit: None,
    };
    let traversal = table.traverse(all.clone(), action);
    let ControlFlow::Continue(traversal) = traversal.step(at_most(10)).unwrap() else {
        panic!("ten rows of a hundred are not all");
    };
    table.delete_key(&Term::from(50)).unwrap();
    table
        .insert("[{5.5, x}, {60.5, x}]".parse().unwrap())
        .unwrap();
    let (outcome, _) = run(traversal, 10);
    let keys = found(outcome);
    let has = |key: &str| keys.contains(&key.parse().unwrap());
    assert!(!has("50") && !has("5.5") && has("60.5") && keys.is_sorted());

    let traversal = table.traverse(all, action);
    let ControlFlow::Continue(traversal) = traversal.step(at_most(10)).unwrap() else {
        panic!("ten rows of a hundred are not all");
    };
    table.delete().unwrap();
    assert_eq!(
        traversal.step(at_most(10)).unwrap_err().problem,
        Problem::NoTable
    );
}

#[test]
fn a_replacement_that_changes_a_key_replaces_nothing() {
    let table = filled(Kind::OrderedSet, 10);
    let before = rows(&table);
    let spec =
        "[{{'$1', '$2'}, [{'<', '$1', 5}], [{{'$1', new}}]}, {{'$1', '_'}, [], [{{x, '$1'}}]}]";
    let error = table.select_replace(&compile(spec)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "select_replace, argument 2: clause 2 of the match specification may change the key: its body \
         [{{x,'$1'}}] has to be '$_', or a tuple with the same as the head, or {element,1,'$_'}, at \
         position 1"
    );
    assert_eq!(
        table
            .traverse(compile(spec), Action::Replace)
            .step(|| false)
            .unwrap_err(),
        error
    );
    assert_eq!(rows(&table), before);
}

#[test]
fn what_deletes_a_whole_range_says_so() {
    let said = |clauses: &str| compile(clauses).explain(0);
    for whole in [
        "[{{'$1', '_'}, [{'<', '$1', 5}], [true]}]",
        "[{{'$1', '$2'}, [{'=<', 2.5, '$1'}, {'<', '$1', 9}], [true]}]",
        "[{{{a, '$1'}, '_'}, [{'>', '$1', 5}], [true]}]",
        "[{{{a, {<<1>>, '$1', '_'}, '$2'}, '_'}, [{'>', '$1', 5}], [true]}]",
        "[{{'_', '_'}, [], [true]}]",
        "[{{'$1', '_'}, [{'<', '$1', 5}], [true]}, {{'$1', '$2'}, [{'>', '$1', 8}], [true]}]",
    ] {
        assert!(
            said(whole)
                .ends_with("if all rows have 2 elements, select_delete removes them as a range"),
            "{whole}: {}",
            said(whole)
        );
    }
    assert_eq!(
        said("[{'_', [], [true]}]"),
        "visits all keys; select_delete removes them as a range"
    );
    for rows in [
        // The body does not always make `true`.
        "[{{'$1', '_'}, [{'<', '$1', 5}], [false]}]",
        "[{{'$1', '_'}, [{'<', '$1', 5}], [{'<', '$1', 4}]}]",
        // Not every row in the range matches.
        "[{{'$1', '$1'}, [], [true]}]",
        "[{{'$1', a}, [], [true]}]",
        "[{{'$1', '$2'}, [{'<', '$2', 5}], [true]}]",
        "[{{'$1', '_'}, [{'<', '$1', 5}, {is_integer, '$1'}], [true]}]",
        "[{{'$1', '_'}, [{'=:=', '$1', 5}], [true]}]",
        "[{{'$1', '_'}, [{'/=', '$1', 5}], [true]}]",
        "[{{'$1', '_'}, [{'orelse', {'<', '$1', 5}, {'>', '$1', 8}}], [true]}]",
        "[{{'$1', '_'}, [{'<', '$1', 5}], [true]}, {{'$1'}, [], [true]}]",
        // A stored key may have a float where the pattern has an integer, and then does not match.
        "[{{{1, '$1'}, '_'}, [{'>', '$1', 5}], [true]}]",
        "[{{{'_', '$1'}, '_'}, [{'>', '$1', 5}], [true]}]",
        "[{{{a, '$1', b}, '_'}, [{'>', '$1', 5}], [true]}]",
        "[{{{a, '$1', '$1'}, '_'}, [], [true]}]",
        "[{{#{a => '_'}, '_'}, [], [true]}]",
        // A single key.
        "[{{a, '_'}, [], [true]}]",
    ] {
        assert!(!said(rows).contains("removes"), "{rows}: {}", said(rows));
    }
}

/// Fails if the removal of a range removes a row that the specification does not match, or leaves a
/// row that it matches.
#[test]
fn ranges_are_deleted_as_rows_are() {
    const SEED: u64 = 17;
    let random = &mut StdRng::seed_from_u64(SEED);
    println!("seed {SEED}");
    let mut ranges = 0;
    for _ in 0..2000 {
        let size = random.random_range(1..=2);
        let table = Tables::new()
            .create("t", Options::new().kind(Kind::OrderedSet))
            .unwrap();
        for _ in 0..random.random_range(0..60) {
            let key = match random.random_range(0..4) {
                0 => Term::try_from(f64::from(random.random_range(0..40)) / 2.0).unwrap(),
                1 => "{a, 1}".parse().unwrap(),
                2 => Term::tuple([
                    Term::atom("a").unwrap(),
                    Term::from(random.random_range(0..20)),
                ]),
                _ => Term::from(random.random_range(0..20)),
            };
            // Rarely, a row has another size.
            let size = size + usize::from(random.random_ratio(1, 200));
            let mut row = vec![Term::from(1); size];
            row[0] = key;
            table.insert(Term::tuple(row)).unwrap();
        }
        let key = ["'$1'", "{a, '$1'}", "{1, '$1'}", "{'_', '$1'}"][random.random_range(0..4)];
        let rest = if size == 2 { ", '_'" } else { "" };
        let guard = |random: &mut StdRng| {
            let comparison = ["<", ">", ">=", "=<", "==", "=:="][random.random_range(0..6)];
            format!("{{'{comparison}', '$1', {}}}", random.random_range(0..20))
        };
        let guards: Vec<_> = (0..random.random_range(0..3))
            .map(|_| guard(random))
            .collect();
        let spec = compile(&format!(
            "[{{{{{key}{rest}}}, [{}], [true]}}]",
            guards.join(", ")
        ));
        let matches = |row: &Term| match row {
            Term::Tuple(row) => spec.run(row).is_some(),
            other => panic!("{other} is no row"),
        };
        let (gone, kept): (Vec<_>, Vec<_>) = rows(&table).into_iter().partition(matches);
        ranges += usize::from(spec.explain(0).contains("removes") && !gone.is_empty());
        assert_eq!(table.select_delete(&spec).unwrap(), gone.len());
        assert_eq!(rows(&table), kept);
    }
    assert!(ranges > 200, "{ranges} ranges had rows");
}
