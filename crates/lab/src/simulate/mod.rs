//! Runs experiments on virtual cores: the profiles of machines, and what runs on them.
//!
//! The switch between real and virtual cores is for a whole build, so the lab as it ships starts a
//! lab that is built with `--cfg sim`; `run.rs` exists in that one only.

#[cfg(sim)]
mod blame;
#[cfg(not(sim))]
mod build;
mod calibrate;
#[cfg(sim)]
mod prices;
pub mod profile;
#[cfg(sim)]
mod run;
#[cfg_attr(
    sim,
    allow(dead_code, reason = "the lab that simulates does not validate")
)]
pub(crate) mod validation;

#[cfg(not(sim))]
pub(crate) use build::start;
pub(crate) use calibrate::profile as calibrated;
pub use profile::Profile;
pub(crate) use profile::WITHOUT_TRANSFERS;
#[cfg(sim)]
pub(crate) use run::{on, simulated, take_blame};

/// The machine that is simulated at the moment.
#[cfg(not(sim))]
#[must_use]
pub(crate) const fn profile() -> Option<&'static Profile> {
    None
}

#[cfg(sim)]
pub(crate) use run::profile;

/// Without a simulation, calls the function.
#[cfg(not(sim))]
pub(crate) fn simulated<R>(_seed: u64, measure: impl FnOnce() -> R) -> R {
    measure()
}
