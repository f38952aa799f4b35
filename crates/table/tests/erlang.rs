//! Compares terms with a real Erlang: order, identity, text and external format of random pairs.
//! These tests need `escript`; without it they fail and say how to get it.

mod support;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use support::oracle::{Oracle, from_environment};
use tremula_index::key::KeyHead;
use tremula_table::Term;
use tremula_table::term::{Exact, Limits, TermHead};

/// The number of pairs. `TREMULA_TERM_PAIRS` overrides it.
const PAIRS: usize = 100_000;

/// The seed of the random numbers. `TREMULA_SEED` overrides it.
const SEED: u64 = 20;

/// Random pairs, the same for the same seed.
fn pairs(count: usize) -> Vec<(Term, Term)> {
    let seed = from_environment("TREMULA_SEED", SEED);
    println!("TREMULA_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = support::pair();
    let draw = |_| strategy.new_tree(&mut runner).unwrap().current();
    (0..count).map(draw).collect()
}

/// Whether Erlang can read the text of a term; some terms are printed in forms of our own.
fn is_readable(text: &str) -> bool {
    !["#Pid<", "#Port<", "#Ref<", "#Fun<"]
        .iter()
        .any(|form| text.contains(form))
}

/// Whether the term contains a map that Erlang keeps, and prints, without order.
fn has_large_map(term: &Term) -> bool {
    match term {
        Term::Tuple(elements) => elements.iter().any(has_large_map),
        Term::List(list) => {
            let mut elements = list.iter();
            elements.by_ref().any(has_large_map)
                || !list.is_empty() && has_large_map(elements.tail())
        }
        Term::Map(map) => {
            let mut entries = map.entries().iter();
            map.len() > 32 || entries.any(|(key, value)| has_large_map(key) || has_large_map(value))
        }
        _ => false,
    }
}

fn order(answer: &Term) -> Ordering {
    match answer.to_string().as_str() {
        "lt" => Ordering::Less,
        "eq" => Ordering::Equal,
        "gt" => Ordering::Greater,
        other => panic!("{other} is no order"),
    }
}

fn bytes(answer: &Term) -> &[u8] {
    match answer {
        Term::Bitstring(bits) => bits.as_binary().unwrap(),
        other => panic!("{other} is no binary"),
    }
}

#[test]
fn erlang_agrees_about_every_pair() {
    let count = from_environment("TREMULA_TERM_PAIRS", PAIRS as u64) as usize;
    let pairs = pairs(count);
    let questions = pairs.iter().map(|(one, two)| {
        let text = one.to_string();
        let readable = is_readable(&text);
        Term::tuple([
            Term::binary(&one.to_etf().unwrap()),
            Term::binary(&two.to_etf().unwrap()),
            if readable {
                Term::binary(text.as_bytes())
            } else {
                Term::atom("none").unwrap()
            },
        ])
    });
    let questions: Vec<_> = questions.collect();
    let answers = Oracle::start("erlang").ask("terms", &questions);
    let keys = RandomState::new();
    for ((one, two), answer) in pairs.iter().zip(&answers) {
        let Term::Tuple(answer) = answer else {
            panic!("an answer is a tuple");
        };
        let [ordering, identical, map_ordering, printed, read, written] = answer.elements() else {
            panic!("an answer has six parts");
        };
        let said = order(ordering);
        assert_eq!(one.cmp(two), said, "{one} against {two}");
        let is_identical = identical.is_identical(&Term::from(true));
        assert_eq!(one.is_identical(two), is_identical, "{one} =:= {two}");
        assert_eq!(
            one.cmp_exact(two),
            order(map_ordering),
            "{one}, {two} as keys"
        );
        let heads = TermHead::head(one).cmp(&TermHead::head(two));
        assert!(heads.is_eq() || heads == said, "heads of {one}, {two}");
        if said.is_eq() {
            assert_eq!(keys.hash_one(one), keys.hash_one(two), "{one} == {two}");
        }
        if is_identical {
            let hash = |term: &Term| keys.hash_one(Exact(term.clone()));
            assert_eq!(hash(one), hash(two), "{one} =:= {two}");
        }
        assert!(
            read.is_identical(&Term::from(true)),
            "{one} reads as {read}"
        );
        let text = one.to_string();
        // Erlang 25 prints a function's name that is not ASCII in UTF-8, whatever encoding was
        // requested.
        let printed = std::str::from_utf8(bytes(printed)).unwrap();
        let garbled = text.contains("fun ") && !(text.is_ascii() && printed.is_ascii());
        if is_readable(&text) && !garbled {
            let again: Term = printed.parse().unwrap_or_else(|e| panic!("{printed}: {e}"));
            assert!(again.is_identical(one), "{printed} against {one}");
            // It also quotes such names by other rules than atoms.
            if !text.contains("fun ") && !has_large_map(one) {
                assert_eq!(printed, text);
            }
        }
        let Term::List(written) = written else {
            panic!("a list of what was written");
        };
        for bytes in written.iter().map(bytes) {
            let read = Term::from_etf(bytes, &Limits::default())
                .unwrap_or_else(|error| panic!("{one}: {error} in {bytes:?}"));
            assert!(read.is_identical(one), "{bytes:?} is {one}, not {read}");
        }
    }
}
