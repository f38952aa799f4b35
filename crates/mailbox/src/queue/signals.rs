//! What the senders tell the receiver, in one word: where something new lies, and whether it
//! sleeps.
//!
//! ```text
//!  sender                                   receiver
//!  append the message, under its lock       nothing new? no bit set?
//!  raise the lane's bit     --------.       register as the waiter
//!  was the word SLEEPING alone?      `----> exchange 0 by SLEEPING; some bit set: stay awake
//!  then wake the waiter                     sleep; when woken, begin anew
//! ```
//!
//! Both sides change the same word, so one of them is first: if the sender is, the exchange
//! fails and the receiver looks again; if the receiver is, the sender sees `SLEEPING` and wakes
//! it. Of several senders the one whose bit is the first beside `SLEEPING` wakes, and no other.
//!
//! A sender that was slow to wake may take the registration of a later sleep. The receiver is
//! then awake for nothing, and registers again before it goes back to sleep.

use tremula_sync::atomic::{AtomicU32, Ordering};
use tremula_sync::{ShortLock, Waiter, contained};

/// The base queue holds messages.
pub(crate) const BASE: u32 = 1;
/// A slot holds messages.
pub(crate) const SLOTS: u32 = 2;
/// The urgent queue holds messages.
pub(crate) const URGENT: u32 = 4;
/// The last sender is gone.
pub(crate) const DISCONNECTED: u32 = 8;
/// The receiver sleeps, or is about to.
const SLEEPING: u32 = 16;

/// The word, and the registered waiter.
pub(crate) struct Signals {
    word: AtomicU32,
    waiter: ShortLock<Option<Waiter>>,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            waiter: ShortLock::new(None),
        }
    }

    /// Whether a bit of these is raised. Cheap: the receiver asks before each message.
    #[inline]
    pub(crate) fn any(&self, bits: u32) -> bool {
        // SeqCst: a send that has returned has raised its bits (or seen them raised), and they
        // are seen here.
        self.word.load(Ordering::SeqCst) & bits != 0
    }

    /// Raises a bit after what it stands for has been done. If this answers `true` the caller
    /// must [`wake`](Self::wake) the receiver, once it holds no lock.
    #[inline]
    #[must_use = "the receiver may sleep"]
    pub(crate) fn raise(&self, bit: u32) -> bool {
        // SeqCst: with the receiver's exchange in `sleep` in one total order.
        self.word.fetch_or(bit, Ordering::SeqCst) == SLEEPING
    }

    /// As [`raise`](Self::raise), for a bit that is likely to be raised already, and where
    /// the caller has made a SeqCst change to another word that the receiver looks at after it
    /// has lowered this bit.
    #[inline]
    #[must_use = "the receiver may sleep"]
    pub(crate) fn raise_if_lowered(&self, bit: u32) -> bool {
        // loom treats SeqCst accesses as AcqRel; the fence tells it what they already mean.
        #[cfg(loom)]
        tremula_sync::atomic::fence(Ordering::SeqCst);
        // SeqCst: if the bit is seen here, the receiver will lower it later, and then look at
        // the other word later still, and find what the caller has done there.
        if self.word.load(Ordering::SeqCst) & bit != 0 {
            return false;
        }
        self.raise(bit)
    }

    /// Lowers bits before what they stand for is looked at; the receiver is awake.
    pub(crate) fn lower(&self, bits: u32) {
        // SeqCst: as in `raise`; what was done before a bit was raised is seen after this.
        self.word.fetch_and(!(bits | SLEEPING), Ordering::SeqCst);
        #[cfg(loom)]
        tremula_sync::atomic::fence(Ordering::SeqCst);
    }

    /// Registers the waiter and announces that it sleeps. `false` if something is there.
    pub(crate) fn sleep(&self, waiter: Waiter) -> bool {
        let before = self.waiter.lock().replace(waiter);
        drop(before); // the user's code, if it is a task's: not under the lock
        let sleeping = self
            .word
            .compare_exchange(0, SLEEPING, Ordering::SeqCst, Ordering::SeqCst);
        // After a sleep that was ended for no reason the announcement still stands.
        matches!(sleeping, Ok(_) | Err(SLEEPING))
    }

    /// Drops the registered waiter: nobody receives any more.
    pub(crate) fn forget_waiter(&self) {
        let waiter = self.waiter.lock().take();
        contained(|| drop(waiter)); // the user's code, if it is a task's: not under the lock
    }

    /// Wakes the registered waiter. Called by the one whose bit was the first.
    #[cold]
    pub(crate) fn wake(&self) {
        let waiter = self.waiter.lock().take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}
