//! Values in the slots of nodes that are read optimistically. Each is one word: the value itself if
//! it fits, otherwise a pointer to it.

use std::any::Any;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, needs_drop};
use std::ptr;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim;

/// A guard under which something can be retired.
pub trait Retire {
    /// Runs `work` after all present guards are gone.
    ///
    /// # Safety
    ///
    /// It must be sound to run `work` then, in any thread.
    unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F);
}

impl Retire for reclaim::Guard<'_> {
    #[inline]
    unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        // SAFETY: passed on to the caller.
        unsafe { self.defer_unchecked(work) };
    }
}

/// A value packed into one word: the value itself for numbers of up to a word, `bool`, `char` and
/// `()`; otherwise a pointer to a box that is never written again.
///
/// It can be copied like a word and owns nothing: the owner of the slot that contains it must free
/// the value once, by [`take`](Self::take) or [`retire`](Self::retire).
pub struct Packed<T> {
    /// Without provenance if it is the value itself.
    word: *mut (),
    value: PhantomData<*mut T>,
}

impl<T> Clone for Packed<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Packed<T> {}

impl<T: 'static> Packed<T> {
    /// Packs a value. Allocates if the value is not a word.
    #[inline]
    pub fn new(value: T) -> Self {
        let word = match to_word(&value) {
            Some(word) => ptr::without_provenance_mut(word),
            None => Box::into_raw(Box::new(value)).cast(),
        };
        Self {
            word,
            value: PhantomData,
        }
    }

    /// The word, for a node that keeps it with other kinds of words.
    #[inline]
    pub fn word(self) -> *mut () {
        self.word
    }

    /// The inverse of [`word`](Self::word).
    #[inline]
    pub const fn of_word(word: *mut ()) -> Self {
        Self {
            word,
            value: PhantomData,
        }
    }

    /// Calls `read` with the value.
    ///
    /// # Safety
    ///
    /// This was read from a slot, or packed, as a whole (an optimistic reader has validated it),
    /// and the value has not been freed: the caller owns the slot, or has been pinned since before
    /// the value was unlinked.
    #[inline]
    pub unsafe fn with<R>(self, read: impl FnOnce(&T) -> R) -> R {
        match from_word(self.word.addr()) {
            Some(value) => read(&value),
            // SAFETY: the value is not a word, so it is in a box, which lives as the caller
            // promises.
            None => read(unsafe { &*self.word.cast::<T>() }),
        }
    }

    /// The value itself.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and no other thread uses the value from now on.
    #[inline]
    pub unsafe fn take(self) -> T {
        match from_word(self.word.addr()) {
            Some(value) => value,
            // SAFETY: the value is not a word, so it is in a box, which only the caller uses.
            None => *unsafe { Box::from_raw(self.word.cast::<T>()) },
        }
    }

    /// Frees the value once no reader pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with). The value has been unlinked, so that no thread that pins from
    /// now on can reach it, and it is retired once.
    #[inline]
    pub unsafe fn retire(self, guard: &impl Retire)
    where
        T: Send,
    {
        if from_word::<T>(self.word.addr()).is_none() {
            let value = self.word.cast::<T>();
            // SAFETY: the box came from `new` and is freed only here, when every thread that could
            // reach it has unpinned. `T: Send + 'static`, so any thread may drop it at any time.
            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(value))) };
        }
    }

    /// Returns the value after it has been unlinked: the value itself if no other thread can be
    /// looking at it, otherwise a copy; then the value is freed when no thread can be looking at it
    /// any more.
    ///
    /// `Clone` may panic, so call this last, without a lock.
    ///
    /// # Safety
    ///
    /// As for [`retire`](Self::retire); and the calling thread keeps no reference to the value,
    /// except under another guard.
    #[inline]
    pub unsafe fn hand_out(self, guard: &reclaim::Guard<'_>) -> T
    where
        T: Clone + Send,
    {
        if let Some(value) = from_word(self.word.addr()) {
            return value;
        }
        // The check for other guards is worth its cost only if a copy can differ from the value.
        if needs_drop::<T>() && guard.is_alone() {
            // SAFETY: the caller promises that it is unlinked, and no other thread reached it
            // before.
            return unsafe { self.take() };
        }
        // SAFETY: passed on to the caller. The value is not freed before this guard is gone.
        unsafe {
            self.retire(guard);
            self.with(T::clone)
        }
    }

    /// Whether values of this type are words, and so are packed in place.
    #[inline]
    pub fn is_word() -> bool {
        from_word::<T>(0).is_some()
    }

    /// The size of what is allocated for a value of this type, beside its slot.
    pub fn bytes_beside() -> usize {
        if Self::is_word() { 0 } else { size_of::<T>() }
    }
}

/// A packed value that is in no node yet. Dropping it frees it.
pub struct OwnedValue<T: 'static>(Packed<T>);

impl<T: 'static> OwnedValue<T> {
    /// Packs a value.
    #[inline]
    pub fn new(value: T) -> Self {
        Self(Packed::new(value))
    }

    /// Takes over a packed value.
    ///
    /// # Safety
    ///
    /// The caller owns the value, and gives it up.
    pub unsafe fn of_word(word: *mut ()) -> Self {
        Self(Packed::of_word(word))
    }

    /// The word, for a node.
    #[inline]
    pub fn word(&self) -> *mut () {
        self.0.word()
    }

    /// Releases the value to the node that contains it now.
    #[inline]
    pub fn give(self) {
        mem::forget(self);
    }

    /// The value itself.
    pub fn take(self) -> T {
        // SAFETY: `self` owns the value, and is not used again.
        unsafe { ManuallyDrop::new(self).0.take() }
    }
}

impl<T: 'static> Drop for OwnedValue<T> {
    fn drop(&mut self) {
        // SAFETY: `self` owns the value.
        drop(unsafe { self.0.take() });
    }
}

/// A place in a node for a [`Packed`] value.
pub struct Slot<T> {
    word: AtomicPtr<()>,
    value: PhantomData<*mut T>,
}

// SAFETY: a slot is an atomic word. The values that it points to are shared (`with`) and sent
// (`retire`, `take`) only as the contracts of those methods allow.
unsafe impl<T: Send + Sync> Send for Slot<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// An empty slot. What is loaded from it must not be used.
    #[inline]
    pub fn empty() -> Self {
        Self {
            word: AtomicPtr::new(ptr::null_mut()),
            value: PhantomData,
        }
    }

    /// The content of a slot that a [`VersionLock`](tremula_sync::VersionLock) guards; unvalidated
    /// if an optimistic reader loads it.
    #[inline]
    pub fn load(&self) -> Packed<T> {
        Packed {
            word: self.word.load(Ordering::Relaxed),
            value: PhantomData,
        }
    }

    /// Writes a slot that a version lock guards. The old content is not freed.
    #[inline]
    pub fn store(&self, value: Packed<T>) {
        self.word.store(value.word, Ordering::Relaxed);
    }

    /// The content of a slot that readers read without a lock or a validation.
    #[inline]
    pub fn observe(&self) -> Packed<T> {
        Packed {
            // Acquire: pairs with the Release store in `publish`.
            word: self.word.load(Ordering::Acquire),
            value: PhantomData,
        }
    }

    /// Writes a slot that readers read without a lock. The old content is not freed.
    #[inline]
    pub fn publish(&self, value: Packed<T>) {
        // Release: pairs with the Acquire load in `observe`: a thread that sees the value also sees
        // what is in it.
        self.word.store(value.word, Ordering::Release);
    }
}

/// The types that are packed in place, with their conversions to a word and back. A type wider than
/// a word of the machine is not packed in place.
macro_rules! words {
    ($($type:ty: |$value:ident| $to:expr, |$word:ident| $from:expr;)*) => {
        /// The word that the value is, if it is one. The type is known at compile time, so no test
        /// of it is left in the code.
        #[inline]
        fn to_word<T: 'static>(value: &T) -> Option<usize> {
            if size_of::<T>() > size_of::<usize>() {
                return None;
            }
            let value: &dyn Any = value;
            $(if let Some(&$value) = value.downcast_ref::<$type>() {
                return Some($to);
            })*
            None
        }

        /// The value that the word is, if values of this type are words.
        #[inline]
        fn from_word<T: 'static>(word: usize) -> Option<T> {
            if size_of::<T>() > size_of::<usize>() {
                return None;
            }
            let mut value: Option<T> = None;
            let place: &mut dyn Any = &mut value;
            $(if let Some(place) = place.downcast_mut::<Option<$type>>() {
                let from: fn(usize) -> $type = |$word| $from;
                *place = Some(from(word));
                return value;
            })*
            None
        }
    };
}

words! {
    u8: |value| value.into(), |word| word as u8;
    u16: |value| value.into(), |word| word as u16;
    u32: |value| value as usize, |word| word as u32;
    u64: |value| value as usize, |word| word as u64;
    usize: |value| value, |word| word;
    i8: |value| value as usize, |word| word as i8;
    i16: |value| value as usize, |word| word as i16;
    i32: |value| value as usize, |word| word as i32;
    i64: |value| value as usize, |word| word as i64;
    isize: |value| value as usize, |word| word as isize;
    f32: |value| value.to_bits() as usize, |word| f32::from_bits(word as u32);
    f64: |value| value.to_bits() as usize, |word| f64::from_bits(word as u64);
    bool: |value| value.into(), |word| word != 0;
    char: |value| value as usize, |word| char::from_u32(word as u32).unwrap_or_default();
    (): |_unit| 0, |_word| ();
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::fmt::Debug;
    use tremula_sync::{Arc, reclaim::Collector};

    fn comes_back<T: Clone + PartialEq + Debug + Send + 'static>(in_place: bool, values: &[T]) {
        assert_eq!(Packed::<T>::bytes_beside() == 0, in_place);
        for value in values {
            let packed = Packed::new(value.clone());
            // SAFETY: packed above, and taken last.
            unsafe {
                packed.with(|seen| assert_eq!(seen, value));
                assert_eq!(packed.take(), *value);
            }
        }
    }

    #[test]
    fn values_come_back_as_they_were() {
        comes_back(true, &[0, 1, u64::MAX]);
        comes_back(true, &[i64::MIN, -1, 0, i64::MAX]);
        comes_back(true, &[i8::MIN, -1, 0, i8::MAX]);
        comes_back(true, &[-0.0, f64::INFINITY, 1e-300]);
        comes_back(true, &[false, true]);
        comes_back(true, &['a', char::MAX, '\0']);
        comes_back(true, &[()]);
        comes_back(false, &[Some(3_u32), None]);
        comes_back(false, &[u128::MAX]);
        comes_back(false, &["long".repeat(20), String::new()]);
    }

    #[test]
    fn a_retired_value_is_dropped_once() {
        let value = Arc::new(());
        let collector = Collector::new();
        let packed = Packed::new(Arc::clone(&value));
        // SAFETY: nobody has come to it.
        unsafe { packed.retire(&collector.pin()) };
        drop(collector);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_value_is_handed_out_itself_unless_another_guard_is_there() {
        let value = Arc::new(());
        let collector = Collector::new();
        // SAFETY: nobody has come to them.
        unsafe {
            let alone = Packed::new(Arc::clone(&value)).hand_out(&collector.pin());
            assert_eq!(Arc::strong_count(&value), 2);
            drop(alone);
            let other = collector.pin();
            let copy = Packed::new(Arc::clone(&value)).hand_out(&collector.pin());
            assert_eq!(Arc::strong_count(&value), 3);
            drop((copy, other));
        }
        drop(collector);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
