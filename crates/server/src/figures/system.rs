//! What the system says of this process.

use std::fs;

/// Ticks of the times of `/proc/self/stat` in a second, on every Linux.
const TICKS: f64 = 100.0;

/// The seconds that this process has computed, in the system and by itself.
pub(super) fn processor_seconds() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process, which may hold anything, ends with the last bracket.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS);
    let own = seconds()?;
    Some((seconds()?, own))
}

/// The system's name and release, as `uname` has them.
pub(super) fn system_name() -> String {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        text.unwrap_or_default().trim().to_owned()
    };
    format!(
        "{} {} {}",
        read("ostype"),
        read("osrelease"),
        std::env::consts::ARCH
    )
}
