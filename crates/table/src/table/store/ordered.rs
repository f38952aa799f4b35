//! Stores on the ordered engines.

use super::key::{KeptHead, OrderedKey};
use super::{Decision, Edge, Entry, Garbage, Kept, Note, Reported, Span, Store};
use crate::term::Term;
use std::ops::{Bound, ControlFlow};
use tremula_index::{
    Adapted, Direction, KeyRange, OrderedIndex, Part, RegisteredEngine, Shape, Update, WithEngine,
};

/// An empty store on this engine; `None` if the engine needs a byte form of its keys, which terms
/// do not have.
pub(in super::super) fn open(engine: impl RegisteredEngine) -> Option<Box<dyn Store>> {
    engine.with_heads::<OrderedKey, Kept, KeptHead, _>(Open)
}

/// Opens a store on the engine that it is run with.
struct Open;

impl WithEngine<OrderedKey, Kept> for Open {
    type Output = Box<dyn Store>;

    fn run<I: OrderedIndex<OrderedKey, Kept> + 'static>(self, make: fn() -> I) -> Box<dyn Store> {
        Box::new(Ordered(make()))
    }
}

/// An ordered index as a store.
struct Ordered<I>(I);

fn entry((key, kept): (OrderedKey, Kept)) -> Entry {
    (key.into_term(), kept)
}

fn place(edge: Edge<'_>) -> Bound<OrderedKey> {
    match edge {
        Edge::Open => Bound::Unbounded,
        Edge::Beyond(key) => Bound::Excluded(OrderedKey::Key(key.clone())),
        Edge::Bound(bound) => Bound::Excluded(OrderedKey::bound(bound)),
    }
}

impl<I: OrderedIndex<OrderedKey, Kept>> Store for Ordered<I> {
    fn engine(&self) -> &'static str {
        self.0.engine()
    }

    fn get_with(&self, key: &Term, read: &mut dyn FnMut(&Kept)) -> bool {
        self.0.get_with(&OrderedKey::Key(key.clone()), read)
    }

    fn insert(&self, key: Term, kept: Kept, note: Note<'_>) -> Option<Kept> {
        if note.0.is_none() {
            return self.0.insert(OrderedKey::Key(key), kept);
        }
        let mut kept = Some(kept);
        let put = &mut |_: Option<&Kept>| kept.take().map_or(Decision::Keep, Decision::Put);
        self.update(key, put, note)
    }

    fn insert_if_absent(&self, key: Term, kept: Kept, note: Note<'_>) -> bool {
        if note.0.is_none() {
            return self.0.insert_if_absent(OrderedKey::Key(key), kept).is_ok();
        }
        let (mut kept, mut absent) = (Some(kept), false);
        let put = &mut |there: Option<&Kept>| {
            absent = there.is_none();
            let kept = kept.take().filter(|_| absent);
            kept.map_or(Decision::Keep, Decision::Put)
        };
        self.update(key, put, note);
        absent
    }

    fn remove(&self, key: &Term, note: Note<'_>) -> Option<Kept> {
        if note.0.is_none() {
            return self.0.remove(&OrderedKey::Key(key.clone()));
        }
        self.update(key.clone(), &mut |_| Decision::Remove, note)
    }

    fn update(
        &self,
        key: Term,
        decide: &mut dyn FnMut(Option<&Kept>) -> Decision,
        mut note: Note<'_>,
    ) -> Option<Kept> {
        let its_key = note.0.is_some().then(|| key.clone());
        self.0.update(OrderedKey::Key(key), &mut |kept| {
            let decision = decide(kept);
            // The engine calls this closure once, while no other thread can change the entry, and
            // shows what it decides to others afterwards.
            if let Some(key) = &its_key {
                note.decided(key, kept.is_some(), &decision);
            }
            match decision {
                Decision::Put(kept) | Decision::Add(kept, _) => Update::Put(kept),
                Decision::Keep | Decision::Expire(_) => Update::Keep,
                Decision::Remove => Update::Remove,
            }
        })
    }

    fn end(&self, direction: Direction) -> Option<Entry> {
        match direction {
            Direction::Ascending => self.0.first(),
            Direction::Descending => self.0.last(),
        }
        .map(entry)
    }

    fn step_with(
        &self,
        key: &Term,
        direction: Direction,
        read: &mut dyn FnMut(&Term, &Kept),
    ) -> bool {
        let key = OrderedKey::Key(key.clone());
        let read = &mut |key: &OrderedKey, kept: &Kept| read(key.term(), kept);
        self.0.step_with(&key, direction, read)
    }

    fn scan(&self, span: Span<'_>, direction: Direction, limit: usize, out: &mut Vec<Entry>) {
        let (low, high) = (place(span.low), place(span.high));
        let mut entries = Vec::new();
        let range = KeyRange::new(low.as_ref(), high.as_ref());
        self.0.scan(range, direction, limit, &mut entries);
        out.extend(entries.into_iter().map(entry));
    }

    fn remove_range(&self, span: Span<'_>, _: Reported) -> usize {
        let (low, high) = (place(span.low), place(span.high));
        let range = KeyRange::new(low.as_ref(), high.as_ref());
        self.0.remove_range(range)
    }

    fn take_all(&self, _: Reported) -> Option<Garbage> {
        None
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn walk(&self, visit: &mut dyn FnMut(&Part<OrderedKey>) -> ControlFlow<()>) -> Option<Adapted> {
        Some(self.0.transactional()?.walk(visit))
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}
