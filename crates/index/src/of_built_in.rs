//! An index of keys of which the compiler knows only their order, on an engine that needs their
//! byte forms ([`built_in`](crate::key::built_in)).

use crate::contract::{
    Direction, Implementation, KeyRange, Shape, Storable, Update, visit_in_batches,
};
use crate::form::{Form, Sought};
use crate::key::built_in::BuiltIn;
use crate::{OrderedIndex, WithEngine};
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};

/// Makes an index of built-in keys.
pub(crate) struct MakeOfBuiltIn<K>(pub(crate) PhantomData<fn(K)>);

impl<K: Ord + Storable, V: Storable> WithEngine<BuiltIn<K>, V> for MakeOfBuiltIn<K> {
    type Output = Box<dyn OrderedIndex<K, V>>;

    fn run<I: OrderedIndex<BuiltIn<K>, V> + 'static>(self, make: fn() -> I) -> Self::Output {
        Box::new(OfBuiltIn(make()))
    }
}

/// An index of built-in keys, asked for by the keys themselves.
struct OfBuiltIn<I>(I);

/// A form of a key, as a form of a built-in key.
struct FormOfBuiltIn<'f, K>(&'f dyn Form<K>);

impl<K> Form<BuiltIn<K>> for FormOfBuiltIn<'_, K> {
    fn compare(&self, key: &BuiltIn<K>) -> Ordering {
        self.0.compare(&key.0)
    }

    fn read_bytes(&self, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.read_bytes(read)
    }
}

/// The form in a bound.
fn form<K>(bound: Bound<Sought<'_, K>>) -> Option<FormOfBuiltIn<'_, K>> {
    match bound {
        Bound::Included(Sought::Form(form)) | Bound::Excluded(Sought::Form(form)) => {
            Some(FormOfBuiltIn(form))
        }
        _ => None,
    }
}

/// A bound, as one of built-in keys; `form` is the form in it.
fn converted<'b, K>(
    bound: Bound<Sought<'b, K>>,
    form: Option<&'b FormOfBuiltIn<'_, K>>,
) -> Bound<Sought<'b, BuiltIn<K>>> {
    bound.map(|sought| match (sought, form) {
        (Sought::Key(key), _) => Sought::Key(BuiltIn::of(key)),
        (Sought::Form(_), Some(form)) => Sought::Form(form),
        (Sought::Form(_), None) => unreachable!("it is the form in this bound"),
    })
}

/// Calls `work` with a range, as a range of built-in keys.
fn with_range<K, R>(range: KeyRange<'_, K>, work: impl FnOnce(KeyRange<'_, BuiltIn<K>>) -> R) -> R {
    let (low, high) = (form(range.low), form(range.high));
    work(KeyRange {
        low: converted(range.low, low.as_ref()),
        high: converted(range.high, high.as_ref()),
    })
}

fn entry<K, V>((key, value): (BuiltIn<K>, V)) -> (K, V) {
    (key.0, value)
}

impl<K: Ord + Storable, V: Storable, I: OrderedIndex<BuiltIn<K>, V>> Implementation<K, V>
    for OfBuiltIn<I>
{
    fn engine(&self) -> &'static str {
        self.0.engine()
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        self.0.get_with(BuiltIn::of(key), read)
    }

    fn get(&self, key: &K) -> Option<V> {
        self.0.get(BuiltIn::of(key))
    }

    fn contains_key(&self, key: &K) -> bool {
        self.0.contains_key(BuiltIn::of(key))
    }

    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        self.0.can_seek(&FormOfBuiltIn(form))
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        self.0.seek(&FormOfBuiltIn(form), read)
    }

    fn get_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
        self.0.get_many(BuiltIn::of_all(keys), out);
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        self.0.insert(BuiltIn(key), value)
    }

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        self.0.insert_if_absent(BuiltIn(key), value)
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.0.remove(BuiltIn::of(key))
    }

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        self.0.update(BuiltIn(key), decide)
    }

    fn first(&self) -> Option<(K, V)> {
        self.0.first().map(entry)
    }

    fn last(&self) -> Option<(K, V)> {
        self.0.last().map(entry)
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        self.0.next(BuiltIn::of(key)).map(entry)
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        self.0.prev(BuiltIn::of(key)).map(entry)
    }

    fn step_with(&self, key: &K, direction: Direction, read: &mut dyn FnMut(&K, &V)) -> bool {
        let read = &mut |key: &BuiltIn<K>, value: &V| read(&key.0, value);
        self.0.step_with(BuiltIn::of(key), direction, read)
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.0.pop_first().map(entry)
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.0.pop_last().map(entry)
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        let mut entries = Vec::new();
        with_range(range, |range| {
            self.0.scan(range, direction, limit, &mut entries);
        });
        out.extend(entries.into_iter().map(entry));
    }

    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        let mut entries = Vec::new();
        visit_in_batches(
            range,
            direction,
            |rest, size, batch| {
                with_range(rest, |rest| {
                    self.0.scan(rest, direction, size, &mut entries);
                });
                batch.extend(entries.drain(..).map(entry));
            },
            visit,
        );
    }

    fn snapshot(&self, range: KeyRange<'_, K>) -> Option<Vec<(K, V)>> {
        let entries = with_range(range, |range| self.0.snapshot(range))?;
        Some(entries.into_iter().map(entry).collect())
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        with_range(range, |range| self.0.remove_range(range))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}
