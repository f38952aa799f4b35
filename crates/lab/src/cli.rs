//! The command line: `tremula lab list` and `tremula lab run EXPERIMENT`.

use crate::{
    LabError, Settings, Watch,
    contestants::{self, ContestantName},
    experiments::{self, Case, Experiment},
    memory::FillCommand,
    record::{self, Record, RecordFile},
    report, rounds,
    workload::{FillJob, FillKeys, Mix},
};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};
use tremula_index::Engine;

/// The flags of `tremula lab`.
#[derive(Args, Debug)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// Show the experiments, and the engines that can take part.
    List,
    /// Run an experiment, and show a table of its results.
    Run(RunArgs),
    /// Fill one index, weigh it, and print a line of JSON (for `run`, which starts it in a
    /// process of its own).
    #[command(hide = true)]
    Fill(FillArgs),
}

#[derive(Args, Debug)]
struct RunArgs {
    /// The experiment; `lab list` shows them.
    #[arg(value_parser = experiments::find)]
    experiment: &'static dyn Experiment,
    /// Engines to compare, in the order in which they take turns [default: all there are].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    engines: Vec<ContestantName>,
    /// Numbers of threads, each measured on its own [default: 1,2,8; memory: 1].
    #[arg(long, value_delimiter = ',', value_name = "1,2,8", value_parser = parse_threads)]
    threads: Vec<usize>,
    /// Keys: inserted in all, or the size of ordered_mix's range [default: 2000000; ordered_mix:
    /// 1048576; memory: 5000000].
    #[arg(long, value_name = "N")]
    keys: Option<u64>,
    /// How long one run of one engine lasts; only ordered_mix uses it.
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = parse_seconds)]
    seconds: Duration,
    /// How many times everything is measured; the median counts.
    #[arg(long, value_name = "R", default_value_t = Settings::RUNS, value_parser = parse_runs)]
    runs: usize,
    /// The seed of all that is random.
    #[arg(long, value_name = "X", default_value_t = Settings::SEED)]
    seed: u64,
    /// The mixes of ordered_mix to measure [default: all].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    mixes: Vec<Mix>,
    /// Append the results to this file: JSON Lines, one record a measurement.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct FillArgs {
    engine: Engine,
    #[arg(long, value_enum)]
    order: FillKeys,
    #[arg(long)]
    keys: u64,
    #[arg(long, value_parser = parse_threads)]
    threads: usize,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    run: usize,
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let most = Settings::MOST_THREADS;
    match text.parse() {
        Ok(threads) if (1..=most).contains(&threads) => Ok(threads),
        _ => Err(format!("a number of threads is 1 to {most}")),
    }
}

fn parse_runs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(runs) if runs > 0 => Ok(runs),
        _ => Err("a number of runs is at least 1".to_owned()),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    const MOST: f64 = 86_400.0;
    match text.parse() {
        Ok(seconds) if (0.001..=MOST).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("it is a number of seconds, 0.001 to {MOST}")),
    }
}

/// Carries out `tremula lab …`: status 0 if all went well, 1 with one line on standard error
/// if not.
#[must_use]
pub fn run(arguments: LabArgs) -> ExitCode {
    let done = match arguments.command {
        LabCommand::List => print(&list()),
        LabCommand::Run(arguments) => run_experiment(arguments),
        LabCommand::Fill(arguments) => run_fill(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> String {
    let mut text = "experiments\n".to_owned();
    for experiment in experiments::ALL {
        text += &format!("  {:<22}  {}\n", experiment.name(), experiment.about());
        text += &format!(
            "  {:<22}  workloads: {}\n",
            "",
            experiment.workloads().join(", ")
        );
    }
    text += "\nengines\n";
    for contestant in ContestantName::all() {
        text += &format!("  {:<22}  {}\n", contestant.name(), contestant.about());
        if let Some(missing) = contestant.missing() {
            text += &format!("  {:<22}  not available here: {missing}\n", "");
        }
    }
    text
}

fn run_experiment(arguments: RunArgs) -> Result<(), LabError> {
    let experiment = arguments.experiment;
    let settings = Settings {
        threads: Some(arguments.threads).filter(|threads| !threads.is_empty()),
        keys: arguments.keys,
        duration: arguments.seconds,
        runs: arguments.runs,
        seed: arguments.seed,
        mixes: arguments.mixes,
        fill_command: Some(FillCommand::this_one()?),
    };
    rounds::check(experiment, &settings)?;
    refuse_twice(settings.threads.iter().flatten())?;
    refuse_twice(&settings.mixes)?;
    refuse_twice(&arguments.engines)?;
    let file = arguments
        .json
        .as_deref()
        .map(RecordFile::open)
        .transpose()?;
    let names = choose(arguments.engines);
    let mut contestants = contestants::assemble(&names, &settings)?;
    if record::build() == "debug" {
        eprintln!("note: this is a debug build; its figures mean little");
    }
    let mut watch = Follow {
        bar: ProgressBar::no_length(),
        file,
    };
    let records = rounds::run(experiment, &settings, &mut contestants, &mut watch);
    watch.bar.finish_and_clear();
    print(&report::table(&records?))
}

/// The engines that were asked for; if none, all that are available.
fn choose(asked: Vec<ContestantName>) -> Vec<ContestantName> {
    if !asked.is_empty() {
        return asked;
    }
    let mut all = ContestantName::all();
    all.retain(|contestant| {
        let missing = contestant.missing();
        if let Some(missing) = missing {
            eprintln!("note: without {contestant}: {missing}");
        }
        missing.is_none()
    });
    all
}

fn refuse_twice<'a, T: PartialEq + ToString + 'a>(
    names: impl IntoIterator<Item = &'a T>,
) -> Result<(), LabError> {
    let mut seen: Vec<&T> = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Err(LabError::Twice {
                name: name.to_string(),
            });
        }
        seen.push(name);
    }
    Ok(())
}

/// Shows the progress on standard error, if that is a terminal, and keeps the records of each
/// finished case.
struct Follow {
    bar: ProgressBar,
    file: Option<RecordFile>,
}

impl Watch for Follow {
    fn begins(&mut self, measurements: u64) {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} left  {msg}");
        self.bar.set_style(style.expect("the template is right"));
        self.bar.set_length(measurements);
    }

    fn measures(&mut self, case: &Case, engine: &str) {
        let Case {
            workload, threads, ..
        } = case;
        self.bar
            .set_message(format!("{workload}, {threads} threads: {engine}"));
    }

    fn measured(&mut self) {
        self.bar.inc(1);
    }

    fn finished(&mut self, records: &[Record]) -> Result<(), LabError> {
        match &mut self.file {
            Some(file) => file.append(records),
            None => Ok(()),
        }
    }
}

fn run_fill(arguments: &FillArgs) -> Result<(), LabError> {
    let job = FillJob {
        keys: arguments.order,
        count: arguments.keys,
        threads: arguments.threads,
        seed: arguments.seed,
        run: arguments.run,
    };
    let report = contestants::fill(arguments.engine, &job)?;
    print(&(serde_json::to_string(&report).expect("a report is plain data") + "\n"))
}

/// Writes to standard output; a reader who has left (`| head`) is no error.
fn print(text: &str) -> Result<(), LabError> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(LabError::Write {
            path: "standard output".into(),
            error,
        }),
        _ => Ok(()),
    }
}
