//! The directory of cache lines: which cores have each line, and until when it is on its way.
//!
//! # What holds
//!
//! 1. A core may have a line in its caches only if its bit is set in the line's `sharers`.
//! 2. A line with an `owner` has exactly that one sharer, and until `leaves` those that it had
//!    before.
//! 3. A line is on its way to one core at a time: a request for it begins when the line is no
//!    longer `busy`. That queue is what contention is.
//! 4. A socket's cache has a line only as it is now: a store removes it from all of them.
//!
//! # What a core still does with a line that another has asked for
//!
//! ```text
//!   core that asks ──1──> directory ──2──> core that has the line ──3──> core that asks
//!                                          has it until here             has it from here on
//! ```
//!
//! A request has three ways to go, and only at the end of the second one the cores that had the
//! line lose it: after two thirds of the time, or what [`stays`](super::Machine::stays) says, which
//! can be measured. Until then they read it, and the one that had changed it changes it again, as
//! often as they like. So an exchange fails if another core has read the line meanwhile, and a core
//! that works on a line does several steps before it is gone. Only the latest request is
//! remembered: if several cores wait for a line, those that had it before the last of them have
//! lost it.
//!
//! # What a transfer is
//!
//! A line that a core's caches have no place for, or that it accesses for the first time, comes
//! from the socket's cache or from memory, and would without any other core. That part of its price
//! is [`Charge::fetching`]. The line is a *transfer* only as far as it costs more because another
//! core has it, or has changed it. A core that lost a line to another core's store still has its
//! tag: it would have the line if it were alone.
//!
//! Sources: Sorin, Hill and Wood, "A Primer on Memory Consistency and Cache Coherence" (2011), for
//! directories of owners and sharers, and chapter 8 for the three ways; David, Guerraoui and
//! Trigonakis, "Everything you always wanted to know about synchronization but were afraid to ask"
//! (SOSP 2013), for prices by state and distance.

use super::machine::{Distance, MOST_CORES, Machine, Picoseconds};
use super::random::Random;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What is done to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Load,
    /// The core does not wait for the line: the store is on its way while the thread goes on.
    Store,
    ReadModifyWrite,
}

/// What the thread did right before. A load of the same line, or of one beside it, does not depend
/// on what the access before it found: the core has asked for both. A line whose address the thread
/// has just loaded does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Another,
    Beside,
    Itself,
    ItsAddress,
}

impl After {
    /// Lines that are this near are taken to be of one node.
    const NEAR: usize = 8;

    pub(super) const fn of(kind: Kind, line: usize, before: usize, is_led: bool) -> Self {
        match (kind, line.abs_diff(before)) {
            (Kind::Load | Kind::Store, 0) => Self::Itself,
            (Kind::Load | Kind::Store, 1..=Self::NEAR) => Self::Beside,
            (Kind::Load | Kind::ReadModifyWrite, _) if is_led => Self::ItsAddress,
            _ => Self::Another,
        }
    }
}

/// What an access cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Charge {
    pub(super) line: u32,
    /// Until the line was no longer on its way to others.
    pub(super) waiting: Picoseconds,
    /// Until the line was here, beyond `fetching`.
    pub(super) transfer: Picoseconds,
    /// Until the line would have been here without any other core.
    pub(super) fetching: Picoseconds,
    /// The instructions, and a line that the core has.
    pub(super) own: Picoseconds,
}

const NOBODY: u16 = u16::MAX;

/// Some of the cores, a bit for each.
type Cores = u128;

const fn bit(core: usize) -> Cores {
    1 << core
}

/// All that is known of a line, in one line of the machine that simulates.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line {
    /// The cores that have the line as it is, or have it until `leaves`.
    sharers: Cores,
    /// The cores whose larger cache has a place for the line.
    far: Cores,
    /// The sockets whose cache has it.
    sockets: u64,
    busy: Picoseconds,
    /// Until when the cores that had the line before the latest request have it; 0 if that is over.
    leaves: Picoseconds,
    owner: u16,
    /// The owner before that request.
    left: u16,
    /// The socket whose memory has it: that of the core that touched it first.
    home: u16,
}

const _: () = assert!(size_of::<Line>() == 64 && MOST_CORES == Cores::BITS as usize);

impl Line {
    const fn has(&self, core: usize) -> bool {
        self.sharers & bit(core) != 0
    }

    const fn in_far_cache(&self, core: usize) -> bool {
        self.far & bit(core) != 0
    }

    const fn in_socket_cache(&self, socket: usize) -> bool {
        self.sockets >> socket & 1 == 1
    }

    /// Whether the core, which has lost the line to another, still has it at this time as it needs
    /// it.
    const fn still_has(&self, core: usize, now: Picoseconds, writes: bool) -> bool {
        now < self.leaves && self.has(core) && (!writes || self.left as usize == core)
    }

    /// The cores that had the line before have lost it.
    const fn settle(&mut self) {
        if self.leaves > 0 && self.owner != NOBODY {
            self.sharers = bit(self.owner as usize);
        }
        self.leaves = 0;
        self.left = NOBODY;
    }

    const fn others(&self, core: usize) -> Cores {
        self.sharers & !bit(core)
    }
}

/// The cores of a set.
fn each(mut cores: Cores) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (cores != 0).then(|| {
            let core = cores.trailing_zeros() as usize;
            cores &= cores - 1;
            core
        })
    })
}

/// The lines that a cache has, in sets of a few, of which a new line replaces one at random.
struct Tags {
    ways: usize,
    sets: usize,
    lines: Vec<u32>,
}

const NO_LINE: u32 = u32::MAX;

impl Tags {
    /// The lines of a set.
    const WAYS: usize = 8;

    fn new(lines: usize) -> Self {
        let ways = Self::WAYS.min(lines);
        let sets = (lines / ways).max(1);
        Self {
            ways,
            sets,
            lines: vec![NO_LINE; sets * ways],
        }
    }

    fn set(&mut self, line: u32) -> &mut [u32] {
        // Lines are numbered by their first touch; the multiplication spreads them.
        let spread = u64::from(line).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let begin = spread as usize % self.sets * self.ways;
        &mut self.lines[begin..begin + self.ways]
    }

    fn has(&mut self, line: u32) -> bool {
        self.set(line).contains(&line)
    }

    fn remove(&mut self, line: u32) {
        for place in self.set(line) {
            if *place == line {
                *place = NO_LINE;
            }
        }
    }

    /// Takes in a line that the cache does not have, and returns the line that had to go.
    fn insert(&mut self, line: u32, random: &mut Random) -> Option<u32> {
        let ways = self.ways;
        let set = self.set(line);
        let place = set.iter().position(|other| *other == NO_LINE);
        let place = place.unwrap_or_else(|| random.below(ways as u64) as usize);
        let gone = std::mem::replace(&mut set[place], line);
        (gone != NO_LINE).then_some(gone)
    }
}

/// A hash of line addresses that is the same in every run.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, word: usize) {
        self.0 = (self.0 ^ word as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

pub(super) type ByAddress<T> = HashMap<usize, T, BuildHasherDefault<AddressHasher>>;

/// The bytes of a line.
pub(super) const LINE: usize = 64;

/// The numbers of lines, in the order of their first touch.
///
/// What a run allocates lies close together, so the numbers lie in arrays by address.
#[derive(Default)]
struct Numbers {
    /// Where the array of each stretch of addresses is.
    places: ByAddress<usize>,
    /// For each line of a stretch its number and one, or zero.
    stretches: Vec<Box<[u32]>>,
    /// The stretch that was asked for last, and where its array is.
    last: (usize, usize),
    count: u32,
}

impl Numbers {
    /// The lines of a stretch: 64 MiB.
    const STRETCH: usize = 1 << 20;

    /// The line's number, and whether this is the first time that anyone touches it.
    fn of(&mut self, line: usize) -> (u32, bool) {
        let stretch = line / Self::STRETCH;
        if stretch != self.last.0 || self.stretches.is_empty() {
            self.last = (stretch, self.place_of(stretch));
        }
        let number = &mut self.stretches[self.last.1][line % Self::STRETCH];
        let is_new = *number == 0;
        if is_new {
            self.count += 1;
            *number = self.count;
        }
        (*number - 1, is_new)
    }

    #[cold]
    fn place_of(&mut self, stretch: usize) -> usize {
        *self.places.entry(stretch).or_insert_with(|| {
            // Zeroes, so that the system gives only the pages that are used.
            self.stretches.push(vec![0; Self::STRETCH].into());
            self.stretches.len() - 1
        })
    }
}

pub(super) struct Directory {
    machine: Machine,
    numbers: Numbers,
    lines: Vec<Line>,
    near: Vec<Tags>,
    far: Vec<Tags>,
    sockets: Vec<Tags>,
}

impl Directory {
    pub(super) fn new(machine: &Machine) -> Self {
        let caches = |count, lines| (0..count).map(|_| Tags::new(lines)).collect();
        Self {
            machine: *machine,
            numbers: Numbers::default(),
            lines: Vec::new(),
            near: caches(machine.all_cores(), machine.near_lines),
            far: caches(machine.all_cores(), machine.far_lines),
            sockets: caches(machine.sockets, machine.socket_lines),
        }
    }

    /// The line's number, and whether this is the first time that anyone touches it.
    fn number_of(&mut self, address: usize, core: usize) -> (u32, bool) {
        let (number, is_new) = self.numbers.of(address / LINE);
        if is_new {
            self.lines.push(Line {
                sharers: 0,
                far: 0,
                sockets: 0,
                busy: 0,
                leaves: 0,
                owner: NOBODY,
                left: NOBODY,
                home: self.machine.socket_of(core) as u16,
            });
        }
        (number, is_new)
    }

    /// The core accesses the line at time `now`.
    pub(super) fn access(
        &mut self,
        core: usize,
        address: usize,
        (kind, after): (Kind, After),
        now: Picoseconds,
        random: &mut Random,
    ) -> Charge {
        let (number, is_new) = self.number_of(address, core);
        let prices = self.machine.prices;
        let writes = kind != Kind::Load;
        let line = &mut self.lines[number as usize];
        let owns = usize::from(line.owner) == core;
        let still = !owns && line.still_has(core, now, writes);
        // What the owner does meanwhile takes nothing from those that still have the line.
        if !(still || owns && now < line.leaves) {
            line.settle();
        }
        let line = *line;
        let mut charge = Charge {
            line: number,
            own: prices.instructions,
            ..Charge::default()
        };
        if kind == Kind::ReadModifyWrite {
            charge.own += prices.read_modify_write;
        }
        let is_mine = line.has(core);
        let is_alone = is_mine && (owns || line.others(core) == 0);
        if still || is_mine && (!writes || is_alone) {
            let price = if self.near[core].has(number) {
                prices.near_cache
            } else {
                prices.far_cache
            };
            charge.own += self.exposed(price, after);
            if writes && !still {
                self.lines[number as usize].owner = core as u16;
            }
            self.keep(core, number, random);
            return charge;
        }
        charge.waiting = line.busy.saturating_sub(now);
        let (price, alone) = if is_new {
            // The system, or the allocator, has just written it.
            (prices.far_cache, prices.far_cache)
        } else {
            let mut price = self.price(&line, core, writes);
            if after == After::ItsAddress && line.owner != NOBODY {
                price = price * self.machine.led / 100;
            }
            (price, self.price_alone(&line, number, core))
        };
        let exposed = |price| match after {
            // The core had the line, and has lost it meanwhile.
            After::Itself => price,
            _ => self.exposed(price, after),
        };
        charge.fetching = exposed(alone);
        charge.transfer = exposed(price.max(alone)) - charge.fetching;
        let stays = (charge.fetching + charge.transfer) * self.machine.stays / 100;
        let left_until = now + charge.waiting + stays;
        if charge.waiting > 0 && after != After::ItsAddress {
            charge.transfer = charge.transfer * self.machine.queued / 100;
        }
        let arrived = now + charge.waiting + charge.fetching + charge.transfer;
        if writes {
            for socket in each(line.sockets.into()) {
                self.sockets[socket].remove(number);
            }
            self.lines[number as usize].sockets = 0;
        }
        let line = &mut self.lines[number as usize];
        if writes || line.owner != NOBODY {
            line.left = line.owner;
            line.owner = if writes { core as u16 } else { NOBODY };
            line.busy = arrived;
            line.leaves = left_until;
        }
        line.sharers |= bit(core);
        self.keep(core, number, random);
        charge
    }

    /// What is left of a price if the core has asked for the line together with another.
    const fn exposed(&self, price: Picoseconds, after: After) -> Picoseconds {
        match after {
            After::Another | After::ItsAddress => price,
            After::Beside => price * self.machine.beside / 100,
            After::Itself => 0,
        }
    }

    /// What it takes until the core has the line, and until all others have given it up if it
    /// writes.
    fn price(&self, line: &Line, core: usize, writes: bool) -> Picoseconds {
        let machine = &self.machine;
        let prices = &machine.prices;
        if line.owner != NOBODY {
            let distance = machine.distance(core, usize::from(line.owner));
            return prices.changed.at(distance);
        }
        let in_socket_cache = line.in_socket_cache(machine.socket_of(core));
        let mut nearest: Option<Distance> = None;
        let mut farthest: Option<Distance> = None;
        for other in each(line.others(core)) {
            let distance = machine.distance(core, other);
            nearest = Some(nearest.map_or(distance, |nearest| nearest.min(distance)));
            farthest = farthest.max(Some(distance));
        }
        match (writes, farthest, nearest) {
            (true, Some(distance), _) => prices.clean.at(distance),
            // The socket's cache answers before another core does.
            _ if in_socket_cache => prices.socket_cache,
            (false, _, Some(distance)) => prices.clean.at(distance),
            _ => self.of_memory(line, core),
        }
    }

    /// What it would take until the core has the line if no other core had accessed it.
    fn price_alone(&mut self, line: &Line, number: u32, core: usize) -> Picoseconds {
        let prices = self.machine.prices;
        let socket = self.machine.socket_of(core);
        if self.near[core].has(number) {
            prices.near_cache
        } else if line.in_far_cache(core) {
            prices.far_cache
        } else if line.others(core) != 0 || line.in_socket_cache(socket) {
            // What others have in their caches, this core would have had, and had no place for.
            prices.socket_cache
        } else {
            self.of_memory(line, core)
        }
    }

    const fn of_memory(&self, line: &Line, core: usize) -> Picoseconds {
        if line.home as usize == self.machine.socket_of(core) {
            self.machine.prices.own_memory
        } else {
            self.machine.prices.other_memory
        }
    }

    /// Puts the line into the core's caches; a line that the larger one has no place for is gone.
    fn keep(&mut self, core: usize, number: u32, random: &mut Random) {
        if !self.near[core].has(number) {
            self.near[core].insert(number, random);
        }
        let line = &mut self.lines[number as usize];
        if line.in_far_cache(core) {
            return;
        }
        line.far |= bit(core);
        let Some(gone) = self.far[core].insert(number, random) else {
            return;
        };
        let line = &mut self.lines[gone as usize];
        line.settle();
        line.far &= !bit(core);
        line.sharers &= !bit(core);
        if usize::from(line.owner) == core {
            line.owner = NOBODY;
        }
        let socket = self.machine.socket_of(core);
        if line.in_socket_cache(socket) {
            return;
        }
        line.sockets |= 1 << socket;
        if let Some(gone) = self.sockets[socket].insert(gone, random) {
            self.lines[gone as usize].sockets &= !(1 << socket);
        }
    }
}
