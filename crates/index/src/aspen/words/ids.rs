//! Which numbers of leaves are free.
//!
//! Two leaves share a line of the cache. Threads that each fill leaves of their own would slow each
//! other down if they got one number each in turn, so each gets two at a time.

use super::leaf::Leaves;
use std::collections::HashSet;
use tremula_sync::thread_index;

/// Threads that get numbers apart from each other.
const SHARES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };
/// More free numbers than this are too many for one share: the others take of them.
const MOST_SPARE: usize = 16;

/// The numbers of leaves.
pub(super) struct Ids {
    next: u32,
    free: [Vec<u32>; SHARES],
    /// Numbers of leaves that share their line of the cache with no leaf that is in use.
    alone: Vec<u32>,
    /// All numbers that have been given out as such.
    ever_alone: HashSet<u32>,
}

impl Ids {
    pub(super) fn new() -> Self {
        Self {
            next: 0,
            free: [const { Vec::new() }; SHARES],
            alone: Vec::new(),
            ever_alone: HashSet::new(),
        }
    }

    /// How many numbers there are: all are below this.
    pub(super) fn end(&self) -> u32 {
        self.next
    }

    /// How many leaves are in use.
    pub(super) fn in_use(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::len).sum();
        // Beside each that has been alone lies one that never was in use.
        self.next as usize - free - self.alone.len() - self.ever_alone.len()
    }

    /// The share of this thread.
    fn share(&self) -> usize {
        thread_index() % self.free.len()
    }

    /// The number of a leaf that is not in use.
    pub(super) fn take(&mut self, leaves: &Leaves) -> u32 {
        let share = self.share();
        if let Some(id) = self.free[share].pop() {
            return id;
        }
        if let Some(id) = (self.free.iter_mut())
            .find(|other| other.len() > MOST_SPARE)
            .and_then(Vec::pop)
        {
            return id;
        }
        let id = self.add_line(leaves);
        self.free[share].push(id + 1);
        id
    }

    /// The same, but of a leaf whose line of the cache no other leaf in use shares: threads that
    /// fight over one of them would slow down those at the other.
    pub(super) fn take_alone(&mut self, leaves: &Leaves) -> u32 {
        self.alone.pop().unwrap_or_else(|| {
            let id = self.add_line(leaves);
            self.ever_alone.insert(id);
            id
        })
    }

    /// The first of two new numbers, whose leaves share a line.
    fn add_line(&mut self, leaves: &Leaves) -> u32 {
        let id = self.next;
        leaves.add(id);
        leaves.add(id + 1);
        self.next += 2;
        id
    }

    /// Gives back the number of a leaf that is not in use any more.
    pub(super) fn give_back(&mut self, id: u32) {
        if self.ever_alone.contains(&id) {
            self.alone.push(id);
        } else {
            let share = self.share();
            self.free[share].push(id);
        }
    }
}
