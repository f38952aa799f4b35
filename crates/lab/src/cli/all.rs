//! `tremula-lab all`: every experiment, as the plan says, or a part of them.

use super::{
    follow::{Follow, about},
    run::{measure, tell_build, tell_left_out},
    shared::{print, refuse_twice},
};
use crate::{
    LabError, Settings,
    contestants::ContestantName,
    experiments::{self, Experiment},
    memory::FillCommand,
    part::Part,
    plan::{LeftOut, Plan, Why},
    report,
    suite::{self, Extent},
};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct AllArgs {
    /// A bit of everything, within ten minutes on two cores [default].
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All that figures are quoted from: hours on two cores. See `--part`.
    #[arg(long)]
    full: bool,
    /// Lookups, inserts and scans of fifty million integers, in the four tables that are ahead:
    /// about half an hour, and some gigabytes of memory.
    #[arg(long, conflicts_with_all = ["quick", "full"])]
    huge: bool,
    /// Only the K-th of N parts that take about as long as each other. With the same other flags
    /// and file, N runs measure everything.
    #[arg(long, value_name = "K/N")]
    part: Option<Part>,
    /// Only these experiments.
    #[arg(long, value_delimiter = ',', value_name = "A,B", value_parser = experiments::find)]
    only: Vec<&'static dyn Experiment>,
    /// Only these engines.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    engines: Vec<ContestantName>,
    /// Append the results to this file: JSON Lines, one record a measurement.
    #[arg(long, value_name = "FILE", default_value = "lab.jsonl")]
    json: PathBuf,
    /// Measure only what the file does not have from a run with the same flags.
    #[arg(long)]
    resume: bool,
    /// How many times a measurement is repeated during which other work had more than a fifth of
    /// the machine; the quietest counts.
    #[arg(long, value_name = "R", default_value_t = Settings::REPEATS)]
    repeats: usize,
    /// Pin each working thread to a processor.
    #[arg(long)]
    pin: bool,
    /// The seed of all that is random.
    #[arg(long, value_name = "X", default_value_t = Settings::SEED)]
    seed: u64,
}

/// Runs the experiments.
pub(super) fn run(arguments: AllArgs) -> Result<(), LabError> {
    let names = |only: &&dyn Experiment| only.name().to_owned();
    refuse_twice(&arguments.only.iter().map(names).collect::<Vec<_>>())?;
    refuse_twice(&arguments.engines)?;
    let own = Settings {
        repeats: arguments.repeats,
        pin: arguments.pin,
        seed: arguments.seed,
        fill_command: Some(FillCommand::this_one()?),
        ..Settings::default()
    };
    let extent = match arguments {
        AllArgs { full: true, .. } => Extent::Full,
        AllArgs { huge: true, .. } => Extent::Huge,
        _ => Extent::Quick,
    };
    let mut plans = suite::plans(extent, &own, &arguments.engines, ContestantName::missing)?;
    plans.retain(|plan| {
        let asked = |only: &&dyn Experiment| only.name() == plan.experiment.name();
        arguments.only.is_empty() || arguments.only.iter().any(asked)
    });
    let missing = |one: &&LeftOut| matches!(one.why, Why::Missing(_));
    tell_left_out(plans.iter().flat_map(|plan| &plan.left_out).filter(missing));
    plans.retain(|plan| {
        let somebody = !plan.contestants.is_empty();
        if !somebody {
            eprintln!("note: nobody takes part in {}", plan.experiment.name());
        }
        somebody
    });
    match arguments.part {
        Some(part) => part.retain_in(&mut plans),
        None => advise_parts(&plans),
    }
    let mut follow = Follow::new(Some(&arguments.json), arguments.resume)?;
    tell_build();
    let seconds = plans.iter().map(Plan::seconds).sum();
    eprintln!(
        "note: measuring for about {}; records go to '{}'",
        about(seconds),
        arguments.json.display()
    );
    follow.expect(&plans);
    let done = run_all(&plans, &mut follow);
    follow.close();
    follow.tell_resume(&done);
    done
}

/// Says how to divide what takes much longer than an hour.
fn advise_parts(plans: &[Plan]) {
    let parts = Part::advised(plans);
    if parts > 1 {
        eprintln!(
            "note: with --part 1/{parts} to --part {parts}/{parts} it can be measured in parts of \
             about an hour"
        );
    }
}

fn run_all(plans: &[Plan], follow: &mut Follow) -> Result<(), LabError> {
    for (place, plan) in plans.iter().enumerate() {
        follow.begin(place);
        let done = measure(plan, follow);
        let table = report::table(&follow.end());
        follow.suspend(|| print(&(table + "\n")))?;
        done?;
    }
    Ok(())
}
