//! The command line, one file for each command: `tremula-lab list`, `tremula-lab run EXPERIMENT`,
//! and the commands that show results.

mod all;
mod best;
mod check;
mod compare;
mod follow;
mod interrupt;
mod list;
mod report;
mod run;
mod shared;
mod simulate;
#[cfg(not(sim))]
mod validate;
mod weigh;

use crate::{LabError, histories, top};
use clap::{Args, Subcommand};
use run::Show;
use shared::print;
use std::process::ExitCode;

/// The flags of `tremula-lab`.
#[derive(Args, Debug)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// Show the experiments, and the engines that can take part.
    List,
    /// Run an experiment, and show a table of its results.
    Run(run::RunArgs),
    /// Run an experiment, and show meanwhile how it goes: each engine's speed, results and shape.
    Top(run::RunArgs),
    /// Run every experiment, one after the other, and show a table of each.
    All(all::AllArgs),
    /// Measure what this machine's caches, locks and threads cost, as a profile for `simulate`.
    Calibrate,
    /// Run an experiment on virtual cores, in virtual time, on a machine that a profile describes.
    Simulate(simulate::SimulateArgs),
    /// Measure workloads on this machine, simulate them on its profile, and show both.
    #[cfg(not(sim))]
    Validate(validate::ValidateArgs),
    /// Show the fastest engine of each case in files of results, as a table in Markdown.
    Best(best::BestArgs),
    /// Show files of results as a page: charts, tables, and what the originals found.
    Report(report::ReportArgs),
    /// Show what changed between two files of results; the status is 3 if something got worse.
    Compare(compare::CompareArgs),
    /// Record what threads do to the tables at once, and check that the answers are right.
    Check(check::CheckArgs),
    /// Check one table, and end with status 2 if it is wrong (for `check`, which starts it in a
    /// process of its own).
    #[command(hide = true)]
    CheckOne(check::CheckOneArgs),
    /// Fill one index, weigh it, and print a line of JSON (for `run`, which starts it in a
    /// process of its own).
    #[command(hide = true)]
    Fill(weigh::FillArgs),
    /// Send a burst through one channel, weigh it, and print a line of JSON (for `run`, which
    /// starts it in a process of its own).
    #[command(hide = true)]
    Burst(weigh::BurstArgs),
}

/// Runs `tremula-lab …`. The status is 0 if all went well, 1 with one line on standard error if
/// not, and 130 if Ctrl-C ended it. `check` ends with 2 if an index of this project was wrong, and
/// `compare` with 3 if something got worse.
#[must_use]
pub fn run(arguments: LabArgs) -> ExitCode {
    let done = match arguments.command {
        LabCommand::List => print(&list::list()),
        LabCommand::Run(arguments) => run::run(arguments, Show::Progress),
        LabCommand::Top(arguments) => {
            top::needs_a_terminal().and_then(|()| run::run(arguments, Show::Everything))
        }
        LabCommand::All(arguments) => all::run(arguments),
        LabCommand::Calibrate => print(&crate::simulate::calibrated()),
        LabCommand::Simulate(arguments) => simulate::run(&arguments),
        #[cfg(not(sim))]
        LabCommand::Validate(arguments) => validate::run(&arguments),
        LabCommand::Best(arguments) => best::run(&arguments),
        LabCommand::Report(arguments) => report::run(arguments),
        LabCommand::Compare(arguments) => match compare::run(&arguments) {
            Ok(true) => return ExitCode::from(crate::compare::WORSE),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        },
        LabCommand::Check(arguments) => match check::run(&arguments) {
            Ok(right) => return status_of(right),
            Err(error) => Err(error),
        },
        LabCommand::CheckOne(arguments) => match check::run_one(&arguments) {
            Ok(right) => return status_of(right),
            Err(error) => Err(error),
        },
        LabCommand::Fill(arguments) => weigh::fill(&arguments),
        LabCommand::Burst(arguments) => weigh::burst(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(LabError::Interrupted) => {
            eprintln!("interrupted");
            ExitCode::from(interrupt::STATUS)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn status_of(right: bool) -> ExitCode {
    if right {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(histories::WRONG)
    }
}
