//! Byte forms and heads keep the order of their keys, and different keys have different ones.
#![cfg(not(any(loom, shuttle)))]

#[path = "support/forms.rs"]
mod forms;

use forms::{bytes, forms_agree};
use proptest::prelude::*;
use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::ffi::{CString, OsString};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::num::{NonZero, Saturating, Wrapping};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tremula_index::ByteKey;
use tremula_index::key::{TotalF32, TotalF64};

/// Checks two keys, and composite keys that they are parts of.
fn forms_agree_in_composites<K: ByteKey + Debug>(a: &K, b: &K) {
    forms_agree(a, b);
    let [one, other] = [(a, b), (b, a)].map(|(x, y)| (x.clone(), y.clone()));
    forms_agree(&one, &other);
    forms_agree(&Reverse(one.clone()), &Reverse(other.clone()));
    forms_agree(
        &[one.0.clone(), one.1.clone()],
        &[other.0.clone(), other.1.clone()],
    );
    forms_agree(&(Some(one.0.clone()), 7_u8), &(Some(one.1.clone()), 6));
    forms_agree(
        &(Reverse(one.0.clone()), 7_u8),
        &(Reverse(one.1.clone()), 6),
    );
    forms_agree(&(Some(one.0.clone()), 7_u8), &(None, 6));
    forms_agree(&Some(Reverse(one.0)), &Some(Reverse(one.1)));
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
                        forms_agree_in_composites(a, b);
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
    cows_keep_their_order: "[\0a-c]{0,5}".prop_map(Cow::<'static, str>::Owned);
    cows_of_bytes_keep_their_order: any_bytes().prop_map(Cow::<'static, [u8]>::Owned);
    counted_strings_keep_their_order: "[\0a-c]{0,5}".prop_map(Arc::<str>::from);
    counted_byte_strings_keep_their_order: any_bytes().prop_map(Arc::<[u8]>::from);
    strings_of_c_keep_their_order: "[\u{1}a-c\u{10ffff}]{0,9}".prop_map(|text| CString::new(text).unwrap());
    strings_of_the_system_keep_their_order: ".{0,9}".prop_map(OsString::from);
    boxes_keep_their_order: any::<u16>().prop_map(Box::new);
    counted_keys_keep_their_order: any_bytes().prop_map(Arc::new);
    short_arrays_keep_their_order: any::<[u8; 5]>();
    long_arrays_keep_their_order: any::<[u8; 11]>();
    empty_arrays_keep_their_order: any::<[u32; 0]>();
    arrays_of_integers_keep_their_order: any::<[i16; 3]>();
    long_arrays_of_integers_keep_their_order: any::<[u32; 3]>();
    arrays_of_strings_keep_their_order: [any_bytes(), any_bytes(), any_bytes()];
    arrays_of_arrays_keep_their_order: any::<[[bool; 2]; 3]>();
    one_part_keeps_its_order: (any_bytes(),);
    pairs_keep_their_order: (any_bytes(), any::<i16>());
    short_pairs_keep_their_order: (any::<i32>(), any::<u32>());
    triples_keep_their_order: (0..2_u8, any_bytes(), any_bytes());
    nested_tuples_keep_their_order: (("[\0a]{0,3}", any_bytes()), any_bytes(), 0..3_i8, any::<u8>());
    eight_short_parts_keep_their_order: (
        0..2_u8, 0..2_u8, 0..2_u8, any::<bool>(), 0..2_i8, 0..2_u8, 0..2_u8, any::<u8>()
    );
    eight_long_parts_keep_their_order: (
        0..2_u8, any_bytes(), 0..2_u32, any_bytes(), 0..2_i8, any_bytes(), 0..2_u8, any_bytes()
    );
    versions_keep_their_order: (any_bytes(), any::<u64>().prop_map(Reverse));
    reversed_strings_keep_their_order: any_bytes().prop_map(Reverse);
    twice_reversed_strings_keep_their_order: any_bytes().prop_map(|key| Reverse(Reverse(key)));
    options_keep_their_order: any::<Option<u32>>();
    options_of_wide_integers_keep_their_order: any::<Option<u64>>();
    options_of_strings_keep_their_order: prop::option::of(any_bytes());
    nested_options_keep_their_order: any::<Option<Option<bool>>>();
    options_of_nothing_keep_their_order: any::<Option<()>>();
    results_keep_their_order: any::<Result<u32, bool>>();
    results_of_strings_keep_their_order: prop::result::maybe_ok(any_bytes(), any::<u8>());
    orders_keep_their_order: prop_oneof![
        Just(Ordering::Less), Just(Ordering::Equal), Just(Ordering::Greater)
    ];
    phantoms_keep_their_order: Just(PhantomData::<f32>);
    non_zeros_keep_their_order: any::<NonZero<u32>>();
    signed_non_zeros_keep_their_order: any::<NonZero<i64>>();
    wide_non_zeros_keep_their_order: any::<NonZero<i128>>();
    wrapping_integers_keep_their_order: any::<i16>().prop_map(Wrapping);
    saturating_integers_keep_their_order: any::<i128>().prop_map(Saturating);
    ipv4_addresses_keep_their_order: any::<Ipv4Addr>();
    ipv6_addresses_keep_their_order: any::<Ipv6Addr>();
    addresses_keep_their_order: any::<IpAddr>();
    ports_keep_their_order: sockets();
    durations_keep_their_order: prop_oneof![any::<Duration>(), (0..3_u64, 0..3_u32).prop_map(|(s, n)| Duration::new(s, n))];
    times_keep_their_order: times();
}

/// Addresses with ports: few of each, so that the later parts decide.
fn sockets() -> impl Strategy<Value = SocketAddr> {
    let v4 = (0..2_u8, any::<u16>()).prop_map(|(last, port)| ([127, 0, 0, last], port).into());
    let v6 = (0..2_u16, 0..2_u16, 0..2_u32, any::<u32>()).prop_map(|(last, port, flow, scope)| {
        let address = Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, last);
        SocketAddrV6::new(address, port, flow, scope).into()
    });
    prop_oneof![v4, v6]
}

/// Times on both sides of 1970, to the nanosecond.
fn times() -> impl Strategy<Value = SystemTime> {
    (any::<bool>(), 0..3_u64, 0..3_u32).prop_map(|(is_later, seconds, nanoseconds)| {
        let distance = Duration::new(seconds, nanoseconds);
        if is_later {
            UNIX_EPOCH + distance
        } else {
            UNIX_EPOCH - distance
        }
    })
}

/// What engines know of a type without a key at hand.
fn facts<K: ByteKey>() -> (Option<usize>, bool) {
    (K::LENGTH, K::HEAD_IS_KEY)
}

#[test]
fn composites_of_up_to_eight_bytes_are_determined_by_their_heads() {
    assert_eq!(facts::<(u32, u32)>(), (Some(8), true));
    assert_eq!(facts::<(u32, u32, bool)>(), (Some(9), false));
    assert_eq!(facts::<(u32, String)>(), (None, false));
    assert_eq!(facts::<[u16; 4]>(), (Some(8), true));
    assert_eq!(facts::<[u16; 5]>(), (Some(10), false));
    assert_eq!(facts::<[String; 0]>(), (Some(0), true));
    assert_eq!(facts::<[String; 1]>(), (None, false));
    assert_eq!(facts::<Reverse<u64>>(), (Some(8), true));
    assert_eq!(facts::<Reverse<String>>(), (None, false));
    assert_eq!(facts::<Option<u32>>(), (Some(5), true));
    assert_eq!(facts::<Option<u64>>(), (Some(9), false));
    assert_eq!(facts::<Option<String>>(), (None, false));
    assert_eq!(facts::<Result<(), u16>>(), (Some(3), true));
    assert_eq!(facts::<Option<NonZero<u16>>>(), (Some(3), true));
    assert_eq!(facts::<SocketAddr>(), (Some(27), false));
    assert_eq!(facts::<Duration>(), (Some(12), false));
}

#[test]
fn the_form_of_a_part_ends_where_the_next_begins() {
    assert_eq!(bytes(&("a\0".to_owned(), 1_u8)), b"a\0\xff\0\0\x01");
    assert_eq!(bytes(&Reverse("a".to_owned())), [!b'a', 255, 255]);
    assert_eq!(bytes(&None::<u16>), [0, 0, 0]);
    assert_eq!(bytes(&Some(0x0102_u16)), [1, 1, 2]);
    assert_eq!(bytes(&None::<String>), [0]);
    assert_eq!(bytes(&(Some(String::new()), 5_u8)), [1, 0, 0, 5]);
}

#[test]
fn no_part_is_made_of_a_head_that_no_key_has() {
    assert_eq!(Option::<u8>::from_head(2 << 56), None);
    assert_eq!(<[char; 2]>::from_head(u64::MAX), None);
    assert_eq!(<(bool, NonZero<u8>)>::from_head(0), None);
    assert_eq!(<(u64, u64)>::from_head(1), None);
}
