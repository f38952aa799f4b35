//! `tremula-lab run`: one experiment, and a table of its results.

use super::{
    follow::Follow,
    shared::{parse_seconds, parse_threads, print, refuse_twice},
};
use crate::{
    LabError, Settings,
    case::ContestantKind,
    contestants::ContestantName,
    defaults,
    experiments::{self, Experiment},
    keys::KeySet,
    memory::FillCommand,
    plan::{Gap, LeftOut, Plan},
    record, report, rounds, top,
    workload::{Distribution, MessageKind},
};
use clap::Args;
use std::{path::PathBuf, time::Duration};

#[derive(Args, Debug)]
pub(super) struct RunArgs {
    /// The experiment; `tremula-lab list` shows them.
    #[arg(value_parser = experiments::find)]
    experiment: &'static dyn Experiment,
    /// Engines to compare, in the order in which they are shown [default: all that the experiment
    /// is about].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    engines: Vec<ContestantName>,
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "1,2,8",
        value_parser = parse_threads,
        help = defaults::help(
            "Numbers of threads, senders, workers or clients, each measured on its own",
            &defaults::threads(),
        )
    )]
    threads: Vec<usize>,
    #[arg(
        long,
        value_name = "N",
        help = defaults::help(
            "Keys inserted in all, or the size of the key range, messages of a burst, or ids",
            &defaults::keys(),
        )
    )]
    keys: Option<u64>,
    /// How long one measurement lasts, after a quarter of that to warm up, where it is not over by
    /// itself.
    #[arg(
        long,
        value_name = "S",
        default_value = defaults::seconds(),
        value_parser = parse_seconds
    )]
    seconds: Duration,
    /// How many times everything is measured; the median counts.
    #[arg(long, value_name = "R", default_value_t = Settings::RUNS, value_parser = parse_runs)]
    runs: usize,
    /// How many times a measurement is repeated during which other work had more than a fifth of
    /// the machine; the quietest counts.
    #[arg(long, value_name = "R", default_value_t = Settings::REPEATS)]
    repeats: usize,
    /// The seed of all that is random.
    #[arg(long, value_name = "X", default_value_t = Settings::SEED)]
    seed: u64,
    /// The mixes to measure, of an experiment that has mixes [default: all].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    mixes: Vec<String>,
    #[arg(
        long = "key-set",
        value_delimiter = ',',
        value_name = "A,B",
        help = defaults::help(
            "The key sets to measure with, in an experiment that has a choice",
            &defaults::key_sets(),
        )
    )]
    key_sets: Vec<KeySet>,
    #[arg(
        long = "distribution",
        value_delimiter = ',',
        value_name = "A,B",
        help = defaults::help(
            "How keys are chosen, in an experiment that has a choice",
            &defaults::distributions(),
        )
    )]
    distributions: Vec<Distribution>,
    /// The kinds of message to send, in an experiment that sends any [default: all].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    messages: Vec<MessageKind>,
    /// Pin each working thread to a processor: one after the other, and from the first one on again
    /// if there are more threads.
    #[arg(long)]
    pin: bool,
    /// Append the results to this file: JSON Lines, one record a measurement.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure only what the file does not have from a run with the same flags.
    #[arg(long, requires = "json")]
    resume: bool,
}

fn parse_runs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(runs) if runs > 0 => Ok(runs),
        _ => Err("a number of runs is at least 1".to_owned()),
    }
}

/// What the user sees of an experiment while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// A progress bar.
    Progress,
    /// A progress bar, and how fast each contestant is.
    Everything,
}

/// Runs the experiment.
pub(super) fn run(arguments: RunArgs, show: Show) -> Result<(), LabError> {
    let experiment = arguments.experiment;
    let settings = Settings {
        threads: Some(arguments.threads).filter(|threads| !threads.is_empty()),
        keys: arguments.keys,
        duration: arguments.seconds,
        runs: arguments.runs,
        repeats: arguments.repeats,
        pin: arguments.pin,
        seed: arguments.seed,
        mixes: arguments.mixes,
        key_sets: arguments.key_sets,
        distributions: arguments.distributions,
        messages: arguments.messages,
        fill_command: Some(FillCommand::this_one()?),
    };
    refuse_twice(settings.threads.iter().flatten())?;
    refuse_twice(&settings.mixes)?;
    refuse_twice(&settings.key_sets)?;
    refuse_twice(&settings.distributions)?;
    refuse_twice(&settings.messages)?;
    refuse_twice(&arguments.engines)?;
    let plan = if arguments.engines.is_empty() {
        Plan::of_all(experiment, settings)?
    } else {
        Plan::of_asked(experiment, settings, &arguments.engines)?
    };
    let mut follow = Follow::new(arguments.json.as_deref(), arguments.resume)?;
    tell_left_out(&plan.left_out);
    tell_gaps(&plan);
    tell_build();
    follow.expect(std::slice::from_ref(&plan));
    follow.begin(0);
    let done = match show {
        Show::Progress => measure(&plan, &mut follow),
        Show::Everything => {
            follow.hide();
            let contestants = plan.start();
            contestants.and_then(|mut contestants| top::run(&plan, &mut contestants, &mut follow))
        }
    };
    follow.close();
    print(&report::table(&follow.end()))?;
    follow.tell_resume(&done);
    done
}

/// Measures, and passes the records to `follow`.
pub(super) fn measure(plan: &Plan, follow: &mut Follow) -> Result<(), LabError> {
    rounds::run(plan, &mut plan.start()?, follow).map(|_| ())
}

/// Says what is unusual about this build: that the figures of a debug build mean little, and which
/// allocator it has.
pub(super) fn tell_build() {
    if record::build() == record::DEBUG {
        eprintln!("note: this is a debug build; its figures mean little");
    }
    if let Some(allocator) = record::allocator() {
        eprintln!("note: this build has the {allocator} allocator");
    }
}

/// Says which contestants are left out, and why: a line for each reason.
pub(super) fn tell_left_out<'a>(left_out: impl IntoIterator<Item = &'a LeftOut>) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for LeftOut { contestant, why } in left_out {
        let name = contestant.name();
        match reasons.iter_mut().find(|(other, _)| *other == why.words()) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => reasons.push((why.words(), vec![name])),
        }
    }
    for (why, names) in reasons {
        eprintln!("note: without {}: {why}", names.join(", "));
    }
}

/// Says which contestants are left out of a part of the plan, and why.
fn tell_gaps(plan: &Plan) {
    let mut told = Vec::new();
    for Gap {
        contestant,
        case,
        why,
    } in &plan.gaps
    {
        let what = match plan.experiment.contestants() {
            // A table usually cannot take the keys, regardless of the workload.
            ContestantKind::Tables | ContestantKind::Rows | ContestantKind::Sequential => {
                case.key_set.to_owned()
            }
            _ => format!("{} of {}", case.workload, case.key_set),
        };
        let note = format!("note: {contestant} cannot do all of '{what}': {why}");
        if !told.contains(&note) {
            eprintln!("{note}");
            told.push(note);
        }
    }
}
