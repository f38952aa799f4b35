//! Redis's own test suite (7.0.15, in Tcl) with `tremula serve` in the place of `redis-server`.
//!
//! The suite is not part of this repository. `cargo xtask test` takes it from Debian's source
//! package into `target/redis-7.0.15`. It starts `src/redis-server` many times, each time with
//! another configuration. Here that is `redis-server.py`, which turns the configuration into flags.
//!
//! `cases.txt` has how many cases of each unit run, and which are skipped, each with the reason.
//! The test fails if a case fails, if a unit runs another number of cases, or if it does not skip
//! what is listed. So no case can get lost.

mod cases;
mod suite;
#[path = "../support/mod.rs"]
mod support;

use cases::Unit;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;
use suite::{Ran, Suite};

/// Units that run at once. They wait most of the time.
const AT_ONCE: usize = 4;

#[test]
fn the_suite_of_redis_passes_but_for_what_is_listed() {
    let suite = Suite::find();
    let units = cases::units();
    // The longest are first in the file.
    let waiting = Mutex::new(units.iter());
    let problems = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for worker in 0..AT_ONCE {
            let (suite, waiting, problems) = (&suite, &waiting, &problems);
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().expect("no panic").next();
                    let Some(unit) = next else { break };
                    let begun = Instant::now();
                    let ran = suite.run(unit, worker);
                    println!(
                        "{}: {} passed, {} failed, {} skipped in {} s",
                        unit.name,
                        ran.passed.len(),
                        ran.failed.len(),
                        ran.skipped.len() + ran.ignored.len(),
                        begun.elapsed().as_secs(),
                    );
                    problems
                        .lock()
                        .expect("no panic")
                        .extend(differences(unit, &ran));
                }
            });
        }
    });
    let problems = problems.into_inner().expect("no panic");
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Where a run differs from what is listed.
fn differences(unit: &Unit, ran: &Ran) -> Vec<String> {
    let name = &unit.name;
    let mut problems: Vec<_> = ran
        .failed
        .iter()
        .map(|case| format!("{name}: {case}"))
        .collect();
    if let Some(trouble) = &ran.trouble {
        problems.push(format!("{name}: {trouble}"));
    }
    if ran.passed.len() != unit.runs {
        let (passed, runs) = (ran.passed.len(), unit.runs);
        problems.push(format!(
            "{name}: {passed} cases passed; cases.txt has {runs}"
        ));
    }
    if unit.runs == 0 {
        problems.push(format!("{name}: no case of it is listed to run"));
    }
    let listed: BTreeSet<&str> = unit.skipped().collect();
    let seen: BTreeSet<&str> = ran.skipped.iter().map(String::as_str).collect();
    let lost = listed.difference(&seen);
    problems.extend(lost.map(|case| format!("{name}: there is no case to be skipped: {case}")));
    // Whole groups of cases, such as those that need much memory.
    problems.extend(
        ran.ignored
            .iter()
            .map(|why| format!("{name}: left out by a tag: {why}")),
    );
    problems
}

#[test]
fn each_way_to_run_other_cases_than_are_listed_is_a_difference() {
    let listed = "unit/x: 2\n= a reason\nleft out\n\nunit/empty: 0\n= a reason\nall of it\n";
    let [unit, empty] = <[Unit; 2]>::try_from(cases::read(listed).expect("a list"))
        .ok()
        .unwrap();
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let ran = |passed: &[&str], skipped: &[&str]| Ran {
        passed: names(passed),
        skipped: names(skipped),
        ..Ran::default()
    };
    assert!(differences(&unit, &ran(&["a", "b"], &["left out"])).is_empty());
    let found = |ran: Ran, unit: &Unit| differences(unit, &ran).join("; ");
    let wanted = |passed| format!("unit/x: {passed} cases passed; cases.txt has 2");
    assert_eq!(found(ran(&["a"], &["left out"]), &unit), wanted(1));
    assert_eq!(
        found(ran(&["a", "b", "c"], &["left out"]), &unit),
        wanted(3)
    );
    assert_eq!(
        found(ran(&["a", "b"], &[]), &unit),
        "unit/x: there is no case to be skipped: left out"
    );
    assert_eq!(
        found(ran(&[], &["all of it"]), &empty),
        "unit/empty: no case of it is listed to run"
    );
    let failed = Ran {
        failed: names(&["c\nwhy"]),
        ignored: names(&["e: Tag: slow denied"]),
        trouble: Some("it ended".to_owned()),
        ..ran(&["a", "b"], &["left out"])
    };
    assert_eq!(
        found(failed, &unit),
        "unit/x: c\nwhy; unit/x: it ended; unit/x: left out by a tag: e: Tag: slow denied"
    );
}
