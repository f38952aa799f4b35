//! Rust values and terms: each value comes back from its term, `==` between a term and a value
//! means
//! `==` of the terms, and the parts of terms that have types of their own behave as the terms do.

mod support;

use num_bigint::BigInt;
use proptest::collection::{btree_map, hash_map, vec};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use support::{pair, term};
use tremula_table::Term;
use tremula_table::term::{Atom, Exact, FromTerm, IntoTerm, List, Tuple, UnexpectedTerm};

/// Checks that a value comes back from its term, and that the term is the one that `From` gives.
fn comes_back<T>(value: &T)
where
    T: IntoTerm + for<'a> FromTerm<'a> + Clone + PartialEq + Debug,
{
    let term = value.clone().into_term().unwrap();
    assert_eq!(&T::from_term(&term).unwrap(), value, "{term}");
}

/// As [`comes_back`], for values without floats.
fn comes_back_infallibly<T>(value: &T)
where
    T: IntoTerm + Into<Term> + for<'a> FromTerm<'a> + Clone + PartialEq + Debug,
{
    comes_back(value);
    let (one, two) = (value.clone().into(), value.clone().into_term().unwrap());
    assert_eq!(Exact(one), Exact(two), "two ways to one term");
}

/// Checks that an integer type takes exactly the integers that fit.
macro_rules! takes_what_fits {
    ($value:expr, $($type:ty),*) => {
        let value: &BigInt = $value;
        let term = Term::from(value.clone());
        $(
            let taken = <$type>::try_from(&term);
            assert_eq!(taken.clone().ok(), <$type>::try_from(value).ok(), "{term}");
            match taken {
                Ok(taken) => {
                    comes_back_infallibly(&taken);
                    assert!(term == taken);
                }
                Err(error) => {
                    let fits = concat!(" is not an integer that fits in ", stringify!($type));
                    assert_eq!(error.to_string(), format!("{term}{fits}"));
                }
            }
        )*
    };
}

/// Checks that a term equals a value if and only if it equals the term of the value.
fn equal_alike<T: IntoTerm + Clone + Debug>(term: &Term, value: &T)
where
    Term: PartialEq<T>,
{
    // A float that no term can hold equals no term.
    let made = value.clone().into_term();
    let expected = made.as_ref().is_ok_and(|made| term == made);
    assert_eq!(term == value, expected, "{term:?} == {value:?}");
    if let Ok(made) = made {
        assert!(made == *value, "{made:?} == {value:?}");
    }
}

/// Text with characters of all lengths.
const TEXT: &str = "\\PC{0,6}";

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn an_integer_is_taken_if_it_fits(bits in 0..140_u32, near in -2..3_i64, negative in any::<bool>()) {
        let value = (BigInt::from(1) << bits) + near;
        let value = if negative { -value } else { value };
        takes_what_fits!(
            &value, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize
        );
        comes_back_infallibly(&value);
    }

    #[test]
    fn values_come_back(
        number in any::<i64>(),
        text in TEXT,
        bytes in vec(any::<u8>(), 0..9),
        texts in vec(TEXT, 0..4),
        map in btree_map(any::<i8>(), TEXT, 0..4),
        hashed in hash_map(TEXT, any::<u128>(), 0..4),
        maybe in proptest::option::of(any::<u64>()),
        truth in any::<bool>(),
    ) {
        comes_back_infallibly(&text);
        comes_back_infallibly(&bytes);
        comes_back_infallibly(&texts);
        comes_back_infallibly(&map);
        comes_back_infallibly(&hashed);
        comes_back_infallibly(&maybe);
        comes_back_infallibly(&truth);
        comes_back_infallibly(&[number, 1, 2]);
        comes_back_infallibly(&[7_u8, number as u8]);
        comes_back_infallibly(&(number, text.clone(), (bytes.clone(), ()), vec![maybe], truth));
        comes_back_infallibly(&vec![vec![(text.clone(), number)], vec![]]);
        // Borrowed, the bytes and the texts are those of the term.
        let row = Term::from((text.as_str(), bytes.as_slice(), &texts));
        let (lent, raw, inner): (&str, &[u8], Vec<&str>) = (&row).try_into().unwrap();
        assert_eq!((lent, raw), (text.as_str(), bytes.as_slice()));
        assert_eq!(inner, texts);
    }

    #[test]
    fn finite_floats_come_back(bits in any::<u64>(), narrow in any::<u32>()) {
        let (wide, narrow) = (f64::from_bits(bits), f32::from_bits(narrow));
        assert_eq!(wide.into_term().is_ok(), wide.is_finite());
        if wide.is_finite() && narrow.is_finite() {
            comes_back(&(wide, vec![narrow], [Some(wide)]));
        }
        equal_alike(&wide.into_term().unwrap_or_default(), &wide);
    }

    #[test]
    fn every_term_is_taken_as_it_is(term in term()) {
        assert_eq!(Exact(Term::from_term(&term).unwrap()), Exact(term.clone()));
        let list = Term::from(vec![term.clone(), term.clone()]);
        let back: Vec<Term> = (&list).try_into().unwrap();
        assert_eq!(back, [term.clone(), term.clone()]);
        let row = Tuple::from((1, term.clone()));
        let (one, back): (i8, &Term) = (&row).try_into().unwrap();
        assert_eq!((one, Exact(back.clone())), (1, Exact(term.clone())));
        assert!(row == (1, &term));
        let whole = Term::from(row);
        assert!(whole == (1.0, term.clone()));
    }

    #[test]
    fn as_f64_is_the_float_that_equals_the_number(term in term()) {
        match term.as_f64() {
            Some(float) => assert!(term.is_number() && term == float),
            None => assert!(match i64::try_from(&term) {
                Ok(whole) => term != whole as f64,
                Err(_) => !matches!(term, Term::Float(_)),
            }),
        }
    }

    #[test]
    fn a_term_equals_a_value_if_it_equals_the_term_of_the_value(
        (one, two) in pair(),
        number in -3..4_i64,
        quarter in -12..12_i32,
        bytes in vec(0..3_u8, 0..3),
    ) {
        let float = f64::from(quarter) / 4.0;
        let terms = [
            one.clone(),
            Term::from(number),
            Term::try_from(number as f64).unwrap(),
            Term::try_from(float).unwrap(),
            Term::binary(&bytes),
            Term::list(bytes.iter().copied().map(Term::from)),
            Term::list_with_tail(bytes.iter().copied().map(Term::from), Term::from(number)),
            Term::from((number, two.clone())),
            Atom::UNDEFINED.into(),
        ];
        let wide: Vec<_> = bytes.iter().map(|&byte| i32::from(byte)).collect();
        let text = String::from_utf8(bytes.clone()).unwrap();
        for term in &terms {
            equal_alike(term, &number);
            equal_alike(term, &(number as u128));
            equal_alike(term, &float);
            assert_eq!(term.partial_cmp(&number), term.partial_cmp(&Term::from(number)));
            assert_eq!(term.partial_cmp(&float), Some(term.cmp(&Term::try_from(float).unwrap())));
            assert_eq!(term.partial_cmp(&f64::NAN), None);
            equal_alike(term, &f64::INFINITY);
            equal_alike(term, &bytes);
            equal_alike(term, &wide);
            equal_alike(term, &[number; 2]);
            equal_alike(term, &text);
            equal_alike(term, &text.as_str());
            equal_alike(term, &bytes.as_slice());
            equal_alike(term, &wide.as_slice());
            equal_alike(term, &Some(number));
            equal_alike(term, &None::<bool>);
            equal_alike(term, &(number, two.clone()));
            equal_alike(term, &(float,));
            equal_alike(term, &());
            equal_alike(term, &Atom::UNDEFINED);
            equal_alike(term, &two);
            equal_alike(term, &List::new([Term::from(number)]));
        }
    }

    #[test]
    fn the_parts_of_terms_behave_as_the_terms_do((one, two) in pair()) {
        /// What two values show of themselves.
        fn traits<T: Ord + std::hash::Hash + Debug + ToString>(
            one: &T,
            two: &T,
            keys: &RandomState,
        ) -> (Ordering, bool, [u64; 2], [String; 2]) {
            assert_eq!(format!("{one:?}"), one.to_string());
            let hashes = [keys.hash_one(one), keys.hash_one(two)];
            (one.cmp(two), one == two, hashes, [one.to_string(), two.to_string()])
        }
        let keys = RandomState::new();
        let of_terms = traits(&one, &two, &keys);
        let of_parts = match (&one, &two) {
            (Term::Tuple(one), Term::Tuple(two)) => traits(one, two, &keys),
            (Term::List(one), Term::List(two)) => traits(one, two, &keys),
            (Term::Map(one), Term::Map(two)) => traits(one, two, &keys),
            (Term::Bitstring(one), Term::Bitstring(two)) => traits(one, two, &keys),
            _ => return Ok(()),
        };
        assert_eq!(of_parts, of_terms);
    }
}

#[test]
fn the_empty_list_comes_before_all_others() {
    let list = |text: &str| List::try_from(text.parse::<Term>().unwrap()).unwrap();
    assert!(list("[]") < list("[-1]"));
    assert!(list("[a]") > list("[]"));
    assert_eq!(list("[]"), List::EMPTY);
    assert_eq!(list("[1]"), list("[1.0]"));
}

#[test]
fn an_error_says_where_the_term_is_and_what_was_expected() {
    fn error<T: for<'a> FromTerm<'a> + Debug>(text: &str) -> String {
        let error: UnexpectedTerm = T::from_term(&text.parse().unwrap()).unwrap_err();
        error.to_string()
    }
    assert_eq!(
        error::<i64>("1.0"),
        "1.0 is not an integer that fits in i64"
    );
    assert_eq!(error::<u8>("-1"), "-1 is not an integer that fits in u8");
    assert_eq!(
        error::<f64>("9007199254740993"),
        "9007199254740993 is not a float of 64 bits"
    );
    assert_eq!(error::<f32>("0.1"), "0.1 is not a float of 32 bits");
    assert_eq!(error::<bool>("ok"), "ok is not true or false");
    assert_eq!(
        error::<String>("<<128>>"),
        "<<128>> is not a binary in UTF-8"
    );
    assert_eq!(
        error::<String>("\"list\""),
        "\"list\" is not a binary in UTF-8"
    );
    assert_eq!(error::<Vec<i64>>("[1|2]"), "[1|2] is not a proper list");
    assert_eq!(
        error::<Vec<u8>>("[1,256]"),
        "element 2: 256 is not an integer that fits in u8"
    );
    assert_eq!(
        error::<[u8; 2]>("[1]"),
        "[1] is not a list as long as the array"
    );
    assert_eq!(
        error::<(i64, i64)>("{1}"),
        "{1} is not a tuple of 2 elements"
    );
    assert_eq!(error::<(i64,)>("7"), "7 is not a tuple of 1 element");
    assert_eq!(error::<()>("{1}"), "{1} is not an empty tuple");
    assert_eq!(
        error::<Option<i64>>("none"),
        "none is not an integer that fits in i64"
    );
    assert_eq!(error::<Atom>("1"), "1 is not an atom");
    assert_eq!(
        error::<BTreeMap<i64, bool>>("#{1 => a}"),
        "a is not true or false"
    );
    assert_eq!(error::<HashMap<i64, bool>>("[]"), "[] is not a map");
    assert_eq!(
        error::<Vec<(i64, Vec<String>)>>("[{1, []}, {2, [<<>>, <<>>, c]}]"),
        "element 2, element 2, element 3: c is not a binary in UTF-8"
    );
}

#[test]
fn bytes_are_binaries_and_are_also_made_of_lists() {
    assert_eq!(Term::from(b"ab").to_string(), "<<\"ab\">>");
    assert_eq!(Term::from(Vec::<u8>::new()).to_string(), "<<>>");
    assert_eq!(Term::from(Vec::<u16>::new()).to_string(), "[]");
    assert_eq!(Term::from([1_u16, 2]).to_string(), "[1,2]");
    assert_eq!(Term::from([[1_u8], [2]]).to_string(), "[<<1>>,<<2>>]");
    assert_eq!(Vec::<u8>::try_from(Term::string("ab")).unwrap(), b"ab");
    assert!(<&[u8]>::try_from(&Term::string("ab")).is_err());
    assert!(Vec::<u16>::try_from(Term::binary(b"ab")).is_err());
}
