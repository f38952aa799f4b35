//! Atomic types of which each access has its price, and takes place in the order of virtual time.
//! What a store writes, its own thread sees at once, and others when its line has come.

use super::current;
use super::directory::Kind;
use super::stores::Bits;
use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic as real;
pub use std::sync::atomic::{Ordering, compiler_fence};

/// A full fence waits for the thread's own stores; the others cost nothing on the machines that
/// the profiles describe.
pub fn fence(ordering: Ordering) {
    if ordering == Ordering::SeqCst {
        current::fence();
    }
    real::fence(ordering);
}

/// Declares an atomic type: its name, std's, the type of its value, how that becomes bits, and how
/// it is made from them.
macro_rules! atomic {
    ($name:ident $([$parameter:ident])?, $real:ty, $value:ty, $to:expr, $from:expr) => {
        /// An atomic type like std's of the same name.
        #[repr(transparent)]
        pub struct $name $(<$parameter>)? ($real);

        impl $(<$parameter>)? $name $(<$parameter>)? {
            /// As std's.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(<$real>::new(value))
            }

            fn address(&self) -> usize {
                ptr::from_ref(self).addr()
            }

            #[track_caller]
            fn access(&self, kind: Kind) {
                current::access(self.address(), kind, Location::caller());
            }

            /// Writes a value, which this thread sees from here on.
            fn put(&self, value: $value, ordering: Ordering) {
                let in_memory = ($to)(self.0.load(Ordering::Relaxed));
                if current::store(self.address(), in_memory, ($to)(value)) {
                    self.0.store(value, ordering);
                }
            }

            /// What `step` does to the value that this thread sees.
            #[track_caller]
            fn read_modify_write<R>(&self, step: impl FnOnce(&$real) -> R) -> R {
                self.access(Kind::ReadModifyWrite);
                let Some(seen) = current::seen(self.address()) else {
                    return step(&self.0);
                };
                let value = <$real>::new(($from)(seen));
                let result = step(&value);
                self.put(value.into_inner(), Ordering::Release);
                result
            }

            /// As std's.
            #[track_caller]
            pub fn load(&self, ordering: Ordering) -> $value {
                self.access(Kind::Load);
                let in_memory = ($to)(self.0.load(ordering));
                ($from)(current::loads(self.address(), in_memory))
            }

            /// As std's. A sequentially consistent store is an exchange, as compilers make it.
            #[track_caller]
            pub fn store(&self, value: $value, ordering: Ordering) {
                if ordering == Ordering::SeqCst {
                    self.swap(value, ordering);
                    return;
                }
                self.access(Kind::Store);
                self.put(value, ordering);
            }

            /// As std's.
            #[track_caller]
            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                self.read_modify_write(|real| real.swap(value, ordering))
            }

            /// As std's. It pays for the line also if it fails.
            ///
            /// # Errors
            ///
            /// Returns the value that is there, if it is not `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.read_modify_write(|real| {
                    real.compare_exchange(current, new, success, failure)
                })
            }

            /// As std's, except that it never fails for no reason.
            ///
            /// # Errors
            ///
            /// Returns the value that is there, if it is not `current`.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// As std's.
            ///
            /// # Errors
            ///
            /// Returns the value that is there, if `change` gives none.
            #[track_caller]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                mut change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut now = self.load(fetch);
                while let Some(next) = change(now) {
                    match self.compare_exchange(now, next, set, fetch) {
                        Ok(before) => return Ok(before),
                        Err(other) => now = other,
                    }
                }
                Err(now)
            }

            /// As std's.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// As std's.
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            /// As std's: what is done through the pointer has no price.
            pub const fn as_ptr(&self) -> *mut $value {
                self.0.as_ptr()
            }
        }

        impl $(<$parameter>)? fmt::Debug for $name $(<$parameter>)? {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(out)
            }
        }

        impl $(<$parameter>)? Default for $name $(<$parameter>)? {
            fn default() -> Self {
                Self(<$real>::default())
            }
        }

        impl $(<$parameter>)? From<$value> for $name $(<$parameter>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

/// Adds read-modify-writes to an atomic type.
macro_rules! fetch {
    ($name:ident, $value:ty: $($method:ident)*) => {
        impl $name {
            $(
                /// As std's.
                #[track_caller]
                pub fn $method(&self, value: $value, ordering: Ordering) -> $value {
                    self.read_modify_write(|real| real.$method(value, ordering))
                }
            )*
        }
    };
}

macro_rules! integers {
    ($($name:ident $value:ty;)*) => {
        $(
            atomic!(
                $name,
                real::$name,
                $value,
                |value: $value| -> Bits { ptr::without_provenance_mut(value as usize) },
                |bits: Bits| bits.addr() as $value
            );
            fetch!($name, $value: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand
                fetch_max fetch_min);
        )*
    };
}

integers! {
    AtomicU8 u8;
    AtomicU32 u32;
    AtomicU64 u64;
    AtomicUsize usize;
    AtomicI64 i64;
    AtomicIsize isize;
}
atomic!(
    AtomicBool,
    real::AtomicBool,
    bool,
    |value: bool| -> Bits { ptr::without_provenance_mut(usize::from(value)) },
    |bits: Bits| bits.addr() != 0
);
fetch!(AtomicBool, bool: fetch_and fetch_or fetch_xor fetch_nand);
atomic!(
    AtomicPtr[T],
    real::AtomicPtr<T>,
    *mut T,
    |value: *mut T| -> Bits { value.cast() },
    |bits: Bits| bits.cast()
);
