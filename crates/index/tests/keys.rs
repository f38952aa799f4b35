//! Byte forms and heads keep the order of their keys, and different keys have different ones.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use std::fmt::Debug;
use tremula_index::ByteKey;
use tremula_index::key::{ByteHead, KeyHead, TotalF32, TotalF64, head_of};

fn bytes<K: ByteKey>(key: &K) -> Vec<u8> {
    key.with_bytes(<[u8]>::to_vec)
}

fn delimited<K: ByteKey>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.append_delimited(&mut out);
    out
}

/// Checks everything that the forms of two keys promise.
fn forms_agree<K: ByteKey + Debug>(a: &K, b: &K) {
    let order = a.cmp(b);
    assert_eq!(bytes(a).cmp(&bytes(b)), order, "{a:?}, {b:?}");
    assert_eq!(delimited(a).cmp(&delimited(b)), order, "{a:?}, {b:?}");
    if order.is_ne() {
        assert!(!delimited(a).starts_with(&delimited(b)), "{a:?}, {b:?}");
    }
    assert_eq!(a.head(), head_of(&bytes(a)), "{a:?}");
    match <ByteHead as KeyHead<K>>::key(a.head()) {
        Some(key) => assert_eq!(key, *a),
        None => assert!(!K::HEAD_IS_KEY, "{a:?}"),
    }
    if K::HEAD_IS_KEY {
        assert_eq!(a.head().cmp(&b.head()), order, "{a:?}, {b:?}");
    }
}

/// Pairs of keys, often close to one another.
fn pairs<S>(keys: S) -> impl Strategy<Value = Vec<S::Value>>
where
    S: Strategy,
{
    prop::collection::vec(keys, 2..6)
}

macro_rules! keep_their_order {
    ($($name:ident: $keys:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
            $(#[test]
            fn $name(keys in pairs($keys)) {
                for a in &keys {
                    for b in &keys {
                        forms_agree(a, b);
                    }
                }
            })*
        }
    };
}

/// Bytes in which 0 and 255 are common, because they escape and end forms.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(255), Just(1), any::<u8>()];
    prop::collection::vec(byte, 0..12)
}

keep_their_order! {
    u8_keeps_its_order: any::<u8>();
    u16_keeps_its_order: any::<u16>();
    u32_keeps_its_order: any::<u32>();
    u64_keeps_its_order: prop_oneof![any::<u64>(), 0..3_u64];
    u128_keeps_its_order: prop_oneof![any::<u128>(), 0..3_u128];
    usize_keeps_its_order: any::<usize>();
    i8_keeps_its_order: any::<i8>();
    i16_keeps_its_order: any::<i16>();
    i32_keeps_its_order: prop_oneof![any::<i32>(), -2..3];
    i64_keeps_its_order: prop_oneof![any::<i64>(), -2..3_i64];
    i128_keeps_its_order: prop_oneof![any::<i128>(), -2..3_i128];
    isize_keeps_its_order: any::<isize>();
    bool_keeps_its_order: any::<bool>();
    char_keeps_its_order: any::<char>();
    unit_keeps_its_order: Just(());
    f32_keeps_its_total_order: prop_oneof![any::<f32>(), prop::num::f32::ANY].prop_map(TotalF32);
    f64_keeps_its_total_order: prop_oneof![any::<f64>(), prop::num::f64::ANY].prop_map(TotalF64);
    strings_keep_their_order: "[\0\u{1}a-c\u{10ffff}]{0,10}";
    boxed_strings_keep_their_order: ".{0,10}".prop_map(String::into_boxed_str);
    byte_strings_keep_their_order: any_bytes();
    boxed_byte_strings_keep_their_order: any_bytes().prop_map(Vec::into_boxed_slice);
    short_arrays_keep_their_order: any::<[u8; 5]>();
    long_arrays_keep_their_order: any::<[u8; 11]>();
    pairs_keep_their_order: (any_bytes(), any::<i16>());
    triples_keep_their_order: (0..2_u8, any_bytes(), any_bytes());
    nested_tuples_keep_their_order: (("[\0a]{0,3}", any_bytes()), any_bytes(), 0..3_i8, any::<u8>());
}
