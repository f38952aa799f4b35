//! Whole groups in virtual time, with faults, against what they promise.
//!
//! Each run is a function of its seed. `TREMULA_GROUP_SEED=n` runs one seed alone, of the test that
//! is named on the command line; `TREMULA_DEEP=1` runs more seeds. What makes a run fail:
//!
//! - a reply whose effects the log does not have at that moment;
//! - a history of the clients that is not linearizable;
//! - a command whose effects are in the log twice, or not at all although it was acknowledged;
//! - a lease that goes on when another node has claimed;
//! - a follower's read that is not a state of the log, goes back, or is staler than shown;
//! - a node that refuses to serve although the log has lost nothing;
//! - a log that was cut so far that no whole snapshot leads to it;
//! - a node that does not refuse although it has read what the log has lost;
//! - five seconds without an acknowledged write after the last fault, or nodes that differ then.

mod clients;
mod faults;
mod host;
mod model;
mod objects;
mod oracle;
mod plan;
mod stream;
mod world;

use model::Model;
use plan::{Loss, MS};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;
use tremula_check::{History, Verdict, explain, search};
use tremula_group::Role;
use world::World;

/// Configurations that the search for an order may visit.
const BUDGET: usize = 200_000;

/// How many times as many seeds a deep run has.
const DEEPER: u64 = 50;

/// How long after the last fault a write is acknowledged at the latest.
const RECOVERY: u64 = 5_000 * MS;

/// Runs this number of seeds, and shows what has happened in all of them.
fn campaign(runs: u64, loss: Option<Loss>, check: fn(&mut World)) {
    let run = |seed: u64| {
        let mut world = World::new(seed, loss);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            world.run();
            check(&mut world);
        }));
        if let Err(panic) = outcome {
            println!("TREMULA_GROUP_SEED={seed} fails at {} µs", world.time);
            println!("{:?}", world.plan);
            resume_unwind(panic);
        }
        world.counts
    };
    if let Ok(seed) = std::env::var("TREMULA_GROUP_SEED") {
        let seed = seed.parse().expect("TREMULA_GROUP_SEED is a number");
        println!("{:?}", run(seed));
        return;
    }
    let deep = std::env::var_os("TREMULA_DEEP").is_some();
    let runs = if deep { runs * DEEPER } else { runs };
    let begun = Instant::now();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 1..=runs {
        for (what, count) in run(seed) {
            *counts.entry(what).or_default() += count;
        }
    }
    println!("{runs} schedules in {:?}: {counts:?}", begun.elapsed());
    assert_eq!(
        counts.get("undecided"),
        None,
        "histories that were not decided"
    );
}

/// What holds at the end of a run whose log has lost nothing.
fn keeps_its_promises(world: &mut World) {
    if let Some(refusal) = &world.oracle.refusal {
        panic!("the observer refuses: {refusal}");
    }
    let first_ack = world.first_ack.expect("writes go on after the faults");
    let back_in = first_ack - world.plan.healed;
    assert!(back_in <= RECOVERY, "back after {back_in} µs only");
    for (number, host) in world.hosts.iter().enumerate() {
        let node = host.node.as_ref().expect("every machine runs");
        assert_eq!(node.refusal(), None, "host {number}");
        assert!(
            matches!(node.role(), Role::Follower | Role::Leader(_)),
            "host {number} is {:?}: {node:?}",
            node.role()
        );
        assert_eq!(host.last_own(), world.oracle.last(), "host {number}");
        let right = world.oracle.states.last().expect("a state");
        assert_eq!(&host.state, right, "host {number}");
    }
    let leads = |host: &&host::Host| matches!(host.role(), Some(Role::Leader(_)));
    assert_eq!(world.hosts.iter().filter(leads).count(), 1, "leaders");

    let effects = &world.oracle.effects;
    for op in &world.clients.acknowledged {
        assert!(effects.contains_key(op), "command {op} is lost");
    }
    for (op, count) in effects {
        let is_once = world.clients.changes.contains(&(*op, *count));
        assert!(is_once, "command {op} has {count} effects in the log");
    }
    let history = History::new(world.clients.history(effects)).expect("a history");
    match search(&Model, &history, BUDGET) {
        Verdict::Linearizable(_) => {}
        Verdict::Stuck(stuck) => {
            panic!("{}", explain(&Model, &history, &stuck));
        }
        Verdict::Undecided => world.count("undecided"),
    }
}

/// What holds at the end of a run whose log has lost something: nodes that had read what is gone,
/// or need it, refuse; the others agree.
fn does_not_diverge(world: &mut World) {
    let ahead = world.ahead.iter().filter(|(_, read)| world.lacks(*read));
    for (number, _) in ahead {
        let node = world.hosts[*number].node.as_ref().expect("a node");
        assert!(
            node.refusal().is_some(),
            "host {number} serves as {:?} after a loss",
            node.role()
        );
    }
    let serving = world.hosts.iter().filter(|host| {
        let node = host.node.as_ref();
        node.is_some_and(|node| node.refusal().is_none())
    });
    let mut chains: BTreeMap<u64, tremula_log::Chain> = BTreeMap::new();
    for host in serving {
        for (first, batch, chain) in &host.own {
            let last = first.get() + batch.len() as u64 - 1;
            let known = *chains.entry(last).or_insert(*chain);
            assert_eq!(known, *chain, "two histories up to {last} are served");
        }
    }
    if !world.ahead.is_empty() {
        world.count("losses noticed");
    }
}

#[test]
fn a_group_keeps_its_promises() {
    campaign(1500, None, keeps_its_promises);
}

#[test]
fn a_lost_tail_is_refused() {
    campaign(500, Some(Loss::Tail), does_not_diverge);
}

#[test]
fn a_hole_is_refused() {
    campaign(500, Some(Loss::Hole), does_not_diverge);
}
