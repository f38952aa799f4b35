//! `tremula-lab all`: every experiment, as the plan says.

use super::{
    follow::{Follow, about},
    print, refuse_twice,
    run::{measure, refusal, tell_debug},
};
use crate::{
    LabError, Settings,
    contestants::ContestantName,
    estimate,
    experiments::{self, Experiment},
    memory::FillCommand,
    plan::{self, Extent, Planned},
    report,
};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct AllArgs {
    /// A bit of everything, within ten minutes on two cores [default].
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All that figures are quoted from: about an hour on two cores.
    #[arg(long)]
    full: bool,
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
    /// How many times a measurement is repeated during which other work had more than a fifth of the
    /// machine; the quietest counts.
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
    let extent = if arguments.full {
        Extent::Full
    } else {
        Extent::Quick
    };
    let mut planned = plan::plan(extent, &own)?;
    planned.retain(|part| {
        let asked = |only: &&dyn Experiment| only.name() == part.experiment.name();
        arguments.only.is_empty() || arguments.only.iter().any(asked)
    });
    keep_able(&mut planned, &arguments.engines);
    let mut follow = Follow::new(Some(&arguments.json), arguments.resume)?;
    let estimates: Vec<_> = planned
        .iter()
        .map(|part| estimate::groups(part.experiment, &part.settings, &part.engines))
        .collect();
    tell_debug();
    let seconds = estimates.iter().map(|groups| estimate::total(groups)).sum();
    eprintln!(
        "note: measuring for about {}; records go to '{}'",
        about(seconds),
        arguments.json.display()
    );
    follow.expect(estimates);
    let done = run_all(&planned, &mut follow);
    follow.close();
    follow.tell_resume(&done);
    done
}

/// Keeps those who can take part, among those that were asked for, and what somebody takes part in.
/// Tells who is missing.
fn keep_able(planned: &mut Vec<Planned>, asked: &[ContestantName]) {
    let mut absent: Vec<(&str, Vec<&str>)> = Vec::new();
    for part in &mut *planned {
        let (experiment, settings) = (part.experiment, &part.settings);
        part.engines.retain(|engine| {
            if !(asked.is_empty() || asked.contains(engine))
                || refusal(*engine, experiment, settings).is_some()
            {
                return false;
            }
            let Some(why) = engine.missing() else {
                return true;
            };
            let place = absent.iter().position(|(other, _)| *other == why);
            let place = place.unwrap_or_else(|| {
                absent.push((why, Vec::new()));
                absent.len() - 1
            });
            let names = &mut absent[place].1;
            if !names.contains(&engine.name()) {
                names.push(engine.name());
            }
            false
        });
    }
    for (why, names) in absent {
        eprintln!("note: without {}: {why}", names.join(", "));
    }
    planned.retain(|part| {
        let somebody = !part.engines.is_empty();
        if !somebody {
            eprintln!("note: nobody takes part in {}", part.experiment.name());
        }
        somebody
    });
}

fn run_all(planned: &[Planned], follow: &mut Follow) -> Result<(), LabError> {
    for (place, part) in planned.iter().enumerate() {
        follow.begin(place);
        let done = measure(part.experiment, &part.settings, &part.engines, follow);
        let table = report::table(&follow.end());
        follow.suspend(|| print(&(table + "\n")))?;
        done?;
    }
    Ok(())
}
