//! What is kept of commands that take long, and who may debug.

use clap::ArgAction;
use clap::builder::{BoolishValueParser, RangedU64ValueParser};
use std::fmt;
use std::str::FromStr;

/// Microseconds from which a command is kept in `SLOWLOG`, as in Redis.
pub const SLOWLOG_LOG_SLOWER_THAN: i64 = 10_000;

/// Entries of `SLOWLOG`, as in Redis. One takes five kilobytes at most.
pub const SLOWLOG_MAX_LEN: usize = 128;

/// Milliseconds from which an event is kept for `LATENCY`; 0 is none, as in Redis.
pub const LATENCY_MONITOR_THRESHOLD: u64 = 0;

/// The percentiles that `INFO latencystats` shows, as in Redis.
pub const PERCENTILES: [u32; 3] = [500_000, 990_000, 999_000];

/// Percentiles that may be shown of each command.
const MOST_PERCENTILES: usize = 16;

/// The parts of a percent.
const PARTS: f64 = 10_000.0;

/// Percentiles, in ten-thousandths of a percent; written as `50 99 99.9`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Percentiles(pub Vec<u32>);

impl Percentiles {
    /// Each as a number of percent.
    pub(crate) fn percents(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|parts| f64::from(*parts) / PARTS)
    }
}

impl Default for Percentiles {
    fn default() -> Self {
        Self(PERCENTILES.to_vec())
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, percent) in self.percents().enumerate() {
            let separator = if index > 0 { " " } else { "" };
            write!(out, "{separator}{percent}")?;
        }
        Ok(())
    }
}

impl FromStr for Percentiles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = |word: &str| {
            let percent = word.parse::<f64>().ok();
            let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
            // At most a million.
            percent.map(|percent| (percent * PARTS).round() as u32)
        };
        let percents: Option<Vec<_>> = text.split_ascii_whitespace().map(read).collect();
        percents
            .filter(|percents| percents.len() <= MOST_PERCENTILES)
            .map(Self)
            .ok_or_else(|| {
                format!(
                    "'{text}' is no list of at most {MOST_PERCENTILES} numbers from 0 to 100; \
                     write '50 99 99.9'"
                )
            })
    }
}

/// The most entries of `SLOWLOG`: half a gigabyte of the longest.
pub(crate) const MOST_SLOWLOG: usize = 100_000;

/// Which clients may use `DEBUG`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DebugAccess {
    /// Nobody.
    #[default]
    No,
    /// Clients of this machine.
    Local,
    /// Everybody.
    Yes,
}

impl fmt::Display for DebugAccess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::No => "no",
            Self::Local => "local",
            Self::Yes => "yes",
        })
    }
}

/// The flags of what an operator watches.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct WatchLimits {
    /// Microseconds from which a command is kept in SLOWLOG; 0 is all, -1 none
    #[arg(long, value_name = "MICROSECONDS", default_value_t = SLOWLOG_LOG_SLOWER_THAN, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub slowlog_log_slower_than: i64,

    /// Entries of SLOWLOG, 0 to 100000
    #[arg(long, value_name = "N", default_value_t = SLOWLOG_MAX_LEN, value_parser = RangedU64ValueParser::<usize>::new().range(0..=MOST_SLOWLOG as u64))]
    pub slowlog_max_len: usize,

    /// Milliseconds from which a command or an eviction is kept for LATENCY; 0 is none
    #[arg(long, value_name = "MILLISECONDS", default_value_t = LATENCY_MONITOR_THRESHOLD)]
    pub latency_monitor_threshold: u64,

    /// Keep how long each command takes, for LATENCY HISTOGRAM and INFO latencystats: yes or no
    #[arg(long, value_name = "YES|NO", default_value_t = true, action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub latency_tracking: bool,

    /// Percentiles that INFO latencystats shows, at most 16
    #[arg(long, value_name = "PERCENTS", default_value_t = Percentiles::default())]
    pub latency_tracking_info_percentiles: Percentiles,

    /// Clients that may use DEBUG: no, local or yes
    #[arg(long, value_name = "WHO", default_value_t = DebugAccess::No, hide_possible_values = true, value_enum)]
    pub enable_debug_command: DebugAccess,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self {
            slowlog_log_slower_than: SLOWLOG_LOG_SLOWER_THAN,
            slowlog_max_len: SLOWLOG_MAX_LEN,
            latency_monitor_threshold: LATENCY_MONITOR_THRESHOLD,
            latency_tracking: true,
            latency_tracking_info_percentiles: Percentiles::default(),
            enable_debug_command: DebugAccess::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn parsed(arguments: &[&str]) -> Result<WatchLimits, String> {
        let command = WatchLimits::augment_args(clap::Command::new("serve"));
        let matches = command.try_get_matches_from([&["serve"], arguments].concat());
        let matches = matches.map_err(|error| error.to_string())?;
        WatchLimits::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn every_flag_has_the_default_and_a_range() {
        assert_eq!(parsed(&[]), Ok(WatchLimits::default()));
        assert_eq!(
            parsed(&[
                "--slowlog-log-slower-than",
                "-1",
                "--enable-debug-command",
                "local"
            ])
            .map(|limits| (limits.slowlog_log_slower_than, limits.enable_debug_command)),
            Ok((-1, DebugAccess::Local))
        );
        for (flag, wrong, range) in [
            ("--slowlog-log-slower-than", "-2", "-1.."),
            ("--slowlog-max-len", "100001", "0..=100000"),
            ("--latency-monitor-threshold", "-1", "-1"),
            ("--latency-tracking", "perhaps", "perhaps"),
            ("--latency-tracking-info-percentiles", "50 101", "0 to 100"),
            ("--enable-debug-command", "perhaps", "perhaps"),
        ] {
            let error = parsed(&[flag, wrong]).unwrap_err();
            assert!(error.contains(range), "{flag} {wrong}: {error}");
        }
    }
}
