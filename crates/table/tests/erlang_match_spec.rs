//! Compares match specifications with a real Erlang: what compiles, and the results on random rows.
//! These tests need `escript`; without it they fail and say how to get it.

mod support;

use support::oracle::{Oracle, from_environment};
use support::specs::Specs;
use tremula_table::match_spec::Environment;
use tremula_table::term::Atom;
use tremula_table::{MatchSpec, Term};

/// The number of pairs of a specification and a row. `TREMULA_SPEC_PAIRS` overrides it.
const PAIRS: u64 = 100_000;

/// Rows per specification.
const ROWS: usize = 4;

/// The depth of the deepest specifications.
const DEEPEST: usize = 5;

/// The seed of the random numbers. `TREMULA_SEED` overrides it.
const SEED: u64 = 4;

/// Random specifications of growing depth, each with some rows.
fn specs_and_rows() -> Vec<(Term, Vec<Term>)> {
    let seed = from_environment("TREMULA_SEED", SEED);
    println!("TREMULA_SEED={seed}");
    let count = from_environment("TREMULA_SPEC_PAIRS", PAIRS) as usize / ROWS;
    let mut specs = Specs::new(seed);
    let one = |index| specs.spec_and_rows(1 + index * DEEPEST / count, ROWS);
    (0..count).map(one).collect()
}

fn question((spec, rows): &(Term, Vec<Term>)) -> Term {
    Term::tuple([spec.clone(), Term::list(rows.clone())])
}

/// Whether two terms are the same, down to the sign of zero.
fn is_same(one: &Term, two: &Term) -> bool {
    let text = |term: &Term| term.to_string();
    one.is_identical(two) && text(one) == text(two)
}

fn environment(oracle: &mut Oracle) -> Environment {
    let Some(Term::Pid(myself)) = oracle.ask("self", &[Term::NIL]).pop() else {
        panic!("it is a process");
    };
    Environment::default().myself(myself).node(Atom::NO_NODE)
}

#[test]
fn erlang_agrees_about_every_specification_and_row() {
    let mut oracle = Oracle::start("erlang_match_spec");
    let environment = environment(&mut oracle);
    let cases = specs_and_rows();
    let questions: Vec<_> = cases.iter().map(question).collect();
    let answers = oracle.ask("match_specs", &questions);
    // `others` counts the terms that match and are not rows.
    let (mut refused, mut matched, mut failed, mut others) = (0, 0, 0, 0);
    for ((spec, rows), answer) in cases.iter().zip(answers) {
        let compiled = MatchSpec::compile_in(spec, &environment);
        let Term::List(results) = answer else {
            refused += 1;
            let said = compiled.map(drop).map_err(|error| error.to_string());
            assert!(said.is_err(), "Erlang refuses {spec}");
            continue;
        };
        let compiled = compiled.unwrap_or_else(|error| panic!("{spec}: {error}"));
        let mut matcher = compiled.matcher();
        for (row, result) in rows.iter().zip(&results) {
            let found = Term::list(matcher.run_term(row).into_iter().collect::<Vec<_>>());
            others += usize::from(!matches!(row, Term::Tuple(_)) && !found.is_nil());
            assert!(
                is_same(&found, result),
                "{spec} of {row} is {found}, in Erlang {result}"
            );
            if result.is_nil() {
                failed += 1;
            } else {
                matched += 1;
            }
        }
    }
    println!("{refused} specifications were refused, {matched} rows matched, {failed} failed");
    // Otherwise the generator would miss the interesting cases.
    let (cases, pairs) = (cases.len(), cases.len() * ROWS);
    assert!(refused > cases / 20 && refused < cases / 2);
    assert!(matched > pairs / 10 && failed > pairs / 10);
    assert!(others > pairs / 200, "{others} terms that are no rows");
}
