//! Lookups by borrowed forms of keys, beside a `BTreeMap`, on every engine of the table that the
//! test program names `Tested`, and on the default engine.
//!
//! Each test here fails where a lookup by a form finds something else than a lookup by the key.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::Tested;
use crate::support::suite::Random;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use tremula_index::equivalent::{Comparable, Equivalent};
use tremula_index::{ByteKey, Direction, KeyForm, OrderedIndex, OrderedMap, OrderedSet, Update};

type Map<K> = OrderedMap<K, u32, Box<dyn OrderedIndex<K, u32>>>;

/// Some words are prefixes of others, and many begin with the same eight bytes.
fn word(random: &mut Random) -> String {
    let mut word = ["", "quaking ", "\0"][random.below(3) as usize].to_owned();
    for _ in 0..random.below(4) {
        word.push(['a', 'b', '\0', 'ä'][random.below(4) as usize]);
    }
    word
}

/// A key of two parts.
type Pair = (String, u16);

/// The form of a [`Pair`], which says its bytes if `SAYS`.
#[derive(Clone, Copy, Debug)]
struct Parts<'a, const SAYS: bool>(&'a str, u16);

impl<const SAYS: bool> Equivalent<Pair> for Parts<'_, SAYS> {
    fn equivalent(&self, key: &Pair) -> bool {
        self.compare(key).is_eq()
    }
}

impl<const SAYS: bool> Comparable<Pair> for Parts<'_, SAYS> {
    fn compare(&self, key: &Pair) -> Ordering {
        self.0.cmp(&key.0).then(self.1.cmp(&key.1))
    }
}

impl<const SAYS: bool> KeyForm<Pair> for Parts<'_, SAYS> {
    fn read_bytes(&self, read: &mut dyn FnMut(&[u8])) -> bool {
        if SAYS {
            (self.0.to_owned(), self.1).with_bytes(read);
        }
        SAYS
    }
}

/// Looks for a form in every way, beside lookups of the key in the model.
fn look_for<K, Q, E>(
    map: &OrderedMap<K, u32, E>,
    model: &mut BTreeMap<K, u32>,
    form: &Q,
    key: &K,
    random: &mut Random,
) where
    K: Ord + Clone + Debug,
    Q: KeyForm<K> + ?Sized,
    E: OrderedIndex<K, u32>,
{
    let owned = |(key, value): (&K, &u32)| (key.clone(), *value);
    match random.below(8) {
        0 => assert_eq!(map.remove(form), model.remove(key)),
        1 => {
            let expected = match model.get(key) {
                Some(value) if value % 2 == 0 => model.remove(key),
                _ => None,
            };
            assert_eq!(map.remove_if(form, |value| value % 2 == 0), expected);
        }
        2 => {
            assert_eq!(map.get(form), model.get(key).copied());
            assert_eq!(
                map.get_with(form, |value| value + 1),
                model.get(key).map(|v| v + 1)
            );
            assert_eq!(map.get_many_by([form, form]), [model.get(key).copied(); 2]);
        }
        3 => assert_eq!(map.contains_key(form), model.contains_key(key)),
        4 => {
            let above = (Bound::Excluded(key), Bound::Unbounded);
            assert_eq!(map.next(form), model.range::<K, _>(above).next().map(owned));
        }
        5 => assert_eq!(map.prev(form), model.range(..key).next_back().map(owned)),
        6 => {
            let expected = model.range(key..).next().map(owned);
            assert_eq!(map.at_or_above(form), expected);
        }
        _ => {
            let expected = model.range(..=key).next_back().map(owned);
            assert_eq!(map.at_or_below(form), expected);
        }
    }
}

/// Looks for the entries between two forms.
fn look_between<K, Q, E>(
    map: &OrderedMap<K, u32, E>,
    model: &BTreeMap<K, u32>,
    forms: [&Q; 2],
    keys: [&K; 2],
    random: &mut Random,
) where
    K: Ord + Clone + Debug,
    Q: KeyForm<K> + ?Sized,
    E: OrderedIndex<K, u32>,
{
    let kinds = [random.below(3), random.below(3)];
    fn bound<T: ?Sized>(kind: u32, key: &T) -> Bound<&T> {
        [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded][kind as usize]
    }
    let by_form = (bound(kinds[0], forms[0]), bound(kinds[1], forms[1]));
    let (low, high) = (bound(kinds[0], keys[0]), bound(kinds[1], keys[1]));
    let inside = |key: &K| {
        let above = match low {
            Bound::Included(low) => low <= key,
            Bound::Excluded(low) => low < key,
            Bound::Unbounded => true,
        };
        above
            && match high {
                Bound::Included(high) => key <= high,
                Bound::Excluded(high) => key < high,
                Bound::Unbounded => true,
            }
    };
    let within = model.iter().filter(|(key, _)| inside(key));
    let mut expected: Vec<_> = within.map(|(key, value)| (key.clone(), *value)).collect();
    let limit = random.below(5) as usize;
    let first = &expected[..limit.min(expected.len())];
    assert_eq!(map.scan_by(by_form, Direction::Ascending, limit), first);
    assert!(map.range_by(by_form).eq(expected.iter().cloned()));
    expected.reverse();
    let last = &expected[..limit.min(expected.len())];
    assert_eq!(map.scan_by(by_form, Direction::Descending, limit), last);
    assert!(map.range_by(by_form).rev().eq(expected));
}

fn with_words<E: OrderedIndex<String, u32>>(map: &OrderedMap<String, u32, E>) {
    let mut model = BTreeMap::new();
    let mut random = Random::new(8);
    for _ in 0..4000 {
        let (key, other, value) = (word(&mut random), word(&mut random), random.below(10));
        match random.below(9) {
            0..=3 => assert_eq!(map.insert(key.clone(), value), model.insert(key, value)),
            4 => {
                let expected = *model.entry(key.clone()).or_insert(value);
                assert_eq!(map.get_or_insert_by(&*key, || value), expected);
            }
            5 => {
                let old = map.update_by(&*key, |_| Update::Put(value));
                assert_eq!(old, model.insert(key, value));
            }
            6 | 7 => look_for(map, &mut model, &*key, &key, &mut random),
            _ => look_between(map, &model, [&*key, &*other], [&key, &other], &mut random),
        }
        assert_eq!(map.len(), model.len());
    }
    assert!(map.iter().eq(model));
}

fn with_pairs<const SAYS: bool, E: OrderedIndex<Pair, u32>>(map: &OrderedMap<Pair, u32, E>) {
    let mut model = BTreeMap::new();
    let mut random = Random::new(9);
    for _ in 0..if SAYS { 3000 } else { 500 } {
        let mut pair = || (word(&mut random), random.below(3) as u16);
        let (key, other) = (pair(), pair());
        let [form, second] = [&key, &other].map(|(word, number)| Parts::<SAYS>(word, *number));
        let value = random.below(10);
        match random.below(8) {
            0..=4 => assert_eq!(map.insert(key.clone(), value), model.insert(key, value)),
            5 | 6 => look_for(map, &mut model, &form, &key, &mut random),
            _ => look_between(map, &model, [&form, &second], [&key, &other], &mut random),
        }
        assert_eq!(map.len(), model.len());
    }
    assert!(map.iter().eq(model));
}

pub(crate) fn a_str_finds_what_the_string_finds() {
    for engine in Tested::ALL {
        println!("{engine}");
        let map: Map<String> = OrderedMap::with_engine(engine);
        with_words(&map);
        let map: Map<String> = OrderedMap::with_byte_engine(engine);
        with_words(&map);
    }
    with_words(&OrderedMap::new());
}

pub(crate) fn a_form_of_ones_own_finds_what_the_key_finds() {
    for engine in Tested::ALL {
        println!("{engine}");
        let map: Map<Pair> = OrderedMap::with_byte_engine(engine);
        with_pairs::<true, _>(&map);
    }
    with_pairs::<true, _>(&OrderedMap::new());
}

pub(crate) fn a_form_that_does_not_say_its_bytes_finds_what_the_key_finds() {
    for engine in Tested::ALL {
        println!("{engine}");
        let map: Map<Pair> = OrderedMap::with_byte_engine(engine);
        with_pairs::<false, _>(&map);
    }
    with_pairs::<false, _>(&OrderedMap::new());
}

/// A range keeps stored keys as its bounds, and the forms lie between these and the entries.
pub(crate) fn what_is_inserted_beside_a_range_by_forms_is_not_in_it() {
    for engine in Tested::ALL {
        let map: Map<String> = OrderedMap::with_engine(engine);
        let insert = |keys: &[&str]| {
            for key in keys {
                map.insert((*key).to_owned(), 0);
            }
        };
        insert(&["a", "m", "z"]);
        let (forwards, backwards) = (map.range_by("c".."x"), map.range_by("c".."x"));
        insert(&["b", "y"]);
        let keys = |entry: (String, u32)| entry.0;
        assert!(forwards.map(keys).eq(["m"]), "{engine}");
        assert!(backwards.rev().map(keys).eq(["m"]), "{engine}");
    }
}

/// A form and its key have the same bytes.
pub(crate) fn forms_have_the_bytes_of_their_keys() {
    fn check<
        K: ByteKey + From<F>,
        F: Copy + std::ops::Deref<Target = Q>,
        Q: KeyForm<K> + ?Sized,
    >(
        forms: &[F],
    ) {
        for form in forms {
            let key = K::from(*form);
            let mut seen = None;
            assert!((**form).read_bytes(&mut |bytes| seen = Some(bytes.to_vec())));
            assert_eq!(seen, Some(key.with_bytes(<[u8]>::to_vec)));
            assert!((**form).compare(&key).is_eq());
        }
    }
    const WORDS: [&str; 5] = ["", "a", "ä", "quaking aspen", "\0\0"];
    check::<String, _, str>(&WORDS);
    check::<Box<str>, _, str>(&WORDS);
    check::<std::borrow::Cow<'static, str>, _, str>(&WORDS);
    check::<&'static str, _, str>(&WORDS);
    let bytes = WORDS.map(str::as_bytes);
    check::<Vec<u8>, _, [u8]>(&bytes);
    check::<Box<[u8]>, _, [u8]>(&bytes);
    check::<std::borrow::Cow<'static, [u8]>, _, [u8]>(&bytes);
    check::<&'static [u8], _, [u8]>(&bytes);
    let c = [c"", c"aspen"];
    check::<std::ffi::CString, _, std::ffi::CStr>(&c);
    check::<std::ffi::OsString, _, std::ffi::OsStr>(&WORDS.map(std::ffi::OsStr::new));
    #[cfg(not(tremula_tsan))]
    {
        check::<tremula_sync::Arc<str>, _, str>(&WORDS);
        check::<tremula_sync::Arc<[u8]>, _, [u8]>(&bytes);
    }
}

pub(crate) fn a_set_is_asked_by_forms() {
    let set: OrderedSet<Vec<u8>> = [b"ash".to_vec(), b"elm".to_vec(), b"oak".to_vec()].into();
    assert!(set.contains(b"elm".as_slice()) && !set.contains(b"fir".as_slice()));
    assert_eq!(set.next(b"ash".as_slice()), Some(b"elm".to_vec()));
    assert_eq!(set.prev(b"ash".as_slice()), None);
    assert_eq!(set.at_or_above(b"b".as_slice()), Some(b"elm".to_vec()));
    assert_eq!(set.at_or_below(b"b".as_slice()), Some(b"ash".to_vec()));
    assert!(
        set.range_by(b"b".as_slice()..)
            .rev()
            .eq([b"oak".to_vec(), b"elm".to_vec()])
    );
    assert!(set.remove(b"elm".as_slice()) && !set.remove(b"elm".as_slice()));
}

/// The tests of this suite.
macro_rules! every_test {
    () => {
        every_test! {
            a_str_finds_what_the_string_finds,
            a_form_of_ones_own_finds_what_the_key_finds,
            a_form_that_does_not_say_its_bytes_finds_what_the_key_finds,
            what_is_inserted_beside_a_range_by_forms_is_not_in_it,
            forms_have_the_bytes_of_their_keys,
            a_set_is_asked_by_forms,
        }
    };
    ($($test:ident,)*) => {
        $(#[test]
        fn $test() {
            suite::$test();
        })*
    };
}
pub(crate) use every_test;
