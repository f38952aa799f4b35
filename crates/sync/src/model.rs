//! Runs models under the checkers, and prints how much each run explored.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most atomic steps that one interleaving may have. A model with more waits for something that
/// never comes. loom's own limit of 1,000 is too low for the models that build a tree first.
#[cfg(loom)]
const BRANCHES: usize = 4_000;

thread_local! {
    static THREADS: Cell<usize> = const { Cell::new(0) };
}

pub(crate) fn next_thread_index() -> usize {
    THREADS.replace(THREADS.get() + 1)
}

fn run(model: impl Fn()) {
    THREADS.set(0);
    crate::epoch::forget();
    model();
    crate::epoch::collect();
}

/// Explores every interleaving of `model` that loom distinguishes with at most `preemptions` forced
/// switches, and prints how many there were.
///
/// # Panics
///
/// When an interleaving fails.
#[cfg(loom)]
pub fn check(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let completed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&completed);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = BRANCHES;
    builder.check(move || {
        run(&model);
        count.fetch_add(1, Ordering::Relaxed);
    });
    println!(
        "loom model {name}: completed {} interleavings",
        completed.load(Ordering::Relaxed)
    );
}

/// An ordinary run has a test's schedules divided by this, a deep one (`TREMULA_DEEP`) all of them,
/// and so has the search for planted bugs.
#[cfg(shuttle)]
const SPARED: usize = 3;

/// Runs `test` under `schedules` random schedules and prints how many completed. An ordinary run
/// has fewer.
///
/// # Panics
///
/// When a schedule fails; shuttle prints the schedule that replays it.
#[cfg(shuttle)]
pub fn check(name: &str, schedules: usize, test: impl Fn() + Send + Sync + 'static) {
    let schedules = match std::env::var_os("TREMULA_DEEP") {
        Some(_) => schedules,
        None => schedules.div_ceil(SPARED),
    };
    let completed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&completed);
    let once = move || {
        run(&test);
        count.fetch_add(1, Ordering::Relaxed);
    };
    // Half of them by priorities (few, well-placed switches), half by uniform choice.
    let once = Arc::new(once);
    let other = Arc::clone(&once);
    shuttle::check_pct(move || once(), schedules / 2, 3);
    shuttle::check_random(move || other(), schedules - schedules / 2);
    println!(
        "shuttle test {name}: completed {} schedules",
        completed.load(Ordering::Relaxed)
    );
}
