//! Passes the compiler version, the build profile and the commit to the lab, which writes them into
//! its records.

use std::{env, path::Path, process::Command};

/// The profile that published figures are measured with.
const MEASURE: &str = "measure";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = env::var_os("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler).arg("--version").output();
    let output = output.expect("the compiler starts");
    let version = String::from_utf8_lossy(&output.stdout);
    println!("cargo:rustc-env=TREMULA_LAB_RUSTC={}", version.trim());

    // `OUT_DIR` is `target/PROFILE/build/PACKAGE/out`. The variable `PROFILE` names only the
    // profile that a custom one inherits from.
    let out = env::var_os("OUT_DIR").expect("cargo names the folder");
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    // Figures of other profiles mean little, and those builds need not be repeated for each commit.
    if env::var_os("PROFILE").is_some_and(|profile| profile == "release")
        && let Some(commit) = commit()
    {
        println!("cargo:rustc-env=TREMULA_LAB_COMMIT={commit}");
    }
    println!("cargo:rustc-check-cfg=cfg(measure)");
    if profile.is_some_and(|profile| profile == MEASURE) {
        println!("cargo:rustc-cfg=measure");
    }
}

/// The commit being built, with a `+` appended if files differ from it; `None` outside this
/// project's repository, as in a package from a registry.
fn commit() -> Option<String> {
    if git(&["rev-parse", "--show-prefix"])? != "crates/lab/" {
        return None;
    }
    println!("cargo:rerun-if-changed=..");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() {
        commit
    } else {
        commit + "+"
    })
}

/// The output of a git command; `None` if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let answer = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| answer.trim().to_owned())
}
