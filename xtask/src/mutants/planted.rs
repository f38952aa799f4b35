//! Planting a bug in a copy of the workspace and watching its checker.

use super::list::{Checker, Mutant, Target};
use crate::flavour::Flavour;
use crate::job::{Ended, Ending, Job};
use crate::output;
use crate::tools;
use crate::workspace::Workspace;
use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a checker may take; a bug that shows by hanging shows by then.
const LIMIT: Duration = Duration::from_secs(300);

/// A copy of the workspace to plant bugs in.
pub(super) struct Tree {
    root: PathBuf,
    /// Holds a build directory for each way of building, which lasts from run to run.
    target: PathBuf,
    host: String,
    python: PathBuf,
    /// The server of NATS that tests start.
    nats: PathBuf,
}

/// What a checker made of a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It failed, in this way.
    Caught(String),
    /// It did not end in time.
    Hung,
    /// It passed.
    Missed,
    /// The bug or its checker does not compile, or the checker has no test.
    Unusable(String),
}

impl Tree {
    /// Copies what git knows or would track.
    pub(super) fn copy(workspace: &Workspace) -> Result<Self, String> {
        let target = workspace.target.join("mutants");
        let root = target.join("tree");
        let copy = || -> std::io::Result<()> {
            if root.exists() {
                fs::remove_dir_all(&root)?;
            }
            fs::create_dir_all(&root)
        };
        copy().map_err(|error| format!("{}: {error}", root.display()))?;
        for file in workspace.files()? {
            let to = root.join(&file);
            to.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::copy(workspace.root.join(&file), &to))
                .map_err(|error| format!("{}: {error}", to.display()))?;
        }
        let python = tools::venv_python(workspace);
        let nats = tools::nats_server(workspace);
        Ok(Self {
            root,
            target,
            host: workspace.host.clone(),
            python,
            nats,
        })
    }

    /// Plants a bug, runs its checker, and takes the bug out again.
    pub(super) fn plant(&self, mutant: &Mutant) -> Result<Verdict, String> {
        let file = self.root.join(mutant.file);
        let write = |text: &str| {
            fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
        };
        let (original, mutated) = mutant.replace(&self.root)?;
        write(&mutated)?;
        let verdict = self.check(&mutant.checker);
        write(&original)?;
        verdict
    }

    /// Runs a checker on the copy as it is now.
    pub(super) fn check(&self, checker: &Checker) -> Result<Verdict, String> {
        let job = self.cargo_test(checker);
        let built = job.clone().arg("--no-run").run()?;
        if !built.ending.success() {
            println!("{}", built.output);
            return Ok(Verdict::Unusable("it does not compile".to_owned()));
        }
        let job = job
            .arg("--")
            .args((!checker.filter.is_empty()).then_some(checker.filter));
        let job = match checker.flavour {
            Flavour::Loom | Flavour::Shuttle => job.arg("--nocapture"),
            Flavour::Tsan | Flavour::Asan => job.arg("--test-threads=1"),
            Flavour::Plain | Flavour::Sim | Flavour::Fuzz => job,
        };
        let job = job.limit(LIMIT);
        Ok(judge(&job.run()?))
    }

    fn cargo_test(&self, checker: &Checker) -> Job {
        let target = self.target.join(checker.flavour.name());
        let job = checker
            .flavour
            .cargo("test", &self.root, &target, &self.host)
            .env("TREMULA_PYTHON", self.python.to_string_lossy())
            .env("TREMULA_NATS", self.nats.to_string_lossy())
            // One function differs from build to build.
            .env("CARGO_INCREMENTAL", "1")
            .args(["--no-fail-fast", "-p", checker.package]);
        // All schedules of a test: an ordinary run has fewer.
        let job = match checker.flavour {
            Flavour::Shuttle => job.env("TREMULA_DEEP", "1"),
            _ => job,
        };
        match checker.target {
            Target::Lib => job.arg("--lib"),
            Target::Bins => job.arg("--bins"),
            Target::Test(name) => job.args(["--test", name]),
        }
    }
}

/// What a run of a checker shows.
fn judge(ended: &Ended) -> Verdict {
    let Ending::Exited(status) = ended.ending else {
        return Verdict::Hung;
    };
    let binaries = output::binaries(&ended.output);
    let count = |count: fn(&output::Binary) -> u64| binaries.iter().map(count).sum::<u64>();
    let (passed, failed) = (count(|binary| binary.passed), count(|binary| binary.failed));
    let reports = output::sanitizer_reports(&ended.output);
    if failed > 0 {
        return Verdict::Caught(format!("{failed} tests failed"));
    }
    if reports > 0 {
        return Verdict::Caught(format!("{reports} sanitizer reports"));
    }
    if status.success() {
        return match passed {
            0 => Verdict::Unusable("the checker ran no test".to_owned()),
            _ => Verdict::Missed,
        };
    }
    // It compiled, and still failed without a test's result: the test binary crashed.
    let how = status
        .signal()
        .map_or_else(|| status.to_string(), |signal| format!("signal {signal}"));
    Verdict::Caught(format!("the test crashed, {how}"))
}

impl Mutant {
    /// The file's text under `root` without and with the bug.
    pub(super) fn replace(&self, root: &Path) -> Result<(String, String), String> {
        let file = root.join(self.file);
        let text = fs::read_to_string(&file)
            .map_err(|error| format!("{}: planted bug {}: {error}", self.file, self.name))?;
        match text.matches(self.original).count() {
            1 => {
                let mutated = text.replace(self.original, self.replacement);
                Ok((text, mutated))
            }
            times => Err(format!(
                "{}: planted bug {}: its original text is there {times} times, not once",
                self.file, self.name
            )),
        }
    }
}

impl Verdict {
    /// Whether the checker bit, in the way that the list expects.
    pub(super) fn proves(&self, mutant: &Mutant) -> bool {
        match self {
            Self::Caught(_) => true,
            Self::Hung => mutant.hangs,
            Self::Missed | Self::Unusable(_) => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught(how) => write!(out, "caught: {how}"),
            Self::Hung => write!(out, "hung for {} s", LIMIT.as_secs()),
            Self::Missed => out.write_str("passed"),
            Self::Unusable(why) => write!(out, "unusable: {}", why.lines().next().unwrap_or(why)),
        }
    }
}

impl fmt::Display for Checker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match self.target {
            Target::Lib => "unit",
            Target::Bins => "unit (programs)",
            Target::Test(name) => name,
        };
        write!(out, "{} {} {target}", self.flavour.name(), self.package)?;
        if self.filter.is_empty() {
            Ok(())
        } else {
            write!(out, " {}", self.filter)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;

    fn judged(code: i32, output: &str) -> Verdict {
        let ending = Ending::Exited(ExitStatus::from_raw(code << 8));
        judge(&Ended {
            output: output.to_owned(),
            ending,
        })
    }

    fn results(passed: u64, failed: u64) -> String {
        format!(
            "     Running tests/loom.rs (target/x)\ntest result: some. {passed} passed; {failed} \
             failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n"
        )
    }

    #[test]
    fn failed_tests_reports_and_crashes_catch_a_bug() {
        let caught = |how: &str| Verdict::Caught(how.to_owned());
        assert_eq!(judged(101, &results(1, 2)), caught("2 tests failed"));
        let report = format!("{}WARNING: ThreadSanitizer: data race\n", results(1, 0));
        assert_eq!(judged(66, &report), caught("1 sanitizer reports"));
        let crash = "     Running tests/loom.rs (target/x)\n";
        assert_eq!(
            judged(101, crash),
            caught("the test crashed, exit status: 101")
        );
    }

    #[test]
    fn passing_misses_a_bug_and_running_nothing_proves_nothing() {
        assert_eq!(judged(0, &results(2, 0)), Verdict::Missed);
        assert!(matches!(judged(0, &results(0, 0)), Verdict::Unusable(_)));
    }

    #[test]
    fn hanging_catches_only_a_bug_that_is_said_to_hang() {
        let ended = Ended {
            output: String::new(),
            ending: Ending::TimedOut(LIMIT),
        };
        assert_eq!(judge(&ended), Verdict::Hung);
        let mut mutant = Mutant {
            name: "a",
            file: "a",
            original: "a",
            replacement: "b",
            why: "a",
            checker: super::super::list::all().next().unwrap().checker,
            hangs: false,
        };
        assert!(!Verdict::Hung.proves(&mutant));
        mutant.hangs = true;
        assert!(Verdict::Hung.proves(&mutant));
    }
}
