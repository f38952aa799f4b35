//! Maps of a program as the page shows them.

use crate::observed::{
    Access, KeyInfo, Keys, Leaf, MapInfo, MemorySecond, Observed, ObservedMap, Overview, Second,
};
use crate::open_metrics::{MetricKind, Metrics};
use crate::process::resident_bytes;
use std::fmt::Debug;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Instant;
use tremula_index::{ByteKey, Direction, OrderedIndex, OrderedMap};

/// Entries that a list of keys passes on its way to the first one that it shows.
const MOST_PASSED: usize = 100_000;

/// The maps of a program, for a [`Page`](crate::Page).
///
/// ```
/// use std::sync::Arc;
/// use tremula_index::OrderedMap;
/// use tremula_observe::{Maps, Page, Settings};
///
/// let orders: Arc<OrderedMap<u64, String>> = Arc::default();
/// let maps = Maps::new("shop", "1.0").with("orders", Arc::clone(&orders));
/// let page = Page::bind("127.0.0.1:0".parse()?, Settings::default())?;
/// page.show(Arc::new(maps))?;
/// println!("http://{}/", page.address());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Maps {
    name: String,
    version: String,
    started: Instant,
    maps: Vec<Arc<dyn ObservedMap>>,
}

impl Debug for Maps {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} maps of {}", self.maps.len(), self.name)
    }
}

impl Maps {
    /// No maps yet, of a program with this name and version.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            started: Instant::now(),
            maps: Vec::new(),
        }
    }

    /// With one more map. The page shows its keys: numbers and texts as such, others by the
    /// hexadecimal digits of their byte forms.
    ///
    /// Of memory, the page shows what the process holds, and how much of it the keys and values of
    /// all maps are by the sizes of their types, without what they point at.
    #[must_use]
    pub fn with<K, V, E>(mut self, name: &str, map: Arc<OrderedMap<K, V, E>>) -> Self
    where
        K: ByteKey + Debug,
        V: Clone + 'static,
        E: OrderedIndex<K, V> + 'static,
        OrderedMap<K, V, E>: Send + Sync,
    {
        let id = format!("map{}", self.maps.len());
        let name = name.to_owned();
        self.maps.push(Arc::new(OfMap { id, name, map }));
        self
    }
}

impl Observed for Maps {
    fn overview(&self) -> Overview {
        let first = self.maps.first();
        Overview {
            name: self.name.clone(),
            version: self.version.clone(),
            engine: first.map_or_else(String::new, |map| map.info().engine),
            uptime_s: self.started.elapsed().as_secs(),
            role: "alone".to_owned(),
            node: String::new(),
            embedded: true,
            writes: Access::None,
            sections: resident_bytes().map(|_| "memory").into_iter().collect(),
        }
    }

    fn second(&self) -> Second {
        let (mut keys, mut bytes) = (0, 0);
        for map in &self.maps {
            let here = map.info().keys;
            keys += here;
            bytes += here * map.bytes_at(&[]).unwrap_or(0);
        }
        Second {
            keys,
            memory: MemorySecond {
                used: resident_bytes().unwrap_or(0),
                limit: 0,
                // Without what keys and values point at, and the nodes around them.
                kinds: vec![("keys and values", bytes)],
            },
            ..Second::default()
        }
    }

    fn maps(&self) -> Vec<Arc<dyn ObservedMap>> {
        self.maps.clone()
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let all: Vec<_> = self
            .maps
            .iter()
            .map(|map| {
                let mut sums = [0; 3];
                let adapted = map.walk(&mut |leaf| {
                    sums[0] += 1;
                    sums[1] += leaf.waits;
                    sums[2] += leaf.acquisitions;
                    ControlFlow::Continue(())
                });
                (map.info(), sums, adapted)
            })
            .collect();
        type Of = fn(&(MapInfo, [u64; 3], Option<(u64, u64)>)) -> Option<u64>;
        let families: [(&str, MetricKind, &str, Of); 6] = [
            ("map_keys", MetricKind::Gauge, "Keys of the map", |of| {
                Some(of.0.keys)
            }),
            ("map_leaves", MetricKind::Gauge, "Leaves of the map", |of| {
                of.2.map(|_| of.1[0])
            }),
            (
                "map_waits",
                MetricKind::Gauge,
                "How often the locks of the leaves that are there now were waited for",
                |of| of.2.map(|_| of.1[1]),
            ),
            (
                "map_acquisitions",
                MetricKind::Gauge,
                "How often the locks of the leaves that are there now were taken to write",
                |of| of.2.map(|_| of.1[2]),
            ),
            (
                "map_splits",
                MetricKind::Counter,
                "Leaves that were split",
                |of| of.2.map(|adapted| adapted.0),
            ),
            (
                "map_joins",
                MetricKind::Counter,
                "Leaves that were joined",
                |of| of.2.map(|adapted| adapted.1),
            ),
        ];
        for (name, kind, help, read) in families {
            metrics.family(name, kind, "", help);
            for of in &all {
                if let Some(value) = read(of) {
                    metrics.sample(&[("map", &of.0.name)], value as f64);
                }
            }
        }
    }
}

/// A map of a program.
struct OfMap<K, V, E> {
    id: String,
    name: String,
    map: Arc<OrderedMap<K, V, E>>,
}

impl<K, V, E> ObservedMap for OfMap<K, V, E>
where
    K: ByteKey + Debug,
    V: Clone + 'static,
    E: OrderedIndex<K, V> + 'static,
    OrderedMap<K, V, E>: Send + Sync,
{
    fn info(&self) -> MapInfo {
        let engine = self.map.engine();
        let walked = engine.transactional().is_some();
        let name = engine.engine();
        MapInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: "map",
            engine: name.to_owned(),
            keys: self.map.len() as u64,
            walked,
            reason: (!walked).then(|| format!("{name} has no leaves with locks of their own")),
        }
    }

    fn walk(&self, visit: &mut dyn FnMut(&Leaf<'_>) -> ControlFlow<()>) -> Option<(u64, u64)> {
        let steps = self.map.engine().transactional()?;
        let adapted = steps.walk(&mut |part| {
            let mut show = |low: Option<&[u8]>| {
                visit(&Leaf {
                    low,
                    entries: part.entries,
                    waits: part.waits,
                    acquisitions: part.acquisitions,
                    format: part.format,
                })
            };
            match &part.low {
                None => show(None),
                Some(low) => low.with_bytes(|bytes| show(Some(bytes))),
            }
        });
        Some((adapted.splits, adapted.joins))
    }

    fn bytes_at(&self, _: &[u8]) -> Option<u64> {
        // What a value points at is not known.
        Some((size_of::<K>() + size_of::<V>()) as u64)
    }

    fn text(&self, key: &[u8]) -> String {
        let number = (K::HEAD_IS_KEY)
            .then(|| K::from_head(K::head_of_bytes(key)))
            .flatten();
        if let Some(key) = number {
            return format!("{key:?}");
        }
        match std::str::from_utf8(key) {
            Ok(text) if K::PLAIN_BYTES.is_some() && !text.chars().any(char::is_control) => {
                text.to_owned()
            }
            _ => crate::map::hex(key),
        }
    }

    fn keys(&self, from: &[u8], to: Option<&[u8]>, limit: usize) -> Result<Keys, String> {
        let mut begin: Option<K> = None;
        if let Some(steps) = self.map.engine().transactional() {
            steps.walk(&mut |part| {
                let is_below = |low: &K| low.with_bytes(|bytes| bytes <= from);
                if part.low.as_ref().is_none_or(is_below) {
                    begin = part.low.clone().or(begin.take());
                    return ControlFlow::Continue(());
                }
                ControlFlow::Break(())
            });
        }
        let low = begin.map_or(Bound::Unbounded, Bound::Included);
        let (mut shown, mut passed) = (Keys::default(), 0);
        let _ = self
            .map
            .for_each((low, Bound::Unbounded), Direction::Ascending, |key, _| {
                let place = key.with_bytes(|bytes| {
                    if bytes < from {
                        return None;
                    }
                    let is_behind = to.is_some_and(|to| bytes >= to);
                    Some((!is_behind).then(|| crate::map::hex(bytes)))
                });
                let raw = match place {
                    None => {
                        passed += 1;
                        return match passed < MOST_PASSED {
                            true => ControlFlow::Continue(()),
                            false => ControlFlow::Break(()),
                        };
                    }
                    Some(None) => return ControlFlow::Break(()),
                    Some(Some(raw)) => raw,
                };
                if shown.keys.len() == limit {
                    shown.more = true;
                    return ControlFlow::Break(());
                }
                shown.keys.push(KeyInfo {
                    text: format!("{key:?}"),
                    raw,
                    kind: short_name(std::any::type_name::<V>()),
                    size: size_of::<V>() as u64,
                });
                ControlFlow::Continue(())
            });
        if passed == MOST_PASSED {
            return Err(format!(
                "the range begins behind more than {MOST_PASSED} keys, and this engine has no walk"
            ));
        }
        Ok(shown)
    }
}

/// The name of a type without its modules, if it has no parameters.
fn short_name(name: &str) -> String {
    match name.contains('<') {
        true => name.to_owned(),
        false => name.rsplit("::").next().unwrap_or(name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_any_keys_show_their_leaves_and_keys() {
        let numbers: Arc<OrderedMap<u64, u32>> = Arc::default();
        let texts: Arc<OrderedMap<String, u8>> = Arc::default();
        for number in 0..5000 {
            numbers.insert(number, 1);
            texts.insert(format!("key{number:05}"), 2);
        }
        let maps = Maps::new("test", "1")
            .with("numbers", numbers)
            .with("texts", texts);
        let shown = maps.maps();
        assert_eq!(shown[0].info().keys, 5000);
        let (from, to) = (1000_u64.to_be_bytes(), 1003_u64.to_be_bytes());
        let keys = shown[0].keys(&from, Some(&to), 50).expect("keys");
        let found: Vec<_> = keys.keys.iter().map(|key| &key.text[..]).collect();
        assert_eq!((found, keys.more), (vec!["1000", "1001", "1002"], false));
        assert_eq!(shown[0].text(&from), "1000");
        let keys = shown[1].keys(b"key01", None, 2).expect("keys");
        assert_eq!((keys.keys.len(), keys.more), (2, true));
        assert_eq!(keys.keys[0].text, "\"key01000\"");
        assert_eq!(shown[1].text(b"key01"), "key01");
        for map in shown {
            let mut entries = 0;
            let walked = map.walk(&mut |leaf| {
                entries += leaf.entries.unwrap_or(0);
                ControlFlow::Continue(())
            });
            assert_eq!((walked.is_some(), entries), (true, 5000));
        }
        let Second { keys, memory, .. } = maps.second();
        let sizes = [
            size_of::<u64>(),
            size_of::<u32>(),
            size_of::<String>(),
            size_of::<u8>(),
        ];
        let bytes = 5000 * sizes.iter().sum::<usize>() as u64;
        assert_eq!(
            (keys, memory.kinds),
            (10_000, vec![("keys and values", bytes)])
        );
        let shows_memory = maps.overview().sections.contains(&"memory");
        assert_eq!(shows_memory, memory.used > 0);
        let mut metrics = Metrics::new("tremula");
        maps.metrics(&mut metrics);
        let text = metrics.finish();
        assert!(
            text.contains("tremula_map_keys{map=\"texts\"} 5000\n"),
            "{text}"
        );
    }
}
