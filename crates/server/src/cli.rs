//! The command line.

use std::process::ExitCode;

/// Flags.
#[derive(clap::Args, Debug)]
pub struct ServeArgs {}

/// Runs the command.
#[must_use]
pub fn run(_arguments: ServeArgs) -> ExitCode {
    ExitCode::FAILURE
}
