//! The stress test of snapshots: does everything that one shows belong to one moment? `stress.rs`
//! explains the oracle.

use super::suite::{Random, join_all, scaled};
use super::values::Dawdler;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use tremula_index::{Direction, KeyRange, OrderedIndex};

const WRITERS: usize = 2;
const OBSERVERS: u32 = 2;

/// The places at which a filler or a token may be.
const PLACES: u32 = if cfg!(tremula_tsan) { 300 } else { 1_500 };

/// The number of rounds of each writer.
const ROUNDS: u32 = scaled(10_000);

/// The number of entries in a block.
const BLOCK: u64 = 40;

/// The number of scans of blocks alone for each scan of everything.
const BLOCK_SCANS: usize = 50;

/// One round in this many has a block.
const ROUNDS_A_BLOCK: u32 = 4;

/// The meaning of a key. The order of the variants is that of the keys, except that fillers and
/// tokens mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The lowest key of a writer.
    X(usize),
    /// A filler, at a place.
    Filler(u64),
    /// The token of a writer, at a place.
    Token(usize, u64),
    /// Part of a writer's block.
    Block(usize, u64),
    /// The highest key of a writer.
    Y(usize),
}

/// The keys of one region. Keys within it are numbered from 0.
const REGION: u64 = 1 << 32;

impl Meaning {
    const fn key(self) -> Dawdler {
        let stride = WRITERS as u64 + 1;
        Dawdler(match self {
            Self::X(writer) => writer as u64,
            Self::Filler(place) => REGION + place * stride,
            Self::Token(writer, place) => REGION + place * stride + 1 + writer as u64,
            Self::Block(writer, part) => REGION * (2 + writer as u64) + part,
            Self::Y(writer) => REGION * (2 + WRITERS as u64) + writer as u64,
        })
    }

    const fn of(Dawdler(key): Dawdler) -> Self {
        let stride = WRITERS as u64 + 1;
        let (region, number) = (key / REGION, key % REGION);
        match region {
            0 => Self::X(number as usize),
            1 if number % stride == 0 => Self::Filler(number / stride),
            1 => Self::Token((number % stride) as usize - 1, number / stride),
            _ if region == 2 + WRITERS as u64 => Self::Y(number as usize),
            _ => Self::Block(region as usize - 2, number),
        }
    }
}

/// Runs the test on an empty index, whose values are generations.
pub(crate) fn run(index: &dyn OrderedIndex<Dawdler, u64>) {
    // Initializes the epoch's static state before there are threads: std's `Once` makes it, which
    // ThreadSanitizer does not see.
    drop(tremula_sync::epoch::pin());
    for place in (0..PLACES.into()).step_by(2) {
        index.insert(Meaning::Filler(place).key(), 0);
    }
    for writer in 0..WRITERS {
        index.insert(Meaning::X(writer).key(), 0);
        index.insert(Meaning::Y(writer).key(), 0);
        index.insert(Meaning::Token(writer, 0).key(), 0);
    }
    let published: [AtomicU64; WRITERS] = Default::default();
    let published = &published;
    let writing = AtomicUsize::new(WRITERS);
    let writing = &writing;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (writer, published) in published.iter().enumerate() {
            threads.push(scope.spawn(move || {
                let _done = Done(writing);
                write(index, writer, published);
            }));
        }
        for number in 0..OBSERVERS {
            let random = Random::new(100 + number);
            threads.push(scope.spawn(move || observe(index, published, writing, random)));
        }
        threads.push(scope.spawn(move || fill(index, writing, Random::new(200))));
        join_all(threads);
    });
}

/// Counts a writer as ended, also after a panic.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn write(index: &dyn OrderedIndex<Dawdler, u64>, writer: usize, published: &AtomicU64) {
    let mut random = Random::new(writer as u32);
    let mut token = Meaning::Token(writer, 0).key();
    for round in 1..=ROUNDS {
        let generation = u64::from(round);
        let half = PLACES / 2;
        let place = random.below(half) + if round % 2 == 1 { half } else { 0 };
        let moved = Meaning::Token(writer, place.into()).key();
        assert_eq!(index.insert(moved, generation), None);
        assert_eq!(index.remove(&token), Some(generation - 1));
        token = moved;

        let (x, y) = (Meaning::X(writer).key(), Meaning::Y(writer).key());
        assert_eq!(index.insert(x, generation), Some(generation - 1));
        assert_eq!(index.insert(y, generation), Some(generation - 1));
        published.store(generation, SeqCst);

        if round % ROUNDS_A_BLOCK == 0 {
            for part in 0..BLOCK {
                let key = Meaning::Block(writer, part).key();
                assert_eq!(index.insert(key, generation), None);
            }
            let low = Meaning::Block(writer, 0).key();
            let high = Meaning::Block(writer, BLOCK).key();
            let block = KeyRange::new(Bound::Included(&low), Bound::Excluded(&high));
            assert_eq!(index.remove_range(block), BLOCK as usize);
        }
    }
}

/// Inserts and removes fillers.
fn fill(index: &dyn OrderedIndex<Dawdler, u64>, writing: &AtomicUsize, mut random: Random) {
    while writing.load(SeqCst) > 0 {
        for _ in 0..100 {
            let key = Meaning::Filler(random.below(PLACES).into()).key();
            match random.below(2) {
                0 => index.insert(key, 0),
                _ => index.remove(&key),
            };
        }
    }
}

fn observe(
    index: &dyn OrderedIndex<Dawdler, u64>,
    published: &[AtomicU64; WRITERS],
    writing: &AtomicUsize,
    mut random: Random,
) {
    // The newest generations of token, x and y that this thread has seen, for each writer.
    let mut seen = [[0; 3]; WRITERS];
    loop {
        let floors = published.each_ref().map(|published| published.load(SeqCst));
        for (seen, floor) in seen.iter_mut().zip(floors) {
            *seen = seen.map(|generation| generation.max(floor));
        }
        let mut entries = Vec::new();
        let (low, high) = (Meaning::X(0).key(), Meaning::Y(WRITERS - 1).key());
        let bounded = KeyRange::new(Bound::Included(&low), Bound::Included(&high));
        match random.below(4) {
            0 => match index.snapshot(KeyRange::all()) {
                Some(snapshot) => entries = snapshot,
                None => return,
            },
            1 => match index.snapshot(bounded) {
                Some(snapshot) => entries = snapshot,
                None => return,
            },
            2 => index.scan(bounded, Direction::Ascending, usize::MAX, &mut entries),
            _ => index.scan(
                KeyRange::all(),
                Direction::Descending,
                usize::MAX,
                &mut entries,
            ),
        }
        for (writer, seen) in seen.iter_mut().enumerate() {
            *seen = judge(&entries, writer, *seen);
        }
        // Also scans the blocks alone: a short scan more often meets the middle of a removal.
        for turn in 0..BLOCK_SCANS {
            let writer = turn % WRITERS;
            let low = Meaning::Block(writer, 0).key();
            let high = Meaning::Block(writer, BLOCK).key();
            let range = KeyRange::new(Bound::Included(&low), Bound::Excluded(&high));
            entries.clear();
            index.scan(range, Direction::Ascending, usize::MAX, &mut entries);
            judge_block(&entries);
        }
        if writing.load(SeqCst) == 0 {
            return;
        }
    }
}

/// Checks what a snapshot shows of one writer. Returns the generations of its token, x and y.
fn judge(entries: &[(Dawdler, u64)], writer: usize, oldest: [u64; 3]) -> [u64; 3] {
    let (mut tokens, mut x, mut y, mut block) = (Vec::new(), None, None, Vec::new());
    for (key, generation) in entries {
        match Meaning::of(*key) {
            Meaning::Token(whose, _) if whose == writer => tokens.push(*generation),
            Meaning::Block(whose, _) if whose == writer => block.push((*key, *generation)),
            Meaning::X(whose) if whose == writer => x = Some(*generation),
            Meaning::Y(whose) if whose == writer => y = Some(*generation),
            _ => {}
        }
    }
    tokens.sort_unstable();
    let token = match tokens[..] {
        [only] => only,
        [old, new] if old + 1 == new => new,
        _ => panic!("tokens of generations {tokens:?}, not of one moment"),
    };
    let (Some(x), Some(y)) = (x, y) else {
        panic!("x or y is lost: {x:?}, {y:?}");
    };
    assert!(y <= x && x <= y + 1, "x {x} and y {y}, not of one moment");
    assert!(
        x <= token && token <= x + 1,
        "token {token} and x {x}, not of one moment"
    );

    block.sort_unstable();
    judge_block(&block);
    let newest = [token, x, y];
    assert!(
        newest
            .iter()
            .zip(oldest)
            .all(|(now, before)| *now >= before),
        "token, x and y were {oldest:?} before this snapshot, and are {newest:?} in it"
    );
    newest
}

/// Checks the entries of one writer's block, in ascending order: it grows upwards, and is removed
/// as a whole.
fn judge_block(block: &[(Dawdler, u64)]) {
    for (place, (key, generation)) in block.iter().enumerate() {
        let part = match Meaning::of(*key) {
            Meaning::Block(_, part) => part,
            other => panic!("{other:?} in the range of a block"),
        };
        assert_eq!(place as u64, part, "a hole in the block {block:?}");
        assert_eq!(*generation, block[0].1, "two blocks at once: {block:?}");
    }
}
