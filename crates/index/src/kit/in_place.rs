//! Values that are one pointer to something shared, kept in the slots of nodes without a box.
//!
//! An [`Arc`] is as wide as a slot, and yet [`Packed`] boxes it: an optimistic reader copies the
//! word of a slot, and if a value of its type could change through a shared reference, the reader
//! would change its copy. A type cannot be asked whether its values can. So the heads of the keys,
//! which an index is made with, say it of a type of values ([`KeyHead::in_place`]), and prove it by
//! an [`InPlace`].

use super::{Packed, Retire, Slot, Spec};
use crate::key::KeyHead;
use std::any::Any;
use std::mem::{self, ManuallyDrop, needs_drop};
use std::ptr;
use tremula_sync::reclaim;
use tremula_sync::system::Arc;

/// A type whose values are one pointer.
///
/// # Safety
///
/// A value is as large as a pointer, and all of its bytes are initialised. None of them changes
/// through a shared reference. If all of them are zero, dropping the value does nothing.
pub unsafe trait OneWord: 'static {}

// SAFETY: it is a pointer that is never null. What it points to is not in the value.
unsafe impl<T: 'static> OneWord for Arc<T> {}
// SAFETY: it is a pointer that is never null, and `None` is null.
#[cfg(feature = "triomphe")]
unsafe impl<H: 'static, T: 'static> OneWord for Option<triomphe::ThinArc<H, T>> {}

/// A type whose values consist of a [`OneWord`] and nothing else.
pub trait IsOneWord: 'static {
    /// What a value consists of.
    type Word: OneWord;

    /// The whole of the value. If it is not, an index that keeps such values panics.
    fn word(&self) -> &Self::Word;
}

/// The proof that values of type `V` may be kept in place.
pub struct InPlace<V> {
    /// Whether a value is its word.
    is_word: fn(&V) -> bool,
}

impl<V: 'static> InPlace<V> {
    /// The proof for a type; `None` if it is not `V`.
    #[inline]
    #[must_use]
    pub fn of<W: IsOneWord>() -> Option<Self> {
        let is_word = |value: &W| {
            let same_size = size_of::<W>() == size_of::<W::Word>();
            same_size && ptr::addr_eq(value, value.word())
        };
        let proof: &mut dyn Any = &mut Some(InPlace::<W> { is_word });
        proof.downcast_mut::<Option<Self>>()?.take()
    }

    /// The word of a value, which the caller owns from now on.
    ///
    /// # Panics
    ///
    /// If the value is not what it was said to be. Then it is dropped.
    #[inline]
    fn into_word(self, value: V) -> *mut () {
        assert!((self.is_word)(&value), "a value is more than one word");
        let value = ManuallyDrop::new(value);
        // SAFETY: a shared reference to a `OneWord` was made that is of the same place and size as
        // the value. So the value has the size of a pointer, and its bytes are initialised.
        unsafe { mem::transmute_copy::<V, *mut ()>(&value) }
    }
}

/// A value packed into one word: in place if the heads of the keys prove that it may be
/// ([`KeyHead::in_place`]), otherwise as a [`Packed`].
///
/// It can be copied like a word and owns nothing, as a [`Packed`].
pub struct PackedValue<S: Spec>(Packed<S::Value>);

impl<S: Spec> Clone for PackedValue<S> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Spec> Copy for PackedValue<S> {}

impl<S: Spec> PackedValue<S> {
    /// How values are kept in place, if they are. Known at compile time.
    #[inline(always)]
    fn in_place() -> Option<InPlace<S::Value>> {
        if Packed::<S::Value>::is_word() || size_of::<S::Value>() != size_of::<*mut ()>() {
            return None;
        }
        S::Head::in_place()
    }

    /// Packs a value. Allocates if the value is not kept in place.
    #[inline]
    pub fn new(value: S::Value) -> Self {
        Self(match Self::in_place() {
            Some(proof) => Packed::of_word(proof.into_word(value)),
            None => Packed::new(value),
        })
    }

    /// What a slot leads to: for prefetches, and for a node that keeps it with other words.
    #[inline]
    pub fn word(self) -> *mut () {
        self.0.word()
    }

    /// The inverse of [`word`](Self::word).
    #[inline]
    pub const fn of_word(word: *mut ()) -> Self {
        Self(Packed::of_word(word))
    }

    /// The bits of this word as a value, which must not be dropped unless the caller owns it.
    ///
    /// # Safety
    ///
    /// Values are kept in place, and the value has not been freed.
    #[inline]
    unsafe fn bits(self) -> ManuallyDrop<S::Value> {
        // SAFETY: `into_word` made the word of a value, and the caller says that it lives. Nothing
        // in these bits changes through a shared reference, so a copy of them does for reading.
        unsafe { mem::transmute_copy(&self.0.word()) }
    }

    /// Calls `read` with the value.
    ///
    /// # Safety
    ///
    /// As for [`Packed::with`].
    #[inline]
    pub unsafe fn with<R>(self, read: impl FnOnce(&S::Value) -> R) -> R {
        // SAFETY: passed on to the caller.
        unsafe {
            match Self::in_place() {
                Some(_) => read(&self.bits()),
                None => self.0.with(read),
            }
        }
    }

    /// The value itself.
    ///
    /// # Safety
    ///
    /// As for [`Packed::take`].
    #[inline]
    pub unsafe fn take(self) -> S::Value {
        // SAFETY: passed on to the caller, who owns the value.
        unsafe {
            match Self::in_place() {
                Some(_) => ManuallyDrop::into_inner(self.bits()),
                None => self.0.take(),
            }
        }
    }

    /// Frees the value once no reader pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`Packed::retire`].
    #[inline]
    pub unsafe fn retire(self, guard: &impl Retire) {
        if Self::in_place().is_none() {
            // SAFETY: passed on to the caller.
            unsafe { self.0.retire(guard) };
        } else if needs_drop::<S::Value>() && !self.word().is_null() {
            // SAFETY: it is freed only here, when every thread that could reach it has unpinned.
            // `Value: Send + 'static`, so any thread may drop it at any time.
            unsafe { guard.defer_unchecked(move || drop(self.take())) };
        }
    }

    /// Returns the value after it has been unlinked, or a copy of it: see [`Packed::hand_out`].
    ///
    /// # Safety
    ///
    /// As for [`Packed::hand_out`].
    #[inline]
    pub unsafe fn hand_out(self, guard: &reclaim::Guard<'_>) -> S::Value {
        // SAFETY: passed on to the caller. What is retired is not freed before this guard is gone.
        unsafe {
            if Self::in_place().is_none() {
                return self.0.hand_out(guard);
            }
            // Of a value that need not be dropped, every copy is as good as the value.
            if self.word().is_null() || needs_drop::<S::Value>() && guard.is_alone() {
                return self.take();
            }
            self.retire(guard);
            self.with(S::Value::clone)
        }
    }

    /// Whether values are words, of which nothing has to be freed.
    #[inline]
    pub fn is_word() -> bool {
        Packed::<S::Value>::is_word()
    }

    /// The size of what is allocated for a value, beside its slot.
    pub fn bytes_beside() -> usize {
        match Self::in_place() {
            Some(_) => 0,
            None => Packed::<S::Value>::bytes_beside(),
        }
    }
}

/// A place in a node for a [`PackedValue`].
pub struct ValueSlot<S: Spec>(Slot<S::Value>);

impl<S: Spec> ValueSlot<S> {
    /// An empty slot. What is loaded from it must not be used.
    #[inline]
    pub fn empty() -> Self {
        Self(Slot::empty())
    }

    /// The content of a slot that a version lock guards; unvalidated if an optimistic reader loads
    /// it.
    #[inline]
    pub fn load(&self) -> PackedValue<S> {
        PackedValue(self.0.load())
    }

    /// Writes a slot that a version lock guards. The old content is not freed.
    #[inline]
    pub fn store(&self, value: PackedValue<S>) {
        self.0.store(value.0);
    }
}
