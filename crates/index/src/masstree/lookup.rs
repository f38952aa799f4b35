//! Lookups of one key, and of many at once.

use super::Masstree;
use super::descend::Step;
use super::node::{NodeRef, Word};
use super::record::Entry;
use super::slices::Slices;
use crate::byte_keyed::Lookups;
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::kit::Packed;
use std::ops::ControlFlow;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version};

/// What a lookup learns from a leaf: its result, or the layer to continue in.
type Progress<'g, V, const W: usize> = ControlFlow<Option<Packed<V>>, NodeRef<'g, W>>;

/// The state of one lookup of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'g, const W: usize> {
    node: NodeRef<'g, W>,
    /// The parent and its version, to be validated once the version of this node has been read.
    above: Option<(NodeRef<'g, W>, Version)>,
    depth: usize,
}

impl<K: ByteKey, V: Storable, const W: usize> Lookups<K, V> for Masstree<K, V, W> {
    type Lookup<'g> = Lookup<'g, W>;

    #[inline(always)]
    fn look_up(&self, bytes: &[u8], guard: &Guard<'_>) -> Result<Option<Packed<V>>, Restart> {
        let mut root = self.root();
        let mut depth = 0;
        loop {
            let slice = Slices::<K>::at(bytes, depth);
            // The same as `reach`, written out because `reach` would not be inlined here.
            let mut step = Step::at_root(root)?;
            while step.node.level() > 0 {
                step = step.descend(slice)?;
            }
            let word = step.node.word_of(step.version, slice)?;
            match Self::decode(word, bytes, depth, guard) {
                ControlFlow::Break(value) => return Ok(value),
                ControlFlow::Continue(next) => {
                    (root, depth) = (next, depth + Slices::<K>::STEP);
                }
            }
        }
    }

    fn begin_lookup<'g>(&'g self, _: &'g Guard<'_>) -> Lookup<'g, W> {
        Lookup {
            node: self.root(),
            above: None,
            depth: 0,
        }
    }

    #[inline(always)]
    fn go_on<'g>(
        &'g self,
        lookup: &mut Lookup<'g, W>,
        bytes: &[u8],
        guard: &'g Guard<'_>,
    ) -> Result<ControlFlow<Option<Packed<V>>>, Restart> {
        let slice = Slices::<K>::at(bytes, lookup.depth);
        let node = lookup.node;
        let version = node.version().read()?;
        if let Some((above, version)) = lookup.above {
            above.version().validate(version)?;
        }
        if node.level() > 0 {
            let (_, child) = node.child_of(version, slice)?;
            child.prefetch();
            (lookup.node, lookup.above) = (child, Some((node, version)));
            return Ok(ControlFlow::Continue(()));
        }
        let word = node.word_of(version, slice)?;
        Ok(match Self::decode(word, bytes, lookup.depth, guard) {
            ControlFlow::Break(value) => ControlFlow::Break(value),
            ControlFlow::Continue(root) => {
                root.prefetch();
                (lookup.node, lookup.above) = (root, None);
                lookup.depth += Slices::<K>::STEP;
                ControlFlow::Continue(())
            }
        })
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// Decodes a leaf's word for the slice of a key at a depth. The leaf was linked since the guard
    /// was pinned, and the word has been validated.
    #[inline]
    fn decode<'g>(
        word: Option<Word>,
        bytes: &[u8],
        depth: usize,
        guard: &'g Guard<'_>,
    ) -> Progress<'g, V, W> {
        let Some(word) = word else {
            return ControlFlow::Break(None);
        };
        if K::HEAD_IS_KEY {
            return ControlFlow::Break(Some(Packed::of_word(word)));
        }
        // SAFETY: the caller's promise.
        match unsafe { Entry::<K, W>::of_word(word, guard) } {
            Entry::Layer(root) => ControlFlow::Continue(root),
            Entry::Record(record) => {
                let record = record.get();
                let is_it = record.is_from(bytes, depth + Slices::<K>::STEP);
                ControlFlow::Break(is_it.then(|| record.value()))
            }
        }
    }
}
