//! Ids of nodes, with a word for each, in pages that come and go.
//!
//! ```text
//!               chapter: a bit a page, "may have room"      page: the words of its ids,
//!  first        | 01…1 | · | · | · | …                            how many ids are in use,
//!  segments                |   |                                  a bit for each that is free
//!  [ 0 | · ] --> chapter 1 |   +--> [ 256 … 511 ]
//!  [ 1 | - ]               +------> [ 0 … 255 ]
//! ```
//!
//! Ids are numbered from 0. A page has the words of 256 ids, and a chapter has the links to 64
//! pages. The first chapter is stored in place, so that in all but large trees a page is found at
//! once. The others are in segments, each with twice as many chapters as the one before, so that
//! nothing is ever moved. Ids are handed out from the lowest page with a free one, so the high
//! pages empty.
//!
//! # How a page is given back, and why no thread can be looking at it
//!
//! Nothing here waits for another thread.
//!
//! 1. `used` counts the ids of a page that are handed out. A thread that wants an id first raises
//!    `used` and then takes a bit; a thread that frees an id first sets the bit and then lowers
//!    `used`. So there is a bit for each thread that has raised it.
//! 2. The thread that lowers `used` to 0 defers a check to the epoch: it runs when all threads that
//!    are pinned now have moved on. If `used` is 0 then, one exchange turns it from 0 to *closed*.
//!    An id is handed out by an exchange of the same word, so one of the two comes first. A thread
//!    that finds the page closed puts a new page in its place.
//! 3. The thread that closed the page retires it to the epoch once it is unlinked: other threads
//!    that look for a free id, or run that check, may have come to it, and are pinned.
//! 4. An id is freed through the epoch, too, when no thread is pinned any more that read it in a
//!    node. So *the page of an id that a thread has is in use*, however old the node that the
//!    thread read it from: the page is not closed, is where it was, and has the word of that id. A
//!    reader therefore never finds a null link to a page, and does not check for one.
//!
//! A page stays while one of its ids is in use. Chapters stay until the end: eight bytes for each
//! page, of the greatest number of pages at one time, and a page has two thousand.

use std::ptr;
use tremula_sync::Backoff;
use tremula_sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use tremula_sync::epoch::Guard;

/// Ids of a page: their words take half a page of memory.
const PAGE: usize = if cfg!(any(loom, shuttle)) { 2 } else { 256 };

/// Words of the bit set that has a bit for each id of a page.
const WORDS: usize = PAGE.div_ceil(64);

/// Pages of a chapter: their bits fit one word.
const CHAPTER: usize = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// Segments: enough for more ids than fit in memory.
const SEGMENTS: usize = if cfg!(loom) { 3 } else { 32 };

/// The value of `used` in a page that hands out no more ids.
const CLOSED: usize = usize::MAX;

struct Page {
    words: [AtomicPtr<()>; PAGE],
    used: AtomicUsize,
    free: [AtomicU64; WORDS],
}

/// The result of asking a page for an id.
enum Taken {
    /// The id's index in the page.
    At(usize),
    Full,
    Closed,
}

impl Page {
    fn new() -> Box<Self> {
        let bits = |word| match PAGE - word * 64 {
            left @ ..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
        Box::new(Self {
            words: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            used: AtomicUsize::new(0),
            free: std::array::from_fn(|word| AtomicU64::new(bits(word))),
        })
    }

    fn take(&self) -> Taken {
        // Acquire: pairs with the release in `put_back`, so that this thread sees the bit.
        let raise = |used| (used != PAGE && used != CLOSED).then(|| used + 1);
        let raised = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, raise);
        match raised {
            Err(CLOSED) => return Taken::Closed,
            Err(_) => return Taken::Full,
            Ok(_) => {}
        }
        // There is a bit for this thread. It may be at a place that this thread has passed already,
        // if others took and set bits meanwhile.
        let backoff = Backoff::new();
        loop {
            for (word, free) in self.free.iter().enumerate() {
                let mut bits = free.load(Ordering::Acquire);
                while bits != 0 {
                    let bit = 1 << bits.trailing_zeros();
                    // AcqRel: this thread sees the id's word as it was left.
                    bits = free.fetch_and(!bit, Ordering::AcqRel);
                    if bits & bit != 0 {
                        return Taken::At(word * 64 + bit.trailing_zeros() as usize);
                    }
                }
            }
            backoff.wait();
        }
    }

    /// Puts an id back; returns how many were in use before. From then on the page may be freed.
    fn put_back(&self, at: usize) -> usize {
        self.words[at].store(ptr::null_mut(), Ordering::SeqCst);
        self.free[at / 64].fetch_or(1 << (at % 64), Ordering::Release);
        // SeqCst: see `Chapter::note_full`. It also releases the bit.
        self.used.fetch_sub(1, Ordering::SeqCst)
    }

    fn is_closed(&self) -> bool {
        // Relaxed: a closed page is never opened again; a thread that misses it finds out in
        // `take`.
        self.used.load(Ordering::Relaxed) == CLOSED
    }
}

struct Chapter {
    /// A bit for each page that may have a free id, or does not exist. If a page has a free id, its
    /// bit is set, or a thread is about to set it.
    may_have_free: AtomicU64,
    pages: [AtomicPtr<Page>; CHAPTER],
}

impl Chapter {
    fn new() -> Self {
        Self {
            may_have_free: AtomicU64::new(u64::MAX >> (64 - CHAPTER)),
            pages: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// The page at this index; makes a new one if it does not exist, or is closed.
    fn open_page<'g>(&self, at: usize, _pinned: &'g Guard) -> &'g Page {
        let link = &self.pages[at];
        loop {
            // Acquire, here and below: pairs with the release of the exchange.
            let seen = link.load(Ordering::Acquire);
            // SAFETY: a page that was linked during the pin is not freed before its end.
            if let Some(page) = unsafe { seen.as_ref() }
                && !page.is_closed()
            {
                return page;
            }
            let new = Box::into_raw(Page::new());
            let made = link.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire);
            match made {
                // SAFETY: it has just been linked, during the pin.
                Ok(_) => return unsafe { &*new },
                // SAFETY: it has just come from a box, and no other thread has seen it.
                Err(_) => drop(unsafe { Box::from_raw(new) }),
            }
        }
    }

    /// Notes that a page was found full.
    fn note_full(&self, at: usize, page: &Page) {
        // SeqCst, here and in `put_back` and `note_free`: if an id is put back before the load
        // below, that load sees it; if after it, `put_back` sets the bit after it is cleared here.
        self.may_have_free.fetch_and(!(1 << at), Ordering::SeqCst);
        if page.used.load(Ordering::SeqCst) != PAGE {
            self.note_free(at);
        }
    }

    fn note_free(&self, at: usize) {
        self.may_have_free.fetch_or(1 << at, Ordering::SeqCst);
    }
}

/// Numbers of ids, and of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) used: usize,
    /// In pages that exist.
    pub(super) backed: usize,
    pub(super) bytes: usize,
}

pub(super) struct Ids {
    first: Chapter,
    /// The other chapters. Null where no id has been handed out; else a leaked boxed slice.
    segments: [AtomicPtr<Chapter>; SEGMENTS],
}

/// The segment of a chapter that is not the first, and its index in there.
#[inline]
fn locate(chapter: usize) -> (usize, usize) {
    let segment = chapter.ilog2() as usize;
    (segment, chapter - (1 << segment))
}

impl Ids {
    pub(super) fn new() -> Self {
        Self {
            first: Chapter::new(),
            segments: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// The chapter of the page with this number, which exists.
    #[inline]
    fn chapter_of(&self, page: usize) -> &Chapter {
        if page < CHAPTER {
            return &self.first;
        }
        let (segment, at) = locate(page / CHAPTER);
        // Acquire: pairs with the exchange in `chapter`, which publishes the segment.
        let segment = self.segments[segment].load(Ordering::Acquire);
        // SAFETY: an id of the page was handed out, so the segment was made; it lives as long as
        // `self`.
        unsafe { &*segment.add(at) }
    }

    /// The word of an id.
    ///
    /// # Safety
    ///
    /// The id is in use, or was at some time during the caller's pin; or it is the caller's alone.
    #[inline]
    pub(super) unsafe fn word(&self, id: usize) -> &AtomicPtr<()> {
        let page = id / PAGE;
        // Acquire: pairs with the exchange in `open_page`. The page that was linked when the id was
        // handed out is still linked.
        let page = self.chapter_of(page).pages[page % CHAPTER].load(Ordering::Acquire);
        debug_assert!(!page.is_null(), "the page of id {id} was given back");
        // SAFETY: see the module: the page of an id that a thread has exists.
        unsafe { &(*page).words[id % PAGE] }
    }

    /// The word of an id now, if its page exists. The id was in use at some time.
    pub(super) fn peek(&self, id: usize, _pinned: &Guard) -> Option<*mut ()> {
        let page = id / PAGE;
        let page = self.chapter_of(page).pages[page % CHAPTER].load(Ordering::Acquire);
        // SAFETY: a page that was linked during the pin is not freed before its end.
        let page = unsafe { page.as_ref() }?;
        Some(page.words[id % PAGE].load(Ordering::SeqCst))
    }

    /// An id that is not in use, of the lowest page that has one; its word is null. O(1), but for a
    /// look at one bit a page.
    pub(super) fn allocate(&self, guard: &Guard) -> usize {
        let mut number = 0;
        loop {
            let chapter = self.chapter(number);
            // SeqCst: see `Chapter::note_full`.
            let may_have_free = chapter.may_have_free.load(Ordering::SeqCst);
            if may_have_free == 0 {
                number += 1;
                continue;
            }
            let at = may_have_free.trailing_zeros() as usize;
            let page = chapter.open_page(at, guard);
            match page.take() {
                Taken::At(place) => return (number * CHAPTER + at) * PAGE + place,
                Taken::Full => chapter.note_full(at, page),
                Taken::Closed => {}
            }
        }
    }

    /// The chapter of this number; makes it if it does not exist.
    fn chapter(&self, number: usize) -> &Chapter {
        if number == 0 {
            return &self.first;
        }
        let (segment, at) = locate(number);
        let link = &self.segments[segment];
        let mut chapters = link.load(Ordering::Acquire);
        if chapters.is_null() {
            let length = 1 << segment;
            let new: Box<[Chapter]> = (0..length).map(|_| Chapter::new()).collect();
            let new: *mut Chapter = Box::into_raw(new).cast();
            // Release: pairs with `chapter_of`. Acquire: the thread that comes second uses the
            // other's chapters.
            chapters = match link.compare_exchange(
                ptr::null_mut(),
                new,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: it came from such a box, and no other thread has seen it.
                    unsafe { free_segment(new, length) };
                    other
                }
            };
        }
        // SAFETY: the segment lives as long as `self`, and has a chapter at this index.
        unsafe { &*chapters.add(at) }
    }

    /// Lets an id be handed out again. Returns the number of its page if no id of it is in use any
    /// more: then [`give_back`](Self::give_back) is due, after a while.
    ///
    /// # Safety
    ///
    /// The id is in use, and is freed once; no thread uses its word from now on.
    pub(super) unsafe fn free(&self, id: usize) -> Option<usize> {
        let number = id / PAGE;
        let chapter = self.chapter_of(number);
        let at = number % CHAPTER;
        let page = chapter.pages[at].load(Ordering::Acquire);
        // SAFETY: the page of an id that is in use exists.
        let before = unsafe { (*page).put_back(id % PAGE) };
        if before == PAGE {
            chapter.note_free(at);
        }
        (before == 1).then_some(number)
    }

    /// Gives a page back, if none of its ids is in use; returns whether it did.
    pub(super) fn give_back(&self, number: usize, guard: &Guard) -> bool {
        let link = &self.chapter_of(number).pages[number % CHAPTER];
        let page = link.load(Ordering::Acquire);
        // SAFETY: a page that was linked during the pin is not freed before its end.
        let is_closed = unsafe { page.as_ref() }.is_some_and(|page| {
            // Acquire: all that was done with its words is done. Relaxed: a failure has no effect.
            (page.used)
                .compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        if is_closed {
            // If this fails, another thread found the page closed and has put a new one in its
            // place.
            let _ =
                link.compare_exchange(page, ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
            // SAFETY: it came from a box, only this thread has closed it, and no link leads to it.
            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(page))) };
        }
        is_closed
    }

    fn chapters(&self) -> impl Iterator<Item = &Chapter> {
        let others = (self.segments.iter().enumerate()).flat_map(|(segment, link)| {
            let chapters = link.load(Ordering::Acquire);
            let length = if chapters.is_null() { 0 } else { 1 << segment };
            // SAFETY: a segment has `length` chapters, and lives as long as `self`.
            (0..length).map(move |at| unsafe { &*chapters.add(at) })
        });
        std::iter::once(&self.first).chain(others)
    }

    /// The pages that exist now.
    fn pages<'a>(&'a self, _pinned: &'a Guard) -> impl Iterator<Item = &'a Page> {
        (self.chapters().flat_map(|chapter| &chapter.pages))
            // SAFETY: a page that was linked during the pin is not freed before its end.
            .filter_map(|link| unsafe { link.load(Ordering::Acquire).as_ref() })
    }

    /// The words that are not null, by id.
    pub(super) fn words<'a>(&'a self, guard: &'a Guard) -> impl Iterator<Item = *mut ()> {
        self.pages(guard)
            .flat_map(|page| &page.words)
            .map(|word| word.load(Ordering::SeqCst))
            .filter(|word| !word.is_null())
    }

    /// How many ids there are; exact while no thread takes or frees one.
    pub(super) fn count(&self, guard: &Guard) -> Counts {
        let mut counts = Counts {
            bytes: size_of::<Self>() + (self.chapters().count() - 1) * size_of::<Chapter>(),
            ..Counts::default()
        };
        for page in self.pages(guard) {
            // Relaxed: only a statistic.
            let used = page.used.load(Ordering::Relaxed);
            if used != CLOSED {
                counts.used += used;
                counts.backed += PAGE;
                counts.bytes += size_of::<Page>();
            }
        }
        counts
    }
}

impl Drop for Ids {
    fn drop(&mut self) {
        for link in self.chapters().flat_map(|chapter| &chapter.pages) {
            let page = link.load(Ordering::Relaxed);
            if !page.is_null() {
                // SAFETY: it came from a box. No other thread has `self` any more; what was
                // unlinked belongs to the epoch.
                drop(unsafe { Box::from_raw(page) });
            }
        }
        for (segment, link) in self.segments.iter().enumerate() {
            let chapters = link.load(Ordering::Relaxed);
            if !chapters.is_null() {
                // SAFETY: it came from `chapter`, and no other thread has it.
                unsafe { free_segment(chapters, 1 << segment) };
            }
        }
    }
}

/// # Safety
///
/// It came from a box of `length` chapters, and no other thread has it.
unsafe fn free_segment(chapters: *mut Chapter, length: usize) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(chapters, length)) });
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use tremula_sync::epoch;

    /// Frees an id; returns whether its page was given back.
    fn free(ids: &Ids, id: usize) -> bool {
        // SAFETY: the tests free what was handed out, once.
        let emptied = unsafe { ids.free(id) };
        emptied.is_some_and(|page| ids.give_back(page, &epoch::pin()))
    }

    fn backed(ids: &Ids) -> usize {
        ids.count(&epoch::pin()).backed
    }

    #[test]
    fn ids_are_handed_out_in_order_over_many_segments() {
        let ids = Ids::new();
        let guard = &epoch::pin();
        let all = PAGE * CHAPTER * 7;
        for id in 0..all {
            assert_eq!(ids.allocate(guard), id);
            // SAFETY: it has just been handed out.
            let word = unsafe { ids.word(id) };
            word.store(ptr::without_provenance_mut(id + 1), Ordering::SeqCst);
        }
        assert!(ids.words(guard).map(|word| word.addr()).eq(1..=all));
        let counts = ids.count(guard);
        assert_eq!((counts.used, counts.backed), (all, all));
    }

    #[test]
    fn the_lowest_page_with_room_is_used_first() {
        let ids = Ids::new();
        let guard = &epoch::pin();
        (0..PAGE * 5).for_each(|_| _ = ids.allocate(guard));
        for id in [PAGE * 4 + 1, PAGE + 7, PAGE * 3, 5] {
            assert!(!free(&ids, id));
        }
        let again = [0; 4].map(|_| ids.allocate(guard));
        assert_eq!(again, [5, PAGE + 7, PAGE * 3, PAGE * 4 + 1]);
        assert_eq!(ids.allocate(guard), PAGE * 5);
    }

    #[test]
    fn a_page_goes_with_its_last_id_and_comes_again() {
        let ids = Ids::new();
        let guard = &epoch::pin();
        (0..PAGE * 3).for_each(|_| _ = ids.allocate(guard));
        let middle = PAGE..PAGE * 2;
        assert_eq!(middle.clone().filter(|id| free(&ids, *id)).count(), 1);
        assert_eq!(backed(&ids), PAGE * 2);
        assert_eq!(ids.allocate(guard), PAGE);
        // SAFETY: it has just been handed out.
        assert!(unsafe { ids.word(PAGE) }.load(Ordering::SeqCst).is_null());
        assert_eq!(backed(&ids), PAGE * 3);
    }

    #[test]
    fn a_page_with_an_id_in_use_stays() {
        let ids = Ids::new();
        let guard = &epoch::pin();
        assert_eq!(ids.allocate(guard), 0);
        assert!(!ids.give_back(0, guard));
        assert!(!ids.give_back(1, guard), "it has never been there");
        assert_eq!(backed(&ids), PAGE);
    }
}
