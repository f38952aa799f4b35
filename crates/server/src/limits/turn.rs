//! How long one client has its thread before the others come.

use super::Bytes;
use std::convert::Infallible;
use std::time::Duration;
use std::{fmt, str::FromStr};

/// The time that a client has its thread while others wait. Thousands of short commands fit, so
/// that giving way costs less than a hundredth. With N busy clients on a thread, another one waits
/// for about N milliseconds.
pub const TURN: Time = Time(Duration::from_millis(1));

/// In a shorter turn, a thread would spend more time on going from client to client than on
/// commands.
pub const SHORTEST_TURN: Time = Time(Duration::from_micros(10));

/// With a longer turn, one busy client makes the others of its thread look dead.
pub const LONGEST_TURN: Time = Time(Duration::from_secs(1));

/// Bytes of keys and values that long replies of all clients hold until they are sent. A list of a
/// million keys with values takes 48 MB, so several clients may have one at once.
pub const MAX_GATHERED: Bytes = Bytes(256 << 20);

/// Below this, lists of a few thousand keys might be refused.
pub const LEAST_GATHERED: Bytes = Bytes(64 << 10);

/// Bytes of a snapshot and of the log that one `RANGE … AS OF` reads: some seconds of a thread
/// apart.
pub const MAX_PAST: Bytes = Bytes(4 << 30);

/// The flags of turns, and of what commands that take several turns may hold.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Time that a client has its thread before the others come, 10us to 1s
    #[arg(long = "turn", value_name = "TIME", default_value_t = TURN, value_parser = parse_turn)]
    pub time: Time,

    /// Bytes that lists of keys hold until they are sent, of all clients together; 64kb or more
    #[arg(long, value_name = "BYTES", default_value_t = MAX_GATHERED, value_parser = parse_gathered)]
    pub max_gathered: Bytes,

    /// Bytes of a snapshot and of the log that one RANGE with AS OF reads
    #[arg(long, value_name = "BYTES", default_value_t = MAX_PAST)]
    pub max_past: Bytes,

    /// Refused with a hint.
    #[doc(hidden)]
    #[arg(long, value_name = "ROWS", hide = true, value_parser = refuse_search_slice)]
    pub search_slice: Option<Infallible>,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            time: TURN,
            max_gathered: MAX_GATHERED,
            max_past: MAX_PAST,
            search_slice: None,
        }
    }
}

fn parse_turn(text: &str) -> Result<Time, String> {
    let time: Time = text.parse()?;
    if (SHORTEST_TURN.0..=LONGEST_TURN.0).contains(&time.0) {
        Ok(time)
    } else {
        Err(format!("a turn takes {SHORTEST_TURN} to {LONGEST_TURN}"))
    }
}

fn parse_gathered(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    if bytes.0 < LEAST_GATHERED.0 {
        return Err(format!("lists may hold {LEAST_GATHERED} at least"));
    }
    Ok(bytes)
}

fn refuse_search_slice(_: &str) -> Result<Infallible, String> {
    Err("searches are interrupted by time; use --turn TIME, for instance --turn 1ms".to_owned())
}

/// A short time, read and printed as people write it: `500us`, `1ms`, `2s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

/// The units, the largest first.
const UNITS: [(&str, Duration); 3] = [
    ("s", Duration::from_secs(1)),
    ("ms", Duration::from_millis(1)),
    ("us", Duration::from_micros(1)),
];

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        for (name, unit) in UNITS {
            let unit = unit.as_nanos();
            if nanoseconds >= unit && nanoseconds.is_multiple_of(unit) {
                return write!(out, "{}{name}", nanoseconds / unit);
            }
        }
        write!(out, "{nanoseconds}ns")
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        let unit = UNITS
            .iter()
            .find(|(name, _)| text[digits.len()..] == **name);
        let count = digits.parse::<u32>().ok();
        unit.zip(count)
            .and_then(|((_, unit), count)| unit.checked_mul(count))
            .map(Self)
            .ok_or_else(|| format!("'{text}' is not a time; write 500us, 1ms or 1s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn parsed(arguments: &[&str]) -> Result<TurnLimits, String> {
        let command = TurnLimits::augment_args(clap::Command::new("serve"));
        let matches = command.try_get_matches_from([&["serve"], arguments].concat());
        let matches = matches.map_err(|error| error.to_string())?;
        TurnLimits::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn times_print_as_they_read() {
        for text in ["10us", "999us", "1ms", "1500us", "1s"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "ms",
            "1",
            "-1ms",
            "1.5ms",
            "1 ms",
            "1m",
            "1µs",
            "99999999999s",
        ] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_turn_has_a_default_and_a_range() {
        assert_eq!(parsed(&[]), Ok(TurnLimits::default()));
        assert_eq!(
            parsed(&["--turn", "1000ms"]).map(|limits| limits.time),
            Ok(LONGEST_TURN)
        );
        for wrong in ["9us", "2s", "0ms"] {
            let error = parsed(&["--turn", wrong]).unwrap_err();
            assert!(
                error.contains(wrong) && error.contains("10us to 1s"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_flag_that_turns_replace_is_refused_with_a_hint() {
        let error = parsed(&["--search-slice", "4096"]).unwrap_err();
        assert!(error.contains("--turn 1ms"), "{error}");
    }
}
