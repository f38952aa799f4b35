//! A client that listens.

use super::Kind;
use super::topic::Name;
use crate::lock::lock;
use crate::outbox::Outbox;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A client that listens to channels or patterns.
pub(crate) struct Subscriber {
    pub(super) outbox: Arc<Outbox>,
    /// What it listens to, of each kind. Only its own connection changes these.
    names: Mutex<[BTreeSet<Name>; Kind::COUNT]>,
}

impl Subscriber {
    pub(super) fn new(outbox: Arc<Outbox>) -> Self {
        Self {
            outbox,
            names: Mutex::default(),
        }
    }

    /// The number of its client.
    pub(super) fn id(&self) -> u64 {
        self.outbox.client().id
    }

    pub(super) fn listens(&self, kind: Kind, name: &[u8]) -> bool {
        lock(&self.names)[kind as usize].contains(name)
    }

    pub(super) fn insert(&self, kind: Kind, name: Name) {
        let mut names = lock(&self.names);
        names[kind as usize].insert(name);
        self.show(&names);
    }

    /// Removes a name, and returns it if it was there.
    pub(super) fn remove(&self, kind: Kind, name: &[u8]) -> Option<Name> {
        let mut names = lock(&self.names);
        let removed = names[kind as usize].take(name);
        self.show(&names);
        removed
    }

    /// How many names of a kind it listens to.
    pub(super) fn count(&self, kind: Kind) -> usize {
        lock(&self.names)[kind as usize].len()
    }

    /// What it listens to, of a kind.
    pub(super) fn names(&self, kind: Kind) -> Vec<Name> {
        lock(&self.names)[kind as usize].iter().cloned().collect()
    }

    /// Whether all that it listens to passes.
    pub(super) fn all(&self, passes: &dyn Fn(Kind, &[u8]) -> bool) -> bool {
        let names = lock(&self.names);
        Kind::ALL.into_iter().all(|kind| {
            let mut names = names[kind as usize].iter();
            names.all(|name| passes(kind, name))
        })
    }

    /// Lets `CLIENT LIST` show how many there are.
    fn show(&self, names: &[BTreeSet<Name>; Kind::COUNT]) {
        let counts = names.each_ref().map(BTreeSet::len);
        self.outbox.client().set_subscriptions(counts);
    }
}
