//! A sliding window over events: producers record, one thread expires what is old, others
//! aggregate, all at the same time.
//!
//! The key is the time of an event and a number that makes it unique, so the events lie in the
//! order of time. Old events go by `remove_range`: a single step, of which no reader sees a half.
//!
//! `cargo run -p tremula --example event_window`

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use tremula::{Direction, OrderedMap};

/// Milliseconds since the beginning. A program would take them from its clock.
type Time = u64;

#[derive(Debug, Default, PartialEq)]
struct Aggregate {
    count: u64,
    sum: u64,
    greatest: u64,
}

impl Aggregate {
    fn add(&mut self, amount: u64) {
        self.count += 1;
        self.sum += amount;
        self.greatest = self.greatest.max(amount);
    }
}

struct Events {
    events: OrderedMap<(Time, u64), u64>,
    /// Makes events of the same millisecond different.
    recorded: AtomicU64,
    /// How long an event is kept.
    keep: Time,
    /// Events before this time have expired.
    horizon: AtomicU64,
}

impl Events {
    fn keeping(keep: Time) -> Self {
        Self {
            events: OrderedMap::new(),
            recorded: AtomicU64::new(0),
            keep,
            horizon: AtomicU64::new(0),
        }
    }

    /// Records an event; `false` if it comes too late to be kept. An event that slips in while its
    /// time expires goes with the next expiry.
    fn record(&self, time: Time, amount: u64) -> bool {
        if time < self.horizon.load(Ordering::Relaxed) {
            return false;
        }
        let number = self.recorded.fetch_add(1, Ordering::Relaxed);
        self.events.insert((time, number), amount);
        true
    }

    /// Removes the events that are too old at `now`, in one step, and returns their number.
    fn expire(&self, now: Time) -> usize {
        let oldest = now.saturating_sub(self.keep);
        self.horizon.fetch_max(oldest, Ordering::Relaxed);
        self.events.remove_range(..(oldest, 0))
    }

    /// What happened in this time. Looks at the events in place and keeps no copy of them. Events
    /// that are recorded meanwhile may or may not count.
    fn aggregate(&self, time: Range<Time>) -> Aggregate {
        let mut result = Aggregate::default();
        let range = (time.start, 0)..(time.end, 0);
        let _ = self
            .events
            .for_each(range, Direction::Ascending, |_, &amount| {
                result.add(amount);
                ControlFlow::<()>::Continue(())
            });
        result
    }

    /// The same in windows of `width`, all of them as of one moment. Windows without an event are
    /// left out.
    fn windows(&self, time: Range<Time>, width: Time) -> BTreeMap<Time, Aggregate> {
        let range = (time.start, 0)..(time.end, 0);
        let events = self.events.scan(range, Direction::Ascending, usize::MAX);
        let mut windows = BTreeMap::<Time, Aggregate>::new();
        for ((time, _), amount) in events {
            windows.entry(time - time % width).or_default().add(amount);
        }
        windows
    }

    /// The latest event.
    fn latest(&self) -> Option<(Time, u64)> {
        let ((time, _), amount) = self.events.last()?;
        Some((time, amount))
    }
}

fn main() {
    let events = Events::keeping(100);
    for (time, amount) in [(10, 5), (10, 7), (60, 1), (110, 9), (170, 2)] {
        assert!(events.record(time, amount));
    }
    let all = Aggregate {
        count: 5,
        sum: 24,
        greatest: 9,
    };
    assert_eq!(events.aggregate(0..1000), all);
    let windows = events.windows(0..1000, 100);
    assert!(
        windows
            .into_iter()
            .map(|(time, all)| (time, all.sum))
            .eq([(0, 13), (100, 11)])
    );
    assert_eq!(events.latest(), Some((170, 2)));

    assert_eq!(events.expire(170), 3);
    assert!(!events.record(69, 1), "too late");
    assert!(events.record(70, 1));
    assert_eq!(events.aggregate(0..1000).count, 3);
    busy();
}

/// Each millisecond each producer records one event. One thread expires; another checks that of
/// each complete millisecond all events are there or none, and that the oldest went first.
fn busy() {
    const PRODUCERS: usize = 4;
    const END: Time = 2000;
    const KEEP: Time = 200;
    let events = Events::keeping(KEEP);
    let clocks: [AtomicU64; PRODUCERS] = Default::default();
    // Every producer has recorded its events before this time.
    let complete = || {
        let times = clocks.iter().map(|clock| clock.load(Ordering::Acquire));
        times.min().unwrap_or(END)
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let producers = clocks.each_ref().map(|clock| {
            let events = &events;
            scope.spawn(move || {
                for time in 0..END {
                    assert!(events.record(time, time));
                    clock.store(time + 1, Ordering::Release);
                }
            })
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                events.expire(complete());
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let now = complete();
                let windows = events.windows(0..now, 1);
                let whole = |window: &Aggregate| window.count == PRODUCERS as u64;
                assert!(windows.values().all(whole), "{windows:?}");
                let (first, count) = (windows.keys().next(), windows.len() as u64);
                assert!(
                    first.is_none_or(|first| first + count == now),
                    "a gap: {windows:?}"
                );
            }
        });
        let results = producers.map(|thread| thread.join());
        done.store(true, Ordering::Relaxed);
        results.into_iter().for_each(Result::unwrap);
    });
    events.expire(END);
    let kept = events.aggregate(0..END);
    let sum = (END - KEEP..END).sum::<Time>() * PRODUCERS as u64;
    assert_eq!((kept.count, kept.sum), (KEEP * PRODUCERS as u64, sum));
    println!("the last {KEEP} ms: {kept:?}");
}

#[test]
fn the_example_holds() {
    main();
}
