//! Keys whose byte forms, lengths and heads are not what [`ByteKey`] asks for, or whose code
//! panics or calls the map: the engines that look at nothing else of a key. Such a key may get
//! wrong answers, or a panic. It must not get at memory that is not its value's, and it must not
//! leave a lock held: then the next operation waits for ever.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::cell::{Cell, RefCell};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use support::counted::Ledger;
use tremula_index::{
    Art, ByteKey, Direction, KeyRange, Masstree, NotSorted, OrderedIndex, Storable, Update,
};

/// How long an operation may take: it takes less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `work` on a thread of its own, and panics if it does not end.
fn ends<R: Send + 'static>(what: &str, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || answer.send(work()));
    let answer = answered.recv_timeout(PATIENCE);
    answer.unwrap_or_else(|_| panic!("{what}: it has panicked, or does not end"))
}

/// Whether `work` ran to its end: not so if it panicked.
fn succeeds<R>(work: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_ok()
}

/// A key that is its bytes. It says that its head tells it all, and how long its form is: which
/// holds for some of them.
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

/// Does everything once to a map with keys of these bytes. What a key finds may be wrong, but it
/// is a value that went in.
fn use_in_every_way<K: ByteKey>(map: &dyn OrderedIndex<K, String>, keys: &[K]) {
    let value = |number: usize| format!("a value, not an address: {number}");
    let is_value = |value: &String| assert!(value.starts_with("a value, "), "{value:?}");
    // Before anything is there: the slots are vacant.
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

/// Byte forms of every length from nothing to more than a head, with much in common.
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

/// With the length taken on trust, a form that is shorter led to the slot of the end of a node of
/// values, a null pointer that was read as a value; a longer one put nodes and leaves below such
/// a node, and the address of one was read as a value.
#[test]
fn a_length_that_byte_forms_do_not_have_leads_to_no_other_memory() {
    fn try_length<const LENGTH: usize>() {
        use_in_every_way(&Art::new(), &forms::<LENGTH>());
        use_in_every_way(&Masstree::<_, _, 3>::new(), &forms::<LENGTH>());
        use_in_every_way(&Masstree::<_, _, 15>::new(), &forms::<LENGTH>());
    }
    try_length::<0>();
    try_length::<1>();
    try_length::<2>();
    try_length::<5>();
    try_length::<8>();
    try_length::<9>();
    try_length::<1_000>();
}

/// The same of a bulk load, which looks at the forms by itself.
#[test]
fn a_bulk_load_takes_as_many_bytes_as_the_length_says() {
    let keys = forms::<2>();
    let sorted = [b'a', b'b', b'c'].map(|last| OfLength::<2>([&[b'x'; 20][..], &[last]].concat()));
    let refused = Art::from_sorted(sorted.map(|key| (key, 1))).err();
    assert_eq!(
        refused,
        Some(NotSorted { position: 1 }),
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

/// A key with a length only, which is none.
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
    use_in_every_way(&Masstree::<_, _, 3>::new(), &keys);
}

thread_local! {
    /// The byte forms that keys give one after the other on this thread, the last for ever.
    static SCRIPT: RefCell<Vec<&'static [u8]>> = const { RefCell::new(Vec::new()) };
    /// Whether heads lead back to keys.
    static HEADS_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// A key whose byte form is what the script of its thread says.
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

/// A key with the byte form of another, which seemed different for a moment: two children under
/// one symbol made a node of one child, which a removal left without any. A removal of a range
/// then waited for the lock of that node, which it held itself. The prefix is longer than what a
/// node stores of it.
#[test]
fn a_key_that_is_another_a_moment_later_leaves_no_node_without_children() {
    const LONG: &[u8] = &[b'a'; 20];
    fn scenario<T: OrderedIndex<Scripted, u64>>(tree: T) {
        follow_script(&[LONG]);
        tree.insert(Scripted(1), 1);
        // The key's form, that of the leaf: unequal, and then, when they part, the same.
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
    ends("masstree", || scenario(Masstree::<_, _, 3>::new()));
}

/// A key that forgets, once, what was made of its bytes, and panics.
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

/// What an operation makes of a key's bytes goes back through the key's code. If that is a lock,
/// the key can forget it, and the next writer waits for ever.
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
    ends("masstree", || scenario(Masstree::<_, _, 3>::new()));
}

/// A key of three bytes whose head tells it, unless heads fail.
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

/// Removes a range, an entry, the first: each while no key comes of its head. What is left of a
/// node of values then cannot become a leaf. The prefix of another node, which takes the place of
/// the one above it, had been changed before that was found out: whoever went there restarted for
/// ever.
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
        // Everything is still there to be used.
        HEADS_FAIL.set(false);
        for key in &entries {
            tree.insert(key.clone(), 7);
        }
        assert_eq!(left(&tree, &entries), [Some(7); 6]);
        assert_eq!(tree.remove_range(KeyRange::all()), 6);
    }
    let same = entries.clone();
    ends("art", || scenario(Art::new(), entries));
    ends("masstree", || scenario(Masstree::<_, _, 3>::new(), same));
}

/// A key that its head tells, and that asks the map when it is dropped.
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
        // What the map is asked with is dropped, too.
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

/// Where the head is the key, a new entry does not keep the key that it came with: its drop is
/// code of the user's, and it waited for the lock of the node that the entry went into. Entries
/// come into a node with room, one without, below a new node, and by each of the operations.
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
    scenario("masstree", || Arc::new(Masstree::<_, _, 15>::new()));
}

/// A key with an order of its own, which knows nothing of its bytes.
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

/// A removal of a range takes out of the tree exactly what it counts and frees, also where the
/// order of the keys says that there is something between two bounds, and their bytes do not.
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
    scenario(Masstree::<_, _, 3>::new, || ledger.make(1));
    ledger.assert_settled();
}

/// A bulk load of keys that ascend, and bytes that do not, is refused; nothing is lost.
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
