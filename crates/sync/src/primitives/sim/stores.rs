//! Stores that are on their way: the thread that made one sees it at once, others when its line has
//! come.
//!
//! ```text
//!   one word        before    store of thread 3    store of thread 5    in memory
//!                     7           8 at 120             9 at 150             9
//!
//!   at 130          thread 3 and most others see 8, thread 5 sees 9
//! ```
//!
//! Memory has the last value from the beginning, so that what reaches a word in another way, as its
//! owner alone, finds it, and nothing is ever written to memory that is used anew.
//!
//! # What holds
//!
//! 1. The stores to a word are in the order in which others see them, and those of one thread in
//!    the order in which it made them.
//! 2. A word without an entry, or of which the last store is seen by all, has its value in memory.
//!
//! Source: Sewell et al., "x86-TSO" (Communications of the ACM, July 2010): a first-in-first-out
//! buffer of stores for each thread, which its own loads look into.

use super::directory::ByAddress;
use super::machine::Picoseconds;

/// The value of an atomic of any type; a pointer, because that may be one.
pub(super) type Bits = *mut ();

struct Store {
    /// The number of the thread.
    by: usize,
    /// When others see it.
    seen: Picoseconds,
    value: Bits,
}

/// A word to which stores are on their way.
struct Word {
    before: Bits,
    stores: Vec<Store>,
}

#[derive(Default)]
pub(super) struct Stores(ByAddress<Word>);

impl Stores {
    /// What thread `by` sees in a word at time `now`, if that is not what memory has.
    pub(super) fn seen_by(&self, address: usize, by: usize, now: Picoseconds) -> Option<Bits> {
        if self.0.is_empty() {
            return None;
        }
        let Word { before, stores } = self.0.get(&address)?;
        let last = stores.last()?;
        if last.seen <= now || last.by == by {
            return None;
        }
        let latest = |is_seen: &dyn Fn(&Store) -> bool| {
            let latest = stores.iter().rev().find(|store| is_seen(store));
            latest.map(|store| store.value)
        };
        let own = latest(&|store| store.by == by && store.seen > now);
        Some(
            own.or_else(|| latest(&|store| store.seen <= now))
                .unwrap_or(*before),
        )
    }

    /// Thread `by` stores a value at time `now`, which others see at `seen`. Returns whether memory
    /// takes it; if not, a store that others see later is there already.
    pub(super) fn add(
        &mut self,
        address: usize,
        (by, now, seen): (usize, Picoseconds, Picoseconds),
        (in_memory, value): (Bits, Bits),
    ) -> bool {
        if seen <= now && !self.0.contains_key(&address) {
            return true;
        }
        let word = self.0.entry(address).or_insert_with(|| Word {
            before: in_memory,
            stores: Vec::new(),
        });
        let old = word.stores.partition_point(|store| store.seen <= now);
        if old == word.stores.len() {
            // What has been done to the word since then, memory has alone.
            word.stores.clear();
            word.before = in_memory;
        } else if let Some(store) = word.stores.drain(..old).next_back() {
            word.before = store.value;
        }
        let place = word.stores.partition_point(|store| store.seen <= seen);
        let is_last = place == word.stores.len();
        word.stores.insert(place, Store { by, seen, value });
        is_last
    }

    /// Forgets a word, if all have seen its stores by now.
    pub(super) fn forget(&mut self, address: usize, now: Picoseconds) {
        let is_over = |word: &Word| word.stores.last().is_none_or(|last| last.seen <= now);
        if self.0.get(&address).is_some_and(is_over) {
            self.0.remove(&address);
        }
    }
}
