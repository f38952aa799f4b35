//! The command line: `tremula lab list`, `tremula lab run EXPERIMENT` and what shows its results.

use crate::{
    LabError, Settings, Watch, best,
    contestants::{self, ChannelKind, ContestantName, Table},
    experiments::{self, Case, ContestantKind, Experiment},
    histories::{self, Outcome},
    keys::KeySet,
    memory::{FillCommand, this_program_before},
    record::{self, Record, RecordFile},
    report, rounds, top,
    workload::{Distribution, FillJob, MessageKind, Traffic},
};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::{
    io::{self, Write},
    path::PathBuf,
    process::{Command, ExitCode},
    time::Duration,
};

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
    /// Run an experiment, and show meanwhile how it goes: each engine's speed, results and shape.
    Top(RunArgs),
    /// Show the fastest engine of each case in files of results, as a table in Markdown.
    Best(BestArgs),
    /// Record what threads do to the tables at once, and check that the answers are right.
    Check(CheckArgs),
    /// Check one table, and end with status 2 if it is wrong (for `check`, which starts it in a
    /// process of its own).
    #[command(hide = true)]
    CheckOne(CheckOneArgs),
    /// Fill one index, weigh it, and print a line of JSON (for `run`, which starts it in a
    /// process of its own).
    #[command(hide = true)]
    Fill(FillArgs),
    /// Send a burst through one channel, weigh it, and print a line of JSON (for `run`, which
    /// starts it in a process of its own).
    #[command(hide = true)]
    Burst(BurstArgs),
}

#[derive(Args, Debug)]
struct RunArgs {
    /// The experiment; `lab list` shows them.
    #[arg(value_parser = experiments::find)]
    experiment: &'static dyn Experiment,
    /// Engines to compare, in the order in which they take turns [default: all that the experiment
    /// is about].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    engines: Vec<ContestantName>,
    /// Numbers of threads, each measured on its own [default: 1,2,8; memory: 1;
    /// range_update, adaptation: 2,8; signals:
    /// 1,2,4,16,64 senders; shard_cache: workers up to the cores; counter_scaling: 1,2,4,8;
    /// redis: 50 clients; ets_bench and sequential_overhead have always 1].
    #[arg(long, value_delimiter = ',', value_name = "1,2,8", value_parser = parse_threads)]
    threads: Vec<usize>,
    /// Keys: inserted in all, or the size of ordered_mix's range [default: 5000000; email: 2000000;
    /// insert_disjoint_ranges: 2000000; ordered_mix, range_update, adaptation: 1048576; ets_throughput, sequential_overhead: 1000000;
    /// ets_bench: 100000; signals, messages of a burst: 10000000; shard_cache, ids: 1024;
    /// counter_scaling, counted before: 1000; redis: 100000].
    #[arg(long, value_name = "N")]
    keys: Option<u64>,
    /// How long one measurement lasts, after a quarter of that to warm up, where it is not over by
    /// itself.
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = parse_seconds)]
    seconds: Duration,
    /// How many times everything is measured; the median counts.
    #[arg(long, value_name = "R", default_value_t = Settings::RUNS, value_parser = parse_runs)]
    runs: usize,
    /// How many times a measurement is repeated during which other work had more than a fifth of the
    /// machine; the quietest counts.
    #[arg(long, value_name = "R", default_value_t = Settings::REPEATS)]
    repeats: usize,
    /// The seed of all that is random.
    #[arg(long, value_name = "X", default_value_t = Settings::SEED)]
    seed: u64,
    /// The mixes to measure, of an experiment that has mixes [default: all].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    mixes: Vec<String>,
    /// The key sets to measure with, in an experiment that has a choice [default: all; ycsb:
    /// mono_int,rand_int,email].
    #[arg(long = "key-set", value_delimiter = ',', value_name = "A,B")]
    key_sets: Vec<KeySet>,
    /// How keys are chosen, in an experiment that has a choice [default: all; batched_get: uniform].
    #[arg(long = "distribution", value_delimiter = ',', value_name = "A,B")]
    distributions: Vec<Distribution>,
    /// The kinds of message to send, in an experiment that sends any [default: all].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    messages: Vec<MessageKind>,
    /// Append the results to this file: JSON Lines, one record a measurement.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct BestArgs {
    /// Files that `run --json` has written.
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,
}

#[derive(Args, Debug)]
struct CheckArgs {
    /// Tables to check [default: all of this process].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    engines: Vec<ContestantName>,
    /// Short histories of each kind; there is a long one for every 500.
    #[arg(long, value_name = "N", default_value = "4000", value_parser = parse_histories)]
    histories: usize,
    /// How long one table may take.
    #[arg(long, value_name = "S", default_value = "600", value_parser = parse_seconds)]
    patience: Duration,
}

#[derive(Args, Debug)]
struct CheckOneArgs {
    engine: ContestantName,
    #[arg(long, value_parser = parse_histories)]
    histories: usize,
}

#[derive(Args, Debug)]
struct FillArgs {
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
}

#[derive(Args, Debug)]
struct BurstArgs {
    engine: ContestantName,
    #[arg(long)]
    keys: u64,
    #[arg(long, value_parser = parse_threads)]
    threads: usize,
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

fn parse_histories(text: &str) -> Result<usize, String> {
    const MOST: usize = 100_000_000;
    match text.parse() {
        Ok(histories) if (1..=MOST).contains(&histories) => Ok(histories),
        _ => Err(format!("a number of histories is 1 to {MOST}")),
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
/// if not. `check` ends with 2 if an index of this project was wrong.
#[must_use]
pub fn run(arguments: LabArgs) -> ExitCode {
    let done = match arguments.command {
        LabCommand::List => print(&list()),
        LabCommand::Run(arguments) => run_experiment(arguments, Show::Progress),
        LabCommand::Top(arguments) => {
            top::needs_a_terminal().and_then(|()| run_experiment(arguments, Show::Everything))
        }
        LabCommand::Best(arguments) => show_best(&arguments),
        LabCommand::Check(arguments) => match run_check(&arguments) {
            Ok(right) => return status_of(right),
            Err(error) => Err(error),
        },
        LabCommand::CheckOne(arguments) => match run_check_one(&arguments) {
            Ok(right) => return status_of(right),
            Err(error) => Err(error),
        },
        LabCommand::Fill(arguments) => run_fill(&arguments),
        LabCommand::Burst(arguments) => run_burst(&arguments),
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
        let mut also = |what, names: Vec<&str>| {
            if !names.is_empty() {
                text += &format!("  {:<22}  {what}: {}\n", "", names.join(", "));
            }
        };
        also("workloads", experiment.workloads());
        let key_sets = experiment.key_sets().iter();
        also("key sets", key_sets.map(|set| set.name()).collect());
        let distributions = experiment.distributions().iter();
        let messages = experiment.messages().iter();
        also("messages", messages.map(|kind| kind.name()).collect());
        also("distributions", distributions.map(|d| d.name()).collect());
    }
    text += "\nkey sets\n";
    for set in KeySet::ALL {
        text += &format!("  {:<22}  {}\n", set.name(), set.about());
    }
    for (heading, kind) in [
        ("engines", ContestantKind::Tables),
        ("engines of signals", ContestantKind::Channels),
        ("engines of shard_cache", ContestantKind::Shards),
        ("engines of counter_scaling", ContestantKind::Counters),
        ("engines of redis", ContestantKind::Servers),
    ] {
        text += &format!("\n{heading}\n");
        text += &list_contestants(kind);
    }
    text
}

fn list_contestants(kind: ContestantKind) -> String {
    let mut text = String::new();
    for contestant in ContestantName::all() {
        if contestant.kind() != kind {
            continue;
        }
        text += &format!("  {:<22}  {}\n", contestant.name(), contestant.about());
        if let Some(missing) = contestant.missing() {
            text += &format!("  {:<22}  not available here: {missing}\n", "");
        }
        for (what, why) in refusals(contestant) {
            text += &format!("  {:<22}  cannot do {what}: {why}\n", "");
        }
    }
    text
}

/// What the contestant cannot do, and why: whole experiments, or key sets of all experiments.
fn refusals(contestant: ContestantName) -> Vec<(String, &'static str)> {
    if contestant.kind() == ContestantKind::Channels {
        let of_workload = |traffic: Traffic| {
            let why = contestant.refuses_traffic(traffic, None)?;
            Some((traffic.name().to_owned(), why))
        };
        let of_message = |kind: MessageKind| {
            let why = contestant.refuses_traffic(Traffic::Live, Some(kind))?;
            Some((format!("messages {kind}"), why))
        };
        let workloads = Traffic::ALL.into_iter().filter_map(of_workload);
        let messages = MessageKind::ALL.into_iter().filter_map(of_message);
        return workloads.chain(messages).collect();
    }
    if matches!(
        contestant.kind(),
        ContestantKind::Shards | ContestantKind::Counters | ContestantKind::Servers
    ) {
        return Vec::new();
    }
    let of_tables = experiments::ALL
        .iter()
        .filter(|experiment| experiment.contestants() == ContestantKind::Tables);
    let whole = |experiment: &&dyn Experiment| {
        let name = experiment.name();
        Some((name.to_owned(), contestant.refuses(name, None)?))
    };
    let with_set = |set: KeySet| {
        let why = contestant.refuses("memory", Some(set))?;
        Some((format!("key set {set}"), why))
    };
    of_tables
        .filter_map(whole)
        .chain(KeySet::ALL.into_iter().filter_map(with_set))
        .collect()
}

/// What is shown of an experiment while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// How far it is.
    Progress,
    /// How fast everybody is, too.
    Everything,
}

fn run_experiment(arguments: RunArgs, show: Show) -> Result<(), LabError> {
    let experiment = arguments.experiment;
    let settings = Settings {
        threads: Some(arguments.threads).filter(|threads| !threads.is_empty()),
        keys: arguments.keys,
        duration: arguments.seconds,
        runs: arguments.runs,
        repeats: arguments.repeats,
        seed: arguments.seed,
        mixes: arguments.mixes,
        key_sets: arguments.key_sets,
        distributions: arguments.distributions,
        messages: arguments.messages,
        fill_command: Some(FillCommand::this_one()?),
    };
    rounds::check(experiment, &settings)?;
    refuse_twice(settings.threads.iter().flatten())?;
    refuse_twice(&settings.mixes)?;
    refuse_twice(&settings.key_sets)?;
    refuse_twice(&settings.distributions)?;
    refuse_twice(&settings.messages)?;
    refuse_twice(&arguments.engines)?;
    let file = arguments
        .json
        .as_deref()
        .map(RecordFile::open)
        .transpose()?;
    let names = choose(arguments.engines, experiment, &settings)?;
    let mut contestants = contestants::assemble(&names, &settings)?;
    tell_gaps(&names, experiment, &settings);
    if record::build() == "debug" {
        eprintln!("note: this is a debug build; its figures mean little");
    }
    let records = match show {
        Show::Progress => {
            let mut watch = Follow {
                bar: ProgressBar::no_length(),
                file,
            };
            let records = rounds::run(experiment, &settings, &mut contestants, &mut watch);
            watch.bar.finish_and_clear();
            records
        }
        Show::Everything => top::run(experiment, &settings, &mut contestants, file),
    };
    print(&report::table(&records?))
}

/// The engines that were asked for; if none, all that are available and can do something.
fn choose(
    asked: Vec<ContestantName>,
    experiment: &dyn Experiment,
    settings: &Settings,
) -> Result<Vec<ContestantName>, LabError> {
    let cases = experiment.groups(settings).concat();
    let refusal = |contestant: ContestantName| {
        let why = |case| contestant.refuses_case(experiment, case);
        // One that can do some of the cases does these.
        cases.iter().map(why).min().flatten()
    };
    if !asked.is_empty() {
        for contestant in &asked {
            if let Some(why) = refusal(*contestant) {
                return Err(LabError::Refuses {
                    engine: contestant.name(),
                    experiment: experiment.name(),
                    why,
                });
            }
        }
        return Ok(asked);
    }
    let mut left_out: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut all = ContestantName::all();
    all.retain(|contestant| contestant.kind() == experiment.contestants());
    all.retain(|contestant| {
        let Some(why) = contestant.missing().or_else(|| refusal(*contestant)) else {
            return true;
        };
        match left_out.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(contestant.name()),
            None => left_out.push((why, vec![contestant.name()])),
        }
        false
    });
    for (why, names) in left_out {
        eprintln!("note: without {}: {why}", names.join(", "));
    }
    Ok(all)
}

/// Tells who is left out of a part of what was asked for, and why.
fn tell_gaps(names: &[ContestantName], experiment: &dyn Experiment, settings: &Settings) {
    let cases = experiment.groups(settings).concat();
    for name in names {
        let mut told = Vec::new();
        for case in &cases {
            let Some(why) = name.refuses_case(experiment, case) else {
                continue;
            };
            // Tables are refused keys, whatever the workload.
            let what = match experiment.contestants() {
                ContestantKind::Tables => case.key_set.to_owned(),
                ContestantKind::Channels
                | ContestantKind::Shards
                | ContestantKind::Counters
                | ContestantKind::Servers => {
                    format!("{} of {}", case.workload, case.key_set)
                }
            };
            if !told.contains(&what) {
                eprintln!("note: {name} cannot do all of '{what}': {why}");
                told.push(what);
            }
        }
    }
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

    fn wrong(&mut self, case: &Case, fault: &LabError) {
        let Case {
            workload, key_set, ..
        } = case;
        self.bar
            .suspend(|| eprintln!("note: no figure for {workload}, {key_set}: {fault}"));
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

fn show_best(arguments: &BestArgs) -> Result<(), LabError> {
    let mut records = Vec::new();
    for path in &arguments.results {
        records.extend(record::read(path)?);
    }
    print(&best::table(&records)?)
}

fn run_fill(arguments: &FillArgs) -> Result<(), LabError> {
    let job = FillJob {
        key_set: arguments.key_set,
        count: arguments.keys,
        threads: arguments.threads,
        seed: arguments.seed,
        run: arguments.run,
    };
    print_report(&contestants::fill(table_of(arguments.engine)?, &job)?)
}

fn run_burst(arguments: &BurstArgs) -> Result<(), LabError> {
    contestants::available(arguments.engine)?;
    let kind = match arguments.engine {
        ContestantName::Mailbox(mode) => ChannelKind::Mailbox(mode),
        ContestantName::ChannelRival(rival) => ChannelKind::Rival(rival),
        other => {
            return Err(LabError::Unavailable {
                engine: other.name(),
                missing: "it is no channel of this process",
            });
        }
    };
    print_report(&contestants::burst(
        kind,
        arguments.keys,
        arguments.threads,
    )?)
}

fn print_report(report: &impl Serialize) -> Result<(), LabError> {
    print(&(serde_json::to_string(report).expect("a report is plain data") + "\n"))
}

/// The table of this process that has the name.
fn table_of(name: ContestantName) -> Result<Table, LabError> {
    contestants::available(name)?;
    match name {
        ContestantName::Index(engine) => Ok(Table::Index(engine)),
        ContestantName::BwVariant(variant) => Ok(Table::BwVariant(variant)),
        ContestantName::FixedGrain(grain) => Ok(Table::FixedGrain(grain)),
        ContestantName::Rival(rival) => Ok(Table::Rival(rival)),
        other => Err(LabError::Unavailable {
            engine: other.name(),
            missing: "it is no table of this process",
        }),
    }
}

/// Checks each table in a process of its own. Whether the indexes of this project were right: that
/// a rival is not is what one wants to know, and no failure.
fn run_check(arguments: &CheckArgs) -> Result<bool, LabError> {
    refuse_twice(&arguments.engines)?;
    let mut names = arguments.engines.clone();
    if names.is_empty() {
        names = ContestantName::all();
        names.retain(|&name| table_of(name).is_ok());
    }
    for &name in &names {
        table_of(name)?;
    }
    let (program, before) = this_program_before(&["check"])?;
    let mut right = true;
    for name in names {
        let mut command = Command::new(&program);
        command.args(&before).args(["check-one", name.name()]);
        command.args(["--histories", &arguments.histories.to_string()]);
        let outcome = histories::check_apart(command, arguments.patience)?;
        print(&format!("{:<20} {outcome}\n", name.name()))?;
        let is_ours = matches!(
            name,
            ContestantName::Index(_) | ContestantName::BwVariant(_) | ContestantName::FixedGrain(_)
        );
        right &= outcome == Outcome::Right || !is_ours;
    }
    Ok(right)
}

fn run_check_one(arguments: &CheckOneArgs) -> Result<bool, LabError> {
    let table = table_of(arguments.engine)?;
    let mut out = io::stdout().lock();
    histories::check(table, arguments.histories, &mut out).map_err(|error| LabError::Write {
        path: "standard output".into(),
        error,
    })
}

fn status_of(right: bool) -> ExitCode {
    if right {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(histories::WRONG)
    }
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
