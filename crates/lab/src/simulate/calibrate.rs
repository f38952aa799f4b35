//! Measures the prices of the machine at hand, and writes them as a profile.

use crate::random::{Purpose, generator};
use rand::seq::SliceRandom;
use std::{
    fmt::Write as _,
    fs,
    hint::{black_box, spin_loop},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread,
    time::{Duration, Instant},
};
use tremula_shard::topology;

/// How long each price is measured: in short tries, of which the quickest counts, because other
/// work on the machine only adds.
const TRYING: Duration = Duration::from_millis(400);

/// The least number of tries, however long they take.
const TRIES: usize = 3;

/// The bytes of a cache line.
const LINE: usize = 64;

/// Nanoseconds a step: the least of tries of `steps` steps each.
fn least(steps: u64, mut run: impl FnMut(u64)) -> f64 {
    least_of(|| {
        let begun = Instant::now();
        run(steps);
        begun.elapsed().as_nanos() as f64 / steps as f64
    })
}

fn least_of(mut once: impl FnMut() -> f64) -> f64 {
    let begun = Instant::now();
    let mut tries = 0;
    let mut least = f64::INFINITY;
    while tries < TRIES || begun.elapsed() < TRYING {
        least = least.min(once());
        tries += 1;
    }
    least
}

/// Nanoseconds of a load whose address the load before gave, in memory of this size, in no order
/// that a processor could foresee.
fn chase(bytes: usize) -> f64 {
    let next = ring((bytes / LINE).max(2));
    let lines = next.len() / WORDS;
    // The first round warms the caches.
    let mut at = follow(&next, 0, lines);
    least((lines as u64).min(1 << 14), |steps| {
        at = follow(&next, at, steps as usize);
    })
}

/// The words of a line.
const WORDS: usize = LINE / size_of::<AtomicUsize>();

/// Lines of which each has, in its first word, the place of another, so that all are one ring.
fn ring(lines: usize) -> Vec<AtomicUsize> {
    let mut order: Vec<usize> = (0..lines).collect();
    order.shuffle(&mut generator(0, Purpose::Turns, 0, lines));
    let mut next = Vec::new();
    next.resize_with(lines * WORDS, AtomicUsize::default);
    for (place, line) in order.iter().enumerate() {
        let follower = order[(place + 1) % lines] * WORDS;
        next[line * WORDS].store(follower, Ordering::Relaxed);
    }
    next
}

/// Goes from place to place, and returns where that ends.
fn follow(next: &[AtomicUsize], mut at: usize, steps: usize) -> usize {
    for _ in 0..steps {
        at = next[black_box(at)].load(Ordering::Relaxed);
    }
    black_box(at)
}

/// Nanoseconds of a load of a line that the other processor has changed, whose address the load
/// before gave.
fn chase_changed() -> f64 {
    const LINES: usize = 2048;
    const ROUNDS: usize = 50;
    let (next, turn) = (&ring(LINES), &AtomicUsize::new(0));
    let wait_for = |number: usize| {
        while turn.load(Ordering::Acquire) != number {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(1);
            for round in 0..ROUNDS {
                wait_for(2 * round);
                for line in next.chunks_exact(WORDS) {
                    line[1].fetch_add(1, Ordering::Relaxed);
                }
                turn.store(2 * round + 1, Ordering::Release);
            }
        });
        let reads = scope.spawn(|| {
            stay_on(0);
            let mut least = f64::INFINITY;
            for round in 0..ROUNDS {
                wait_for(2 * round + 1);
                let begun = Instant::now();
                follow(next, 0, LINES);
                least = least.min(begun.elapsed().as_nanos() as f64 / LINES as f64);
                turn.store(2 * round + 2, Ordering::Release);
            }
            least
        });
        // A thread that reads and compares does not panic.
        reads.join().unwrap_or(f64::INFINITY)
    })
}

/// Nanoseconds of the loads of a group of lines that lie together, of which only the first gives
/// the address of the next group, in memory of this size.
fn groups(bytes: usize, lines: usize) -> f64 {
    /// Groups begin at multiples of this.
    const APART: usize = 16 * WORDS;
    let count = (bytes / size_of::<usize>() / APART).max(2);
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut generator(0, Purpose::Turns, 0, count));
    let mut next = vec![0; count * APART];
    for (place, group) in order.iter().enumerate() {
        next[group * APART] = order[(place + 1) % count] * APART;
    }
    let mut at = 0;
    let mut sum = 0;
    let each = least((count as u64).min(1 << 12), |steps| {
        for _ in 0..steps {
            let group = &next[black_box(at)..][..lines * WORDS];
            at = group[0];
            for line in group.chunks_exact(WORDS).skip(1) {
                // What the next group waits for depends on all lines of this one.
                at |= line[0];
            }
            sum += at;
        }
    });
    black_box(sum);
    each
}

/// Keeps the calling thread on the processor of this number, if there is a choice.
fn stay_on(processor: usize) {
    let allowed = topology::allowed().unwrap_or_default();
    if let Some(cpu) = allowed.get(processor % allowed.len().max(1)) {
        // A processor that was lost meanwhile leaves the choice to the system.
        let _ = topology::pin(*cpu);
    }
}

/// Runs two threads on these processors that hand a word back and forth. Returns the nanoseconds of
/// one way.
fn hand_over(processors: [usize; 2], rounds: u64, wait: fn()) -> f64 {
    let (word, over) = (&AtomicU64::new(0), &AtomicBool::new(false));
    thread::scope(|scope| {
        let answers = scope.spawn(move || {
            stay_on(processors[1]);
            let mut turn = 1;
            while !over.load(Ordering::Relaxed) {
                if word.load(Ordering::Acquire) == turn {
                    word.store(turn + 1, Ordering::Release);
                    turn += 2;
                } else {
                    wait();
                }
            }
        });
        let asks = scope.spawn(move || {
            stay_on(processors[0]);
            let mut turn = 0;
            let least = least_of(|| {
                let begun = Instant::now();
                for _ in 0..rounds {
                    word.store(turn + 1, Ordering::Release);
                    turn += 2;
                    while word.load(Ordering::Acquire) != turn {
                        wait();
                    }
                }
                begun.elapsed().as_nanos() as f64 / (2 * rounds) as f64
            });
            over.store(true, Ordering::Relaxed);
            least
        });
        let least = asks.join();
        // A thread that counts and compares does not panic.
        drop(answers.join());
        least.unwrap_or(f64::INFINITY)
    })
}

/// Adds to a word again and again; counts how often it did so this many times in a row before
/// another thread came, the last element for all longer rows.
fn add_in_rows(word: &AtomicU64, steps: u64, rows: &mut [u64]) {
    let mut row = 0;
    let mut expected = None;
    for _ in 0..steps {
        let found = word.fetch_add(1, Ordering::Relaxed);
        if expected.is_some_and(|expected| found != expected) {
            rows[row.min(rows.len() - 1)] += 1;
            row = 0;
        }
        row += 1;
        expected = Some(found + 1);
    }
}

/// What two threads that add to one word show of its line, in nanoseconds.
struct FoughtOver {
    /// For how long a core goes on with the line while it is on its way to the other: the time of
    /// the additions in a row, in the median.
    stays: f64,
    /// The time from one core's row to the next one's.
    turn: f64,
}

fn fought_over() -> FoughtOver {
    const STEPS: u64 = 1 << 20;
    const LONGEST: usize = 1 << 12;
    const TRIES: usize = 5;
    let word = &AtomicU64::new(0);
    let each = least(1 << 14, |steps| add_in_rows(word, steps, &mut [0; LONGEST]));
    // If one of the processors has other work, the other one has the line for itself. So the try
    // with the most turns counts.
    let tries = (0..TRIES).map(|_| {
        let begun = &AtomicUsize::new(0);
        let both = thread::scope(|scope| {
            let threads = [0, 1].map(|processor| {
                scope.spawn(move || {
                    let mut rows = vec![0; LONGEST];
                    stay_on(processor);
                    begun.fetch_add(1, Ordering::Relaxed);
                    while begun.load(Ordering::Relaxed) < 2 {
                        spin_loop();
                    }
                    let begun = Instant::now();
                    add_in_rows(word, STEPS, &mut rows);
                    (rows, begun.elapsed().as_nanos() as f64)
                })
            });
            // A thread that counts and compares does not panic.
            threads.map(|thread| thread.join().unwrap_or_default())
        });
        let rows: Vec<u64> = (0..LONGEST)
            .map(|row| both.iter().filter_map(|(rows, _)| rows.get(row)).sum())
            .collect();
        let turns = rows.iter().sum::<u64>().max(1);
        let both_ran = both
            .iter()
            .map(|(_, time)| *time)
            .fold(f64::INFINITY, f64::min);
        let shown = FoughtOver {
            // The line goes at some time during the last addition of a row.
            stays: (middle(&rows) as f64 - 0.5) * each,
            turn: both_ran / turns as f64,
        };
        (turns, shown)
    });
    let most = tries.max_by_key(|(turns, _)| *turns);
    most.expect("there are tries").1
}

/// The median of the numbers from zero up, of which each occurs as often as `counts` says.
fn middle(counts: &[u64]) -> usize {
    let half = counts.iter().sum::<u64>().div_ceil(2);
    let mut below = 0;
    let place = counts.iter().position(|count| {
        below += count;
        below >= half.max(1)
    });
    place.unwrap_or(0)
}

/// How far a call of the system is from its median, in per cent of it: if all times between two
/// were equally likely, four fifths of them would be as near to each other as these are.
fn jitter(mut call: impl FnMut()) -> f64 {
    const CALLS: usize = 1 << 13;
    let mut times: Vec<u128> = (0..CALLS)
        .map(|_| {
            let begun = Instant::now();
            call();
            begun.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    let at = |tenth: usize| times[CALLS * tenth / 10] as f64;
    100.0 * (at(9) - at(1)) / (2.0 * 0.8) / at(5).max(1.0)
}

/// What waking a thread takes that sleeps, in nanoseconds: the call, and from its end until the
/// other thread has answered. Of many wake-ups the lower quartile, because other work delays some,
/// and a thread that is not quite asleep answers sooner.
fn wake_up() -> [f64; 2] {
    const ROUNDS: usize = 2000;
    /// By then the other thread sleeps.
    const ASLEEP: Duration = Duration::from_micros(40);
    const WAITS: usize = 0;
    const ANSWERS: usize = 1;
    const ENDS: usize = 2;
    let turn = Arc::new(AtomicUsize::new(WAITS));
    let its_turn = Arc::clone(&turn);
    let other = thread::spawn(move || {
        loop {
            match its_turn.load(Ordering::Acquire) {
                ANSWERS => its_turn.store(WAITS, Ordering::Release),
                ENDS => return,
                _ => thread::park(),
            }
        }
    });
    let mut took: [Vec<u128>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        while begun.elapsed() < ASLEEP {
            spin_loop();
        }
        turn.store(ANSWERS, Ordering::Release);
        let begun = Instant::now();
        other.thread().unpark();
        let called = begun.elapsed();
        while turn.load(Ordering::Acquire) != WAITS {
            spin_loop();
        }
        took[0].push(called.as_nanos());
        took[1].push((begun.elapsed() - called).as_nanos());
    }
    turn.store(ENDS, Ordering::Release);
    other.thread().unpark();
    // It has no panic of its own to pass on.
    drop(other.join());
    took.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 4] as f64
    })
}

/// The bytes of the cache of this level of the first processor, if the system reports them.
fn cache_bytes(level: u32) -> Option<usize> {
    let folder = "/sys/devices/system/cpu/cpu0/cache";
    (0..8).find_map(|index| {
        let read = |file: &str| fs::read_to_string(format!("{folder}/index{index}/{file}")).ok();
        if read("level")?.trim().parse() != Ok(level) || read("type")?.trim() == "Instruction" {
            return None;
        }
        let size = read("size")?;
        let size: usize = size.trim().strip_suffix('K')?.parse().ok()?;
        Some(size << 10)
    })
}

/// The profile of this machine as TOML. It takes some seconds, during which nothing else should
/// run.
pub(crate) fn profile() -> String {
    /// What most machines have, where the system does not report it.
    const USUAL: [usize; 3] = [32 << 10, 1 << 20, 32 << 20];
    /// Memory that no cache holds whole, unless the cache of the socket is larger.
    const MEMORY: usize = 256 << 20;
    const STEPS: u64 = 1 << 14;
    let caches = [1, 2, 3].map(|level| cache_bytes(level).unwrap_or(USUAL[level as usize - 1]));
    let cores = thread::available_parallelism().map_or(1, usize::from);

    let words: Vec<AtomicU64> = (0..LINE).map(|_| AtomicU64::new(1)).collect();
    let load = least(STEPS, |steps| {
        let mut sum = 0;
        for step in 0..steps {
            sum += words[step as usize % LINE].load(Ordering::Relaxed);
        }
        black_box(sum);
    });
    let add = least(STEPS, |steps| {
        (0..steps).for_each(|_| {
            words[0].fetch_add(1, Ordering::Relaxed);
        });
    });
    let fenced = least(STEPS, |steps| {
        for step in 0..steps {
            words[0].store(black_box(step), Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    });
    let pause = least(STEPS / 64, |steps| (0..steps).for_each(|_| spin_loop()));
    let yielded = least(STEPS / 64, |steps| {
        (0..steps).for_each(|_| thread::yield_now());
    });
    let boxed = least(STEPS, |steps| {
        (0..steps).for_each(|step| drop(black_box(Box::new([step; 8]))));
    });
    let [woken, awake] = wake_up();
    let switched = hand_over([0, 0], 1, thread::yield_now);
    // The thread that writes takes the line, and the thread that waits fetches it back.
    let over = hand_over([0, 1], 256, spin_loop_once) / 2.0;
    let beside = |whole: f64| (whole - load).max(0.0);
    let near = beside(chase(caches[0] / 2));
    let memory = beside(chase(MEMORY));
    // Single lines of groups would be so few that a cache could hold them.
    let (alone, eight) = (chase(MEMORY), groups(MEMORY, 8));
    // Per cent of the price of a line alone, for each line of a group beyond the first.
    let together = (100.0 * (eight - alone) / 7.0 / alone)
        .round()
        .clamp(1.0, 100.0);

    let FoughtOver { stays, turn } = fought_over();
    let stays = (100.0 * stays / over).round().clamp(0.0, 100.0);
    let queued = (100.0 * turn / over).round().clamp(100.0, 1000.0);
    let led = (100.0 * beside(chase_changed()) / over).round();
    let led = led.clamp(10.0, 1000.0);
    let varies = jitter(thread::yield_now).round().clamp(0.0, 100.0);

    let mut text = format!(
        "# This machine, measured by `tremula-lab calibrate`.\nabout = \"{cores} processors of \
         the machine that measured itself\"\nsockets = 1\nclusters = 1\ncores = {cores}\nthreads = \
         1\nshared_speed = 100\n# Measured here: groups of eight lines in memory, against single lines.\n\
         beside = {together}\n# Measured here: two threads that add to one word, and what one does in a row.\n\
         stays = {stays}\n# Measured here: the same two threads, the time from one's turn to the next.\n\
         queued = {queued}\n# Measured here: loads that depend on each other, of lines that the other processor has changed.\n\
         led = {led}\n# Measured here: yields, from the tenth to the ninetieth of a hundred.\njitter = {varies}\n"
    );
    for (name, bytes) in ["near_lines", "far_lines", "socket_lines"]
        .iter()
        .zip(caches)
    {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} = {}", bytes / LINE);
    }
    let prices = [
        ("instructions", load, "a loop of loads, per load"),
        ("near_cache", near, "dependent loads"),
        ("far_cache", beside(chase(caches[1] / 2)), "dependent loads"),
        (
            "socket_cache",
            beside(chase((caches[1] * 8).min(caches[2]))),
            "dependent loads",
        ),
        ("own_memory", memory, "dependent loads"),
        ("other_memory", memory, "there is one socket"),
        ("clean_cluster", over, "taken to be as a changed line"),
        ("clean_socket", over, "there is one cluster"),
        ("clean_other", over, "there is one socket"),
        (
            "changed_cluster",
            over,
            "a word handed back and forth: half of one way, which is two transfers",
        ),
        ("changed_socket", over, "there is one cluster"),
        ("changed_other", over, "there is one socket"),
        (
            "read_modify_write",
            // The simulator adds the price of the line.
            (beside(add) - near).max(0.0),
            "a loop of additions, less the nearest cache",
        ),
        ("fence", fenced, "a loop of fences"),
        ("pause", pause, "a loop of pauses"),
        ("yield_now", yielded, "a loop of yields"),
        ("sleep", woken, "taken to be as the call that wakes"),
        ("wake", woken, "the call that wakes a sleeping thread"),
        (
            "wake_delay",
            awake,
            "from that call until the thread answers",
        ),
        (
            "switch",
            beside(switched - yielded),
            "two threads of one processor that yield",
        ),
        ("allocation", boxed / 2.0, "boxes of 64 bytes, a call"),
        ("store_lag", 4.0 * over, "estimate: a few lines under way"),
        ("slice", 3e6, "the least slice of Linux"),
    ];
    for (name, ns, source) in prices {
        let _ = write!(
            text,
            "\n[prices.{name}]\nns = {ns:.2}\nsource = \"measured here: {source}\"\n"
        );
    }
    text
}

fn spin_loop_once() {
    spin_loop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chasing_visits_every_line() {
        assert!(chase(1 << 12) > 0.0);
        let next = ring(7);
        let places: Vec<usize> = (0..7).map(|steps| follow(&next, 0, steps)).collect();
        assert_eq!(follow(&next, 0, 7), 0);
        assert!(
            (0..7).all(|line| places.contains(&(line * WORDS))),
            "{places:?}"
        );
        assert!(least(10, |steps| assert_eq!(steps, 10)) >= 0.0);
    }

    #[test]
    fn a_row_ends_when_another_thread_comes() {
        let word = AtomicU64::new(0);
        let mut rows = [0; 4];
        add_in_rows(&word, 2, &mut rows);
        assert_eq!(rows, [0; 4], "nobody came");
        assert_eq!(middle(&rows), 0);
        assert_eq!(middle(&[0, 3, 1, 3]), 2);
        assert_eq!(middle(&[0, 4, 1, 3]), 1);
        let FoughtOver { stays, turn } = fought_over();
        assert!(stays > 0.0 && turn > 0.0);
    }
}
