//! `cargo xtask test`: the steps, in two lanes, and the table of what they did.

mod checks;
mod dist;
mod fuzz;
mod lanes;
mod package;
mod report;
mod shipped;
mod tests;

use crate::table::{Align, Table};
use crate::tools::Tool;
use crate::workspace::Workspace;
use lanes::{Done, Lane};
use report::{Outcome, Report, thousands};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Which steps to run.
#[derive(clap::Args)]
pub(crate) struct TestArgs {
    /// Run only these steps (and what provides their tools)
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<String>,
    /// List the steps and do nothing
    #[arg(long)]
    list: bool,
    /// Run the remaining steps after one has failed
    #[arg(long)]
    keep_going: bool,
    /// Give the tests that can use it more time: ten minutes of churn an engine, ten minutes of
    /// fuzzing a target, hours in all
    #[arg(long)]
    pub(crate) deep: bool,
}

/// One step of `cargo xtask test`.
struct Step {
    name: &'static str,
    about: &'static str,
    tools: &'static [Tool],
    /// Whether it is run only if it is named, or in a deep run.
    is_deep: bool,
    lane: Lane,
    run: fn(&Workspace, &mut Report),
}

/// The step that provides the tools of the others; it comes first.
const TOOLS: &str = "tools";

/// Every step after the one that provides the tools, in the order of each lane: what is quick and
/// what fails most often come first.
const STEPS: [Step; 17] = [
    Step {
        name: "fmt",
        about: "formatting, as rustfmt has it",
        tools: &[Tool::Rustfmt],
        is_deep: false,
        lane: Lane::Checks,
        run: checks::fmt,
    },
    Step {
        name: "tidy",
        about: "the house rules",
        tools: &[],
        is_deep: false,
        lane: Lane::Checks,
        run: checks::tidy,
    },
    Step {
        name: "clippy",
        about: "lints without a warning, in the plain build and in the models'",
        tools: &[Tool::Clippy],
        is_deep: false,
        lane: Lane::Checks,
        run: checks::clippy,
    },
    Step {
        name: "doc",
        about: "documentation without a warning",
        tools: &[],
        is_deep: false,
        lane: Lane::Checks,
        run: checks::doc,
    },
    Step {
        name: "package",
        about: "every crate packaged, and the library and the command built from the packages alone",
        tools: &[],
        is_deep: false,
        lane: Lane::Checks,
        run: package::package,
    },
    Step {
        name: "unit",
        about: "unit tests of every crate",
        tools: &[],
        is_deep: false,
        lane: Lane::Tests,
        run: tests::unit,
    },
    Step {
        name: "doctest",
        about: "examples in the documentation",
        tools: &[],
        is_deep: false,
        lane: Lane::Tests,
        run: tests::doctest,
    },
    Step {
        name: "integration",
        about: "the crates from outside: properties against models, the stress tests at full speed, keys that lie, a real Erlang",
        tools: &[Tool::Erlang, Tool::Chromium],
        is_deep: false,
        lane: Lane::Tests,
        run: tests::integration,
    },
    Step {
        name: "loom",
        about: "every interleaving of small models",
        tools: &[],
        is_deep: false,
        lane: Lane::Checks,
        run: tests::loom,
    },
    Step {
        name: "shuttle",
        about: "random schedules of larger tests",
        tools: &[],
        is_deep: false,
        lane: Lane::Checks,
        run: tests::shuttle,
    },
    Step {
        name: "sim",
        about: "the simulator of many cores: the same bytes twice, time that adds up, known curves",
        tools: &[],
        is_deep: false,
        lane: Lane::Checks,
        run: tests::sim,
    },
    Step {
        name: "shipped",
        about: "the machine code of a lookup, which is the same with the simulator and without it",
        tools: &[],
        is_deep: true,
        lane: Lane::Tests,
        run: shipped::shipped,
    },
    Step {
        name: "tsan",
        about: "the stress tests under ThreadSanitizer",
        tools: &[Tool::Nightly],
        is_deep: false,
        lane: Lane::Checks,
        run: tests::tsan,
    },
    Step {
        name: "asan",
        about: "the stress tests and the hostile keys and values under AddressSanitizer, leaks included",
        tools: &[Tool::Nightly],
        is_deep: false,
        lane: Lane::Checks,
        run: tests::asan,
    },
    Step {
        name: "fuzz",
        about: "what must hold for any input, with inputs that libFuzzer makes: ten minutes a target in a deep run, a few seconds if it is named",
        tools: &[Tool::Nightly, Tool::Cpp],
        is_deep: true,
        lane: Lane::Checks,
        run: fuzz::fuzz,
    },
    Step {
        name: "e2e",
        about: "the real server with redis-cli, redis-benchmark, redis-server, Redis's own test suite, clients in Python, JavaScript and Go, the page in Chromium, and groups of nodes on nats-server",
        tools: &[
            Tool::Redis,
            Tool::RedisSuite,
            Tool::OpenSsl,
            Tool::Python,
            Tool::Node,
            Tool::Go,
            Tool::Chromium,
            Tool::Browser,
            Tool::Nats,
        ],
        is_deep: false,
        lane: Lane::Checks,
        run: tests::e2e,
    },
    Step {
        name: "dist",
        about: "what is shipped: two runs with the same bytes, the package in a Debian of its own, the image, the unit, the manual, the alert rules",
        tools: &[Tool::Packaging],
        is_deep: false,
        lane: Lane::Tests,
        run: dist::dist,
    },
];

/// Runs the chosen steps. `Ok(true)` if all of them passed.
pub(crate) fn test(workspace: &Workspace, arguments: &TestArgs) -> Result<bool, String> {
    if arguments.list {
        list();
        return Ok(true);
    }
    let chosen = choose(&arguments.only, arguments.deep)?;
    let tools = tools_of(&chosen);
    let total = chosen.len() + usize::from(!tools.is_empty());
    let started = AtomicUsize::new(0);
    let one = |name: &'static str, about: &str, run: &dyn Fn(&mut Report)| {
        let number = started.fetch_add(1, Ordering::Relaxed) + 1;
        println!("[{number}/{total}] {name}: {about}");
        let begun = Instant::now();
        let mut report = Report::of(name);
        run(&mut report);
        let took = begun.elapsed();
        conclude(workspace, &report, took);
        Done { report, took }
    };

    let begun = Instant::now();
    let mut done = Vec::new();
    if !tools.is_empty() {
        let about = "what the steps need besides the compiler";
        done.push(one(TOOLS, about, &|report| {
            provide(workspace, &tools, report);
        }));
    }
    let failed = |done: &Done| done.report.outcome() == Outcome::Failed;
    if arguments.keep_going || !done.iter().any(failed) {
        let step = |step: &&Step| {
            one(step.name, step.about, &|report| {
                (step.run)(workspace, report);
            })
        };
        done.extend(lanes::run(
            &chosen,
            |step| step.lane,
            |done| arguments.keep_going || !failed(done),
            step,
        ));
    }
    Ok(summarize(&done, total - done.len(), begun.elapsed()))
}

fn list() {
    let mut table = Table::new([("step", Align::Left), ("what it checks", Align::Left)]);
    table.row([
        TOOLS.to_owned(),
        "that what the steps need is there, or can be installed".to_owned(),
    ]);
    for step in &STEPS {
        table.row([step.name.to_owned(), step.about.to_owned()]);
    }
    print!("{table}");
}

/// The steps named in `only`, in the order of the list. If none is named, every step, the deep ones
/// only in a deep run.
fn choose(only: &[String], deep: bool) -> Result<Vec<&'static Step>, String> {
    let known = |name: &&String| *name == TOOLS || STEPS.iter().any(|step| step.name == *name);
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!(
            "there is no step '{unknown}'; there are: {TOOLS} {}",
            names.join(" ")
        ));
    }
    let is_named = |step: &Step| only.iter().any(|name| name == step.name);
    let chosen = |step: &&Step| is_named(step) || (only.is_empty() && (deep || !step.is_deep));
    Ok(STEPS.iter().filter(chosen).collect())
}

/// What the chosen steps need; everything, if the step `tools` is all that was asked for and
/// no other was chosen.
fn tools_of(chosen: &[&Step]) -> Vec<Tool> {
    if chosen.is_empty() {
        return Tool::ALL.to_vec();
    }
    let needed = |tool: &Tool| chosen.iter().any(|step| step.tools.contains(tool));
    Tool::ALL.into_iter().filter(needed).collect()
}

fn provide(workspace: &Workspace, tools: &[Tool], report: &mut Report) {
    for tool in tools {
        if let Err(problem) = tool.provide(workspace, &mut report.output) {
            report.problem(problem);
        }
    }
}

/// Says how a step ended, with all that it printed if it failed, and keeps that in a file.
fn conclude(workspace: &Workspace, report: &Report, took: Duration) {
    let name = report.step;
    let logs = workspace.target.join("xtask");
    let log = logs.join(format!("{name}.log"));
    let kept = std::fs::create_dir_all(&logs).and_then(|()| std::fs::write(&log, &report.output));
    if let Err(error) = kept {
        println!("    {} could not be written: {error}", log.display());
    }
    if report.outcome() == Outcome::Failed {
        println!("{}", report.output);
        for problem in report.problems() {
            println!("    {name}: {problem}");
        }
    }
    println!(
        "    {name}: {} in {:.1} s{}",
        report.outcome(),
        took.as_secs_f64(),
        report.detail()
    );
}

/// Prints the table and the closing line.
fn summarize(done: &[Done], not_run: usize, took: Duration) -> bool {
    let mut table = Table::new([
        ("step", Align::Left),
        ("result", Align::Left),
        ("time", Align::Right),
        ("passed", Align::Right),
        ("failed", Align::Right),
        ("skipped", Align::Right),
        ("explored", Align::Left),
    ]);
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for Done { report, took } in done {
        let counts = [report.passed, report.failures(), report.skipped];
        passed += counts[0];
        failed += counts[1];
        skipped += counts[2];
        let mut row = vec![
            report.step.to_owned(),
            report.outcome().to_string(),
            format!("{:.1} s", took.as_secs_f64()),
        ];
        row.extend(counts.map(|count| {
            if count == 0 {
                String::new()
            } else {
                thousands(count)
            }
        }));
        row.push(report.explored.clone());
        table.row(row);
    }
    println!(
        "\n{table}\nin {} min {} s",
        took.as_secs() / 60,
        took.as_secs() % 60
    );
    if not_run > 0 {
        println!("steps not run because of the failure: {not_run}; --keep-going runs them");
    }
    match skipped {
        0 => println!("{passed} passed, {failed} failed"),
        _ => println!("{passed} passed, {failed} failed, {skipped} skipped"),
    }
    failed == 0
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn names(only: &[&str]) -> Result<Vec<&'static str>, String> {
        let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
        Ok(choose(&only, true)?.iter().map(|step| step.name).collect())
    }

    #[test]
    fn steps_run_in_their_own_order() {
        assert_eq!(names(&["loom", "fmt"]).unwrap(), ["fmt", "loom"]);
        assert_eq!(names(&[]).unwrap().len(), STEPS.len());
        assert!(names(&["tools"]).unwrap().is_empty());
        let usual = choose(&[], false).unwrap();
        assert!(usual.len() < STEPS.len() && usual.iter().all(|step| !step.is_deep));
        let named = choose(&["fuzz".to_owned()], false).unwrap();
        assert_eq!(named.len(), 1, "what is named is run");
    }

    #[test]
    fn an_unknown_step_is_named() {
        assert!(names(&["lom"]).unwrap_err().contains("'lom'"));
    }

    #[test]
    fn only_the_tools_of_the_chosen_steps_are_needed() {
        let tools = |names: &[&str]| {
            let only: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            tools_of(&choose(&only, true).unwrap())
        };
        assert!(tools(&["e2e"]).starts_with(&[Tool::Redis, Tool::RedisSuite, Tool::OpenSsl]));
        assert_eq!(tools(&["unit"]), []);
        assert_eq!(tools(&["tools"]), Tool::ALL);
        assert_eq!(tools(&["tools", "fmt"]), [Tool::Rustfmt]);
        assert_eq!(tools(&[]), Tool::ALL);
    }
}
