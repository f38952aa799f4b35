//! Ids of nodes, and a word for each: pages of them, which come and go.
//!
//! ```text
//!               chapter: a bit a page, "may have room"      page: the words of its ids,
//!  first        | 01…1 | · | · | · | …                            how many ids are in use,
//!  segments                |   |                                  a bit for each that is free
//!  [ 0 | · ] --> chapter 1 |   +--> [ 256 … 511 ]
//!  [ 1 | - ]               +------> [ 0 … 255 ]
//! ```
//!
//! Ids are numbered from 0. A page has the words of 256, and a chapter leads to 64 pages. The first
//! chapter is at hand, so that in all but large trees a page is found at once; the others are
//! in segments, each of twice as many as the one before, so that nothing is ever moved. The lowest
//! page that has room is the one that ids are handed out from: so the high ones empty.
//!
//! # How a page is given back, and why nobody can be looking at it
//!
//! Nothing here waits for another thread.
//!
//! 1. `used` counts the ids of a page that are handed out. Who wants one raises it first, and takes
//!    a bit then; who frees one sets the bit first, and lowers `used` then. So there is a bit for
//!    each who has raised it.
//! 2. Who lowers `used` to 0 leaves word in the epoch: once all who are pinned at that moment have
//!    moved on, somebody looks again. If it is 0 then, it is turned from 0 to *closed* by one
//!    exchange. An id is handed out by an exchange of the same word: one of the two comes first.
//!    Who finds the page closed puts a new one in its place.
//! 3. Whoever closed the page retires it to the epoch when it is unlinked: another who looks for
//!    room, or looks again, may have come to it, and is pinned.
//! 4. An id is freed in the epoch too, when nobody is pinned any more who read it in a node. So
//!    *whoever has an id, however old the node that he has it from, has a page that is in use*:
//!    it is not closed, is where it was, and has the word of that id. For a reader the link to
//!    a page is never null, and it does not ask whether it is.
//!
//! A page stays while a single id in it is in use. Chapters stay until the end: eight bytes for each
//! of the most pages that there have been at once, which have two thousand each.

use std::ptr;
use tremula_sync::Backoff;
use tremula_sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use tremula_sync::epoch::Guard;

/// Ids of a page: their words are half of what systems call a page.
const PAGE: usize = if cfg!(any(loom, shuttle)) { 2 } else { 256 };

/// Words of a bit for each id of a page.
const WORDS: usize = PAGE.div_ceil(64);

/// Pages of a chapter: a bit for each fits one word.
const CHAPTER: usize = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// Segments: more ids than there is memory for.
const SEGMENTS: usize = if cfg!(loom) { 3 } else { 32 };

/// What `used` of a page is that hands no id out any more.
const CLOSED: usize = usize::MAX;

struct Page {
    words: [AtomicPtr<()>; PAGE],
    used: AtomicUsize,
    free: [AtomicU64; WORDS],
}

/// What comes of asking a page for an id.
enum Taken {
    /// The id's place in the page.
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

    /// Takes one of the ids that are free.
    fn take(&self) -> Taken {
        // Acquire: pairs with the release in `put_back`, whose bit is seen.
        let raise = |used| (used != PAGE && used != CLOSED).then(|| used + 1);
        let raised = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, raise);
        match raised {
            Err(CLOSED) => return Taken::Closed,
            Err(_) => return Taken::Full,
            Ok(_) => {}
        }
        // There is a bit for this thread. It may be behind where it has looked already, if others
        // were faster to take and to set bits.
        let backoff = Backoff::new();
        loop {
            for (word, free) in self.free.iter().enumerate() {
                let mut bits = free.load(Ordering::Acquire);
                while bits != 0 {
                    let bit = 1 << bits.trailing_zeros();
                    // AcqRel: the word of the id is seen as it was left.
                    bits = free.fetch_and(!bit, Ordering::AcqRel);
                    if bits & bit != 0 {
                        return Taken::At(word * 64 + bit.trailing_zeros() as usize);
                    }
                }
            }
            backoff.wait();
        }
    }

    /// Puts an id back; returns how many were in use before. The page may be freed from then on.
    fn put_back(&self, at: usize) -> usize {
        self.words[at].store(ptr::null_mut(), Ordering::SeqCst);
        self.free[at / 64].fetch_or(1 << (at % 64), Ordering::Release);
        // SeqCst: as in `Chapter::note_full`. It also releases the bit.
        self.used.fetch_sub(1, Ordering::SeqCst)
    }

    fn is_closed(&self) -> bool {
        // Relaxed: it is never opened again; who finds it open finds out when it takes an id.
        self.used.load(Ordering::Relaxed) == CLOSED
    }
}

struct Chapter {
    /// The pages that may have room, or are not there. One that has, has its bit, or somebody is
    /// about to set it.
    rooms: AtomicU64,
    pages: [AtomicPtr<Page>; CHAPTER],
}

impl Chapter {
    fn new() -> Self {
        Self {
            rooms: AtomicU64::new(u64::MAX >> (64 - CHAPTER)),
            pages: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// The page at this place, which is put there if there is none, or one that is closed.
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
                // SAFETY: as above.
                Ok(_) => return unsafe { &*new },
                // SAFETY: it has just come from a box, and nobody has seen it.
                Err(_) => drop(unsafe { Box::from_raw(new) }),
            }
        }
    }

    /// Notes that a page was found full.
    fn note_full(&self, at: usize, page: &Page) {
        // SeqCst, here and in `put_back` and `note_room`: if an id was put back before this looks
        // again, it is found here; if after that, the bit is set after it is cleared here.
        self.rooms.fetch_and(!(1 << at), Ordering::SeqCst);
        if page.used.load(Ordering::SeqCst) != PAGE {
            self.note_room(at);
        }
    }

    fn note_room(&self, at: usize) {
        self.rooms.fetch_or(1 << at, Ordering::SeqCst);
    }
}

/// What there is of ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Handed out.
    pub(super) used: usize,
    /// In pages that are there.
    pub(super) backed: usize,
    pub(super) bytes: usize,
}

/// Ids, each with a word.
pub(super) struct Ids {
    first: Chapter,
    /// Of the other chapters. Null where no id has been handed out; else a leaked boxed slice.
    segments: [AtomicPtr<Chapter>; SEGMENTS],
}

/// The segment of a chapter that is not the first, and its place in there.
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

    /// The chapter that the page of this number is in, where there is such a page.
    #[inline]
    fn chapter_of(&self, page: usize) -> &Chapter {
        if page < CHAPTER {
            return &self.first;
        }
        let (segment, at) = locate(page / CHAPTER);
        // Acquire: pairs with the exchange in `chapter`, which publishes the segment.
        let segment = self.segments[segment].load(Ordering::Acquire);
        // SAFETY: an id of the page was handed out, and so the segment was made, which lives as
        // long as this.
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
        // handed out is linked still.
        let page = self.chapter_of(page).pages[page % CHAPTER].load(Ordering::Acquire);
        debug_assert!(!page.is_null(), "the page of id {id} was given back");
        // SAFETY: see the module: the page of an id that somebody has is there.
        unsafe { &(*page).words[id % PAGE] }
    }

    /// What the word of an id is now, if its page is there: the id was in use at some time.
    pub(super) fn peek(&self, id: usize, _pinned: &Guard) -> Option<*mut ()> {
        let page = id / PAGE;
        let page = self.chapter_of(page).pages[page % CHAPTER].load(Ordering::Acquire);
        // SAFETY: a page that was linked during the pin is not freed before its end.
        let page = unsafe { page.as_ref() }?;
        Some(page.words[id % PAGE].load(Ordering::SeqCst))
    }

    /// An id that nobody uses, of the lowest page with room; its word is null. O(1), but for a
    /// glance at a bit for each page.
    pub(super) fn allocate(&self, guard: &Guard) -> usize {
        let mut number = 0;
        loop {
            let chapter = self.chapter(number);
            // SeqCst: as in `Chapter::note_full`.
            let rooms = chapter.rooms.load(Ordering::SeqCst);
            if rooms == 0 {
                number += 1;
                continue;
            }
            let at = rooms.trailing_zeros() as usize;
            let page = chapter.open_page(at, guard);
            match page.take() {
                Taken::At(place) => return (number * CHAPTER + at) * PAGE + place,
                Taken::Full => chapter.note_full(at, page),
                Taken::Closed => {}
            }
        }
    }

    /// The chapter of this number, which is made if it is not there.
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
            // Release: pairs with `chapter_of`. Acquire: who comes second uses the other's.
            chapters = match link.compare_exchange(
                ptr::null_mut(),
                new,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: it came from such a box, and nobody has seen it.
                    unsafe { free_segment(new, length) };
                    other
                }
            };
        }
        // SAFETY: it lives as long as this, and has a chapter at this place.
        unsafe { &*chapters.add(at) }
    }

    /// Lets an id be handed out again. Returns the number of its page if none of that is in use
    /// any more: then [`give_back`](Self::give_back) is due, after a while.
    ///
    /// # Safety
    ///
    /// The id is in use, and is freed once; nobody uses its word from now on.
    pub(super) unsafe fn free(&self, id: usize) -> Option<usize> {
        let number = id / PAGE;
        let chapter = self.chapter_of(number);
        let at = number % CHAPTER;
        let page = chapter.pages[at].load(Ordering::Acquire);
        // SAFETY: the page of an id that is in use is there.
        let before = unsafe { (*page).put_back(id % PAGE) };
        if before == PAGE {
            chapter.note_room(at);
        }
        (before == 1).then_some(number)
    }

    /// Gives a page back, if none of its ids is in use; whether it did.
    pub(super) fn give_back(&self, number: usize, guard: &Guard) -> bool {
        let link = &self.chapter_of(number).pages[number % CHAPTER];
        let page = link.load(Ordering::Acquire);
        // SAFETY: a page that was linked during the pin is not freed before its end.
        let is_closed = unsafe { page.as_ref() }.is_some_and(|page| {
            // Acquire: all that was done with its words is done. Relaxed: nothing comes of it.
            (page.used)
                .compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        if is_closed {
            // Whoever came to it when it was closed has put a new one in its place.
            let _ =
                link.compare_exchange(page, ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
            // SAFETY: it came from a box, this thread alone has closed it, and no link leads to it.
            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(page))) };
        }
        is_closed
    }

    /// The chapters, as they are now.
    fn chapters(&self) -> impl Iterator<Item = &Chapter> {
        let others = (self.segments.iter().enumerate()).flat_map(|(segment, link)| {
            let chapters = link.load(Ordering::Acquire);
            let length = if chapters.is_null() { 0 } else { 1 << segment };
            // SAFETY: a segment has so many chapters, and lives as long as this.
            (0..length).map(move |at| unsafe { &*chapters.add(at) })
        });
        std::iter::once(&self.first).chain(others)
    }

    /// The pages that are there now.
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

    /// How many ids there are; exact when nobody hands any out, or frees them.
    pub(super) fn count(&self, guard: &Guard) -> Counts {
        let mut counts = Counts {
            bytes: size_of::<Self>() + (self.chapters().count() - 1) * size_of::<Chapter>(),
            ..Counts::default()
        };
        for page in self.pages(guard) {
            // Relaxed: a figure.
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
                // SAFETY: it came from a box. Nobody else has this any more; what was unlinked is
                // the epoch's.
                drop(unsafe { Box::from_raw(page) });
            }
        }
        for (segment, link) in self.segments.iter().enumerate() {
            let chapters = link.load(Ordering::Relaxed);
            if !chapters.is_null() {
                // SAFETY: it came from `chapter`, and nobody else has it.
                unsafe { free_segment(chapters, 1 << segment) };
            }
        }
    }
}

/// # Safety
///
/// It came from a box of so many chapters, and nobody has it.
unsafe fn free_segment(chapters: *mut Chapter, length: usize) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(chapters, length)) });
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use tremula_sync::epoch;

    /// Frees an id; whether its page went with it.
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
