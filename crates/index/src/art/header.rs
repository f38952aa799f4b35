//! The header that every node begins with: its lock, its depth, and its prefix.

use std::cmp::Ordering as Order;
use tremula_sync::VersionLock;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// How many bytes of a prefix a node stores. Of a longer prefix it stores the length and the first
/// bytes; any leaf below has the rest.
pub(super) const STORED: usize = 11;

/// How a key continues at a node: 0 if the key ends there, otherwise one more than its next byte.
/// Symbols are ordered as the keys are.
pub(super) type Symbol = u16;

/// The key ends here.
pub(super) const END: Symbol = 0;

/// The last symbol.
pub(super) const LAST: Symbol = super::kinds::BYTES as Symbol;

/// The symbol that follows the first `depth` bytes of a key.
#[inline]
pub(super) fn symbol_at(bytes: &[u8], depth: usize) -> Symbol {
    match bytes.get(depth) {
        Some(byte) => Symbol::from(*byte) + 1,
        None => END,
    }
}

/// How many bytes of a prefix are in `front`; the others are in `tail`.
const IN_FRONT: usize = 8;

/// The lowest 24 bits of `tail` are three bytes of the prefix.
const COUNT_SHIFT: u32 = 24;
/// Six bits of `tail`: for how many bytes a node of up to 48 children has a child.
const COUNT: u64 = 0x3f << COUNT_SHIFT;
/// One bit of `tail`: whether there is a child for [`END`].
const HAS_END: u64 = 1 << 31;
/// The upper half of `tail`: 32 bits that each kind of node uses in its own way.
const OWN_SHIFT: u32 = 32;
const PREFIX_TAIL: u64 = (1 << COUNT_SHIFT) - 1;

/// The prefix of a node: the bytes between the depth of its parent and its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    length: usize,
    front: u64,
    tail: u64,
}

impl Prefix {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut stored = [0; 16];
        let kept = bytes.len().min(STORED);
        stored[..kept].copy_from_slice(&bytes[..kept]);
        Self::of_stored(bytes.len(), stored)
    }

    fn of_stored(length: usize, stored: [u8; 16]) -> Self {
        let number = u128::from_le_bytes(stored);
        Self {
            length,
            front: number as u64,
            tail: (number >> 64) as u64 & PREFIX_TAIL,
        }
    }

    /// This prefix, followed by a byte and another prefix.
    pub(super) fn joined(self, byte: u8, other: Self) -> Self {
        let mut stored = [0; 16];
        let own = &self.stored()[..self.length.min(STORED)];
        let others = &other.stored()[..other.length.min(STORED)];
        let all = own.iter().chain([&byte]).chain(others).take(STORED);
        stored
            .iter_mut()
            .zip(all)
            .for_each(|(to, byte)| *to = *byte);
        Self::of_stored(self.length + 1 + other.length, stored)
    }

    /// The stored bytes, padded with zeros.
    pub(super) fn stored(self) -> [u8; 16] {
        (u128::from(self.front) | u128::from(self.tail) << 64).to_le_bytes()
    }
}

/// The beginning of a node. A thread writes all fields but the lock under that lock, and readers
/// validate them, so their accesses are relaxed.
#[repr(C)]
pub(super) struct Header {
    pub(super) lock: VersionLock,
    /// The depth, which never changes, in the lower 32 bits, and the length of the prefix in the
    /// upper.
    span: AtomicU64,
    /// The first eight bytes of the prefix; the first is the lowest byte.
    front: AtomicU64,
    /// The end of the prefix, the count of children, and bits of the kind: see [`COUNT_SHIFT`].
    tail: AtomicU64,
}

impl Header {
    pub(super) fn new(depth: usize, prefix: Prefix) -> Self {
        Self {
            lock: VersionLock::new(),
            span: AtomicU64::new(span(depth, prefix.length)),
            front: AtomicU64::new(prefix.front),
            tail: AtomicU64::new(prefix.tail),
        }
    }

    /// The words of the header. A reader without the lock has yet to validate them.
    #[inline]
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            span: self.span.load(Ordering::Relaxed),
            front: self.front.load(Ordering::Relaxed),
            tail: self.tail.load(Ordering::Relaxed),
        }
    }

    #[inline]
    pub(super) fn tail(&self) -> Tail {
        Tail(self.tail.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn set_tail(&self, tail: Tail) {
        self.tail.store(tail.0, Ordering::Relaxed);
    }

    /// Changes the prefix. The caller holds the lock.
    pub(super) fn set_prefix(&self, prefix: Prefix) {
        let Snapshot {
            span: old, tail, ..
        } = self.snapshot();
        let depth = old as u32 as usize;
        self.span
            .store(span(depth, prefix.length), Ordering::Relaxed);
        self.front.store(prefix.front, Ordering::Relaxed);
        self.tail
            .store(tail & !PREFIX_TAIL | prefix.tail, Ordering::Relaxed);
    }
}

fn span(depth: usize, prefix_length: usize) -> u64 {
    assert!(
        u32::try_from(depth).is_ok(),
        "keys of 4 GiB and more cannot be told apart"
    );
    depth as u64 | (prefix_length as u64) << 32
}

/// The word `tail` of a header: which children the node has, as far as it does not depend on the
/// kind.
#[derive(Clone, Copy)]
pub(super) struct Tail(u64);

impl Tail {
    /// How many children a node of up to 48 has, without the one for [`END`].
    #[inline]
    pub(super) fn count(self) -> usize {
        ((self.0 & COUNT) >> COUNT_SHIFT) as usize
    }

    #[inline]
    pub(super) fn with_count(self, count: usize) -> Self {
        Self(self.0 & !COUNT | (count as u64) << COUNT_SHIFT)
    }

    #[inline]
    pub(super) fn has_end(self) -> bool {
        self.0 & HAS_END != 0
    }

    #[inline]
    pub(super) fn with_end(self, has_end: bool) -> Self {
        Self(self.0 & !HAS_END | if has_end { HAS_END } else { 0 })
    }

    #[inline]
    pub(super) fn own(self) -> u32 {
        (self.0 >> OWN_SHIFT) as u32
    }

    #[inline]
    pub(super) fn with_own(self, own: u32) -> Self {
        Self(self.0 as u32 as u64 | u64::from(own) << OWN_SHIFT)
    }
}

/// The words of a header, as they were read.
#[derive(Clone, Copy)]
pub(super) struct Snapshot {
    span: u64,
    front: u64,
    tail: u64,
}

/// How a key compares with the prefix of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    /// The key has the whole prefix.
    Whole,
    /// The key has all stored bytes of the prefix. It may differ, or end, in the bytes that are not
    /// stored.
    Stored,
    /// The key differs from the prefix at this byte, or ends there.
    Until(usize),
}

impl Snapshot {
    /// The depth: how many bytes all keys under the node have in common. The node branches by the
    /// next.
    #[inline]
    pub(super) fn depth(self) -> usize {
        self.span as u32 as usize
    }

    #[inline]
    pub(super) fn prefix_length(self) -> usize {
        (self.span >> 32) as usize
    }

    /// Whether the prefix begins at this depth. If it does not, the prefix has changed since the
    /// reader found its way to the node.
    #[inline]
    pub(super) fn begins_at(self, start: usize) -> bool {
        start + self.prefix_length() == self.depth()
    }

    #[inline]
    pub(super) fn tail(self) -> Tail {
        Tail(self.tail)
    }

    pub(super) fn prefix(self) -> Prefix {
        Prefix {
            length: self.prefix_length(),
            front: self.front,
            tail: self.tail & PREFIX_TAIL,
        }
    }

    /// The stored prefix at its position in the head of a key: what it adds to the head of a key of
    /// up to eight bytes.
    #[inline]
    pub(super) fn head_from(self, start: usize) -> u64 {
        let length = self.prefix_length();
        if length == 0 || start >= 8 {
            return 0;
        }
        let kept = self.front.swap_bytes() & u64::MAX << (64 - 8 * length.min(8) as u32);
        kept >> (8 * start)
    }

    /// Compares the key from byte `start` on with the stored bytes of the prefix.
    #[inline]
    pub(super) fn agreement(self, bytes: &[u8], start: usize) -> Agreement {
        let length = self.prefix_length();
        if length == 0 {
            return Agreement::Whole;
        }
        let left = bytes.len().saturating_sub(start);
        let stored = length.min(left).min(STORED);
        let difference = (self.front ^ word_at(bytes, start)) & lowest_bytes(stored);
        if difference != 0 {
            return Agreement::Until(start + difference.trailing_zeros() as usize / 8);
        }
        if stored > IN_FRONT {
            let rest = word_at(bytes, start + IN_FRONT);
            let difference = (self.tail ^ rest) & lowest_bytes(stored - IN_FRONT);
            if difference != 0 {
                let at = IN_FRONT + difference.trailing_zeros() as usize / 8;
                return Agreement::Until(start + at);
            }
        }
        if left < length.min(STORED + 1) {
            Agreement::Until(start + left)
        } else if length > STORED {
            Agreement::Stored
        } else {
            Agreement::Whole
        }
    }

    /// How the prefix compares with the key from byte `start` on; `None` if the stored bytes do not
    /// decide it.
    pub(super) fn compare(self, bytes: &[u8], start: usize) -> Option<Order> {
        match self.agreement(bytes, start) {
            Agreement::Whole => Some(Order::Equal),
            Agreement::Stored => None,
            Agreement::Until(at) => {
                let own = self.prefix().stored()[at - start];
                // A key that ends inside the prefix precedes all keys that have the prefix.
                Some(match bytes.get(at) {
                    Some(byte) => own.cmp(byte),
                    None => Order::Greater,
                })
            }
        }
    }
}

/// A mask of the lowest `count` bytes.
#[inline]
fn lowest_bytes(count: usize) -> u64 {
    if count >= 8 {
        u64::MAX
    } else {
        !(u64::MAX << (8 * count))
    }
}

/// Up to eight bytes from `at` on, padded with zeros; the first is the lowest byte.
#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    if let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        return u64::from_le_bytes(*chunk);
    }
    if let Some(last) = bytes.last_chunk() {
        let missing = at - (bytes.len() - 8);
        return match missing {
            0..8 => u64::from_le_bytes(*last) >> (8 * missing),
            _ => 0,
        };
    }
    let mut word = [0; 8];
    if let Some(rest) = bytes.get(at..) {
        word[..rest.len()].copy_from_slice(rest);
    }
    u64::from_le_bytes(word)
}
