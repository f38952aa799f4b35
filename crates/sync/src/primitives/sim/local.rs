//! Values of which each virtual thread has its own; a thread of the system outside of a simulation
//! has its own too.

use super::current;
use super::state::Local;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::{self, needs_drop};
use std::ptr;

std::thread_local! {
    static OUTSIDE: RefCell<Vec<Local>> = const { RefCell::new(Vec::new()) };
}

/// A value for each thread; [`thread_local`](crate::sim::thread_local) declares it.
///
/// ```
/// use std::cell::Cell;
/// use tremula_sync::sim::{LocalKey, Machine, Simulation};
///
/// static COUNT: LocalKey<Cell<u32>> = LocalKey::new(|| Cell::new(0));
///
/// COUNT.set(5);
/// let run = Simulation::on(Machine::free_of_charge(1)).run(|| COUNT.get());
/// assert_eq!((run.result, COUNT.get()), (0, 5));
/// ```
pub struct LocalKey<T: 'static> {
    make: fn() -> T,
}

/// The value has been dropped, because its thread ends.
///
/// ```
/// use tremula_sync::sim::{AccessError, LocalKey};
///
/// static NUMBER: LocalKey<u32> = LocalKey::new(|| 7);
/// let seen: Result<u32, AccessError> = NUMBER.try_with(|number| *number);
/// assert_eq!(seen, Ok(7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

/// Takes the place of a value that is being made or has been dropped.
struct Gone;

impl<T: 'static> LocalKey<T> {
    /// For the macro.
    #[doc(hidden)]
    pub const fn new(make: fn() -> T) -> Self {
        Self { make }
    }

    fn place(&'static self) -> Option<*mut dyn Any> {
        let key = ptr::from_ref(self).addr();
        let find = |all: &Vec<Local>| {
            let found = all.iter().find(|local| local.key == key);
            found.map(|local| local.value)
        };
        match current::with(|state| find(&state.me().locals)) {
            Some(found) => found,
            None => OUTSIDE.with_borrow(find),
        }
    }

    fn keep(&'static self, value: *mut dyn Any) {
        let local = || Local {
            key: ptr::from_ref(self).addr(),
            value,
            is_to_drop: needs_drop::<T>(),
        };
        if current::with(|state| state.me().locals.push(local())).is_none() {
            OUTSIDE.with_borrow_mut(|all| all.push(local()));
        }
    }

    /// As std's.
    ///
    /// # Errors
    ///
    /// If the value has been dropped.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let place = self.place().unwrap_or_else(|| {
            let made: Box<dyn Any> = Box::new((self.make)());
            let place = Box::into_raw(made);
            self.keep(place);
            place
        });
        // SAFETY: the value lives until its thread ends, which then leaves `Gone` in its place;
        // only shared references are made of it before.
        let value = unsafe { &*place }.downcast_ref::<T>();
        value.map(f).ok_or(AccessError)
    }

    /// As std's.
    ///
    /// # Panics
    ///
    /// If the value has been dropped.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        let result = self.try_with(f);
        result.expect("the thread ends, and the value has been dropped")
    }
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// As std's.
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// As std's.
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// As std's.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }

    /// As std's.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// As std's.
    pub fn with_borrow<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| f(&cell.borrow()))
    }

    /// As std's.
    pub fn with_borrow_mut<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// As std's.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// As std's.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

/// Drops the values of the virtual thread that ends, the last one first, with all that the drops
/// add.
pub(super) fn end_of_thread() {
    let next = || {
        let gone = current::with(|state| {
            let mut locals = state.me().locals.iter_mut();
            let last = locals.rfind(|local| local.is_to_drop)?;
            last.is_to_drop = false;
            let gone: Box<dyn Any> = Box::new(Gone);
            Some(mem::replace(&mut last.value, Box::into_raw(gone)))
        });
        gone.flatten()
    };
    while let Some(value) = next() {
        // SAFETY: it came from `Box::into_raw`, and its place no longer has it.
        drop(unsafe { Box::from_raw(value) });
    }
    let left = current::with(|state| mem::take(&mut state.me().locals));
    for local in left.into_iter().flatten() {
        // SAFETY: it came from `Box::into_raw`, and the thread ends here.
        drop(unsafe { Box::from_raw(local.value) });
    }
}

/// Declares values of which each thread has its own, as std's macro does.
#[macro_export]
#[doc(hidden)]
macro_rules! sim_thread_local {
    () => {};
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = const { $make:expr }; $($rest:tt)*) => {
        $(#[$attribute])* $visible static $name: $crate::sim::LocalKey<$type> =
            $crate::sim::LocalKey::new(|| $make);
        $crate::sim_thread_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = const { $make:expr }) => {
        $crate::sim_thread_local!($(#[$attribute])* $visible static $name: $type = const { $make };);
    };
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = $make:expr; $($rest:tt)*) => {
        $(#[$attribute])* $visible static $name: $crate::sim::LocalKey<$type> =
            $crate::sim::LocalKey::new(|| $make);
        $crate::sim_thread_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = $make:expr) => {
        $crate::sim_thread_local!($(#[$attribute])* $visible static $name: $type = $make;);
    };
}
