//! Who takes part: the indexes of this project, and rivals, each behind one adapter.

mod erlang;
mod in_process;
mod subject;

pub use erlang::{ErlangMachine, Ets};
pub use in_process::{InProcess, fill};
pub use subject::Subject;

use crate::{LabError, Settings, measure::Sample, workload::Job};
use std::{fmt, str::FromStr};
use tremula_index::Engine;

/// One that takes part in an experiment.
pub trait Contestant {
    /// Who it is.
    fn name(&self) -> ContestantName;

    /// What it is, for the record: project and version.
    fn version(&self) -> String;

    /// Does the job once, on a fresh table, and checks the table that it left.
    ///
    /// # Errors
    ///
    /// The table was wrong afterwards, or the contestant could not be reached.
    fn measure(&mut self, job: &Job) -> Result<Sample, LabError>;
}

/// The name of a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContestantName {
    /// An index of this project.
    Index(Engine),
    /// An ETS table in a real Erlang.
    Erlang(Ets),
}

impl ContestantName {
    /// Everyone, in the order in which they take turns.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let indexes = Engine::ALL.into_iter().map(Self::Index);
        let erlang = Ets::ALL.into_iter().map(Self::Erlang);
        indexes.chain(erlang).collect()
    }

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Index(engine) => engine.name(),
            Self::Erlang(kind) => kind.name(),
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Index(_) => "an index of Tremula, in this process",
            Self::Erlang(kind) => kind.about(),
        }
    }

    /// What this machine lacks to let it take part, and how to get it; `None` if nothing.
    #[must_use]
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Self::Index(_) => None,
            Self::Erlang(_) => erlang::missing(),
        }
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
                contestants.push(Box::new(InProcess::new(
                    engine,
                    settings.fill_command.clone(),
                )));
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
}
