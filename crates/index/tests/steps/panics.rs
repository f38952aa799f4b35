//! Steps of keys and values whose user code panics, and whose drop calls the index.

use super::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;
use tremula_index::ByteKey;

/// How long a test may make no progress. Normally it takes some seconds.
const PATIENCE: Duration = Duration::from_secs(120);

thread_local! {
    /// How often user code of keys and values has been called on this thread.
    static CALLS: Cell<u32> = const { Cell::new(0) };
    /// The call that panics.
    static PANICS_AT: Cell<u32> = const { Cell::new(u32::MAX) };
    /// Whether this thread is in a call that a drop has made.
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

/// A call of user code. Those that a drop leads to do not count.
fn call() {
    if !CALLING.get() {
        CALLS.set(CALLS.get() + 1);
        if CALLS.get() == PANICS_AT.get() {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

/// Runs `work` so that one call of user code panics. Returns whether `work` panicked, and whether
/// that call was made.
fn with_panic_at(at: u32, work: impl FnOnce()) -> (bool, bool) {
    CALLS.set(0);
    PANICS_AT.set(at);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    PANICS_AT.set(u32::MAX);
    (outcome.is_err(), CALLS.get() >= at)
}

/// The index that noisy keys and values call.
struct Home {
    index: Weak<dyn OrderedIndex<Noisy, Noisy>>,
    open: AtomicBool,
}

/// A key or value whose comparisons, clones and byte forms are calls of user code, and whose drop
/// calls the index, if it has one.
pub(crate) struct Noisy(u64, Option<Arc<Home>>);

impl Drop for Noisy {
    fn drop(&mut self) {
        let Some(home) = self.1.take() else { return };
        if !home.open.load(Ordering::Relaxed) || CALLING.replace(true) {
            return;
        }
        if let Some(index) = home.index.upgrade() {
            index.get_with(&Noisy(self.0, None), &mut |_| ());
        }
        CALLING.set(false);
    }
}

impl Clone for Noisy {
    fn clone(&self) -> Self {
        call();
        Self(self.0, self.1.clone())
    }
}

impl Ord for Noisy {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        call();
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Noisy {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Noisy {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Noisy {}

impl ByteKey for Noisy {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        call();
        read(&self.0.to_be_bytes())
    }
}

/// Runs `work` on a thread of its own, and fails if it does not come back.
fn in_time(work: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let thread = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match finished.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("a drop that calls the index has not come back for {PATIENCE:?}")
        }
        _ => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
    }
}

/// An index of the even numbers below 100, and what makes keys and values that call it.
fn filled<I: Index<Noisy, Noisy> + 'static>(make: fn() -> I) -> (Arc<I>, Arc<Home>) {
    let index = Arc::new(make());
    for number in (0..100).step_by(2) {
        index.insert(Noisy(number, None), Noisy(number, None));
    }
    let weak: Weak<I> = Arc::downgrade(&index);
    let home = Home {
        index: weak,
        open: AtomicBool::new(true),
    };
    (index, Arc::new(home))
}

/// The contents, with the calls of drops ended.
fn settled(index: &impl Index<Noisy, Noisy>, home: &Home) -> BTreeMap<u64, u64> {
    home.open.store(false, Ordering::Relaxed);
    index.check_invariants();
    let entries = contents(index);
    assert_eq!(OrderedIndex::len(index), entries.len());
    entries
        .iter()
        .map(|(key, value)| (key.0, value.0))
        .collect()
}

fn evens() -> BTreeMap<u64, u64> {
    (0..100).step_by(2).map(|number| (number, number)).collect()
}

/// Fails if a step whose user code panics drops a key or a value while it holds locks; or if a step
/// that is undone leaves more behind than the key whose user code panics meanwhile.
pub(crate) fn a_panic_drops_nothing_under_locks<I: Index<Noisy, Noisy> + 'static>(make: fn() -> I) {
    in_time(move || {
        for planned in [false, true] {
            for at in 1.. {
                let (index, home) = filled(make);
                let noisy = |number| Noisy(number, Some(Arc::clone(&home)));
                let (low, high) = (noisy(8), noisy(80));
                let over = [between(&low, &high)];
                let (panicked, reached) = with_panic_at(at, || {
                    index.steps().atomically(&over, &mut |step| {
                        for number in 9..40 {
                            step.insert(noisy(number), noisy(1000 + number));
                        }
                        step.remove_range(KeyRange::all());
                        step.insert(noisy(20), noisy(1));
                        step.insert(noisy(20), noisy(2));
                        if planned {
                            resume_unwind(Box::new("planned"));
                        }
                    });
                });
                let now = settled(&*index, &home);
                let before = evens();
                let changed: BTreeSet<_> = (before.keys().chain(now.keys()))
                    .filter(|key| before.get(*key) != now.get(*key))
                    .collect();
                if planned {
                    assert!(panicked && changed.len() <= 1, "call {at}: {changed:?}");
                } else {
                    let has_happened = now.get(&20) == Some(&2) && now.len() == 15;
                    let is_as_before = panicked && changed.is_empty();
                    assert!(has_happened || is_as_before, "call {at}: {now:?}");
                }
                if !reached {
                    break;
                }
            }
        }
    });
}

/// Fails if `note` has been called although the entries stay, because user code that runs later
/// panics; or if it has not been called, and they are gone. Also if the entries that it sees are
/// not those of the range.
pub(crate) fn what_is_noted_is_removed<I: Index<Noisy, Noisy> + 'static>(make: fn() -> I) {
    let bounds: [fn(Noisy) -> Bound<Noisy>; 2] = [Bound::Included, Bound::Excluded];
    in_time(move || {
        for (low, high) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for at in 1.. {
                let (index, home) = filled(make);
                let noisy = |number| Noisy(number, Some(Arc::clone(&home)));
                let (low, high) = (bounds[low](noisy(20)), bounds[high](noisy(70)));
                let range = KeyRange::new(low.as_ref(), high.as_ref());
                let inside = |number: &u64| -> bool {
                    CALLING.set(true);
                    let is_inside = range.contains(&Noisy(*number, None));
                    CALLING.set(false);
                    is_inside
                };
                let mut noted = None;
                let (panicked, reached) = with_panic_at(at, || {
                    index.steps().remove_range_with(range, &mut |view| {
                        let mut seen = BTreeMap::new();
                        view.range(KeyRange::all(), &mut |key, value| {
                            seen.insert(key.0, value.0);
                            ControlFlow::Continue(())
                        });
                        assert!(
                            view.get_with(&Noisy(44, None), &mut |value| assert_eq!(value.0, 44))
                        );
                        assert!(!view.get_with(&Noisy(45, None), &mut |_| ()));
                        noted = Some(seen);
                    });
                });
                let now = settled(&*index, &home);
                let (gone, expected) = evens().into_iter().partition(|(key, _)| inside(key));
                match noted {
                    Some(seen) => assert_eq!((seen, now), (gone, expected), "call {at}"),
                    None => assert!(panicked && now == evens(), "call {at}"),
                }
                if !reached {
                    break;
                }
            }
        }
    });
}

/// A key that its head determines. Making the head is a call of user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number(u64);

impl ByteKey for Number {
    const HEAD_IS_KEY: bool = true;

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.0.to_be_bytes())
    }

    fn head(&self) -> u64 {
        call();
        self.0
    }

    fn from_head(head: u64) -> Option<Self> {
        Some(Self(head))
    }
}

/// Fails if a step of an Aspen map calls user code while it is undone, or loses a value.
#[test]
fn a_step_of_aspen_is_undone_without_user_code() {
    let ledger = Ledger::default();
    for at in 1.. {
        let index = aspen::<Number, Counted<u64>>();
        for number in (0..100).step_by(2) {
            index.insert(Number(number), ledger.make(number));
        }
        let mut calls = 0;
        let (_, reached) = with_panic_at(at, || {
            index.steps().atomically(&[KeyRange::all()], &mut |step| {
                for number in 9..40 {
                    step.insert(Number(number), ledger.make(1000 + number));
                }
                step.remove_range(KeyRange::all());
                step.insert(Number(20), ledger.make(1));
                step.insert(Number(20), ledger.make(2));
                calls = CALLS.get();
                resume_unwind(Box::new("planned"));
            });
        });
        if !reached {
            assert_eq!(CALLS.get(), calls);
        }
        let now: BTreeMap<_, _> = contents(&index)
            .into_iter()
            .map(|(key, value)| (key.0, value.value))
            .collect();
        assert_eq!(now, evens(), "call {at}");
        drop(index);
        if !reached {
            break;
        }
    }
    ledger.assert_settled();
}

/// Fails if a closure is not called exactly once for a range between whose bounds there is no key,
/// but whose bounds alone do not show that.
pub(crate) fn closures_are_called_for_a_range_without_keys<I: Index<u64, u64>>(make: fn() -> I) {
    let index = make();
    for key in 0..10 {
        index.insert(key, key);
    }
    let range = KeyRange::new(Bound::Excluded(&3), Bound::Excluded(&4));
    let mut calls = 0;
    let mut look = |view: &dyn View<u64, u64>| {
        view.range(KeyRange::all(), &mut |_, _| unreachable!("there is none"));
        calls += 1;
    };
    assert_eq!(index.steps().remove_range_with(range, &mut look), 0);
    index.steps().atomically(&[range], &mut |step| {
        look(step);
        assert_eq!(step.remove_range(KeyRange::all()), 0);
    });
    assert_eq!(calls, 2);
    assert_eq!(OrderedIndex::len(&index), 10);
}
