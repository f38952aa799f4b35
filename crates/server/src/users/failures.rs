//! Failed tries to prove who one is, by address: each is answered later than the one before.

use crate::clients::machine;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Tries that are answered at once: a person mistypes.
const FREE: u32 = 3;

/// How long the first try behind these waits for its answer; each further one twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long without a failed try until an address begins anew.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Addresses that are kept. If there are more, the one that failed first is forgotten.
const ADDRESSES: usize = 4096;

/// The addresses from which tries have failed.
#[derive(Debug, Default)]
pub(super) struct Failures {
    by_address: HashMap<IpAddr, (u32, Instant)>,
}

impl Failures {
    /// Counts a failed try. Returns how long its answer waits.
    pub(super) fn add(&mut self, address: IpAddr, now: Instant) -> Duration {
        let address = machine(address);
        let is_old = |last: &Instant| now.saturating_duration_since(*last) >= FORGOTTEN;
        if self.by_address.len() >= ADDRESSES && !self.by_address.contains_key(&address) {
            self.by_address.retain(|_, (_, last)| !is_old(last));
            let oldest = self.by_address.iter().min_by_key(|(_, (_, last))| *last);
            if let Some((oldest, _)) = oldest
                && self.by_address.len() >= ADDRESSES
            {
                let oldest = *oldest;
                self.by_address.remove(&oldest);
            }
        }
        let (count, last) = self.by_address.entry(address).or_insert((0, now));
        if is_old(last) {
            *count = 0;
        }
        *count = count.saturating_add(1);
        *last = now;
        let doublings = match count.checked_sub(FREE + 1) {
            None => return Duration::ZERO,
            Some(doublings) => doublings.min(16),
        };
        (FIRST_WAIT * 2_u32.pow(doublings)).min(LONGEST_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failed_try_of_an_address_waits_longer_until_it_rests() {
        let mut failures = Failures::default();
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let start = Instant::now();
        let waits: Vec<_> = (0..10).map(|_| failures.add(one, start)).collect();
        assert_eq!(waits[..3], [Duration::ZERO; 3]);
        assert_eq!(waits[3], FIRST_WAIT);
        assert_eq!(waits[4], 2 * FIRST_WAIT);
        assert_eq!(waits[9], LONGEST_WAIT);
        assert_eq!(failures.add(other, start), Duration::ZERO);
        assert_eq!(failures.add(one, start + FORGOTTEN), Duration::ZERO);
    }

    #[test]
    fn no_more_addresses_are_kept_than_the_limit() {
        let mut failures = Failures::default();
        let start = Instant::now();
        for number in 0..u32::try_from(ADDRESSES + 10).expect("a few thousand") {
            let later = start + Duration::from_micros(number.into());
            failures.add(IpAddr::from(number.to_be_bytes()), later);
        }
        assert_eq!(failures.by_address.len(), ADDRESSES);
        assert!(
            !failures
                .by_address
                .contains_key(&IpAddr::from([0, 0, 0, 9]))
        );
    }
}
