//! Measurements in virtual time.

use super::{prices::SLICE, profile::Profile};
use crate::LabError;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use tremula_sync::sim::{Blame, Machine, Outcome, Prices, Simulation};

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
    /// How many accesses of lines were simulated, in this many real seconds.
    pub(crate) accesses: u64,
    pub(crate) seconds: f64,
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
    let begun = Instant::now();
    let outcome = simulation.run(measure);
    if blames {
        let blamed = blamed(&outcome, begun.elapsed());
        BLAMES.with_borrow_mut(|blames| blames.as_mut().map(|blames| blames.push(blamed)));
    }
    outcome.result
}

fn blamed<R>(outcome: &Outcome<R>, took: Duration) -> Blamed {
    let sum = |part: fn(&tremula_sync::sim::Spent) -> u64| {
        // The first thread prepares the others' work, and then waits for them.
        let threads = outcome.threads.iter().skip(1);
        threads.map(|(_, spent)| part(spent)).sum::<u64>() as f64 / 1000.0
    };
    Blamed {
        work: sum(|spent| spent.work),
        waiting: sum(|spent| spent.waiting),
        transfers: sum(|spent| spent.transfers),
        off: sum(|spent| spent.off),
        accesses: outcome.accesses,
        seconds: took.as_secs_f64(),
        places: outcome.blame.clone(),
    }
}

fn machine_of(profile: &Profile) -> Machine {
    let price = |name: &str| {
        let price = profile.prices.get(name);
        price.map_or(0, |price| (price.ns * 1000.0).round() as u64)
    };
    Machine {
        sockets: profile.sockets,
        clusters: profile.clusters,
        cores: profile.cores,
        threads: profile.threads,
        shared_speed: profile.shared_speed,
        beside: profile.beside,
        stays: profile.stays,
        queued: profile.queued,
        led: profile.led,
        jitter: profile.jitter,
        near_lines: profile.near_lines,
        far_lines: profile.far_lines,
        socket_lines: profile.socket_lines,
        slice: price(SLICE).max(1),
        prices: Prices::named(price),
    }
}
