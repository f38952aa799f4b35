//! A register of everything that a run makes: each key and value has a number of its own, which is
//! alive from construction to drop. A value that is dropped twice, or read after its drop, ends the
//! process at once, before the allocator is reached.

use super::campaign::fail;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, Ordering::Relaxed};

/// How many numbers one process may give out.
const NUMBERS: usize = 1 << 24;

static STATES: [AtomicU8; NUMBERS] = [const { AtomicU8::new(UNBORN) }; NUMBERS];
static NEXT: AtomicU32 = AtomicU32::new(0);
/// How many are alive. It may be off by one while another thread makes or drops one.
static ALIVE_NOW: AtomicI64 = AtomicI64::new(0);

const UNBORN: u8 = 0;
const ALIVE: u8 = 1;
const DROPPED: u8 = 2;

/// Part of a key or value: its number. The number is also on the heap, where AddressSanitizer sees
/// reads of freed memory.
#[derive(Debug)]
pub(crate) struct Life {
    number: u32,
    again: Box<u32>,
}

impl Life {
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Relaxed);
        let Some(state) = STATES.get(number as usize) else {
            fail("the register is full: run fewer seeds");
        };
        state.store(ALIVE, Relaxed);
        ALIVE_NOW.fetch_add(1, Relaxed);
        Self {
            number,
            again: Box::new(!number),
        }
    }

    /// Fails if this is not alive.
    pub(crate) fn check(&self) {
        let state = self.state().map(|state| state.load(Relaxed));
        match state {
            Some(ALIVE) if *self.again == !self.number => {}
            Some(DROPPED) => fail("a key or value is used after its drop"),
            _ => fail("what is used as a key or value is none"),
        }
    }

    fn state(&self) -> Option<&'static AtomicU8> {
        STATES.get(self.number as usize)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        match self.state().map(|state| state.swap(DROPPED, Relaxed)) {
            Some(ALIVE) => {}
            Some(DROPPED) => fail("a key or value is dropped twice"),
            _ => fail("what is dropped as a key or value is none"),
        }
        ALIVE_NOW.fetch_sub(1, Relaxed);
    }
}

/// How many keys and values are alive.
pub(crate) fn alive() -> i64 {
    ALIVE_NOW.load(Relaxed)
}
