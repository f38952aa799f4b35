//! Keys that are too long for a leaf, and lie aside.

use crate::kit::Retire;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

/// All bytes of a key, in an allocation that begins with their number. They never change.
///
/// It is a pointer and owns nothing: the leaf that has it frees it once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aside(NonNull<usize>);

fn layout(length: usize) -> Layout {
    let bytes = Layout::array::<u8>(length);
    let both = bytes.and_then(|bytes| Layout::new::<usize>().extend(bytes));
    match both {
        Ok((layout, _)) => layout,
        Err(_) => unreachable!("a key with this number of bytes exists"),
    }
}

impl Aside {
    /// A copy of a key.
    pub(super) fn new(key: &[u8]) -> Self {
        let layout = layout(key.len());
        // SAFETY: the layout has the size of a length at least.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start.cast::<usize>()) else {
            handle_alloc_error(layout)
        };
        // SAFETY: the allocation has room for the length and, behind it, for the bytes.
        unsafe {
            start.write(key.len());
            let bytes = start.add(1).cast::<u8>();
            bytes.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
        }
        Self(start)
    }

    pub(super) fn word(self) -> *mut () {
        self.0.as_ptr().cast()
    }

    /// The key that a word leads to; `None` if the word is null.
    #[inline]
    pub(super) fn of_word(word: *mut ()) -> Option<Self> {
        NonNull::new(word.cast()).map(Self)
    }

    /// The bytes of the key.
    ///
    /// # Safety
    ///
    /// [`word`](Self::word) gave the word that this was made of, and the key is not freed during
    /// `'g`.
    #[inline]
    pub(super) unsafe fn bytes<'g>(self) -> &'g [u8] {
        // SAFETY: `new` wrote the length and the bytes, and the caller promises that they live.
        unsafe {
            let length = self.0.read();
            std::slice::from_raw_parts(self.0.add(1).cast().as_ptr(), length)
        }
    }

    /// Frees the key.
    ///
    /// # Safety
    ///
    /// As for [`bytes`](Self::bytes); and nobody uses the key from now on.
    pub(super) unsafe fn free(self) {
        // SAFETY: `new` allocated it with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), layout(self.0.read())) };
    }
}

/// What has to be freed of a key that is in no leaf any more: the key aside, or nothing.
#[derive(Clone, Copy)]
pub(in crate::b_tree) struct Loose(*mut ());

impl Loose {
    pub(super) fn of(aside: Option<Aside>) -> Self {
        Self(aside.map_or(ptr::null_mut(), Aside::word))
    }

    #[inline]
    pub(in crate::b_tree) fn of_word(word: *mut ()) -> Self {
        Self(word)
    }

    /// The pointer, which is null if there is nothing to free.
    #[inline]
    pub(in crate::b_tree) fn word(self) -> *mut () {
        self.0
    }

    /// Frees it.
    ///
    /// # Safety
    ///
    /// No thread uses the key from now on, and this is called once.
    pub(in crate::b_tree) unsafe fn free(self) {
        if let Some(aside) = Aside::of_word(self.0) {
            // SAFETY: passed on to the caller.
            unsafe { aside.free() };
        }
    }

    /// Frees it when no thread that is pinned now can be reading the key.
    ///
    /// # Safety
    ///
    /// The key has been unlinked, and is retired once.
    pub(in crate::b_tree) unsafe fn retire(self, guard: &impl Retire) {
        if !self.0.is_null() {
            // SAFETY: it is freed only here, when every thread that could read it has unpinned. Any
            // thread may free bytes.
            unsafe { guard.defer_unchecked(move || self.free()) };
        }
    }
}
