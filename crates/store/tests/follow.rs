//! Ranges that are followed: a copy that is fed by a watch alone equals the store, at every
//! sequence, while threads write, cut the log, and while watches end and go on elsewhere.

mod support;

use futures_util::stream::{FusedStream, Stream};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use support::copying::{Copy, Entries, key, stored, write};
use support::{new_folder, new_log, open};
use tremula_log::{Batch, FaultyDisk, FileLog, Log, MemoryLog, Sequence};
use tremula_store::{
    CacheSettings, Engine, Event, Expiry, Happened, LEAST_CACHE, Since, Span, Store, StoreConfig,
    Strategy, Value, Watch, WatchError, WatchStream, served_engines,
};

/// The keys that threads write to.
const KEYS: u16 = 3000;

/// The engines of which a store can have a log.
fn engines() -> impl Iterator<Item = Engine> {
    served_engines().filter(|engine| engine.facts().transactional)
}

/// Compares what a copy was shown with the log: that the rows of each part of its snapshot are what
/// their keys were at the sequence that they name, and that it was shown each change of their keys
/// behind that sequence. Returns how many those were.
fn check_against_the_log(store: &Store, span: &Span, copy: &Copy) -> usize {
    let mut events = store.events(Sequence::FIRST).expect("a log");
    let (mut whole, mut expected) = (Copy::like(copy), Vec::new());
    let begins = |part: &(Sequence, Entries)| part.1.keys().next().cloned().expect("a row");
    // The sequence of the part that a key is in; `None` if it lies between two of them.
    let ends_for = |key: &[u8]| {
        let behind = copy.parts.partition_point(|part| *begins(part) <= *key);
        let (ends, rows) = copy.parts.get(behind.checked_sub(1)?)?;
        let (last, _) = rows.last_key_value()?;
        (*key <= **last).then_some(*ends)
    };
    // The last part may have no rows, if all of its keys have gone.
    let all_from = copy.complete.expect("a whole snapshot");
    let mut unsure = Vec::new();
    let ends = copy.parts.iter().map(|(ends, rows)| (*ends, Some(rows)));
    for (last, rows) in ends.chain([(store.last_effect(), None)]) {
        let mut apply = |number: usize, event: Event<'_>| {
            let Some(event) = event.within(span).filter(|_| number == 0) else {
                return;
            };
            whole.apply(&event);
            let begins = match event.key() {
                _ if event.sequence > all_from => Some(Sequence::NONE),
                Some(key) => ends_for(key),
                None => None,
            };
            match begins {
                Some(ends) if event.sequence > ends => expected.push(event.sequence),
                Some(_) => (),
                None => unsure.push(event.sequence),
            }
        };
        while events.next_sequence() <= last {
            let read = events.read(store, 1 << 20, last, &mut apply);
            assert!(read.expect("a whole log") > 0, "the log ends before {last}");
        }
        let (Some(rows), now) = (rows, Expiry::now()) else {
            continue;
        };
        let (first, end) = rows
            .first_key_value()
            .zip(rows.last_key_value())
            .expect("rows");
        let alive = whole.alive(now);
        let there: Entries = alive
            .range(first.0.clone()..=end.0.clone())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        assert!(there == *rows, "rows that are not of the sequence {last}");
    }
    let is_sure = |sequence: &&Sequence| unsure.binary_search(sequence).is_err();
    let seen: Vec<_> = copy.seen.iter().filter(is_sure).copied().collect();
    assert!(seen == expected, "changes that were not shown, or twice");
    seen.len()
}

/// Shows a copy all that there is for a watch now.
fn catch_up(store: &Store, watch: &mut Watch<'_>, copy: &mut Copy) {
    store.sync().expect("a log that goes on");
    while let Some(event) = watch.try_next().expect("a log that has all") {
        copy.apply(&event);
    }
}

/// Writers on all cores, and watchers with and without a snapshot that begin while they write. It
/// fails if a copy misses a change or gets one twice, and if a snapshot is not of the sequence that
/// it names.
#[test]
fn a_copy_that_is_fed_by_a_watch_equals_the_store_at_every_sequence() {
    let (mut seeds, changes) = (SmallRng::seed_from_u64(7), AtomicUsize::new(0));
    for engine in engines() {
        let cache = CacheSettings {
            strategy: Strategy::Affinity,
            bytes: LEAST_CACHE,
            from: 100,
        };
        for (cache, has_previous) in [(None, false), (Some(cache), false), (Some(cache), true)] {
            let config = StoreConfig::new(engine)
                .cache(cache)
                .log_previous(has_previous);
            let disk = FaultyDisk::new(1);
            let settings = tremula_log::Config::default().segment_bytes(1 << 20);
            let log = FileLog::open_on(&disk, &settings).expect("a log");
            let store = Store::logging(&config, Arc::new(log)).expect("a store");
            let writing = AtomicUsize::new(3);
            let spans = [
                Span::all(),
                Span::new(
                    Bound::Included(&100_u16.to_be_bytes()),
                    Bound::Excluded(&1700_u16.to_be_bytes()),
                ),
            ];
            thread::scope(|scope| {
                for _ in 0..3 {
                    let mut random = SmallRng::seed_from_u64(seeds.random());
                    let (store, writing) = (&store, &writing);
                    scope.spawn(move || {
                        for round in 0..6000 {
                            write(store, &mut random, round % 7 / 6, KEYS);
                            if round % 16 == 0 {
                                store.forward();
                            }
                        }
                        store.forward();
                        writing.fetch_sub(1, Relaxed);
                    });
                }
                for (at, span) in spans.iter().cycle().take(4).enumerate() {
                    let (store, writing, changes) = (&store, &writing, &changes);
                    let wanted = 1500 * at as u64;
                    scope.spawn(move || {
                        while store.last_effect() < Sequence::new(wanted) {
                            thread::yield_now();
                        }
                        let watch = store.watch(0, span.clone(), Since::Snapshot);
                        let mut watch = watch.expect("a store with a log");
                        let mut copy = Copy {
                            has_previous,
                            ..Copy::default()
                        };
                        let mut is_over = false;
                        while !is_over {
                            is_over = writing.load(Relaxed) == 0;
                            while let Some(event) = watch.try_next().expect("a whole log") {
                                copy.apply(&event);
                            }
                            thread::yield_now();
                        }
                        catch_up(store, &mut watch, &mut copy);
                        assert!(watch.is_complete());
                        let name = store.database(0).engine();
                        let (copied, stored) = (copy.alive(Expiry::now()), stored(store, 0, span));
                        assert!(copied == stored, "{name}: watcher {at} differs");
                        changes.fetch_add(check_against_the_log(store, span, &copy), Relaxed);
                    });
                }
            });
        }
    }
    // A machine that is busy may let a watcher begin when all has been written; not each of them.
    assert!(
        changes.into_inner() > 0,
        "all was written before anybody watched"
    );
}

/// Watches that end after any number of events, and others that go on from there: together they
/// show what one would.
#[test]
fn a_watch_goes_on_where_another_one_has_ended() {
    let store = Store::logging(&StoreConfig::new(Engine::Aspen), new_log()).expect("a store");
    let mut random = SmallRng::seed_from_u64(3);
    let span = Span::prefix(&[2]);
    let mut copy = Copy::default();
    let mut next = None;
    for round in 0..300 {
        for _ in 0..random.random_range(0..30) {
            write(&store, &mut random, 0, KEYS);
        }
        let since = next.map_or(Since::Snapshot, Since::Sequence);
        let mut watch = store.watch(0, span.clone(), since).expect("all is kept");
        if round == 0 {
            catch_up(&store, &mut watch, &mut copy);
        }
        store.sync().expect("a log");
        for _ in 0..random.random_range(0..40) {
            match watch.try_next().expect("all is kept") {
                Some(event) => copy.apply(&event),
                None => break,
            }
        }
        next = Some(watch.next_sequence());
    }
    let since = Since::Sequence(next.expect("some rounds"));
    let mut watch = store.watch(0, span.clone(), since).expect("all is kept");
    catch_up(&store, &mut watch, &mut copy);
    assert_eq!(copy.alive(Expiry::now()), stored(&store, 0, &span));
}

/// A restart neither repeats sequences nor hides a change from a watch that goes on behind it.
#[test]
fn a_watch_goes_on_over_restarts() {
    let (log, (_directory, folder)) = (new_log(), new_folder());
    let config = StoreConfig::new(Engine::CaTree);
    let (mut random, mut copy, mut next) =
        (SmallRng::seed_from_u64(5), Copy::default(), Sequence::FIRST);
    for _ in 0..10 {
        let (store, _) = open(&config, &log, &folder);
        let since = Since::Sequence(next);
        let mut watch = store.watch(0, Span::all(), since).expect("all is kept");
        for _ in 0..200 {
            write(&store, &mut random, 0, KEYS);
        }
        catch_up(&store, &mut watch, &mut copy);
        assert_eq!(copy.alive(Expiry::now()), stored(&store, 0, &Span::all()));
        store.save(&folder).expect("a snapshot");
        next = watch.next_sequence();
    }
}

/// What was cut off is not skipped in silence, neither at the beginning nor on the way.
#[test]
fn what_is_not_kept_ends_a_watch_with_the_oldest_sequence() {
    let log = Arc::new(MemoryLog::bounded(20_000));
    let config = StoreConfig::new(Engine::Aspen);
    let store = Store::logging(&config, Arc::clone(&log) as Arc<dyn Log>).expect("a store");
    let put = |number: u16| {
        let value = Value::from(&[0; 100][..]);
        let put = store.commit(|effects| store.database(0).insert(effects, key(number), value));
        put.expect("a log that takes all");
        store.forward();
    };
    put(0);
    let mut slow = store
        .watch(0, Span::all(), Since::Sequence(Sequence::FIRST))
        .expect("kept");
    assert!(slow.try_next().expect("kept").is_some());
    (0..1000).for_each(put);
    let oldest = log.first();
    assert!(
        oldest > Sequence::new(700) && oldest < Sequence::new(1000),
        "{oldest}"
    );
    let told = |error: Option<WatchError>| match error {
        Some(WatchError::Gone { oldest, .. }) => Some(oldest),
        _ => None,
    };
    let late = store.watch(0, Span::all(), Since::Sequence(oldest.before()));
    assert_eq!(told(late.err()), Some(oldest));
    assert_eq!(told(slow.next().and_then(Result::err)), Some(oldest));
    assert!(slow.next().is_none(), "it has ended");
    let mut kept = store
        .watch(0, Span::all(), Since::Sequence(oldest))
        .expect("the oldest one");
    assert_eq!(
        kept.try_next().expect("kept").map(|event| event.sequence),
        Some(oldest)
    );
    let beyond = store.watch(0, Span::all(), Since::Sequence(store.last_effect().plus(2)));
    assert!(matches!(beyond, Err(WatchError::Beyond { .. })));
    let next = store.watch(0, Span::all(), Since::Sequence(store.last_effect().plus(1)));
    assert!(next.is_ok_and(|mut watch| matches!(watch.try_next(), Ok(None))));
}

/// What is not durable could be lost, and its sequence could come to mean something else.
#[test]
fn nothing_is_shown_before_it_is_durable() {
    let log = Arc::new(MemoryLog::held());
    let config = StoreConfig::new(Engine::Aspen);
    let store = Store::logging(&config, Arc::clone(&log) as Arc<dyn Log>).expect("a store");
    let value = Value::from(&b"value"[..]);
    let put = store.commit(|effects| store.database(0).insert(effects, key(1), value));
    put.expect("a log that takes all");
    store.forward();
    let since = Since::Sequence(Sequence::FIRST);
    let mut of_log = store.watch(0, Span::all(), since).expect("a log");
    let mut of_rows = store.watch(0, Span::all(), Since::Snapshot).expect("a log");
    for watch in [&mut of_log, &mut of_rows] {
        assert_eq!(watch.try_next().expect("no error"), None);
    }
    log.make_durable(Sequence::FIRST);
    for watch in [&mut of_log, &mut of_rows] {
        assert!(watch.try_next().expect("no error").is_some());
    }
}

/// A key whose time has come is not shown with a value, unless it has got more time since.
#[test]
fn an_expired_key_is_shown_as_removed() {
    let store = Store::logging(&StoreConfig::new(Engine::Aspen), new_log()).expect("a store");
    let past = Expiry::from_millis(5);
    let value = |text: &str| Value::from(text.as_bytes());
    let database = store.database(0);
    store
        .commit(|effects| {
            database.insert(effects, key(1), value("gone").expiring(past));
            database.insert(effects, key(2), value("again").expiring(past));
            database.insert(effects, key(2), value("there"));
        })
        .expect("a log that takes all");
    let since = Since::Sequence(Sequence::FIRST);
    let mut watch = store.watch(0, Span::all(), since).expect("a log");
    store.sync().expect("a log");
    let mut shown = Vec::new();
    while let Some(event) = watch.try_next().expect("no error") {
        shown.push(match event.what {
            Happened::Set { value, .. } => String::from_utf8_lossy(&value).into_owned(),
            Happened::Remove { .. } => "removed".to_owned(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(shown, ["removed", "again", "there"]);
    let mut rows = store.watch(0, Span::all(), Since::Snapshot).expect("a log");
    let first = rows.try_next().expect("no error").expect("a row");
    assert_eq!(first.key(), Some(key(2).as_bytes()));
}

/// Blocking and asynchronous waits both end when something happens.
#[test]
fn a_watch_waits_for_what_happens() {
    let store = Store::logging(&StoreConfig::new(Engine::Aspen), new_log()).expect("a store");
    let put = |number| {
        let value = Value::from(&b"value"[..]);
        let put = store.commit(|effects| store.database(0).insert(effects, key(number), value));
        put.expect("a log that takes all");
        store.forward();
    };
    thread::scope(|scope| {
        let watch = store.watch(0, Span::all(), Since::Now).expect("a log");
        let waiting = scope.spawn(move || {
            let events = watch
                .take(20)
                .map(|event| event.expect("a whole log").sequence);
            events.collect::<Vec<_>>()
        });
        (0..20).for_each(put);
        let seen = waiting.join().expect("no panic");
        assert!(seen.is_sorted_by(|one, next| one.plus(1) == *next) && seen.len() == 20);
    });
    let mut watch = store.watch(0, Span::all(), Since::Now).expect("a log");
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    let mut event = std::pin::pin!(watch.event());
    assert!(event.as_mut().poll(&mut task).is_pending());
    put(1);
    assert!(event.as_mut().poll(&mut task).is_ready());
}

/// What a thread does that polls many streams.
struct Wakes {
    thread: thread::Thread,
    count: AtomicUsize,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Relaxed);
        self.thread.unpark();
    }
}

/// Many streams that one thread polls get every event, and are polled again only when there is
/// more. It fails if a wake-up is lost: then the test hangs.
#[test]
fn streams_are_woken_when_something_happens_and_need_no_thread() {
    const STREAMS: usize = 50;
    const WRITES: u16 = 200;
    let log = Arc::new(MemoryLog::new());
    let config = StoreConfig::new(Engine::Aspen);
    let store = Store::logging(&config, Arc::clone(&log) as Arc<dyn Log>).expect("a store");
    let put = |number| {
        let value = Value::from(&b"value"[..]);
        let put = store.commit(|effects| store.database(0).insert(effects, key(number), value));
        put.expect("a log that takes all");
        store.forward();
    };
    let wakes = Arc::new(Wakes {
        thread: thread::current(),
        count: AtomicUsize::new(0),
    });
    let waker = Waker::from(Arc::clone(&wakes));
    let mut task = Context::from_waker(&waker);
    let watch = |_| {
        let watch = store.watch(0, Span::all(), Since::Now);
        watch.expect("a log").into_stream()
    };
    let mut streams: Vec<_> = (0..STREAMS).map(|at| (watch(at), Vec::new())).collect();
    let mut poll = |streams: &mut Vec<(WatchStream<'_>, Vec<Sequence>)>| {
        for (stream, seen) in streams {
            while let Poll::Ready(event) = Pin::new(&mut *stream).poll_next(&mut task) {
                let event = event.expect("it does not end").expect("a whole log");
                seen.push(event.sequence);
            }
        }
    };
    poll(&mut streams);
    poll(&mut streams);
    assert_eq!(wakes.count.load(Relaxed), 0, "nothing has happened");
    put(0);
    assert_eq!(wakes.count.load(Relaxed), STREAMS, "each waits once");
    thread::scope(|scope| {
        scope.spawn(|| (1..WRITES).for_each(put));
        let mut seen = 0;
        while streams
            .iter()
            .any(|(_, seen)| seen.len() < usize::from(WRITES))
        {
            while wakes.count.load(Relaxed) == seen {
                thread::park();
            }
            seen = wakes.count.load(Relaxed);
            poll(&mut streams);
        }
    });
    let all: Vec<_> = (1..=u64::from(WRITES)).map(Sequence::new).collect();
    assert!(streams.iter().all(|(_, seen)| *seen == all));
    log.stop(tremula_log::Stopped::Closed);
    for (stream, _) in &mut streams {
        let end = Pin::new(&mut *stream).poll_next(&mut task);
        assert!(matches!(
            end,
            Poll::Ready(Some(Err(WatchError::Stopped(_))))
        ));
        let behind = Pin::new(&mut *stream).poll_next(&mut task);
        assert!(matches!(behind, Poll::Ready(None)) && stream.is_terminated());
    }
}

/// A store without a log says so.
#[test]
fn without_a_log_nothing_can_be_followed() {
    let store = Store::new(&StoreConfig::new(Engine::Aspen)).expect("a store");
    let watch = store.watch(0, Span::all(), Since::Now);
    assert!(matches!(watch, Err(WatchError::NoLog)));
}

/// A batch that was written whole is not needed for the next ones to be read.
#[test]
fn a_bounded_log_keeps_the_newest_batch_whatever_its_length_is() {
    let log = MemoryLog::bounded(100);
    for length in [10, 1000, 10] {
        log.append(&Batch::of(&vec![0; length]), None)
            .expect("no limit");
        let newest = log.tail().next.before();
        assert_eq!(log.first(), newest);
        assert!(log.read(newest).is_ok());
    }
}
