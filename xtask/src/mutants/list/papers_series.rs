//! Bugs to plant in the compression of time series.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Random points through the compression and back.
const ROUND_TRIP: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-papers",
    target: Target::Test("series"),
    filter: "any_points_come_back",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "shard_series_window_cuts_trailing_bits",
        file: "crates/papers/src/series/codec.rs",
        original: "    let fits = leading >= context.leading && trailing >= context.trailing;\n",
        replacement: "    let fits = leading >= context.leading;\n",
        why: "A value whose last bits lie behind the former window is written without them.",
        checker: ROUND_TRIP,
        hangs: false,
    },
    Mutant {
        name: "shard_series_difference_loses_its_sign",
        file: "crates/papers/src/series/codec.rs",
        original: "    Some((bits.read(width)? << unused).cast_signed() >> unused)\n",
        replacement: "    Some((bits.read(width)? << unused >> unused).cast_signed())\n",
        why: "A point that comes earlier than expected is decoded as one that comes much later.",
        checker: ROUND_TRIP,
        hangs: false,
    },
];
