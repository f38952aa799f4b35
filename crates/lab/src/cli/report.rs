//! `tremula-lab report`: shows files of results as a page.

use crate::{LabError, page, results};
use clap::Args;
use std::{
    fs,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

/// The flags of `tremula-lab report`.
#[derive(Args, Debug)]
pub(super) struct ReportArgs {
    /// Files that `run --json` has written. Of several measurements of one engine in one case the
    /// last one counts.
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,
    /// The page to write.
    #[arg(short, long, value_name = "PAGE", default_value = "report.html")]
    output: PathBuf,
    /// A folder for the charts, each in a file of its own: `adaptation-1.svg` and so on.
    #[arg(long, value_name = "FOLDER")]
    charts: Option<PathBuf>,
    /// The day that stands in the head of the page [default: today].
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

/// Writes the page.
pub(super) fn run(arguments: ReportArgs) -> Result<(), LabError> {
    let records = results::read(&arguments.results)?;
    let date = arguments.date.unwrap_or_else(today);
    if let Some(folder) = arguments.charts {
        fs::create_dir_all(&folder).map_err(|error| LabError::Write {
            path: folder.clone(),
            error,
        })?;
        for (name, svg) in page::charts(records.clone()) {
            write(folder.join(name).with_extension("svg"), &svg)?;
        }
    }
    write(arguments.output, &page::page(records, &date))
}

fn write(path: PathBuf, text: &str) -> Result<(), LabError> {
    fs::write(&path, text).map_err(|error| LabError::Write { path, error })
}

/// Today by the system's clock, in UTC.
fn today() -> String {
    const SECONDS_A_DAY: u64 = 86_400;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    day(since.map_or(0, |time| time.as_secs() / SECONDS_A_DAY))
}

/// The date this many days after 1970-01-01, in the Gregorian calendar.
fn day(mut days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_dates() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(59), "1970-03-01");
        assert_eq!(day(10_957), "2000-01-01");
        assert_eq!(day(11_016), "2000-02-29");
        assert_eq!(day(20_779), "2026-11-22");
        assert_eq!(day(20_818), "2026-12-31");
    }
}
