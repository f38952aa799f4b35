//! Who takes part: the indexes of this project, and rivals, each behind one adapter.

mod erlang;
mod in_process;
mod rival;
mod subject;

pub use erlang::{ErlangMachine, Ets};
pub(crate) use in_process::Task;
pub use in_process::{InProcess, Table, fill};
pub use rival::Rival;
#[cfg(all(test, feature = "rivals"))]
pub(crate) use subject::tests as subject_tests;
pub use subject::{Index, Subject, check};

use crate::{LabError, Settings, experiments::Case, keys::KeySet, measure::Sample, workload::Job};
use std::{fmt, str::FromStr};
use tremula_index::Engine;

/// One that takes part in an experiment.
pub trait Contestant {
    /// Who it is.
    fn name(&self) -> ContestantName;

    /// What it is, for the record: project and version.
    fn version(&self) -> String;

    /// Does the job once, on a fresh table, and checks the table that it left. For each measurement
    /// of the job, in their order, there is a sample, or the error that answers were wrong in it.
    ///
    /// # Errors
    ///
    /// The table was wrong as a whole, or the contestant could not be reached.
    fn measure(&mut self, job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError>;
}

/// The name of a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContestantName {
    /// An index of this project.
    Index(Engine),
    /// A rival that is a Rust crate.
    Rival(Rival),
    /// An ETS table in a real Erlang.
    Erlang(Ets),
}

impl ContestantName {
    /// Everyone, in the order in which they take turns.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let indexes = Engine::ALL.into_iter().map(Self::Index);
        let rivals = Rival::ALL.into_iter().map(Self::Rival);
        let erlang = Ets::ALL.into_iter().map(Self::Erlang);
        indexes.chain(rivals).chain(erlang).collect()
    }

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Index(engine) => engine.name(),
            Self::Rival(rival) => rival.name(),
            Self::Erlang(kind) => kind.name(),
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Index(_) => "an index of Tremula, in this process",
            Self::Rival(rival) => rival.about(),
            Self::Erlang(kind) => kind.about(),
        }
    }

    /// What this machine lacks to let it take part, and how to get it; `None` if nothing.
    #[must_use]
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Self::Index(_) => None,
            Self::Rival(_) => Rival::missing(),
            Self::Erlang(_) => erlang::missing(),
        }
    }

    /// Why it cannot take part in an experiment with keys of a set; `None` if it can.
    #[must_use]
    pub fn refuses(self, experiment: &str, key_set: Option<KeySet>) -> Option<&'static str> {
        match self {
            Self::Index(_) => None,
            Self::Rival(_) if experiment == "batched_get" => Some("it has no batched lookups"),
            Self::Rival(rival) => rival.refuses(key_set?),
            Self::Erlang(_) => erlang::refuses(experiment, key_set),
        }
    }

    /// Why it cannot take part in a case of an experiment; `None` if it can.
    pub(crate) fn refuses_case(self, experiment: &str, case: &Case) -> Option<&'static str> {
        self.refuses(experiment, case.key_set.parse().ok())
    }
}

impl fmt::Display for ContestantName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for ContestantName {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        let all = Self::all();
        all.iter()
            .copied()
            .find(|contestant| contestant.name() == name)
            .ok_or_else(|| LabError::UnknownEngine {
                name: name.to_owned(),
                known: all.iter().map(|c| c.name()).collect::<Vec<_>>().join(", "),
            })
    }
}

/// The contestants of these names, ready to start; one Erlang serves all that need it.
///
/// # Errors
///
/// One of them is not available here, or could not be started.
pub fn assemble(
    names: &[ContestantName],
    settings: &Settings,
) -> Result<Vec<Box<dyn Contestant>>, LabError> {
    let mut machine = None;
    let mut contestants: Vec<Box<dyn Contestant>> = Vec::new();
    for name in names {
        if let Some(missing) = name.missing() {
            return Err(LabError::Unavailable {
                engine: name.name(),
                missing,
            });
        }
        match *name {
            ContestantName::Index(engine) => {
                contestants.push(in_process(Table::Index(engine), settings));
            }
            ContestantName::Rival(rival) => {
                contestants.push(in_process(Table::Rival(rival), settings));
            }
            ContestantName::Erlang(kind) => {
                let machine = match &machine {
                    Some(machine) => machine,
                    None => machine.insert(ErlangMachine::start()?),
                };
                contestants.push(Box::new(machine.table(kind)));
            }
        }
    }
    Ok(contestants)
}

fn in_process(table: Table, settings: &Settings) -> Box<dyn Contestant> {
    Box::new(InProcess::new(table, settings.fill_command.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for name in ContestantName::all() {
            assert_eq!(name.name().parse::<ContestantName>().unwrap(), name);
        }
        let error = "ca_trea".parse::<ContestantName>().unwrap_err().to_string();
        assert!(
            error.contains("'ca_trea'") && error.contains("erlang_ets_new"),
            "{error}"
        );
    }

    #[test]
    fn who_cannot_take_part_says_why() {
        let name = |name: &str| name.parse::<ContestantName>().unwrap();
        let refuses = |who, experiment, set| name(who).refuses(experiment, Some(set));
        for experiment in ["ycsb", "memory"] {
            for set in KeySet::ALL {
                assert_eq!(refuses("ca_tree", experiment, set), None);
                assert_eq!(refuses("masstree_crate", experiment, set), None);
                let refused = refuses("congee", experiment, set);
                assert_eq!(refused.is_some(), set == KeySet::Email);
            }
        }
        assert!(refuses("congee", "batched_get", KeySet::RandInt).is_some());
        assert!(refuses("erlang_ets_new", "ycsb", KeySet::RandInt).is_some());
        assert!(refuses("erlang_ets_new", "memory", KeySet::Email).is_some());
        assert_eq!(refuses("erlang_ets_new", "memory", KeySet::RandInt), None);
    }
}
