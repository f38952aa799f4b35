//! The queue of a mailbox: many senders, one receiver, and a grain that adapts to contention.
//!
//! Sources: the parallel signal sending optimisation of Erlang/OTP 25 (the base queue, the array of
//! slots, when it is installed and removed); Bagwell, "Ideal hash trees", 2001 (slots that grow
//! arrays by another part of the hash). New here are their combination, and locks that outlive what
//! they guard.
//!
//! # The picture
//!
//! ```text
//!  senders                                                        receiver
//!
//!  alone, and the receiver looks ----------------------- hand --> given out
//!
//!  uncontended ---> base lock [ ring | chain ] ----- collect ---> inbox [ urgent | front | taken ]
//!                                                       ^
//!  contended -----> stripe  0 [ slot  0 ] --- flush ----'
//!                   stripe  1 [ slot  1 ] --- flush ----'
//!                   stripe .. [ slot 63 ] grown --> [ slot | slot | .. ] --- flush ---'
//! ```
//!
//! # How it adapts
//!
//! A send tries the base lock. A send that has to wait adds to a counter, any other subtracts one;
//! above `install_above` the sender installs the array. From then on a sender uses the slot that
//! its number selects, under that slot's lock alone. A slot that is itself contended grows an
//! array, over whose slots another hash spreads the senders. If `window` flushes of an array
//! brought fewer than `fewest` messages each on average, it is removed, and its senders go up one
//! level again, finally to the base queue. A receiver that finds a few messages each time it looks
//! waits a little before it collects. A receiver that goes to sleep for long removes the array and
//! frees all memory kept for further messages. A receiver that looks again and again, and finds
//! messages one by one, lets senders put a small message into the [hand].
//!
//! # Invariants
//!
//! 1. *Only the holder of the base lock* installs and removes the array, removes the arrays below
//!    slots, flushes, and collects. Slots grow arrays under their own stripe.
//! 2. *While the array is installed, no thread appends to the base queue*, except a holder of the
//!    base lock that has first flushed all slots.
//! 3. *While a slot has grown an array, no thread appends to the slot's own lane.*
//! 4. *A collect takes the ring, then the chain, then the slots, each slot before the slots below
//!    it, without releasing the base lock in between.*
//! 5. *Only a thread that holds the base lock or a stripe*, and has read the array's pointer after
//!    taking it, uses an array. The holder of the base lock frees it, after it has cleared the
//!    pointer and passed all stripes.
//! 6. *Before a send returns, its message can be seen*: the sender raises the bits from its slot's
//!    up to the signal before it releases the slot's lock. A flush lowers them from the signal
//!    down, before it looks.
//! 7. *The [hand] holds the oldest message of the queue, or none.* A thread fills it only if it
//!    holds the base lock, there are no slots, and the base queue and the hand are empty. The
//!    receiver takes it without a lock when its inbox is empty, or in a collect, before the ring.
//!
//! # Why the order of each sender holds
//!
//! A sender's messages lie in the hand, in the base queue, in a slot, or in a slot below it. By 7 a
//! message in the hand is received before all others of the list. By 2 and 3 the sender goes down
//! the rest of the list only when an array is installed or grown, and by 4 the messages further up
//! are collected first. It goes up only when an array is removed. This happens under the base lock
//! (1), which a sender must take for the base queue and for the hand; when it gets the lock, all
//! messages of the array are on their way to the receiver. A sender that goes up to a slot instead
//! may append there before the removed array has been drained; but only the next flush looks at
//! that slot, and the current flush ends first.
//!
//! # Why memory is not used after it is freed
//!
//! By 5: a thread that holds a stripe and has found the pointer found it before it was cleared, so
//! that stripe is passed only after the thread has released it. A thread that takes a stripe after
//! it was passed finds the pointer cleared.
//!
//! # Why no wake-up is lost
//!
//! See [`Signals`]. A message in the hand has a bit of its own there. Invariant 6 ensures that no
//! other message is hidden below a bit that is already raised.

mod base;
mod block;
mod contention;
mod hand;
mod inbox;
mod signals;
mod slots;
mod stripes;

pub(crate) use inbox::Inbox;
pub(crate) use signals::{BASE, DISCONNECTED, HANDED, SLOTS, Signals, URGENT};

use crate::{Limits, Stats};
use base::Base;
use block::{Chain, Spares};
use slots::{Array, DEEPEST, Lane, Route, Slot, Taken, code_below};
use std::mem::ManuallyDrop;
use std::ptr;
use stripes::Stripes;
use tremula_sync::ShortLock;
use tremula_sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// A queue without its handles: it neither counts senders nor waits.
#[repr(C)]
pub(crate) struct Queue<T> {
    base: ShortLock<Base<T>>,
    read_mostly: ReadMostly<T>,
}

/// The fields that senders read on each send. They lie after the base queue, which is two cache
/// lines long.
struct ReadMostly<T> {
    /// The array of slots, or null.
    array: AtomicPtr<Array<T>>,
    limits: Limits,
    growths: AtomicU32,
    next_sender: AtomicU32,
    stripes: Stripes,
}

/// The queue's data for one sender.
pub(crate) struct SenderLane {
    route: Route,
    /// The depth of this sender's slot at its last send. A guess, which is checked under the lock.
    depth: AtomicU32,
}

impl SenderLane {
    pub(crate) fn of(sender: u32) -> Self {
        Self {
            route: Route::of(sender),
            depth: AtomicU32::new(0),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a message that was not sent is still the caller's, and the receiver may sleep"]
pub(crate) enum Sent {
    /// The message is on its way.
    Quietly,
    /// The message is on its way, and the caller must wake the receiver.
    AndMustWake,
    /// The mailbox is closed. The message is still the caller's.
    Closed,
}

impl Sent {
    fn and_must_wake(must: bool) -> Self {
        if must {
            Self::AndMustWake
        } else {
            Self::Quietly
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            base: ShortLock::new(Base::new()),
            read_mostly: ReadMostly {
                array: AtomicPtr::new(ptr::null_mut()),
                limits,
                growths: AtomicU32::new(0),
                next_sender: AtomicU32::new(1),
                stripes: Stripes::new(),
            },
        }
    }

    /// A number for one more sender, which selects its slot. The first sender has number 0.
    pub(crate) fn number_for_sender(&self) -> u32 {
        // Relaxed: a number, which orders nothing.
        self.read_mostly.next_sender.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether senders are spread over slots.
    pub(crate) fn is_contended(&self) -> bool {
        // Relaxed: true at some moment; nothing else depends on it.
        !self.read_mostly.array.load(Ordering::Relaxed).is_null()
    }

    /// The array, for a thread that holds the base lock or a stripe, as long as it holds it.
    #[inline]
    fn array(&self) -> Option<&Array<T>> {
        // Acquire: pairs with the Release store in `install`, which publishes the array.
        // SAFETY: invariant 5.
        unsafe { self.read_mostly.array.load(Ordering::Acquire).as_ref() }
    }

    /// Sends the message at `message`.
    ///
    /// # Safety
    ///
    /// `message` is valid to read. Unless this returns [`Sent::Closed`], the caller does not use or
    /// drop it any more.
    #[inline]
    pub(crate) unsafe fn send(
        &self,
        signals: &Signals<T>,
        sender: &SenderLane,
        message: *const T,
    ) -> Sent {
        loop {
            if self.is_contended() {
                // SAFETY: passed on to the caller.
                if let Some(sent) = unsafe { self.send_to_slot(signals, sender, message) } {
                    return sent;
                }
            }
            // SAFETY: passed on to the caller.
            if let Some(sent) = unsafe { self.send_to_base(signals, message) } {
                return sent;
            }
        }
    }

    /// Appends to the base queue; `None` if there are slots to use instead.
    ///
    /// # Safety
    ///
    /// As for [`send`](Self::send).
    #[inline]
    unsafe fn send_to_base(&self, signals: &Signals<T>, message: *const T) -> Option<Sent> {
        // When one of the senders that wait installs the slots, the others go there at once.
        let (mut base, wait) = self.base.lock_noting_unless(|| self.is_contended())?;
        if base.closed {
            return Some(Sent::Closed);
        }
        if self.is_contended() {
            return None; // invariant 2
        }
        let limits = &self.read_mostly.limits;
        let contended = base.note(wait, limits);
        let in_place = limits.has_ring() && wait.is_none();
        if in_place && base.is_empty() && !contended {
            // SAFETY: passed on to the caller; the base lock is held.
            if let Some(must_wake) = unsafe { signals.try_hand(message) } {
                return Some(Sent::and_must_wake(must_wake));
            }
        }
        // SAFETY: passed on to the caller.
        let announce = unsafe { base.push(message, in_place) };
        if contended {
            self.install(&mut base);
        }
        // Raised under the lock, so that no later send of another sender goes unnoticed before
        // this.
        Some(Sent::and_must_wake(announce && signals.raise(BASE)))
    }

    #[cold]
    fn install(&self, base: &mut Base<T>) {
        base.installs += 1;
        let array = Box::into_raw(Array::with_slots(self.read_mostly.limits.slots.into()));
        // Release: pairs with the load in `array`.
        self.read_mostly.array.store(array, Ordering::Release);
    }

    /// Appends to the slot of this sender; `None` if the array has been removed.
    ///
    /// # Safety
    ///
    /// As for [`send`](Self::send).
    #[inline]
    unsafe fn send_to_slot(
        &self,
        signals: &Signals<T>,
        sender: &SenderLane,
        message: *const T,
    ) -> Option<Sent> {
        // Relaxed: a guess.
        let mut depth = sender.depth.load(Ordering::Relaxed);
        loop {
            let code = self.code(sender.route, depth);
            let (_stripe, wait) = self.read_mostly.stripes.lock_noting(code);
            let path = Path::find(self.array()?, sender.route);
            if path.depth != depth as usize {
                depth = path.depth as u32;
                sender.depth.store(depth, Ordering::Relaxed);
                continue;
            }
            let limits = &self.read_mostly.limits;
            let work = |lane: &mut Lane<T>| {
                let grow = lane.note(wait, limits);
                // SAFETY: passed on to the caller.
                (grow, unsafe { lane.push(message) })
            };
            // SAFETY: the code of the slot's place selected the stripe.
            let (grow, announce) = unsafe { path.slot().with_lane(work) };
            if grow {
                self.grow(&path);
            }
            return Some(Sent::and_must_wake(announce && path.announce(signals)));
        }
    }

    /// The number of the slot to which a route leads at this depth.
    #[inline]
    fn code(&self, route: Route, depth: u32) -> u32 {
        let first = route.first(self.read_mostly.limits.slots.into()) as u32;
        (1..=depth as usize).fold(first, |code, depth| code_below(code, route.below(depth)))
    }

    /// Lets the slot at the end of the path grow an array. Its stripe is held.
    #[cold]
    fn grow(&self, path: &Path<'_, T>) {
        if path.depth < DEEPEST {
            path.slot().grow();
            self.read_mostly.growths.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Moves all messages that have been sent to the receiver. Returns how many, or a few less.
    pub(crate) fn collect(&self, signals: &Signals<T>, inbox: &mut Inbox<T>) -> u32 {
        let mut base = self.base.lock();
        self.begin_collecting(&mut base, signals);
        let mut count = base.hand_over(inbox);
        if let Some(array) = self.array() {
            let taken = self.flush(array, &mut base, &mut inbox.taken, &mut inbox.spares);
            count = count.saturating_add(taken.messages);
            let limits = &self.read_mostly.limits;
            if array.judge(taken.messages, limits.window, limits.fewest) {
                self.remove(&mut base, &mut inbox.taken);
            }
        }
        count
    }

    /// Lowers the signals, before anything is read (invariant 6), and puts a message from the hand
    /// before all others (invariant 7). The caller is the receiver, and holds the base lock.
    fn begin_collecting(&self, base: &mut Base<T>, signals: &Signals<T>) {
        // SAFETY: only the receiver collects, and `base` shows that the base lock is held.
        if let Some(message) = unsafe { signals.lower_for_collect() } {
            base.put_first(message);
        }
    }

    /// Sends a message behind every message whose sending has ended, by any sender.
    pub(crate) fn send_behind_all(&self, signals: &Signals<T>, message: T) -> Result<bool, T> {
        let mut base = self.base.lock();
        if base.closed {
            return Err(message);
        }
        if let Some(array) = self.array() {
            // Through a chain of its own, because the flush counts in the base.
            let mut chain = Chain::new();
            self.flush(array, &mut base, &mut chain, &mut Spares::none());
            base.chain().append(&mut chain); // invariant 2
        }
        base.uncontended += 1;
        let message = ManuallyDrop::new(message);
        // SAFETY: the message is not used again.
        let announce = unsafe { base.push(&raw const *message, false) };
        Ok(announce && signals.raise(BASE))
    }

    /// Moves the messages in the slots of the array to the end of `into`. The caller holds the base
    /// lock.
    fn flush(
        &self,
        array: &Array<T>,
        base: &mut Base<T>,
        into: &mut Chain<T>,
        spares: &mut Spares<T>,
    ) -> Taken {
        let taken = self.flush_slots(array, None, base, into, spares);
        base.flushes += 1;
        base.flushed += u64::from(taken.messages);
        base.contended += u64::from(taken.waited);
        base.uncontended += u64::from(taken.messages - taken.waited);
        taken
    }

    /// Flushes an array: the first if there is no `parent`, otherwise the one below that slot.
    fn flush_slots(
        &self,
        array: &Array<T>,
        parent: Option<u32>,
        base: &mut Base<T>,
        into: &mut Chain<T>,
        spares: &mut Spares<T>,
    ) -> Taken {
        let mut all = Taken::default();
        for place in array.take_marks() {
            let slot = &array.slots[place];
            let code = parent.map_or(place as u32, |parent| code_below(parent, place));
            let (stripe, _) = self.read_mostly.stripes.lock_noting(code);
            // SAFETY: the code of the slot's place selected the stripe.
            let own = unsafe { slot.with_lane(|lane| lane.take(into, Some(&mut *spares))) };
            // Read under the stripe: an array that is grown later may hold messages that come after
            // some that the lane has received since.
            let children = slot.children();
            drop(stripe);
            all = all.and(own);
            // Only the holder of the base lock, this thread, removes it.
            if let Some(children) = children {
                let below = self.flush_slots(children, Some(code), base, into, spares);
                all = all.and(below);
                let limits = &self.read_mostly.limits;
                if children.judge(below.messages, limits.window, limits.fewest) {
                    all = all.and(self.shrink(slot, base, into));
                }
            }
        }
        all
    }

    /// Removes the array below a slot. The caller holds the base lock.
    #[cold]
    fn shrink(&self, slot: &Slot<T>, base: &mut Base<T>, into: &mut Chain<T>) -> Taken {
        base.shrinks += 1;
        // SAFETY: there is one, because no other thread removes it.
        unsafe { self.drain_when_unused(slot.unlink_children(), into) }
    }

    /// Removes the array, if there is one. The caller holds the base lock.
    #[cold]
    fn remove(&self, base: &mut Base<T>, into: &mut Chain<T>) {
        // Relaxed: senders read the pointer again under a stripe or the base lock, which order it.
        let array = self
            .read_mostly
            .array
            .swap(ptr::null_mut(), Ordering::Relaxed);
        if array.is_null() {
            return;
        }
        base.removals += 1;
        // SAFETY: it came from a box, and this thread, the only one that may, has just unlinked it.
        let taken = unsafe { self.drain_when_unused(array, into) };
        base.flushed += u64::from(taken.messages);
        base.contended += u64::from(taken.waited);
        base.uncontended += u64::from(taken.messages - taken.waited);
    }

    /// Waits until no thread uses an array any more, empties it and frees it.
    ///
    /// # Safety
    ///
    /// The array came from a box and has been unlinked by the caller, which holds the base lock.
    unsafe fn drain_when_unused(&self, array: *mut Array<T>, into: &mut Chain<T>) -> Taken {
        self.read_mostly.stripes.pass(); // invariant 5
        // SAFETY: no other thread has it, or can reach it, any more.
        unsafe { Box::from_raw(array) }.drain(into)
    }

    /// Collects, and frees all memory kept for further messages. Returns whether there was nothing
    /// new, so that the receiver may sleep.
    pub(crate) fn collect_and_free(&self, signals: &Signals<T>, inbox: &mut Inbox<T>) -> bool {
        let mut base = self.base.lock();
        self.begin_collecting(&mut base, signals);
        // Messages that a selective receive has kept stay in front, and are not new.
        let kept = inbox.front.len();
        base.hand_over(inbox);
        self.remove(&mut base, &mut inbox.taken);
        let nothing_new = inbox.taken.has_no_block() && inbox.front.len() == kept;
        if nothing_new {
            base.free_memory();
            inbox.free_memory();
        }
        nothing_new
    }

    /// Closes the queue to further messages, and moves all messages to the receiver.
    pub(crate) fn close(&self, signals: &Signals<T>, inbox: &mut Inbox<T>) {
        let mut base = self.base.lock();
        self.begin_collecting(&mut base, signals);
        base.closed = true;
        base.hand_over(inbox);
        self.remove(&mut base, &mut inbox.taken);
        base.free_memory();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.base.lock().closed
    }

    /// Runs `work` unless the mailbox is down, and passes whether it is closed. The mailbox is not
    /// closed and does not go down meanwhile.
    pub(crate) fn unless_down<R>(&self, work: impl FnOnce(bool) -> R) -> Option<R> {
        let base = self.base.lock();
        (!base.down).then(|| work(base.closed))
    }

    /// Makes [`unless_down`](Self::unless_down) run nothing from now on.
    pub(crate) fn go_down(&self) {
        self.base.lock().down = true;
    }

    pub(crate) fn stats(&self) -> Stats {
        let base = self.base.lock();
        let waiting = self
            .array()
            .map_or_else(Taken::default, |array| self.waiting(array, None));
        Stats {
            contended_sends: base.contended + u64::from(waiting.waited),
            uncontended_sends: base.uncontended + u64::from(waiting.messages - waiting.waited),
            installs: base.installs,
            removals: base.removals,
            growths: self.read_mostly.growths.load(Ordering::Relaxed),
            shrinks: base.shrinks,
            flushes: base.flushes,
            flushed: base.flushed,
        }
    }

    /// The messages in the slots. The caller holds the base lock.
    fn waiting(&self, array: &Array<T>, parent: Option<u32>) -> Taken {
        let mut all = Taken::default();
        for (place, slot) in array.slots.iter().enumerate() {
            let code = parent.map_or(place as u32, |parent| code_below(parent, place));
            let (stripe, _) = self.read_mostly.stripes.lock_noting(code);
            // SAFETY: the code of the slot's place selected the stripe.
            all = all.and(unsafe { slot.with_lane(|lane| lane.waiting()) });
            drop(stripe);
            if let Some(children) = slot.children() {
                all = all.and(self.waiting(children, Some(code)));
            }
        }
        all
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        // Relaxed: no other thread is left.
        let array = self.read_mostly.array.load(Ordering::Relaxed);
        if !array.is_null() {
            // SAFETY: it came from a box, and no other thread is left.
            drop(unsafe { Box::from_raw(array) });
        }
    }
}

/// The arrays along a route, down to the slot that accepts messages.
struct Path<'a, T> {
    arrays: [Option<&'a Array<T>>; DEEPEST + 1],
    places: [usize; DEEPEST + 1],
    depth: usize,
}

impl<'a, T> Path<'a, T> {
    /// Follows a route. The caller holds a stripe while it uses the path.
    #[inline]
    fn find(array: &'a Array<T>, route: Route) -> Self {
        let mut path = Self {
            arrays: [None; DEEPEST + 1],
            places: [0; DEEPEST + 1],
            depth: 0,
        };
        let (mut array, mut place) = (array, route.first(array.slots.len()));
        loop {
            path.arrays[path.depth] = Some(array);
            path.places[path.depth] = place;
            match array.slots[place].children() {
                Some(children) => array = children,
                None => return path,
            }
            path.depth += 1;
            place = route.below(path.depth);
        }
    }

    #[inline]
    fn slot(&self) -> &'a Slot<T> {
        let array = self.arrays[self.depth].expect("a path has an array at each depth");
        &array.slots[self.places[self.depth]]
    }

    /// Raises the bits from the slot's up to the signal. Returns whether the caller must wake the
    /// receiver.
    fn announce(&self, signals: &Signals<T>) -> bool {
        for depth in (0..=self.depth).rev() {
            let array = self.arrays[depth].expect("a path has an array at each depth");
            array.mark(self.places[depth]);
        }
        signals.raise_if_lowered(SLOTS)
    }
}
