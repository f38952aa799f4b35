//! The forms that values have in Redis's configuration.

use crate::limits::MOST_BYTES;

/// The longest time in seconds.
const YEAR: u64 = 365 * 24 * 60 * 60;

/// A number of bytes as Redis's configuration has it.
pub(super) fn memory(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let count: u64 = digits.parse().ok().filter(|_| !digits.starts_with('+'))?;
    count.checked_mul(unit)
}

/// Whose output is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Normal,
    Subscriber,
}

/// The hard limit, the soft limit and its seconds.
pub(super) type Limits = (u64, u64, u64);

/// The least hard limit of what waits for a client.
pub(super) const LEAST_OUTPUT: u64 = 1 << 10;

/// The limits of each class in `normal 0 0 0 pubsub 0 0 0`, in their order.
pub(super) fn output_limits(text: &str) -> Result<Vec<(Class, Limits)>, String> {
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let limits = words.chunks_exact(4).map(|words| {
        let class = match &words[0].to_ascii_lowercase()[..] {
            "normal" => Class::Normal,
            "pubsub" => Class::Subscriber,
            "slave" | "replica" => {
                return Err(format!("there are no clients of the class '{}'", words[0]));
            }
            _ => {
                let wrong = "Invalid client class specified in buffer limit configuration.";
                return Err(wrong.to_owned());
            }
        };
        let wrong = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        let most = MOST_BYTES.0 as u64;
        let read = |text| memory(text).filter(|bytes| *bytes <= most).ok_or(wrong);
        let (hard, soft) = (read(words[1])?, read(words[2])?);
        let seconds: u64 = words[3].parse().map_err(|_| wrong)?;
        if (1..LEAST_OUTPUT).contains(&hard) || seconds > YEAR {
            return Err(wrong.to_owned());
        }
        Ok((class, (hard, soft, seconds.max(1))))
    });
    limits.collect()
}
