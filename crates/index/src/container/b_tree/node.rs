//! Leaves and inner nodes: arrays of entries or children. A method changes all arrays of a node, so
//! that no caller sees a node that is half changed.

use super::keys::{Headed, Keys, Row};
use super::slots::Slots;
use crate::key::KeyHead;

pub(super) enum Node<K, V, H: KeyHead<K>, const N: usize> {
    Leaf(Box<Leaf<K, V, H, N>>),
    Inner(Box<Inner<K, V, H, N>>),
}

/// The upper part of a node that was split, and the key before it.
pub(super) type Upper<K, V, H, const N: usize> = Option<(Headed<K, H>, Node<K, V, H, N>)>;

/// Entries, in the order of their keys. The length comes first, on the cache line of the first
/// keys.
#[repr(C)]
pub(super) struct Leaf<K, V, H: KeyHead<K>, const N: usize> {
    len: u16,
    keys: Keys<K, H, N>,
    values: Slots<V, N>,
}

/// Children, and a key between each two of them.
#[repr(C)]
pub(super) struct Inner<K, V, H: KeyHead<K>, const N: usize> {
    /// The number of children. There is one key fewer.
    len: u16,
    keys: Keys<K, H, N>,
    children: Slots<Node<K, V, H, N>, N>,
}

impl<K, V, H: KeyHead<K>, const N: usize> Leaf<K, V, H, N> {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            len: 0,
            keys: Keys::new(),
            values: Slots::new(),
        })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.into()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() == N
    }

    #[inline]
    pub(super) fn keys(&self) -> Row<'_, K, H> {
        // SAFETY: the first `len` slots of both arrays are in use. This holds in every block of
        // this `impl`.
        unsafe { self.keys.used(self.len()) }
    }

    #[inline]
    pub(super) fn values(&self) -> &[V] {
        // SAFETY: as in `keys`.
        unsafe { self.values.used(self.len()) }
    }

    #[inline]
    pub(super) fn values_mut(&mut self) -> &mut [V] {
        let len = self.len();
        // SAFETY: as in `keys`.
        unsafe { self.values.used_mut(len) }
    }

    #[inline]
    pub(super) fn insert(&mut self, at: usize, key: Headed<K, H>, value: V) {
        let len = self.len();
        // SAFETY: as in `keys`. Both arrays have the same bounds, and the first call checks them
        // before anything changes.
        unsafe {
            self.keys.insert(len, at, key);
            self.values.insert(len, at, value);
        }
        self.len += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, at: usize) -> (K, V) {
        let len = self.len();
        // SAFETY: as in `insert`.
        let entry = unsafe { (self.keys.remove(len, at).key, self.values.remove(len, at)) };
        self.len -= 1;
        entry
    }

    /// Moves the entries from `at` on into a new leaf.
    pub(super) fn split_off(&mut self, at: usize) -> Box<Self> {
        let mut upper = Self::new();
        upper.take_tail(self, at);
        upper
    }

    /// Moves the entries of `source` from `from` on behind those of this leaf.
    pub(super) fn take_tail(&mut self, source: &mut Self, from: usize) {
        let (len_here, len) = (self.len(), source.len());
        // SAFETY: as in `keys`, and the length of `source` is set to `from` below. Both arrays have
        // the same bounds, and the first call checks them before anything changes.
        unsafe {
            self.keys.take_tail(len_here, &mut source.keys, len, from);
            self.values
                .take_tail(len_here, &mut source.values, len, from);
        }
        source.len = from as u16;
        self.len += (len - from) as u16;
    }
}

impl<K, V, H: KeyHead<K>, const N: usize> Drop for Leaf<K, V, H, N> {
    fn drop(&mut self) {
        let len = self.len();
        // SAFETY: as in `keys`, and no slot is used again. If a drop panics, the rest of its slice
        // is still dropped, and the other array is leaked.
        unsafe {
            self.keys.drop_used(len);
            std::ptr::drop_in_place(self.values.used_mut(len));
        }
    }
}

impl<K, V, H: KeyHead<K>, const N: usize> Inner<K, V, H, N> {
    pub(super) fn new(first: Node<K, V, H, N>) -> Box<Self> {
        let mut inner = Box::new(Self {
            len: 0,
            keys: Keys::new(),
            children: Slots::new(),
        });
        // SAFETY: no slot is in use yet.
        unsafe { inner.children.insert(0, 0, first) };
        inner.len = 1;
        inner
    }

    #[inline]
    fn len(&self) -> usize {
        self.len.into()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() == N
    }

    #[inline]
    pub(super) fn keys(&self) -> Row<'_, K, H> {
        // SAFETY: `len` children and one key fewer are in use. This holds in every block of this
        // `impl`. A node without children, which is being taken apart, has no keys.
        unsafe { self.keys.used(self.len().saturating_sub(1)) }
    }

    #[inline]
    pub(super) fn children(&self) -> &[Node<K, V, H, N>] {
        // SAFETY: as in `keys`.
        unsafe { self.children.used(self.len()) }
    }

    #[inline]
    pub(super) fn children_mut(&mut self) -> &mut [Node<K, V, H, N>] {
        let len = self.len();
        // SAFETY: as in `keys`.
        unsafe { self.children.used_mut(len) }
    }

    /// Inserts `child` after child `at`, with `separator` between them.
    pub(super) fn insert_behind(
        &mut self,
        at: usize,
        separator: Headed<K, H>,
        child: Node<K, V, H, N>,
    ) {
        let len = self.len();
        assert!(at < len && len < N);
        // SAFETY: as in `keys`, and the bounds were checked.
        unsafe {
            self.keys.insert(len - 1, at, separator);
            self.children.insert(len, at + 1, child);
        }
        self.len += 1;
    }

    /// Inserts `child` before all others, with `separator` after it.
    pub(super) fn insert_first(&mut self, child: Node<K, V, H, N>, separator: Headed<K, H>) {
        let len = self.len();
        assert!(0 < len && len < N);
        // SAFETY: as in `keys`, and the bounds were checked.
        unsafe {
            self.keys.insert(len - 1, 0, separator);
            self.children.insert(len, 0, child);
        }
        self.len += 1;
    }

    /// Takes out child `at` and the key before it (for the first child: the key after it). If it
    /// was the only child, the node is empty and the caller drops it.
    pub(super) fn remove(&mut self, at: usize) -> (Option<Headed<K, H>>, Node<K, V, H, N>) {
        let len = self.len();
        assert!(at < len);
        // SAFETY: as in `keys`, and the bounds were checked.
        let (separator, child) = unsafe {
            let separator = (len > 1).then(|| self.keys.remove(len - 1, at.saturating_sub(1)));
            (separator, self.children.remove(len, at))
        };
        self.len -= 1;
        (separator, child)
    }

    /// Moves the children from `at` on into a new node and returns it with the key that was before
    /// them. `at` is neither the first child nor behind the last.
    pub(super) fn split_off(&mut self, at: usize) -> (Headed<K, H>, Box<Self>) {
        let len = self.len();
        assert!(0 < at && at < len);
        let mut upper = Box::new(Self {
            len: 0,
            keys: Keys::new(),
            children: Slots::new(),
        });
        // SAFETY: as in `keys`, and the bounds were checked. The keys and the children from `at` on
        // move, the key before them is taken out of its slot, and the lengths below say so.
        let separator = unsafe {
            upper.keys.take_tail(0, &mut self.keys, len - 1, at);
            upper.children.take_tail(0, &mut self.children, len, at);
            self.keys.remove(at, at - 1)
        };
        upper.len = (len - at) as u16;
        self.len = at as u16;
        (separator, upper)
    }

    /// Moves all children of `upper` behind those of this node, with `separator` between them.
    pub(super) fn append(&mut self, separator: Headed<K, H>, upper: &mut Self) {
        let (len, more) = (self.len(), upper.len());
        assert!(0 < len && 0 < more && len + more <= N);
        // SAFETY: as in `keys`, and the bounds were checked. `upper` has no children afterwards.
        unsafe {
            self.keys.insert(len - 1, len - 1, separator);
            self.keys.take_tail(len, &mut upper.keys, more - 1, 0);
            self.children.take_tail(len, &mut upper.children, more, 0);
        }
        upper.len = 0;
        self.len += more as u16;
    }
}

impl<K, V, H: KeyHead<K>, const N: usize> Drop for Inner<K, V, H, N> {
    fn drop(&mut self) {
        let len = self.len();
        // SAFETY: as in `keys`, and no slot is used again. If a drop panics, the rest of its slice
        // is still dropped, and the other array is leaked.
        unsafe {
            self.keys.drop_used(len.saturating_sub(1));
            std::ptr::drop_in_place(self.children.used_mut(len));
        }
    }
}

impl<K, V, H: KeyHead<K>, const N: usize> Node<K, V, H, N> {
    /// The number of entries of a leaf, or of children of an inner node.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.len(),
        }
    }

    /// The number of levels of this subtree; 1 for a leaf.
    pub(super) fn height(&self) -> usize {
        let mut height = 1;
        let mut node = self;
        while let Self::Inner(inner) = node {
            node = &inner.children()[0];
            height += 1;
        }
        height
    }

    pub(super) fn first(&self) -> (&K, &V) {
        let mut node = self;
        loop {
            match node {
                Self::Inner(inner) => node = &inner.children()[0],
                Self::Leaf(leaf) => return (&leaf.keys().keys[0], &leaf.values()[0]),
            }
        }
    }

    pub(super) fn last(&self) -> (&K, &V) {
        let mut node = self;
        loop {
            match node {
                Self::Inner(inner) => node = &inner.children()[inner.len() - 1],
                Self::Leaf(leaf) => {
                    return (
                        &leaf.keys().keys[leaf.len() - 1],
                        &leaf.values()[leaf.len() - 1],
                    );
                }
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.children().iter().map(Self::count).sum(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Leaf(leaf) => size_of_val(&**leaf),
            Self::Inner(inner) => {
                size_of_val(&**inner) + inner.children().iter().map(Self::bytes).sum::<usize>()
            }
        }
    }
}
