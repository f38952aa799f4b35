//! The `tremula` command.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An in-memory store for programs that use every core.
#[derive(Parser)]
#[command(name = "tremula", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve an ordered table over the Redis protocol.
    Serve(tremula_server::cli::ServeArgs),
    /// Measure the indexes, and their rivals, on this machine.
    Lab(tremula_lab::cli::LabArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(arguments) => tremula_server::cli::run(arguments),
        Command::Lab(arguments) => tremula_lab::cli::run(arguments),
    }
}
