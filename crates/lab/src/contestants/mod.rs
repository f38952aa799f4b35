//! The contestants: the indexes, tables, mailboxes and shards of this project, and rivals, each
//! behind one adapter.

mod bw_variant;
mod contestant;
mod counters;
mod erlang;
mod grain;
mod in_process;
mod rival;
mod row_bench;
mod row_contestant;
mod row_model;
mod row_table;
mod sequential;
mod servers;
mod shards;
mod signals;
mod store_calls;
mod subject;

pub use bw_variant::BwVariant;
pub use contestant::{Asked, Contestant, Entrant, Measures, Samples, Side, Started, Starter};
pub use counters::CounterKind;
pub use erlang::{
    ErlangMachine, ErlangProcess, Ets, EtsCounter, EtsCounterContestant, EtsTable, MessageQueue,
};
pub use grain::FixedGrain;
pub use in_process::{InProcess, Table, fill};
pub use rival::Rival;
pub use row_table::RowTable;
pub use servers::ServerKind;
pub use shards::{ShardForm, peak_of_affinity};
#[cfg(all(test, feature = "rivals"))]
pub(crate) use signals::channel_tests;
#[cfg(feature = "rivals")]
pub(crate) use signals::{Channel, ChannelTask, Receiving, Sending};
pub use signals::{ChannelKind, ChannelRival, InProcessChannel, QueueKind, burst};
pub(crate) use subject::Task;
#[cfg(all(test, feature = "rivals"))]
pub(crate) use subject::tests as subject_tests;
pub use subject::{Index, Subject, check};

use crate::{LabError, case::ContestantKind};
use sequential::PlainBTreeMap;
use std::{fmt, str::FromStr, sync::LazyLock};
use store_calls::StoreCalls;

/// A contestant by its name.
#[derive(Clone, Copy)]
pub struct ContestantName(&'static dyn Entrant);

/// Every contestant, in the order in which they are listed and recorded.
static ALL: LazyLock<Vec<ContestantName>> = LazyLock::new(|| {
    let mut all = Vec::new();
    enter(&mut all, Table::ours());
    enter(&mut all, [PlainBTreeMap]);
    enter(&mut all, Rival::ALL.map(Table::Rival));
    enter(&mut all, RowTable::all());
    enter(&mut all, [StoreCalls]);
    enter(&mut all, Ets::ALL);
    enter(&mut all, ChannelKind::all());
    enter(&mut all, MessageQueue::ALL);
    enter(&mut all, ShardForm::ALL);
    enter(&mut all, CounterKind::ALL);
    enter(&mut all, EtsCounter::ALL);
    enter(&mut all, ServerKind::ALL);
    all
});

/// Adds a family of contestants, leaking them: they live as long as the program.
fn enter<E: Entrant + 'static>(all: &mut Vec<ContestantName>, family: impl IntoIterator<Item = E>) {
    let leaked = |entrant: E| ContestantName(Box::leak(Box::new(entrant)));
    all.extend(family.into_iter().map(leaked));
}

impl ContestantName {
    /// Every contestant, in the order in which they are listed and recorded.
    #[must_use]
    pub fn all() -> Vec<Self> {
        ALL.clone()
    }

    /// Its own kind.
    #[must_use]
    pub fn kind(self) -> ContestantKind {
        self.0.kinds()[0]
    }

    /// Whether it can be started for experiments of this kind.
    #[must_use]
    pub fn is_of(self, kind: ContestantKind) -> bool {
        self.0.kinds().contains(&kind)
    }

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// What it is, in a line.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.0.about()
    }

    /// Its relation to this project.
    #[must_use]
    pub fn side(self) -> Side {
        self.0.side()
    }

    /// What this machine lacks to run it, and how to get that; `None` if nothing.
    #[must_use]
    pub fn missing(self) -> Option<&'static str> {
        if cfg!(sim) && !self.0.is_in_process() {
            return Some("it runs in a process of its own, which no simulation reaches");
        }
        self.0.missing()
    }

    /// Why it cannot take part in an experiment of this kind; `None` if it can.
    #[must_use]
    pub fn refuses(self, kind: ContestantKind, asked: &Asked<'_>) -> Option<String> {
        if !self.is_of(kind) {
            return Some(self.kind().is_no(kind));
        }
        self.0.refuses(asked).map(str::to_owned)
    }

    /// Checks that this machine has what it needs.
    ///
    /// # Errors
    ///
    /// Something is missing.
    pub(crate) fn available(self) -> Result<(), LabError> {
        match self.missing() {
            None => Ok(()),
            Some(missing) => Err(LabError::Unavailable {
                engine: self.name(),
                missing,
            }),
        }
    }

    /// Starts it for experiments of this kind.
    ///
    /// # Errors
    ///
    /// It is not of this kind, is not available on this machine, or could not be started.
    pub fn start(
        self,
        kind: ContestantKind,
        starter: &mut Starter,
    ) -> Result<Contestant, LabError> {
        if !self.is_of(kind) {
            return Err(LabError::Unavailable {
                engine: self.name(),
                missing: "the experiment is for contestants of another kind",
            });
        }
        self.available()?;
        self.0.start(kind, starter)
    }
}

impl PartialEq for ContestantName {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for ContestantName {}

impl fmt::Debug for ContestantName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
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
        ALL.iter()
            .copied()
            .find(|contestant| contestant.name() == name)
            .ok_or_else(|| LabError::UnknownEngine {
                name: name.to_owned(),
                known: ALL.iter().map(|c| c.name()).collect::<Vec<_>>().join(", "),
            })
    }
}

/// The relation of this contestant to this project; `None` if this lab does not know the name.
#[must_use]
pub fn side_of(name: &str) -> Option<Side> {
    let contestant: Option<ContestantName> = name.parse().ok();
    contestant.map(ContestantName::side)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiments,
        keys::KeySet,
        workload::{MessageKind, Traffic},
    };

    fn refuses(who: &str, experiment: &str, workload: &str, key_set: &str) -> Option<String> {
        let asked = Asked {
            experiment,
            workload: Some(workload),
            key_set: Some(key_set),
        };
        let kind = experiments::find(experiment).unwrap().contestants();
        who.parse::<ContestantName>().unwrap().refuses(kind, &asked)
    }

    #[test]
    fn names_are_unique_and_read_back() {
        let mut names: Vec<_> = ContestantName::all().iter().map(|c| c.name()).collect();
        for name in &names {
            assert_eq!(name.parse::<ContestantName>().unwrap().name(), *name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        let error = "ca_trea".parse::<ContestantName>().unwrap_err().to_string();
        assert!(
            error.contains("'ca_trea'") && error.contains("erlang_ets_new"),
            "{error}"
        );
    }

    #[test]
    fn who_cannot_take_part_says_why() {
        let refuses = |who, experiment, set| refuses(who, experiment, "", set);
        for experiment in ["ycsb", "memory"] {
            for set in KeySet::ALL {
                assert_eq!(refuses("ca_tree", experiment, set.name()), None);
                assert_eq!(refuses("masstree_crate", experiment, set.name()), None);
                let refused = refuses("congee", experiment, set.name());
                assert_eq!(refused.is_some(), set == KeySet::Email);
            }
        }
        assert!(refuses("congee", "batched_get", "rand_int").is_some());
        assert_eq!(refuses("bbtree", "batched_get", "email"), None);
        for set in ["rand_int", "mono_int"] {
            for who in ["b_tree", "skip_list", "congee", "rwlock_btreemap"] {
                assert_eq!(refuses(who, "remove", set), None);
            }
            for who in ["ca_tree", "bw_tree", "rwlock_btreemap"] {
                assert_eq!(refuses(who, "snapshot_beside_writers", set), None);
            }
            for who in ["skip_list", "congee", "arctic_map", "erlang_ets_new"] {
                assert!(refuses(who, "snapshot_beside_writers", set).is_some());
            }
        }
        assert!(refuses("erlang_ets_new", "ycsb", "rand_int").is_some());
        assert!(refuses("erlang_ets_new", "memory", "email").is_some());
        assert_eq!(refuses("erlang_ets_new", "memory", "rand_int"), None);
        assert!(refuses("kanal", "memory", "rand_int").is_some());
        assert!(refuses("erlang_ets_set", "memory", "rand_int").is_some());
        assert!(refuses("table_ca_tree", "ycsb", "rand_int").is_some());
        assert!(refuses("ca_tree", "ets_throughput", "").is_some());
        assert_eq!(refuses("table_set", "ets_throughput", ""), None);
        assert!(refuses("ca_tree", "ets_bench", "").is_some());
        assert_eq!(refuses("erlang_ets_set", "ets_bench", ""), None);
        assert!(refuses("btreemap", "ycsb", "rand_int").is_some());
        assert_eq!(refuses("btreemap", "sequential_overhead", "rand_int"), None);
        for variant in BwVariant::ALL {
            assert_eq!(refuses(variant.name(), "bw_tree_ablation", ""), None);
            assert!(refuses(variant.name(), "ycsb", "").is_some());
        }
        assert!(refuses("bw_tree", "bw_tree_ablation", "").is_some());
    }

    #[test]
    fn who_scans_upwards_only_says_so() {
        let refuses = |who, direction| refuses(who, "long_scan", direction, "rand_int");
        for who in ["b_tree", "skip_list", "arctic_map", "congee"] {
            assert_eq!(refuses(who, "ascending"), None);
            assert_eq!(refuses(who, "descending").is_some(), who == "congee");
        }
    }

    #[test]
    fn a_server_without_txn_or_a_log_says_so() {
        let refuses = |server, experiment, mix| refuses(server, experiment, mix, "");
        for server in ServerKind::ALL {
            let is_ours = server.name().starts_with("tremula");
            for mix in ["exec_10", "plain_8"] {
                assert_eq!(refuses(server.name(), "transactions", mix), None);
            }
            let refused = refuses(server.name(), "transactions", "txn_4_4");
            assert_eq!(refused.is_none(), is_ours, "{server:?}");
            let refused = refuses(server.name(), "feeds", "watch_1");
            assert_eq!(refused.is_none(), server == ServerKind::TremulaEverySecond);
        }
    }

    #[test]
    fn who_cannot_send_says_why() {
        let refuses = |who, traffic: Traffic, message: MessageKind| {
            refuses(who, "signals", traffic.name(), message.name())
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
