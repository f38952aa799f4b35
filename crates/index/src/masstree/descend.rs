//! Going down a layer to the leaf of a slice, and on to the right if that leaf has been split.

use super::node::{NodeRef, Word};
use tremula_sync::{Restart, Version, VersionGuard};

/// A leaf, and a version at which it was the one.
pub(super) type Seen<'g, const W: usize> = (NodeRef<'g, W>, Version);

/// An inner node on the way, its version, and which child the way goes to.
#[derive(Clone, Copy)]
pub(super) struct Parent<'g, const W: usize> {
    pub(super) node: NodeRef<'g, W>,
    pub(super) version: Version,
    pub(super) at: usize,
}

/// A node on the way, and the one above it; none above the root.
pub(super) struct Here<'g, const W: usize> {
    pub(super) node: NodeRef<'g, W>,
    pub(super) version: Version,
    pub(super) parent: Option<Parent<'g, W>>,
}

impl<'g, const W: usize> Here<'g, W> {
    /// Begins at the root of a layer.
    #[inline]
    pub(super) fn at_root(root: NodeRef<'g, W>) -> Result<Self, Restart> {
        Ok(Self {
            node: root,
            version: root.version().read()?,
            parent: None,
        })
    }

    /// Goes from an inner node to the child that is responsible for a slice.
    #[inline]
    pub(super) fn step(self, slice: u64) -> Result<Self, Restart> {
        let (node, version) = (self.node, self.version);
        let (at, child) = node.child_of(version, slice)?;
        child.prefetch();
        let child_version = child.version().read()?;
        // At this moment the child was at that version, and responsible.
        node.version().validate(version)?;
        Ok(Self {
            node: child,
            version: child_version,
            parent: Some(Parent { node, version, at }),
        })
    }
}

impl<'g, const W: usize> NodeRef<'g, W> {
    /// Of an inner node at a version, the child that was responsible for a slice, and its place.
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
        // SAFETY: validated: it was the child of a node that was linked since the guard was
        // pinned.
        Ok((at, unsafe { NodeRef::from_raw(child) }))
    }

    /// From the root of a layer, the leaf that is responsible for a slice.
    #[inline]
    pub(super) fn reach(self, slice: u64) -> Result<Seen<'g, W>, Restart> {
        let mut here = Here::at_root(self)?;
        while here.node.level() > 0 {
            here = here.step(slice)?;
        }
        Ok((here.node, here.version))
    }

    /// From a leaf that was responsible for a slice and has changed, the one that is now: itself,
    /// or one to the right of it.
    #[cold]
    pub(super) fn follow(self, slice: u64) -> Result<Seen<'g, W>, Restart> {
        let mut leaf = self;
        loop {
            let version = leaf.version().read()?;
            // The root of a layer, which has become an inner node.
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

    /// What a leaf has for a slice; goes on from a leaf that changes meanwhile.
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

    /// Locks a leaf that is responsible for a slice, or the one that is by then. Waits for whoever
    /// holds it.
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

    /// From the root of a layer, the leaf that is responsible for a slice, locked.
    pub(super) fn lock_leaf(
        self,
        slice: u64,
    ) -> Result<(NodeRef<'g, W>, VersionGuard<'g>), Restart> {
        let (leaf, version) = self.reach(slice)?;
        leaf.lock_seen(version, slice)
    }
}
