//! The command `tremula-lab`, with the allocator of the command `tremula`.

#![forbid(unsafe_code)]

use clap::Parser;
use mimalloc::MiMalloc;
use std::process::ExitCode;
use tremula_lab::cli::{self, LabArgs};
use tremula_sync::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator<MiMalloc> = CountingAllocator::new(MiMalloc);

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
