//! Lookups: of one key, and of many at once.

use super::Masstree;
use super::node::{NodeRef, Word};
use super::record::Entry;
use super::slices::Slices;
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::packed::Packed;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version};

/// Lookups that are under way at once: more than a core has cache misses under way.
const AT_ONCE: usize = 16;

/// What a leaf says of a key.
enum Arrival<'g, V, const W: usize> {
    Found(Option<Packed<V>>),
    Layer(NodeRef<'g, W>),
}

/// A lookup under way.
struct Lookup<'g, const W: usize> {
    /// Which of the group, in it, and where its byte form is.
    number: usize,
    from: usize,
    to: usize,
    node: NodeRef<'g, W>,
    /// The node above, to be validated when a version of this one has been noted.
    above: Option<(NodeRef<'g, W>, Version)>,
    depth: usize,
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// The value under the key with this byte form; it may be looked at while `guard` lives.
    #[inline]
    pub(super) fn look_up(
        &self,
        bytes: &[u8],
        guard: &Guard<'_>,
    ) -> Result<Option<Packed<V>>, Restart> {
        let mut root = self.root();
        let mut depth = 0;
        loop {
            let slice = Slices::<K>::at(bytes, depth);
            let (leaf, version) = root.reach(slice)?;
            match Self::arrive(leaf.word_of(version, slice)?, bytes, depth, guard) {
                Arrival::Found(value) => return Ok(value),
                Arrival::Layer(next) => {
                    (root, depth) = (next, depth + Slices::<K>::STEP);
                }
            }
        }
    }

    /// What a leaf's word for the slice at a depth is to a key. The leaf was linked since the
    /// guard was pinned, and the word has been validated.
    #[inline]
    fn arrive<'g>(
        word: Option<Word>,
        bytes: &[u8],
        depth: usize,
        guard: &'g Guard<'_>,
    ) -> Arrival<'g, V, W> {
        let Some(word) = word else {
            return Arrival::Found(None);
        };
        if K::HEAD_IS_KEY {
            return Arrival::Found(Some(Packed::of_word(word)));
        }
        // SAFETY: as the caller says.
        match unsafe { Entry::<K, V, W>::of_word(word, guard) } {
            Entry::Layer(root) => Arrival::Layer(root),
            Entry::Record(record) => {
                let record = record.get();
                let is_it = record.is(bytes, depth + Slices::<K>::STEP);
                Arrival::Found(is_it.then(|| record.value()))
            }
        }
    }

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
        forms.clear();
        let mut lookups = [const { None }; AT_ONCE];
        for (number, key) in keys.iter().enumerate() {
            let from = forms.len();
            key.with_bytes(|bytes| forms.extend_from_slice(bytes));
            lookups[number] = Some(Lookup {
                number,
                from,
                to: forms.len(),
                node: self.root(),
                above: None,
                depth: 0,
            });
        }
        let mut left = keys.len();
        while left > 0 {
            for place in &mut lookups[..keys.len()] {
                let Some(lookup) = place else {
                    continue;
                };
                let bytes = &forms[lookup.from..lookup.to];
                match lookup.step::<K, V>(bytes, guard) {
                    Ok(None) => {}
                    Ok(Some(value)) => {
                        // SAFETY: found by a descent under the guard.
                        let value = value.map(|value| unsafe { value.with(V::clone) });
                        out[first + lookup.number] = value;
                        *place = None;
                        left -= 1;
                    }
                    // Something changed: this one begins again.
                    Err(Restart) => {
                        self.restarts.add(1);
                        lookup.begin_layer(self.root(), 0);
                    }
                }
            }
        }
    }
}

impl<'g, const W: usize> Lookup<'g, W> {
    fn begin_layer(&mut self, root: NodeRef<'g, W>, depth: usize) {
        (self.node, self.above, self.depth) = (root, None, depth);
    }

    /// Goes on by one node; the next has then been asked for. Some if it has come to its end.
    #[inline]
    fn step<K: ByteKey, V: Storable>(
        &mut self,
        bytes: &[u8],
        guard: &'g Guard<'_>,
    ) -> Result<Option<Option<Packed<V>>>, Restart> {
        let slice = Slices::<K>::at(bytes, self.depth);
        let node = self.node;
        let version = node.version().read()?;
        if let Some((above, version)) = self.above {
            above.version().validate(version)?;
        }
        if node.level() > 0 {
            let (_, child) = node.child_of(version, slice)?;
            child.prefetch();
            (self.node, self.above) = (child, Some((node, version)));
            return Ok(None);
        }
        let word = node.word_of(version, slice)?;
        match Masstree::<K, V, W>::arrive(word, bytes, self.depth, guard) {
            Arrival::Found(value) => Ok(Some(value)),
            Arrival::Layer(root) => {
                root.prefetch();
                self.begin_layer(root, self.depth + Slices::<K>::STEP);
                Ok(None)
            }
        }
    }
}
