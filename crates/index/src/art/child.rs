//! The words that nodes keep for their children: tagged pointers, or values.

use super::header::Header;
use super::kinds::{FortyEight, Four, Full, Sixteen};
use crate::byte_keyed::RecordRef;
use std::marker::PhantomData;
use tremula_sync::reclaim::Guard;

/// What a slot of a node holds, whatever it is: a [`Child`], or, in a node of the last byte, a
/// packed value.
pub(super) type Word = *mut ();

/// The bits of a pointer that tell what it leads to. Nodes and leaves are aligned so that these
/// are free.
const TAG: usize = 0b111;
const LEAF: usize = 1;
const FOUR: usize = 2;
const SIXTEEN: usize = 3;
const FORTY_EIGHT: usize = 4;
const FULL: usize = 5;
/// A full node that had no prefix when the pointer was made.
const PLAIN: usize = 6;

/// A child of a node: nothing, a leaf, or a node whose kind is told by the pointer, so that it
/// is known what to prefetch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Child(Word);

/// What a child is.
pub(super) enum Is<'g, K> {
    Nothing,
    Leaf(RecordRef<'g, K>),
    Node(NodeRef<'g>),
}

impl Child {
    #[inline]
    pub(super) const fn of_word(word: Word) -> Self {
        Self(word)
    }

    #[inline]
    pub(super) const fn word(self) -> Word {
        self.0
    }

    pub(super) fn leaf<K>(leaf: RecordRef<'_, K>) -> Self {
        Self::tagged(leaf.word(), LEAF)
    }

    fn tagged(pointer: Word, tag: usize) -> Self {
        debug_assert_eq!(pointer.addr() & TAG, 0);
        Self(pointer.map_addr(|address| address | tag))
    }

    #[inline]
    fn tag(self) -> usize {
        self.0.addr() & TAG
    }

    #[inline]
    pub(super) fn is_leaf(self) -> bool {
        self.tag() == LEAF
    }

    /// A pointer without its tag. May lead nowhere.
    #[inline]
    pub(super) fn pointer(self) -> Word {
        self.0.map_addr(|address| address & !TAG)
    }

    /// Follows the pointer.
    ///
    /// # Safety
    ///
    /// This is a child (not a value) that was read from a node as a whole: either validated, or
    /// from a full node, whose slots are published one by one. And either the child was linked
    /// at some time since `guard` was pinned, or nobody else has it.
    #[inline]
    pub(super) unsafe fn follow<'g, K>(self, _guard: &'g Guard<'_>) -> Is<'g, K> {
        // SAFETY: as the caller promises; the guard keeps the child.
        unsafe { self.follow_alone() }
    }

    /// The same without a guard, for whoever is alone with the tree.
    ///
    /// # Safety
    ///
    /// As for [`follow`](Self::follow); nobody frees the child during `'g`.
    #[inline]
    pub(super) unsafe fn follow_alone<'g, K>(self) -> Is<'g, K> {
        match self.tag() {
            // SAFETY: the tag tells that it is a record, which lives as the caller promises.
            LEAF => Is::Leaf(unsafe { RecordRef::of_word(self.pointer()) }),
            0 => Is::Nothing,
            _ => Is::Node(NodeRef {
                child: self,
                life: PhantomData,
            }),
        }
    }
}

/// A node that lives for `'g`.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'g> {
    child: Child,
    life: PhantomData<&'g Header>,
}

/// A node, by its kind.
pub(super) enum Kind<'g> {
    Four(&'g Four),
    Sixteen(&'g Sixteen),
    FortyEight(&'g FortyEight),
    Full(&'g Full),
}

impl<'g> NodeRef<'g> {
    #[inline]
    pub(super) fn header(self) -> &'g Header {
        // SAFETY: the node lives for `'g`, and every kind of node begins with its header.
        unsafe { &*self.child.pointer().cast() }
    }

    #[inline]
    pub(super) fn kind(self) -> Kind<'g> {
        let pointer = self.child.pointer();
        match self.child.tag() {
            // SAFETY: the node lives for `'g`, and the tag tells its kind. Likewise below.
            FOUR => Kind::Four(unsafe { &*pointer.cast() }),
            // SAFETY: as above.
            SIXTEEN => Kind::Sixteen(unsafe { &*pointer.cast() }),
            // SAFETY: as above.
            FORTY_EIGHT => Kind::FortyEight(unsafe { &*pointer.cast() }),
            // SAFETY: as above.
            _ => Kind::Full(unsafe { &*pointer.cast() }),
        }
    }

    /// The node, if it is a full one and had no prefix when the pointer was made. It branches at
    /// the very byte at which whoever followed the pointer has arrived, and its slots are
    /// published one by one: it can be passed without a look at its version.
    #[inline]
    pub(super) fn plain(self) -> Option<&'g Full> {
        if self.child.tag() == PLAIN {
            // SAFETY: as in `kind`.
            Some(unsafe { &*self.child.pointer().cast() })
        } else {
            None
        }
    }

    /// Whether it is the same node; their pointers may have been made at different times.
    #[inline]
    pub(super) fn is(self, other: NodeRef<'_>) -> bool {
        self.child.pointer() == other.child.pointer()
    }

    /// The pointer to store now. The caller holds the node's lock, or the node is not linked.
    pub(super) fn child(self) -> Child {
        let tag = match self.child.tag() {
            FULL | PLAIN if self.header().snapshot().prefix_length() == 0 => PLAIN,
            FULL | PLAIN => FULL,
            other => other,
        };
        Child::tagged(self.child.pointer(), tag)
    }

    /// A new node, which nobody else has yet.
    pub(super) fn new(kind: NewNode) -> Self {
        let (pointer, tag): (Word, _) = match kind {
            NewNode::Four(node) => (Box::into_raw(node).cast(), FOUR),
            NewNode::Sixteen(node) => (Box::into_raw(node).cast(), SIXTEEN),
            NewNode::FortyEight(node) => (Box::into_raw(node).cast(), FORTY_EIGHT),
            NewNode::Full(node) => (Box::into_raw(node).cast(), FULL),
        };
        Self {
            child: Child::tagged(pointer, tag),
            life: PhantomData,
        }
    }

    /// Frees the node alone, not what its slots hold.
    ///
    /// # Safety
    ///
    /// Nobody has the node any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        let pointer = self.child.pointer();
        // SAFETY: the tag tells what kind of box it was made from, in `new`; the caller promises
        // the rest.
        unsafe {
            match self.child.tag() {
                FOUR => drop(Box::<Four>::from_raw(pointer.cast())),
                SIXTEEN => drop(Box::<Sixteen>::from_raw(pointer.cast())),
                FORTY_EIGHT => drop(Box::<FortyEight>::from_raw(pointer.cast())),
                _ => drop(Box::<Full>::from_raw(pointer.cast())),
            }
        }
    }

    /// Frees the node once nobody pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        let child = self.child;
        let free = move || {
            let node = NodeRef {
                child,
                life: PhantomData,
            };
            // SAFETY: whoever could have come to it has unpinned since.
            unsafe { node.free() };
        };
        // SAFETY: nodes may be freed by any thread, at any time.
        unsafe { guard.defer_unchecked(free) };
    }
}

/// A node that has just been allocated.
pub(super) enum NewNode {
    Four(Box<Four>),
    Sixteen(Box<Sixteen>),
    FortyEight(Box<FortyEight>),
    Full(Box<Full>),
}
