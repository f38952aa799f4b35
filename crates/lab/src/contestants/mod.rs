//! Who takes part: the indexes, the tables, the mailboxes and the shards of this project, and rivals,
//! each behind one adapter.

mod bw_variant;
mod counters;
mod erlang;
mod grain;
mod in_process;
mod rival;
mod row_bench;
mod row_model;
mod row_table;
mod sequential;
mod servers;
mod shards;
mod signals;
mod subject;

pub use bw_variant::BwVariant;
pub use counters::CounterKind;
pub use erlang::{ErlangMachine, Ets, EtsCounter, MessageQueue};
pub use grain::FixedGrain;
pub(crate) use in_process::Task;
pub use in_process::{InProcess, Table, fill};
pub use rival::Rival;
pub use row_table::RowTable;
pub use servers::ServerKind;
pub use shards::{ShardForm, peak_of_affinity};
#[cfg(all(test, feature = "rivals"))]
pub(crate) use signals::channel_tests;
#[cfg(feature = "rivals")]
pub(crate) use signals::{Channel, ChannelTask, Receiving, Sending};
pub use signals::{ChannelKind, ChannelRival, InProcessChannel, burst};
#[cfg(all(test, feature = "rivals"))]
pub(crate) use subject::tests as subject_tests;
pub use subject::{Index, Subject, check};

use crate::{
    LabError, Settings,
    experiments::{Case, ContestantKind, Experiment},
    keys::KeySet,
    measure::Sample,
    workload::{EtsMix, Job, MessageKind, Traffic},
};
use sequential::PlainBTreeMap;
use std::{env, fmt, str::FromStr};
use tremula_index::Engine;
use tremula_mailbox::Mode;
use tremula_papers::AnyEngine;

/// One that takes part in an experiment.
pub trait Contestant {
    /// Who it is.
    fn name(&self) -> ContestantName;

    /// What it is, for the record: project and version.
    fn version(&self) -> String;

    /// Does a few thousand random operations of those that the case's experiment asks for, one after
    /// the other, and compares each answer with a simple model's. One whose answers the measurements
    /// themselves check as fully has nothing to do here.
    ///
    /// # Errors
    ///
    /// An answer was wrong.
    fn check_against_model(&mut self, _case: &Case, _seed: u64) -> Result<(), LabError> {
        Ok(())
    }

    /// Does the job once, on a fresh table or channel, and checks it. For each measurement
    /// of the job, in their order, there is a sample, or the error that answers were wrong in it.
    ///
    /// # Errors
    ///
    /// All of it was wrong, or the contestant could not be reached.
    fn measure(&mut self, job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError>;
}

/// The name of a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContestantName {
    /// An index of this project.
    Index(AnyEngine),
    /// The OpenBw-Tree with some of its optimisations.
    BwVariant(BwVariant),
    /// A contention-adapting tree that does not adapt.
    FixedGrain(FixedGrain),
    /// The standard library's `BTreeMap`, without a lock.
    PlainBTreeMap,
    /// A rival that is a Rust crate.
    Rival(Rival),
    /// A table of rows of this project.
    Table(RowTable),
    /// An ETS table in a real Erlang.
    Erlang(Ets),
    /// The mailboxes of this project, in a mode.
    Mailbox(Mode),
    /// A rival of the mailboxes.
    ChannelRival(ChannelRival),
    /// A process in a real Erlang.
    ErlangProcess(MessageQueue),
    /// The shards of this project, in a form, or what they are measured by.
    Shard(ShardForm),
    /// A counter of this process.
    Counter(CounterKind),
    /// The size of an ETS table in a real Erlang.
    ErlangCounter(EtsCounter),
    /// A server of the Redis protocol.
    Server(ServerKind),
}

impl ContestantName {
    /// Everyone, in the order in which they take turns.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let indexes = AnyEngine::ALL.into_iter().map(Self::Index);
        let rivals = Rival::ALL.into_iter().map(Self::Rival);
        let erlang = Ets::ALL.into_iter().map(Self::Erlang);
        let rows = RowTable::ALL.into_iter().map(Self::Table);
        let variants = BwVariant::ALL.into_iter().map(Self::BwVariant);
        let grains = FixedGrain::ALL.into_iter().map(Self::FixedGrain);
        let tables = indexes
            .chain(variants)
            .chain(grains)
            .chain([Self::PlainBTreeMap])
            .chain(rivals)
            .chain(rows)
            .chain(erlang);
        let mailboxes = Mode::ALL.into_iter().map(Self::Mailbox);
        let rivals = ChannelRival::ALL.into_iter().map(Self::ChannelRival);
        let erlang = MessageQueue::ALL.into_iter().map(Self::ErlangProcess);
        let shards = ShardForm::ALL.into_iter().map(Self::Shard);
        let counters = CounterKind::ALL.into_iter().map(Self::Counter);
        let servers = ServerKind::ALL.into_iter().map(Self::Server);
        let sizes = EtsCounter::ALL.into_iter().map(Self::ErlangCounter);
        tables
            .chain(mailboxes)
            .chain(rivals)
            .chain(erlang)
            .chain(shards)
            .chain(counters)
            .chain(sizes)
            .chain(servers)
            .collect()
    }

    /// What it is.
    #[must_use]
    pub const fn kind(self) -> ContestantKind {
        match self {
            Self::Index(_)
            | Self::BwVariant(_)
            | Self::FixedGrain(_)
            | Self::PlainBTreeMap
            | Self::Rival(_)
            | Self::Table(_)
            | Self::Erlang(_) => ContestantKind::Tables,
            Self::Mailbox(_) | Self::ChannelRival(_) | Self::ErlangProcess(_) => {
                ContestantKind::Channels
            }
            Self::Shard(_) => ContestantKind::Shards,
            Self::Counter(_) | Self::ErlangCounter(_) => ContestantKind::Counters,
            Self::Server(_) => ContestantKind::Servers,
        }
    }

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Index(engine) => engine.name(),
            Self::BwVariant(variant) => variant.name(),
            Self::FixedGrain(grain) => grain.name(),
            Self::PlainBTreeMap => PlainBTreeMap::NAME,
            Self::Rival(rival) => rival.name(),
            Self::Table(kind) => kind.name(),
            Self::Erlang(kind) => kind.name(),
            Self::Mailbox(mode) => signals::mailbox_name(mode),
            Self::ChannelRival(rival) => rival.name(),
            Self::ErlangProcess(queue) => queue.name(),
            Self::Shard(form) => form.name(),
            Self::Counter(kind) => kind.name(),
            Self::ErlangCounter(kind) => kind.name(),
            Self::Server(kind) => kind.name(),
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Index(_) => "an index of Tremula, in this process",
            Self::BwVariant(variant) => variant.about(),
            Self::FixedGrain(grain) => grain.about(),
            Self::PlainBTreeMap => PlainBTreeMap::ABOUT,
            Self::Rival(rival) => rival.about(),
            Self::Table(kind) => kind.about(),
            Self::Erlang(kind) => kind.about(),
            Self::Mailbox(_) => "a mailbox of Tremula, in this process",
            Self::ChannelRival(rival) => rival.about(),
            Self::ErlangProcess(queue) => queue.about(),
            Self::Shard(form) => form.about(),
            Self::Counter(kind) => kind.about(),
            Self::ErlangCounter(kind) => kind.about(),
            Self::Server(kind) => kind.about(),
        }
    }

    /// What this machine lacks to let it take part, and how to get it; `None` if nothing.
    #[must_use]
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Self::Index(_)
            | Self::BwVariant(_)
            | Self::FixedGrain(_)
            | Self::PlainBTreeMap
            | Self::Table(_)
            | Self::Mailbox(_)
            | Self::Shard(_)
            | Self::Counter(_) => None,
            Self::Server(kind) => kind.missing(),
            Self::Rival(_) | Self::ChannelRival(_) => Rival::missing(),
            Self::Erlang(_) | Self::ErlangProcess(_) | Self::ErlangCounter(_) => erlang::missing(),
        }
    }

    /// Why it cannot take part in an experiment on tables with keys of a set; `None` if it can.
    #[must_use]
    pub fn refuses(self, experiment: &str, key_set: Option<KeySet>) -> Option<&'static str> {
        let of_rows = matches!(experiment, "ets_throughput" | "ets_bench");
        match self {
            Self::Mailbox(_) | Self::ChannelRival(_) | Self::ErlangProcess(_) => {
                Some("it is a channel and no table")
            }
            Self::Shard(_) => Some("it is a cache in shards and no table"),
            Self::Counter(_) | Self::ErlangCounter(_) => Some("it is a counter and no table"),
            Self::Server(_) => Some("it is a server and no table"),
            Self::BwVariant(_) if experiment == BwVariant::EXPERIMENT => None,
            Self::BwVariant(_) => Some("it takes part in bw_tree_ablation only"),
            _ if experiment == BwVariant::EXPERIMENT => Some("it has not the switches of bw_tree"),
            Self::PlainBTreeMap if experiment == PlainBTreeMap::EXPERIMENT => None,
            Self::PlainBTreeMap => Some("it takes part in sequential_overhead only"),
            Self::FixedGrain(_) if experiment == "adaptation" => None,
            Self::FixedGrain(_) => Some("it takes part in adaptation only"),
            Self::Index(AnyEngine::Index(
                Engine::CaTree | Engine::LfcaTree | Engine::BTree | Engine::Locked,
            )) if experiment == "adaptation" => None,
            Self::Index(_) | Self::Rival(_) if experiment == "adaptation" => {
                Some("the contention-adapting trees are compared with b_tree and locked there")
            }
            Self::Index(_) | Self::Rival(_) if of_rows => Some("it is no table of rows"),
            Self::Table(_) if of_rows => None,
            Self::Table(_) => Some("it takes part in ets_throughput and ets_bench only"),
            Self::Index(_) => None,
            Self::Rival(_) if experiment == "batched_get" => Some("it has no batched lookups"),
            Self::Rival(rival) => rival.refuses(key_set?),
            Self::Erlang(kind) => kind.refuses(experiment, key_set),
        }
    }

    /// Why it cannot take part in an experiment on channels, in this traffic with messages of this
    /// kind; `None` if it can.
    #[must_use]
    pub fn refuses_traffic(
        self,
        traffic: Traffic,
        message: Option<MessageKind>,
    ) -> Option<&'static str> {
        match self {
            Self::Index(_)
            | Self::BwVariant(_)
            | Self::FixedGrain(_)
            | Self::PlainBTreeMap
            | Self::Rival(_)
            | Self::Table(_)
            | Self::Erlang(_) => Some("it is a table and no channel"),
            Self::Shard(_) => Some("it is a cache in shards and no channel"),
            Self::Counter(_) | Self::ErlangCounter(_) => Some("it is a counter and no channel"),
            Self::Server(_) => Some("it is a server and no channel"),
            Self::Mailbox(_) | Self::ChannelRival(_) => None,
            Self::ErlangProcess(_) => MessageQueue::refuses(traffic, message),
        }
    }

    /// Why it cannot take part in a case of an experiment; `None` if it can.
    #[must_use]
    pub fn refuses_case(self, experiment: &dyn Experiment, case: &Case) -> Option<&'static str> {
        let is_set = matches!(self, Self::Table(RowTable::Set) | Self::Erlang(Ets::Set));
        let steps = |mix: EtsMix| mix.needs_order();
        let is_throughput = experiment.name() == "ets_throughput";
        if is_set && is_throughput && case.workload.parse().is_ok_and(steps) {
            return Some("a set does not step from keys that are not there");
        }
        match experiment.contestants() {
            ContestantKind::Tables => self.refuses(experiment.name(), case.key_set.parse().ok()),
            ContestantKind::Channels => {
                // The slices of one workload have names that are not its own.
                let traffic = case.workload.parse().unwrap_or(Traffic::Phases);
                self.refuses_traffic(traffic, case.key_set.parse().ok())
            }
            ContestantKind::Counters => match self {
                Self::Counter(_) | Self::ErlangCounter(_) => None,
                _ => Some("it is no counter"),
            },
            ContestantKind::Servers => match self {
                Self::Server(_) => None,
                _ => Some("it is no server"),
            },
            ContestantKind::Shards => match self {
                Self::Shard(_) => None,
                _ => Some("it is no cache in shards"),
            },
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

/// Whether there is a program of this name.
fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether this machine has what the contestant needs.
///
/// # Errors
///
/// It has not.
pub(crate) fn available(name: ContestantName) -> Result<(), LabError> {
    match name.missing() {
        None => Ok(()),
        Some(missing) => Err(LabError::Unavailable {
            engine: name.name(),
            missing,
        }),
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
    let mut machine: Option<ErlangMachine> = None;
    let mut contestants: Vec<Box<dyn Contestant>> = Vec::new();
    let channel = |kind| InProcessChannel::new(kind, settings.fill_command.clone());
    for name in names {
        available(*name)?;
        let mut erlang = || match &machine {
            Some(machine) => Ok::<_, LabError>(machine.clone()),
            None => Ok(machine.insert(ErlangMachine::start()?).clone()),
        };
        match *name {
            ContestantName::Index(engine) => {
                contestants.push(in_process(Table::Index(engine), settings));
            }
            ContestantName::BwVariant(variant) => {
                contestants.push(in_process(Table::BwVariant(variant), settings));
            }
            ContestantName::FixedGrain(grain) => {
                contestants.push(in_process(Table::FixedGrain(grain), settings));
            }
            ContestantName::PlainBTreeMap => contestants.push(Box::new(PlainBTreeMap)),
            ContestantName::Rival(rival) => {
                contestants.push(in_process(Table::Rival(rival), settings));
            }
            ContestantName::Table(kind) => {
                contestants.push(Box::new(row_table::RowTableContestant(kind)));
            }
            ContestantName::Erlang(kind) => contestants.push(Box::new(erlang()?.table(kind))),
            ContestantName::Mailbox(mode) => {
                contestants.push(Box::new(channel(ChannelKind::Mailbox(mode))));
            }
            ContestantName::ChannelRival(rival) => {
                contestants.push(Box::new(channel(ChannelKind::Rival(rival))));
            }
            ContestantName::ErlangProcess(queue) => {
                contestants.push(Box::new(erlang()?.process(queue)));
            }
            ContestantName::Counter(kind) => {
                contestants.push(Box::new(counters::CounterContestant(kind)));
            }
            ContestantName::ErlangCounter(kind) => {
                contestants.push(Box::new(erlang()?.counter(kind)));
            }
            ContestantName::Server(kind) => {
                contestants.push(Box::new(servers::ServerContestant::start(kind)?));
            }
            ContestantName::Shard(form) => {
                contestants.push(Box::new(shards::ShardContestant(form)));
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
        assert!(refuses("kanal", "memory", KeySet::RandInt).is_some());
        assert!(refuses("erlang_ets_set", "memory", KeySet::RandInt).is_some());
        assert!(refuses("table_ca_tree", "ycsb", KeySet::RandInt).is_some());
        assert!(name("ca_tree").refuses("ets_throughput", None).is_some());
        assert_eq!(name("table_set").refuses("ets_throughput", None), None);
        assert!(name("ca_tree").refuses("ets_bench", None).is_some());
        assert_eq!(name("erlang_ets_set").refuses("ets_bench", None), None);
        for variant in BwVariant::ALL {
            let variant = ContestantName::BwVariant(variant);
            assert_eq!(variant.refuses("bw_tree_ablation", None), None);
            assert!(variant.refuses("ycsb", None).is_some());
        }
        assert!(name("bw_tree").refuses("bw_tree_ablation", None).is_some());
    }

    #[test]
    fn who_cannot_send_says_why() {
        let refuses = |who: &str, traffic, message| {
            let who = who.parse::<ContestantName>().unwrap();
            who.refuses_traffic(traffic, Some(message))
        };
        for traffic in Traffic::ALL {
            assert_eq!(refuses("mailbox_auto", traffic, MessageKind::Word), None);
            assert_eq!(refuses("spillway", traffic, MessageKind::Boxed100), None);
            assert!(refuses("ca_tree", traffic, MessageKind::Word).is_some());
        }
        let erlang = |traffic, message| refuses("erlang_off_heap", traffic, message);
        assert_eq!(erlang(Traffic::Live, MessageKind::Words100), None);
        assert!(erlang(Traffic::Live, MessageKind::Boxed100).is_some());
        assert!(erlang(Traffic::Burst, MessageKind::Word).is_some());
    }
}
