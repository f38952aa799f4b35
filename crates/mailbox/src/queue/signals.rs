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
//! The word also guards the [hand](super::hand), a place for one message.
//!
//! A sender that is slow to wake may take the registration of a later sleep. Then the receiver
//! wakes for nothing, and registers again before it sleeps on.

use super::hand::Hand;
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
/// The receiver looks at this word again and again: a message may be put into the hand.
const LOOKING: u32 = 32;
/// There is a message in the hand.
pub(crate) const HANDED: u32 = 64;

/// All that an awake receiver looks for.
const FINDINGS: u32 = BASE | SLOTS | URGENT | DISCONNECTED | HANDED;

/// The word, the registered waiter, and the hand.
pub(crate) struct Signals<T> {
    word: AtomicU32,
    waiter: ShortLock<Option<Waiter>>,
    hand: Hand<T>,
}

impl<T> Signals<T> {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            waiter: ShortLock::new(None),
            hand: Hand::new(),
        }
    }

    /// Whether one of these bits is raised. Cheap: the receiver calls it before each message.
    #[inline]
    pub(crate) fn any(&self, bits: u32) -> bool {
        // SeqCst: a send that has returned has raised its bits, or seen them raised, and this load
        // sees them.
        self.word.load(Ordering::SeqCst) & bits != 0
    }

    /// Whether there is something for the receiver.
    #[inline]
    pub(crate) fn any_finding(&self) -> bool {
        self.any(FINDINGS)
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

    /// Lowers bits, before the receiver reads what they announce, and returns those that were
    /// raised. The receiver is awake, and no longer looks.
    pub(crate) fn lower(&self, bits: u32) -> u32 {
        // SeqCst: as in `raise`; everything done before a bit was raised is seen after this.
        let lowered = !(bits | SLEEPING | LOOKING);
        let before = self.word.fetch_and(lowered, Ordering::SeqCst);
        #[cfg(loom)]
        tremula_sync::atomic::fence(Ordering::SeqCst);
        before & bits
    }

    /// Announces that the receiver looks, if that is of use: a message of this type may be put into
    /// the hand. Returns whether the receiver must [end](Self::stop_looking) it, unless it finds
    /// something and lowers its bit.
    #[inline]
    pub(crate) fn look(&self) -> bool {
        if Hand::<T>::FITS {
            // Relaxed: a hint. What the receiver did to the hand, it published when it lowered
            // `HANDED`; this change continues that release sequence.
            self.word.fetch_or(LOOKING, Ordering::Relaxed);
        }
        Hand::<T>::FITS
    }

    /// Announces that the receiver no longer looks. Returns whether there is something for it.
    pub(crate) fn stop_looking(&self) -> bool {
        // Relaxed: the receiver looks at the word again before it reads what a bit announces.
        self.word.fetch_and(!LOOKING, Ordering::Relaxed) & FINDINGS != 0
    }

    /// Hands the message at `message` to the receiver, if it looks and there is no message in the
    /// hand. Returns whether the caller must [`wake`](Self::wake) the receiver, which may have
    /// fallen asleep meanwhile; `None` if the message was not handed over.
    ///
    /// # Safety
    ///
    /// The caller holds the base lock. `message` is valid to read. Unless this returns `None`, the
    /// caller does not use or drop it any more.
    #[inline]
    pub(super) unsafe fn try_hand(&self, message: *const T) -> Option<bool> {
        // Acquire: pairs with the change by which the receiver lowered `HANDED` after it had taken
        // an earlier message. An earlier sender raised the bit under the base lock, so this load
        // sees either that the bit is raised, or that it was lowered after that.
        if !Hand::<T>::FITS || self.word.load(Ordering::Acquire) & (LOOKING | HANDED) != LOOKING {
            return None;
        }
        // SAFETY: the message fits. `HANDED` is lowered, so that there is no message in the hand,
        // and the receiver does not access it. All others that may hold the base lock.
        unsafe { self.hand.put(message) };
        Some(self.raise(HANDED))
    }

    /// Takes the message out of the hand, if there is one.
    ///
    /// # Safety
    ///
    /// The caller is the receiver.
    #[inline]
    pub(crate) unsafe fn take_handed(&self) -> Option<T> {
        if !Hand::<T>::FITS || !self.any(HANDED) {
            return None;
        }
        // SAFETY: `HANDED` is raised, so that there is a message in the hand, and only the
        // receiver, the caller, accesses it.
        let message = unsafe { self.hand.take() };
        // After the message has been read: when the receiver looks again, a sender may write the
        // next one. SeqCst, of which Release suffices here: pairs with the load in `try_hand`.
        self.lower(HANDED);
        Some(message)
    }

    /// Lowers the bits of the queue, before the receiver collects, and takes the message out of the
    /// hand, if there is one. It is older than all others.
    ///
    /// # Safety
    ///
    /// The caller is the receiver, and holds the base lock.
    pub(super) unsafe fn lower_for_collect(&self) -> Option<T> {
        let handed = self.lower(BASE | SLOTS | HANDED) & HANDED != 0;
        // SAFETY: `HANDED` was raised, so that there is a message in the hand. No sender writes
        // the next one, because the caller holds the base lock.
        handed.then(|| unsafe { self.hand.take() })
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
