//! `UnsafeCell` with the interface of loom's cell. Each time its content is reached, that costs an
//! access of the content's first cache line.

use super::current::touch;
use super::directory::LINE;

/// Data that may be changed through a shared reference; the user's code must order the accesses.
#[derive(Debug, Default)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell with `value` in it.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// A pointer for reading. While it lives nobody may write.
    pub const fn get(&self) -> ConstPtr<T> {
        ConstPtr(self.0.get())
    }

    /// A pointer for writing. While it lives nobody else may read or write.
    pub const fn get_mut(&self) -> MutPtr<T> {
        MutPtr(self.0.get())
    }
}

/// A pointer into an [`UnsafeCell`] for reading.
#[derive(Debug)]
pub struct ConstPtr<T>(*const T);

impl<T> ConstPtr<T> {
    /// The value.
    ///
    /// # Safety
    ///
    /// Nobody writes the cell while the reference lives.
    #[track_caller]
    pub unsafe fn deref(&self) -> &T {
        touch(self.0, size_of::<T>().min(LINE), false);
        // SAFETY: the pointer comes from a live cell; the rest is the caller's promise.
        unsafe { &*self.0 }
    }
}

/// A pointer into an [`UnsafeCell`] for reading and writing.
#[derive(Debug)]
pub struct MutPtr<T>(*mut T);

impl<T> MutPtr<T> {
    /// The value.
    ///
    /// # Safety
    ///
    /// Nobody else reads or writes the cell while the reference lives.
    #[expect(clippy::mut_from_ref, reason = "the form of loom's cell")]
    #[track_caller]
    pub unsafe fn deref(&self) -> &mut T {
        touch(self.0, size_of::<T>().min(LINE), true);
        // SAFETY: the pointer comes from a live cell; the rest is the caller's promise.
        unsafe { &mut *self.0 }
    }
}
