//! Huge pages: for a process that holds much.
//!
//! The allocator asks the system for huge pages, of 2 MiB, which save address translations where
//! there is much to translate. To a small heap they only cost memory: a huge page stays whole for
//! one block in it, and the system makes huge pages again of areas from which the allocator has
//! given small ones back. So this process refuses huge pages until it uses [`FROM`] bytes, and
//! again when it uses fewer than [`BELOW`].
//!
//! A process that was started with huge pages refused leaves it at that.

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use tremula_sync::counting_allocator::used_bytes;

const FROM: u64 = 16 << 20;
const BELOW: u64 = 8 << 20;

/// It is not up to this module.
const AS_THEY_WERE: u8 = 0;
const REFUSED: u8 = 1;
const TAKEN: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(AS_THEY_WERE);

/// Refuses huge pages until [`fit`] finds that the process holds much. For the process of a server,
/// before it takes memory.
pub(crate) fn refuse() {
    if matches!(transparent_huge_pages_are_disabled(), Ok(false)) {
        set(REFUSED);
    }
}

/// Takes or refuses huge pages by what is used, if [`refuse`] was called. O(1).
pub(crate) fn fit() {
    match STATE.load(Relaxed) {
        REFUSED if used_bytes() >= FROM => set(TAKEN),
        TAKEN if used_bytes() < BELOW => set(REFUSED),
        _ => {}
    }
}

fn set(state: u8) {
    // An error means that the system has no such switch: then all stays as it was.
    if disable_transparent_huge_pages(state == REFUSED).is_ok() {
        STATE.store(state, Relaxed);
    }
}
