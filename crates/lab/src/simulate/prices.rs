//! The names of the prices that a profile has.

use tremula_sync::sim::Prices;

/// The name of the one price that is no part of [`Prices`].
pub(super) const SLICE: &str = "slice";

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    Prices::NAMES.iter().copied().chain([SLICE])
}
