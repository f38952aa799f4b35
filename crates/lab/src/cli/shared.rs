//! What the commands share: parsing their flags, and writing to standard output.

use crate::{
    LabError, Settings,
    contestants::{ContestantName, Table},
};
use std::{
    io::{self, Write},
    time::Duration,
};

pub(super) fn parse_threads(text: &str) -> Result<usize, String> {
    let most = Settings::MOST_THREADS;
    match text.parse() {
        Ok(threads) if (1..=most).contains(&threads) => Ok(threads),
        _ => Err(format!("a number of threads is 1 to {most}")),
    }
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    const MOST: f64 = 86_400.0;
    match text.parse() {
        Ok(seconds) if (0.001..=MOST).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("it is a number of seconds, 0.001 to {MOST}")),
    }
}

/// Refuses a name that is given twice.
pub(super) fn refuse_twice<'a, T: PartialEq + ToString + 'a>(
    names: impl IntoIterator<Item = &'a T>,
) -> Result<(), LabError> {
    let mut seen: Vec<&T> = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Err(LabError::Twice {
                name: name.to_string(),
            });
        }
        seen.push(name);
    }
    Ok(())
}

/// The table of this process with this name.
pub(super) fn table_of(name: ContestantName) -> Result<Table, LabError> {
    name.available()?;
    Table::named(name.name()).ok_or(LabError::Unavailable {
        engine: name.name(),
        missing: "it is no table of this process",
    })
}

/// Writes to standard output. A reader that has left (`| head`) is no error.
pub(super) fn print(text: &str) -> Result<(), LabError> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(LabError::Write {
            path: "standard output".into(),
            error,
        }),
        _ => Ok(()),
    }
}
