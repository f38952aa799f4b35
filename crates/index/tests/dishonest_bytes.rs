//! Keys whose byte forms, lengths and heads break the contract of [`ByteKey`], or whose code panics
//! or calls the map, on the engines that use nothing else of a key. Such a key may get wrong
//! answers or a panic. It must not read memory other than its value's, and it must not leave a lock
//! held: then the next operation would wait for ever.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use support::counted::Ledger;
use support::misled::unless_misled;
use tremula_index::{Art, ByteKey, Direction, KeyRange, Masstree, OrderedIndex, Storable, Update};

/// How long an operation may take. Normally it takes less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `work` on a thread of its own, and panics if it does not end.
fn ends<R: Send + 'static>(what: &str, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || answer.send(work()));
    let answer = answered.recv_timeout(PATIENCE);
    answer.unwrap_or_else(|_| panic!("{what}: it has panicked, or does not end"))
}

/// Whether `work` ran to its end without a panic.
fn succeeds<R>(work: impl FnOnce() -> R) -> bool {
    unless_misled(work).is_some()
}

/// A key that is its bytes. It claims that its head determines it, and a length of its form; both
/// are true for some keys only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OfLength<const LENGTH: usize>(Vec<u8>);

impl<const LENGTH: usize> ByteKey for OfLength<LENGTH> {
    const HEAD_IS_KEY: bool = true;
    const LENGTH: Option<usize> = Some(LENGTH);

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.0)
    }

    fn from_head(head: u64) -> Option<Self> {
        Some(Self(head.to_be_bytes()[..LENGTH.min(8)].to_vec()))
    }
}

/// Calls every operation of a map with keys of these bytes. A key may find a wrong value, but only
/// a value that was inserted.
fn use_in_every_way<K: ByteKey>(map: &dyn OrderedIndex<K, String>, keys: &[K]) {
    let value = |number: usize| format!("a value, not an address: {number}");
    let is_value = |value: &String| assert!(value.starts_with("a value, "), "{value:?}");
    // The map is still empty: the slots are vacant.
    for key in keys {
        assert_eq!(map.get(key), None);
        assert!(!map.contains_key(key));
    }
    for (number, key) in keys.iter().enumerate() {
        map.insert(key.clone(), value(number))
            .iter()
            .for_each(is_value);
        map.get(key).iter().for_each(is_value);
    }
    let mut many = Vec::new();
    map.get_many(keys, &mut many);
    many.iter().flatten().for_each(is_value);
    let mut all = Vec::new();
    for direction in [Direction::Ascending, Direction::Descending] {
        for low in keys {
            let range = KeyRange::new(Included(low), Unbounded);
            map.scan(range, direction, usize::MAX, &mut all);
        }
    }
    all.iter().for_each(|(_, value)| is_value(value));
    for key in keys {
        for step in [map.next(key), map.prev(key)] {
            step.iter().for_each(|(_, value)| is_value(value));
        }
        map.update(key.clone(), &mut |old| {
            old.into_iter().for_each(is_value);
            Update::Put(value(100))
        });
        let _ = map.insert_if_absent(key.clone(), value(200));
        map.get_with(key, &mut |value| is_value(value));
    }
    let [low, high] = [keys.iter().min(), keys.iter().max()].map(Option::unwrap);
    for key in keys {
        map.remove(key).iter().for_each(is_value);
        map.pop_last().iter().for_each(|(_, value)| is_value(value));
        map.insert(key.clone(), value(300));
    }
    map.remove_range(KeyRange::new(Included(low), Excluded(high)));
    while let Some((_, value)) = map.pop_first() {
        is_value(&value);
    }
    assert_eq!(map.len(), 0);
}

/// Byte forms of every length from nothing to more than a head, with long common prefixes.
fn forms<const LENGTH: usize>() -> Vec<OfLength<LENGTH>> {
    let lengths = [0, 1, 2, 3, 7, 8, 9, 16, 40];
    let forms = lengths.into_iter().flat_map(|length| {
        [b'a', b'b', b'z'].map(|last| {
            let mut form = vec![b'a'; length];
            if let Some(byte) = form.last_mut() {
                *byte = last;
            }
            OfLength(form)
        })
    });
    forms.collect()
}

/// Composite keys state the lengths and the heads that their parts state.
#[test]
fn parts_that_have_not_the_length_that_they_state_lead_to_no_other_memory() {
    fn use_as<K: ByteKey>(make: impl Fn(&[OfLength<2>; 2]) -> K) {
        let forms = forms::<2>();
        let pairs = forms.iter().zip(forms.iter().rev());
        let keys: Vec<K> = pairs.map(|(a, b)| make(&[a.clone(), b.clone()])).collect();
        use_in_every_way(&Art::new(), &keys);
        use_in_every_way(&Masstree::<_, _, 3>::default(), &keys);
    }
    use_as(Clone::clone);
    use_as(|[a, b]| (a.clone(), b.clone()));
    use_as(|[a, b]| (a.clone(), Some(b.clone())));
    use_as(|[a, _]| Reverse(a.clone()));
    use_as(|[a, b]| if a.0.len() > 3 { None } else { Some(b.clone()) });
    use_as(|[a, b]| [b, a, b, a, b].map(Clone::clone));
}

/// When the length was trusted, a shorter form led to the slot for ends in a node of values, and
/// its null pointer was read as a value. A longer form put nodes and leaves below such a node, and
/// their addresses were read as values.
#[test]
fn a_length_that_byte_forms_do_not_have_leads_to_no_other_memory() {
    fn try_length<const LENGTH: usize>() {
        use_in_every_way(&Art::new(), &forms::<LENGTH>());
        use_in_every_way(&Masstree::<_, _, 3>::default(), &forms::<LENGTH>());
        use_in_every_way(&Masstree::<_, _, 15>::default(), &forms::<LENGTH>());
    }
    try_length::<0>();
    try_length::<1>();
    try_length::<2>();
    try_length::<5>();
    try_length::<8>();
    try_length::<9>();
    try_length::<1_000>();
}

/// The same for a bulk load, which reads the forms itself.
#[test]
fn a_bulk_load_takes_as_many_bytes_as_the_length_says() {
    let keys = forms::<2>();
    let sorted = [b'a', b'b', b'c'].map(|last| OfLength::<2>([&[b'x'; 20][..], &[last]].concat()));
    let refused = Art::from_sorted(sorted.map(|key| (key, 1))).err();
    assert_eq!(
        refused.map(|error| error.position),
        Some(1),
        "in two bytes they are the same"
    );
    let short = [OfLength::<2>(Vec::new()), OfLength(vec![3])];
    let loaded = Art::from_sorted(short.map(|key| (key, "a value, not null".to_owned())));
    let loaded = loaded.unwrap();
    for key in &keys {
        assert!(
            loaded
                .get(key)
                .is_none_or(|value| value == "a value, not null")
        );
    }
    assert_eq!(loaded.len(), 2);
}

/// A key that claims a length, wrongly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SaysEight(Vec<u8>);

impl ByteKey for SaysEight {
    const LENGTH: Option<usize> = Some(8);

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.0)
    }
}

#[test]
fn a_length_without_a_head_is_not_trusted_either() {
    let keys: Vec<_> = forms::<8>()
        .into_iter()
        .map(|key| SaysEight(key.0))
        .collect();
    use_in_every_way(&Art::new(), &keys);
    use_in_every_way(&Masstree::<_, _, 3>::default(), &keys);
}

thread_local! {
    /// The byte forms that keys return one after the other on this thread; the last is repeated.
    static SCRIPT: RefCell<Vec<&'static [u8]>> = const { RefCell::new(Vec::new()) };
    /// Whether keys cannot be made from their heads.
    static HEADS_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// A key whose byte form comes from its thread's script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scripted(u8);

impl ByteKey for Scripted {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        let form = SCRIPT.with_borrow_mut(|script| match script[..] {
            [last] => last,
            _ => script.remove(0),
        });
        read(form)
    }
}

fn follow_script(script: &[&'static [u8]]) {
    SCRIPT.set(script.to_vec());
}

/// A key has the byte form of another one, but seemed different for a moment. Two children under
/// one symbol made a node with one child, and a removal left that node empty. A removal of a range
/// then waited for the lock of that node, which it held itself. The prefix is longer than what a
/// node stores of it.
#[test]
fn a_key_that_is_another_a_moment_later_leaves_no_node_without_children() {
    const LONG: &[u8] = &[b'a'; 20];
    fn scenario<T: OrderedIndex<Scripted, u64>>(tree: T) {
        follow_script(&[LONG]);
        tree.insert(Scripted(1), 1);
        // The form of the key and that of the leaf: first different, then, when the two are to
        // part, equal.
        follow_script(&[LONG, b"else", LONG, b"else", LONG]);
        succeeds(|| tree.insert(Scripted(2), 2));
        follow_script(&[LONG]);
        tree.remove(&Scripted(1));
        follow_script(&[LONG, b"b", LONG]);
        tree.remove_range(KeyRange::new(
            Included(&Scripted(3)),
            Excluded(&Scripted(4)),
        ));
        follow_script(&[LONG]);
        tree.insert(Scripted(5), 5);
        assert_eq!(tree.get(&Scripted(5)), Some(5));
    }
    ends("art", || scenario(Art::new()));
    ends("masstree", || scenario(Masstree::<_, _, 3>::default()));
}

/// A key that once forgets what was made from its bytes, and panics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Forgetful(u64);

thread_local!(static FORGETS: Cell<bool> = const { Cell::new(false) });

impl ByteKey for Forgetful {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        let made = read(&self.0.to_be_bytes());
        if FORGETS.replace(false) {
            std::mem::forget(made);
            panic!("forgotten");
        }
        made
    }
}

/// What an operation makes from a key's bytes is returned through the key's code. If that is a lock
/// guard, the key can forget it, and the next writer waits for ever.
#[test]
fn a_key_that_forgets_what_was_made_of_its_bytes_leaves_no_lock_held() {
    fn scenario<T: OrderedIndex<Forgetful, u64>>(tree: T) {
        let uses: [fn(&T, Forgetful); 6] = [
            |tree, key| {
                tree.insert(key, 1);
            },
            |tree, key| {
                let _ = tree.insert_if_absent(key, 2);
            },
            |tree, key| {
                tree.update(key, &mut |_| Update::Put(3));
            },
            |tree, key| {
                tree.remove(&key);
            },
            |tree, key| {
                tree.get(&key);
            },
            |tree, key| {
                tree.next(&key);
            },
        ];
        for use_once in uses {
            for key in [1, 2] {
                FORGETS.set(true);
                assert!(!succeeds(|| use_once(&tree, Forgetful(key))));
                use_once(&tree, Forgetful(key));
            }
        }
        tree.remove_range(KeyRange::all());
        assert_eq!(tree.len(), 0);
    }
    ends("art", || scenario(Art::new()));
    ends("masstree", || scenario(Masstree::<_, _, 3>::default()));
}

/// A key of three bytes, determined by its head unless `HEADS_FAIL` is set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Three([u8; 3]);

impl ByteKey for Three {
    const HEAD_IS_KEY: bool = true;
    const LENGTH: Option<usize> = Some(3);

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.0)
    }

    fn from_head(head: u64) -> Option<Self> {
        assert!(!HEADS_FAIL.get(), "no key comes of its head");
        Some(Self(<[u8; 3]>::from_head(head)?))
    }
}

/// Removes a range, an entry and the first entry, each while keys cannot be made from their heads.
/// So the rest of a node of values cannot become a leaf. This was noticed only after the prefix of
/// another node, which takes the place of its parent, had been changed: then every operation that
/// went there restarted for ever.
#[test]
fn a_removal_whose_keys_do_not_come_of_their_heads_has_not_happened() {
    let entries: Vec<Three> = [
        [1, 0, 0],
        [1, 0, 9],
        [2, 0, 0],
        [2, 5, 1],
        [2, 5, 2],
        [3, 0, 0],
    ]
    .map(Three)
    .into();
    fn left<T: OrderedIndex<Three, u64>>(tree: &T, entries: &[Three]) -> Vec<Option<u64>> {
        entries.iter().map(|key| tree.get(key)).collect()
    }
    fn scenario<T: OrderedIndex<Three, u64> + 'static>(tree: T, entries: Vec<Three>) {
        for (number, key) in entries.iter().enumerate() {
            tree.insert(key.clone(), number as u64);
        }
        let all = left(&tree, &entries);
        let range = KeyRange::new(Included(&entries[1]), Included(&entries[2]));
        HEADS_FAIL.set(true);
        if !succeeds(|| tree.remove_range(range)) {
            assert_eq!(left(&tree, &entries), all);
        }
        let before = left(&tree, &entries);
        if !succeeds(|| tree.remove(&entries[3])) {
            assert_eq!(left(&tree, &entries), before);
        }
        let before = left(&tree, &entries);
        if !succeeds(|| tree.pop_first()) {
            assert_eq!(left(&tree, &entries), before);
        }
        // All entries are still there.
        HEADS_FAIL.set(false);
        for key in &entries {
            tree.insert(key.clone(), 7);
        }
        assert_eq!(left(&tree, &entries), [Some(7); 6]);
        assert_eq!(tree.remove_range(KeyRange::all()), 6);
    }
    let same = entries.clone();
    ends("art", || scenario(Art::new(), entries));
    ends("masstree", || {
        scenario(Masstree::<_, _, 3>::default(), same)
    });
}

/// A key that is determined by its head, and that calls the map when it is dropped.
struct Asking {
    bytes: [u8; 2],
    map: Option<Arc<dyn OrderedIndex<Asking, String>>>,
}

thread_local!(static ASKING: Cell<bool> = const { Cell::new(false) });

impl Drop for Asking {
    fn drop(&mut self) {
        let Some(map) = self.map.take() else {
            return;
        };
        // The key with which the map is called is dropped too.
        if ASKING.replace(true) {
            return;
        }
        for last in 0..=255 {
            let key = Self::plain([self.bytes[0], last]);
            map.get(&key);
            map.insert(key.clone(), "by the key".to_owned());
            map.update(key, &mut |_| Update::Put("by the key".to_owned()));
        }
        ASKING.set(false);
    }
}

impl Asking {
    fn plain(bytes: [u8; 2]) -> Self {
        Self { bytes, map: None }
    }
}

impl Clone for Asking {
    fn clone(&self) -> Self {
        Self::plain(self.bytes)
    }
}

impl Ord for Asking {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl PartialOrd for Asking {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Asking {}

impl ByteKey for Asking {
    const HEAD_IS_KEY: bool = true;
    const LENGTH: Option<usize> = Some(2);

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.bytes)
    }

    fn from_head(head: u64) -> Option<Self> {
        Some(Self::plain(<[u8; 2]>::from_head(head)?))
    }
}

/// If the head is the key, a new entry does not keep the key that it came with. Dropping that key
/// runs user code, which waited for the lock of the node that received the entry. Entries go to a
/// node with space, to one without, below a new node, and in by each of the operations.
#[test]
fn a_key_that_is_not_kept_is_dropped_when_no_lock_is_held() {
    fn scenario(what: &str, make: fn() -> Arc<dyn OrderedIndex<Asking, String>>) {
        type Put = fn(&dyn OrderedIndex<Asking, String>, Asking);
        let ways: [(&str, Put); 3] = [
            ("insert", |map, key| drop(map.insert(key, "new".to_owned()))),
            ("insert_if_absent", |map, key| {
                drop(map.insert_if_absent(key, "new".to_owned()));
            }),
            ("update", |map, key| {
                map.update(key, &mut |_| Update::Put("new".to_owned()));
            }),
        ];
        for (way, put) in ways {
            for already in [1, 2, 4, 16, 48] {
                ends(&format!("{what}: {way} beside {already}"), move || {
                    let map = make();
                    for last in 0..already {
                        map.insert(Asking::plain([7, last]), "old".to_owned());
                    }
                    let key = Asking {
                        bytes: [7, 200],
                        map: Some(Arc::clone(&map)),
                    };
                    put(&*map, key);
                    assert_eq!(map.len(), 256);
                });
            }
        }
    }
    scenario("art", || Arc::new(Art::new()));
    scenario("masstree", || Arc::new(Masstree::<_, _, 15>::default()));
}

/// A key whose order is independent of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    rank: u32,
    byte: u8,
}

impl ByteKey for Ranked {
    const HEAD_IS_KEY: bool = true;
    const LENGTH: Option<usize> = Some(1);

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&[self.byte])
    }

    fn from_head(head: u64) -> Option<Self> {
        let byte = head.to_be_bytes()[0];
        Some(Self { rank: 0, byte })
    }
}

/// A removal of a range unlinks exactly what it counts and frees, also if there is something
/// between the bounds by the order of the keys, but not by their bytes.
#[test]
fn a_range_of_bounds_that_do_not_ascend_loses_no_value() {
    fn scenario<V: Storable, T: OrderedIndex<Ranked, V>>(
        make: impl Fn() -> T,
        value: impl Fn() -> V,
    ) {
        let key = |rank, byte| Ranked { rank, byte };
        for (low, high) in [(3, 3), (3, 2), (2, 5), (0, 200), (200, 0)] {
            let (low, high) = (key(1, low), key(2, high));
            for range in [
                KeyRange::new(Included(&low), Excluded(&high)),
                KeyRange::new(Excluded(&low), Included(&high)),
                KeyRange::new(Excluded(&low), Excluded(&high)),
                KeyRange::new(Included(&low), Included(&high)),
            ] {
                let tree = make();
                for byte in 0..=9 {
                    tree.insert(key(0, byte), value());
                }
                let removed = tree.remove_range(range);
                let left = (0..=9)
                    .filter(|byte| tree.contains_key(&key(0, *byte)))
                    .count();
                assert_eq!((removed + left, tree.len()), (10, left), "{range:?}");
            }
        }
    }
    let ledger = Ledger::default();
    scenario(Art::new, || ledger.make(1));
    scenario(Masstree::<_, _, 3>::default, || ledger.make(1));
    ledger.assert_settled();
}

/// A bulk load of keys that ascend while their bytes do not is refused, and loses nothing.
#[test]
fn a_bulk_load_is_refused_where_bytes_do_not_ascend() {
    let ledger = Ledger::default();
    for bytes in [[1, 2, 2], [1, 3, 2], [5, 4, 6]] {
        let keys = bytes.into_iter().zip(0..);
        let keys = keys.map(|(byte, rank)| (Ranked { rank, byte }, ledger.make(1)));
        assert!(Art::from_sorted(keys).is_err());
    }
    ledger.assert_settled();
}
