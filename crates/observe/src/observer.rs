//! The observer: a thread that looks at the program once a second.

use crate::history::History;
use crate::map::{ALL_BYTES, LONGEST_KEY, OwnedLeaf, Recorder, SERIES_BYTES};
use crate::observed::{MapInfo, Observed, ObservedMap, Sampled};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

const SECOND: Duration = Duration::from_secs(1);

/// Leaves of a map that a walk visits. What lies behind is not in the picture.
const MOST_LEAVES: usize = 1 << 20;

/// Maps whose picture is kept, the first of the list.
pub(crate) const MOST_MAPS: usize = 64;

/// A walk takes no more than one part in this many of the time: a long one comes less often.
const SHARE: u32 = 20;

/// What the observer has seen.
pub(crate) struct Seen {
    history: Mutex<History>,
    maps: Mutex<BTreeMap<String, Arc<Mutex<Picture>>>>,
    /// The newest sequence, for what waits for the next second.
    newest: watch::Sender<u64>,
}

/// What is known of a map.
pub(crate) struct Picture {
    pub(crate) recorder: Recorder,
    /// When it was walked last, and when it may be walked again.
    walked: Option<Instant>,
    next: Instant,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self {
            history: Mutex::default(),
            maps: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// The picture of a map, if it is kept.
    pub(crate) fn picture(&self, id: &str) -> Option<Arc<Mutex<Picture>>> {
        lock(&self.maps).get(id).cloned()
    }

    /// Changes with each second.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// The bytes of all pictures.
    #[cfg(test)]
    fn held(&self) -> usize {
        let maps = lock(&self.maps);
        maps.values()
            .map(|picture| lock(picture).recorder.held())
            .sum()
    }

    /// Looks at the program.
    fn look(&self, observed: &dyn Observed) {
        let mut second = observed.second();
        let seq = lock(&self.history).newest() + 1;
        let at = now();
        (second.seq, second.at) = (seq, at);
        let mut maps: Vec<_> = observed
            .maps()
            .into_iter()
            .map(|map| (map.info(), map))
            .collect();
        maps.retain(|(info, _)| info.walked);
        maps.truncate(MOST_MAPS);
        self.keep_only(&maps);
        let count = maps.len().max(1);
        for (info, map) in maps {
            let picture = Arc::clone(lock(&self.maps).entry(info.id).or_insert_with(Picture::new));
            let mut picture = lock(&picture);
            picture
                .recorder
                .limit((ALL_BYTES / 2 / count).min(SERIES_BYTES));
            picture.look((seq, at), &*map);
        }
        // Last, so that a stream that learns of it finds the columns too.
        lock(&self.history).push(second);
        self.newest.send_replace(seq);
    }

    /// Forgets the maps that are no more.
    fn keep_only(&self, maps: &[(MapInfo, Arc<dyn ObservedMap>)]) {
        lock(&self.maps).retain(|id, _| maps.iter().any(|(info, _)| info.id == *id));
    }
}

impl Picture {
    fn new() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            recorder: Recorder::new(),
            walked: None,
            next: Instant::now(),
        }))
    }

    /// Walks the map, unless that would be too often.
    fn look(&mut self, (seq, at): (u64, u64), map: &dyn ObservedMap) {
        let began = Instant::now();
        if began < self.next {
            return;
        }
        let Some(leaves) = leaves(map) else {
            return;
        };
        let mut samples = Vec::new();
        map.take_samples(&mut samples);
        let width = self
            .walked
            .map_or(SECOND, |walked| began.duration_since(walked));
        // To the second, unless it has waited: then a column is as wide as that.
        let width = u64::try_from(width.as_millis().div_ceil(100) / 10)
            .unwrap_or(1)
            .max(1)
            * 1000;
        self.add((seq, at, width), &leaves, &samples, map);
        self.walked = Some(began);
        let took = began.elapsed();
        self.next = began + (took * SHARE).saturating_sub(SECOND);
    }

    fn add(
        &mut self,
        moment: (u64, u64, u64),
        leaves: &[OwnedLeaf],
        samples: &[Sampled],
        map: &dyn ObservedMap,
    ) {
        let bytes_at = |low: &[u8]| map.bytes_at(low);
        let text = |key: &[u8]| map.text(key);
        self.recorder
            .take(moment, leaves, samples, &bytes_at, &text);
    }
}

/// The leaves of a map; `None` if it cannot be walked.
pub(crate) fn leaves(map: &dyn ObservedMap) -> Option<Vec<OwnedLeaf>> {
    let mut leaves: Vec<OwnedLeaf> = Vec::new();
    map.walk(&mut |leaf| {
        let low = leaf.low.map(|low| &low[..low.len().min(LONGEST_KEY)]);
        let low: Box<[u8]> = match (low, leaves.last_mut()) {
            (low, None) => low.unwrap_or_default().into(),
            (Some(low), Some(before)) if *low > *before.low => low.into(),
            // It begins where nothing shows, or where what is kept of its key is that of the leaf
            // before it: it counts with that one.
            (_, Some(before)) => {
                merge(before, leaf);
                return ControlFlow::Continue(());
            }
        };
        leaves.push(OwnedLeaf {
            low,
            entries: leaf.entries.map(|entries| entries as u64),
            waits: leaf.waits as u32,
            acquisitions: leaf.acquisitions as u32,
            format: leaf.format,
        });
        if leaves.len() < MOST_LEAVES {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Some(leaves)
}

fn merge(before: &mut OwnedLeaf, leaf: &crate::observed::Leaf<'_>) {
    let more = leaf.entries.map(|entries| entries as u64);
    before.entries = before.entries.zip(more).map(|(one, other)| one + other);
    before.waits = before.waits.wrapping_add(leaf.waits as u32);
    before.acquisitions = before.acquisitions.wrapping_add(leaf.acquisitions as u32);
}

/// The milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The thread that looks. Dropping it ends it.
pub(crate) struct Observer {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    pub(crate) fn start(observed: Arc<dyn Observed>, seen: Arc<Seen>) -> io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || {
                let mut next = Instant::now() + SECOND;
                while !wait(&stopped, next) {
                    seen.look(&*observed);
                    next += SECOND;
                    // After a pause of the machine it does not catch up.
                    next = next.max(Instant::now());
                }
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        *lock(&self.stop.0) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// Waits until a moment. Returns whether it should stop.
fn wait((stop, changed): &(Mutex<bool>, Condvar), until: Instant) -> bool {
    let mut stops = lock(stop);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if *stops || left.is_zero() {
            return *stops;
        }
        let waited = changed.wait_timeout(stops, left);
        stops = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::{Keys, Leaf, Overview};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    struct Map(usize, Arc<AtomicUsize>);

    impl ObservedMap for Map {
        fn info(&self) -> MapInfo {
            MapInfo {
                id: format!("map{}", self.0),
                name: String::new(),
                kind: "map",
                engine: String::new(),
                keys: 0,
                walked: self.0 != 1,
                reason: None,
            }
        }

        fn walk(&self, visit: &mut dyn FnMut(&Leaf<'_>) -> ControlFlow<()>) -> Option<(u64, u64)> {
            let walks = self.1.fetch_add(1, Relaxed) as u64;
            for low in [None, Some(&[5][..]), None, Some(&[9][..])] {
                let leaf = Leaf {
                    low,
                    entries: Some(3),
                    waits: walks,
                    acquisitions: 10 * walks,
                    format: "",
                };
                if visit(&leaf).is_break() {
                    break;
                }
            }
            Some((0, 0))
        }

        fn text(&self, key: &[u8]) -> String {
            crate::map::hex(key)
        }

        fn keys(&self, _: &[u8], _: Option<&[u8]>, _: usize) -> Result<Keys, String> {
            Ok(Keys::default())
        }
    }

    struct Program(usize, Arc<AtomicUsize>);

    impl Observed for Program {
        fn overview(&self) -> Overview {
            unreachable!("the observer does not ask")
        }

        fn maps(&self) -> Vec<Arc<dyn ObservedMap>> {
            let map = |number| Arc::new(Map(number, Arc::clone(&self.1))) as Arc<dyn ObservedMap>;
            (0..self.0).map(map).collect()
        }
    }

    #[test]
    fn a_look_walks_the_maps_that_can_be_walked_and_forgets_those_that_are_gone() {
        let seen = Seen::new();
        let walks = Arc::new(AtomicUsize::new(0));
        seen.look(&Program(3, Arc::clone(&walks)));
        assert_eq!(walks.load(Relaxed), 2, "map1 cannot be walked");
        let picture = seen.picture("map0").expect("it is kept");
        let column = lock(&picture).recorder.last().expect("a column");
        let entries: Vec<_> = column.figures.iter().map(|figures| figures[0]).collect();
        assert_eq!(
            entries,
            [3, 6, 3],
            "a leaf without a key counts with the one before"
        );
        assert!(seen.picture("map1").is_none() && seen.picture("map2").is_some());
        seen.look(&Program(1, walks));
        assert!(seen.picture("map2").is_none());
        let newest = *seen.newest().borrow();
        assert_eq!((seen.history().newest(), newest), (2, 2));
    }

    #[test]
    fn of_long_keys_the_beginning_is_kept_and_leaves_without_another_are_one() {
        struct Long;
        impl ObservedMap for Long {
            fn info(&self) -> MapInfo {
                Map(0, Arc::default()).info()
            }

            fn walk(
                &self,
                visit: &mut dyn FnMut(&Leaf<'_>) -> ControlFlow<()>,
            ) -> Option<(u64, u64)> {
                for last in 0..3_u8 {
                    let low = [&[b'k'; 10 * LONGEST_KEY][..], &[last]].concat();
                    let leaf = Leaf {
                        low: (last > 0).then_some(&low),
                        entries: Some(3),
                        waits: 1,
                        acquisitions: 2,
                        format: "",
                    };
                    let _ = visit(&leaf);
                }
                Some((0, 0))
            }

            fn text(&self, _: &[u8]) -> String {
                String::new()
            }

            fn keys(&self, _: &[u8], _: Option<&[u8]>, _: usize) -> Result<Keys, String> {
                Ok(Keys::default())
            }
        }
        let seen = leaves(&Long).expect("leaves");
        let lengths: Vec<_> = seen
            .iter()
            .map(|leaf| (leaf.low.len(), leaf.entries, leaf.waits))
            .collect();
        assert_eq!(lengths, [(0, Some(3), 1), (LONGEST_KEY, Some(6), 2)]);
    }

    #[test]
    fn only_some_maps_are_kept_within_a_number_of_bytes() {
        let seen = Seen::new();
        let walks = Arc::new(AtomicUsize::new(0));
        seen.look(&Program(3 * MOST_MAPS, walks));
        assert_eq!(lock(&seen.maps).len(), MOST_MAPS);
        assert!(seen.held() <= ALL_BYTES);
    }
}
