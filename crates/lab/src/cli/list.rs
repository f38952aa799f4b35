//! `tremula-lab list`: the experiments, and which contestants can take part.

use crate::{
    case::ContestantKind,
    contestants::{Asked, ContestantName},
    experiments::{self, Experiment},
    keys::KeySet,
    workload::{MessageKind, Traffic},
};

/// All names that the command line takes.
pub(super) fn list() -> String {
    let mut text = "experiments\n".to_owned();
    for experiment in experiments::ALL {
        text += &format!("  {:<22}  {}\n", experiment.name(), experiment.about());
        let mut also = |what, names: Vec<&str>| {
            if !names.is_empty() {
                text += &format!("  {:<22}  {what}: {}\n", "", names.join(", "));
            }
        };
        also("workloads", experiment.workloads());
        let threads = experiment.default_threads().iter();
        let threads: Vec<_> = threads.map(ToString::to_string).collect();
        also("threads", threads.iter().map(String::as_str).collect());
        let keys = experiment.default_keys(None).to_string();
        also("keys", vec![&keys]);
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
        ("engines of transactions", ContestantKind::Transacting),
        ("engines of feeds", ContestantKind::Watched),
        ("engines of observing", ContestantKind::Observed),
        ("engines of beside_attackers", ContestantKind::Attacked),
        ("engines of expiry", ContestantKind::Expiring),
    ] {
        text += &format!("\n{heading}\n");
        text += &list_contestants(kind);
    }
    text + &list_missing()
}

/// What is missing on this machine, how to get it, and which contestants need it.
fn list_missing() -> String {
    let mut missing: Vec<(&str, Vec<&str>)> = Vec::new();
    for contestant in ContestantName::all() {
        let Some(what) = contestant.missing() else {
            continue;
        };
        match missing.iter_mut().find(|(other, _)| *other == what) {
            Some((_, names)) => names.push(contestant.name()),
            None => missing.push((what, vec![contestant.name()])),
        }
    }
    if missing.is_empty() {
        return "\nnothing is missing on this machine\n".to_owned();
    }
    let mut text = "\nmissing on this machine\n".to_owned();
    for (what, names) in missing {
        text += &format!("  {what}\n    without it: {}\n", names.join(", "));
    }
    text
}

fn list_contestants(kind: ContestantKind) -> String {
    let mut text = String::new();
    for contestant in ContestantName::all() {
        // Tables of all kinds are listed together.
        if contestant.kind().noun() != kind.noun() {
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
fn refusals(contestant: ContestantName) -> Vec<(String, String)> {
    let refuses = |experiment: &dyn Experiment, workload, key_set| {
        let asked = Asked {
            experiment: experiment.name(),
            workload,
            key_set,
        };
        contestant.refuses(experiment.contestants(), &asked)
    };
    let found = |name| experiments::find(name).expect("the experiment is there");
    let mut refusals = Vec::new();
    if contestant.is_of(ContestantKind::Channels) {
        for traffic in Traffic::ALL {
            let why = refuses(found("signals"), Some(traffic.name()), None);
            refusals.push((traffic.name().to_owned(), why));
        }
        for kind in MessageKind::ALL {
            let why = refuses(
                found("signals"),
                Some(Traffic::Live.name()),
                Some(kind.name()),
            );
            refusals.push((format!("messages {kind}"), why));
        }
    } else if contestant.kind().noun() == ContestantKind::Tables.noun() {
        for experiment in experiments::ALL {
            if experiment.contestants().noun() == contestant.kind().noun() {
                refusals.push((
                    experiment.name().to_owned(),
                    refuses(experiment, None, None),
                ));
            }
        }
        for set in KeySet::ALL {
            let why = refuses(found("memory"), None, Some(set.name()));
            refusals.push((format!("key set {set}"), why));
        }
    }
    let refused = |(what, why): (_, Option<String>)| Some((what, why?));
    refusals.into_iter().filter_map(refused).collect()
}
