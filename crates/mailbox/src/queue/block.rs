//! Messages in blocks: a chain of arrays, filled at one end and emptied at the other.
//!
//! A chain has one owner at a time (the holder of a lane's lock, or the receiver), so nothing here
//! is atomic. Handing over a whole chain, or linking one behind another, writes a few pointers,
//! however many messages it holds.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr;

/// The size, in bytes of messages, of the first block of a lane that has gathered few.
const FIRST_BYTES: usize = 512;
/// The size of the largest block, including its head: so large that a burst costs one allocation in
/// thousands of messages, and so small that the unused rest of the last block hardly counts. A
/// power of two, to fit an allocator's size classes; and small enough that allocators keep freed
/// blocks for the next allocation, instead of returning each to the system to be cleared anew.
const LARGEST_BYTES: usize = 32 * 1024;
/// The least number of messages in a block, however large they are.
#[cfg(not(any(loom, shuttle)))]
const FEWEST: u32 = 4;
#[cfg(any(loom, shuttle))]
const FEWEST: u32 = 1;

/// The head of a block; the messages follow it.
#[repr(C)]
struct Block<T> {
    next: *mut Self,
    /// Messages that fit.
    capacity: u32,
    /// Messages written since the block was made or last reused. At most `capacity`.
    written: u32,
    /// Messages taken out. At most `written`; those from `read` to `written` are alive.
    read: u32,
    messages: PhantomData<T>,
}

impl<T> Block<T> {
    const SMALLEST: u32 = clamp(FIRST_BYTES / size_or_one::<T>(), FEWEST);
    const LARGEST: u32 = clamp(
        LARGEST_BYTES.saturating_sub(Self::OFFSET) / size_or_one::<T>(),
        Self::SMALLEST,
    );

    /// The layout of a block for `capacity` messages, and the offset of the messages.
    fn layout(capacity: u32) -> (Layout, usize) {
        Layout::array::<T>(capacity as usize)
            .and_then(|messages| Layout::new::<Self>().extend(messages))
            .unwrap_or_else(|_| panic!("{capacity} messages are more than memory can hold"))
    }

    /// Where the messages begin.
    const OFFSET: usize = {
        let (head, align) = (size_of::<Self>(), align_of::<T>());
        head.div_ceil(align) * align
    };

    fn allocate(capacity: u32) -> *mut Self {
        let (layout, offset) = Self::layout(capacity);
        debug_assert_eq!(offset, Self::OFFSET);
        // SAFETY: the layout has at least the size of the head.
        let block = unsafe { alloc(layout) }.cast::<Self>();
        if block.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: fresh memory, large enough and aligned for the head.
        unsafe {
            block.write(Self {
                next: ptr::null_mut(),
                capacity,
                written: 0,
                read: 0,
                messages: PhantomData,
            });
        }
        block
    }

    /// # Safety
    ///
    /// The block came from `allocate`, holds no message, and is not used again.
    unsafe fn free(block: *mut Self) {
        // SAFETY: passed on to the caller; the layout is that of the allocation.
        unsafe { dealloc(block.cast(), Self::layout((*block).capacity).0) };
    }

    /// # Safety
    ///
    /// The block is alive and `index` is below its capacity.
    #[inline]
    unsafe fn message(block: *mut Self, index: u32) -> *mut T {
        // SAFETY: the messages begin at this offset of the allocation.
        unsafe { block.byte_add(Self::OFFSET).cast::<T>().add(index as usize) }
    }
}

const fn size_or_one<T>() -> usize {
    if size_of::<T>() == 0 {
        1
    } else {
        size_of::<T>()
    }
}

/// `count`, but at least `fewest`. Exactly `fewest` under a checker, so that small models reach the
/// ends of blocks.
const fn clamp(count: usize, fewest: u32) -> u32 {
    if cfg!(any(loom, shuttle)) || count < fewest as usize {
        fewest
    } else {
        count as u32
    }
}

/// A first in, first out queue of messages in blocks.
pub(crate) struct Chain<T> {
    /// The block to take messages from, or null in an empty chain.
    head: *mut Block<T>,
    /// The block to write to, the last of the list that begins at `head`.
    tail: *mut Block<T>,
}

// SAFETY: a chain owns its blocks and their messages.
unsafe impl<T: Send> Send for Chain<T> {}

impl<T> Chain<T> {
    pub(crate) const fn new() -> Self {
        Self {
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
        }
    }

    /// Whether there is no block. A chain from which messages were taken may hold an empty block,
    /// and return `false`, until `pop` has returned `None`.
    #[inline]
    pub(crate) const fn has_no_block(&self) -> bool {
        self.head.is_null()
    }

    /// Moves the message at `message` to the end of the chain.
    ///
    /// # Safety
    ///
    /// `message` is valid to read, and the caller does not use or drop it any more.
    #[inline]
    pub(crate) unsafe fn push(&mut self, message: *const T, supply: &mut Supply<T>) {
        // SAFETY: the tail, if any, is alive and only this chain's; the index is below its capacity
        // when it is written; the caller gives the message away.
        unsafe {
            if self.tail.is_null() || (*self.tail).written == (*self.tail).capacity {
                self.extend(supply);
            }
            let index = (*self.tail).written;
            #[cfg(sim)]
            tremula_sync::sim::touch(Block::message(self.tail, index), size_of::<T>(), true);
            ptr::copy_nonoverlapping(message, Block::message(self.tail, index), 1);
            (*self.tail).written = index + 1;
        }
    }

    #[cold]
    fn extend(&mut self, supply: &mut Supply<T>) {
        let block = supply.take();
        self.link(block, block);
    }

    fn link(&mut self, first: *mut Block<T>, last: *mut Block<T>) {
        if self.tail.is_null() {
            self.head = first;
        } else {
            // SAFETY: the tail is alive and only this chain's.
            unsafe { (*self.tail).next = first };
        }
        self.tail = last;
    }

    /// Links another chain behind this one.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if !other.head.is_null() {
            self.link(other.head, other.tail);
            (other.head, other.tail) = (ptr::null_mut(), ptr::null_mut());
        }
    }

    /// Takes the first message. Blocks that become empty go to `spares`.
    #[inline]
    pub(crate) fn pop(&mut self, spares: &mut Spares<T>) -> Option<T> {
        // SAFETY: the blocks are alive and only this chain's. Messages from `read` to `written` are
        // alive, and each is read once, because `read` moves on before it is returned.
        unsafe {
            while !self.head.is_null() {
                let index = (*self.head).read;
                if index < (*self.head).written {
                    (*self.head).read = index + 1;
                    #[cfg(sim)]
                    let (from, bytes) = (Block::message(self.head, index), size_of::<T>());
                    #[cfg(sim)]
                    tremula_sync::sim::touch(from, bytes, false);
                    return Some(Block::message(self.head, index).read());
                }
                self.drop_head(spares);
            }
        }
        None
    }

    /// Moves up to `limit` messages to the end of `into`; returns how many.
    pub(crate) fn pop_many(
        &mut self,
        into: &mut Vec<T>,
        limit: usize,
        spares: &mut Spares<T>,
    ) -> usize {
        let mut moved = 0;
        while moved < limit && !self.head.is_null() {
            // SAFETY: as in `pop`, for a run of messages; the vector has reserved space for them,
            // and its length counts them only after they are copied.
            unsafe {
                let (read, written) = ((*self.head).read, (*self.head).written);
                let count = ((written - read) as usize).min(limit - moved);
                into.reserve(count);
                let from = Block::message(self.head, read);
                #[cfg(sim)]
                tremula_sync::sim::touch(from, count * size_of::<T>(), false);
                ptr::copy_nonoverlapping(from, into.as_mut_ptr().add(into.len()), count);
                (*self.head).read = read + count as u32;
                into.set_len(into.len() + count);
                moved += count;
                if (*self.head).read == written {
                    self.drop_head(spares);
                }
            }
        }
        moved
    }

    /// Unlinks the empty first block.
    ///
    /// # Safety
    ///
    /// There is a first block, and all its messages have been taken.
    #[cold]
    unsafe fn drop_head(&mut self, spares: &mut Spares<T>) {
        let block = self.head;
        // SAFETY: the block is alive and only this chain's.
        self.head = unsafe { (*block).next };
        if self.head.is_null() {
            self.tail = ptr::null_mut();
        }
        // SAFETY: it holds no message, and the chain has unlinked it.
        unsafe { spares.give(block) };
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        /// Continues when dropping a message panics, so that the others are dropped too.
        struct Rest<'a, T>(&'a mut Chain<T>);
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                let mut spares = Spares::none();
                while let Some(message) = self.0.pop(&mut spares) {
                    drop(message);
                }
            }
        }
        let rest = Rest(self);
        let mut spares = Spares::none();
        while let Some(message) = rest.0.pop(&mut spares) {
            drop(message);
        }
    }
}

/// The source of blocks for a lane: blocks that the receiver has emptied, or new memory.
pub(crate) struct Supply<T> {
    /// A list of empty blocks by `next`, or null.
    spare: *mut Block<T>,
    /// The capacity of the next new block: the number of messages that the receiver last found
    /// here; within one burst, twice that of the last block.
    capacity: u32,
    /// The capacity of all the empty blocks together.
    room: u32,
}

// SAFETY: it owns empty blocks.
unsafe impl<T: Send> Send for Supply<T> {}

impl<T> Supply<T> {
    pub(crate) const fn new() -> Self {
        Self {
            spare: ptr::null_mut(),
            capacity: 0,
            room: 0,
        }
    }

    fn take(&mut self) -> *mut Block<T> {
        if let Some(block) = self.take_spare() {
            return block;
        }
        let capacity = self
            .capacity
            .clamp(Block::<T>::SMALLEST, Block::<T>::LARGEST);
        self.capacity = capacity.saturating_mul(2);
        Block::allocate(capacity)
    }

    fn take_spare(&mut self) -> Option<*mut Block<T>> {
        let block = self.spare;
        // SAFETY: the blocks of the list are alive and only this supply's.
        unsafe {
            self.spare = block.as_ref()?.next;
            (*block).next = ptr::null_mut();
            self.room -= (*block).capacity;
        }
        Some(block)
    }

    /// Notes how many messages the lane has gathered, and takes empty blocks for that number.
    ///
    /// A lane allocates the blocks that it does not get here, and the receiver frees them: that
    /// memory goes from thread to thread through the allocator, and may come back as pages to be
    /// cleared.
    pub(crate) fn replenish(&mut self, gathered: u32, spares: &mut Spares<T>) {
        self.capacity = gathered;
        while self.room < gathered {
            let block = spares.take();
            if block.is_null() {
                break;
            }
            // SAFETY: the block is alive and has no other owner.
            unsafe {
                (*block).next = self.spare;
                self.room += (*block).capacity;
            }
            self.spare = block;
        }
    }
}

impl<T> Drop for Supply<T> {
    fn drop(&mut self) {
        while let Some(block) = self.take_spare() {
            // SAFETY: the block is empty and only this supply's.
            unsafe { Block::free(block) };
        }
    }
}

/// Blocks that the receiver has emptied and that lanes may fill again.
pub(crate) struct Spares<T> {
    /// A list by `next`, or null.
    first: *mut Block<T>,
    count: u32,
    /// The most blocks that are kept.
    limit: u32,
}

// SAFETY: it owns empty blocks.
unsafe impl<T: Send> Send for Spares<T> {}

impl<T> Spares<T> {
    /// Keeps some blocks: one each for many lanes that fill at the same time.
    pub(crate) const fn some() -> Self {
        Self {
            first: ptr::null_mut(),
            count: 0,
            limit: 32,
        }
    }

    /// Keeps none: blocks given to it are freed.
    pub(crate) const fn none() -> Self {
        Self {
            first: ptr::null_mut(),
            count: 0,
            limit: 0,
        }
    }

    /// # Safety
    ///
    /// The block is alive, holds no message, and has no owner.
    unsafe fn give(&mut self, block: *mut Block<T>) {
        // SAFETY: passed on to the caller.
        unsafe {
            if self.count == self.limit {
                Block::free(block);
                return;
            }
            ((*block).written, (*block).read) = (0, 0);
            (*block).next = self.first;
        }
        self.first = block;
        self.count += 1;
    }

    fn take(&mut self) -> *mut Block<T> {
        let block = self.first;
        if !block.is_null() {
            // SAFETY: the blocks of the list are alive and only this list's.
            unsafe {
                self.first = (*block).next;
                (*block).next = ptr::null_mut();
            }
            self.count -= 1;
        }
        block
    }

    pub(crate) fn free(&mut self) {
        loop {
            let block = self.take();
            if block.is_null() {
                return;
            }
            // SAFETY: the block is empty, and the list has unlinked it.
            unsafe { Block::free(block) };
        }
    }
}

impl<T> Drop for Spares<T> {
    fn drop(&mut self) {
        self.free();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::mem::ManuallyDrop;
    use std::sync::Arc;

    fn push<T>(chain: &mut Chain<T>, supply: &mut Supply<T>, message: T) {
        let message = ManuallyDrop::new(message);
        // SAFETY: the message is not used again.
        unsafe { chain.push(&raw const *message, supply) };
    }

    #[test]
    fn messages_come_out_in_the_order_they_went_in() {
        let (mut chain, mut supply) = (Chain::new(), Supply::new());
        let mut spares = Spares::some();
        let mut next = 0;
        for burst in [1_u64, 3, 1000, 2, 100_000] {
            for message in 0..burst {
                push(&mut chain, &mut supply, message);
            }
            for message in 0..burst {
                assert_eq!(chain.pop(&mut spares), Some(message));
                next += 1;
            }
            assert_eq!(chain.pop(&mut spares), None);
            supply.replenish(burst as u32, &mut spares);
        }
        assert_eq!(next, 101_006);
    }

    #[test]
    fn a_chain_behind_another_keeps_both_orders() {
        let mut spares = Spares::none();
        let (mut one, mut two) = (Chain::new(), Chain::new());
        let mut supply = Supply::new();
        one.append(&mut two);
        for message in 0..100 {
            push(&mut one, &mut supply, message);
            push(&mut two, &mut supply, message + 100);
        }
        one.append(&mut two);
        assert!(two.has_no_block());
        push(&mut one, &mut supply, 200);
        let mut all = Vec::new();
        assert_eq!(one.pop_many(&mut all, 50, &mut spares), 50);
        assert_eq!(one.pop_many(&mut all, 1000, &mut spares), 151);
        assert_eq!(all, (0..=200).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_not_taken_is_dropped_once() {
        let witness = Arc::new(());
        let (mut chain, mut supply) = (Chain::new(), Supply::new());
        for _ in 0..1000 {
            push(&mut chain, &mut supply, Arc::clone(&witness));
        }
        let mut spares = Spares::some();
        for _ in 0..300 {
            chain.pop(&mut spares);
        }
        assert_eq!(Arc::strong_count(&witness), 701);
        drop(chain);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn a_panic_in_a_drop_does_not_lose_the_others() {
        struct Fragile(
            bool,
            #[expect(dead_code, reason = "counted from outside")] Arc<()>,
        );
        impl Drop for Fragile {
            fn drop(&mut self) {
                assert!(!self.0, "as arranged");
            }
        }
        let witness = Arc::new(());
        let (mut chain, mut supply) = (Chain::new(), Supply::new());
        for number in 0..100 {
            let message = Fragile(number == 30, Arc::clone(&witness));
            push(&mut chain, &mut supply, message);
        }
        let dropping = std::panic::AssertUnwindSafe(move || drop(chain));
        assert!(std::panic::catch_unwind(dropping).is_err());
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn messages_may_have_no_size_or_a_large_one_or_a_wide_alignment() {
        #[repr(align(128))]
        #[derive(Debug, PartialEq)]
        struct Wide(u8);
        fn round<T: PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> T) {
            let (mut chain, mut supply) = (Chain::new(), Supply::new());
            (0..1000).for_each(|number| push(&mut chain, &mut supply, make(number)));
            let mut spares = Spares::some();
            for number in 0..1000 {
                assert_eq!(chain.pop(&mut spares), Some(make(number)));
            }
            assert_eq!(chain.pop(&mut spares), None);
        }
        round(|_| ());
        round(|number| [number as u64; 100]);
        round(|number| Box::new([number as u8; 20_000]));
        round(|number| Wide(number as u8));
    }
}
