//! Generates random plans: what threads do to a subject.

use super::Campaign;
use crate::map::{Change, Kind, Operation, Span};
use crate::record::{Pause, Script, Step, Subject};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use std::ops::Bound;
use tremula_index::Direction;

pub(super) struct Plan {
    /// The entries inserted first, in this order.
    pub(super) initial: Vec<(u64, u64)>,
    /// For each round, one script per thread.
    pub(super) rounds: Vec<Vec<Script>>,
}

impl Plan {
    pub(super) fn fill(&self, subject: &dyn Subject) {
        for &(key, value) in &self.initial {
            if subject.offers(Kind::Insert) {
                subject.call(&Operation::Insert(key, value));
            } else {
                subject.call(&Operation::InsertIfAbsent(key, value));
            }
        }
    }
}

/// Makes the plan of one session.
pub(super) struct Generator<'c> {
    campaign: &'c Campaign,
    random: StdRng,
    /// The last value used: each value is written once.
    value: u64,
}

/// The distances between neighbouring keys: adjacent, and different in higher bytes.
const STRIDES: [u64; 4] = [1, 1, 0x100, 0x1_0001_0001_0001];

/// Where the keys begin: at zero, and shortly before the common prefix changes.
const ORIGINS: [u64; 3] = [0, 250, 65_530];

const FAR: [u64; 3] = [0, 1 << 40, u64::MAX];

impl<'c> Generator<'c> {
    pub(super) fn new(campaign: &'c Campaign, session: u64) -> Self {
        // The generator mixes the seed, so that neighbouring seeds have nothing in common.
        let seed = campaign.seed.wrapping_shl(32).wrapping_add(session);
        Self {
            campaign,
            random: StdRng::seed_from_u64(seed),
            value: 0,
        }
    }

    pub(super) fn plan(mut self, subject: &dyn Subject) -> Plan {
        let kinds = self.campaign.kinds.iter().copied();
        let offered: Vec<Kind> = kinds.filter(|&kind| subject.offers(kind)).collect();
        let can_fill = subject.offers(Kind::Insert) || subject.offers(Kind::InsertIfAbsent);
        let (keys, present) = self.keys();
        let initial = if can_fill { present } else { Vec::new() };
        let initial = initial
            .into_iter()
            .map(|key| (key, self.next_value()))
            .collect();
        let rounds = (0..self.campaign.rounds)
            .map(|_| self.round(&offered, &keys))
            .collect();
        Plan { initial, rounds }
    }

    fn next_value(&mut self) -> u64 {
        self.value += 1;
        self.value
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    fn choose<T: Copy>(&mut self, from: &[T], or: T) -> T {
        from.choose(&mut self.random).copied().unwrap_or(or)
    }

    /// The keys for which the threads contend, and the keys that are present at first.
    ///
    /// Keys are places in a row. The fillers take every second place. The contended keys are
    /// neighbours, somewhere in the row or at an end of it, so half of them are fillers and half
    /// are gaps.
    fn keys(&mut self) -> (Vec<u64>, Vec<u64>) {
        let count = self.random.random_range(self.campaign.keys.clone());
        let fillers = self.choose(self.campaign.fillers, 0);
        let (stride, origin) = (self.choose(&STRIDES, 1), self.choose(&ORIGINS, 0));
        let key = |place: usize| origin.wrapping_add(place as u64 * stride);
        let row = fillers * 2 + 1;
        let middle = [0, row / 2, row, self.random.random_range(0..=row)];
        let first = self.choose(&middle, 0).saturating_sub(count / 2);
        let mut keys: Vec<u64> = (first..first + count).map(key).collect();
        let mut present: Vec<u64> = (1..row).step_by(2).map(key).collect();
        if self.chance(3)
            && let Some(last) = keys.last_mut()
        {
            *last = self.choose(&FAR, 0);
        }
        keys.sort_unstable();
        keys.dedup();
        // Without fillers, some of the contended keys are present at first.
        if fillers == 0 {
            present.extend(keys.iter().filter(|_| self.random.random()));
        }
        if self.random.random() {
            present.shuffle(&mut self.random);
        }
        (keys, present)
    }

    fn round(&mut self, offered: &[Kind], keys: &[u64]) -> Vec<Script> {
        let kinds = if self.campaign.swarm {
            self.swarm(offered)
        } else {
            offered.to_vec()
        };
        let threads = self.random.random_range(self.campaign.threads.clone());
        let operations = self.random.random_range(self.campaign.operations.clone());
        let pausing = self.random.random_range(0..4);
        let mut scripts = vec![Script::new(); threads];
        if kinds.is_empty() {
            return scripts;
        }
        for number in 0..operations {
            let kind = self.kind(&kinds);
            let step = Step {
                pause: self.pause(pausing),
                operation: self.operation(kind, keys),
            };
            scripts[number % threads].push(step);
        }
        scripts
    }

    /// Some of the kinds, at least one of which writes.
    fn swarm(&mut self, offered: &[Kind]) -> Vec<Kind> {
        let chosen = offered.iter().copied().filter(|_| self.random.random());
        let mut kinds: Vec<Kind> = chosen.collect();
        if !kinds.iter().any(|kind| kind.writes()) {
            let writing: Vec<Kind> = offered
                .iter()
                .copied()
                .filter(|kind| kind.writes())
                .collect();
            kinds.extend(writing.choose(&mut self.random));
        }
        kinds
    }

    fn kind(&mut self, kinds: &[Kind]) -> Kind {
        kinds
            .choose_weighted(&mut self.random, |&kind| weight(kind))
            .copied()
            .unwrap_or(kinds[0])
    }

    /// A random pause; the higher `pausing`, the more frequent.
    fn pause(&mut self, pausing: u32) -> Pause {
        if self.random.random_range(0..6) >= pausing {
            Pause::None
        } else if self.random.random() {
            Pause::Yield
        } else {
            Pause::Spin(self.random.random_range(0..LONGEST_SPIN))
        }
    }

    fn operation(&mut self, kind: Kind, keys: &[u64]) -> Operation {
        let key = self.choose(keys, 0);
        match kind {
            Kind::Get => Operation::Get(key),
            Kind::GetWith => Operation::GetWith(key),
            Kind::ContainsKey => Operation::ContainsKey(key),
            Kind::GetMany => {
                let count = self.random.random_range(1..=LARGEST_BATCH);
                Operation::GetMany((0..count).map(|_| self.choose(keys, 0)).collect())
            }
            Kind::Insert => Operation::Insert(key, self.next_value()),
            Kind::InsertIfAbsent => Operation::InsertIfAbsent(key, self.next_value()),
            Kind::InsertMany => {
                let count = self.random.random_range(1..=LONGEST_LIST);
                let mut entry = || (self.choose(keys, 0), self.next_value());
                Operation::InsertMany((0..count).map(|_| entry()).collect())
            }
            Kind::Remove => Operation::Remove(key),
            Kind::Update => Operation::Update(key, self.change()),
            Kind::First => Operation::First,
            Kind::Last => Operation::Last,
            Kind::Next => Operation::Next(key),
            Kind::Prev => Operation::Prev(key),
            Kind::PopFirst => Operation::PopFirst,
            Kind::PopLast => Operation::PopLast,
            Kind::Scan => Operation::Scan(self.span(keys), self.direction(), self.limit()),
            Kind::Snapshot => Operation::Snapshot(self.span(keys)),
            Kind::Range => Operation::Range(self.span(keys), self.direction(), self.limit()),
            Kind::RemoveRange => Operation::RemoveRange(self.span(keys)),
            Kind::Len => Operation::Len,
            Kind::IsEmpty => Operation::IsEmpty,
        }
    }

    fn change(&mut self) -> Change {
        match self.random.random_range(0..6) {
            0 => Change::Put(self.next_value()),
            1 => Change::Keep,
            2 => Change::Remove,
            // The bits of a sum show which additions it contains, as far as the bits suffice.
            _ => Change::Add(1 << self.random.random_range(32..60)),
        }
    }

    fn span(&mut self, keys: &[u64]) -> Span {
        let [low, high] = [self.bound(keys), self.bound(keys)];
        Span { low, high }
    }

    fn bound(&mut self, keys: &[u64]) -> Bound<u64> {
        let key = self.choose(keys, 0);
        match self.random.random_range(0..4) {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        }
    }

    fn direction(&mut self) -> Direction {
        if self.random.random() {
            Direction::Ascending
        } else {
            Direction::Descending
        }
    }

    fn limit(&mut self) -> usize {
        self.choose(&[0, 1, 2, 3, 8, usize::MAX, usize::MAX, usize::MAX], 1)
    }
}

/// The most turns that a thread spins between two calls: about as long as some calls take.
const LONGEST_SPIN: u32 = 200;

/// The most keys that are looked up together: more than an engine is likely to have under way at
/// once.
const LARGEST_BATCH: usize = 20;

/// The most entries that are inserted in one step.
const LONGEST_LIST: usize = 5;

const fn weight(kind: Kind) -> u32 {
    match kind {
        Kind::Insert | Kind::Remove => 8,
        Kind::Update | Kind::Scan => 6,
        Kind::InsertIfAbsent | Kind::InsertMany | Kind::Get | Kind::Snapshot => 4,
        Kind::Next | Kind::Prev | Kind::PopFirst | Kind::PopLast | Kind::RemoveRange => 3,
        Kind::First | Kind::Last | Kind::Range | Kind::GetMany | Kind::Len => 2,
        Kind::GetWith | Kind::ContainsKey | Kind::IsEmpty => 1,
    }
}
