//! How much memory this process may use: of the machine, of its control groups, of its own limits;
//! and how much its processors are idle.

use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The root of all control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// The part of the available memory that a server takes by default, as a fraction: the rest is for
/// what an allocator loses to rounding and gaps, for the system, and for other processes.
const SHARE: (u64, u64) = (3, 4);

/// The same, of a limit of the address space, in which an allocator reserves more than it uses.
const SHARE_OF_ADDRESSES: (u64, u64) = (1, 2);

/// The bytes that a server may hold by default. `None` if nothing says how much memory there is.
pub(crate) fn share() -> Option<u64> {
    let text = |path| read_to_string(path).ok();
    let memory = [
        text("/proc/meminfo").and_then(|meminfo| total(&meminfo)),
        text("/proc/self/cgroup").and_then(|groups| of_groups(&groups, Path::new(GROUPS))),
        getrlimit(Resource::Data).current,
    ];
    let addresses = getrlimit(Resource::As).current;
    let part = |bytes: u64, (part, whole)| bytes / whole * part;
    let shares = memory.into_iter().flatten().map(|bytes| part(bytes, SHARE));
    let of_addresses = addresses.map(|bytes| part(bytes, SHARE_OF_ADDRESSES));
    shares.chain(of_addresses).min()
}

/// The memory of the machine, by `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The least limit of memory of the control groups in `groups`, the text of `/proc/self/cgroup`,
/// and of the groups around them. A group may be hidden from this process; then those around it
/// count.
fn of_groups(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (base, file) = if controllers.is_empty() {
            (root.to_owned(), "memory.max")
        } else if controllers.split(',').any(|one| one == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            return None;
        };
        let group: PathBuf = base.join(path.trim_start_matches('/'));
        group
            .ancestors()
            .take_while(|folder| folder.starts_with(&base))
            .filter_map(|folder| read_to_string(folder.join(file)).ok())
            // `max`, for no limit, is no number.
            .filter_map(|text| text.trim().parse().ok())
            .min()
    });
    limits.min()
}

/// How much the processors of the machine are idle.
#[derive(Default)]
pub(crate) struct Processors {
    /// Their idle time when they were looked at last, in ticks of the system's clock.
    idle: Option<u64>,
}

impl Processors {
    /// How much of the time that has passed since the last look they were idle, or did work that
    /// gives way to any other, in thousandths of the time of one. If the system does not say, one
    /// is taken to be idle.
    pub(crate) fn idle(&mut self, passed: Duration) -> usize {
        let now = read_to_string("/proc/stat").ok();
        let now = now.and_then(|stat| idle_ticks(&stat));
        let before = std::mem::replace(&mut self.idle, now);
        let (Some(now), Some(before)) = (now, before) else {
            return 1000;
        };
        let seconds = now.saturating_sub(before) as f64 / clock_ticks_per_second() as f64;
        (seconds / passed.as_secs_f64() * 1000.0) as usize
    }
}

/// The idle time of all processors, by `/proc/stat`.
fn idle_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut times = line.split_whitespace().map(str::parse::<u64>);
    let mut next = || times.next()?.ok();
    let (_user, nice, _system, idle, waiting) = (next()?, next()?, next()?, next()?, next()?);
    Some(nice + idle + waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_memory_of_the_machine_is_read() {
        let text = "MemTotal:       24689764 kB\nMemFree:  1 kB\n";
        assert_eq!(total(text), Some(24_689_764 << 10));
        assert_eq!(total("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn idle_time_is_read() {
        let text = "cpu  100 20 30 4000 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(idle_ticks(text), Some(4070));
        assert_eq!(idle_ticks("cpu  1 2 3 4\n"), None);
        assert_eq!(idle_ticks("cpu0 1 2 3 4 5\n"), None);
    }

    #[test]
    fn the_least_limit_of_the_groups_around_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let limit = |groups| of_groups(groups, root.path());
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/memory.max", "3000\n");
        assert_eq!(limit("0::/a/b\n"), Some(3000));
        write("a/b/memory.max", "2000\n");
        assert_eq!(limit("0::/a/b\n"), Some(2000));
        assert_eq!(limit("0::/a/hidden/c\n"), Some(3000));
        write("memory/memory.limit_in_bytes", "1000\n");
        let mixed = "5:cpu,cpuacct:/x\n4:memory:/hidden\n0::/a\n";
        assert_eq!(limit(mixed), Some(1000));
        assert_eq!(limit("nonsense"), None);
    }
}
