//! The skip lists with keys that break the promises of `Ord`, `KeyHead` and `ByteKey`. Answers
//! about such keys may be wrong, but memory must stay safe.
//!
//! These tests would fail if a node were freed while a level is linked to it (its value is read or
//! dropped again, which mostly crashes), if a node were never freed, or if a key were read where
//! none was written.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::cell::Cell;
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use support::counted::{Counted, Ledger};
use support::misled::text_of;
use support::suite::Random;
use tremula_index::key::{KeyHead, NoHead};
use tremula_index::{ByteKey, Direction, KeyRange, OrderedIndex, Update};
use tremula_papers::{BackgroundSkipList, SkipList};

type Value = Counted<u64>;

/// The most operations on a list until a removed value is dropped.
const PROMISE: u64 = 4_096;

/// Waits until the list's own thread, if it has one, has done its tasks.
fn wait_for_thread<K: Ord + Clone>(list: &dyn OrderedIndex<K, Value>) {
    while list.shape().get("left_to_thread").unwrap_or(0) > 0 {
        thread::yield_now();
    }
}

/// A key whose `cmp` is given by a function.
macro_rules! ordered_by {
    ($name:ident, |$a:ident, $b:ident| $cmp:expr) => {
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                let ($a, $b) = (self, other);
                $cmp
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for $name {}
    };
}

/// Floats. An incomparable float is greater, both ways.
#[derive(Clone, Debug)]
struct ElseGreater(f64);
ordered_by!(ElseGreater, |a, b| a.0.partial_cmp(&b.0).unwrap_or(Greater));

/// The same, but an incomparable float is less, both ways.
#[derive(Clone, Debug)]
struct ElseLess(f64);
ordered_by!(ElseLess, |a, b| a.0.partial_cmp(&b.0).unwrap_or(Less));

/// The same, but an incomparable float is equal to everything.
#[derive(Clone, Debug)]
struct ElseEqual(f64);
ordered_by!(ElseEqual, |a, b| a.0.partial_cmp(&b.0).unwrap_or(Equal));

/// A key that changes in the list, together with its copies: every twentieth comparison moves it.
#[derive(Clone, Debug)]
struct Moving(Arc<AtomicU64>);
ordered_by!(Moving, |a, b| {
    if whim(20) == 0 {
        a.0.store(whim(KEYS), Relaxed);
    }
    a.0.load(Relaxed).cmp(&b.0.load(Relaxed))
});

/// A key of which one comparison in ten is random, and one in forty panics.
#[derive(Clone, Debug)]
struct Fickle(u64);
ordered_by!(Fickle, |a, b| match whim(40) {
    0 => resume_unwind(Box::new("a comparison")),
    1..4 => [Less, Equal, Greater][whim(3) as usize],
    _ => a.0.cmp(&b.0),
});

/// The byte form is as unreliable as the order, and so is the head.
impl ByteKey for Fickle {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match whim(10) {
            0 => read(&whim(KEYS).to_be_bytes()[whim(8) as usize..]),
            _ => read(&self.0.to_be_bytes()),
        }
    }
}

/// A key that claims that its head determines it, which is wrong, and whose head is not always made
/// from it either.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SaysHeadIsKey(String);

impl ByteKey for SaysHeadIsKey {
    const HEAD_IS_KEY: bool = true;

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.0.as_bytes())
    }

    fn from_head(head: u64) -> Option<Self> {
        match whim(20) {
            0 => None,
            1 => resume_unwind(Box::new("a key")),
            _ => Some(Self(format!("{head:016x}"))),
        }
    }
}

/// The number of keys.
const KEYS: u64 = 60;

thread_local! {
    static WHIMS: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
}

/// A random number below `end`.
fn whim(end: u64) -> u64 {
    let mut x = WHIMS.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    WHIMS.set(x);
    (x >> 20) % end
}

/// Keys, one in ten of which is not a number.
fn float(random: &mut Random) -> f64 {
    match random.below(10) {
        0 => f64::NAN,
        _ => f64::from(random.below(KEYS as u32)),
    }
}

/// A random operation with such keys.
fn operate<K: Ord + Clone>(
    list: &dyn OrderedIndex<K, Value>,
    ledger: &Ledger,
    random: &mut Random,
    key: &dyn Fn(&mut Random) -> K,
) {
    let (one, other) = (key(random), key(random));
    let value = || ledger.make(7);
    match random.below(16) {
        0..=5 => drop(list.insert(one, value())),
        6 => drop(list.insert_if_absent(one, value())),
        7..=9 => drop(list.remove(&one)),
        10 => drop(list.update(one, &mut |_| match whim(3) {
            0 => Update::Put(value()),
            1 => Update::Keep,
            _ => Update::Remove,
        })),
        11 => drop(list.pop_first()),
        12 => drop(list.pop_last()),
        13 => {
            list.get_with(&one, &mut |value| assert_eq!(value.value, 7));
            list.scan(
                KeyRange::new(Bound::Included(&one), Bound::Excluded(&other)),
                Direction::Descending,
                20,
                &mut Vec::new(),
            );
        }
        14 => list.range(KeyRange::all(), Direction::Ascending, &mut |_, value| {
            assert_eq!(value.value, 7);
            ControlFlow::Continue(())
        }),
        _ => {
            let range = KeyRange::new(Bound::Included(&one), Bound::Included(&other));
            drop((list.next(&one), list.prev(&other)));
            if whim(4) == 0 {
                list.remove_range(range);
            }
        }
    }
}

/// Two threads operate on several lists, one list after another. Every value must be dropped once.
fn stays_in_order<K: Ord + Clone + 'static, L: OrderedIndex<K, Value>>(
    make: impl Fn() -> L,
    key: impl Fn(&mut Random) -> K + Sync,
) {
    for round in 0..12_u32 {
        let ledger = Ledger::default();
        let list = make();
        thread::scope(|scope| {
            for thread in 0..2 {
                let (list, ledger, key) = (&list, &ledger, &key);
                scope.spawn(move || {
                    let mut random = Random::new(2 * round + thread);
                    WHIMS.set(WHIMS.get() ^ u64::from(2 * round + thread) << 32);
                    for _ in 0..800 {
                        let operation = || operate(list, ledger, &mut random, key);
                        if let Err(panic) = catch_unwind(AssertUnwindSafe(operation)) {
                            // Any panic that is not one of ours is a bug.
                            if panic.downcast_ref() != Some(&"a comparison")
                                && panic.downcast_ref() != Some(&"a key")
                                && !text_of(&*panic).is_some_and(|text| text.contains("IS_KEY"))
                            {
                                resume_unwind(panic);
                            }
                        }
                    }
                });
            }
        });
        drop(list);
        ledger.assert_settled();
    }
}

/// Runs a test for both lists.
macro_rules! for_both {
    ($($name:ident: $key:ty, $heads:ty, $make:expr;)*) => { $(
        mod $name {
            use super::*;

            #[test]
            fn skip_list() {
                stays_in_order(SkipList::<$key, Value, $heads>::new, $make);
            }

            #[test]
            fn background_skip_list() {
                stays_in_order(BackgroundSkipList::<$key, Value, $heads>::new, $make);
            }
        }
    )* };
}

for_both! {
    memory_stays_in_order_where_the_incomparable_is_greater:
        ElseGreater, NoHead, |random| ElseGreater(float(random));
    memory_stays_in_order_where_the_incomparable_is_less:
        ElseLess, NoHead, |random| ElseLess(float(random));
    memory_stays_in_order_where_the_incomparable_is_equal:
        ElseEqual, NoHead, |random| ElseEqual(float(random));
    memory_stays_in_order_where_keys_move:
        Moving, NoHead, |random| Moving(Arc::new(u64::from(random.below(KEYS as u32)).into()));
    memory_stays_in_order_where_comparisons_lie_and_panic:
        Fickle, NoHead, |random| Fickle(random.below(KEYS as u32).into());
    memory_stays_in_order_where_heads_lie:
        Fickle, tremula_index::key::ByteHead, |random| Fickle(random.below(KEYS as u32).into());
    memory_stays_in_order_where_heads_are_said_to_be_keys:
        SaysHeadIsKey, tremula_index::key::ByteHead,
        |random| SaysHeadIsKey(format!("{:016x}", random.below(KEYS as u32)));
}

/// A popped entry that its search cannot find again stays until another search passes it. This is
/// the shortest way to a node that is freed while it is linked.
#[test]
fn an_entry_that_is_not_found_again_is_not_freed_while_it_is_linked() {
    type List = Box<dyn OrderedIndex<ElseGreater, Value>>;
    let lists: [fn() -> List; 2] = [
        || Box::new(SkipList::<_, _, NoHead>::new()),
        || Box::new(BackgroundSkipList::<_, _, NoHead>::new()),
    ];
    for make in lists {
        for _ in 0..50 {
            let ledger = Ledger::default();
            let list = make();
            list.insert(ElseGreater(f64::NAN), ledger.make(1));
            list.insert(ElseGreater(0.0), ledger.make(2));
            drop(list.pop_last());
            wait_for_thread(&*list);
            for _ in 0..PROMISE {
                list.get(&ElseGreater(0.0));
            }
            drop(list);
            ledger.assert_settled();
        }
    }
}

/// How many of the next comparisons of [`Misleads`] keys are wrong.
static LIES: AtomicU64 = AtomicU64::new(0);

/// A key whose wrong comparisons are the wrong way round: they send a search for the last key down
/// before it has come to its end, whichever side it is on.
#[derive(Clone, Debug)]
struct Misleads(Counted<u64>);
ordered_by!(Misleads, |a, b| {
    match LIES.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) {
        Ok(_) => b.0.cmp(&a.0),
        Err(_) => a.0.cmp(&b.0),
    }
});

/// The search that is to unlink a removed node is misled on the upper levels, and finds the node on
/// the lowest level only. From then on no level leads to it but one above, and no later search
/// comes there. It would fail if the list, when it is dropped, freed what it finds on the lowest
/// level only.
#[test]
fn a_node_that_is_linked_above_the_lowest_level_only_is_freed_with_the_list() {
    type List = Box<dyn OrderedIndex<Misleads, Value>>;
    let lists: [fn() -> List; 2] = [
        || Box::new(SkipList::<_, _, NoHead>::new()),
        || Box::new(BackgroundSkipList::<_, _, NoHead>::new()),
    ];
    for make in lists {
        // The last tower of some of these lists has several levels, and to one of these numbers of
        // lies the search is on the lowest level when they end.
        for entries in 8..40 {
            for lies in 1..10 {
                let ledger = Ledger::default();
                let list = make();
                for key in 0..entries {
                    list.insert(Misleads(ledger.make(key)), ledger.make(key));
                }
                wait_for_thread(&*list);
                LIES.store(lies, Relaxed);
                let last = list.pop_last();
                wait_for_thread(&*list);
                LIES.store(0, Relaxed);
                assert_eq!(last.map(|(_, value)| value.value), Some(entries - 1));
                drop(list);
                ledger.assert_settled();
            }
        }
    }
}

/// If keys are ordered, removed nodes do not wait for the list to be dropped: they and their values
/// are freed once no thread looks at them.
#[test]
fn what_is_removed_does_not_wait_for_the_list() {
    const THREADS: u32 = 3;
    let lists: [Box<dyn OrderedIndex<u64, Value>>; 2] = [
        Box::new(SkipList::<_, _>::new()),
        Box::new(BackgroundSkipList::<_, _>::new()),
    ];
    for list in lists {
        let ledger = Ledger::default();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (list, ledger) = (&list, &ledger);
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    for _ in 0..10_000 {
                        let key = random.below(200).into();
                        match random.below(8) {
                            0..4 => drop(list.insert(key, ledger.make(key))),
                            4..7 => drop(list.remove(&key)),
                            _ => drop(list.pop_first()),
                        }
                    }
                });
            }
        });
        wait_for_thread(&*list);
        for turn in 0..PROMISE {
            list.contains_key(&turn);
        }
        assert_eq!(ledger.alive(), list.len());
        drop(list);
        ledger.assert_settled();
    }
}

/// The value of every [`Witness`] that was made.
const WRITTEN: u64 = 0x5eed_a11e_5eed_a11e;

/// The number of dropped keys that were never made.
static FORGED: AtomicUsize = AtomicUsize::new(0);

/// A key that shows whether it was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Witness(u64);

impl Drop for Witness {
    fn drop(&mut self) {
        if self.0 != WRITTEN {
            FORGED.fetch_add(1, Relaxed);
        }
    }
}

/// Claims that heads are keys, but gives no key back.
enum NeverGivesKeys {}

impl KeyHead<Witness> for NeverGivesKeys {
    type Word = u64;
    const IS_KEY: bool = true;

    fn head(_: &Witness) -> u64 {
        0
    }

    fn key(_: u64) -> Option<Witness> {
        None
    }
}

#[test]
fn no_key_is_dropped_where_none_was_written() {
    let ledger = Ledger::default();
    let list = SkipList::<Witness, Value, NeverGivesKeys>::new();
    list.insert(Witness(WRITTEN), ledger.make(1));
    list.insert(Witness(WRITTEN), ledger.make(2));
    // A key with a `Drop` of its own is kept, whatever the head claims.
    assert!(list.first().is_some());
    drop(list);
    ledger.assert_settled();
    assert_eq!(FORGED.load(Relaxed), 0);
}

/// A key whose comparison in the list's own thread drops the last handle of the list.
#[derive(Clone, Debug)]
struct Ends(u64);
ordered_by!(Ends, |a, b| {
    let mut end = END.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((outside, list)) = end.take() {
        if thread::current().id() == outside {
            *end = Some((outside, list));
        } else {
            drop(end);
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(list)));
            ENDED_BADLY.store(dropped.is_err(), Relaxed);
        }
    }
    a.0.cmp(&b.0)
});

type ListOfEnds = BackgroundSkipList<Ends, Value, NoHead>;

/// The thread that is not the list's own, and the last handle.
static END: Mutex<Option<(ThreadId, ListOfEnds)>> = Mutex::new(None);
static ENDED_BADLY: AtomicBool = AtomicBool::new(false);

/// The list's own thread does not wait for its own end, and frees the list when it is done. If it
/// waited, `join` would panic or the test would not end.
#[test]
fn the_last_handle_may_be_dropped_by_the_thread_of_the_list() {
    let ledger = Ledger::default();
    let this = thread::current().id();
    let list = BackgroundSkipList::new();
    list.insert(Ends(0), ledger.make(0));
    *END.lock().unwrap() = Some((this, list));
    // From here on a comparison by the list's own thread may end the list, as soon as a tower is to
    // be built. So the handle is borrowed for one insertion at a time.
    for key in 1.. {
        let taken = END.lock().unwrap().take();
        let Some((_, list)) = taken else { break };
        list.insert(Ends(key), ledger.make(key));
        *END.lock().unwrap() = Some((this, list));
        thread::sleep(Duration::from_millis(1));
    }
    let begin = Instant::now();
    while ledger.alive() > 0 && begin.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(1));
    }
    ledger.assert_settled();
    assert!(!ENDED_BADLY.load(Relaxed));
}
