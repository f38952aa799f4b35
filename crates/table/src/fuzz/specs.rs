//! Match specifications, run on a few rows.

use super::source::{Source, leaf};
use crate::match_spec::{RowSize, every_function};
use crate::term::{Bounds, Tuple};
use crate::{Kind, MatchSpec, Options, Tables, Term};

/// Bounds that a specification reaches now and then.
const BOUNDS: Bounds = Bounds {
    bytes: 1 << 10,
    depth: 8,
};

/// How deep expressions are nested.
const EXPRESSION: usize = 4;

const MOST_ROWS: usize = 5;

/// A match specification and rows, made of any bytes.
///
/// The text of a specification reads as the same specification. A specification that is refused
/// names the wrong part. Another one makes the same of a row however the row is given to it, and
/// keeps to its bounds. A search of a table finds what the specification makes of each row, and the
/// keys that it visits are enough.
///
/// # Panics
///
/// One of these does not hold.
pub fn specs(data: &[u8]) {
    let mut source = Source::new(data);
    let spec = spec(&mut source);
    let text = spec.to_string();
    let again = leaf(&text);
    assert!(again.is_identical(&spec), "{text} reads as {again}");
    let compiled = match MatchSpec::compile(&spec) {
        Ok(compiled) => compiled,
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() <= 2 * text.len() + 400, "{text}: {message}");
            let same = MatchSpec::compile(&again)
                .err()
                .map(|error| error.to_string());
            assert_eq!(same, Some(message), "{text}");
            return;
        }
    };
    let count = source.below(MOST_ROWS + 1);
    let rows: Vec<Tuple> = (0..count).map(|_| row(&mut source)).collect();
    for row in &rows {
        runs_alike(&compiled, row, &text);
        for position in 0..2 {
            visits_enough(&compiled, row, position, &text);
        }
    }
    for kind in [Kind::OrderedSet, Kind::DuplicateBag] {
        search(&compiled, kind, &rows, &text);
    }
}

fn spec(source: &mut Source<'_>) -> Term {
    let clauses = source.some(1, |source| {
        let head = match source.below(8) {
            0 => pattern(source),
            _ => Term::tuple(source.some(1, pattern)),
        };
        let guards = Term::list(source.some(0, expression));
        let body = Term::list(source.some(1, expression));
        Term::tuple([head, guards, body])
    });
    Term::list(clauses)
}

fn variable(source: &mut Source<'_>) -> Term {
    leaf(source.one(&["'$1'", "'_'", "'$2'", "'$3'", "'$0'", "'$_'", "'$$'"]))
}

fn pattern(source: &mut Source<'_>) -> Term {
    source.nested(2, &mut |source, _| {
        (source.below(3) > 0).then(|| variable(source))
    })
}

fn expression(source: &mut Source<'_>) -> Term {
    let functions: Vec<(&str, usize)> = every_function().collect();
    source.nested(EXPRESSION, &mut |source, depth| match source.below(4) {
        0 => None,
        1 => Some(variable(source)),
        _ if depth == 0 => None,
        2 => {
            let made = source.some(0, |source| nested_expression(source, depth - 1, &functions));
            Some(Term::tuple([Term::tuple(made)]))
        }
        _ => Some(call(source, depth - 1, &functions)),
    })
}

fn call(source: &mut Source<'_>, depth: usize, functions: &[(&str, usize)]) -> Term {
    let (name, least) = source.one(functions);
    let more = usize::from(source.below(8) == 0);
    let mut parts = vec![Term::atom(name).unwrap_or_default()];
    parts.extend((0..least + more).map(|_| nested_expression(source, depth, functions)));
    Term::tuple(parts)
}

fn nested_expression(source: &mut Source<'_>, depth: usize, functions: &[(&str, usize)]) -> Term {
    match source.below(3) {
        0 if depth > 0 => call(source, depth - 1, functions),
        1 => variable(source),
        _ => source.nested(depth.min(2), &mut |_, _| None),
    }
}

fn row(source: &mut Source<'_>) -> Tuple {
    Tuple::new(source.some(1, Source::term))
}

fn runs_alike(compiled: &MatchSpec, row: &Tuple, text: &str) {
    let same = |one: &Option<Term>, two: &Option<Term>| match (one, two) {
        (Some(one), Some(two)) => one.is_identical(two),
        (one, two) => one.is_none() && two.is_none(),
    };
    let free = compiled.run(row);
    let mut matcher = compiled.matcher();
    for _ in 0..2 {
        assert!(same(&matcher.run(row), &free), "{text} of {row}");
        assert!(
            same(&matcher.run_fields(row.elements()), &free),
            "{text} of {row}"
        );
        let term = Term::Tuple(row.clone());
        assert!(same(&matcher.run_term(&term), &free), "{text} of {row}");
    }
    let mut bounded = compiled.matcher().bounded(BOUNDS);
    let result = bounded.run(row);
    if bounded.reached().is_none() {
        assert!(same(&result, &free), "{text} of {row}");
    }
}

fn visits_enough(compiled: &MatchSpec, row: &Tuple, position: usize, text: &str) {
    let intervals = compiled.key_intervals(position);
    let Some(key) = row.get(position) else {
        return;
    };
    let is_inside = intervals.iter().any(|interval| interval.contains(key));
    let result = compiled.run(row);
    if result.is_some() {
        let explained = compiled.explain(position);
        assert!(is_inside, "{text} matches {row}, but {explained}");
    }
    if let Some((size, intervals)) = compiled.whole_intervals(position) {
        let fits = match size {
            RowSize::Any => true,
            RowSize::Only(size) => row.len() == size,
        };
        let is_inside = intervals.iter().any(|interval| interval.contains(key));
        let says_true = result.is_some_and(|result| result.is_identical(&Term::from(true)));
        assert_eq!(fits && is_inside, says_true, "{text} of {row}");
    }
}

/// A search of a table of these rows finds what the specification makes of each.
fn search(compiled: &MatchSpec, kind: Kind, rows: &[Tuple], text: &str) {
    let tables = Tables::new();
    let Ok(table) = tables.create("t", Options::new().kind(kind)) else {
        panic!("a name that is free");
    };
    for row in rows {
        assert!(table.insert(Term::Tuple(row.clone())).is_ok(), "{row}");
    }
    let Ok(all) = table.tab2list() else {
        panic!("the table exists");
    };
    let expected: Vec<Term> = all.iter().filter_map(|row| compiled.run(row)).collect();
    let (Ok(found), Ok(count)) = (table.select(compiled), table.select_count(compiled)) else {
        panic!("{text} is a specification");
    };
    let same = found.len() == expected.len()
        && found
            .iter()
            .zip(&expected)
            .all(|(one, two)| one.is_identical(two));
    assert!(same, "{text} finds {found:?} instead of {expected:?}");
    let is_true = |result: &&Term| result.is_identical(&Term::from(true));
    let counted = expected.iter().filter(is_true).count();
    assert_eq!(count, counted, "{text} of {rows:?}");
    let deleted = table.select_delete(compiled).ok();
    assert_eq!(deleted, Some(counted), "{text} of {rows:?}");
    let left = table.tab2list().map(|left| left.len()).ok();
    assert_eq!(left, Some(all.len() - counted), "{text} of {rows:?}");
}
