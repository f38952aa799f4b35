//! Keys that an engine keeps as their heads only, and whose heads lie, panic, or call the map.
//!
//! Such a key may get wrong answers or a panic. The map must stay whole: every value is dropped
//! once, the engine's invariants hold, no lock stays held, and honest keys are found when the lies
//! are over. The keys of `hostile/` have a `Drop`, so that no engine keeps only their heads.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

mod support;

use std::cell::{Cell, RefCell};
use std::ops::Bound::{Excluded, Included};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use support::counted::Ledger;
use support::misled::unless_misled;
use support::suite::Random;
use tremula_index::key::ByteHead;
use tremula_index::{
    Art, Aspen, ByteKey, Direction, KeyRange, Masstree, OlcBTree, OrderedIndex, Storable, Update,
    kit,
};

/// How long a scenario may take. Normally it takes less than a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `work` on a thread of its own, and panics if it does not end.
fn ends<R: Send + 'static>(what: &str, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || answer.send(work()));
    let answer = answered.recv_timeout(PATIENCE);
    answer.unwrap_or_else(|_| panic!("{what}: it has panicked, or does not end"))
}

thread_local! {
    static RANDOM: RefCell<Random> = RefCell::new(Random::new(1));
    /// One call of the code of a key in this many lies or panics; none if it is 0.
    static LIES: Cell<u32> = const { Cell::new(0) };
    /// What a key does when it is made from its head.
    static CALLS: RefCell<Option<Arc<dyn OrderedIndex<Whole, u64>>>> = const { RefCell::new(None) };
}

fn random(end: u32) -> u32 {
    RANDOM.with_borrow_mut(|random| random.below(end))
}

fn lies() -> bool {
    LIES.get() > 0 && random(LIES.get()) == 0
}

/// A key that its head determines, as it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Whole(u64);

impl ByteKey for Whole {
    const HEAD_IS_KEY: bool = true;
    const LENGTH: Option<usize> = Some(8);

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        if lies() {
            return read(&u64::from(random(400)).to_be_bytes());
        }
        read(&self.0.to_be_bytes())
    }

    fn head(&self) -> u64 {
        match lies() {
            true if random(4) == 0 => panic!("no head"),
            true => u64::from(random(400)),
            false => self.0,
        }
    }

    fn from_head(head: u64) -> Option<Self> {
        let map = CALLS.with_borrow_mut(Option::take);
        if let Some(map) = map {
            // Another thread may have the map, too: it sees a change at each key.
            map.insert(Self(2 * u64::from(random(200)) + 1), 7);
            map.remove(&Self(2 * u64::from(random(200)) + 1));
            CALLS.set(Some(map));
        }
        match lies() {
            true if random(2) == 0 => None,
            true => Some(Self(u64::from(random(400)))),
            false => Some(Self(head)),
        }
    }
}

/// One random operation.
fn operate<V: Storable>(map: &dyn OrderedIndex<Whole, V>, make: &dyn Fn() -> V) {
    let (key, other) = (Whole(random(400).into()), Whole(random(400).into()));
    let range = KeyRange::new(Included(&key), Excluded(&other));
    match random(16) {
        0..=4 => drop(map.insert(key, make())),
        5..=6 => drop(map.remove(&key)),
        7 => drop(map.insert_if_absent(key, make())),
        8 => drop(map.update(key, &mut |old| match old {
            Some(_) => Update::Remove,
            None => Update::Put(make()),
        })),
        9 if random(4) == 0 => drop((map.pop_first(), map.pop_last())),
        9 => drop(map.get(&key)),
        10 => drop((map.next(&key), map.prev(&key))),
        11 => map.scan(range, Direction::Ascending, 50, &mut Vec::new()),
        12 => map.scan(range, Direction::Descending, 50, &mut Vec::new()),
        13 => map.get_many(&[key, other], &mut Vec::new()),
        _ if random(8) == 0 => drop(map.remove_range(range)),
        _ => drop(map.snapshot(KeyRange::all())),
    }
}

/// Two threads whose keys lie, and then one whose keys do not.
fn stays_whole<V: Storable, I: kit::Implementation<Whole, V>>(
    map: &I,
    make: &(impl Fn() -> V + Sync),
) {
    thread::scope(|scope| {
        for seed in 0..2 {
            scope.spawn(move || {
                RANDOM.set(Random::new(seed));
                for _ in 0..20_000 {
                    LIES.set(20);
                    unless_misled(|| operate(map, make));
                    LIES.set(0);
                }
            });
        }
    });
    map.check_invariants();
    for number in 0..400 {
        OrderedIndex::insert(map, Whole(number), make());
        assert!(OrderedIndex::contains_key(map, &Whole(number)));
    }
    map.check_invariants();
    let all = OrderedIndex::len(map);
    assert_eq!(OrderedIndex::remove_range(map, KeyRange::all()), all);
    assert!(all >= 400 && OrderedIndex::is_empty(map));
}

macro_rules! engine {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn heads_that_lie_lose_no_value() {
                super::silence_liars();
                ends(stringify!($name), || stays_whole::<u64, _>(&$make, &|| 7));
                let ledger = Ledger::default();
                let theirs = ledger.clone();
                ends(stringify!($name), move || {
                    stays_whole(&$make, &|| theirs.make(1));
                });
                // Other tests' threads may be pinned.
                for _ in 0..1_000_000 {
                    if ledger.alive() == 0 {
                        break;
                    }
                    tremula_sync::epoch::pin().flush();
                    thread::yield_now();
                }
                ledger.assert_settled();
            }

            #[test]
            fn a_scan_may_call_the_map_where_it_makes_keys() {
                ends(stringify!($name), || calls_itself(Arc::new($make)));
            }
        }
    };
}

/// Silences the panics of threads that lie, because there are thousands.
fn silence_liars() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let say = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if LIES.get() == 0 {
                say(panic);
            }
        }));
    });
}

/// Scans while each key that is made writes to the map: the leaves that a scan has seen have always
/// changed, so it may resort to locks, under which it must not make keys.
fn calls_itself(map: Arc<dyn OrderedIndex<Whole, u64>>) {
    for number in 0..200 {
        map.insert(Whole(2 * number), number);
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        for limit in [1, 70, usize::MAX] {
            let mut entries = Vec::new();
            CALLS.set(Some(Arc::clone(&map)));
            map.scan(KeyRange::all(), direction, limit, &mut entries);
            CALLS.set(None);
            let mut even: Vec<_> = entries.iter().filter(|(key, _)| key.0 % 2 == 0).collect();
            if direction == Direction::Descending {
                even.reverse();
            }
            assert!(
                even.iter().all(|(key, number)| key.0 == 2 * number),
                "{entries:?}"
            );
            assert!(limit < usize::MAX || even.len() == 200, "{entries:?}");
        }
    }
}

engine!(aspen, Aspen::<Whole, _>::default());
engine!(
    aspen_of_small_leaves,
    Aspen::<Whole, _, ByteHead, 1>::default()
);
engine!(masstree_of_small_nodes, Masstree::<Whole, _, 3>::default());
engine!(art, Art::<Whole, _>::new());

// A value whose insertion a head ends by a panic may be leaked there.
#[test]
fn a_scan_of_a_b_tree_may_call_it_where_it_makes_keys() {
    let make = OlcBTree::<Whole, _, ByteHead, 0>::default;
    ends("b_tree", move || calls_itself(Arc::new(make())));
}
