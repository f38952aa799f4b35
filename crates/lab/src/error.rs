//! What can go wrong in the lab.

use std::{io, path::PathBuf};

/// Why an experiment could not be run, or why its result cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is no experiment of this name.
    #[error("unknown experiment '{name}'; there are: {known}")]
    UnknownExperiment {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// There is no contestant of this name.
    #[error("unknown engine '{name}'; there are: {known}")]
    UnknownEngine {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// There is no mix of this name.
    #[error("unknown mix '{name}'; there are: {known}")]
    UnknownMix {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// There is no key set of this name.
    #[error("unknown key set '{name}'; there are: {known}")]
    UnknownKeySet {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// There is no distribution of this name.
    #[error("unknown distribution '{name}'; there are: {known}")]
    UnknownDistribution {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// There is no kind of message of this name.
    #[error("unknown message '{name}'; there are: {known}")]
    UnknownMessageKind {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A name stands twice in one list.
    #[error("'{name}' is given twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A contestant exists but this machine lacks what it needs.
    #[error("engine '{engine}' is not available here: {missing}")]
    Unavailable {
        /// The contestant's name.
        engine: &'static str,
        /// What is missing and how to get it.
        missing: &'static str,
    },
    /// A contestant cannot take part in what was asked for.
    #[error("engine '{engine}' cannot do '{experiment}' as asked for: {why}")]
    Refuses {
        /// The contestant's name.
        engine: &'static str,
        /// The experiment's name.
        experiment: &'static str,
        /// Why.
        why: String,
    },
    /// A choice was made that the experiment does not offer.
    #[error("{flag} {value} has no meaning for '{experiment}', {offer}")]
    NotOffered {
        /// The flag that chooses.
        flag: &'static str,
        /// What was chosen.
        value: String,
        /// The experiment's name.
        experiment: &'static str,
        /// What it offers.
        offer: String,
    },
    /// A number of keys that the experiment cannot use.
    #[error("--keys {keys} does not fit '{experiment}': it takes {least} to {most}")]
    Keys {
        /// The number that was asked for.
        keys: u64,
        /// The experiment's name.
        experiment: &'static str,
        /// The least number it takes.
        least: u64,
        /// The greatest number it takes.
        most: u64,
    },
    /// A file could not be opened or written.
    #[error("cannot write '{}': {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read '{}': {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A line of a file of results is no record.
    #[error("'{}', line {line}, is no record: {error}", path.display())]
    NoRecord {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1 on.
        line: usize,
        /// Why.
        #[source]
        error: serde_json::Error,
    },
    /// A file of results has nothing in it.
    #[error("'{}' has no records", path.display())]
    NoRecords {
        /// The file.
        path: PathBuf,
    },
    /// Two records are of the same contestant in the same case.
    #[error(
        "'{engine}' is measured twice on '{workload}' of '{key_set}' with {threads} threads; \
         give files of one measurement each"
    )]
    MeasuredTwice {
        /// The contestant's name.
        engine: String,
        /// The workload's name.
        workload: String,
        /// The key set's name.
        key_set: String,
        /// How many threads.
        threads: usize,
    },
    /// Another program could not be started or spoken to.
    #[error("{program}: {error}")]
    Program {
        /// The program.
        program: String,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Another program answered something that it should not have.
    #[error("{program} answered '{answer}'")]
    Answer {
        /// The program.
        program: String,
        /// What it said.
        answer: String,
    },
    /// A contestant was wrong after a measurement, so its speed means nothing.
    #[error("{engine} is wrong: {fault}")]
    Wrong {
        /// The contestant's name.
        engine: &'static str,
        /// What was found.
        fault: String,
    },
    /// The profile of a machine cannot be used.
    #[error("machine '{name}': {problem}")]
    Profile {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An experiment uses real threads or clocks, so it cannot be simulated.
    #[error("'{experiment}' cannot be simulated; these can: {known}")]
    NotSimulated {
        /// The name of the experiment, or of one of its mixes.
        experiment: &'static str,
        /// The names of those that can be.
        known: String,
    },
    /// The lab that simulates has to be built, but the present folder is not in its sources.
    #[error("'simulate' builds a lab of its own: start it in a folder of Tremula's sources")]
    NoSources,
    /// The lab that simulates could not be built.
    #[error("the lab that simulates could not be built; cargo said why")]
    Build,
    /// A live view was asked for, but standard output is no terminal.
    #[error(
        "standard output is no terminal to show a view on; 'tremula-lab run' takes the same flags"
    )]
    NoTerminal,
    /// The resident set cannot be read on this system.
    #[error("cannot read the resident set from /proc/self/smaps_rollup: {error}")]
    ResidentSet {
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The experiment measures memory in processes of its own, but got no command to start them.
    #[error("'{experiment}' starts processes of the command tremula-lab; run it from there")]
    NoFillCommand {
        /// The experiment's name.
        experiment: &'static str,
    },
    /// Threads cannot be pinned: the system does not report which processors the process may use.
    #[error("cannot pin threads: {error}")]
    Pin {
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The user interrupted the experiment before everything was measured.
    #[error("interrupted")]
    Interrupted,
}
