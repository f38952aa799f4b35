//! One word that carries signals from the senders to the receiver: where there are new messages,
//! and whether the receiver sleeps.
//!
//! ```text
//!  sender                                   receiver
//!  append the message, under its lock       nothing new? no bit set?
//!  raise the lane's bit     --------.       register as the waiter
//!  was the word SLEEPING alone?      `----> exchange 0 by SLEEPING; some bit set: stay awake
//!  then wake the waiter                     sleep; when woken, begin anew
//! ```
//!
//! Both sides change the same word, so one of them is first. If the sender is first, the exchange
//! fails and the receiver looks again. If the receiver is first, the sender sees `SLEEPING` and
//! wakes it. Of several senders only the one that raises the first bit beside `SLEEPING` wakes.
//!
//! A sender that is slow to wake may take the registration of a later sleep. Then the receiver
//! wakes for nothing, and registers again before it sleeps on.

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

    /// Whether one of these bits is raised. Cheap: the receiver calls it before each message.
    #[inline]
    pub(crate) fn any(&self, bits: u32) -> bool {
        // SeqCst: a send that has returned has raised its bits, or seen them raised, and this load
        // sees them.
        self.word.load(Ordering::SeqCst) & bits != 0
    }

    /// Raises a bit. The caller has already done what the bit announces. If this returns `true`,
    /// the caller must [`wake`](Self::wake) the receiver once it holds no lock.
    #[inline]
    #[must_use = "the receiver may sleep"]
    pub(crate) fn raise(&self, bit: u32) -> bool {
        // SeqCst: in one total order with the receiver's exchange in `sleep`.
        self.word.fetch_or(bit, Ordering::SeqCst) == SLEEPING
    }

    /// Like [`raise`](Self::raise), for a bit that is probably raised already. The caller has made
    /// a SeqCst change to another word, which the receiver reads after it has lowered this bit.
    #[inline]
    #[must_use = "the receiver may sleep"]
    pub(crate) fn raise_if_lowered(&self, bit: u32) -> bool {
        // loom treats SeqCst accesses as AcqRel; this fence gives them their full meaning.
        #[cfg(loom)]
        tremula_sync::atomic::fence(Ordering::SeqCst);
        // SeqCst: if the bit is seen here, the receiver lowers it later and reads the other word
        // after that, so it finds the caller's change.
        if self.word.load(Ordering::SeqCst) & bit != 0 {
            return false;
        }
        self.raise(bit)
    }

    /// Lowers bits, before the receiver reads what they announce. The receiver is awake.
    pub(crate) fn lower(&self, bits: u32) {
        // SeqCst: as in `raise`; everything done before a bit was raised is seen after this.
        self.word.fetch_and(!(bits | SLEEPING), Ordering::SeqCst);
        #[cfg(loom)]
        tremula_sync::atomic::fence(Ordering::SeqCst);
    }

    /// Registers the waiter and announces that it sleeps. `false` if a bit is raised.
    pub(crate) fn sleep(&self, waiter: Waiter) -> bool {
        let before = self.waiter.lock().replace(waiter);
        drop(before); // the user's code, if it is a task's: not under the lock
        let sleeping = self
            .word
            .compare_exchange(0, SLEEPING, Ordering::SeqCst, Ordering::SeqCst);
        // After a sleep that ended for no reason, the announcement is still in the word.
        matches!(sleeping, Ok(_) | Err(SLEEPING))
    }

    /// Drops the registered waiter, when the receiver is gone.
    pub(crate) fn forget_waiter(&self) {
        let waiter = self.waiter.lock().take();
        contained(|| drop(waiter)); // the user's code, if it is a task's: not under the lock
    }

    /// Wakes the registered waiter. Called by the thread that raised the first bit.
    #[cold]
    pub(crate) fn wake(&self) {
        let waiter = self.waiter.lock().take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}
