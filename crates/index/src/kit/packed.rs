//! Values in the slots of nodes that are read optimistically: one word, which is the value
//! itself where it fits, else leads to it.

use std::any::Any;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, needs_drop};
use std::ptr;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim;

/// A guard under which something can be retired.
pub trait Retire {
    /// Runs `work` once every guard of now is gone.
    ///
    /// # Safety
    ///
    /// `work` is sound to run then, in any thread.
    unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F);
}

impl Retire for reclaim::Guard<'_> {
    #[inline]
    unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        // SAFETY: passed on to the caller.
        unsafe { self.defer_unchecked(work) };
    }
}

/// A value packed into one word: the value itself, for numbers of up to a word, `bool`, `char`
/// and `()`; otherwise a box that is never written again.
///
/// It is a plain word to copy about and owns nothing: whoever holds the slot that it is in sees
/// to it that the value is freed, once: [`take`](Self::take) or [`retire`](Self::retire).
pub struct Packed<T> {
    /// Without provenance where it is the value itself.
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
    /// Packs a value; allocates if it is not a word.
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

    /// The word, for a node that keeps it among words of other kinds.
    #[inline]
    pub fn word(self) -> *mut () {
        self.word
    }

    /// What [`word`](Self::word) gave.
    #[inline]
    pub const fn of_word(word: *mut ()) -> Self {
        Self {
            word,
            value: PhantomData,
        }
    }

    /// Shows the value to `read`.
    ///
    /// # Safety
    ///
    /// This was read from a slot, or packed, as a whole (what an optimistic reader read has been
    /// validated), and the value has not been freed: the caller owns the slot, or is pinned
    /// since before the value was unlinked.
    #[inline]
    pub unsafe fn with<R>(self, read: impl FnOnce(&T) -> R) -> R {
        match from_word(self.word.addr()) {
            Some(value) => read(&value),
            // SAFETY: not a word, hence a box, that lives on as the caller promises.
            None => read(unsafe { &*self.word.cast::<T>() }),
        }
    }

    /// The value itself.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and nobody else has it, or uses it ever again.
    #[inline]
    pub unsafe fn take(self) -> T {
        match from_word(self.word.addr()) {
            Some(value) => value,
            // SAFETY: not a word, hence a box, which the caller alone has.
            None => *unsafe { Box::from_raw(self.word.cast::<T>()) },
        }
    }

    /// Frees the value once no reader pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); it has been unlinked, so that nobody who pins from now on
    /// comes to it; and it is retired once.
    #[inline]
    pub unsafe fn retire(self, guard: &impl Retire)
    where
        T: Send,
    {
        if from_word::<T>(self.word.addr()).is_none() {
            let value = self.word.cast::<T>();
            // SAFETY: the box came from `new` and is freed here only, when nobody is pinned
            // any more who could have come to it. `T: Send + 'static`: any thread may, any time.
            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(value))) };
        }
    }

    /// Hands the value out after it has been unlinked: the value itself, if no other thread can be
    /// looking at it; else a copy, and the value is freed when no thread can any more.
    ///
    /// `Clone` may panic: call it last, without a lock.
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
        // To look whether the thread is alone is worth it only where a copy can be told from the
        // value.
        if needs_drop::<T>() && guard.is_alone() {
            // SAFETY: unlinked, as the caller promises; and nobody has come to it before.
            return unsafe { self.take() };
        }
        // SAFETY: as the caller promises. It is freed when this guard is gone, at the earliest.
        unsafe {
            self.retire(guard);
            self.with(T::clone)
        }
    }

    /// Whether values of this type are words, and so packed in place.
    #[inline]
    pub fn is_word() -> bool {
        from_word::<T>(0).is_some()
    }

    /// The bytes allocated for a value of this type beside its slot.
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

    /// Takes a packed value over.
    ///
    /// # Safety
    ///
    /// The caller owns it, and nobody else does.
    pub unsafe fn of_word(word: *mut ()) -> Self {
        Self(Packed::of_word(word))
    }

    /// The word, for a node.
    #[inline]
    pub fn word(&self) -> *mut () {
        self.0.word()
    }

    /// Leaves the value to the node that it is in now.
    #[inline]
    pub fn give(self) {
        mem::forget(self);
    }

    /// The value itself.
    pub fn take(self) -> T {
        // SAFETY: this owns the value, and ends here.
        unsafe { ManuallyDrop::new(self).0.take() }
    }
}

impl<T: 'static> Drop for OwnedValue<T> {
    fn drop(&mut self) {
        // SAFETY: this owns the value.
        drop(unsafe { self.0.take() });
    }
}

/// A place in a node for a [`Packed`] value.
pub struct Slot<T> {
    word: AtomicPtr<()>,
    value: PhantomData<*mut T>,
}

// SAFETY: a slot is an atomic word. The values that it leads to are shared (`with`) and sent
// (`retire`, `take`) only as the contracts of these say.
unsafe impl<T: Send + Sync> Send for Slot<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// A slot with nothing in it: what is loaded from it must not be used.
    #[inline]
    pub fn empty() -> Self {
        Self {
            word: AtomicPtr::new(ptr::null_mut()),
            value: PhantomData,
        }
    }

    /// What is in the slot, where a [`VersionLock`](tremula_sync::VersionLock) guards it; of an
    /// optimistic reader, unvalidated.
    #[inline]
    pub fn load(&self) -> Packed<T> {
        Packed {
            word: self.word.load(Ordering::Relaxed),
            value: PhantomData,
        }
    }

    /// Writes the slot, where a version lock guards it. What was in it is not freed.
    #[inline]
    pub fn store(&self, value: Packed<T>) {
        self.word.store(value.word, Ordering::Relaxed);
    }

    /// What is in the slot, where readers look at it without a lock or a validation.
    #[inline]
    pub fn observe(&self) -> Packed<T> {
        Packed {
            // Acquire: pairs with `publish`.
            word: self.word.load(Ordering::Acquire),
            value: PhantomData,
        }
    }

    /// Writes the slot, where readers look at it without a lock. What was in it is not freed.
    #[inline]
    pub fn publish(&self, value: Packed<T>) {
        // Release: pairs with `observe`; what the value consists of is visible to whoever sees
        // the value.
        self.word.store(value.word, Ordering::Release);
    }
}

/// The types that are packed in place: each as a word, and back. Types wider than a word of this
/// machine are not.
macro_rules! words {
    ($($type:ty: |$value:ident| $to:expr, |$word:ident| $from:expr;)*) => {
        /// The word that the value is, if it is one. Which type this is, is known when it is
        /// compiled: no question is left.
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
