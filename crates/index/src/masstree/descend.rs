//! Descents in one layer: to the leaf of a slice, and to the right if that leaf has been split.

use super::node::{NodeRef, Word};
use tremula_sync::{Restart, Version, VersionGuard};

/// A leaf, and a version at which it was responsible for the slice.
type Seen<'g, const W: usize> = (NodeRef<'g, W>, Version);

/// An inner node on the way, its version, and the index of the child that the descent goes to.
#[derive(Clone, Copy)]
pub(super) struct Parent<'g, const W: usize> {
    pub(super) node: NodeRef<'g, W>,
    pub(super) version: Version,
    pub(super) at: usize,
}

/// The current node of a descent, and its parent; `None` at the root.
pub(super) struct Step<'g, const W: usize> {
    pub(super) node: NodeRef<'g, W>,
    pub(super) version: Version,
    pub(super) parent: Option<Parent<'g, W>>,
}

impl<'g, const W: usize> Step<'g, W> {
    /// Begins a descent at the root of a layer.
    #[inline]
    pub(super) fn at_root(root: NodeRef<'g, W>) -> Result<Self, Restart> {
        Ok(Self {
            node: root,
            version: root.version().read()?,
            parent: None,
        })
    }

    /// Descends to the child that is responsible for a slice.
    #[inline]
    pub(super) fn descend(self, slice: u64) -> Result<Self, Restart> {
        let (node, version) = (self.node, self.version);
        let (at, child) = node.child_of(version, slice)?;
        child.prefetch();
        let child_version = child.version().read()?;
        // The child was at that version, and responsible for the slice, at this moment.
        node.version().validate(version)?;
        Ok(Self {
            node: child,
            version: child_version,
            parent: Some(Parent { node, version, at }),
        })
    }
}

impl<'g, const W: usize> NodeRef<'g, W> {
    /// The child of this inner node that was responsible for a slice at a version, and its index.
    #[inline]
    pub(super) fn child_of(
        self,
        version: Version,
        slice: u64,
    ) -> Result<(usize, NodeRef<'g, W>), Restart> {
        let at = self.child_at(slice);
        let child = self.child(at);
        self.version().validate(version)?;
        let child = child.ok_or(Restart)?;
        // SAFETY: validated: it was the child of a node that was linked since the guard was pinned.
        Ok((at, unsafe { NodeRef::from_raw(child) }))
    }

    /// Descends from this root of a layer to the leaf that is responsible for a slice.
    #[inline]
    pub(super) fn reach(self, slice: u64) -> Result<Seen<'g, W>, Restart> {
        let mut step = Step::at_root(self)?;
        while step.node.level() > 0 {
            step = step.descend(slice)?;
        }
        Ok((step.node, step.version))
    }

    /// The leaf that is responsible for a slice now, from a leaf that was responsible and has
    /// changed: the same leaf, or one to the right of it.
    #[cold]
    pub(super) fn follow(self, slice: u64) -> Result<Seen<'g, W>, Restart> {
        let mut leaf = self;
        loop {
            let version = leaf.version().read()?;
            // This was the root of a layer, and has become an inner node.
            if leaf.level() > 0 {
                return Err(Restart);
            }
            let next = leaf.next();
            leaf.version().validate(version)?;
            // SAFETY: validated: the neighbour of a leaf that was linked since the guard was
            // pinned.
            match next.map(|next| unsafe { Self::from_raw(next) }) {
                Some(next) if next.low() <= slice => leaf = next,
                _ => return Ok((leaf, version)),
            }
        }
    }

    /// The word for a slice; follows the slice to the right if the leaf changes meanwhile.
    #[inline]
    pub(super) fn word_of(self, version: Version, slice: u64) -> Result<Option<Word>, Restart> {
        let (mut leaf, mut version) = (self, version);
        loop {
            let slot = leaf.find(leaf.order(), slice);
            let word = slot.map(|slot| leaf.word(slot));
            if leaf.version().validate(version).is_ok() {
                return Ok(word);
            }
            (leaf, version) = leaf.follow(slice)?;
        }
    }

    /// Locks a leaf that was responsible for a slice, or the leaf that is responsible by then.
    /// Blocks while another thread holds it.
    #[inline]
    pub(super) fn lock_seen(
        self,
        version: Version,
        slice: u64,
    ) -> Result<(NodeRef<'g, W>, VersionGuard<'g>), Restart> {
        let lock = self.get().lock().lock()?;
        if self.version().validate(version).is_ok() {
            return Ok((self, lock));
        }
        lock.unchanged();
        self.lock_on(slice)
    }

    #[cold]
    fn lock_on(self, slice: u64) -> Result<(NodeRef<'g, W>, VersionGuard<'g>), Restart> {
        let mut leaf = self;
        loop {
            (leaf, _) = leaf.follow(slice)?;
            let lock = leaf.get().lock().lock()?;
            // SAFETY: the neighbour of a leaf that this thread has locked is linked.
            let next = leaf.next().map(|next| unsafe { Self::from_raw(next) });
            if leaf.level() == 0 && next.is_none_or(|next| slice < next.low()) {
                return Ok((leaf, lock));
            }
            lock.unchanged();
        }
    }

    /// Locks the leaf that is responsible for a slice, from this root of a layer.
    pub(super) fn lock_leaf(
        self,
        slice: u64,
    ) -> Result<(NodeRef<'g, W>, VersionGuard<'g>), Restart> {
        let (leaf, version) = self.reach(slice)?;
        leaf.lock_seen(version, slice)
    }
}
