//! What the system says of this process.

use std::fs;

/// The bytes of this process that are in memory now, its resident set: what
/// [`MemorySecond::used`](crate::MemorySecond::used) may be for a program that does not count its
/// own. `None` on a system without `/proc`.
///
/// Reads a short file of the system; takes some microseconds.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    of_status(&fs::read_to_string("/proc/self/status").ok()?)
}

/// The resident set in the text of `/proc/self/status`.
fn of_status(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_set_is_read_in_bytes() {
        let text = "Name:\tx\nVmSize:\t   900 kB\nVmRSS:\t   12 kB\nRssAnon:\t    8 kB\n";
        assert_eq!(of_status(text), Some(12 << 10));
        assert_eq!(of_status("Name:\tx\nVmRSS:\t12\n"), None);
        assert_eq!(of_status("Name:\tVmRSS:\n"), None);
    }
}
