//! `tremula-lab check`: records what threads do to tables concurrently, and checks the histories.

use super::shared::{parse_seconds, print, refuse_twice, table_of};
use crate::{
    LabError,
    contestants::{ContestantName, Side},
    histories::{self, Outcome},
    memory::this_program,
};
use clap::Args;
use std::{io, process::Command, time::Duration};

#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    /// Tables to check [default: all of this process].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    engines: Vec<ContestantName>,
    /// Short histories of each kind; there is a long one for every 500.
    #[arg(long, value_name = "N", default_value = "4000", value_parser = parse_histories)]
    histories: usize,
    /// How long one table may take.
    #[arg(long, value_name = "S", default_value = "600", value_parser = parse_seconds)]
    patience: Duration,
}

#[derive(Args, Debug)]
pub(super) struct CheckOneArgs {
    engine: ContestantName,
    #[arg(long, value_parser = parse_histories)]
    histories: usize,
}

fn parse_histories(text: &str) -> Result<usize, String> {
    const MOST: usize = 100_000_000;
    match text.parse() {
        Ok(histories) if (1..=MOST).contains(&histories) => Ok(histories),
        _ => Err(format!("a number of histories is 1 to {MOST}")),
    }
}

/// Checks each table in a process of its own. Returns whether the indexes of this project were
/// right. A wrong rival is a finding and no failure.
pub(super) fn run(arguments: &CheckArgs) -> Result<bool, LabError> {
    refuse_twice(&arguments.engines)?;
    let mut names = arguments.engines.clone();
    if names.is_empty() {
        names = ContestantName::all();
        names.retain(|&name| table_of(name).is_ok());
    }
    for &name in &names {
        table_of(name)?;
    }
    let program = this_program()?;
    let mut right = true;
    for name in names {
        let mut command = Command::new(&program);
        command.args(["check-one", name.name()]);
        command.args(["--histories", &arguments.histories.to_string()]);
        let outcome = histories::check_apart(command, arguments.patience)?;
        print(&format!("{:<20} {outcome}\n", name.name()))?;
        let is_ours = name.side() != Side::Rival;
        right &= outcome == Outcome::Right || !is_ours;
    }
    Ok(right)
}

/// Checks one table in this process. Returns whether it was right.
pub(super) fn run_one(arguments: &CheckOneArgs) -> Result<bool, LabError> {
    let table = table_of(arguments.engine)?;
    let mut out = io::stdout().lock();
    histories::check(table, arguments.histories, &mut out).map_err(|error| LabError::Write {
        path: "standard output".into(),
        error,
    })
}
