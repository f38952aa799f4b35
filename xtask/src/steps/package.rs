//! The step that packages every crate as it is published, and builds the library and the command
//! from the packages alone: what lies outside of them is missing then.

use super::checks::checked;
use super::report::Report;
use crate::flavour::Flavour;
use crate::job::Job;
use crate::workspace::{Package, Workspace};
use std::fs;
use std::path::Path;

/// What every package must have in it.
const NEEDED: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// What no package may contain, as the beginning of a path: only this repository's tests read it.
const KEPT_OUT: [&str; 3] = ["tests/", "results/", "benches/"];

/// What is built of the packages: the library without and with its features, and the command.
const BUILT: [&[&str]; 3] = [
    &["-p", "tremula"],
    &["-p", "tremula", "--all-features"],
    &["-p", "tremula-cli"],
];

pub(super) fn package(workspace: &Workspace, report: &mut Report) {
    let published: Vec<&Package> = workspace
        .packages
        .iter()
        .filter(|package| package.is_published)
        .collect();
    let folder = workspace.target.join("packages");
    if let Err(error) = fresh(&folder) {
        return report.problem(format!("{}: {error}", folder.display()));
    }
    let job = Job::new("cargo", &workspace.root)
        .env("CARGO_TARGET_DIR", folder.to_string_lossy())
        .env("CARGO_TERM_COLOR", "never")
        .args([
            "package",
            "--no-verify",
            "--allow-dirty",
            "--exclude-lockfile",
        ])
        .args(published.iter().flat_map(|package| ["-p", &package.name]));
    if !succeeds(&job, report) {
        return;
    }
    let tree = folder.join("tree");
    let unpacked = fresh(&tree)
        .and_then(|()| fs::copy(workspace.root.join("Cargo.lock"), tree.join("Cargo.lock")))
        .and_then(|_| fs::write(tree.join("Cargo.toml"), manifest(&published)));
    if let Err(error) = unpacked {
        return report.problem(format!("{}: {error}", tree.display()));
    }
    for package in &published {
        let archive = folder.join("package").join(package.full_name() + ".crate");
        // -m: with the present time, by which cargo sees changes; an archive's times never change.
        let job = Job::new("tar", &tree).args(["-xzmf", &archive.to_string_lossy()]);
        if succeeds(&job, report) {
            let unpacked = tree.join(package.full_name());
            misplaced(&package.name, &unpacked)
                .into_iter()
                .for_each(|problem| report.problem(problem));
        }
    }
    for built in BUILT {
        let job = Flavour::Plain.cargo("check", &tree, &checked(workspace), &workspace.host);
        report.run(&job.args(built.iter().copied()));
    }
}

/// Makes the folder, without what an earlier run has left there.
fn fresh(folder: &Path) -> std::io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

fn succeeds(job: &Job, report: &mut Report) -> bool {
    report.run(job).is_some_and(|ended| ended.ending.success())
}

/// A workspace of the unpacked packages, in which they take each other for what they depend on.
fn manifest(packages: &[&Package]) -> String {
    let members: String = packages
        .iter()
        .map(|package| format!("    \"{}\",\n", package.full_name()))
        .collect();
    let patches: String = packages
        .iter()
        .map(|package| {
            format!(
                "{} = {{ path = \"{}\" }}\n",
                package.name,
                package.full_name()
            )
        })
        .collect();
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n\n[patch.crates-io]\n{patches}"
    )
}

/// What an unpacked package lacks, and what does not belong into it.
fn misplaced(name: &str, folder: &Path) -> Vec<String> {
    let lacks = NEEDED
        .iter()
        .filter(|file| !folder.join(file).is_file())
        .map(|file| format!("the package {name} lacks {file}"));
    let has = KEPT_OUT
        .iter()
        .filter(|part| folder.join(part).exists())
        .map(|part| format!("the package {name} has {part} in it"));
    lacks.chain(has).collect()
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn packages_take_each_other() {
        let package = |name: &str| Package::named(name);
        let (a, b) = (package("a"), package("b"));
        assert_eq!(
            manifest(&[&a, &b]),
            "[workspace]\nresolver = \"3\"\nmembers = [\n    \"a-1.0.0\",\n    \"b-1.0.0\",\n]\n\n\
             [patch.crates-io]\na = { path = \"a-1.0.0\" }\nb = { path = \"b-1.0.0\" }\n"
        );
    }

    #[test]
    fn a_package_without_its_licence_or_with_results_is_a_problem() {
        let folder = std::env::temp_dir().join(format!("xtask-package-{}", std::process::id()));
        fresh(&folder.join("results")).unwrap();
        for file in ["README.md", "LICENSE-MIT"] {
            fs::write(folder.join(file), "").unwrap();
        }
        assert_eq!(
            misplaced("a", &folder),
            [
                "the package a lacks LICENSE-APACHE",
                "the package a has results/ in it"
            ]
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
