//! The keys that a match specification can match: no row that it matches has a key outside its
//! intervals, and bounds between keys compare as the keys do.

mod support;

use proptest::prelude::*;
use std::cmp::Ordering;
use support::specs::Specs;
use support::{pair, term};
use tremula_index::key::KeyHead;
use tremula_table::match_spec::{KeyBound, KeyInterval};
use tremula_table::term::{TermHead, Tuple};
use tremula_table::{MatchSpec, Term};

/// The number of specifications that are run against rows.
const SPECS: usize = 60_000;

fn fields(row: &Term) -> &Tuple {
    match row {
        Term::Tuple(row) => row,
        other => panic!("{other} is no row"),
    }
}

#[test]
fn every_row_that_matches_is_in_the_intervals() {
    let mut specs = Specs::new(7);
    let (mut within, mut outside, mut points) = (0, 0, 0);
    for index in 0..SPECS {
        let (spec, rows) = specs.keyed_spec_and_rows(1 + index * 4 / SPECS, 6);
        // Some use a variable that was cut off.
        let Ok(compiled) = MatchSpec::compile(&spec) else {
            continue;
        };
        for position in 0..2 {
            let intervals = compiled.key_intervals(position);
            let exact = compiled.exact_keys(position);
            are_apart(&intervals);
            for term in &rows {
                let row = fields(term);
                let Some(key) = row.get(position) else {
                    continue;
                };
                let inside = intervals.iter().any(|interval| interval.contains(key));
                let listed = exact
                    .as_ref()
                    .is_none_or(|keys| keys.iter().any(|one| one.is_identical(key)));
                if compiled.run(row).is_some() {
                    assert!(
                        inside,
                        "{spec} matches {term}, but {}",
                        compiled.explain(position)
                    );
                    assert!(listed, "{spec} matches {term}, but not by {exact:?}");
                }
                if intervals != [KeyInterval::ALL] {
                    *(if inside { &mut within } else { &mut outside }) += 1;
                }
            }
            points += intervals.iter().filter(|one| one.key().is_some()).count();
        }
    }
    println!("{within} keys were within intervals, {outside} outside; {points} were points");
    // Otherwise the intervals were hardly tested.
    assert!(within > SPECS / 4 && outside > SPECS / 4 && points > SPECS / 10);
}

/// Checks that intervals ascend, that none is empty, and that two of them do not touch.
fn are_apart(intervals: &[KeyInterval]) {
    for interval in intervals {
        if let (Some(low), Some(high)) = (&interval.low, &interval.high) {
            assert!(low < high, "{interval} is empty");
        }
    }
    for pair in intervals.windows(2) {
        let (Some(high), Some(low)) = (&pair[0].high, &pair[1].low) else {
            panic!("{} and {} are not apart", pair[0], pair[1]);
        };
        assert!(high < low, "{} and {} are not apart", pair[0], pair[1]);
    }
}

/// The bounds on both sides of the keys that begin as this key pattern does.
fn bounds(pattern: &Term) -> Vec<KeyBound> {
    let spec = Term::tuple([
        Term::tuple([pattern.clone()]),
        Term::NIL,
        "[x]".parse().unwrap(),
    ]);
    let compiled = MatchSpec::compile(&Term::list([spec])).unwrap();
    let intervals = compiled.key_intervals(0).into_iter();
    intervals
        .flat_map(|one| [one.low, one.high])
        .flatten()
        .collect()
}

/// A pattern of the keys that begin as this one does; the choices decide how much of it is left.
fn opened(key: &Term, choices: &mut impl Iterator<Item = u8>) -> Term {
    let any: Term = "'_'".parse().unwrap();
    let Some(choice) = choices.next() else {
        return any;
    };
    match key {
        Term::Tuple(tuple) if !tuple.is_empty() => {
            let place = usize::from(choice) % tuple.len();
            let mut parts = tuple.to_vec();
            parts[place] = opened(&parts[place], choices);
            parts[place + 1..].fill(any);
            Term::tuple(parts)
        }
        Term::List(list) if !list.is_empty() => {
            let elements: Vec<_> = list.iter().cloned().collect();
            let place = usize::from(choice) % elements.len();
            Term::list_with_tail(elements[..=place].to_vec(), any)
        }
        _ => any,
    }
}

/// Whether a term is a pattern that matches only itself: without variables, `'_'` and maps.
fn is_plain(term: &Term) -> bool {
    let text = term.to_string();
    !text.contains("'_'") && !text.contains("#{") && !text.contains("'$")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, max_global_rejects: 40_000, ..ProptestConfig::default() })]

    #[test]
    fn bounds_are_ordered_as_keys_are(
        (one, two) in pair(),
        three in term(),
        choices in proptest::collection::vec(any::<u8>(), 0..4),
        more in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let keys = [one, two, three];
        let mut all: Vec<KeyBound> = Vec::new();
        for key in &keys {
            all.extend([KeyBound::before(key.clone()), KeyBound::behind(key.clone())]);
            if is_plain(key) {
                all.extend(bounds(&opened(key, &mut choices.iter().copied())));
                all.extend(bounds(&opened(key, &mut more.iter().copied())));
            }
        }
        for bound in &all {
            for key in &keys {
                let order = bound.cmp_key(key);
                prop_assert!(order.is_ne());
                let heads = bound.head().cmp(&TermHead::head(key));
                prop_assert!(heads.is_eq() || heads == order, "{} against {}", bound, key);
                // Two keys on different sides of a bound compare as the bound says.
                for other in &keys {
                    if order == Ordering::Less && bound.cmp_key(other) == Ordering::Greater {
                        prop_assert!(other < key, "{} is between {}, {}", bound, other, key);
                    }
                }
            }
            for other in &all {
                let order = bound.cmp(other);
                prop_assert_eq!(order, other.cmp(bound).reverse(), "{}, {}", bound, other);
                let heads = bound.head().cmp(&other.head());
                prop_assert!(heads.is_eq() || order.is_eq() || heads == order, "{}, {}", bound, other);
                // Two bounds with a key between them compare as the key says.
                for key in &keys {
                    if bound.cmp_key(key) == Ordering::Less && other.cmp_key(key) == Ordering::Greater {
                        prop_assert_eq!(order, Ordering::Less, "{} {} {}", bound, key, other);
                    }
                }
            }
        }
        all.sort();
        for three in all.windows(3) {
            prop_assert!(three[0] <= three[2], "{:?}", three);
        }
    }

    #[test]
    fn a_key_is_within_the_bounds_of_its_beginning(
        key in term(),
        choices in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        prop_assume!(is_plain(&key));
        let pattern = opened(&key, &mut choices.iter().copied());
        match bounds(&pattern).as_slice() {
            [] => {}
            [low, high] => {
                prop_assert_eq!(low.cmp_key(&key), Ordering::Less, "{} {}", key, pattern);
                prop_assert_eq!(high.cmp_key(&key), Ordering::Greater, "{} {}", key, pattern);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
