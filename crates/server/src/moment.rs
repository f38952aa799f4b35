//! States of the past, as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, UNIX_EPOCH};
use tremula_store::{Point, Sequence};

/// A state of a store, as people name it: the number of an effect; a time by RFC 3339 with `Z` or
/// an offset; or `@` and seconds since 1970.
///
/// ```
/// use tremula_server::moment::Moment;
/// use tremula_store::{Point, Sequence};
///
/// assert_eq!("17".parse(), Ok(Moment(Point::Sequence(Sequence::new(17)))));
/// let times = ["2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "@1700000000"];
/// let times = times.map(|text| text.parse::<Moment>().unwrap());
/// assert!(times.iter().all(|time| *time == times[0]));
/// assert!("yesterday".parse::<Moment>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(pub Point);

/// A text that names no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMoment(String);

impl fmt::Display for NoMoment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "'{}' is no state; write the number of an effect, a time as 2026-01-31T12:00:00Z, or @ and seconds since 1970",
            self.0
        )
    }
}

impl std::error::Error for NoMoment {}

impl FromStr for Moment {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, NoMoment> {
        parse(text)
            .map(Self)
            .ok_or_else(|| NoMoment(text.to_owned()))
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
            assert_eq!(text.parse(), Ok(Moment(point)), "{text}");
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
            let refused = text.parse::<Moment>().unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("'{text}' is no state")),
                "{refused}"
            );
        }
        let moment = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_001);
        assert_eq!(
            humantime::format_rfc3339_micros(moment).to_string().parse(),
            Ok(Moment(Point::Time(moment)))
        );
    }
}
