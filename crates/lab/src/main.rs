//! The command `tremula-lab`, with the allocator of the command `tremula`, or with the system's if
//! it is built with the feature `system-allocator`.

#![forbid(unsafe_code)]

use clap::Parser;
#[cfg(not(any(feature = "system-allocator", sim)))]
use mimalloc::MiMalloc as Allocator;
#[cfg(all(feature = "system-allocator", not(sim)))]
use std::alloc::System as Allocator;
use std::process::ExitCode;
use tremula_lab::cli::{self, LabArgs};
#[cfg(not(sim))]
use tremula_sync::counting_allocator::CountingAllocator;

/// The lab that simulates has the same objects on the same cache lines in each run.
#[cfg(sim)]
#[global_allocator]
static ALLOCATOR: tremula_sync::sim::Allocator = tremula_sync::sim::Allocator;

#[cfg(not(sim))]
#[global_allocator]
static ALLOCATOR: CountingAllocator<Allocator> = CountingAllocator::new(Allocator);

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
