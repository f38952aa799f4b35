//! Maps and sets in the formats that serde knows. Needs the feature `serde`.

use crate::{OrderedIndex, OrderedMap, OrderedSet};
use serde_core::de::{MapAccess, SeqAccess, Visitor};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// Writes a map, in the order of its keys. Needs the feature `serde`.
///
/// The entries are those of one moment if the engine promises it
/// ([`Scans::OneMoment`](crate::Scans::OneMoment)), otherwise those that
/// [`range`](OrderedMap::range) returns. Their number comes first, so formats that begin with a
/// length work with every engine.
///
/// Copies all entries before it writes the first one, and drops each copy as soon as it is written.
/// The `Serialize` of a key or a value runs with no lock held, and may call the map.
///
/// # Errors
///
/// Those of the format, and of the `Serialize` of a key or a value. JSON, for example, takes only
/// keys that become text.
///
/// ```
/// use tremula_index::OrderedMap;
///
/// let heights = OrderedMap::from([("oak", 40), ("ash", 35)]);
/// assert_eq!(serde_json::to_string(&heights)?, r#"{"ash":35,"oak":40}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<K, V, E> Serialize for OrderedMap<K, V, E>
where
    K: Ord + Clone + Serialize,
    V: Clone + Serialize,
    E: OrderedIndex<K, V>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.snapshot(..);
        serializer.collect_map(entries.unwrap_or_else(|| self.iter().collect()))
    }
}

/// Reads a map into a new map on an engine that has a default: [`CaTree`](crate::CaTree), unless
/// the type names another. Needs the feature `serde`.
///
/// Inserts one entry after the other, in the order of the input, which need not be sorted. If a key
/// comes twice, the later value replaces the earlier one, as in a `BTreeMap`. A length that the
/// input claims reserves no memory.
///
/// For a map whose engine is chosen at run time, read a `Vec` or a `BTreeMap` and
/// [`extend`](Extend::extend) the map.
///
/// # Errors
///
/// Those of the format, and of the `Deserialize` of a key or a value. The entries that were read
/// before are dropped.
///
/// ```
/// use tremula_index::{OlcBTree, OrderedMap};
///
/// let heights: OrderedMap<String, u32> = serde_json::from_str(r#"{"oak": 40, "ash": 35}"#)?;
/// assert_eq!(heights.first(), Some(("ash".to_owned(), 35)));
///
/// type Wide = OrderedMap<u64, u32, OlcBTree<u64, u32>>;
/// let squares: Wide = serde_json::from_str(r#"{"2": 4, "3": 9}"#)?;
/// assert_eq!(squares.shape().engine, "b_tree");
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de, K, V, E> Deserialize<'de> for OrderedMap<K, V, E>
where
    K: Ord + Clone + Deserialize<'de>,
    V: Clone + Deserialize<'de>,
    E: OrderedIndex<K, V> + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(IntoNew::<Self>::new())
    }
}

/// Writes a set as a sequence, in the order of its keys. Needs the feature `serde`. Consistency,
/// cost and errors are those of writing an [`OrderedMap`].
///
/// ```
/// use tremula_index::OrderedSet;
///
/// let trees = OrderedSet::from(["oak", "ash"]);
/// assert_eq!(serde_json::to_string(&trees)?, r#"["ash","oak"]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<K, E> Serialize for OrderedSet<K, E>
where
    K: Ord + Clone + Serialize,
    E: OrderedIndex<K, ()>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = self.snapshot(..);
        serializer.collect_seq(keys.unwrap_or_else(|| self.iter().collect()))
    }
}

/// Reads a sequence into a new set. Needs the feature `serde`. The engine, the cost and the errors
/// are those of reading an [`OrderedMap`]. Of equal keys the first one is kept, as in a `BTreeSet`.
///
/// ```
/// use tremula_index::OrderedSet;
///
/// let trees: OrderedSet<String> = serde_json::from_str(r#"["oak", "ash", "oak"]"#)?;
/// assert!(trees.iter().eq(["ash", "oak"]));
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de, K, E> Deserialize<'de> for OrderedSet<K, E>
where
    K: Ord + Clone + Deserialize<'de>,
    E: OrderedIndex<K, ()> + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(IntoNew::<Self>::new())
    }
}

/// Reads what a format hands out into a new map or set.
struct IntoNew<C>(PhantomData<C>);

impl<C> IntoNew<C> {
    const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, K, V, E> Visitor<'de> for IntoNew<OrderedMap<K, V, E>>
where
    K: Ord + Clone + Deserialize<'de>,
    V: Clone + Deserialize<'de>,
    E: OrderedIndex<K, V> + Default,
{
    type Value = OrderedMap<K, V, E>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let map = OrderedMap::on(E::default());
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(map)
    }
}

impl<'de, K, E> Visitor<'de> for IntoNew<OrderedSet<K, E>>
where
    K: Ord + Clone + Deserialize<'de>,
    E: OrderedIndex<K, ()> + Default,
{
    type Value = OrderedSet<K, E>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut keys: A) -> Result<Self::Value, A::Error> {
        let set = OrderedSet::of(OrderedMap::on(E::default()));
        while let Some(key) = keys.next_element()? {
            set.insert(key);
        }
        Ok(set)
    }
}
