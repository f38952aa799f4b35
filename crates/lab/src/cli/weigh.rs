//! `tremula-lab fill` and `tremula-lab burst`, which `run` starts in processes of their own to
//! weigh them.

use super::shared::{parse_threads, print, table_of};
use crate::{
    LabError,
    contestants::{self, ChannelKind, ContestantName},
    keys::KeySet,
    measure::pin_workers,
    workload::FillJob,
};
use clap::Args;
use serde::Serialize;

#[derive(Args, Debug)]
pub(super) struct FillArgs {
    engine: ContestantName,
    #[arg(long)]
    key_set: KeySet,
    #[arg(long)]
    keys: u64,
    #[arg(long, value_parser = parse_threads)]
    threads: usize,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    run: usize,
    /// Pin the threads.
    #[arg(long)]
    pin: bool,
}

#[derive(Args, Debug)]
pub(super) struct BurstArgs {
    engine: ContestantName,
    #[arg(long)]
    keys: u64,
    #[arg(long, value_parser = parse_threads)]
    threads: usize,
    /// Pin the threads.
    #[arg(long)]
    pin: bool,
}

/// Fills a table, and prints what it weighs.
pub(super) fn fill(arguments: &FillArgs) -> Result<(), LabError> {
    let _pinned = pin_workers(arguments.pin)?;
    let job = FillJob {
        key_set: arguments.key_set,
        count: arguments.keys,
        threads: arguments.threads,
        seed: arguments.seed,
        run: arguments.run,
    };
    print_report(&contestants::fill(table_of(arguments.engine)?, &job)?)
}

/// Sends a burst through a channel, and prints what it weighs.
pub(super) fn burst(arguments: &BurstArgs) -> Result<(), LabError> {
    let engine = arguments.engine;
    engine.available()?;
    let _pinned = pin_workers(arguments.pin)?;
    let mut kinds = ChannelKind::all();
    let kind = kinds
        .find(|kind| kind.name() == engine.name())
        .ok_or(LabError::Unavailable {
            engine: engine.name(),
            missing: "it is no channel of this process",
        })?;
    print_report(&contestants::burst(
        kind,
        arguments.keys,
        arguments.threads,
    )?)
}

fn print_report(report: &impl Serialize) -> Result<(), LabError> {
    print(&(serde_json::to_string(report).expect("a report is plain data") + "\n"))
}
