//! How much of the log stays, as people write it.

use crate::limits::Bytes;
use std::fmt;
use std::str::FromStr;
use tremula_log::Keep;

/// What stays of the log though no snapshot needs it: bytes, or a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogKeep(pub Keep);

impl fmt::Display for LogKeep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Keep::Bytes(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                Bytes(bytes).fmt(out)
            }
            Keep::Time(time) => {
                // Without spaces it is one word for every shell.
                let text = humantime::format_duration(time).to_string();
                out.write_str(&text.replace(' ', ""))
            }
            _ => out.write_str("0"),
        }
    }
}

impl FromStr for LogKeep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(bytes) = text.parse::<Bytes>() {
            return Ok(Self(match bytes.0 {
                0 => Keep::Nothing,
                bytes => Keep::Bytes(bytes as u64),
            }));
        }
        match humantime::parse_duration(text) {
            Ok(time) if time.is_zero() => Ok(Self(Keep::Nothing)),
            Ok(time) => Ok(Self(Keep::Time(time))),
            Err(_) => Err(format!(
                "'{text}' is neither a number of bytes nor a time; write 10gb, 512mb, 7d, 12h or 30min"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sizes_and_times_are_told_apart_and_print_as_they_read() {
        let time = |seconds| Keep::Time(Duration::from_secs(seconds));
        for (text, keep, printed) in [
            ("0", Keep::Nothing, "0"),
            ("0s", Keep::Nothing, "0"),
            ("10gb", Keep::Bytes(10 << 30), "10gb"),
            ("1000", Keep::Bytes(1000), "1000"),
            ("2MB", Keep::Bytes(2 << 20), "2mb"),
            ("7d", time(7 * 24 * 3600), "7days"),
            ("30min", time(1800), "30m"),
            ("1h 30m", time(5400), "1h30m"),
        ] {
            let parsed: LogKeep = text.parse().unwrap();
            assert_eq!(parsed, LogKeep(keep), "{text}");
            assert_eq!(parsed.to_string(), printed);
            assert_eq!(printed.parse(), Ok(parsed));
        }
        for text in [
            "",
            "-1",
            "10 gigabytes",
            "h",
            "week",
            "99999999999999999999gb",
        ] {
            let refused = text.parse::<LogKeep>().unwrap_err();
            assert!(
                refused.starts_with(&format!("'{text}' is neither")),
                "{refused}"
            );
        }
    }
}
