//! `tremula backup` and `tremula restore`: copies of what a server keeps.

use clap::Args;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tremula_store::{CopiedStore, CopyStoreError, Point, Sequence, backup, restore};

/// Copy what a server keeps, while it runs or not.
#[derive(Args)]
pub(crate) struct Backup {
    /// The directory of the server: its --dir
    directory: PathBuf,
    /// Where to put the copy: a new directory, or an empty one
    target: PathBuf,
    /// Copy every snapshot and all of the log, so that the copy can be restored to any state that
    /// the directory can be
    #[arg(long)]
    history: bool,
}

/// Make a directory for `tremula serve --dir` from a backup, or from another directory.
#[derive(Args)]
pub(crate) struct Restore {
    /// The backup, or the directory of a server, which may run
    from: PathBuf,
    /// Where to put it: a new directory, or an empty one
    directory: PathBuf,
    /// The state to restore: the number of an effect, a time as 2026-01-31T12:00:00Z (or with an
    /// offset), or @ and seconds since 1970. What the log holds together stays together, so it may
    /// be the state a few milliseconds before [default: the last one]
    #[arg(long, value_name = "SEQUENCE|TIME")]
    to: Option<To>,
}

/// A state, as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct To(Point);

impl FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map(Self).ok_or_else(|| {
            format!(
                "'{text}' is no state; write the number of an effect, a time as 2026-01-31T12:00:00Z, or @ and seconds since 1970"
            )
        })
    }
}

fn parse(text: &str) -> Option<Point> {
    if let Ok(number) = text.parse() {
        return Some(Point::Sequence(Sequence::new(number)));
    }
    let Some(seconds) = text.strip_prefix('@') else {
        return date(text);
    };
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let are_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || !(1..=9).contains(&fraction.len()) {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    let since = Duration::new(whole.parse().ok()?, nanos);
    UNIX_EPOCH.checked_add(since).map(Point::Time)
}

/// A time by RFC 3339: with `Z`, or with an offset.
fn date(text: &str) -> Option<Point> {
    let is_local = |(at, byte): (usize, u8)| (at > 10 && matches!(byte, b'+' | b'-')).then_some(at);
    let sign = text.bytes().enumerate().find_map(is_local);
    let Some(sign) = sign else {
        let utc = text.to_ascii_uppercase();
        return humantime::parse_rfc3339(&utc).ok().map(Point::Time);
    };
    let (local, offset) = text.split_at_checked(sign)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let number = |digits: &str, below: u64| {
        let is_number = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits
            .parse::<u64>()
            .ok()
            .filter(|number| is_number && *number < below)
    };
    let seconds = number(hours, 24)? * 3600 + number(minutes, 60)? * 60;
    let local = format!("{}Z", local.to_ascii_uppercase());
    let time = humantime::parse_rfc3339(&local).ok()?;
    let offset_by = Duration::from_secs(seconds);
    let time = if offset.starts_with('+') {
        time.checked_sub(offset_by)
    } else {
        time.checked_add(offset_by)
    };
    time.map(Point::Time)
}

/// Copies, and says what the copy has.
pub(crate) fn run_backup(command: &Backup) -> ExitCode {
    let copied = backup(&command.directory, &command.target, command.history);
    report(copied, |copied| {
        println!(
            "{} is a backup of {}: {}, checked",
            command.target.display(),
            command.directory.display(),
            Shown(copied)
        );
        if command.history {
            println!(
                "it can be restored to sequence {} and later",
                copied.earliest
            );
        }
    })
}

/// Restores, and says what is there now.
pub(crate) fn run_restore(command: &Restore) -> ExitCode {
    let point = command.to.map_or(Point::End, |to| to.0);
    let copied = restore(&command.from, &command.directory, point);
    report(copied, |copied| {
        println!(
            "{} is {} as it was: {}, checked",
            command.directory.display(),
            command.from.display(),
            Shown(copied)
        );
        println!(
            "serve it with: tremula serve --dir {}",
            command.directory.display()
        );
    })
}

fn report(copied: Result<CopiedStore, CopyStoreError>, show: impl Fn(&CopiedStore)) -> ExitCode {
    match copied {
        Ok(copied) => {
            for damaged in &copied.damaged {
                eprintln!("warning: a newer snapshot is not used: {damaged}");
            }
            show(&copied);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a copy has, in words.
struct Shown<'a>(&'a CopiedStore);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copied = self.0;
        write!(out, "up to sequence {}", copied.last)?;
        if let Some(written) = copied.written {
            write!(out, ", written {}", shown(written))?;
        }
        write!(out, ", {} bytes", copied.bytes)
    }
}

/// A time as `--to` takes it.
pub(crate) fn shown(time: SystemTime) -> impl fmt::Display {
    humantime::format_rfc3339_micros(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_numbers_and_times() {
        let time = |seconds, micros| {
            let since = Duration::from_secs(seconds) + Duration::from_micros(micros);
            Point::Time(UNIX_EPOCH + since)
        };
        let sequence = |number| Point::Sequence(Sequence::new(number));
        for (text, point) in [
            ("0", sequence(0)),
            ("1700000000", sequence(1_700_000_000)),
            ("@1700000000", time(1_700_000_000, 0)),
            ("@1700000000.25", time(1_700_000_000, 250_000)),
            ("2023-11-14T22:13:20Z", time(1_700_000_000, 0)),
            ("2023-11-14t22:13:20.000001z", time(1_700_000_000, 1)),
            ("2023-11-14T23:13:20+01:00", time(1_700_000_000, 0)),
            ("2023-11-14T18:43:20.5-03:30", time(1_700_000_000, 500_000)),
        ] {
            assert_eq!(text.parse(), Ok(To(point)), "{text}");
        }
        for text in [
            "",
            "-1",
            "yesterday",
            "2023-11-14",
            "2023-11-14T22:13:20",
            "2023-11-14T22:13:20+1:00",
            "2023-11-14T22:13:20+24:00",
            "2023-13-14T22:13:20Z",
            "@1700000000.",
            "@+1",
            "@",
            "99999999999999999999",
        ] {
            let refused = text.parse::<To>().unwrap_err();
            assert!(
                refused.starts_with(&format!("'{text}' is no state")),
                "{refused}"
            );
        }
        let moment = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_001);
        assert_eq!(
            shown(moment).to_string().parse(),
            Ok(To(Point::Time(moment)))
        );
    }
}
