//! Many lookups at once: while one waits for memory the others go on.

use super::Art;
use super::child::{Is, LeafRef, NodeRef};
use super::form::Form;
use super::header::symbol_at;
use super::lookup::Arrival;
use crate::bounds::ByteForm;
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::prefetch::prefetch;
use tremula_sync::reclaim::Guard;

/// Lookups that are under way at once: more than a core has cache misses under way.
const AT_ONCE: usize = 16;

/// A lookup under way.
struct Lookup<'g, K> {
    /// Which of the group, in it, and where its byte form is.
    number: usize,
    from: usize,
    to: usize,
    at: Waiting<'g, K>,
}

/// What memory a lookup waits for.
enum Waiting<'g, K> {
    /// A node, reached with so many bytes of the key.
    Node(NodeRef<'g>, usize),
    /// The only leaf that can have the key.
    Leaf(LeafRef<'g, K>),
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// Appends the values under `keys`.
    pub(super) fn look_up_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
        out.reserve(keys.len());
        let mut forms = Vec::new();
        for group in keys.chunks(AT_ONCE) {
            let guard = self.collector.pin();
            self.look_up_group(group, &mut forms, out, &guard);
        }
    }

    fn look_up_group(
        &self,
        keys: &[K],
        forms: &mut Vec<u8>,
        out: &mut Vec<Option<V>>,
        guard: &Guard<'_>,
    ) {
        let first = out.len();
        out.resize_with(first + keys.len(), || None);
        let root = self.root(guard);
        forms.clear();
        let mut lookups = [const { None }; AT_ONCE];
        for (number, key) in keys.iter().enumerate() {
            let from = forms.len();
            Form::with(key, |bytes| forms.extend_from_slice(bytes));
            lookups[number] = Some(Lookup {
                number,
                from,
                to: forms.len(),
                at: Waiting::Node(root, 0),
            });
        }
        let mut left = keys.len();
        while left > 0 {
            for place in &mut lookups[..keys.len()] {
                let Some(lookup) = place else {
                    continue;
                };
                let bytes = &forms[lookup.from..lookup.to];
                let value = match lookup.at {
                    Waiting::Leaf(leaf) => {
                        let leaf = leaf.get();
                        leaf.is(bytes).then(|| leaf.value())
                    }
                    Waiting::Node(node, start) => match Self::step(node, bytes, start) {
                        // Something changed: this one begins again.
                        Err(_) => {
                            self.restarts.add(1);
                            lookup.at = Waiting::Node(self.root(guard), 0);
                            continue;
                        }
                        Ok(None) => None,
                        Ok(Some((depth, word))) => match Self::arrive(depth, word, guard) {
                            Arrival::Value(value) => Some(value),
                            Arrival::Child(Is::Nothing) => None,
                            Arrival::Child(Is::Node(next)) => {
                                next.approach(symbol_at(bytes, depth + 1));
                                lookup.at = Waiting::Node(next, depth + 1);
                                continue;
                            }
                            Arrival::Child(Is::Leaf(leaf)) => {
                                prefetch(leaf.get());
                                lookup.at = Waiting::Leaf(leaf);
                                continue;
                            }
                        },
                    },
                };
                // SAFETY: found by a descent under the guard.
                out[first + lookup.number] = value.map(|value| unsafe { value.with(V::clone) });
                *place = None;
                left -= 1;
            }
        }
    }
}
