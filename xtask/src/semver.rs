//! Whether programs that compile with an earlier revision of the library's crates still do:
//! `cargo xtask semver`.

use crate::job::Job;
use crate::workspace::{Package, Workspace};

/// The library, the crates that it re-exports, and those that are useful alone.
/// `tremula-derive` is not among them: the tool cannot look into macros.
const PUBLIC: [&str; 8] = [
    "tremula",
    "tremula-index",
    "tremula-log",
    "tremula-mailbox",
    "tremula-papers",
    "tremula-shard",
    "tremula-sync",
    "tremula-table",
];

/// How to install the program that compares. A newer Rust needs a newer version of it.
const INSTALL: &str = "cargo install --locked cargo-semver-checks";

/// What to compare with.
#[derive(clap::Args)]
pub(crate) struct SemverArgs {
    /// The revision that users have: a tag, a branch or a commit
    #[arg(long, value_name = "REVISION")]
    since: String,
    /// Compare only these crates
    #[arg(long, value_name = "CRATE", value_delimiter = ',')]
    only: Vec<String>,
}

/// Compares each public crate with itself at a revision. `Ok(true)` if all that compiled with the
/// revision still compiles, as far as the tool can tell.
pub(crate) fn command(workspace: &Workspace, arguments: &SemverArgs) -> Result<bool, String> {
    let revision = arguments.since.as_str();
    let commit = format!("{revision}^{{commit}}");
    workspace
        .git(&["rev-parse", "--verify", &commit])
        .map_err(|why| format!("'{revision}' is no revision of this repository: {why}"))?;
    let installed = Job::new("cargo", &workspace.root).args(["semver-checks", "--version"]);
    if !installed.run().is_ok_and(|ended| ended.ending.success()) {
        return Err(format!(
            "`cargo semver-checks` is missing; install it: {INSTALL}"
        ));
    }
    let mut compatible = true;
    for package in chosen(workspace, &arguments.only)? {
        compatible &= compare(workspace, package, revision)?;
    }
    Ok(compatible)
}

/// The packages of the public crates named in `only`; of all of them if none is named.
fn chosen<'w>(workspace: &'w Workspace, only: &[String]) -> Result<Vec<&'w Package>, String> {
    if let Some(unknown) = only.iter().find(|name| !PUBLIC.contains(&name.as_str())) {
        let names = PUBLIC.join(" ");
        return Err(format!(
            "'{unknown}' is no public crate; there are: {names}"
        ));
    }
    let is_chosen = |name: &str| only.is_empty() || only.iter().any(|chosen| chosen == name);
    let packages = workspace.packages.iter();
    Ok(packages
        .filter(|package| PUBLIC.contains(&package.name.as_str()) && is_chosen(&package.name))
        .collect())
}

/// Whether the crate is compatible with itself at `revision`; prints which, and why not.
fn compare(workspace: &Workspace, package: &Package, revision: &str) -> Result<bool, String> {
    let name = &package.name;
    let folder = package.folder.strip_prefix(&workspace.root);
    let folder = folder.map_err(|_| format!("{name} lies outside the workspace"))?;
    let manifest = format!("{revision}:{}/Cargo.toml", folder.display());
    if workspace.git(&["cat-file", "-e", &manifest]).is_err() {
        println!("{name}: new since {revision}");
        return Ok(true);
    }
    // As if the next release was a compatible one, whatever version the manifest has by now.
    let job = Job::new("cargo", &workspace.root)
        .args(["semver-checks", "--package", name])
        .args(["--baseline-rev", revision, "--release-type", "minor"]);
    let ended = job.run()?;
    if ended.ending.success() {
        println!("{name}: compatible with {revision}");
        return Ok(true);
    }
    println!("{}\n{name}: not compatible with {revision}", ended.output);
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_public_crate_is_published() {
        let workspace = Workspace::load().unwrap();
        let published = |name: &&str| {
            let mut packages = workspace.packages.iter();
            packages.any(|package| package.name == *name && package.is_published)
        };
        assert!(PUBLIC.iter().all(published));
    }

    #[test]
    fn a_crate_that_is_not_public_is_refused_by_name() {
        let workspace = Workspace::load().unwrap();
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            let packages = chosen(&workspace, &only)?;
            Ok::<_, String>(
                packages
                    .iter()
                    .map(|package| package.name.as_str())
                    .collect(),
            )
        };
        let index: Vec<&str> = names(&["tremula-index"]).unwrap();
        assert_eq!(index, ["tremula-index"]);
        assert_eq!(names(&[]).unwrap().len(), PUBLIC.len());
        assert!(names(&["xtask"]).unwrap_err().contains("'xtask'"));
    }
}
