//! Atomic types of which each access has its price, and takes place in the order of virtual time.

use super::current;
use super::directory::Kind;
use std::fmt;
use std::panic::Location;
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

/// Declares an atomic type: its name, std's, and the type of its value.
macro_rules! atomic {
    ($name:ident $([$parameter:ident])?, $real:ty, $value:ty) => {
        /// An atomic type like std's of the same name.
        #[repr(transparent)]
        pub struct $name $(<$parameter>)? ($real);

        impl $(<$parameter>)? $name $(<$parameter>)? {
            /// As std's.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(<$real>::new(value))
            }

            #[track_caller]
            fn access(&self, kind: Kind) {
                let address = std::ptr::from_ref(self).addr();
                current::access(address, kind, Location::caller());
            }

            /// As std's.
            #[track_caller]
            pub fn load(&self, ordering: Ordering) -> $value {
                self.access(Kind::Load);
                self.0.load(ordering)
            }

            /// As std's. A sequentially consistent store is an exchange, as compilers make it.
            #[track_caller]
            pub fn store(&self, value: $value, ordering: Ordering) {
                self.access(match ordering {
                    Ordering::SeqCst => Kind::ReadModifyWrite,
                    _ => Kind::Store,
                });
                self.0.store(value, ordering);
            }

            /// As std's.
            #[track_caller]
            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                self.access(Kind::ReadModifyWrite);
                self.0.swap(value, ordering)
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
                self.access(Kind::ReadModifyWrite);
                self.0.compare_exchange(current, new, success, failure)
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
                    self.access(Kind::ReadModifyWrite);
                    self.0.$method(value, ordering)
                }
            )*
        }
    };
}

macro_rules! integers {
    ($($name:ident $value:ty;)*) => {
        $(
            atomic!($name, real::$name, $value);
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
atomic!(AtomicBool, real::AtomicBool, bool);
fetch!(AtomicBool, bool: fetch_and fetch_or fetch_xor fetch_nand);
atomic!(AtomicPtr[T], real::AtomicPtr<T>, *mut T);
