//! Scripts of clients in other languages, which talk to the servers of a test.

use super::{PATIENCE, root};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

/// Runs a script to its end. It prints "passed" at last. `answer` does what a line asks for, and
/// returns the line that the script then waits for; other lines are shown.
pub(crate) fn passes(command: &mut Command, mut answer: impl FnMut(&str) -> Option<&'static str>) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut answers = child.stdin.take().expect("its input is piped");
    let output = BufReader::new(child.stdout.take().expect("its output is piped"));
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut lines = output.lines().map_while(Result::ok);
        lines.try_for_each(|line| sender.send(line))
    });
    let mut has_passed = false;
    while let Ok(line) = lines.recv_timeout(4 * PATIENCE) {
        if line == "passed" {
            has_passed = true;
        } else if let Some(answer) = answer(&line) {
            writeln!(answers, "{answer}").expect("the script reads");
        } else {
            println!("{line}");
        }
    }
    if !has_passed {
        let _ = child.kill();
    }
    let status = child.wait().expect("its status");
    let _ = reader.join().expect("its output is read");
    assert!(has_passed && status.success(), "{command:?}: {status}");
}

/// The path of a script.
pub(crate) fn script(name: &str) -> PathBuf {
    root().join("crates/cli/tests/clients").join(name)
}

/// The interpreter with the client: `TREMULA_PYTHON`, or the one under `target/venv`.
pub(crate) fn python() -> PathBuf {
    let python = std::env::var_os("TREMULA_PYTHON")
        .map_or_else(|| root().join("target/venv/bin/python"), PathBuf::from);
    let has_client = Command::new(&python)
        .args(["-c", "import redis, django"])
        .output()
        .is_ok_and(|output| output.status.success());
    assert!(
        has_client,
        "{} is no Python with the packages `redis` and `django`. Run `cargo xtask test`, which makes one, or\n  \
         python3 -m venv target/venv && target/venv/bin/pip install redis django\n\
         or name another with TREMULA_PYTHON.",
        python.display()
    );
    python
}

/// Node.js with the clients that `cargo xtask test` installs.
pub(crate) fn node(name: &str) -> Command {
    let modules = root().join("target/node/node_modules");
    assert!(
        modules.join("ioredis").is_dir() && modules.join("redis").is_dir(),
        "{} has no clients. Run `cargo xtask test`, which installs them.",
        modules.display()
    );
    let mut command = Command::new("node");
    command
        .env("NODE_PATH", modules)
        .arg(script("node").join(name));
    command
}

/// The script that drives a browser over the page, with the packages that `cargo xtask test`
/// installs. Its pictures go to `target/xtask/page`.
pub(crate) fn browser() -> Command {
    let modules = root().join("target/page/node_modules");
    assert!(
        modules.join("playwright-core").is_dir() && modules.join("axe-core").is_dir(),
        "{} has no playwright-core and axe-core. Run `cargo xtask test`, which installs them.",
        modules.display()
    );
    let mut command = Command::new("node");
    command
        .env("NODE_PATH", modules)
        .arg(root().join("crates/cli/tests/page/page.mjs"))
        .arg("--shots")
        .arg(root().join("target/xtask/page"));
    command
}

/// The program in Go.
pub(crate) fn go() -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(script("go"))
        .args(["run", "-mod=readonly", "."]);
    command
}
