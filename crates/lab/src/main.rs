//! `tremula-lab`: the lab as a command of its own, with the flags of `tremula lab` and the
//! same allocator.

#![forbid(unsafe_code)]

use clap::Parser;
use std::process::ExitCode;
use tremula_lab::cli::{self, LabArgs};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure ordered indexes, and their rivals, on this machine.
#[derive(Parser)]
#[command(name = "tremula-lab", version, arg_required_else_help = true)]
struct Command {
    #[command(flatten)]
    arguments: LabArgs,
}

fn main() -> ExitCode {
    cli::run(Command::parse().arguments)
}
