//! Measures the prices of the machine at hand, and writes them as a profile.

use crate::random::{Purpose, generator};
use rand::seq::SliceRandom;
use std::{
    fmt::Write as _,
    fs,
    hint::{black_box, spin_loop},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread,
    time::Instant,
};
use tremula_shard::topology;

/// How often each price is measured; the least counts, because other work only adds.
const TRIES: usize = 7;

/// The bytes of a cache line.
const LINE: usize = 64;

/// Nanoseconds a step: the least of some tries, each of `steps` steps.
fn least(steps: u64, mut run: impl FnMut(u64)) -> f64 {
    let tries = (0..TRIES).map(|_| {
        let begun = Instant::now();
        run(steps);
        begun.elapsed().as_nanos() as f64 / steps as f64
    });
    tries.fold(f64::INFINITY, f64::min)
}

/// Nanoseconds of a load whose address the load before gave, in memory of this size, in no order
/// that a processor could foresee.
fn chase(bytes: usize) -> f64 {
    const WORDS: usize = LINE / size_of::<usize>();
    let lines = (bytes / LINE).max(2);
    let mut order: Vec<usize> = (0..lines).collect();
    order.shuffle(&mut generator(0, Purpose::Turns, 0, lines));
    let mut next = vec![0; lines * WORDS];
    for (place, line) in order.iter().enumerate() {
        next[line * WORDS] = order[(place + 1) % lines] * WORDS;
    }
    let mut at = 0;
    // Two rounds at least, of which the first warms the caches.
    least((2 * lines as u64).clamp(1 << 18, 1 << 23), |steps| {
        for _ in 0..steps {
            at = next[black_box(at)];
        }
        black_box(at);
    })
}

/// Nanoseconds of the loads of a group of lines that lie together, of which only the first gives
/// the address of the next group, in memory of this size.
fn groups(bytes: usize, lines: usize) -> f64 {
    const WORDS: usize = LINE / size_of::<usize>();
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
    let each = least((2 * count as u64).clamp(1 << 16, 1 << 21), |steps| {
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

/// Runs two threads, each pinned to its processor if there is a choice, that hand a word back and
/// forth. Returns the nanoseconds of one way.
fn hand_over(processors: [usize; 2], rounds: u64, wait: fn()) -> f64 {
    let allowed = topology::allowed().unwrap_or_default();
    let place = move |number: usize| {
        if let Some(cpu) = allowed.get(processors[number] % allowed.len().max(1)) {
            // A processor that was lost meanwhile leaves the choice to the system.
            let _ = topology::pin(*cpu);
        }
    };
    let place = Arc::new(place);
    let once = || {
        let word = AtomicU64::new(0);
        let play = |number: usize| {
            place(number);
            for round in 0..rounds {
                let turn = 2 * round + number as u64;
                while word.load(Ordering::Acquire) != turn {
                    wait();
                }
                word.store(turn + 1, Ordering::Release);
            }
        };
        let mut begun = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| play(1));
            place(0);
            begun = Instant::now();
            scope.spawn(|| play(0));
        });
        begun.elapsed().as_nanos() as f64 / (2 * rounds) as f64
    };
    (0..TRIES).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds from one thread's waking another until that one has woken the first.
fn wake_up(rounds: u64) -> f64 {
    let once = || {
        let turn = Arc::new(AtomicUsize::new(0));
        let (me, its_turn) = (thread::current(), Arc::clone(&turn));
        let other = thread::spawn(move || {
            for _ in 0..rounds {
                while its_turn.load(Ordering::Acquire) != 1 {
                    thread::park();
                }
                its_turn.store(0, Ordering::Release);
                me.unpark();
            }
        });
        let begun = Instant::now();
        for _ in 0..rounds {
            turn.store(1, Ordering::Release);
            other.thread().unpark();
            while turn.load(Ordering::Acquire) != 0 {
                thread::park();
            }
        }
        let took = begun.elapsed().as_nanos() as f64 / (2 * rounds) as f64;
        // It has no panic of its own to pass on.
        let _ = other.join();
        took
    };
    (0..TRIES).map(|_| once()).fold(f64::INFINITY, f64::min)
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
    const STEPS: u64 = 1 << 20;
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
        (0..steps).for_each(|_| fence(Ordering::SeqCst))
    });
    let pause = least(STEPS / 16, |steps| (0..steps).for_each(|_| spin_loop()));
    let yielded = least(STEPS / 16, |steps| {
        (0..steps).for_each(|_| thread::yield_now());
    });
    let boxed = least(STEPS, |steps| {
        (0..steps).for_each(|step| drop(black_box(Box::new([step; 8]))));
    });
    let woken = wake_up(2000);
    let unparked = {
        let me = thread::current();
        least(STEPS / 16, |steps| (0..steps).for_each(|_| me.unpark()))
    };
    let switched = hand_over([0, 0], 2000, thread::yield_now);
    let over = hand_over([0, 1], 100_000, spin_loop_once);
    let beside = |whole: f64| (whole - load).max(0.0);
    let (alone, eight) = (groups(MEMORY, 1), groups(MEMORY, 8));
    // Per cent of the price of a line alone, for each line of a group beyond the first.
    let together = (100.0 * (eight - alone) / 7.0 / alone)
        .round()
        .clamp(1.0, 100.0);

    let mut text = format!(
        "# This machine, measured by `tremula-lab calibrate`.\nabout = \"{cores} processors of \
         the machine that measured itself\"\nsockets = 1\nclusters = 1\ncores = {cores}\nthreads = \
         1\nshared_speed = 100\n# Measured here: groups of eight lines in memory, against single lines.\n\
         beside = {together}\n"
    );
    for (name, bytes) in ["near_lines", "far_lines", "socket_lines"]
        .iter()
        .zip(caches)
    {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} = {}", bytes / LINE);
    }
    let halves = "half of a wake-up, which is measured from thread to thread";
    let prices = [
        ("instructions", load, "a loop of loads, per load"),
        (
            "near_cache",
            beside(chase(caches[0] / 2)),
            "dependent loads",
        ),
        ("far_cache", beside(chase(caches[1] / 2)), "dependent loads"),
        (
            "socket_cache",
            beside(chase((caches[1] * 8).min(caches[2]))),
            "dependent loads",
        ),
        ("own_memory", beside(chase(MEMORY)), "dependent loads"),
        ("other_memory", beside(chase(MEMORY)), "there is one socket"),
        ("clean_cluster", over, "taken to be as a changed line"),
        ("clean_socket", over, "there is one cluster"),
        ("clean_other", over, "there is one socket"),
        (
            "changed_cluster",
            over,
            "a word handed back and forth, one way",
        ),
        ("changed_socket", over, "there is one cluster"),
        ("changed_other", over, "there is one socket"),
        ("read_modify_write", beside(add), "a loop of additions"),
        ("fence", fenced, "a loop of fences"),
        ("pause", pause, "a loop of pauses"),
        ("yield_now", yielded, "a loop of yields"),
        ("sleep", woken / 4.0, halves),
        ("wake", (woken / 4.0).max(unparked), halves),
        ("wake_delay", woken / 2.0, halves),
        (
            "switch",
            beside(switched - yielded),
            "two threads of one processor that yield",
        ),
        ("allocation", boxed / 2.0, "boxes of 64 bytes, per call"),
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
        assert!(least(10, |steps| assert_eq!(steps, 10)) >= 0.0);
    }
}
