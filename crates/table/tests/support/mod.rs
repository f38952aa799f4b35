//! Random terms of every kind, with a preference for edge cases, and pairs of similar terms.
#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod calls;
pub(crate) mod effects;
pub(crate) mod operations;
pub(crate) mod oracle;
pub(crate) mod specs;

use num_bigint::BigInt;
use proptest::collection::vec;
use proptest::prelude::*;
use tremula_table::Term;
use tremula_table::term::{Atom, Bitstring, Export, LocalFun, Map, Pid, Port, Reference, Tuple};

/// Terms without terms inside them.
pub(crate) fn leaf() -> impl Strategy<Value = Term> {
    prop_oneof![
        4 => integer(),
        3 => float(),
        3 => atom().prop_map(Term::from),
        2 => vec(any::<u8>(), 0..12).prop_map(|bytes| Term::binary(&bytes)),
        1 => "[a-zé\"\\\\\n ]{0,9}".prop_map(|text| Term::binary(text.as_bytes())),
        1 => (vec(any::<u8>(), 0..4), 0..32_usize)
            .prop_map(|(bytes, bits)| Bitstring::from_bits(&bytes, bits).into()),
        1 => "[ -~àé\n\t\\PC]{0,9}".prop_map(|text| Term::string(&text)),
        2 => opaque(),
        1 => Just(Term::NIL),
    ]
}

fn integer() -> impl Strategy<Value = Term> {
    prop_oneof![
        3 => (-3..300_i64).prop_map(Term::from),
        2 => any::<i64>().prop_map(Term::from),
        // Near powers of two, where representations change.
        3 => (0..1100_u32, -2..3_i64, any::<bool>()).prop_map(|(bits, near, negative)| {
            let value = (BigInt::from(1) << (bits % 80 * (1 + bits / 800 * 13))) + near;
            Term::from(if negative { -value } else { value })
        }),
        1 => any::<i128>().prop_map(Term::from),
    ]
}

fn float() -> impl Strategy<Value = Term> {
    let finite = |value: f64| Term::try_from(if value.is_finite() { value } else { 0.5 }).unwrap();
    prop_oneof![
        3 => (-3..300_i32).prop_map(move |value| finite(value.into())),
        1 => (-30..30_i32).prop_map(move |value| finite(f64::from(value) / 4.0)),
        1 => Just(finite(-0.0)),
        2 => any::<u64>().prop_map(move |bits| finite(f64::from_bits(bits))),
        1 => any::<i64>().prop_map(move |value| finite(value as f64)),
        1 => (0..1_000_000_i32, -20..20_i32)
            .prop_map(move |(value, power)| finite(f64::from(value) * 10_f64.powi(power))),
        2 => (-1000..1000_i32, any::<bool>())
            .prop_map(move |(power, negative)| {
                finite(2_f64.powi(power) * if negative { -1.0 } else { 1.0 })
            }),
    ]
}

/// Texts of atoms: with and without quotes, short and long, of characters of one to four bytes.
const ATOMS: &[&str] = &[
    "",
    "a",
    "ab",
    "b",
    "true",
    "false",
    "ok",
    "undefined",
    "and",
    "fun",
    "Z",
    "_",
    "an atom",
    "a@b",
    "a.b",
    "'",
    "\\",
    "\n\u{7f}\u{9f}\u{a0}",
    "é",
    "÷",
    "aÉ",
    "α",
    "ａ",
    "𝕏",
    "a\0b",
    "abcdefgh",
    "abcdefghi",
    "abcdefghj",
    "$end_of_table",
];

/// Atoms: a few that recur, and some with any text.
pub(crate) fn atom() -> impl Strategy<Value = Atom> {
    prop_oneof![
        30 => proptest::sample::select(ATOMS).prop_map(|text| Atom::new(text).unwrap()),
        4 => "\\PC{0,3}".prop_map(|text| Atom::new(&text).unwrap()),
        1 => (0..4_usize).prop_map(|more| Atom::new(&"é".repeat(252 + more)).unwrap()),
    ]
}

fn node() -> impl Strategy<Value = Atom> {
    proptest::sample::select(&["a@host", "b@host", "c@h.example"][..])
        .prop_map(|text| Atom::new(text).unwrap())
}

fn opaque() -> impl Strategy<Value = Term> {
    let word = || prop_oneof![0..4_u32, any::<u32>()];
    prop_oneof![
        (node(), 0..3_u32, 0..3_u32, 1..3_u32)
            .prop_map(|(node, id, serial, creation)| Pid::new(node, id, serial, creation).into()),
        (node(), word(), word(), word())
            .prop_map(|(node, id, serial, creation)| Pid::new(node, id, serial, creation).into()),
        (node(), prop_oneof![0..3_u64, any::<u64>()], 1..3_u32)
            .prop_map(|(node, id, creation)| Port::new(node, id, creation).into()),
        (
            node(),
            1..3_u32,
            prop_oneof![vec(word(), 3), vec(word(), 5)]
        )
            .prop_map(|(node, creation, words)| {
                Reference::new(node, creation, &words).unwrap().into()
            }),
        (atom(), atom(), 0..3_u8).prop_map(|(module, function, arity)| {
            Term::from(Export {
                module,
                function,
                arity,
            })
        }),
        (
            0..3_usize,
            0..3_u32,
            -2..2_i64,
            vec((0..3_i64).prop_map(Term::from), 0..3)
        )
            .prop_map(|(module, index, old_unique, free)| {
                // The same code has the same hash, as in a real Erlang, which identifies functions
                // by it.
                let module = ["one", "two", "three"][module];
                Term::from(LocalFun {
                    module: Atom::new(module).unwrap(),
                    index,
                    old_unique,
                    old_index: index.into(),
                    unique: [index as u8; 16],
                    arity: 1,
                    pid: Pid::new(Atom::new("a@host").unwrap(), 1, 0, 1),
                    free: Tuple::new(free),
                })
            }),
    ]
}

/// Terms of every kind, some levels deep.
pub(crate) fn term() -> impl Strategy<Value = Term> {
    prop_oneof![60 => small(), 1 => large_map()]
}

/// A map with more entries than Erlang keeps in order.
fn large_map() -> impl Strategy<Value = Term> {
    (vec((leaf(), small()), 1..4), 30..40_i64).prop_map(|(mut entries, more)| {
        entries.extend((0..more).map(|key| (Term::from(key), Term::from(-key))));
        Term::map(entries)
    })
}

fn small() -> impl Strategy<Value = Term> {
    leaf().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(Term::tuple),
            3 => vec(inner.clone(), 0..5).prop_map(Term::list),
            1 => (vec(inner.clone(), 1..4), inner.clone())
                .prop_map(|(elements, tail)| Term::list_with_tail(elements, tail)),
            2 => vec((inner.clone(), inner.clone()), 0..5).prop_map(Term::map),
        ]
    })
}

/// Two terms: unrelated, or one made from the other by a few small changes.
pub(crate) fn pair() -> impl Strategy<Value = (Term, Term)> {
    prop_oneof![
        1 => (term(), term()),
        3 => (term(), vec(any::<u8>(), 1..8), leaf())
            .prop_map(|(one, choices, other)| {
                let two = change(&one, &mut choices.into_iter(), &other);
                (one, two)
            }),
    ]
}

/// Changes a term a little, at a place that the choices determine.
fn change(term: &Term, choices: &mut impl Iterator<Item = u8>, other: &Term) -> Term {
    let Some(choice) = choices.next() else {
        return other.clone();
    };
    let place = |length: usize| usize::from(choice) % length;
    match term {
        Term::Tuple(tuple) if !tuple.is_empty() => {
            let mut elements = tuple.to_vec();
            let place = place(elements.len());
            elements[place] = change(&elements[place], choices, other);
            Term::tuple(elements)
        }
        Term::List(list) if !list.is_empty() => {
            let mut elements: Vec<_> = list.iter().cloned().collect();
            let mut iterator = list.iter();
            iterator.by_ref().for_each(drop);
            let tail = iterator.tail().clone();
            match choice % 8 {
                0 => Term::list_with_tail(elements, change(&tail, choices, other)),
                // The same text, cut elsewhere.
                1 => {
                    let rest = elements.split_off(place(elements.len() + 1));
                    Term::list_with_tail(elements, Term::list_with_tail(rest, tail))
                }
                _ => {
                    let place = place(elements.len());
                    elements[place] = change(&elements[place], choices, other);
                    Term::list_with_tail(elements, tail)
                }
            }
        }
        Term::Map(map) if !map.is_empty() => {
            let mut entries = map.entries().to_vec();
            let entry = &mut entries[place(map.len())];
            if choices.next().unwrap_or(0).is_multiple_of(2) {
                entry.0 = change(&entry.0, choices, other);
            } else {
                entry.1 = change(&entry.1, choices, other);
            }
            Term::Map(Map::new(entries))
        }
        Term::Integer(value) => match choice % 3 {
            0 => Term::try_from(*value as f64).unwrap(),
            1 => Term::from(i128::from(*value) + 1),
            _ => Term::from(*value),
        },
        Term::BigInteger(value) => match choice % 3 {
            0 => {
                let float = value.value().to_string().parse::<f64>().unwrap();
                Term::try_from(float).unwrap_or_else(|_| other.clone())
            }
            1 => Term::from(value.value() + 1),
            _ => term.clone(),
        },
        Term::Float(float) => {
            let value = float.value();
            if value.abs() < 1e30 && choice % 3 != 0 {
                Term::from(value as i128)
            } else {
                Term::try_from(-value).unwrap()
            }
        }
        Term::Bitstring(bits) => {
            Bitstring::from_bits(bits.bytes(), bits.bit_len().saturating_sub(place(9))).into()
        }
        _ if choice.is_multiple_of(2) => term.clone(),
        _ => other.clone(),
    }
}
