//! Stores on the ordered engines.

use super::key::{KeptHead, OrderedKey};
use super::{Edge, Entry, Kept, Span, Store};
use crate::term::Term;
use std::ops::Bound;
use tremula_index::container::{BTree, Beside};
use tremula_index::{
    BackgroundSkipList, BwTree, CaTree, Direction, Engine, KeyRange, LfcaTree, Locked, OlcBTree,
    OrderedIndex, Shape, SkipList, Update,
};

/// An empty store on this engine; `None` if terms cannot be kept in it: radix trees need a byte
/// form of the keys, which terms do not have.
pub(in super::super) fn open(engine: Engine) -> Option<Box<dyn Store>> {
    Some(match engine {
        Engine::CaTree => Box::new(Ordered(CaTree::<OrderedKey, Kept, Headed>::new())),
        Engine::LfcaTree => Box::new(Ordered(LfcaTree::<OrderedKey, Kept, KeptHead>::new())),
        Engine::BTree => Box::new(Ordered(OlcBTree::<OrderedKey, Kept, KeptHead>::new())),
        Engine::BwTree => Box::new(Ordered(BwTree::<OrderedKey, Kept, KeptHead>::new())),
        Engine::Locked => Box::new(Ordered(Locked::<OrderedKey, Kept, Headed>::new())),
        Engine::SkipList => Box::new(Ordered(SkipList::<OrderedKey, Kept, KeptHead>::new())),
        Engine::BackgroundSkipList => {
            Box::new(Ordered(
                BackgroundSkipList::<OrderedKey, Kept, KeptHead>::new(),
            ))
        }
        Engine::Art | Engine::Masstree => return None,
    })
}

/// What `ca_tree` and `locked` have inside.
type Headed = BTree<OrderedKey, Kept, Beside<KeptHead>>;

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

    fn insert(&self, key: Term, kept: Kept) -> Option<Kept> {
        self.0.insert(OrderedKey::Key(key), kept)
    }

    fn insert_if_absent(&self, key: Term, kept: Kept) -> bool {
        self.0.insert_if_absent(OrderedKey::Key(key), kept).is_ok()
    }

    fn remove(&self, key: &Term) -> Option<Kept> {
        self.0.remove(&OrderedKey::Key(key.clone()))
    }

    fn update(
        &self,
        key: Term,
        decide: &mut dyn FnMut(Option<&Kept>) -> Update<Kept>,
    ) -> Option<Kept> {
        self.0.update(OrderedKey::Key(key), decide)
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

    fn remove_range(&self, span: Span<'_>) -> usize {
        let (low, high) = (place(span.low), place(span.high));
        let range = KeyRange::new(low.as_ref(), high.as_ref());
        self.0.remove_range(range)
    }

    fn clear(&self) {
        self.0.remove_range(KeyRange::all());
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}
