//! How keys and values currently behave: the kinds of hostility, and what user code does under
//! each. This state is global, because one process runs one kind at a time and threads of the
//! engine's own must see the same keys.

use super::campaign;
use super::subject::Subject;
use super::support::fuse;
use super::support::suite::Random;
use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

/// A way to be hostile.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The name that a replay takes.
    pub(crate) name: &'static str,
    pub(crate) order: Order,
    /// Byte forms and heads sometimes lie.
    pub(crate) forms_lie: bool,
    /// Keys are shared, and change between operations and when they are cloned.
    pub(crate) keys_change: bool,
    pub(crate) panics: Panics,
    pub(crate) reenters: Reenters,
    pub(crate) threads: u32,
}

/// How keys compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Honest,
    /// Like floats of which some are NaN; this is the answer if two keys cannot be compared.
    Nan(Ordering),
    /// Two successive keys are equal, though their byte forms are not.
    Caseless,
    /// Some answers are random.
    Random,
}

/// Which user code panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panics {
    Never,
    /// Comparisons, clones, byte forms, heads, and closures.
    Calls,
    /// Drops.
    Drops,
}

/// Which user code calls a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reenters {
    Never,
    /// The drop of a key calls the map that it was in.
    DropOfKey,
    /// The drop of a value calls the map that it was in.
    DropOfValue,
    /// A clone calls another map of the same engine.
    Clone,
}

const HONEST: Kind = Kind {
    name: "honest",
    order: Order::Honest,
    forms_lie: false,
    keys_change: false,
    panics: Panics::Never,
    reenters: Reenters::Never,
    threads: 1,
};

/// Every kind. The first checks the checks: with it nothing may panic or leak.
pub(crate) const KINDS: [Kind; 18] = [
    HONEST,
    Kind {
        name: "nan_less",
        order: Order::Nan(Ordering::Less),
        ..HONEST
    },
    Kind {
        name: "nan_equal",
        order: Order::Nan(Ordering::Equal),
        ..HONEST
    },
    Kind {
        name: "nan_greater",
        order: Order::Nan(Ordering::Greater),
        ..HONEST
    },
    Kind {
        name: "caseless",
        order: Order::Caseless,
        ..HONEST
    },
    Kind {
        name: "random_order",
        order: Order::Random,
        ..HONEST
    },
    Kind {
        name: "random_forms",
        forms_lie: true,
        ..HONEST
    },
    Kind {
        name: "random_order_and_forms",
        order: Order::Random,
        forms_lie: true,
        ..HONEST
    },
    Kind {
        name: "changing_keys",
        keys_change: true,
        ..HONEST
    },
    Kind {
        name: "panicking_calls",
        panics: Panics::Calls,
        ..HONEST
    },
    Kind {
        name: "panicking_drops",
        panics: Panics::Drops,
        ..HONEST
    },
    Kind {
        name: "lying_and_panicking_calls",
        order: Order::Random,
        forms_lie: true,
        panics: Panics::Calls,
        ..HONEST
    },
    Kind {
        name: "lying_and_panicking_drops",
        order: Order::Random,
        forms_lie: true,
        panics: Panics::Drops,
        ..HONEST
    },
    Kind {
        name: "drop_of_key_reenters",
        reenters: Reenters::DropOfKey,
        ..HONEST
    },
    Kind {
        name: "drop_of_value_reenters",
        reenters: Reenters::DropOfValue,
        ..HONEST
    },
    Kind {
        name: "clone_calls_another_map",
        reenters: Reenters::Clone,
        ..HONEST
    },
    Kind {
        name: "lying_in_two_threads",
        order: Order::Random,
        forms_lie: true,
        threads: 2,
        ..HONEST
    },
    Kind {
        name: "reentering_in_two_threads",
        reenters: Reenters::DropOfValue,
        threads: 2,
        ..HONEST
    },
];

static KIND: AtomicUsize = AtomicUsize::new(0);
/// Keys are made from numbers below this.
static SPACE: AtomicU32 = AtomicU32::new(1);
/// One answer in this many is a lie.
static HONESTY: AtomicU32 = AtomicU32::new(1);

/// Whether byte forms have a long common prefix.
static LONG_FORMS: AtomicBool = AtomicBool::new(false);

/// The numbers that changing keys have in common.
static SHARED: Mutex<Vec<Arc<AtomicU64>>> = Mutex::new(Vec::new());
/// The map that user code calls.
static CALLED: Mutex<Option<Weak<dyn Subject>>> = Mutex::new(None);

/// How often one operation may call user code. An operation that does so more often may never end.
const FUEL: u32 = 50_000;
/// How often user code calls a map in one operation. Without a limit, an operation that restarts
/// whenever the map has changed would never end.
const CALLS_OF_MAP: u32 = 8;

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    static FUEL_LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    static CALLS_LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    static IN_A_CALL: Cell<bool> = const { Cell::new(false) };
    /// Whether keys and values are honest on this thread.
    static HONEST_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Sets how keys and values behave from now on.
pub(crate) fn set(kind: usize, seed: u32) {
    let mut random = Random::new(seed);
    let space = [12, 60, 300][random.below(3) as usize];
    SPACE.store(space, Relaxed);
    HONESTY.store([3, 20, 100][random.below(3) as usize], Relaxed);
    LONG_FORMS.store(random.below(2) == 0, Relaxed);
    let numbers = (0..space).map(|number| Arc::new(AtomicU64::new(number.into())));
    *lock(&SHARED) = numbers.collect();
    KIND.store(kind, Relaxed);
}

/// Seeds the random answers of user code on this thread.
pub(crate) fn seed_thread(seed: u64) {
    RANDOM.set(seed);
}

/// Makes keys and values honest from now on.
pub(crate) fn calm() {
    KIND.store(0, Relaxed);
    *lock(&CALLED) = None;
}

/// Sets the map that user code calls.
pub(crate) fn call_from_now_on(map: &Arc<dyn Subject>) {
    *lock(&CALLED) = Some(Arc::downgrade(map));
}

/// Begins an operation on this thread.
pub(crate) fn begin_operation() {
    FUEL_LEFT.set(FUEL);
    CALLS_LEFT.set(CALLS_OF_MAP);
    if kind().keys_change && one_in(2) {
        change(&shared(any_number()));
    }
}

/// Ends the operation.
pub(crate) fn end_operation() {
    FUEL_LEFT.set(u32::MAX);
    CALLS_LEFT.set(u32::MAX);
}

pub(crate) fn kind() -> &'static Kind {
    match HONEST_HERE.get() {
        true => &KINDS[0],
        false => &KINDS[KIND.load(Relaxed)],
    }
}

/// Makes keys and values honest on this thread; an operation without end panics here, where
/// elsewhere another thread would be asked.
pub(crate) fn be_honest_here() {
    HONEST_HERE.set(true);
}

/// The number of a possible key.
pub(crate) fn any_number() -> u64 {
    next() % u64::from(SPACE.load(Relaxed))
}

/// The counter that all changing keys of this number share.
pub(crate) fn shared(number: u64) -> Arc<AtomicU64> {
    let numbers = lock(&SHARED);
    match numbers.get((number % numbers.len().max(1) as u64) as usize) {
        Some(shared) => Arc::clone(shared),
        None => Arc::new(AtomicU64::new(number)),
    }
}

/// Changes the number of a key.
pub(crate) fn change(number: &AtomicU64) {
    number.store(any_number(), Relaxed);
}

pub(crate) fn forms_are_long() -> bool {
    LONG_FORMS.load(Relaxed)
}

/// Compares two numbers.
pub(crate) fn compare(one: u64, other: u64) -> Ordering {
    call();
    match kind().order {
        Order::Honest => one.cmp(&other),
        Order::Nan(answer) => {
            let float = |number: u64| {
                if number % 7 == 3 {
                    f64::NAN
                } else {
                    number as f64
                }
            };
            float(one).partial_cmp(&float(other)).unwrap_or(answer)
        }
        Order::Caseless => (one / 2).cmp(&(other / 2)),
        Order::Random if lies() => {
            [Ordering::Less, Ordering::Equal, Ordering::Greater][(next() % 3) as usize]
        }
        Order::Random => one.cmp(&other),
    }
}

/// Whether this byte form or head is a lie.
pub(crate) fn form_lies() -> bool {
    call();
    kind().forms_lie && lies()
}

/// The payload of the panic when an operation calls user code without end.
pub(crate) struct OutOfPatience;

/// Counts a call of user code that may panic.
pub(crate) fn call() {
    let left = FUEL_LEFT.get();
    if left == 0 && !thread::panicking() {
        FUEL_LEFT.set(u32::MAX);
        if !HONEST_HERE.get() {
            campaign::ask_another_thread();
        }
        panic::resume_unwind(Box::new(OutOfPatience));
    }
    if left != u32::MAX {
        FUEL_LEFT.set(left.saturating_sub(1));
    }
    if kind().panics == Panics::Calls && !thread::panicking() {
        fuse::burn();
    }
}

/// Counts the clone of a key or value.
pub(crate) fn clone() {
    call();
    if kind().reenters == Reenters::Clone {
        call_map();
    }
}

/// Counts the drop of a key or value. `here` is the kind in which this drop calls the map.
pub(crate) fn drop_of(here: Reenters) {
    if kind().reenters == here {
        call_map();
    }
    if kind().panics == Panics::Drops && !thread::panicking() {
        fuse::burn();
    }
}

/// Calls the chosen map, unless this is already such a call.
fn call_map() {
    struct Call;

    impl Drop for Call {
        fn drop(&mut self) {
            IN_A_CALL.set(false);
        }
    }

    if CALLS_LEFT.get() == 0 || IN_A_CALL.replace(true) {
        return;
    }
    CALLS_LEFT.set(CALLS_LEFT.get() - 1);
    let _call = Call;
    let map = lock(&CALLED).as_ref().and_then(Weak::upgrade);
    let Some(map) = map else { return };
    if thread::panicking() {
        // An engine that has given up on these keys does so again, which would end the process.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| map.call()));
    } else {
        map.call();
    }
}

/// A random number for user code.
pub(crate) fn next() -> u64 {
    // SplitMix64, like `Random`. The state is a plain cell without a destructor.
    let state = RANDOM.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    RANDOM.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

pub(crate) fn one_in(many: u32) -> bool {
    next().is_multiple_of(u64::from(many.max(1)))
}

fn lies() -> bool {
    one_in(HONESTY.load(Relaxed))
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
