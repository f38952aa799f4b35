//! `tremula-lab compare`: what changed between two files of results.

use super::shared::print;
use crate::{
    LabError,
    compare::{self, Comparison},
    results,
};
use clap::Args;
use std::path::PathBuf;

/// The flags of `tremula-lab compare`.
#[derive(Args, Debug)]
pub(super) struct CompareArgs {
    /// What was measured before: a file that `run --json` has written.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// What was measured after.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// By how many percent a figure has to differ to count as changed.
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = parse_threshold)]
    threshold: f64,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

fn parse_threshold(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..1000.0).contains(&percent) => Ok(percent),
        _ => Err("it is a number of percent, 0 to less than 1000".to_owned()),
    }
}

/// Prints the comparison. Returns whether a figure got worse, or a contestant that answered right
/// before gives wrong answers now.
pub(super) fn run(arguments: &CompareArgs) -> Result<bool, LabError> {
    let read = |path: &PathBuf| {
        let records = results::read(std::slice::from_ref(path))?;
        Ok::<_, LabError>(results::without_wrong(results::latest(records)))
    };
    let ((old, was_wrong), (new, is_wrong)) = (read(&arguments.old)?, read(&arguments.new)?);
    for sentence in &is_wrong {
        eprintln!("note: {sentence}");
    }
    let is_newly_wrong = is_wrong
        .iter()
        .any(|sentence| !was_wrong.contains(sentence));
    let comparison = Comparison::new(&old, &new, arguments.threshold / 100.0);
    let text = if arguments.json {
        serde_json::to_string_pretty(&comparison).expect("a comparison is plain data") + "\n"
    } else {
        compare::table(&comparison)
    };
    print(&text)?;
    Ok(comparison.is_worse() || is_newly_wrong)
}
