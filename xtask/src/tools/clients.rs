//! The Redis clients of the end-to-end tests in other languages, and what drives a browser over the
//! page, in the versions that the files beside their scripts pin (`crates/cli/tests/clients/` and
//! `crates/cli/tests/page/`).

use super::{attempt, works};
use crate::job::Job;
use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest Node.js that these run with, by its first number.
const NODE: u32 = 20;

/// The files that pin JavaScript packages.
const PINNED: [&str; 2] = ["package.json", "package-lock.json"];

fn scripts(workspace: &Workspace, language: &str) -> PathBuf {
    workspace
        .root
        .join("crates/cli/tests/clients")
        .join(language)
}

/// Installs the JavaScript clients in `target/node`.
pub(super) fn node(workspace: &Workspace, log: &mut String) -> Result<(), String> {
    let (from, to) = (scripts(workspace, "node"), workspace.target.join("node"));
    modules("the JavaScript clients", &from, &to, log)
}

/// Installs what drives a browser in `target/page`.
pub(super) fn browser(workspace: &Workspace, log: &mut String) -> Result<(), String> {
    let from = workspace.root.join("crates/cli/tests/page");
    let to = workspace.target.join("page");
    modules("what drives a browser", &from, &to, log)
}

/// Installs the packages that the files in a folder pin into another folder.
fn modules(what: &str, from: &Path, to: &Path, log: &mut String) -> Result<(), String> {
    let is_new_enough = format!("process.exit(parseInt(process.versions.node) < {NODE} ? 1 : 0)");
    if !works(&Job::new("node", "/").args(["-e", &is_new_enough])) {
        return Err(format!(
            "{what} needs Node.js {NODE} or later; `node` is older.\nInstall it from Debian 13, or \
             from Node's own packages"
        ));
    }
    let is_installed = PINNED.iter().all(|file| {
        let (wanted, there) = (fs::read(from.join(file)), fs::read(to.join(file)));
        matches!((wanted, there), (Ok(wanted), Ok(there)) if wanted == there)
    });
    // npm writes this last.
    if is_installed && to.join("node_modules/.package-lock.json").is_file() {
        return Ok(());
    }
    let copied = fs::create_dir_all(to).and_then(|()| {
        PINNED
            .iter()
            .try_for_each(|file| fs::copy(from.join(file), to.join(file)).map(drop))
    });
    copied.map_err(|error| format!("{}: {error}", to.display()))?;
    let install = Job::new("npm", to).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    attempt(&install, log).map_err(|why| {
        format!(
            "{what} could not be installed ({why}).\nInstall by hand: cd {} && {}",
            to.display(),
            install.told()
        )
    })
}

/// Downloads and compiles the Go client, so that `go run` finds it in Go's cache.
pub(super) fn go(workspace: &Workspace, log: &mut String) -> Result<(), String> {
    let build = Job::new("go", scripts(workspace, "go"))
        .args(["build", "-mod=readonly", "-o"])
        .args([
            workspace.target.join("go-redis").to_string_lossy(),
            ".".into(),
        ]);
    attempt(&build, log).map_err(|why| {
        format!(
            "the Go client could not be built ({why}). go.mod beside it says which Go it needs; an older \
             one fetches that itself, if it may.\nTry: cd crates/cli/tests/clients/go && {}",
            build.told()
        )
    })
}
