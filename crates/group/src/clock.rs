//! The clock of leases.

use crate::time::Moment;
use rustix::time::{ClockId, clock_gettime};

/// The time since the machine was started, which goes on while the machine is suspended.
///
/// ```
/// let earlier = tremula_group::boot_time();
/// assert!(tremula_group::boot_time() >= earlier);
/// ```
#[must_use]
pub fn boot_time() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000;
    Moment::from_micros(seconds * 1_000_000 + micros)
}
