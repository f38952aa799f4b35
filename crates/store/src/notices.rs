//! Notices of what becomes of keys, for who listens.

use crate::Key;
use tremula_sync::atomic::{AtomicBool, Ordering::Relaxed};
use tremula_sync::system::OnceLock;

/// What has become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It has a value.
    Put {
        /// Whether it had none before.
        is_new: bool,
        /// Whether it expires.
        expires: bool,
    },
    /// It has no value any more.
    Removed,
    /// It expires at another time than before.
    Expires,
    /// It does not expire any more.
    Persists,
    /// Its time has come. It has been unseen since then.
    Expired,
}

/// Why something has become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A write of the caller, with the name that he has given it
    /// ([`Databases::caused_by`](crate::Databases::caused_by)).
    Caller(&'static str),
    /// There was no room for it.
    Eviction,
}

/// A key of which something has become.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The number of the database.
    pub database: usize,
    /// The key.
    pub key: Key,
    /// What has become of it.
    pub happening: Happening,
    /// Why.
    pub cause: Cause,
}

/// Gets a notice of every change of a key.
pub trait Listener: Send + Sync {
    /// Takes the notices of what one write or step has changed, in its order, when it has taken
    /// effect and the locks are free again. Of keys that several threads write at once, the last
    /// notices may come in another order than the writes; a look at a key after its last notice
    /// shows what it is.
    ///
    /// There are none of removals of ranges.
    fn changed(&self, notices: Vec<Notice>);
}

/// Whether somebody listens, and who.
#[derive(Default)]
pub(crate) struct Notices {
    is_on: AtomicBool,
    listener: OnceLock<Box<dyn Listener>>,
}

impl Notices {
    /// The listener, if it is on.
    #[inline]
    pub(crate) fn listener(&self) -> Option<&dyn Listener> {
        // Relaxed: a write that runs while this changes may give notices or not.
        if !self.is_on.load(Relaxed) {
            return None;
        }
        self.listener.get().map(|listener| &**listener)
    }

    /// Names the listener. Returns whether there was none.
    pub(crate) fn set(&self, listener: Box<dyn Listener>) -> bool {
        self.listener.set(listener).is_ok()
    }

    pub(crate) fn turn(&self, is_on: bool) {
        self.is_on.store(is_on, Relaxed);
    }
}
