//! Runs each kind of hostility against one subject in a process of its own, so that a crash ends
//! one run only and is reported with its kind.

use super::life;
use super::subject::Subject;
use super::support::fuse::with_fuse;
use super::support::misled::{broken_invariant, unless_misled};
use super::support::suite::{Random, join_all};
use super::temper::{self, KINDS, Kind, Panics, Reenters};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, abort};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread;
use std::time::Duration;

/// Names the kind, and optionally the form and the seed, that this process runs.
const REPLAY: &str = "TREMULA_HOSTILE";
/// The number of seeds for each kind and each form of the key.
const SEEDS: &str = "TREMULA_HOSTILE_SEEDS";
/// The defaults of `SEEDS`, in a usual run and in a deep one (`cargo xtask test --deep`).
const USUAL_SEEDS: u32 = 4;
const DEEP_SEEDS: u32 = 100;

/// The number of operations with one seed.
const OPERATIONS: u32 = 400;
/// The same where drops panic: most drops run after the operation, so few of the panics come in the
/// middle of one.
const OPERATIONS_OF_DROPS: u32 = 4_000;
/// The most maps that one seed makes. A new map follows each time the engine itself has panicked.
const MAPS: u32 = 20;
/// How long an operation may take before it counts as a hang.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long another thread waits for one whose operation does not end. Less than `PATIENCE`, so
/// that this is what is reported.
const PATIENCE_OF_OTHERS: Duration = Duration::from_secs(8);
/// How many processes run at the same time.
const PROCESSES: usize = 2;

/// Makes a fresh map.
pub(crate) type Make = fn(&mut Random) -> Arc<dyn Subject>;

/// What is hostile to a subject: a form of the key, by number, and a map with such keys.
pub(crate) type Forms = [(u8, Make)];

/// Runs every kind against a subject. The test that registers the subject has this name. Leaves out
/// kinds that are known to fail.
pub(crate) fn run(test: &'static str, forms: &Forms, known: &[(&str, &[&str])]) {
    if let Ok(replay) = std::env::var(REPLAY) {
        return run_here(test, forms, &replay);
    }
    let is_known = |kind: &Kind| {
        known
            .iter()
            .any(|(subject, kinds)| test.contains(subject) && kinds.contains(&kind.name))
    };
    let kinds = KINDS.iter().filter(|kind| !is_known(kind));
    let waiting = Mutex::new(kinds);
    let failures = Mutex::new(String::new());
    thread::scope(|scope| {
        let work = || {
            loop {
                let next = lock(&waiting).next();
                let Some(kind) = next else { return };
                if let Err(failure) = run_apart(test, kind) {
                    lock(&failures).push_str(&failure);
                }
            }
        };
        join_all((0..PROCESSES).map(|_| scope.spawn(work)).collect());
    });
    let failures = failures.into_inner().unwrap_or_default();
    assert!(failures.is_empty(), "{failures}");
}

/// Runs one kind in a process of its own. Returns how it failed, if it did.
fn run_apart(test: &str, kind: &Kind) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(REPLAY, kind.name);
    if kind.panics != Panics::Never {
        // A panic may leak: the drop of a bag of garbage stops at the first panic.
        let options = std::env::var("ASAN_OPTIONS").unwrap_or_default();
        command.env("ASAN_OPTIONS", format!("{options}:detect_leaks=0"));
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said += &String::from_utf8_lossy(&output.stderr);
    // If an engine gave up on lying keys, it may leak; every other fault counts.
    let leaks_only = said.contains("LeakSanitizer") && !said.contains("ERROR: AddressSanitizer");
    if output.status.success() || leaks_only && said.contains(GAVE_UP) {
        return Ok(());
    }
    let last: Vec<&str> = said.lines().collect();
    let last = last[last.len().saturating_sub(MOST_LINES)..].join("\n");
    let mut failure = String::new();
    let name = kind.name;
    let _ = writeln!(failure, "{test}: {name}: {}\n{last}", output.status);
    let _ = writeln!(
        failure,
        "again: {REPLAY}={name}:FORM:SEED cargo test -p tremula-index --test hostile -- --exact \
         {test} --nocapture, with the form and seed that were last named above\n"
    );
    Err(failure)
}

/// What a process prints when an engine itself has panicked.
const GAVE_UP: &str = "the engine gave up";

/// How many lines of a failed process are shown.
const MOST_LINES: usize = 120;

/// Runs in this process what `replay` names: a kind, or a kind, form and seed separated by colons.
fn run_here(test: &'static str, forms: &Forms, replay: &str) {
    let mut parts = replay.split(':');
    let name = parts.next().unwrap_or_default();
    let kind = KINDS.iter().position(|kind| kind.name == name);
    let kind = kind.unwrap_or_else(|| panic!("there is no kind '{name}'"));
    let number = |part: &str| part.parse::<u32>().expect("a number");
    let [form, seed] = [(); 2].map(|()| parts.next().map(number));
    std::panic::set_hook(Box::new(move |panic| {
        if seed.is_some() {
            eprintln!("{panic}");
        }
    }));
    VERBOSE.store(seed.is_some(), Relaxed);
    thread::spawn(watch);
    let seeds = match seed {
        Some(seed) => seed..seed + 1,
        None => 0..seeds(),
    };
    for &(number, make) in forms {
        if form.is_some_and(|form| form != u32::from(number)) {
            continue;
        }
        for seed in seeds.clone() {
            let run = Run {
                test,
                form: number,
                kind,
                seed,
            };
            eprintln!("{}", run.name());
            *lock(&RUN) = Some(run);
            run_seed(make, kind, seed);
        }
    }
    // Ends the watch: nothing can hang any more.
    *lock(&RUN) = None;
}

fn seeds() -> u32 {
    let deep = std::env::var_os("TREMULA_DEEP").is_some();
    match std::env::var(SEEDS) {
        Ok(seeds) => seeds.parse().expect("a number of seeds"),
        Err(_) if deep => DEEP_SEEDS,
        Err(_) => USUAL_SEEDS,
    }
}

/// Runs one seed, against one map after another until there have been enough operations.
fn run_seed(make: Make, kind: usize, seed: u32) {
    temper::set(kind, seed);
    temper::seed_thread(seed.into());
    let before = life::alive();
    let mut random = Random::new(seed);
    let mut panicked = false;
    let left = AtomicU64::new(match KINDS[kind].panics {
        Panics::Drops => OPERATIONS_OF_DROPS.into(),
        _ => OPERATIONS.into(),
    });
    for _ in 0..MAPS {
        if left.load(Relaxed) == 0 {
            break;
        }
        begin("making a map");
        let calls_another = KINDS[kind].reenters == Reenters::Clone;
        let made = quietly(&mut random, |random| {
            let other = calls_another.then(|| make(random));
            (make(random), other)
        });
        let Outcome::Done((map, other)) = made else {
            panicked = true;
            continue;
        };
        temper::call_from_now_on(other.as_ref().unwrap_or(&map));
        *lock(&MAP) = Some(Arc::downgrade(&map));
        let gave_up = AtomicBool::new(false);
        let user_panicked = AtomicBool::new(false);
        let wage = |number: u32| {
            let mut random = Random::new(seed ^ number << 16 ^ (left.load(Relaxed) as u32) << 8);
            temper::seed_thread(random.next());
            wage(&*map, &mut random, &left, &gave_up, &user_panicked);
        };
        if KINDS[kind].threads == 1 {
            wage(0);
        } else {
            thread::scope(|scope| {
                let wage = &wage;
                let numbers = 0..KINDS[kind].threads;
                join_all(numbers.map(|n| scope.spawn(move || wage(n))).collect());
            });
        }
        begin("dropping the map");
        for map in [Some(map), other].into_iter().flatten() {
            let dropped = quietly(&mut random, |_| drop(map));
            panicked |= !matches!(dropped, Outcome::Done(()));
        }
        panicked |= gave_up.into_inner() || user_panicked.into_inner();
    }
    temper::calm();
    begin("waiting for the last drops");
    settle(before, panicked);
}

/// Calls operations of a map until all are done or the engine gives up.
fn wage(
    map: &dyn Subject,
    random: &mut Random,
    left: &AtomicU64,
    gave_up: &AtomicBool,
    user_panicked: &AtomicBool,
) {
    let operations = map.operations();
    while !gave_up.load(Relaxed) {
        let one_less = |left: u64| left.checked_sub(1);
        if left.fetch_update(Relaxed, Relaxed, one_less).is_err() {
            return;
        }
        let operation = operations[random.below(operations.len() as u32) as usize];
        begin(operation);
        match quietly(random, |random| map.operate(operation, random)) {
            Outcome::Done(()) => {}
            Outcome::UserPanicked => user_panicked.store(true, Relaxed),
            end @ (Outcome::GaveUp | Outcome::Endless) => {
                let how = match end {
                    Outcome::Endless => "has no end",
                    _ => "panicked",
                };
                eprintln!("{GAVE_UP}: {operation} {how}");
                gave_up.store(true, Relaxed);
            }
        }
    }
}

/// How a piece of work ended.
enum Outcome<R> {
    Done(R),
    /// With a panic of the hostile code.
    UserPanicked,
    /// With a panic of the hostile code, because the operation called it without end.
    Endless,
    /// With another panic.
    GaveUp,
}

/// Runs `work` as an operation, with a fuse if user code of this kind panics.
fn quietly<R>(random: &mut Random, work: impl FnOnce(&mut Random) -> R) -> Outcome<R> {
    temper::begin_operation();
    let fuse = match temper::kind().panics {
        Panics::Never => u32::MAX,
        Panics::Calls => [2, 8, 30, 400][random.below(4) as usize],
        Panics::Drops => [2, 8, 30][random.below(3) as usize],
    };
    let fuse = random.below(fuse);
    let outcome = catch_unwind(AssertUnwindSafe(|| match temper::kind().panics {
        Panics::Never => Some(work(random)),
        _ => with_fuse(fuse, || work(random)),
    }));
    temper::end_operation();
    match outcome {
        Ok(Some(result)) => Outcome::Done(result),
        Ok(None) => Outcome::UserPanicked,
        Err(panic) if panic.is::<temper::OutOfPatience>() => Outcome::Endless,
        Err(panic) => match broken_invariant(&*panic) {
            Some(invariant) => fail(invariant),
            None => Outcome::GaveUp,
        },
    }
}

/// Fails if the operation of this thread, which does not end, blocks another thread: then it holds
/// a lock. Without that, an operation need not end if keys lie.
pub(crate) fn ask_another_thread() {
    let Some(map) = lock(&MAP).as_ref().and_then(Weak::upgrade) else {
        return;
    };
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        temper::be_honest_here();
        let mut random = Random::new(0);
        for operation in map.operations() {
            temper::seed_thread(random.next());
            temper::begin_operation();
            // A misled map may also mislead the operation of this thread, which then ends with a
            // panic.
            unless_misled(|| map.operate(operation, &mut random));
        }
        drop(map);
        let _ = answer.send(());
    });
    if answered.recv_timeout(PATIENCE_OF_OTHERS).is_err() {
        fail("an operation calls user code without end, and keeps another thread out");
    }
}

/// Advances the epoch until everything that the maps retired has been dropped. Fails if that does
/// not happen although nothing panicked.
fn settle(before: i64, panicked: bool) {
    for round in 0..100_000 {
        if life::alive() <= before {
            break;
        }
        if panicked && round > 1_000 {
            return;
        }
        tremula_sync::epoch::pin().flush();
        thread::yield_now();
    }
    let left = life::alive() - before;
    if left > 0 && !panicked {
        fail(&format!("{left} keys and values are never dropped"));
    }
}

/// What runs in this process.
#[derive(Clone, Copy)]
struct Run {
    test: &'static str,
    form: u8,
    kind: usize,
    seed: u32,
}

impl Run {
    fn name(&self) -> String {
        let Self {
            test,
            form,
            kind,
            seed,
        } = self;
        let kind = KINDS[*kind].name;
        format!("{test}: {kind}, form {form}, seed {seed}")
    }
}

/// The map on which the operations run.
static MAP: Mutex<Option<Weak<dyn Subject>>> = Mutex::new(None);
static RUN: Mutex<Option<Run>> = Mutex::new(None);
/// The last operation that each thread began.
static NOW: Mutex<Vec<(thread::ThreadId, &str)>> = Mutex::new(Vec::new());
/// Counts the operations that have begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// Whether each operation is printed.
static VERBOSE: AtomicBool = AtomicBool::new(false);

fn begin(operation: &'static str) {
    let this = thread::current().id();
    let count = BEGUN.fetch_add(1, Relaxed);
    if VERBOSE.load(Relaxed) {
        eprintln!("operation {count}: {operation}");
    }
    let mut now = lock(&NOW);
    now.retain(|(thread, _)| *thread != this);
    // The oldest entries belong to threads that have ended: fewer than this run at once.
    if now.len() > 4 {
        now.remove(0);
    }
    now.push((this, operation));
}

/// Ends the process with a report if no operation has begun for long.
fn watch() {
    let mut seen = (0, 0);
    let step = Duration::from_millis(100);
    loop {
        thread::sleep(step);
        if lock(&RUN).is_none() {
            seen.1 = 0;
            continue;
        }
        let begun = BEGUN.load(Relaxed);
        seen = if begun == seen.0 {
            (begun, seen.1 + 1)
        } else {
            (begun, 0)
        };
        if step * seen.1 > PATIENCE {
            fail(&format!(
                "no operation has ended for {PATIENCE:?}: it hangs"
            ));
        }
    }
}

/// Ends the process, and reports where it was.
pub(crate) fn fail(why: &str) -> ! {
    let run = *lock(&RUN);
    let now = lock(&NOW).clone();
    let run = run.map_or_else(String::new, |run| run.name());
    eprintln!(
        "{run}: {why}; in {now:?}, operation {}",
        BEGUN.load(Relaxed)
    );
    eprintln!("{}", std::backtrace::Backtrace::force_capture());
    abort();
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
