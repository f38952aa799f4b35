//! `tremula-lab best`: the fastest engine of each case.

use super::shared::print;
use crate::{LabError, best, record, results};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct BestArgs {
    /// Files that `run --json` has written.
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,
}

/// Shows the table.
pub(super) fn run(arguments: &BestArgs) -> Result<(), LabError> {
    let mut records = Vec::new();
    for path in &arguments.results {
        records.extend(record::read(path)?);
    }
    let (records, wrong) = results::without_wrong(records);
    for sentence in wrong {
        eprintln!("note: {sentence}");
    }
    print(&best::table(&records)?)
}
