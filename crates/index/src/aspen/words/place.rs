//! Where the block of a leaf lies, how large it is, and where in it a key belongs: one word.

use super::hot::Table;
pub(super) use crate::kit::blocks::MOST_UNITS;
use crate::kit::blocks::{BEHIND, UNIT_BYTES, UNIT_WORDS};
use tremula_sync::atomic::AtomicU64;

/// Slots for which a unit, the least that a block consists of, has memory. A slot is a key and a
/// value.
pub(super) const UNIT_SLOTS: usize = UNIT_WORDS / 2;
/// Words at the head of a block, whose bits say which places have an entry.
pub(super) const HEAD_WORDS: usize = MOST_SLOTS.div_ceil(64).next_multiple_of(2);
/// Slots of the largest block.
pub(super) const MOST_SLOTS: usize = MOST_UNITS * UNIT_SLOTS;
/// Slots that a lookup compares before it looks whether it has to go on.
pub(super) const WINDOW: usize = if cfg!(any(loom, shuttle)) { 2 } else { 8 };

// A reader that has seen words which do not belong together looks so far behind a unit.
const _: () = assert!(MOST_SLOTS + 2 * WINDOW <= BEHIND * UNIT_SLOTS);

const SHIFT_AT: u32 = 16;
const UNITS_AT: u32 = SHIFT_AT + 6;
const BLOCK_AT: u32 = UNITS_AT + 3;
/// Zeros at the end of the address of a block.
const ALIGNMENT: u32 = 9;
/// Bits of a multiplier behind the binary point.
const FRACTION: u32 = 7;
/// Stands for the dense format.
const DENSE: u64 = 1;
/// Stands for the table of a hot leaf, which is no block.
const HOT: u64 = 2;
/// Multipliers below this one stand for formats that have none.
const LEAST_MULTIPLIER: u64 = 64;

/// Slots of a block of this many units.
pub(super) const fn slots_of(units: usize) -> usize {
    units * UNIT_SLOTS - HEAD_WORDS / 2
}

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
    pub(super) fn home(self, distance: u64) -> usize {
        home(self.shift, self.multiplier, distance)
    }
}

#[inline(always)]
fn home(shift: u32, multiplier: u64, distance: u64) -> usize {
    let product = u128::from(distance << shift) * u128::from(multiplier);
    (product >> (64 + FRACTION)) as usize
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
            Kind::Dense => (0, DENSE),
            Kind::Linear(model) => (u64::from(model.shift), model.multiplier),
        };
        let address = block.expose_provenance() as u64 >> ALIGNMENT;
        debug_assert!(address >> (64 - BLOCK_AT) == 0 && (1..=MOST_UNITS).contains(&units));
        Self(multiplier | shift << SHIFT_AT | (units as u64 - 1) << UNITS_AT | address << BLOCK_AT)
    }

    /// The place of a table, whose address is as that of a block.
    pub(super) fn of_table(table: &Table) -> Self {
        let address = std::ptr::from_ref(table).expose_provenance() as u64 >> ALIGNMENT;
        debug_assert!(address >> (64 - BLOCK_AT) == 0 && align_of::<Table>() >= 1 << ALIGNMENT);
        Self(HOT | address << BLOCK_AT)
    }

    /// Where the table of a hot leaf is; `None` if the leaf is not hot.
    pub(super) fn table(self) -> Option<*const Table> {
        (self.multiplier() == HOT).then(|| self.block().cast_const().cast())
    }

    #[inline(always)]
    pub(super) fn block(self) -> *mut AtomicU64 {
        std::ptr::with_exposed_provenance_mut((self.0 >> BLOCK_AT << ALIGNMENT) as usize)
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The units of the block, of which there is one.
    #[inline(always)]
    fn some_units(self) -> usize {
        (self.0 >> UNITS_AT & 7) as usize + 1
    }

    #[inline(always)]
    pub(super) fn units(self) -> usize {
        if self.is_none() { 0 } else { self.some_units() }
    }

    /// The slots of the block, of which there is one.
    #[inline(always)]
    pub(super) fn some_slots(self) -> usize {
        slots_of(self.some_units())
    }

    #[inline(always)]
    fn multiplier(self) -> u64 {
        self.0 & 0xffff
    }

    /// Whether the format is linear. If so, there is a block.
    #[inline(always)]
    pub(super) fn is_linear(self) -> bool {
        self.multiplier() >= LEAST_MULTIPLIER
    }

    /// Whether the format is dense. If so, there is a block.
    #[inline(always)]
    pub(super) fn is_dense(self) -> bool {
        self.multiplier() == DENSE
    }

    /// The home of the key at this distance, in a linear block. For a reader that has seen words
    /// which do not belong together, it may lie behind the block: by less than the largest block.
    #[inline(always)]
    pub(super) fn home(self, distance: u64) -> usize {
        let shift = (self.0 >> SHIFT_AT) as u32 & 63;
        home(shift, self.multiplier(), distance) % MOST_SLOTS
    }

    /// Whether entries would lie the same way in a block of `units` units and this kind.
    pub(super) fn is_like(self, kind: Kind, units: usize) -> bool {
        self.is_linear() && self.units() == units && self.kind() == kind
    }

    pub(super) fn kind(self) -> Kind {
        if self.is_linear() {
            Kind::Linear(Model {
                shift: (self.0 >> SHIFT_AT) as u32 & 63,
                multiplier: self.multiplier(),
            })
        } else if self.is_dense() {
            Kind::Dense
        } else {
            Kind::Sorted
        }
    }
}

const _: () = assert!(BLOCK_AT - ALIGNMENT == 16 && UNIT_BYTES.is_multiple_of(1 << ALIGNMENT));
const _: () = assert!(MOST_SLOTS.is_power_of_two());
