//! Reading what `cargo test` and the checkers print.

/// What one test binary (or one crate's doc tests) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Binary {
    /// As cargo names it: `tests/loom.rs`, `unittests src/lib.rs`, `Doc-tests tremula_index`.
    pub(crate) name: String,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// What the model checkers completed in it.
    pub(crate) completed: Vec<Completed>,
}

/// A model that a checker explored to its end, as the line
/// `loom model NAME: completed N interleavings` or `shuttle test NAME: completed N schedules`
/// says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    pub(crate) model: String,
    pub(crate) runs: u64,
}

/// How the two checkers begin and end their lines.
const COMPLETED_LINES: [(&str, &str); 2] = [
    ("loom model ", " interleavings"),
    ("shuttle test ", " schedules"),
];

/// What a sanitizer's report begins with.
const SANITIZER_REPORTS: [&str; 3] = [
    "WARNING: ThreadSanitizer:",
    "ERROR: AddressSanitizer",
    "ERROR: LeakSanitizer",
];

/// Where the compiler has warned of something in this workspace: cargo counts it, crate by crate.
pub(crate) fn warned(output: &str) -> Vec<String> {
    let counts = |line: &&str| line.starts_with("warning: `") && line.contains(" generated ");
    output.lines().filter(counts).map(str::to_owned).collect()
}

/// The test binaries that an output of `cargo test` names, in order.
pub(crate) fn binaries(output: &str) -> Vec<Binary> {
    let mut binaries: Vec<Binary> = Vec::new();
    for line in output.lines() {
        if let Some(name) = started(line) {
            binaries.push(Binary {
                name: name.to_owned(),
                ..Binary::default()
            });
        }
        let Some(binary) = binaries.last_mut() else {
            continue;
        };
        if let Some((passed, failed, skipped)) = result(line) {
            // Doc tests may print more than one result.
            binary.passed += passed;
            binary.failed += failed;
            binary.skipped += skipped;
        }
        binary.completed.extend(completed(line));
    }
    binaries
}

/// The name in `     Running tests/model.rs (target/…)` or `   Doc-tests tremula_index`.
fn started(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("     Running ") {
        return Some(rest.split_once(" (").map_or(rest, |(name, _)| name));
    }
    line.starts_with("   Doc-tests ").then(|| line.trim_start())
}

/// The counts in `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn result(line: &str) -> Option<(u64, u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |what: &str| {
        counts
            .split("; ")
            .find_map(|count| count.strip_suffix(what))
            .and_then(|number| number.trim().parse().ok())
    };
    Some((count(" passed")?, count(" failed")?, count(" ignored")?))
}

/// The model and the count in a checker's line, wherever in the line it begins: the test
/// harness may have begun it with the test's name.
fn completed(line: &str) -> Option<Completed> {
    COMPLETED_LINES.iter().find_map(|(begin, end)| {
        let rest = &line[line.find(begin)? + begin.len()..];
        let (model, runs) = rest.split_once(": completed ")?;
        let runs = runs.trim_end().strip_suffix(end)?.parse().ok()?;
        Some(Completed {
            model: model.to_owned(),
            runs,
        })
    })
}

/// How many reports of a sanitizer there are.
pub(crate) fn sanitizer_reports(output: &str) -> usize {
    let is_report = |line: &&str| SANITIZER_REPORTS.iter().any(|begin| line.contains(begin));
    output.lines().filter(is_report).count()
}

/// Why a binary that a checker ran proves less than it claims, if so.
///
/// Each test must have said that its model was explored to the end, and in more than one
/// order: a single one means that nothing that is shared goes through the checker.
pub(crate) fn doubt(binary: &Binary) -> Option<String> {
    let mut models: Vec<&str> = binary.completed.iter().map(|one| &*one.model).collect();
    models.sort_unstable();
    models.dedup();
    if (models.len() as u64) < binary.passed {
        return Some(format!(
            "{}: {} tests passed but only {} models say that they completed",
            binary.name,
            binary.passed,
            models.len(),
        ));
    }
    let single = binary.completed.iter().find(|one| one.runs < 2)?;
    Some(format!(
        "{}: the model {} completed only {}",
        binary.name, single.model, single.runs
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
   Compiling tremula-sync v0.1.0
    Finished `test` profile [optimized] target(s) in 1.00s
     Running tests/loom.rs (target/loom/debug/deps/loom-1234)

running 2 tests
test counter ... loom model counter: completed 120 interleavings
ok
loom model lock: completed 7 interleavings
test lock ... ok

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s

     Running unittests src/lib.rs (target/debug/deps/tremula-1234)

running 1 test
test odd ... FAILED

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests tremula_index

test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.20s

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.20s
";

    #[test]
    fn warnings_of_the_compiler_are_counted_by_crate() {
        let output = "warning: unused import: `a`\n --> crates/lab/src/lib.rs:1:5\n\n\
            warning: `tremula-lab` (lib) generated 1 warning (run `cargo fix --lib`)\n\
            test a_warning_is_generated ... ok\n";
        let warned = warned(output);
        assert_eq!(warned.len(), 1);
        assert!(warned[0].starts_with("warning: `tremula-lab` (lib) generated 1"));
    }

    #[test]
    fn each_binary_has_its_own_counts() {
        let binaries = binaries(OUTPUT);
        let counts: Vec<_> = binaries
            .iter()
            .map(|one| {
                (
                    &*one.name,
                    one.passed,
                    one.failed,
                    one.skipped,
                    one.completed.len(),
                )
            })
            .collect();
        assert_eq!(
            counts,
            [
                ("tests/loom.rs", 2, 0, 1, 2),
                ("unittests src/lib.rs", 0, 1, 0, 0),
                ("Doc-tests tremula_index", 5, 0, 0, 0),
            ]
        );
    }

    #[test]
    fn a_completed_model_is_read_wherever_its_line_begins() {
        let model = |model: &str, runs| {
            Some(Completed {
                model: model.to_owned(),
                runs,
            })
        };
        assert_eq!(
            completed("loom model a_b: completed 12 interleavings"),
            model("a_b", 12)
        );
        assert_eq!(
            completed("test x ... shuttle test x: completed 500 schedules"),
            model("x", 500)
        );
        assert_eq!(completed("loom model a_b: completed 12 schedules"), None);
        assert_eq!(
            completed("loom model a_b: gave up after 12 interleavings"),
            None
        );
        assert_eq!(
            completed("loom model a_b: completed many interleavings"),
            None
        );
    }

    fn checked(passed: u64, completed: &[(&str, u64)]) -> Binary {
        let completed = completed.iter().map(|(model, runs)| Completed {
            model: (*model).to_owned(),
            runs: *runs,
        });
        Binary {
            passed,
            completed: completed.collect(),
            ..Binary::default()
        }
    }

    #[test]
    fn a_test_without_a_completed_model_is_doubted() {
        assert_eq!(doubt(&checked(2, &[("a", 10), ("b", 2)])), None);
        assert_eq!(doubt(&checked(1, &[("a", 10), ("b", 2)])), None);
        assert!(doubt(&checked(2, &[("a", 10)])).is_some());
        assert!(doubt(&checked(2, &[("a", 10), ("a", 10)])).is_some());
        assert!(doubt(&checked(1, &[])).is_some());
    }

    #[test]
    fn a_model_with_a_single_interleaving_is_doubted() {
        assert!(doubt(&checked(1, &[("a", 1)])).is_some());
        assert!(doubt(&checked(1, &[("a", 0)])).is_some());
    }

    #[test]
    fn reports_of_sanitizers_are_counted() {
        let output = "fine\nWARNING: ThreadSanitizer: data race (pid=1)\n\
                      ==1==ERROR: AddressSanitizer: heap-use-after-free\n\
                      ==1==ERROR: LeakSanitizer: detected memory leaks\n";
        assert_eq!(sanitizer_reports(output), 3);
        assert_eq!(sanitizer_reports("test race ... ok\n"), 0);
    }
}
