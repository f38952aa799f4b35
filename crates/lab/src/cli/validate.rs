//! `tremula-lab validate`: what the profile of this machine predicts, beside what it does.

use super::shared::print;
use crate::{
    LabError, record,
    simulate::{
        Profile, start,
        validation::{self, THREADS, WORK, Work},
    },
};
use clap::{Args, ValueEnum};
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

#[derive(Args, Debug)]
pub(super) struct ValidateArgs {
    /// The profile of the machine at hand: a name, or a TOML file that `calibrate` has written.
    #[arg(long, value_name = "PROFILE")]
    machine: String,
    /// The file for the measurements and the predictions, to which they are appended: JSON Lines.
    #[arg(long, value_name = "FILE")]
    json: PathBuf,
    /// What is done before the table is shown.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A,B", default_values = ["measure", "predict"])]
    steps: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Measure what the file does not have.
    Measure,
    /// Simulate everything.
    Predict,
    /// Nothing: show what the file has.
    Show,
}

/// Measures, simulates, and shows how near the predictions are.
pub(super) fn run(arguments: &ValidateArgs) -> Result<(), LabError> {
    let profile = Profile::find(&arguments.machine)?;
    if arguments.steps.contains(&Part::Measure) {
        for work in WORK {
            measure(&work, &arguments.json)?;
        }
    }
    if arguments.steps.contains(&Part::Predict) {
        for work in WORK {
            predict(&work, &arguments.machine, &arguments.json)?;
        }
    }
    let records = record::read(&arguments.json)?;
    print(&validation::table(&validation::compared(
        &records,
        &profile.name,
    )))
}

/// The flags that both commands have.
fn flags(command: &str, work: &Work, json: &Path) -> Vec<OsString> {
    let mut flags: Vec<OsString> = vec![command.into(), work.experiment.into()];
    let keys = work.keys.map(|keys| keys.to_string());
    let named = [
        ("--engines", Some(work.engines)),
        ("--mixes", work.mixes),
        ("--keys", keys.as_deref()),
    ];
    for (name, value) in named {
        flags.extend(value.iter().flat_map(|value| [name.into(), value.into()]));
    }
    flags.extend(["--json".into(), json.into()]);
    flags
}

fn measure(work: &Work, json: &Path) -> Result<(), LabError> {
    let program = env::current_exe().unwrap_or_else(|_| "tremula-lab".into());
    let mut flags = flags("run", work, json);
    let more = [
        "--threads",
        THREADS,
        "--seconds",
        "0.2",
        "--runs",
        "7",
        "--resume",
    ];
    flags.extend(more.map(OsString::from));
    let failed = |error| LabError::Program {
        program: program.display().to_string(),
        error,
    };
    let status = Command::new(&program)
        .args(flags)
        .status()
        .map_err(failed)?;
    ended(status.code())
}

fn predict(work: &Work, machine: &str, json: &Path) -> Result<(), LabError> {
    let mut flags = flags("simulate", work, json);
    let microseconds = work.microseconds.to_string();
    let more = [
        "--machine",
        machine,
        "--cores",
        THREADS,
        "--microseconds",
        &microseconds,
    ];
    flags.extend(more.map(OsString::from));
    ended(start(&flags)?.code())
}

fn ended(code: Option<i32>) -> Result<(), LabError> {
    match code {
        Some(0) => Ok(()),
        // It has said itself what went wrong.
        code => std::process::exit(code.unwrap_or(1)),
    }
}
