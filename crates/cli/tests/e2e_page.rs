//! The page in a real browser: over a server with made-up figures, which has a day of them, ten
//! thousand leaves, and an engine without a walk.

mod support;

use std::process::Command;
use support::scripts::{self, browser};
use support::{root, run};

/// Runs Node.js in the folder of the page's sources.
fn node(arguments: &[&str]) {
    let mut command = Command::new("node");
    command
        .current_dir(root().join("crates/observe/page"))
        .args(arguments);
    let output = run(&mut command, b"");
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_built_files_are_those_of_the_sources() {
    node(&["build.mjs", "--check"]);
}

#[test]
fn the_modules_pass_their_tests() {
    node(&["--test", "modules.test.mjs"]);
}

#[test]
fn the_page_shows_made_up_figures() {
    scripts::passes(browser().arg("--mock"), |_| None);
}
