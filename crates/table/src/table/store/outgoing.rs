//! Rows on their way out: what an operation has replaced or removed is dropped a few operations of
//! its thread later.
//!
//! A thread that drops a row reads its number of references, and then that of each binary in it. In
//! a table beyond the caches both are misses, the second of them behind the first, and they take
//! longer than all else that the operation does. So a row waits. When it comes, its memory is asked
//! for. Two rows later that is there, and the memory of its terms is asked for. Again two rows
//! later it is dropped, and finds everything in the cache.
//!
//! A row that the look at its terms shows to be large is dropped then. The last rows of a thread
//! that has no more of them are dropped when it ends.

use super::Kept;
use std::cell::RefCell;

/// How many rows of a thread wait.
const WAITING: usize = 4;

/// A row of more bytes on the heap does not wait longer than it takes to see that.
const LARGE: u64 = 4096;

tremula_sync::thread_local! {
    static OUTGOING: RefCell<Outgoing> = RefCell::default();
}

/// The rows that wait, in a ring.
#[derive(Default)]
struct Outgoing {
    rows: [Option<Kept>; WAITING],
    next: usize,
}

impl Outgoing {
    /// Takes in what was kept, and returns what is to be dropped.
    #[inline]
    fn exchange(&mut self, kept: Kept) -> [Option<Kept>; 2] {
        let at = self.next;
        self.next = (at + 1) % WAITING;
        kept.prefetch();
        let oldest = self.rows[at].replace(kept);
        let large = self.rows[(at + WAITING / 2) % WAITING].take_if(|kept| {
            kept.prefetch_terms();
            kept.heap_size() > LARGE
        });
        [oldest, large]
    }
}

/// Drops what was kept, a little later.
#[inline]
pub(in super::super) fn let_go(kept: Option<Kept>) {
    let Some(kept) = kept else {
        return;
    };
    // If the thread is ending, `kept` is dropped here. And whatever is dropped, is when the ring is
    // no longer borrowed.
    let gone = OUTGOING.try_with(move |outgoing| outgoing.borrow_mut().exchange(kept));
    drop(gone);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::store::Layout;
    use crate::term::{Bitstring, Term, Tuple};
    use std::sync::atomic::AtomicBool;

    fn let_go_of(binary: &Bitstring) {
        let layout = Layout {
            key_position: 0,
            is_bag: false,
            by_value: false,
            compressed: false,
            has_equals: AtomicBool::new(false),
        };
        let row = Tuple::new([Term::from(1), Term::from(binary.clone())]);
        let_go(Some(layout.keep(row)));
    }

    #[test]
    fn a_row_waits_for_the_next_ones_and_for_the_end_of_its_thread() {
        let first = Bitstring::from_bytes(b"first");
        let others = Bitstring::from_bytes(b"others");
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let_go_of(&first);
                for waiting in 1..WAITING {
                    let_go_of(&others);
                    assert_eq!((first.references(), others.references()), (2, 1 + waiting));
                }
                let_go_of(&others);
                assert_eq!((first.references(), others.references()), (1, 1 + WAITING));
            });
            // The scope alone would not wait for what the thread drops when it ends.
            thread.join().expect("the thread ends well");
        });
        assert_eq!(others.references(), 1);
    }

    #[test]
    fn a_large_row_waits_half_as_long() {
        let large = Bitstring::from_bytes(&[0; LARGE as usize]);
        let others = Bitstring::from_bytes(b"others");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let_go_of(&large);
                for waiting in 1..=WAITING / 2 {
                    assert_eq!(large.references(), 2, "{waiting}");
                    let_go_of(&others);
                }
                assert_eq!(large.references(), 1);
            });
        });
    }
}
