//! Memory in huge pages, of which a processor keeps the addresses of many more bytes at hand.

#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
use tremula_sync::counting_allocator::note_region;

/// The size of a huge page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// The same, as a change of what is counted.
#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
const BYTES: i64 = HUGE_PAGE as i64;

/// Memory of the size of a huge page, from the system, full of zeros.
pub(crate) struct HugePage {
    /// Where it begins.
    pub(crate) base: *mut u8,
    /// Whether the system has agreed to use a huge page. If not, it is the same memory in small
    /// ones.
    pub(crate) is_huge: bool,
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
impl HugePage {
    /// Asks the system for memory. Returns `None` if it has none.
    pub(crate) fn new() -> Option<Self> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the system chooses. Twice as much as needed, so
        // that it has an aligned part.
        let all = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                2 * HUGE_PAGE,
                access,
                MapFlags::PRIVATE,
            )
        };
        let all = all.ok()?.cast::<u8>();
        let before = all.align_offset(HUGE_PAGE);
        let base = all.wrapping_add(before);
        // SAFETY: these parts of the mapping are in use by nobody, and the advice changes neither
        // the content of memory nor who may use it.
        let is_huge = unsafe {
            if before > 0 {
                munmap(all.cast(), before).ok()?;
            }
            if before < HUGE_PAGE {
                munmap(base.add(HUGE_PAGE).cast(), HUGE_PAGE - before).ok()?;
            }
            madvise(base.cast(), HUGE_PAGE, Advice::LinuxHugepage).is_ok()
        };
        note_region(BYTES);
        Some(Self { base, is_huge })
    }

    /// Gives the memory of a page back to the system. It stays mapped, and is full of zeros again.
    /// It counts as used again from [`fill`](Self::fill) on.
    ///
    /// # Safety
    ///
    /// `base` is that of a page, of which nobody needs the content.
    pub(crate) unsafe fn empty(base: *mut u8) {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the caller says so. If it fails, the memory is as it was.
        let _ = unsafe { madvise(base.cast(), HUGE_PAGE, Advice::LinuxDontNeed) };
        note_region(-BYTES);
    }

    /// Says that a page that was empty will have content again.
    pub(crate) fn fill() {
        note_region(BYTES);
    }

    /// Gives a page back to the system, which may be empty.
    ///
    /// # Safety
    ///
    /// `base` is that of a page, which nobody uses.
    pub(crate) unsafe fn free(base: *mut u8, is_empty: bool) {
        // SAFETY: the caller says so. If it fails, the memory stays mapped.
        let _ = unsafe { rustix::mm::munmap(base.cast(), HUGE_PAGE) };
        if !is_empty {
            note_region(-BYTES);
        }
    }
}

/// No system that this crate knows how to ask.
#[cfg(not(all(target_os = "linux", not(any(loom, shuttle)))))]
impl HugePage {
    pub(crate) fn new() -> Option<Self> {
        None
    }

    /// # Safety
    ///
    /// None: there is no page.
    pub(crate) unsafe fn empty(_: *mut u8) {}

    pub(crate) fn fill() {}

    /// # Safety
    ///
    /// None: there is no page.
    pub(crate) unsafe fn free(_: *mut u8, _: bool) {}
}
