//! What `tremula-lab all` measures: for each experiment its settings, quick and full.
//!
//! Quick touches every experiment and ends within ten minutes on two cores, with rivals and Erlang.
//! Full takes about an hour, and published figures come from it: three runs of every informative
//! cell, on tables that do not fit into a processor's caches.

use crate::{
    LabError, Settings,
    contestants::ContestantName,
    experiments,
    keys::KeySet,
    plan::Plan,
    workload::{Distribution, MessageKind},
};
use std::time::Duration;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Quick,
    Full,
}

/// An experiment, and what is measured in it.
struct Entry {
    experiment: &'static str,
    quick: &'static [Part],
    full: &'static [Part],
}

/// One run of an experiment. A field that is empty or `None` is left to the experiment.
struct Part {
    /// Every contestant that can take part, if empty.
    engines: &'static [&'static str],
    threads: &'static [usize],
    keys: Option<u64>,
    key_sets: &'static [KeySet],
    mixes: &'static [&'static str],
    messages: &'static [MessageKind],
    distributions: &'static [Distribution],
    /// How long a measurement lasts that does not end by itself, in milliseconds.
    milliseconds: u64,
    runs: usize,
}

const QUICK: Part = Part {
    engines: &[],
    threads: &[1, 2],
    keys: None,
    key_sets: &[],
    mixes: &[],
    messages: &[],
    distributions: &[],
    milliseconds: 40,
    runs: 1,
};

const FULL: Part = Part {
    threads: &[1, 2, 8],
    milliseconds: 300,
    runs: 3,
    ..QUICK
};

/// The tables of rows that differ most, and Erlang's.
const ROWS: &[&str] = &[
    "table_set",
    "table_ca_tree",
    "table_locked",
    "table_b_tree",
    "erlang_ets_old",
    "erlang_ets_new",
    "erlang_ets_set",
];

/// The forms of shards that the article compares, and this project's own.
const SHARDS: &[&str] = &[
    "plain_locks",
    "threading_article",
    "local_set_article",
    "affinity_article",
    "threading",
    "local_set",
    "affinity",
];

/// The experiments, in the order in which they are measured.
const SUITE: &[Entry] = &[
    Entry {
        experiment: "insert_disjoint_ranges",
        quick: &[Part {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[Part {
            threads: &[1, 2, 4, 8],
            keys: Some(2_000_000),
            ..FULL
        }],
    },
    Entry {
        experiment: "ordered_mix",
        quick: &[Part {
            keys: Some(1 << 16),
            mixes: &["update100", "lookup", "nextseq"],
            ..QUICK
        }],
        full: &[
            // As many keys as the originals had. With fewer, each core would need what another has
            // just written.
            Part {
                keys: Some(1 << 20),
                mixes: &["update100", "update20", "lookup", "nextseq"],
                ..FULL
            },
            // The mixes that Erlang's own comparison has in addition.
            Part {
                engines: &["ca_tree", "locked", "erlang_ets_old", "erlang_ets_new"],
                keys: Some(1 << 20),
                mixes: &["update50", "update1"],
                ..FULL
            },
        ],
    },
    Entry {
        experiment: "range_update",
        quick: &[Part {
            threads: &[2],
            keys: Some(1 << 16),
            ..QUICK
        }],
        full: &[Part {
            threads: &[2, 8],
            keys: Some(1 << 17),
            ..FULL
        }],
    },
    Entry {
        experiment: "ycsb",
        quick: &[Part {
            keys: Some(50_000),
            distributions: &[Distribution::Zipfian],
            ..QUICK
        }],
        full: &[
            Part {
                keys: Some(1_000_000),
                key_sets: &[KeySet::RandInt, KeySet::MonoInt],
                distributions: &[Distribution::Zipfian],
                ..FULL
            },
            Part {
                keys: Some(500_000),
                key_sets: &[KeySet::Email],
                distributions: &[Distribution::Zipfian],
                ..FULL
            },
        ],
    },
    Entry {
        experiment: "high_contention",
        quick: &[Part {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[Part {
            keys: Some(500_000),
            ..FULL
        }],
    },
    Entry {
        experiment: "batched_get",
        quick: &[Part {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[Part {
            threads: &[1, 2],
            keys: Some(500_000),
            ..FULL
        }],
    },
    Entry {
        experiment: "remove",
        quick: &[Part {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[Part {
            keys: Some(500_000),
            ..FULL
        }],
    },
    Entry {
        experiment: "long_scan",
        quick: &[Part {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[Part {
            threads: &[1, 2],
            keys: Some(500_000),
            ..FULL
        }],
    },
    Entry {
        experiment: "snapshot_beside_writers",
        quick: &[Part {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[Part {
            threads: &[1, 2],
            keys: Some(500_000),
            ..FULL
        }],
    },
    Entry {
        experiment: "bw_tree_ablation",
        quick: &[Part {
            keys: Some(50_000),
            distributions: &[Distribution::Zipfian],
            ..QUICK
        }],
        full: &[Part {
            threads: &[1, 2],
            keys: Some(1_000_000),
            distributions: &[Distribution::Zipfian],
            ..FULL
        }],
    },
    Entry {
        experiment: "memory",
        quick: &[Part {
            threads: &[1],
            keys: Some(50_000),
            ..QUICK
        }],
        // Bytes are the same in every run.
        full: &[Part {
            threads: &[1],
            keys: Some(1_000_000),
            runs: 1,
            ..FULL
        }],
    },
    Entry {
        experiment: "signals",
        quick: &[
            Part {
                threads: &[1, 2, 8],
                messages: &[MessageKind::Word],
                mixes: &["drain", "live", "ping_pong", "uncontended_send", "phases"],
                ..QUICK
            },
            Part {
                threads: &[1],
                keys: Some(100_000),
                mixes: &["burst"],
                ..QUICK
            },
        ],
        full: &[
            Part {
                threads: &[1, 2, 4, 16, 64],
                messages: &[MessageKind::Word],
                mixes: &["live", "ping_pong", "uncontended_send", "phases"],
                ..FULL
            },
            Part {
                threads: &[1, 16],
                messages: &[MessageKind::Word],
                mixes: &["drain"],
                ..FULL
            },
            Part {
                threads: &[1, 16],
                messages: &[MessageKind::Words8, MessageKind::Words100],
                mixes: &["live"],
                ..FULL
            },
            Part {
                threads: &[16],
                keys: Some(1_000_000),
                mixes: &["burst"],
                ..FULL
            },
        ],
    },
    Entry {
        experiment: "ets_throughput",
        quick: &[Part {
            engines: ROWS,
            keys: Some(1 << 16),
            mixes: &["update100", "lookup", "next100", "select_range_1_in_100"],
            ..QUICK
        }],
        full: &[Part {
            engines: ROWS,
            threads: &[1, 2],
            keys: Some(1 << 17),
            mixes: &[
                "update100",
                "update20",
                "lookup",
                "next100",
                "select_range_1_in_100",
            ],
            ..FULL
        }],
    },
    Entry {
        experiment: "ets_bench",
        quick: &[Part {
            engines: ROWS,
            keys: Some(10_000),
            mixes: &[
                "insert_absent",
                "lookup_hit",
                "update_counter",
                "delete",
                "next",
                "select_100",
                "tab2list",
            ],
            ..QUICK
        }],
        full: &[Part {
            engines: ROWS,
            keys: Some(100_000),
            milliseconds: 50,
            ..FULL
        }],
    },
    Entry {
        experiment: "shard_cache",
        quick: &[Part {
            engines: SHARDS,
            threads: &[2],
            mixes: &["write_64", "read_64", "hot_id", "paced"],
            ..QUICK
        }],
        full: &[Part {
            engines: SHARDS,
            threads: &[2],
            ..FULL
        }],
    },
    Entry {
        experiment: "adaptation",
        quick: &[Part {
            threads: &[2],
            keys: Some(1 << 14),
            ..QUICK
        }],
        // The result is shown over seconds, in which trees have time to adapt.
        full: &[Part {
            threads: &[8],
            keys: Some(1 << 18),
            milliseconds: 1000,
            ..FULL
        }],
    },
    Entry {
        experiment: "sequential_overhead",
        quick: &[Part {
            threads: &[1],
            keys: Some(20_000),
            ..QUICK
        }],
        full: &[Part {
            threads: &[1],
            keys: Some(500_000),
            milliseconds: 100,
            ..FULL
        }],
    },
    Entry {
        experiment: "counter_scaling",
        quick: &[Part {
            threads: &[1, 2],
            ..QUICK
        }],
        full: &[Part {
            threads: &[1, 2, 4, 8],
            milliseconds: 100,
            ..FULL
        }],
    },
    Entry {
        experiment: "redis",
        quick: &[Part {
            threads: &[50],
            keys: Some(10_000),
            ..QUICK
        }],
        full: &[Part {
            threads: &[50],
            keys: Some(100_000),
            ..FULL
        }],
    },
];

impl Part {
    fn settings(&self, own: &Settings) -> Settings {
        Settings {
            threads: Some(self.threads.to_vec()).filter(|threads| !threads.is_empty()),
            keys: self.keys,
            key_sets: self.key_sets.to_vec(),
            mixes: self.mixes.iter().map(ToString::to_string).collect(),
            messages: self.messages.to_vec(),
            distributions: self.distributions.to_vec(),
            duration: Duration::from_millis(self.milliseconds),
            runs: self.runs,
            ..own.clone()
        }
    }
}

/// The plans of this extent, in order, with those contestants that are `asked` for (all, if none
/// is). Of the user's own settings only the seed, the repeats, pinning and the command that weighs
/// count.
///
/// # Errors
///
/// The suite names something that does not exist.
pub(crate) fn plans(
    extent: Extent,
    own: &Settings,
    asked: &[ContestantName],
    missing: fn(ContestantName) -> Option<&'static str>,
) -> Result<Vec<Plan>, LabError> {
    let mut plans = Vec::new();
    for entry in SUITE {
        let experiment = experiments::find(entry.experiment)?;
        let parts = match extent {
            Extent::Quick => entry.quick,
            Extent::Full => entry.full,
        };
        for part in parts {
            let mut candidates = ContestantName::all();
            candidates.retain(|contestant| {
                contestant.is_of(experiment.contestants())
                    && (part.engines.is_empty() || part.engines.contains(&contestant.name()))
                    && (asked.is_empty() || asked.contains(contestant))
            });
            let settings = part.settings(own);
            plans.push(Plan::on_machine(
                experiment,
                settings,
                &candidates,
                missing,
            )?);
        }
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{self, Claim, Pick, Threads};

    /// The plans for a machine that lacks nothing.
    fn plans_of(extent: Extent) -> Vec<Plan> {
        plans(extent, &Settings::default(), &[], |_| None).unwrap()
    }

    #[test]
    fn every_experiment_is_planned_with_settings_that_it_takes() {
        for extent in [Extent::Quick, Extent::Full] {
            let planned = plans_of(extent);
            for experiment in experiments::ALL {
                let parts = planned.iter();
                let parts = parts.filter(|part| part.experiment.name() == experiment.name());
                let parts: Vec<_> = parts.collect();
                assert!(!parts.is_empty(), "{experiment:?} is not planned");
                assert!(parts.iter().all(|part| !part.contestants.is_empty()));
            }
        }
    }

    /// A report of the full plan has a verdict on each claim.
    #[test]
    fn every_claim_is_measured_by_the_full_plan() {
        let planned = plans_of(Extent::Full);
        let is_measured = |claim: &Claim, pick: &Pick| {
            let engine: ContestantName = pick.engine.parse().unwrap();
            planned
                .iter()
                .filter(|part| part.experiment.name() == claim.experiment)
                .filter(|part| part.contestants.contains(&engine))
                .flat_map(|part| &part.groups)
                .flat_map(|group| &group.cases)
                .any(|case| {
                    case.workload == pick.workload
                        && (pick.key_set.is_empty() || case.key_set == pick.key_set)
                        && match pick.threads {
                            Threads::Just(threads) => case.threads == threads,
                            Threads::Cores => true,
                        }
                })
        };
        let mut missing = Vec::new();
        for claim in claims::ALL.iter() {
            for pick in claim.picks() {
                if !is_measured(claim, &pick) {
                    missing.push(format!("{}: {pick:?}", claim.experiment));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:#?}");
    }

    /// By the estimates, with all engines and rivals, the plans take the promised time, and quick
    /// at most half of it, because machines differ.
    #[test]
    fn plans_take_as_long_as_promised() {
        const MINUTE: f64 = 60.0;
        let minutes = |extent| {
            let planned = plans_of(extent);
            planned.iter().map(Plan::seconds).sum::<f64>() / MINUTE
        };
        let (quick, full) = (minutes(Extent::Quick), minutes(Extent::Full));
        assert!(quick < 5.0, "{quick} minutes");
        assert!((20.0..90.0).contains(&full), "{full} minutes");
    }

    #[test]
    fn the_engines_that_are_planned_exist() {
        for entry in SUITE {
            for part in entry.quick.iter().chain(entry.full) {
                for engine in part.engines {
                    engine.parse::<ContestantName>().unwrap();
                }
            }
        }
    }
}
