//! Values with serde's traits and the terms that they become: each value comes back, and what is
//! not such a value is an error that says which part is wrong.
#![cfg(feature = "serde")]

mod support;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use support::term;
use tremula_table::serde::{DEEPEST, from_row, from_term, to_row, to_term};
use tremula_table::term::{Atom, Exact, Tuple};
use tremula_table::{Kind, Options, Tables, Term};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Meters(f64);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Marker;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pair(i8, String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    Empty,
    Circle(f64),
    Segment(i64, u64),
    Named { name: String, sides: Option<u8> },
    Nested(Box<Shape>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u64,
    name: String,
    wide: i128,
    letter: char,
    truth: bool,
    narrow: f32,
    length: Meters,
    marker: Marker,
    unit: (),
    pair: Pair,
    array: [u16; 3],
    bytes: Vec<u8>,
    shapes: Vec<Shape>,
    names: BTreeMap<String, u128>,
    maybe: Option<i64>,
    term: Term,
    atom: Atom,
    rest: Option<Tuple>,
}

/// Checks that a value comes back from its term.
fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let term = to_term(value).unwrap();
    let back: T = from_term(&term).unwrap_or_else(|error| panic!("{term}: {error}"));
    assert_eq!(&back, value, "{term}");
}

fn finite() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("a float that a term can hold", |float| float.is_finite())
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Empty),
        finite().prop_map(Shape::Circle),
        any::<(i64, u64)>().prop_map(|(from, to)| Shape::Segment(from, to)),
        ("\\PC{0,4}", option::of(any::<u8>()))
            .prop_map(|(name, sides)| Shape::Named { name, sides }),
    ];
    leaf.prop_recursive(3, 6, 1, |inner| {
        inner.prop_map(|shape| Shape::Nested(Box::new(shape)))
    })
}

fn row() -> impl Strategy<Value = Row> {
    let numbers = (
        any::<u64>(),
        any::<i128>(),
        any::<bool>(),
        -1e6..1e6_f32,
        finite(),
    );
    let texts = ("\\PC{0,6}", any::<char>(), vec(any::<u8>(), 0..5));
    let many = (
        vec(shape(), 0..3),
        btree_map("\\PC{0,3}", any::<u128>(), 0..3),
        any::<[u16; 3]>(),
    );
    let terms = (
        term(),
        support::atom(),
        option::of(any::<i64>()),
        any::<bool>(),
    );
    (numbers, texts, many, terms).prop_map(
        |((id, wide, truth, narrow, length), texts, (shapes, names, array), terms)| {
            let (name, letter, bytes) = texts;
            let (term, atom, maybe, rest) = terms;
            Row {
                id,
                pair: Pair(id as i8, name.clone()),
                name,
                wide,
                letter,
                truth,
                narrow,
                length: Meters(length),
                marker: Marker,
                unit: (),
                array,
                bytes,
                shapes,
                names,
                maybe,
                rest: rest.then(|| Tuple::from((&term, id))),
                term,
                atom,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_struct_comes_back_from_its_row(row in row()) {
        comes_back(&row);
        let made = to_row(&row).unwrap();
        prop_assert_eq!(made.len(), 18, "a field, an element");
        prop_assert_eq!(from_row::<Row>(&made).unwrap(), row.clone());
        // The term has come through unchanged.
        let back: Row = from_row(&made).unwrap();
        prop_assert_eq!(Exact(back.term), Exact(made[15].clone()));
        prop_assert_eq!(Exact(row.term), Exact(made[15].clone()));
    }

    #[test]
    fn a_term_comes_back_from_other_formats(term in term()) {
        let text = term.to_string();
        prop_assume!(!text.contains("#Fun<"));
        let json = serde_json::to_string(&(&term, 1)).unwrap();
        prop_assert_eq!(&json, &serde_json::to_string(&(&text, 1)).unwrap());
        let (back, _): (Term, u8) = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(Exact(back), Exact(term));
    }

    #[test]
    fn what_a_term_says_of_itself_is_enough_for_json(row in row()) {
        // `deserialize_any`, where the term alone decides. JSON has no integers of 128 bits here,
        // and no terms.
        let row = Row { wide: row.id.into(), names: BTreeMap::new(), term: 1.into(), rest: None, ..row };
        let row = Row { bytes: b"text".to_vec(), ..row };
        let term = to_term(&row).unwrap();
        let json: serde_json::Value = from_term(&term).unwrap();
        prop_assert_eq!(&json[0], row.id);
        prop_assert_eq!(&json[1], row.name.as_str());
        prop_assert_eq!(&json[4], row.truth);
        prop_assert_eq!(json[6].as_f64(), Some(row.length.0));
        prop_assert_eq!(json[12].as_array().map(Vec::len), Some(row.shapes.len()));
        prop_assert_eq!(json[14].as_i64(), row.maybe);
    }

    #[test]
    fn no_term_does_harm(term in term()) {
        let _ = from_term::<Row>(&term);
        let _ = from_term::<Vec<Shape>>(&term);
        let _ = from_term::<BTreeMap<String, Shape>>(&term);
        let _ = from_term::<serde_json::Value>(&term);
        let back: Term = from_term(&term).unwrap();
        prop_assert_eq!(Exact(back), Exact(term));
    }
}

#[test]
fn values_have_the_documented_terms() {
    fn text<T: Serialize>(value: T) -> String {
        to_term(&value).unwrap().to_string()
    }
    assert_eq!(text(Meters(1.5)), "1.5");
    assert_eq!(text(Marker), "{}");
    assert_eq!(text(Pair(1, "a".into())), "{1,<<\"a\">>}");
    assert_eq!(text([1, 2]), "{1,2}");
    assert_eq!(text(vec![1, 200]), "[1,200]");
    assert_eq!(text('x'), "<<\"x\">>");
    assert_eq!(text(Some(None::<i8>)), "undefined");
    assert_eq!(text(Shape::Empty), "empty");
    assert_eq!(text(Shape::Circle(0.5)), "{circle,0.5}");
    assert_eq!(text(Shape::Segment(-1, 1)), "{segment,-1,1}");
    let named = Shape::Named {
        name: "n".into(),
        sides: None,
    };
    assert_eq!(text(named), "{named,<<\"n\">>,undefined}");
    assert_eq!(text(BTreeMap::from([(1, true)])), "#{1 => true}");
    assert_eq!(text((Term::NIL, Atom::OK)), "{[],ok}");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct User {
    id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nick: Option<String>,
    age: u8,
}

const NOBODY: User = User {
    id: 7,
    nick: None,
    age: 36,
};

#[test]
fn a_field_that_is_skipped_keeps_its_place() {
    let row = to_row(&NOBODY).unwrap();
    assert_eq!(row.to_string(), "{7,undefined,36}");
    assert_eq!(from_row::<User>(&row).unwrap(), NOBODY);
}

#[test]
fn a_struct_is_also_made_of_a_map() {
    for text in [
        "#{id => 7, age => 36}",
        "#{<<\"age\">> => 36, id => 7, other => [x|y]}",
    ] {
        let term: Term = text.parse().unwrap();
        assert_eq!(from_term::<User>(&term).unwrap(), NOBODY, "{text}");
    }
}

#[test]
fn reading_accepts_more_than_writing_makes() {
    fn read<T: DeserializeOwned>(text: &str) -> T {
        from_term(&text.parse().unwrap()).unwrap()
    }
    assert_eq!(read::<(i8, i8)>("[1, 2]"), (1, 2));
    assert_eq!(read::<[i8; 2]>("[1, 2]"), [1, 2]);
    assert_eq!(read::<Vec<u8>>("<<1, 2>>"), [1, 2]);
    assert_eq!(read::<f64>("3"), 3.0);
    assert_eq!(read::<Option<bool>>("undefined"), None);
}

#[test]
fn rows_go_into_a_table_and_come_out() {
    let table = Tables::new()
        .create("users", Options::new().kind(Kind::OrderedSet))
        .unwrap();
    table.insert(to_term(&vec![NOBODY]).unwrap()).unwrap();
    let row = table.get(&7.into()).unwrap().unwrap();
    assert_eq!(from_row::<User>(&row).unwrap(), NOBODY);
}

#[test]
fn an_error_names_the_part_that_is_wrong() {
    fn error<T: DeserializeOwned + Debug>(text: &str) -> String {
        from_term::<T>(&text.parse().unwrap())
            .unwrap_err()
            .to_string()
    }
    assert_eq!(error::<bool>("ok"), "ok is not true or false");
    assert_eq!(error::<String>("ok"), "ok is not a binary in UTF-8");
    assert_eq!(
        error::<String>("<<128>>"),
        "<<128>> is not a binary in UTF-8"
    );
    assert_eq!(error::<Vec<u8>>("[1|2]"), "[1|2] is not a proper list");
    assert_eq!(error::<Vec<u8>>("{1}"), "{1} is not a list");
    assert_eq!(error::<()>("undefined"), "undefined is not an empty tuple");
    assert_eq!(
        error::<User>("7"),
        "7 is not a tuple, which the struct User is"
    );
    assert_eq!(
        error::<User>("{1, undefined, 3, more}"),
        "element 4, more, is one too many in {1,undefined,3,more}"
    );
    assert_eq!(
        error::<User>("{1, undefined}"),
        "invalid length 2, expected struct User with 3 elements"
    );
    assert_eq!(
        error::<Vec<User>>("[{1, undefined, 300}]"),
        "element 1, element 3: invalid value: integer `300`, expected u8"
    );
    assert_eq!(error::<User>("#{id => 7}"), "missing field `age`");
    assert_eq!(
        error::<Shape>("square"),
        "square is not a variant of the enum Shape"
    );
    assert_eq!(
        error::<Shape>("{}"),
        "{} is not a variant of the enum Shape"
    );
    assert_eq!(
        error::<Shape>("{empty}"),
        "{empty} is not the atom empty, a variant without fields"
    );
    assert_eq!(
        error::<Shape>("circle"),
        "circle is not {circle,Value}, a variant with one field"
    );
    assert_eq!(
        error::<Shape>("{nested, {circle, x}}"),
        "element 2, element 2: invalid type: string \"x\", expected f64"
    );
    assert_eq!(
        error::<Shape>("{segment, 1, 2, 3}"),
        "element 4, 3, is one too many in {segment,1,2,3}"
    );
    assert_eq!(
        error::<i128>("340282366920938463463374607431768211456"),
        "340282366920938463463374607431768211456 is not an integer of 128 bits"
    );
    assert_eq!(
        error::<serde_json::Value>("[#Pid<a.1.2.3>]"),
        "element 1: #Pid<a.1.2.3> is not a value of Rust, unless of the type Term"
    );
    let infinite = to_term(&vec![Meters(1.0), Meters(f64::NEG_INFINITY)]).unwrap_err();
    assert_eq!(
        infinite.to_string(),
        "element 2: -inf is no float that a term can hold: it is not finite"
    );
    let wrong = serde_json::from_str::<Term>("\"{a\"")
        .unwrap_err()
        .to_string();
    assert!(wrong.starts_with("the term \"{a\": byte 2: "), "{wrong}");
}

#[test]
fn deep_values_are_refused_and_deep_terms_are_not() {
    let nested = |levels| (0..levels).fold(Shape::Empty, |shape, _| Shape::Nested(Box::new(shape)));
    comes_back(&nested(DEEPEST));
    let too_deep = "the value is nested deeper than 128";
    let error = to_term(&nested(DEEPEST + 1)).unwrap_err().to_string();
    assert!(error.ends_with(too_deep), "{error}");
    let deep = (0..DEEPEST + 1).fold(Term::atom("empty").unwrap(), |term, _| {
        Term::from((Term::atom("nested").unwrap(), term))
    });
    let error = from_term::<Shape>(&deep).unwrap_err().to_string();
    assert!(error.ends_with(too_deep), "{error}");
    // A term in a value is one level, however deep it is.
    comes_back(&(1, deep));
}
