//! Byte forms against the order of terms.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;
use support::{pair, term};
use tremula_table::Term;
use tremula_table::term::Limits;

/// Whether a form is read back, and compares as its term does.
fn comes_back(one: &Term) {
    let form = one.to_byte_form();
    let read = Term::from_byte_form(&form, &Limits::NONE).expect("a form");
    assert_eq!(&read, one, "{form:02x?}");
    assert_eq!(read.to_byte_form(), form, "{one}");
    assert_eq!(one.cmp_byte_form(&form), Ordering::Equal);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn forms_compare_as_terms_do((one, two) in pair()) {
        let (form, other) = (one.to_byte_form(), two.to_byte_form());
        prop_assert_eq!(form.cmp(&other), one.cmp(&two), "{} {}", one, two);
        prop_assert_eq!(one.cmp_byte_form(&other), one.cmp(&two));
        let is_prefix = form.len() < other.len() && other.starts_with(&form);
        prop_assert!(!is_prefix, "{} begins {}", one, two);
        // As keys of maps they compare with the types of their numbers.
        let key = |term: &Term| Term::map(vec![(term.clone(), Term::NIL)]);
        let (form, other) = (key(&one).to_byte_form(), key(&two).to_byte_form());
        prop_assert_eq!(form.cmp(&other), one.cmp_exact(&two), "keys {} {}", one, two);
    }

    #[test]
    fn forms_are_read_back(one in term()) {
        comes_back(&one);
        comes_back(&Term::map(vec![(one.clone(), Term::tuple([one]))]));
    }

    #[test]
    fn beginnings_have_the_order_and_can_be_looked_at((one, two) in pair(), most in 0..40_usize) {
        let (begin, other) = (one.to_byte_form_within(most), two.to_byte_form_within(most));
        prop_assert_eq!(&begin[..], &one.to_byte_form()[..begin.len()]);
        let order = begin.cmp(&other);
        prop_assert!(order.is_eq() || order == one.cmp(&two), "{} {} {}", one, two, most);
        prop_assert!(Term::glimpse_byte_form(&begin).is_ok(), "{} {}", one, most);
    }

    #[test]
    fn other_bytes_are_refused_or_are_the_form_of_what_is_read(
        one in term(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = one.to_byte_form();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let limits = Limits::default().new_atoms(false);
        if let Ok(read) = Term::from_byte_form(&bytes, &limits) {
            prop_assert_eq!(&read.to_byte_form(), &bytes, "{}", read);
        }
        drop(Term::glimpse_byte_form(&bytes));
    }
}

#[test]
fn deep_terms_need_no_deep_stack() {
    let mut deep = Term::NIL;
    for round in 0..100_000 {
        deep = match round % 3 {
            0 => Term::tuple([deep, Term::from(1)]),
            1 => Term::list_with_tail([deep], Term::from(2)),
            _ => Term::map(vec![(Term::from(round), deep)]),
        };
    }
    let form = deep.to_byte_form();
    assert!(Term::from_byte_form(&form, &Limits::default()).is_err());
    assert!(Term::from_byte_form(&form, &Limits::NONE).expect("a form") == deep);
    assert!(Term::glimpse_byte_form(&form[..1000]).is_ok());
}
