//! Properties of all terms, and of bytes that are not terms.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use support::{pair, term};
use tremula_index::key::KeyHead;
use tremula_table::Term;
use tremula_table::term::{Exact, Limits, TermHead};

/// Limits that random bytes exceed now and then.
fn tight() -> Limits {
    Limits::default()
        .nesting(6)
        .integer_bits(512)
        .expanded_bytes(1 << 12)
        .new_atoms(false)
}

/// Whether the text can be read back: that of functions with an environment cannot.
fn is_readable(text: &str) -> bool {
    !text.contains("#Fun<")
}

/// Checks that heads never contradict the order, and that equal terms have one head and one hash.
fn forms_agree(one: &Term, two: &Term, keys: &RandomState) {
    let order = one.cmp(two);
    assert_eq!(order, two.cmp(one).reverse(), "{one}, {two}");
    assert_eq!(
        one.cmp_exact(two),
        two.cmp_exact(one).reverse(),
        "{one}, {two}"
    );
    let heads = TermHead::head(one).cmp(&TermHead::head(two));
    assert!(
        heads.is_eq() || heads == order,
        "{one}, {two}: heads are {heads:?}"
    );
    if order.is_eq() {
        assert_eq!(keys.hash_one(one), keys.hash_one(two), "{one} == {two}");
    }
    let (one, two) = (Exact(one.clone()), Exact(two.clone()));
    if one == two {
        assert!(order.is_eq(), "{one} =:= {two}, but not ==");
        assert_eq!(keys.hash_one(&one), keys.hash_one(&two), "{one} =:= {two}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn order_heads_and_hashes_agree((one, two) in pair()) {
        let keys = RandomState::new();
        forms_agree(&one, &two, &keys);
        forms_agree(&one, &one.clone(), &keys);
    }

    #[test]
    fn both_orders_are_transitive((one, two) in pair(), three in term()) {
        let mut terms = [one, two, three];
        terms.sort();
        prop_assert!(terms[0] <= terms[2], "{:?}", terms);
        terms.sort_by(Term::cmp_exact);
        prop_assert_ne!(terms[0].cmp_exact(&terms[2]), Ordering::Greater, "{:?}", terms);
    }

    #[test]
    fn text_reads_back_as_the_same_term(term in term()) {
        let text = term.to_string();
        prop_assume!(is_readable(&text));
        let read = text.parse::<Term>().map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        prop_assert!(read.is_identical(&term), "{} reads as {}", text, read);
    }

    #[test]
    fn external_format_reads_back_as_the_same_term(term in term(), level in 0..10_u32) {
        for bytes in [term.to_etf().unwrap(), term.to_etf_compressed(level).unwrap()] {
            let read = Term::from_etf(&bytes, &Limits::default()).unwrap();
            prop_assert!(read.is_identical(&term), "{} became {}", term, read);
            let longer = [&bytes[..], b"more"].concat();
            let (read, used) = Term::from_etf_prefix(&longer, &Limits::default()).unwrap();
            prop_assert!(read.is_identical(&term) && used == bytes.len());
        }
    }

    #[test]
    fn a_term_cut_short_is_an_error_within_it(term in term(), at in any::<prop::sample::Index>()) {
        let bytes = term.to_etf().unwrap();
        let cut = &bytes[..at.index(bytes.len())];
        let error = Term::from_etf(cut, &Limits::default()).unwrap_err();
        prop_assert!(error.offset <= cut.len());
    }

    #[test]
    fn no_bytes_do_harm(bytes in vec(any::<u8>(), 0..200)) {
        let external: Vec<u8> = [131].into_iter().chain(bytes.iter().copied()).collect();
        for bytes in [&bytes, &external] {
            if let Err(error) = Term::from_etf(bytes, &tight()) {
                prop_assert!(error.in_expanded || error.offset <= bytes.len());
            }
            if let Err(error) = Term::parse_bytes(bytes, &tight()) {
                prop_assert!(error.offset <= bytes.len());
            }
        }
    }

    #[test]
    fn no_damaged_term_does_harm(
        term in term(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = term.to_etf().unwrap();
        for (at, byte) in &damage {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        for limits in [tight(), Limits::default().new_atoms(false)] {
            match Term::from_etf(&bytes, &limits) {
                // A term that was read can be used like any other.
                Ok(read) => {
                    let again = Term::from_etf(&read.to_etf().unwrap(), &limits).unwrap();
                    prop_assert!(again.is_identical(&read));
                    prop_assert!(read.heap_bytes() <= 100 * bytes.len());
                }
                Err(error) => prop_assert!(error.in_expanded || error.offset <= bytes.len()),
            }
        }
    }

    #[test]
    fn no_damaged_text_does_harm(
        term in term(),
        damage in vec((any::<prop::sample::Index>(), "[\\PC\"'$#<>{}\\[\\]|,.%\\\\/: 0-9a-z]"), 1..4),
    ) {
        let mut text: Vec<char> = term.to_string().chars().collect();
        for (at, character) in &damage {
            let at = at.index(text.len());
            text[at] = character.chars().next().unwrap_or(' ');
        }
        let text: String = text.into_iter().collect();
        match Term::parse(&text, &Limits::default().new_atoms(false)) {
            Ok(read) => {
                let again = read.to_string().parse::<Term>();
                prop_assert!(again.is_ok_and(|again| again.is_identical(&read)), "{}", text);
            }
            Err(error) => prop_assert!(error.offset <= text.len()),
        }
    }

    #[test]
    fn heads_tell_small_keys_from_each_other(one in -1_i64 << 54..1 << 54, two in -1_i64 << 54..1 << 54) {
        for (one, two) in [
            (Term::from(one), Term::from(two)),
            (pair_of(one >> 35, one), pair_of(one >> 35, two >> 35)),
        ] {
            let heads = TermHead::head(&one).cmp(&TermHead::head(&two));
            prop_assert_eq!(heads, one.cmp(&two), "{}, {}", one, two);
        }
    }
}

/// A tuple of two numbers of 20 bits.
fn pair_of(one: i64, two: i64) -> Term {
    Term::tuple([Term::from(one % (1 << 20)), Term::from(two % (1 << 20))])
}
