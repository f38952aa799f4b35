//! The words that nodes keep for their children: tagged pointers, or values.

use super::header::{Header, Prefix, Symbol};
use super::kinds::{FortyEight, Four, Full, Sixteen};
use crate::byte_keyed::RecordRef;
use std::marker::PhantomData;
use tremula_sync::reclaim::Guard;

/// The word in a slot of a node: a [`Child`], or, in a node of the last byte, a packed value.
pub(super) type Word = *mut ();

/// The bits of a pointer that say what it points to. Nodes and leaves are aligned so that these
/// bits are free.
const TAG: usize = 0b111;
const LEAF: usize = 1;
const FOUR: usize = 2;
const SIXTEEN: usize = 3;
const FORTY_EIGHT: usize = 4;
const FULL: usize = 5;
/// A full node that had no prefix when the pointer was made.
const PLAIN: usize = 6;

/// A tagged pointer to a child: nothing, a leaf, or a node. The tag gives the kind of the node, so
/// that a thread knows what to prefetch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Child(Word);

/// What the pointer to a child leads to.
pub(super) enum ChildRef<'g, K> {
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

    /// The pointer without its tag; null if there is no child.
    #[inline]
    pub(super) fn pointer(self) -> Word {
        self.0.map_addr(|address| address & !TAG)
    }

    /// Follows the pointer.
    ///
    /// # Safety
    ///
    /// This is a child (not a value). The caller read it from a node that it validated afterwards,
    /// or from a full node, whose slots are published one by one. The child was linked at some time
    /// since `guard` was pinned, or no other thread has it.
    #[inline]
    pub(super) unsafe fn follow<'g, K>(self, _guard: &'g Guard<'_>) -> ChildRef<'g, K> {
        // SAFETY: the caller's promise; the guard keeps the child allocated.
        unsafe { self.follow_alone() }
    }

    /// [`follow`](Self::follow) without a guard, for a thread that has the tree to itself.
    ///
    /// # Safety
    ///
    /// As for [`follow`](Self::follow); no thread frees the child during `'g`.
    #[inline]
    pub(super) unsafe fn follow_alone<'g, K>(self) -> ChildRef<'g, K> {
        match self.tag() {
            // SAFETY: the tag says that it is a record, and the caller promises that it lives.
            LEAF => ChildRef::Leaf(unsafe { RecordRef::of_word(self.pointer()) }),
            0 => ChildRef::Nothing,
            _ => ChildRef::Node(NodeRef {
                child: self,
                life: PhantomData,
            }),
        }
    }
}

/// A node that stays allocated for `'g`.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'g> {
    child: Child,
    life: PhantomData<&'g Header>,
}

/// A node, cast to its kind.
pub(super) enum Kind<'g> {
    Four(&'g Four),
    Sixteen(&'g Sixteen),
    FortyEight(&'g FortyEight),
    Full(&'g Full),
}

impl<'g> NodeRef<'g> {
    #[inline]
    pub(super) fn header(self) -> &'g Header {
        // SAFETY: the node lives for `'g`, and a node of every kind begins with its header.
        unsafe { &*self.child.pointer().cast() }
    }

    #[inline]
    pub(super) fn kind(self) -> Kind<'g> {
        let pointer = self.child.pointer();
        // SAFETY: the node lives for `'g`, and the tag gives its kind.
        unsafe {
            match self.child.tag() {
                FOUR => Kind::Four(&*pointer.cast()),
                SIXTEEN => Kind::Sixteen(&*pointer.cast()),
                FORTY_EIGHT => Kind::FortyEight(&*pointer.cast()),
                _ => Kind::Full(&*pointer.cast()),
            }
        }
    }

    /// The node, if it is full and had no prefix when the pointer was made. Such a node branches by
    /// the very byte that a thread which followed the pointer looks at next, and its slots are
    /// published one by one, so the thread can pass it without reading its version.
    #[inline]
    pub(super) fn plain(self) -> Option<&'g Full> {
        if self.child.tag() == PLAIN {
            // SAFETY: the node lives for `'g`, and the tag says that it is full.
            Some(unsafe { &*self.child.pointer().cast() })
        } else {
            None
        }
    }

    /// Whether both are the same node. Their tags may differ: the pointers may have been made at
    /// different times.
    #[inline]
    pub(super) fn is(self, other: NodeRef<'_>) -> bool {
        self.child.pointer() == other.child.pointer()
    }

    /// The pointer with a tag for the node's current prefix. The caller holds the node's lock, or
    /// the node is not linked.
    pub(super) fn child(self) -> Child {
        let tag = match self.child.tag() {
            FULL | PLAIN if self.header().snapshot().prefix_length() == 0 => PLAIN,
            FULL | PLAIN => FULL,
            other => other,
        };
        Child::tagged(self.child.pointer(), tag)
    }

    /// Puts the prefix of the parent, and this node's symbol there, before the node's own prefix.
    /// The caller holds the locks of both nodes. Returns the pointer to store now.
    pub(super) fn with_prefix_of_parent(self, prefix: Prefix, symbol: Symbol) -> Word {
        let own = self.header().snapshot().prefix();
        self.header()
            .set_prefix(prefix.joined((symbol - 1) as u8, own));
        self.child().word()
    }

    /// A new node, which no other thread has yet.
    pub(super) fn new<N: Allocated>(node: N) -> Self {
        Self {
            child: Child::tagged(Box::into_raw(Box::new(node)).cast(), N::TAG),
            life: PhantomData,
        }
    }

    /// Frees the node, but not what its slots hold.
    ///
    /// # Safety
    ///
    /// No thread has the node any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        let pointer = self.child.pointer();
        // SAFETY: the tag says which kind of box `new` made it from; the caller promises the rest.
        unsafe {
            match self.child.tag() {
                FOUR => drop(Box::<Four>::from_raw(pointer.cast())),
                SIXTEEN => drop(Box::<Sixteen>::from_raw(pointer.cast())),
                FORTY_EIGHT => drop(Box::<FortyEight>::from_raw(pointer.cast())),
                _ => drop(Box::<Full>::from_raw(pointer.cast())),
            }
        }
    }

    /// Frees the node once no thread that is pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        let node: NodeRef<'static> = NodeRef {
            child: self.child,
            life: PhantomData,
        };
        // SAFETY: any thread may free a node, at any time. When this runs, each thread that could
        // have reached the node has unpinned.
        unsafe { guard.defer_unchecked(move || node.free()) };
    }
}

/// The tag of pointers to nodes of a kind.
pub(super) trait Allocated {
    const TAG: usize;
}

impl Allocated for Four {
    const TAG: usize = FOUR;
}

impl Allocated for Sixteen {
    const TAG: usize = SIXTEEN;
}

impl Allocated for FortyEight {
    const TAG: usize = FORTY_EIGHT;
}

impl Allocated for Full {
    const TAG: usize = FULL;
}
