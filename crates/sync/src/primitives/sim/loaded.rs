//! What a thread has loaded last: it could not ask before for a line to which one of these pointers
//! leads.

use super::directory::LINE;

/// The last addresses that a thread has loaded, among other values.
#[derive(Default)]
pub(super) struct Loaded {
    addresses: [usize; Self::COUNT],
    next: usize,
}

impl Loaded {
    const COUNT: usize = 4;
    /// Smaller values are no addresses of what a program allocates.
    const LEAST: usize = 1 << 32;
    /// A pointer's bits; the others, and the lowest, may have other meanings.
    const POINTER: usize = (1 << 48) - 1;
    /// What lies this far behind an address is of the node there.
    const NODE: usize = 2048;

    pub(super) fn add(&mut self, value: usize) {
        let address = value & Self::POINTER;
        if address >= Self::LEAST {
            self.addresses[self.next] = address / LINE * LINE;
            self.next = (self.next + 1) % Self::COUNT;
        }
    }

    /// Whether the address is one of them, or of the node there.
    pub(super) fn leads_to(&self, address: usize) -> bool {
        let is_there = |loaded: &usize| address.wrapping_sub(*loaded) < Self::NODE;
        self.addresses.iter().any(is_there)
    }
}
