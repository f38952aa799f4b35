//! Lookups of one key, and of many at once.

use super::Trie;
use super::bounds::ByteForm;
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::kit::{Packed, Sought};
use std::ops::ControlFlow;
use tremula_sync::Restart;
use tremula_sync::reclaim::Guard;

/// How many lookups are under way at once: more than the cache misses that a core has under way.
const AT_ONCE: usize = 16;

/// A lookup of a group: the range of its byte form in the buffer, and its state.
struct Member<L> {
    from: usize,
    to: usize,
    at: L,
}

/// How a trie finds the value of a key.
pub(crate) trait Lookups<K: ByteKey, V: Storable>: Trie<K, V> {
    /// The state of a lookup, which waits for the memory of one node.
    type Lookup<'g>: Copy
    where
        Self: 'g;

    /// The value under the key with this byte form. It stays valid while `guard` lives.
    fn look_up(&self, bytes: &[u8], guard: &Guard<'_>) -> Result<Option<Packed<V>>, Restart>;

    /// The state of a lookup that is at the root.
    fn begin_lookup<'g>(&'g self, guard: &'g Guard<'_>) -> Self::Lookup<'g>;

    /// Advances a lookup by one node, and prefetches the next. Breaks with the value under the key
    /// with this byte form.
    fn go_on<'g>(
        &'g self,
        lookup: &mut Self::Lookup<'g>,
        bytes: &[u8],
        guard: &'g Guard<'_>,
    ) -> Result<ControlFlow<Option<Packed<V>>>, Restart>;

    /// Passes the value under `key` to `read`.
    #[inline(always)]
    fn find<'k, R>(&self, key: impl Into<Sought<'k, K>>, read: impl FnOnce(&V) -> R) -> Option<R> {
        let guard = self.collector().pin();
        let look_up = |bytes: &[u8]| self.persist(|| self.look_up(bytes, &guard));
        let found = Self::Form::of_sought(key.into(), look_up);
        // SAFETY: a descent under the guard found the value.
        found.map(|value| unsafe { value.with(read) })
    }

    /// Appends the values under `keys`. While one lookup waits for memory, the others continue.
    fn look_up_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
        out.reserve(keys.len());
        let mut forms = Vec::new();
        for group in keys.chunks(AT_ONCE) {
            let guard = self.collector().pin();
            self.look_up_group(group, &mut forms, out, &guard);
        }
    }

    /// Appends the values under at most [`AT_ONCE`] keys.
    fn look_up_group(
        &self,
        keys: &[K],
        forms: &mut Vec<u8>,
        out: &mut Vec<Option<V>>,
        guard: &Guard<'_>,
    ) {
        let first = out.len();
        out.resize_with(first + keys.len(), || None);
        forms.clear();
        let root = self.begin_lookup(guard);
        let mut lookups = [const { None }; AT_ONCE];
        for (number, key) in keys.iter().enumerate() {
            let from = forms.len();
            Self::Form::with(key, |bytes| forms.extend_from_slice(bytes));
            lookups[number] = Some(Member {
                from,
                to: forms.len(),
                at: root,
            });
        }
        let mut left = keys.len();
        while left > 0 {
            for (number, member) in lookups[..keys.len()].iter_mut().enumerate() {
                let Some(lookup) = member else {
                    continue;
                };
                let bytes = &forms[lookup.from..lookup.to];
                match self.go_on(&mut lookup.at, bytes, guard) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(value)) => {
                        // SAFETY: a descent under the guard found the value.
                        out[first + number] = value.map(|value| unsafe { value.with(V::clone) });
                        *member = None;
                        left -= 1;
                    }
                    // Another thread has changed something: this lookup restarts.
                    Err(Restart) => {
                        self.restarts().add(1);
                        lookup.at = self.begin_lookup(guard);
                    }
                }
            }
        }
    }
}
