//! What `tremula-lab all` measures: for each experiment its settings, quick and full, and for one
//! of them huge.
//!
//! Quick touches every experiment and ends within ten minutes on two cores, with rivals and Erlang.
//! Full is what published figures come from: three runs of every informative cell, of ordered
//! tables at two sizes, one that lies in a large processor's caches and one that does not. It takes
//! hours, and can be measured in [parts](crate::part). Huge is lookups, inserts and scans at a size
//! at which even the inner nodes leave the caches, of the four tables that are ahead.
//!
//! Where the originals gave a size, that size comes first: a claim is compared with the first
//! record that it fits.

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
    Huge,
}

/// An experiment, and what is measured in it.
struct Entry {
    experiment: &'static str,
    quick: &'static [Setup],
    full: &'static [Setup],
    /// Empty where nothing is measured at this size.
    huge: &'static [Setup],
}

/// One run of an experiment. A field that is empty or `None` is left to the experiment.
struct Setup {
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

const QUICK: Setup = Setup {
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

const FULL: Setup = Setup {
    threads: &[1, 2, 8],
    milliseconds: 300,
    runs: 3,
    ..QUICK
};

/// How many keys a small table has: 16 MB of keys and values at the least, of which a cache holds
/// much.
const SMALL: Setup = Setup {
    keys: Some(500_000),
    ..FULL
};

/// How many integers a large table has: ten times as many, of which a cache holds little.
const LARGE: Setup = Setup {
    keys: Some(5_000_000),
    ..FULL
};

/// How many addresses a large table has. They are longer.
const LARGE_TEXTS: Setup = Setup {
    keys: Some(2_000_000),
    key_sets: &[KeySet::Email],
    ..FULL
};

/// How many integers a range has so that as many as in a large table are present: half of them.
const LARGE_RANGE: Setup = Setup {
    keys: Some(10_000_000),
    ..FULL
};

/// The tables that are measured at fifty million keys.
const AHEAD: &[&str] = &["aspen", "b_tree", "art", "bbtree", "arctic_map"];

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
        quick: &[Setup {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[
            Setup {
                threads: &[1, 2, 4, 8],
                ..LARGE
            },
            Setup {
                threads: &[1, 2, 4, 8],
                ..SMALL
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "ordered_mix",
        quick: &[Setup {
            keys: Some(1 << 16),
            mixes: &["update100", "lookup", "nextseq"],
            ..QUICK
        }],
        full: &[
            // As many keys as the originals had. With fewer, each core would need what another has
            // just written.
            Setup {
                keys: Some(1 << 20),
                mixes: &["update100", "update20", "update1", "lookup", "nextseq"],
                ..FULL
            },
            // A mix that Erlang's own comparison has in addition.
            Setup {
                engines: &["ca_tree", "locked", "erlang_ets_old", "erlang_ets_new"],
                keys: Some(1 << 20),
                mixes: &["update50"],
                ..FULL
            },
            Setup {
                threads: &[1, 2],
                mixes: &["update100", "lookup"],
                ..LARGE_RANGE
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "range_update",
        quick: &[Setup {
            threads: &[2],
            keys: Some(1 << 16),
            ..QUICK
        }],
        full: &[
            Setup {
                threads: &[2, 8],
                keys: Some(1 << 20),
                ..FULL
            },
            Setup {
                threads: &[2],
                ..LARGE_RANGE
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "ycsb",
        quick: &[Setup {
            keys: Some(50_000),
            distributions: &[Distribution::Zipfian],
            ..QUICK
        }],
        full: &[
            Setup {
                key_sets: &[KeySet::RandInt],
                ..LARGE
            },
            Setup {
                key_sets: &[KeySet::MonoInt],
                ..LARGE
            },
            LARGE_TEXTS,
            Setup {
                key_sets: &[KeySet::RandInt, KeySet::MonoInt, KeySet::Email],
                ..SMALL
            },
        ],
        huge: &[Setup {
            engines: AHEAD,
            threads: &[1, 2],
            keys: Some(50_000_000),
            key_sets: &[KeySet::RandInt],
            mixes: &["insert", "c", "e"],
            distributions: &[Distribution::Uniform],
            ..FULL
        }],
    },
    Entry {
        experiment: "high_contention",
        quick: &[Setup {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[LARGE, SMALL],
        huge: &[],
    },
    Entry {
        experiment: "batched_get",
        quick: &[Setup {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[
            Setup {
                threads: &[1, 2],
                key_sets: &[KeySet::RandInt],
                ..LARGE
            },
            Setup {
                threads: &[1, 2],
                ..LARGE_TEXTS
            },
            Setup {
                threads: &[1, 2],
                ..SMALL
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "remove",
        quick: &[Setup {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[LARGE, SMALL],
        huge: &[],
    },
    Entry {
        experiment: "long_scan",
        quick: &[Setup {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[
            Setup {
                threads: &[1, 2],
                ..LARGE
            },
            Setup {
                threads: &[1, 2],
                ..SMALL
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "snapshot_beside_writers",
        quick: &[Setup {
            keys: Some(50_000),
            ..QUICK
        }],
        full: &[
            Setup {
                threads: &[1, 2],
                ..LARGE
            },
            Setup {
                threads: &[1, 2],
                ..SMALL
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "bw_tree_ablation",
        quick: &[Setup {
            keys: Some(50_000),
            distributions: &[Distribution::Zipfian],
            ..QUICK
        }],
        full: &[
            Setup {
                threads: &[1, 2],
                distributions: &[Distribution::Zipfian],
                ..LARGE
            },
            Setup {
                threads: &[1, 2],
                distributions: &[Distribution::Zipfian],
                ..SMALL
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "memory",
        quick: &[Setup {
            threads: &[1],
            keys: Some(50_000),
            ..QUICK
        }],
        // Bytes are the same in every run.
        full: &[
            Setup {
                threads: &[1],
                key_sets: &[KeySet::RandInt, KeySet::MonoInt, KeySet::Append],
                runs: 1,
                ..LARGE
            },
            Setup {
                threads: &[1],
                runs: 1,
                ..LARGE_TEXTS
            },
            Setup {
                threads: &[1],
                runs: 1,
                ..SMALL
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "signals",
        quick: &[
            Setup {
                threads: &[1, 2, 8],
                messages: &[MessageKind::Word],
                mixes: &["drain", "live", "ping_pong", "uncontended_send", "phases"],
                ..QUICK
            },
            Setup {
                threads: &[1],
                keys: Some(100_000),
                mixes: &["burst"],
                ..QUICK
            },
        ],
        full: &[
            Setup {
                threads: &[1, 2, 4, 16, 64],
                messages: &[MessageKind::Word],
                mixes: &["live", "ping_pong", "uncontended_send", "phases"],
                ..FULL
            },
            Setup {
                threads: &[1, 16],
                messages: &[MessageKind::Word],
                mixes: &["drain"],
                ..FULL
            },
            Setup {
                threads: &[1, 16],
                messages: &[MessageKind::Words8, MessageKind::Words100],
                mixes: &["live"],
                ..FULL
            },
            Setup {
                threads: &[16],
                keys: Some(1_000_000),
                mixes: &["burst"],
                ..FULL
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "ets_throughput",
        quick: &[Setup {
            engines: ROWS,
            keys: Some(1 << 16),
            mixes: &["update100", "lookup", "next100", "select_range_1_in_100"],
            ..QUICK
        }],
        full: &[Setup {
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
        huge: &[],
    },
    Entry {
        experiment: "ets_bench",
        quick: &[Setup {
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
        full: &[Setup {
            engines: ROWS,
            keys: Some(100_000),
            milliseconds: 50,
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "shard_cache",
        quick: &[Setup {
            engines: SHARDS,
            threads: &[2],
            mixes: &["write_64", "read_64", "hot_id", "paced"],
            ..QUICK
        }],
        full: &[Setup {
            engines: SHARDS,
            threads: &[2],
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "adaptation",
        quick: &[Setup {
            threads: &[2],
            keys: Some(1 << 14),
            ..QUICK
        }],
        // The result is shown over seconds, in which trees have time to adapt.
        full: &[Setup {
            threads: &[8],
            keys: Some(1 << 18),
            milliseconds: 1000,
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "sequential_overhead",
        quick: &[Setup {
            threads: &[1],
            keys: Some(20_000),
            ..QUICK
        }],
        full: &[
            Setup {
                threads: &[1],
                key_sets: &[KeySet::RandInt],
                milliseconds: 100,
                ..LARGE
            },
            Setup {
                threads: &[1],
                milliseconds: 100,
                ..LARGE_TEXTS
            },
            Setup {
                threads: &[1],
                milliseconds: 100,
                ..SMALL
            },
        ],
        huge: &[],
    },
    Entry {
        experiment: "counter_scaling",
        quick: &[Setup {
            threads: &[1, 2],
            ..QUICK
        }],
        full: &[Setup {
            threads: &[1, 2, 4, 8],
            milliseconds: 100,
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "observing",
        quick: &[Setup {
            threads: &[10],
            keys: Some(10_000),
            ..QUICK
        }],
        full: &[Setup {
            threads: &[50],
            milliseconds: 2000,
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "beside_attackers",
        quick: &[Setup {
            threads: &[1],
            keys: Some(10_000),
            ..QUICK
        }],
        full: &[Setup {
            threads: &[1, 4],
            milliseconds: 1000,
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "expiry",
        quick: &[Setup {
            threads: &[2],
            keys: Some(10_000),
            ..QUICK
        }],
        full: &[Setup {
            threads: &[4],
            milliseconds: 2000,
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "redis",
        quick: &[Setup {
            threads: &[50],
            keys: Some(10_000),
            ..QUICK
        }],
        full: &[Setup {
            threads: &[50],
            keys: Some(100_000),
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "transactions",
        quick: &[Setup {
            threads: &[50],
            keys: Some(10_000),
            ..QUICK
        }],
        full: &[Setup {
            threads: &[50],
            keys: Some(100_000),
            ..FULL
        }],
        huge: &[],
    },
    Entry {
        experiment: "feeds",
        quick: &[Setup {
            threads: &[50],
            keys: Some(10_000),
            ..QUICK
        }],
        full: &[Setup {
            threads: &[50],
            keys: Some(100_000),
            ..FULL
        }],
        huge: &[],
    },
];

impl Setup {
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
        let setups = match extent {
            Extent::Quick => entry.quick,
            Extent::Full => entry.full,
            Extent::Huge => entry.huge,
        };
        for setup in setups {
            let mut candidates = ContestantName::all();
            candidates.retain(|contestant| {
                contestant.is_of(experiment.contestants())
                    && (setup.engines.is_empty() || setup.engines.contains(&contestant.name()))
                    && (asked.is_empty() || asked.contains(contestant))
            });
            let settings = setup.settings(own);
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
mod tests;
