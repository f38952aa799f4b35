//! Keys: the one that is looked for, and those in the nodes.

use super::layout::Spec;
use crate::key::KeyHead;
use std::ops::Bound;
use std::ptr;
use tremula_sync::reclaim::Guard;

/// A key that an operation is given, with its head.
pub(super) struct Probe<'k, S: Spec> {
    pub(super) key: &'k S::Key,
    pub(super) head: u64,
}

impl<S: Spec> Clone for Probe<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Spec> Copy for Probe<'_, S> {}

impl<'k, S: Spec> Probe<'k, S> {
    #[inline]
    pub(super) fn new(key: &'k S::Key) -> Self {
        Self {
            key,
            head: S::Head::head(key),
        }
    }

    /// The same for a bound.
    pub(super) fn of_bound(bound: Bound<&'k S::Key>) -> Bound<Self> {
        match bound {
            Bound::Included(key) => Bound::Included(Self::new(key)),
            Bound::Excluded(key) => Bound::Excluded(Self::new(key)),
            Bound::Unbounded => Bound::Unbounded,
        }
    }
}

/// A key as it is in a node: its head, and where that does not tell it, a box that is never
/// written again.
///
/// A plain pair of words that owns nothing: whoever holds the place that it is in sees to it
/// that the box is freed, once.
pub(super) struct StoredKey<S: Spec> {
    pub(super) head: u64,
    /// Null where the head is the key.
    pub(super) boxed: *mut S::Key,
}

impl<S: Spec> Clone for StoredKey<S> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Spec> Copy for StoredKey<S> {}

impl<S: Spec> StoredKey<S> {
    /// Stores a key, whose head this is: allocates, unless the head tells the key. Then dropping the
    /// key does nothing ([`Spec::HEAD_IS_KEY`]), so the caller may hold a lock.
    #[inline]
    pub(super) fn new(key: S::Key, head: u64) -> Self {
        let boxed = if S::HEAD_IS_KEY {
            ptr::null_mut()
        } else {
            Box::into_raw(Box::new(key))
        };
        Self { head, boxed }
    }

    /// Stores a copy of a key.
    pub(super) fn copy_of(probe: &Probe<'_, S>) -> Self {
        let boxed = if S::HEAD_IS_KEY {
            ptr::null_mut()
        } else {
            Box::into_raw(Box::new(probe.key.clone()))
        };
        Self {
            head: probe.head,
            boxed,
        }
    }

    /// Shows the key to `read`.
    ///
    /// # Safety
    ///
    /// This was read from a node, or stored, as a whole (what an optimistic reader read has been
    /// validated), and the key has not been freed: the caller owns it, or is pinned since before
    /// it was unlinked.
    #[inline]
    pub(super) unsafe fn with<R>(self, read: impl FnOnce(&S::Key) -> R) -> R {
        if S::HEAD_IS_KEY {
            read(&Self::told(self.head))
        } else {
            // SAFETY: the box lives on, as the caller promises.
            read(unsafe { &*self.boxed })
        }
    }

    /// A copy of the key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub(super) unsafe fn to_key(self) -> S::Key {
        if S::HEAD_IS_KEY {
            Self::told(self.head)
        } else {
            // SAFETY: the box lives on, as the caller promises.
            unsafe { (*self.boxed).clone() }
        }
    }

    /// A copy of this key, to be stored elsewhere.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    pub(super) unsafe fn duplicate(self) -> Self {
        if S::HEAD_IS_KEY {
            self
        } else {
            // SAFETY: passed on to the caller.
            let copy = unsafe { self.to_key() };
            Self {
                head: self.head,
                boxed: Box::into_raw(Box::new(copy)),
            }
        }
    }

    #[inline]
    fn told(head: u64) -> S::Key {
        match S::Head::key(head) {
            Some(key) => key,
            None => not_told(head),
        }
    }

    /// Frees the key once no reader pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); it has been unlinked, so that nobody who pins from now on
    /// comes to it; and it is retired once.
    #[inline]
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        if !S::HEAD_IS_KEY {
            let boxed = self.boxed;
            // SAFETY: the box came from `Box::into_raw` and is freed here only, when nobody is
            // pinned any more who could have come to it. `Key: Send + 'static`: any thread may,
            // any time.
            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(boxed))) };
        }
    }

    /// The key itself.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and nobody else has it, or uses it ever again.
    pub(super) unsafe fn take(self) -> S::Key {
        if S::HEAD_IS_KEY {
            Self::told(self.head)
        } else {
            // SAFETY: the box came from `Box::into_raw`, and the caller alone has it.
            *unsafe { Box::from_raw(self.boxed) }
        }
    }

    /// Frees the key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and nobody else has it, or uses it ever again.
    pub(super) unsafe fn free(self) {
        if !S::HEAD_IS_KEY {
            // SAFETY: as above, and the caller alone has it.
            drop(unsafe { Box::from_raw(self.boxed) });
        }
    }
}

/// Why a head gives no key: the key's type, or its [`KeyHead`], breaks its word.
#[cold]
fn not_told(head: u64) -> ! {
    panic!("KeyHead::IS_KEY is true, but KeyHead::key({head:#x}) gave no key")
}
