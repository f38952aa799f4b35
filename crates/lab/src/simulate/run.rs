//! Measurements in virtual time.

use super::profile::Profile;
use crate::LabError;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};
use tremula_sync::sim::{Blame, ByDistance, Machine, Outcome, Prices, Simulation};

thread_local! {
    static PROFILE: Cell<Option<&'static Profile>> = const { Cell::new(None) };
    static BLAMES: RefCell<Option<Vec<Blamed>>> = const { RefCell::new(None) };
}

/// What a measurement spent its time on, in nanoseconds of all threads together.
#[derive(Clone, Debug)]
pub(crate) struct Blamed {
    pub(crate) work: f64,
    pub(crate) waiting: f64,
    pub(crate) transfers: f64,
    pub(crate) off: f64,
    /// The places in the source, those that cost most first.
    pub(crate) places: Vec<Blame>,
}

/// From now on, what this thread measures runs on that machine. With `blames`, keeps what it spent
/// its time on.
pub(crate) fn on(profile: Profile, blames: bool) -> Result<(), LabError> {
    let machine = machine_of(&profile);
    machine.check().map_err(|problem| LabError::Profile {
        name: profile.name.clone(),
        problem,
    })?;
    // There is one in a process.
    PROFILE.set(Some(Box::leak(Box::new(profile))));
    BLAMES.set(blames.then(Vec::new));
    Ok(())
}

/// The machine that is simulated at the moment.
pub(crate) fn profile() -> Option<&'static Profile> {
    PROFILE.get()
}

/// What was blamed since the last call.
pub(crate) fn take_blame() -> Vec<Blamed> {
    BLAMES.with_borrow_mut(|blames| blames.as_mut().map(std::mem::take).unwrap_or_default())
}

/// Runs the measurement on the machine's first core.
pub(crate) fn simulated<R>(seed: u64, measure: impl FnOnce() -> R) -> R {
    let Some(profile) = profile() else {
        return measure();
    };
    let blames = BLAMES.with_borrow(Option::is_some);
    let simulation = Simulation::on(machine_of(profile)).seed(seed).blame(blames);
    let outcome = simulation.run(measure);
    if blames {
        let blamed = blamed(&outcome);
        BLAMES.with_borrow_mut(|blames| blames.as_mut().map(|blames| blames.push(blamed)));
    }
    outcome.result
}

fn blamed<R>(outcome: &Outcome<R>) -> Blamed {
    let sum = |part: fn(&tremula_sync::sim::Spent) -> u64| {
        let threads = outcome.threads.iter();
        threads.map(|(_, spent)| part(spent)).sum::<u64>() as f64 / 1000.0
    };
    Blamed {
        work: sum(|spent| spent.work),
        waiting: sum(|spent| spent.waiting),
        transfers: sum(|spent| spent.transfers),
        off: sum(|spent| spent.off),
        places: outcome.blame.clone(),
    }
}

fn machine_of(profile: &Profile) -> Machine {
    let prices: BTreeMap<&str, u64> = profile
        .prices
        .iter()
        .map(|(name, price)| (name.as_str(), (price.ns * 1000.0).round() as u64))
        .collect();
    let by_distance = |kind: &str| ByDistance {
        cluster: prices[&*format!("{kind}_cluster")],
        socket: prices[&*format!("{kind}_socket")],
        other: prices[&*format!("{kind}_other")],
    };
    Machine {
        sockets: profile.sockets,
        clusters: profile.clusters,
        cores: profile.cores,
        threads: profile.threads,
        shared_speed: profile.shared_speed,
        near_lines: profile.near_lines,
        far_lines: profile.far_lines,
        socket_lines: profile.socket_lines,
        slice: prices["slice"].max(1),
        prices: Prices {
            instructions: prices["instructions"],
            near_cache: prices["near_cache"],
            far_cache: prices["far_cache"],
            socket_cache: prices["socket_cache"],
            own_memory: prices["own_memory"],
            other_memory: prices["other_memory"],
            clean: by_distance("clean"),
            changed: by_distance("changed"),
            read_modify_write: prices["read_modify_write"],
            fence: prices["fence"],
            pause: prices["pause"],
            yield_now: prices["yield_now"],
            sleep: prices["sleep"],
            wake: prices["wake"],
            wake_delay: prices["wake_delay"],
            switch: prices["switch"],
            allocation: prices["allocation"],
            store_lag: prices["store_lag"],
        },
    }
}
