//! Keys of many types, and the borrowed forms by which they are looked up.

use std::cmp::{Ordering, Reverse};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tremula::index::equivalent::{Comparable, Equivalent};
use tremula::{Art, ByteKey, KeyForm, OrderedIndex, OrderedMap, OrderedSet, TotalF64};

#[test]
fn a_string_is_asked_for_by_a_literal() {
    let map: OrderedMap<String, i32> = [("oak".to_owned(), 7)].into();
    assert_eq!(map.get("oak"), Some(7));
    assert_eq!(map.get(&String::from("oak")), Some(7));
    assert!(map.contains_key("oak"));
}

#[test]
fn a_string_is_asked_for_by_a_part_of_a_line() {
    let map: OrderedMap<String, i32> = [("oak".to_owned(), 7)].into();
    let line = String::from("oak and elm");
    let counts = line.split(" and ").map(|tree| map.get(tree));
    assert_eq!(counts.collect::<Vec<_>>(), [Some(7), None]);
}

#[test]
fn a_string_is_made_only_if_it_is_new() {
    let map: OrderedMap<String, i32> = OrderedMap::new();
    for word in "a b a".split(' ') {
        map.update_by(word, |count| {
            tremula::Update::Put(count.map_or(1, |n| n + 1))
        });
    }
    assert_eq!(map.get_or_insert_by("c", || 9), 9);
    assert_eq!(map.get_many_by(["a", "b", "x"]), [Some(2), Some(1), None]);
}

#[test]
fn a_static_text_is_asked_for_by_any_text() {
    let map = OrderedMap::from([("oak", 7)]);
    let asked = String::from("oak");
    assert_eq!(map.get(asked.as_str()), Some(7));
    assert_eq!(map.get(&"oak"), Some(7));
}

#[test]
fn a_counted_text_is_asked_for_by_a_literal() {
    let map: OrderedMap<Arc<str>, i32> = OrderedMap::new();
    map.insert("oak".into(), 7);
    assert_eq!(map.remove("oak"), Some(7));
}

#[test]
fn bytes_are_asked_for_by_slices() {
    let map: OrderedMap<Vec<u8>, i32> = OrderedMap::new();
    map.insert(b"key".to_vec(), 1);
    let buffer = *b"a key b";
    assert_eq!(map.get(&buffer[2..5]), Some(1));
    assert_eq!(map.get(b"key".as_slice()), Some(1));
}

#[test]
fn a_path_is_asked_for_by_a_borrowed_path() {
    let set: OrderedSet<PathBuf> = ["/etc/fstab", "/bin/ls"].map(PathBuf::from).into();
    assert!(set.contains(Path::new("/bin/ls")));
}

struct Version<'a>(&'a str, u64);

impl Equivalent<(String, u64)> for Version<'_> {
    fn equivalent(&self, key: &(String, u64)) -> bool {
        self.compare(key).is_eq()
    }
}

impl Comparable<(String, u64)> for Version<'_> {
    fn compare(&self, (name, number): &(String, u64)) -> Ordering {
        self.0.cmp(name).then(self.1.cmp(number))
    }
}

impl KeyForm<(String, u64)> for Version<'_> {}

#[test]
fn a_pair_is_asked_for_by_a_borrowed_pair() {
    let map = OrderedMap::from([(("a".to_owned(), 1), 'x'), (("a".to_owned(), 5), 'y')]);
    assert_eq!(map.get(&Version("a", 5)), Some('y'));
    let newest = map.at_or_below(&Version("a", 4));
    assert_eq!(newest.map(|(_, letter)| letter), Some('x'));
    assert_eq!(map.range_by(&Version("a", 2)..).count(), 1);
}

#[test]
fn a_derived_struct() {
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Employee {
        department: &'static str,
        number: u32,
    }
    let ann = Employee {
        department: "sales",
        number: 7,
    };
    let map = OrderedMap::from([(ann.clone(), 'x')]);
    assert_eq!(map.get(&ann), Some('x'));
    assert_eq!(map.first().unwrap().0.department, "sales");
}

#[test]
fn a_derived_enum() {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Level {
        Low,
        High { rank: u8 },
    }
    let set = OrderedSet::from([Level::High { rank: 2 }, Level::Low, Level::High { rank: 1 }]);
    assert!(
        set.iter()
            .eq([Level::Low, Level::High { rank: 1 }, Level::High { rank: 2 }])
    );
}

#[test]
fn a_struct_with_a_hand_written_order() {
    #[derive(Clone, PartialEq, Eq)]
    struct Task(&'static str, u8);
    impl Ord for Task {
        fn cmp(&self, other: &Self) -> Ordering {
            other.1.cmp(&self.1).then_with(|| self.0.cmp(other.0))
        }
    }
    impl PartialOrd for Task {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    let queue = OrderedSet::from([Task("sweep", 1), Task("alarm", 9)]);
    assert_eq!(queue.pop_first().map(|task| task.0), Some("alarm"));
}

#[test]
fn a_derived_byte_form_in_a_radix_tree() {
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
    struct Reading {
        sensor: u16,
        time: Reverse<u64>,
    }
    let tree = Art::new();
    for time in [1, 3, 2] {
        tree.insert(
            Reading {
                sensor: 7,
                time: Reverse(time),
            },
            'x',
        );
    }
    assert_eq!(tree.first().map(|(reading, _)| reading.time.0), Some(3));
}

#[test]
fn the_greatest_first() {
    let map = OrderedMap::from([(Reverse(1), 'a'), (Reverse(9), 'z')]);
    assert_eq!(map.pop_first(), Some((Reverse(9), 'z')));
    assert_eq!(map.get(&Reverse(1)), Some('a'));
}

#[test]
fn an_optional_key() {
    let set = OrderedSet::from([Some(3), None, Some(1)]);
    assert!(set.iter().eq([None, Some(1), Some(3)]));
}

#[test]
fn an_array_and_a_tuple() {
    let map = OrderedMap::from([([1, 2], (3, 'x'))]);
    let by_parts: OrderedSet<(i32, [i32; 2], char)> = map
        .iter()
        .map(|(point, (count, letter))| (count, point, letter))
        .collect();
    assert_eq!(by_parts.first(), Some((3, [1, 2], 'x')));
}

#[test]
fn floats_in_their_total_order() {
    let set: OrderedSet<TotalF64> = [2.5, -1.0, f64::INFINITY].map(TotalF64).into();
    assert_eq!(set.first().map(|float| float.0), Some(-1.0));
    assert!(set.range(TotalF64(0.0)..TotalF64(3.0)).eq([TotalF64(2.5)]));
}

#[test]
fn characters_and_booleans() {
    let set: OrderedSet<(bool, char)> = "bA".chars().map(|c| (c.is_uppercase(), c)).collect();
    assert!(set.iter().map(|(_, c)| c).eq(['b', 'A']));
}
