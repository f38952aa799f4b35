//! Leaves of either form.

use super::{Aim, Entry, Header, LeafKey, LeafRef, NewKey, NodeRef, SearchResult, TextNode};
use crate::b_tree::layout::Plan;
use crate::b_tree::text::{Assembled, Full, Heap, Run, TextLeaf};
use crate::kit::{
    PackedValue, Retire, SearchKey, Sought, Spec, StoredKey, ValueSlot, close, open, prefetch,
};
use std::ptr::NonNull;
use tremula_sync::Restart;
use tremula_sync::atomic::Ordering;

/// Calls `read` with the bytes of a key, of a type whose leaves are leaves of text.
#[inline(always)]
fn with_bytes<S: Spec, R>(probe: &SearchKey<'_, S>, read: impl FnOnce(&[u8]) -> R) -> R {
    match probe.key {
        Sought::Key(key) => read(bytes_of::<S>(key)),
        Sought::Form(form) => {
            let (mut read, mut result) = (Some(read), None);
            form.read_bytes(&mut |bytes| result = read.take().map(|read| read(bytes)));
            result.unwrap_or_else(|| unreachable!("an engine is given forms that it can look for"))
        }
    }
}

/// The bytes of a key, of a type whose leaves are leaves of text.
#[inline(always)]
fn bytes_of<S: Spec>(key: &S::Key) -> &[u8] {
    use crate::key::KeyHead;
    match const { S::Head::PLAIN_BYTES } {
        Some(plain) => plain.of(key),
        None => unreachable!("a key that is read back from its bytes consists of them"),
    }
}

impl<'g, S: Spec> LeafRef<'g, S> {
    /// Makes an empty leaf.
    pub(in crate::b_tree) fn new(heap: Heap) -> Self {
        Self(NodeRef::allocate(0, heap))
    }

    /// Makes an empty leaf for the same tree.
    pub(in crate::b_tree) fn new_beside<'n>(self) -> LeafRef<'n, S> {
        LeafRef::new(if S::is_text() {
            self.text().heap()
        } else {
            Heap::NONE
        })
    }

    /// # Safety
    ///
    /// As for [`NodeRef::from_raw`]; and the node is a leaf.
    #[inline]
    pub(in crate::b_tree) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { NodeRef::from_raw(header) })
    }

    #[inline]
    pub(in crate::b_tree) fn node(self) -> NodeRef<'g, S> {
        self.0
    }

    /// The leaf as one of text, if it is one.
    #[inline]
    pub(in crate::b_tree) fn text(self) -> &'g TextLeaf {
        debug_assert!(S::is_text());
        // SAFETY: `allocate` has made a leaf of text, which lives as long as the node, and has
        // interior mutability.
        unsafe { &(*self.0.as_ptr().cast::<TextNode>()).text }
    }

    #[inline]
    fn values(self) -> &'g [ValueSlot<S>] {
        let plan = const { &Plan::of::<S>() };
        // SAFETY: `allocate` wrote this array, because this is a leaf, and not one of text.
        unsafe { self.0.array(plan.slots, plan.capacity) }
    }

    /// The key at an index; for an optimistic reader, not validated.
    #[inline]
    pub(in crate::b_tree) fn key(self, at: usize) -> LeafKey<S> {
        if S::is_text() {
            LeafKey::of_text(self.text().entry(at))
        } else {
            LeafKey::of_stored(self.0.key(at))
        }
    }

    /// The value at an index; for an optimistic reader, not validated.
    #[inline]
    pub(in crate::b_tree) fn value(self, at: usize) -> PackedValue<S> {
        if S::is_text() {
            // SAFETY: the leaf has led to the block since this thread was pinned, or is its own.
            PackedValue::of_word(unsafe { self.text().entry(at).value() })
        } else {
            self.values()[at].load()
        }
    }

    /// Replaces the value at an index, without freeing the old one. The caller has locked the leaf.
    #[inline]
    pub(in crate::b_tree) fn set_value(self, at: usize, value: PackedValue<S>) {
        if S::is_text() {
            // SAFETY: the caller has locked the leaf.
            unsafe { self.text().set_value(at, value.word()) };
        } else {
            self.values()[at].store(value);
        }
    }

    /// The entry at an index; for an optimistic reader, not validated.
    #[inline]
    pub(in crate::b_tree) fn entry(self, at: usize) -> Entry<S> {
        Entry {
            key: self.key(at),
            value: self.value(at),
        }
    }

    /// Where a key is, or belongs. Calls `sound` before it looks at a key, and passes on the error.
    #[inline]
    pub(in crate::b_tree) fn find(
        self,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<SearchResult, Restart> {
        self.find_at(self.aim(probe), probe, sound)
    }

    /// Where a search looks.
    #[inline(always)]
    pub(in crate::b_tree) fn aim(self, probe: &SearchKey<'_, S>) -> Aim {
        if S::is_text() {
            with_bytes(probe, |key| self.text().aim(key))
        } else {
            self.0.aim(probe)
        }
    }

    /// [`find`](Self::find), where the head and the segment are known.
    #[inline(always)]
    pub(in crate::b_tree) fn find_at(
        self,
        aim: Aim,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<SearchResult, Restart> {
        if S::is_text() {
            let count = self.count();
            // SAFETY: the thread is pinned, or has the leaf alone.
            with_bytes(probe, |key| unsafe {
                self.text().find(aim, count, key, sound)
            })
        } else {
            self.0.find_at(aim, probe, sound)
        }
    }

    /// Whether the leaf, which this thread has locked, has room for a key that it does not have.
    #[inline]
    pub(in crate::b_tree) fn has_room(self, probe: &SearchKey<'_, S>) -> bool {
        if self.0.is_full() {
            return false;
        }
        if !S::is_text() {
            return true;
        }
        let count = self.count();
        // SAFETY: this thread has locked the leaf.
        with_bytes(probe, |key| unsafe { self.text().has_room(count, key) })
    }

    /// Prefetches the values of a segment of heads, as [`NodeRef::prefetch_slots`].
    #[inline]
    pub(in crate::b_tree) fn prefetch_slots(self, segment: usize) {
        if S::is_text() {
            self.text().prefetch_segment(segment);
        } else {
            self.0.prefetch_slots(segment);
        }
    }

    /// Prefetches the heads of a segment, and the values.
    pub(in crate::b_tree) fn prefetch_segment(self, segment: usize) {
        if !S::is_text() {
            self.0.heads().prefetch(segment);
        }
        self.prefetch_slots(segment);
    }

    /// Prefetches the key that a search will compare with, where it is not in the node itself.
    #[inline]
    pub(in crate::b_tree) fn prefetch_aim(self, aim: Aim) {
        if S::is_text() {
            self.text().prefetch_aim(aim);
        } else {
            let at = self.0.heads().below_in(aim.segment, aim.head);
            self.0.prefetch_key(at);
        }
    }

    /// Prefetches the end of the entries, where an insertion begins to move them.
    #[inline]
    pub(in crate::b_tree) fn prefetch_end(self) {
        if S::is_text() {
            self.text().prefetch_end();
        } else {
            self.0.prefetch_end();
        }
    }

    /// Prefetches what a scan reads of `entries` entries, from the one at `at` on.
    #[inline]
    pub(in crate::b_tree) fn prefetch_entries(self, at: usize, entries: usize) {
        if S::is_text() {
            self.text().prefetch_entries(at, entries);
        } else {
            self.0.prefetch_entries(at, entries);
        }
    }

    /// Prefetches the key at an index, if the key is not in the node itself.
    #[inline]
    pub(in crate::b_tree) fn prefetch_key(self, at: usize) {
        if S::is_text() {
            self.text().entry(at).prefetch();
        } else {
            self.0.prefetch_key(at);
        }
    }

    /// Prefetches what a visit reads first of the next leaf.
    #[inline]
    pub(in crate::b_tree) fn prefetch_next(next: *const Header) {
        prefetch(next);
        if S::is_text() {
            TextLeaf::prefetch(next.wrapping_add(1).cast());
        }
    }

    /// Inserts an entry at an index. The leaf, which this thread has locked, [has
    /// room](Self::has_room).
    #[inline]
    pub(in crate::b_tree) fn insert(
        self,
        at: usize,
        key: NewKey<S>,
        value: PackedValue<S>,
        guard: &impl Retire,
    ) {
        let count = self.count();
        if S::is_text() {
            self.insert_text(at, key, value, guard);
            return self.set_count(count + 1);
        }
        let key = match key {
            NewKey::Own(key, head) => StoredKey::new(key, head),
            NewKey::Again(key) => key.stored(),
        };
        self.0.insert_key(at, count, key);
        open(self.values(), at, count, |to, from| to.store(from.load()));
        self.values()[at].store(value);
        self.set_count(count + 1);
    }

    fn insert_text(self, at: usize, key: NewKey<S>, value: PackedValue<S>, guard: &impl Retire) {
        let insert = |key: &[u8]| {
            let (count, value) = (self.count(), value.word());
            // SAFETY: this thread has locked the leaf.
            let inserted = unsafe { self.text().insert(at, count, key, value, guard) };
            assert!(inserted.is_ok(), "a key is inserted where it has room");
        };
        match key {
            NewKey::Own(key, _) => insert(bytes_of::<S>(&key)),
            NewKey::Again(key) => {
                let mut bytes = Vec::new();
                // SAFETY: the key was in a leaf while this thread was pinned. It is put in anew,
                // so that nothing leads to what is loose.
                unsafe {
                    key.text().append_key(&mut bytes);
                    insert(&bytes);
                    key.loose().retire(guard);
                }
            }
        }
    }

    /// Removes the entry at an index.
    #[inline]
    pub(in crate::b_tree) fn remove(self, at: usize, guard: &impl Retire) {
        let count = self.count();
        if S::is_text() {
            // SAFETY: this thread has locked the leaf.
            unsafe { self.text().remove_run(at, at + 1, count, guard) };
        } else {
            self.0.remove_key(at, count);
            close(self.values(), at, count, |to, from| to.store(from.load()));
        }
        self.set_count(count - 1);
    }

    /// Removes the entries at `from..to`.
    pub(in crate::b_tree) fn remove_run(self, from: usize, to: usize, guard: &impl Retire) {
        let count = self.count();
        if S::is_text() {
            // SAFETY: this thread has locked the leaf.
            unsafe { self.text().remove_run(from, to, count, guard) };
            self.set_count(count - (to - from));
        } else {
            self.copy_run(to, count, self, from);
            self.0.seal(from + (count - to));
        }
    }

    /// Copies the entries from an index on to a new leaf.
    pub(in crate::b_tree) fn copy_upper(self, from: usize, right: Self, guard: &impl Retire) {
        let count = self.count();
        if S::is_text() {
            // SAFETY: this thread has locked the leaf, and has made the other.
            let assembled = unsafe { Assembled::new(&[Run::new(self.text(), from..count)], None) };
            let Ok(assembled) = assembled else {
                unreachable!("a part of a leaf has room in another");
            };
            right.fill(assembled, guard);
        } else {
            self.copy_run(from, count, right, 0);
            right.0.seal(count - from);
        }
    }

    /// Removes the entries from an index on, which are in another leaf now.
    pub(in crate::b_tree) fn truncate(self, count: usize, guard: &impl Retire) {
        if S::is_text() {
            self.remove_run(count, self.count(), guard);
        } else {
            self.0.seal(count);
        }
    }

    fn fill(self, assembled: Assembled, guard: &impl Retire) {
        let count = assembled.count();
        assembled.give_to(self.text(), guard);
        self.set_count(count);
    }

    /// Moves all entries of the right neighbour here, if they have room: in number they have. This
    /// thread has locked both.
    pub(in crate::b_tree) fn take_over(
        self,
        right: LeafRef<'_, S>,
        guard: &impl Retire,
    ) -> Result<(), Full> {
        let (lefts, rights) = (self.count(), right.count());
        if S::is_text() {
            let runs = [
                Run::new(self.text(), 0..lefts),
                Run::new(right.text(), 0..rights),
            ];
            // SAFETY: this thread has locked both.
            self.fill(unsafe { Assembled::new(&runs, None)? }, guard);
        } else {
            right.copy_run(0, rights, self, lefts);
            self.0.seal(lefts + rights);
        }
        Ok(())
    }

    /// Moves entries between this leaf and its right neighbour so that this one has `half`, if they
    /// have room. This thread has locked both.
    pub(in crate::b_tree) fn share(
        self,
        right: LeafRef<'_, S>,
        half: usize,
        guard: &impl Retire,
    ) -> Result<(), Full> {
        let (lefts, rights) = (self.count(), right.count());
        if S::is_text() {
            let (from_left, from_right) = (half.min(lefts), half.saturating_sub(lefts));
            let lower = [
                Run::new(self.text(), 0..from_left),
                Run::new(right.text(), 0..from_right),
            ];
            let upper = [
                Run::new(self.text(), from_left..lefts),
                Run::new(right.text(), from_right..rights),
            ];
            // SAFETY: this thread has locked both.
            let (lower, upper) =
                unsafe { (Assembled::new(&lower, None)?, Assembled::new(&upper, None)?) };
            self.fill(lower, guard);
            right.fill(upper, guard);
            return Ok(());
        }
        if half < lefts {
            let moved = lefts - half;
            right.make_way(moved);
            self.copy_run(half, lefts, right, 0);
            right.0.seal(rights + moved);
        } else {
            let moved = half - lefts;
            right.copy_run(0, moved, self, lefts);
            right.remove_run(0, moved, guard);
        }
        self.0.seal(half);
        Ok(())
    }

    /// Copies the entries at `from..to` to another leaf, from index `at` on, or to lower indices of
    /// this leaf. The caller calls [`NodeRef::seal`] after that.
    fn copy_run(self, from: usize, to: usize, other: LeafRef<'_, S>, at: usize) {
        let alike = other.takes_window_of(self.node());
        for (offset, index) in (from..to).enumerate() {
            if alike {
                self.copy_entry(index, other, at + offset);
            } else {
                other.store_key(at + offset, self.0.key(index));
                other.values()[at + offset].store(self.values()[index].load());
            }
        }
    }

    /// Copies the entry at an index to another leaf with the same prefix, or within this leaf. No
    /// hint.
    #[inline]
    fn copy_entry(self, index: usize, other: LeafRef<'_, S>, at: usize) {
        other.heads().store(at, self.heads().load(index));
        if !S::HEAD_IS_KEY {
            let word = self.keys()[index].load(Ordering::Relaxed);
            other.keys()[at].store(word, Ordering::Relaxed);
        }
        other.values()[at].store(self.values()[index].load());
    }

    /// Moves all entries up by `by`. The caller calls [`NodeRef::seal`] after that.
    fn make_way(self, by: usize) {
        for at in (0..self.count()).rev() {
            self.copy_entry(at, self, at + by);
        }
    }

    /// Appends an entry to a leaf that no other thread has. The caller calls
    /// [`end_filling`](Self::end_filling) after that.
    #[inline]
    pub(in crate::b_tree) fn append(
        self,
        key: S::Key,
        head: u64,
        value: PackedValue<S>,
        guard: &impl Retire,
    ) {
        let at = self.count();
        if S::is_text() {
            self.insert_text(at, NewKey::Own(key, head), value, guard);
        } else {
            self.store_key(at, StoredKey::new(key, head));
            self.values()[at].store(value);
        }
        self.set_count(at + 1);
    }

    /// Ends the filling of a leaf.
    pub(in crate::b_tree) fn end_filling(self) {
        if !S::is_text() {
            self.0.seal(self.count());
        }
    }

    /// Notes that an entry has been inserted at an index.
    #[inline]
    pub(in crate::b_tree) fn note_insertion(self, at: usize) {
        let (next, run) = self.insertions();
        let run = if at == next { (run + 1).min(0xffff) } else { 0 };
        let noted = (at as u32 + 1) << 16 | run;
        self.header().insertions.store(noted, Ordering::Relaxed);
    }

    /// One above the index of the last insertion, and how many insertions before it were each right
    /// above the last.
    pub(in crate::b_tree) fn insertions(self) -> (usize, u32) {
        let noted = self.header().insertions.load(Ordering::Relaxed);
        ((noted >> 16) as usize, noted & 0xffff)
    }
}
