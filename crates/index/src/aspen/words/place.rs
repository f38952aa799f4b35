//! Where the block of a leaf lies, how large it is, and where in it a key belongs: one word.

use super::blocks::UNIT_BYTES;
use tremula_sync::atomic::AtomicU64;

/// Slots of a unit, the least that a block consists of. A slot is a key and a value.
pub(super) const UNIT_SLOTS: usize = if cfg!(any(loom, shuttle)) { 4 } else { 32 };
/// Units of the largest block.
pub(super) const MOST_UNITS: usize = 8;
/// Slots that a lookup compares before it looks whether it has to go on.
pub(super) const WINDOW: usize = if cfg!(any(loom, shuttle)) { 2 } else { 8 };

const POINTER_BITS: u32 = 39;
const UNITS_AT: u32 = POINTER_BITS;
const SHIFT_AT: u32 = UNITS_AT + 3;
const MULTIPLIER_AT: u32 = SHIFT_AT + 6;
/// Bits of a multiplier behind the binary point.
const FRACTION: u32 = 7;
/// Multipliers below this one stand for formats that have none.
const LEAST_MULTIPLIER: u64 = 64;

/// How the entries of a leaf lie in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// In ascending order, with gaps; a key is looked for among samples.
    Sorted,
    /// A value for each number from the lowest key on; no keys.
    Dense,
    /// In ascending order, each key at its *home* or a little behind.
    Linear(Model),
}

/// Computes the home of a key from its distance to the lowest key of its leaf: the distance times
/// a multiplier, for which the distance is first shifted so far to the left as the greatest one
/// allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    shift: u32,
    multiplier: u64,
}

impl Model {
    /// A model by which the distances from 0 to `span` have the homes from 0 to below `homes`.
    pub(super) fn new(span: u64, homes: usize) -> Self {
        let shift = span.max(1).leading_zeros();
        // The greatest distance and one, shifted: at least 2^63, so the quotient is below
        // 2 · homes.
        let whole = u128::from(span.max(1) << shift) + (1 << shift);
        let multiplier = ((homes as u128) << (64 + FRACTION)) / whole;
        Self {
            shift,
            multiplier: (multiplier as u64).clamp(LEAST_MULTIPLIER, (1 << 16) - 1),
        }
    }

    /// The home of the key at this distance, below the number of slots for which the model was
    /// made if the distance is within its span.
    #[inline(always)]
    pub(super) fn home(self, distance: u64) -> usize {
        let product = u128::from(distance << self.shift) * u128::from(self.multiplier);
        (product >> (64 + FRACTION)) as usize
    }
}

/// The word. All bits 0 mean that there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) u64);

impl Place {
    pub(super) const NONE: Self = Self(0);

    /// The place of a block at this address, a multiple of its alignment below 2^48.
    pub(super) fn new(block: *mut AtomicU64, units: usize, kind: Kind) -> Self {
        let (shift, multiplier) = match kind {
            Kind::Sorted => (0, 0),
            Kind::Dense => (0, 1),
            Kind::Linear(model) => (u64::from(model.shift), model.multiplier),
        };
        let address = block.expose_provenance() as u64 >> 9;
        debug_assert!(address < 1 << POINTER_BITS && (1..=MOST_UNITS).contains(&units));
        Self(
            address
                | (units as u64 - 1) << UNITS_AT
                | shift << SHIFT_AT
                | multiplier << MULTIPLIER_AT,
        )
    }

    #[inline(always)]
    pub(super) fn block(self) -> *mut AtomicU64 {
        std::ptr::with_exposed_provenance_mut(((self.0 << (64 - POINTER_BITS)) >> 16) as usize)
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(super) fn units(self) -> usize {
        if self.is_none() {
            0
        } else {
            (self.0 >> UNITS_AT & 7) as usize + 1
        }
    }

    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        let multiplier = self.0 >> MULTIPLIER_AT;
        if multiplier >= LEAST_MULTIPLIER {
            let shift = (self.0 >> SHIFT_AT) as u32 & 63;
            Kind::Linear(Model { shift, multiplier })
        } else if multiplier == 1 {
            Kind::Dense
        } else {
            Kind::Sorted
        }
    }
}

const _: () = assert!(MULTIPLIER_AT + 16 == 64 && UNIT_BYTES.is_multiple_of(512));
