//! The command line.

use std::process::ExitCode;

/// Flags.
#[derive(clap::Args, Debug)]
pub struct LabArgs {}

/// Runs the command.
#[must_use]
pub fn run(_arguments: LabArgs) -> ExitCode {
    ExitCode::FAILURE
}
