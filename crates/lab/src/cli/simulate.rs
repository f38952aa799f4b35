//! `tremula-lab simulate`: an experiment on the virtual cores of a machine that is not at hand.

use super::shared::parse_threads;
use crate::{
    LabError,
    contestants::ContestantName,
    experiments::{self, Experiment},
    keys::KeySet,
    simulate::{self, Profile},
    workload::Distribution,
};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[cfg_attr(
    not(sim),
    allow(dead_code, reason = "the lab that simulates reads them")
)]
pub(super) struct SimulateArgs {
    /// The experiment: one of those about tables and counters.
    #[arg(value_parser = experiments::find)]
    experiment: &'static dyn Experiment,
    /// The machine: the name of a profile, or a TOML file.
    #[arg(long, value_name = "PROFILE", default_value = "two_sockets_of_16")]
    machine: String,
    /// Numbers of threads, each simulated on its own. The first threads get a core each; beyond the
    /// machine's threads they take turns.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "1,2,64",
        value_parser = parse_threads,
        default_value = "1,2,4,8,16,32,64"
    )]
    cores: Vec<usize>,
    /// Engines to compare [default: all of this project that the experiment is about].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    engines: Vec<ContestantName>,
    /// The mixes to simulate, of an experiment that has mixes [default: all that can be].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    mixes: Vec<String>,
    /// Keys inserted in all, or the size of the key range.
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    keys: u64,
    /// The key sets, in an experiment that has a choice.
    #[arg(long = "key-set", value_delimiter = ',', value_name = "A,B")]
    key_sets: Vec<KeySet>,
    /// How keys are chosen, in an experiment that has a choice.
    #[arg(long = "distribution", value_delimiter = ',', value_name = "A,B")]
    distributions: Vec<Distribution>,
    /// How long a measurement lasts in virtual time, after a quarter of that to warm up, where it
    /// is not over by itself.
    #[arg(long, value_name = "US", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    microseconds: u64,
    /// The seed of all that is random: two simulations with the same seed give the same bytes.
    #[arg(long, value_name = "X", default_value_t = crate::Settings::SEED)]
    seed: u64,
    /// Append the results to this file: JSON Lines, one record a measurement.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show what the threads' time went to, and which accesses made them wait.
    #[arg(long)]
    blame: bool,
    /// Lines come from other cores for nothing: what is lost to transfers is the difference.
    #[arg(long)]
    without_transfers: bool,
}

/// The experiments whose threads, clocks and shared words are all virtual in a simulation: of
/// `signals`, the workloads `drain` and `live`, and of `shard_cache` all but `paced`.
const SIMULATED: [&str; 11] = [
    "insert_disjoint_ranges",
    "ordered_mix",
    "range_update",
    "high_contention",
    "ycsb",
    "counter_scaling",
    "adaptation",
    "ets_throughput",
    "signals",
    "shard_cache",
    "bw_tree_ablation",
];

fn check(arguments: &SimulateArgs) -> Result<Profile, LabError> {
    let name = arguments.experiment.name();
    if !SIMULATED.contains(&name) {
        return Err(LabError::NotSimulated {
            experiment: name,
            known: SIMULATED.join(", "),
        });
    }
    super::shared::refuse_twice(&arguments.cores)?;
    super::shared::refuse_twice(&arguments.engines)?;
    super::shared::refuse_twice(&arguments.mixes)?;
    mixes(arguments)?;
    let profile = Profile::find(&arguments.machine)?;
    Ok(match arguments.without_transfers {
        true => profile.without_transfers(),
        false => profile,
    })
}

/// The mixes that are asked for; none stands for all. If none is asked for, those that can be
/// simulated.
fn mixes(arguments: &SimulateArgs) -> Result<Vec<String>, LabError> {
    let name = arguments.experiment.name();
    let is_real = |mix: &&str| match name {
        "signals" => *mix != "drain" && *mix != "live",
        "shard_cache" => *mix == "paced",
        _ => false,
    };
    let all = arguments.experiment.mixes();
    let virtual_ones = || all.iter().filter(|mix| !is_real(mix));
    let asked = &arguments.mixes;
    let real = all.iter().find(|mix| is_real(mix));
    let real_and_asked = |mix: &&&str| is_real(mix) && asked.iter().any(|asked| asked == **mix);
    if let Some(mix) = all.iter().find(real_and_asked) {
        return Err(LabError::NotSimulated {
            experiment: mix,
            known: Vec::from_iter(virtual_ones().copied()).join(", "),
        });
    }
    Ok(match (asked.is_empty(), real) {
        (true, Some(_)) => virtual_ones().map(|mix| (*mix).to_owned()).collect(),
        _ => asked.clone(),
    })
}

/// Starts the lab that simulates with the same arguments.
#[cfg(not(sim))]
pub(super) fn run(arguments: &SimulateArgs) -> Result<(), LabError> {
    check(arguments)?;
    let given: Vec<_> = std::env::args_os().skip(1).collect();
    let status = simulate::start(&given)?;
    // It has said itself what went wrong.
    match status.code() {
        Some(0) => Ok(()),
        code => std::process::exit(code.unwrap_or(1)),
    }
}

/// Simulates.
#[cfg(sim)]
pub(super) fn run(arguments: &SimulateArgs) -> Result<(), LabError> {
    use crate::{Settings, contestants::Side, plan::Plan, record::RecordFile, report, rounds};
    use std::time::Duration;

    simulate::on(check(arguments)?, arguments.blame)?;
    let settings = Settings {
        threads: Some(arguments.cores.clone()),
        keys: Some(arguments.keys),
        duration: Duration::from_micros(arguments.microseconds),
        runs: 1,
        repeats: 0,
        seed: arguments.seed,
        mixes: mixes(arguments)?,
        key_sets: arguments.key_sets.clone(),
        distributions: arguments.distributions.clone(),
        ..Settings::default()
    };
    let plan = if arguments.engines.is_empty() {
        let all = Plan::of_all(arguments.experiment, settings.clone())?;
        let ours = |name: &ContestantName| name.side() != Side::Rival;
        let ours: Vec<_> = all.contestants.iter().copied().filter(ours).collect();
        Plan::of_asked(arguments.experiment, settings, &ours)?
    } else {
        Plan::of_asked(arguments.experiment, settings, &arguments.engines)?
    };
    let mut file = arguments
        .json
        .as_deref()
        .map(RecordFile::open)
        .transpose()?;
    let mut shown = Shown {
        file: &mut file,
        measured: None,
    };
    let records = rounds::run(&plan, &mut plan.start()?, &mut shown)?;
    super::shared::print(&report::table(&records))
}

/// Writes the records, and shows what the time of each measurement went to.
#[cfg(sim)]
struct Shown<'f> {
    file: &'f mut Option<crate::record::RecordFile>,
    measured: Option<String>,
}

#[cfg(sim)]
impl crate::Watch for Shown<'_> {
    fn begins(&mut self, _measurements: u64) {
        // What the comparison with the model did is no part of a measurement.
        simulate::take_blame();
    }

    fn measures(&mut self, case: &crate::case::Case, engine: &str) {
        let (workload, threads) = (case.workload, case.threads);
        self.measured = Some(format!("{engine}, {workload}, {threads} threads"));
    }

    fn wrong(&mut self, _case: &crate::case::Case, fault: &LabError) {
        eprintln!("note: no figure: {fault}");
    }

    fn measured(&mut self) {
        let what = self.measured.take().unwrap_or_default();
        for blamed in simulate::take_blame() {
            println!("{}", blamed.told(&what));
        }
    }

    fn finished(&mut self, records: &[crate::record::Record]) -> Result<(), LabError> {
        self.file
            .as_mut()
            .map_or(Ok(()), |file| file.append(records))
    }
}
