//! The steps that run tests, and which of them runs which test.

use super::report::{Report, thousands};
use crate::flavour::Flavour;
use crate::job::Job;
use crate::output::{self, Binary};
use crate::tools;
use crate::workspace::Workspace;
use std::time::Duration;

/// The crates that must have models, stress tests and tests under every checker.
pub(super) const CHECKED: [&str; 5] = [
    "tremula-sync",
    "tremula-index",
    "tremula-papers",
    "tremula-mailbox",
    "tremula-log",
];

/// The crates that must have tests in the simulator.
pub(super) const SIMULATED: [&str; 2] = ["tremula-sync", "tremula-lab"];

/// Integration tests over many engines and types of keys that take minutes to optimise, and less
/// than that to run as they are: they are built as [`unoptimised`] has it.
const QUICK: [&str; 36] = [
    "adaptation",
    "allocations",
    "art",
    "aspen",
    "asynchronous",
    "both_ends",
    "bw_multi_map",
    "bw_tree",
    "bw_tree_lies",
    "churn",
    "closures_that_call",
    "container_panics",
    "conversions",
    "derived_keys",
    "dishonest_bytes",
    "dishonest_heads",
    "documents",
    "drops_that_call",
    "effects",
    "files",
    "forms",
    "functions",
    "held_snapshot",
    "key_intervals",
    "keys",
    "lfca_tree",
    "like_btree_map",
    "lying_orders",
    "maps",
    "masstree",
    "reclamation",
    "serde",
    "shards",
    "skip_list",
    "steps",
    "tables",
];

/// Each kind of hostile code against each engine and container.
const HOSTILE: &str = "hostile";

/// The same against the engines that are there to be compared with: only in a deep run, since it
/// takes eight minutes to compile.
const HOSTILE_DEEP: &str = "hostile_deep";

/// How long one command of a deep run may take.
const DEEP_LIMIT: Duration = Duration::from_secs(12 * 60 * 60);

/// The tests of one step: each belongs to a crate.
pub(super) struct Targets<'w>(Vec<(&'w str, &'w str)>);

impl Targets<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes a cargo command run these tests, by their names alone: no other step may have tests of
    /// these names.
    ///
    /// With the whole workspace selected, its crates have the same features in every step, and are
    /// compiled once for all of them.
    fn select_by_name(&self, job: Job) -> Job {
        let mut names: Vec<&str> = self.0.iter().map(|(_, test)| *test).collect();
        names.sort_unstable();
        names.dedup();
        job.arg("--workspace")
            .args(names.into_iter().flat_map(|name| ["--test", name]))
    }

    /// Makes a cargo command run these tests, and compile no other crate.
    pub(super) fn select(&self, job: Job) -> Job {
        let selections = self
            .0
            .iter()
            .flat_map(|(package, test)| [["-p", package], ["--test", test]]);
        let mut seen: Vec<[&str; 2]> = Vec::new();
        for selection in selections {
            if !seen.contains(&selection) {
                seen.push(selection);
            }
        }
        job.args(seen.into_iter().flatten())
    }
}

/// The integration tests that the step of this name runs. Each of the `required` crates must
/// have one.
pub(super) fn targets<'w>(
    workspace: &'w Workspace,
    step: &str,
    required: &[&str],
    report: &mut Report,
) -> Targets<'w> {
    let all = workspace.packages.iter().flat_map(|package| {
        package
            .tests
            .iter()
            .map(|test| (package.name.as_str(), test.as_str()))
    });
    let targets: Vec<_> = all
        .filter(|(_, test)| steps_of(test).contains(&step))
        .filter(|(_, test)| workspace.deep || *test != HOSTILE_DEEP)
        .collect();
    for required in required {
        if !targets.iter().any(|(package, _)| package == required) {
            report.problem(format!(
                "{required} has no integration test for the step {step}"
            ));
        }
    }
    Targets(targets)
}

/// The steps that run an integration test: every test has at least one, so that none can be
/// forgotten.
fn steps_of(test: &str) -> &'static [&'static str] {
    match test {
        "loom" => &["loom"],
        "shuttle" => &["shuttle"],
        "sim" => &["sim"],
        "stress" => &["integration", "tsan", "asan"],
        // Whatever it finds without the sanitizer, it finds with it.
        HOSTILE | HOSTILE_DEEP => &["asan"],
        _ if test.starts_with("e2e_") => &["e2e"],
        _ => &["integration"],
    }
}

/// Runs the unit tests. They compile every crate without the features that no test needs, and so
/// show what the compiler has to say about that.
pub(super) fn unit(workspace: &Workspace, report: &mut Report) {
    let job = unoptimised(workspace, cargo_test(Flavour::Plain, workspace));
    let binaries = run(&job.args(["--workspace", "--lib", "--bins"]), report);
    some_test(&binaries, report);
    for warning in output::warned(&report.output) {
        report.problem(warning);
    }
}

pub(super) fn doctest(workspace: &Workspace, report: &mut Report) {
    // A test of `tremula` compares the examples of the crate of macros with code that it runs:
    // with `--doc`, cargo overlooks that its manifest says so.
    let crates = ["--workspace", "--exclude", "tremula-derive", "--doc"];
    let job = unoptimised(workspace, cargo_test(Flavour::Plain, workspace)).args(crates);
    let binaries = run(&job, report);
    some_test(&binaries, report);
}

/// Has this workspace's crates compiled without optimisation, where that takes longer than what it
/// saves. Their dependencies are compiled once, with it.
fn unoptimised(workspace: &Workspace, job: Job) -> Job {
    let packages = workspace.packages.iter();
    job.args(packages.flat_map(|package| {
        let setting = format!("profile.test.package.{}.opt-level=0", package.name);
        ["--config".to_owned(), setting]
    }))
}

pub(super) fn integration(workspace: &Workspace, report: &mut Report) {
    let required = [&CHECKED[..], &["tremula-lab", "tremula-check"]].concat();
    let all = targets(workspace, "integration", &required, report);
    let (quick, others) = all
        .0
        .into_iter()
        .partition(|(_, test)| QUICK.contains(test));
    let job = || cargo_test(Flavour::Plain, workspace);
    for (targets, job) in [
        (Targets(quick), unoptimised(workspace, job())),
        (Targets(others), job()),
    ] {
        run_all(&targets, targets.select_by_name(job), report);
    }
}

pub(super) fn e2e(workspace: &Workspace, report: &mut Report) {
    run_targets(
        "e2e",
        Flavour::Plain,
        &["tremula-cli", "tremula-lab"],
        &[],
        workspace,
        report,
    );
}

pub(super) fn tsan(workspace: &Workspace, report: &mut Report) {
    sanitize(Flavour::Tsan, workspace, report);
}

pub(super) fn asan(workspace: &Workspace, report: &mut Report) {
    sanitize(Flavour::Asan, workspace, report);
}

fn sanitize(flavour: Flavour, workspace: &Workspace, report: &mut Report) {
    // One test at a time: each starts threads enough.
    let harness = ["--test-threads=1"];
    run_targets(
        flavour.name(),
        flavour,
        &CHECKED,
        &harness,
        workspace,
        report,
    );
    let reports = output::sanitizer_reports(&report.output);
    if reports > 0 {
        report.problem(format!("the sanitizer made {reports} reports"));
    }
}

pub(super) fn loom(workspace: &Workspace, report: &mut Report) {
    explore(
        Flavour::Loom,
        ("models", "interleavings"),
        workspace,
        report,
    );
}

pub(super) fn shuttle(workspace: &Workspace, report: &mut Report) {
    explore(Flavour::Shuttle, ("tests", "schedules"), workspace, report);
}

pub(super) fn sim(workspace: &Workspace, report: &mut Report) {
    run_targets(
        Flavour::Sim.name(),
        Flavour::Sim,
        &SIMULATED,
        &[],
        workspace,
        report,
    );
    // The examples of what exists in the simulator only.
    let job = cargo_test(Flavour::Sim, workspace)
        .env("RUSTDOCFLAGS", Flavour::Sim.rustflags())
        .args(["--package", "tremula-sync", "--doc", "--", "primitives/sim"]);
    let binaries = run(&job, report);
    some_test(&binaries, report);
}

/// Runs a model checker's tests; only models that say that they completed count.
fn explore(
    flavour: Flavour,
    (models, runs): (&str, &str),
    workspace: &Workspace,
    report: &mut Report,
) {
    let harness = ["--nocapture"];
    let binaries = run_targets(
        flavour.name(),
        flavour,
        &CHECKED,
        &harness,
        workspace,
        report,
    );
    for doubt in binaries.iter().filter_map(output::doubt) {
        report.problem(doubt);
    }
    let completed = || binaries.iter().flat_map(|binary| &binary.completed);
    report.explored = format!(
        "{} {models}, {} {runs}",
        completed().count(),
        thousands(completed().map(|model| model.runs).sum())
    );
}

/// Runs the integration tests of a step.
fn run_targets(
    step: &str,
    flavour: Flavour,
    required: &[&str],
    harness: &[&str],
    workspace: &Workspace,
    report: &mut Report,
) -> Vec<Binary> {
    let targets = targets(workspace, step, required, report);
    if targets.is_empty() {
        return Vec::new();
    }
    let job = cargo_test(flavour, workspace);
    let job = match flavour {
        Flavour::Plain => targets.select_by_name(job),
        _ => targets.select(job),
    };
    let job = job.arg("--").args(harness.iter().copied());
    run_all(&targets, job, report)
}

/// Runs the command of these tests; every one of its binaries must run, and run a test.
fn run_all(targets: &Targets<'_>, job: Job, report: &mut Report) -> Vec<Binary> {
    if targets.is_empty() {
        return Vec::new();
    }
    let binaries = run(&job, report);
    if binaries.len() != targets.0.len() {
        let (ran, wanted) = (binaries.len(), targets.0.len());
        report.problem(format!("{ran} of {wanted} test binaries ran"));
    }
    for binary in &binaries {
        if binary.passed + binary.failed == 0 {
            report.problem(format!("{} ran no test", binary.name));
        }
    }
    binaries
}

fn cargo_test(flavour: Flavour, workspace: &Workspace) -> Job {
    let target = match flavour {
        Flavour::Plain => workspace.target.clone(),
        _ => workspace.target.join(flavour.name()),
    };
    let python = tools::venv_python(workspace);
    let job = flavour
        .cargo("test", &workspace.root, &target, &workspace.host)
        .env("TREMULA_PYTHON", python.to_string_lossy())
        .arg("--no-fail-fast");
    if workspace.deep {
        job.env("TREMULA_DEEP", "1").limit(DEEP_LIMIT)
    } else {
        job
    }
}

/// Runs a test command and counts its tests.
fn run(job: &Job, report: &mut Report) -> Vec<Binary> {
    let Some(ended) = report.run(job) else {
        return Vec::new();
    };
    let binaries = output::binaries(&ended.output);
    for binary in &binaries {
        report.passed += binary.passed;
        report.failed += binary.failed;
        report.skipped += binary.skipped;
    }
    binaries
}

/// Demands that a run over many crates, of which some may have no such test, ran a test.
fn some_test(binaries: &[Binary], report: &mut Report) {
    if binaries
        .iter()
        .all(|binary| binary.passed + binary.failed == 0)
    {
        report.problem("no test ran");
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::workspace::Package;
    use std::path::PathBuf;

    fn workspace(packages: &[(&str, &[&str])]) -> Workspace {
        let package = |&(name, tests): &(&str, &[&str])| Package {
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
            ..Package::named(name)
        };
        Workspace {
            root: PathBuf::new(),
            target: PathBuf::new(),
            host: String::new(),
            packages: packages.iter().map(package).collect(),
            deep: false,
        }
    }

    #[test]
    fn each_test_belongs_to_its_step() {
        let mut workspace = workspace(&[
            ("tremula-sync", &["loom", "sim", "stress", "locks"]),
            ("tremula-index", &["loom", "model", "hostile"]),
            ("tremula-papers", &["hostile_deep"]),
            ("tremula-lab", &["results"]),
            ("tremula-cli", &["e2e_server", "cli"]),
        ]);
        let of = |step| {
            let mut report = Report::default();
            targets(&workspace, step, &[], &mut report).0
        };
        assert_eq!(
            of("loom"),
            [("tremula-sync", "loom"), ("tremula-index", "loom")]
        );
        assert_eq!(of("sim"), [("tremula-sync", "sim")]);
        assert_eq!(of("tsan"), [("tremula-sync", "stress")]);
        assert_eq!(
            of("asan"),
            [("tremula-sync", "stress"), ("tremula-index", "hostile")]
        );
        assert_eq!(
            of("integration"),
            [
                ("tremula-sync", "stress"),
                ("tremula-sync", "locks"),
                ("tremula-index", "model"),
                ("tremula-lab", "results"),
                ("tremula-cli", "cli")
            ]
        );
        assert_eq!(of("e2e"), [("tremula-cli", "e2e_server")]);
        workspace.deep = true;
        let mut report = Report::default();
        let deep = targets(&workspace, "asan", &[], &mut report).0;
        assert!(deep.contains(&("tremula-papers", "hostile_deep")));
    }

    #[test]
    fn a_required_test_that_is_missing_is_a_problem() {
        let workspace = workspace(&[
            ("tremula-sync", &["loom"]),
            ("tremula-index", &["model"]),
            ("tremula-papers", &["loom"]),
            ("tremula-mailbox", &["loom"]),
            ("tremula-log", &["loom"]),
        ]);
        let mut report = Report::default();
        targets(&workspace, "loom", &CHECKED, &mut report);
        assert_eq!(
            report.problems(),
            ["tremula-index has no integration test for the step loom"]
        );
    }

    #[test]
    fn a_test_is_selected_once() {
        let targets = Targets(vec![("a", "loom"), ("b", "loom")]);
        let job = targets.select(Job::new("cargo", "/"));
        assert_eq!(job.told(), "cargo -p a --test loom -p b");
        let job = targets.select_by_name(Job::new("cargo", "/"));
        assert_eq!(job.told(), "cargo --workspace --test loom");
    }

    #[test]
    fn a_binary_without_a_test_is_a_problem() {
        let mut report = Report::default();
        let silent = "     Running unittests src/lib.rs (x)\n\ntest result: ok. 0 passed; 0 failed; \
                      0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let binaries = run(&Job::new("printf", "/").args(["%s", silent]), &mut report);
        assert_eq!(binaries.len(), 1);
        assert!(report.problems().is_empty());
        some_test(&binaries, &mut report);
        assert_eq!(report.problems(), ["no test ran"]);
    }
}
