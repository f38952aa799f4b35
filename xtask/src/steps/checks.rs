//! The steps that run no test: they read the sources.

use super::report::Report;
use super::tests::{CHECKED, SIMULATED, targets};
use crate::flavour::Flavour;
use crate::tidy as house_rules;
use crate::workspace::Workspace;
use std::path::PathBuf;

pub(super) fn fmt(workspace: &Workspace, report: &mut Report) {
    report.run(&plain("fmt", workspace).args(["--all", "--check"]));
}

pub(super) fn tidy(workspace: &Workspace, report: &mut Report) {
    match house_rules::broken(workspace) {
        Ok(broken) => broken.into_iter().for_each(|rule| report.problem(rule)),
        Err(error) => report.problem(error),
    }
}

/// The crates that take their primitives from `tremula-sync` and have no model of their own.
const SHARING: [&str; 3] = ["tremula-shard", "tremula-store", "tremula-table"];

pub(super) fn clippy(workspace: &Workspace, report: &mut Report) {
    let strict = ["--", "-D", "warnings"];
    // With the lab's rivals, which nothing else compiles. What the compiler says without them, the
    // steps that run tests report.
    report.run(
        &plain("clippy", workspace)
            .args(["--workspace", "--features", "tremula-lab/rivals"])
            .arg("--all-targets")
            .args(strict),
    );
    for flavour in [Flavour::Loom, Flavour::Shuttle, Flavour::Sim] {
        let target = workspace.target.join(flavour.name());
        let required = match flavour {
            Flavour::Sim => &SIMULATED[..],
            _ => &CHECKED[..],
        };
        let chosen = targets(workspace, flavour.name(), required, report);
        if chosen.is_empty() {
            continue;
        }
        let job = flavour.cargo("clippy", &workspace.root, &target, &workspace.host);
        let mut job = chosen.select(job.arg("--lib"));
        if flavour == Flavour::Shuttle {
            // No model runs these whole, but models must be able to reach what they share. (Under
            // loom, tokio leaves out its network.)
            job = job.args(SHARING.iter().flat_map(|package| ["--package", *package]));
        }
        report.run(&job.args(strict));
    }
}

pub(super) fn doc(workspace: &Workspace, report: &mut Report) {
    let job = plain("doc", workspace).args(["--workspace", "--no-deps"]);
    report.run(&job.env("RUSTDOCFLAGS", "-D warnings"));
}

fn plain(subcommand: &str, workspace: &Workspace) -> crate::job::Job {
    Flavour::Plain.cargo(
        subcommand,
        &workspace.root,
        &checked(workspace),
        &workspace.host,
    )
}

/// The build directory of what is only checked, which has nothing in common with what is built to
/// run, and so need not wait for that.
pub(super) fn checked(workspace: &Workspace) -> PathBuf {
    workspace.target.join("check")
}
