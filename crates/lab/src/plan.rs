//! What a run of an experiment measures, and which contestants take part: decided once, before it
//! begins.

use crate::{
    LabError, Settings,
    case::Case,
    contestants::{Asked, Contestant, ContestantName, Starter},
    experiments::Experiment,
};

/// A run of an experiment. The estimate, the measurements, the records and the notes to the user
/// all read this plan, so that they agree on what is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment.
    pub experiment: &'static dyn Experiment,
    /// Its settings.
    pub settings: Settings,
    /// The contestants that can do some of the cases, in the order of the records.
    pub contestants: Vec<ContestantName>,
    /// What is measured, in this order.
    pub groups: Vec<Group>,
    /// The contestants that cannot take part at all.
    pub left_out: Vec<LeftOut>,
    /// The cases that a participating contestant cannot do.
    pub gaps: Vec<Gap>,
}

/// Cases that are measured one after the other on one table.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its place among the groups of the whole plan, from which the order of turns is drawn, even
    /// if only a part of them is measured.
    pub number: usize,
    /// The cases, at least one.
    pub cases: Vec<Case>,
    /// The indices, among the plan's contestants, of those that can do all of these cases.
    pub taking_part: Vec<usize>,
    /// The estimated seconds of one measurement of one contestant.
    pub seconds: f64,
    /// How many measurements are made of each contestant.
    pub measurements: usize,
}

/// A contestant that cannot take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which one.
    pub contestant: ContestantName,
    /// Why, and the way out if there is one.
    pub why: Why,
}

/// Why a contestant cannot take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It cannot do any of the cases.
    Refuses(String),
    /// This machine lacks what it needs.
    Missing(&'static str),
}

impl Why {
    /// The reason in words.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Refuses(why) => why,
            Self::Missing(what) => what,
        }
    }
}

/// A case that a contestant cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Which contestant.
    pub contestant: ContestantName,
    /// Which case.
    pub case: Case,
    /// Why.
    pub why: String,
}

impl Group {
    /// The estimated seconds of all measurements of all contestants.
    #[must_use]
    pub fn all_seconds(&self) -> f64 {
        self.seconds * self.turns() as f64
    }

    /// How many measurements are made in total.
    #[must_use]
    pub const fn turns(&self) -> usize {
        self.measurements * self.taking_part.len()
    }
}

impl Plan {
    /// The run of an experiment with those `candidates` that can take part.
    ///
    /// # Errors
    ///
    /// The settings do not fit the experiment.
    pub fn new(
        experiment: &'static dyn Experiment,
        settings: Settings,
        candidates: &[ContestantName],
    ) -> Result<Self, LabError> {
        Self::on_machine(experiment, settings, candidates, ContestantName::missing)
    }

    /// Does the same as [`new`](Self::new) on a machine whose gaps `missing` reports.
    pub(crate) fn on_machine(
        experiment: &'static dyn Experiment,
        settings: Settings,
        candidates: &[ContestantName],
        missing: fn(ContestantName) -> Option<&'static str>,
    ) -> Result<Self, LabError> {
        check(experiment, &settings)?;
        let groups = experiment.groups(&settings);
        let mut plan = Self {
            experiment,
            settings,
            contestants: Vec::new(),
            groups: Vec::new(),
            left_out: Vec::new(),
            gaps: Vec::new(),
        };
        let refuses = |contestant: ContestantName, case: &Case| {
            let asked = Asked {
                experiment: experiment.name(),
                workload: Some(case.workload),
                key_set: Some(case.key_set),
            };
            contestant.refuses(experiment.contestants(), &asked)
        };
        for contestant in candidates {
            let cases = groups.iter().flatten();
            let refusals: Vec<_> = cases
                .map(|case| (case, refuses(*contestant, case)))
                .collect();
            // A contestant that can do only some of the cases does those.
            let refusal = refusals.iter().map(|(_, why)| why).min().cloned().flatten();
            let missing = missing(*contestant).map(Why::Missing);
            if let Some(why) = refusal.map(Why::Refuses).or(missing) {
                plan.left_out.push(LeftOut {
                    contestant: *contestant,
                    why,
                });
                continue;
            }
            plan.contestants.push(*contestant);
            let gap = |(case, why): (&Case, Option<String>)| {
                Some(Gap {
                    contestant: *contestant,
                    case: case.clone(),
                    why: why?,
                })
            };
            plan.gaps.extend(refusals.into_iter().filter_map(gap));
        }
        let group = |(number, cases): (usize, Vec<Case>)| {
            let can = |place: &usize| {
                let contestant = plan.contestants[*place];
                cases.iter().all(|case| refuses(contestant, case).is_none())
            };
            let weighing = experiment.weighing(&cases, &plan.settings).is_some();
            Group {
                number,
                taking_part: (0..plan.contestants.len()).filter(can).collect(),
                seconds: experiment.estimate(&cases, &plan.settings),
                measurements: plan.settings.runs + usize::from(weighing),
                cases,
            }
        };
        plan.groups = groups.into_iter().enumerate().map(group).collect();
        Ok(plan)
    }

    /// The run of an experiment with all contestants of its kind that this machine can run.
    ///
    /// # Errors
    ///
    /// The settings do not fit the experiment.
    pub fn of_all(
        experiment: &'static dyn Experiment,
        settings: Settings,
    ) -> Result<Self, LabError> {
        let mut candidates = ContestantName::all();
        candidates.retain(|contestant| contestant.is_of(experiment.contestants()));
        Self::new(experiment, settings, &candidates)
    }

    /// The run of an experiment with exactly these contestants.
    ///
    /// # Errors
    ///
    /// The settings do not fit the experiment, or one of the contestants cannot take part.
    pub fn of_asked(
        experiment: &'static dyn Experiment,
        settings: Settings,
        asked: &[ContestantName],
    ) -> Result<Self, LabError> {
        let plan = Self::new(experiment, settings, asked)?;
        match plan.left_out.first() {
            None => Ok(plan),
            Some(LeftOut { contestant, why }) => Err(match why {
                Why::Refuses(why) => LabError::Refuses {
                    engine: contestant.name(),
                    experiment: experiment.name(),
                    why: why.clone(),
                },
                Why::Missing(missing) => LabError::Unavailable {
                    engine: contestant.name(),
                    missing,
                },
            }),
        }
    }

    /// Starts the contestants, in their order. All that need Erlang share one.
    ///
    /// # Errors
    ///
    /// One of them could not be started.
    pub fn start(&self) -> Result<Vec<Contestant>, LabError> {
        let mut starter = Starter::new(self.settings.fill_command.clone());
        let kind = self.experiment.contestants();
        let contestants = self.contestants.iter();
        contestants
            .map(|name| name.start(kind, &mut starter))
            .collect()
    }

    /// The estimated seconds of all measurements.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.groups.iter().map(Group::all_seconds).sum()
    }
}

/// Checks that the settings fit the experiment.
///
/// # Errors
///
/// The number of keys lies outside the limits, or something was chosen that the experiment does not
/// offer.
fn check(experiment: &dyn Experiment, settings: &Settings) -> Result<(), LabError> {
    let (least, most) = experiment.keys_limits();
    if let Some(keys) = settings.keys.filter(|keys| !(least..=most).contains(keys)) {
        return Err(LabError::Keys {
            keys,
            experiment: experiment.name(),
            least,
            most,
        });
    }
    let offered = |flag, chosen: Vec<&str>, known: Vec<&str>| {
        let stranger = chosen.into_iter().find(|name| !known.contains(name));
        stranger.map_or(Ok(()), |name| {
            Err(LabError::NotOffered {
                flag,
                value: name.to_owned(),
                experiment: experiment.name(),
                offer: match &*known {
                    [] => "which leaves no choice".to_owned(),
                    known => format!("which has: {}", known.join(", ")),
                },
            })
        })
    };
    offered(
        "--mixes",
        settings.mixes.iter().map(String::as_str).collect(),
        experiment.mixes(),
    )?;
    offered(
        "--key-set",
        settings.key_sets.iter().map(|set| set.name()).collect(),
        experiment.key_sets().iter().map(|set| set.name()).collect(),
    )?;
    offered(
        "--messages",
        settings.messages.iter().map(|kind| kind.name()).collect(),
        experiment
            .messages()
            .iter()
            .map(|kind| kind.name())
            .collect(),
    )?;
    offered(
        "--distribution",
        settings.distributions.iter().map(|d| d.name()).collect(),
        experiment
            .distributions()
            .iter()
            .map(|d| d.name())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{experiments, keys::KeySet, workload::Distribution};

    #[test]
    fn settings_that_do_not_fit_are_refused() {
        let experiment = experiments::find("memory").unwrap();
        let refused = |settings| check(experiment, &settings).unwrap_err().to_string();
        let keys = refused(Settings {
            keys: Some(0),
            ..Settings::default()
        });
        assert!(keys.contains("--keys 0"), "{keys}");
        let mixes = refused(Settings {
            mixes: vec!["lookup".to_owned()],
            ..Settings::default()
        });
        assert!(mixes.contains("--mixes lookup") && mixes.contains("'memory'"));
        let distributions = refused(Settings {
            distributions: vec![Distribution::Uniform],
            ..Settings::default()
        });
        assert!(distributions.contains("--distribution uniform"));
        let experiment = experiments::find("high_contention").unwrap();
        let settings = Settings {
            key_sets: vec![KeySet::Email],
            ..Settings::default()
        };
        let error = check(experiment, &settings).unwrap_err().to_string();
        assert!(error.contains("--key-set email"), "{error}");
    }

    #[test]
    fn a_plan_says_who_is_left_out_who_does_a_part_and_what_is_measured() {
        let named = |names: &[&str]| -> Vec<ContestantName> {
            names.iter().map(|name| name.parse().unwrap()).collect()
        };
        let settings = Settings {
            threads: Some(vec![1]),
            ..Settings::default()
        };
        let experiment = experiments::find("ets_throughput").unwrap();
        let candidates = named(&["table_set", "table_ca_tree", "ca_tree", "mailbox_auto"]);
        let plan = Plan::new(experiment, settings, &candidates).unwrap();
        assert_eq!(plan.contestants, candidates[..2]);
        let left_out: Vec<_> = plan.left_out.iter().map(|one| one.why.words()).collect();
        assert_eq!(
            left_out,
            ["it is no table of rows", "it is a channel and no table"]
        );
        // A set cannot step from key to key, an ordered set can.
        let steps = |case: &Case| case.workload.starts_with("next");
        assert!(
            plan.gaps
                .iter()
                .all(|gap| gap.contestant == candidates[0] && steps(&gap.case))
        );
        for group in &plan.groups {
            let all: &[usize] = if steps(&group.cases[0]) {
                &[1]
            } else {
                &[0, 1]
            };
            assert_eq!(group.taking_part, all);
        }
        assert!(!plan.gaps.is_empty() && plan.seconds() > 0.0);
    }
}
