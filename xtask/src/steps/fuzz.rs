//! The step that checks, with inputs that libFuzzer makes, what must hold for any input.

use super::report::{Report, thousands};
use crate::flavour::Flavour;
use crate::job::Job;
use crate::workspace::Workspace;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long a target runs: enough to see that it does.
const USUALLY: Duration = Duration::from_secs(10);

/// How long a target runs in a deep run.
const DEEP: Duration = Duration::from_secs(10 * 60);

/// How long a target may take to read its inputs, to end, and to make an input that fails smaller.
const GRACE: Duration = Duration::from_secs(5 * 60);

/// Bytes of an input. Short ones run more often, and show what went wrong.
const LONGEST_INPUT: &str = "-max_len=600";

/// Mebibytes that a target may use; it holds a few hundred, mostly of its inputs.
const MEMORY: &str = "-rss_limit_mb=2048";

/// Seconds for one input. The slowest takes a few hundredths.
const TIMEOUT: &str = "-timeout=20";

/// Builds the targets, and runs each for a while, with the inputs that are kept and with those that
/// an earlier run has made.
pub(super) fn fuzz(workspace: &Workspace, report: &mut Report) {
    let folder = workspace.root.join("fuzz");
    let targets = match targets(&folder) {
        Ok(targets) => targets,
        Err(problem) => return report.problem(problem),
    };
    let target = workspace.target.join(Flavour::Fuzz.name());
    let build = Flavour::Fuzz.cargo("build", &folder, &target, &workspace.host);
    let built = report.run(&build.args(["--release", "--locked"]));
    if !built.is_some_and(|ended| ended.ending.success()) {
        return;
    }
    let programs = target.join(&workspace.host).join("release");
    let time = if workspace.deep { DEEP } else { USUALLY };
    let mut inputs = 0;
    for name in &targets {
        let (made, found) = (
            target.join("corpus").join(name),
            target.join("found").join(name),
        );
        if let Err(error) = fs::create_dir_all(&made).and_then(|()| fs::create_dir_all(&found)) {
            return report.problem(format!("{}: {error}", made.display()));
        }
        let program = programs.join(name);
        let job = Job::new(&program.to_string_lossy(), &workspace.root)
            .limit(time + GRACE)
            .arg(made.to_string_lossy())
            .arg(folder.join("corpus").join(name).to_string_lossy())
            .arg(format!("-max_total_time={}", time.as_secs()))
            .arg(format!("-artifact_prefix={}/", found.display()))
            .args([LONGEST_INPUT, MEMORY, TIMEOUT, "-print_final_stats=1"]);
        let Some(ended) = report.run(&job) else {
            return;
        };
        inputs += number_of_inputs(&ended.output);
        if ended.ending.success() {
            report.passed += 1;
            continue;
        }
        report.failed += 1;
        if let Some(input) = failed_input(&ended.output) {
            report.problem(format!(
                "{name} fails with the input {input}\nTo see it again: {} {input}\n\
                 Once it is mended, keep the input in fuzz/corpus/{name}",
                program.display()
            ));
        }
    }
    report.explored = format!("{} inputs", thousands(inputs));
}

/// The names of the targets. Each must have inputs that are kept.
fn targets(folder: &Path) -> Result<Vec<String>, String> {
    let programs = folder.join("src/bin");
    let failed = |error: std::io::Error| format!("{}: {error}", programs.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&programs).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        names.extend(
            path.file_stem()
                .map(|name| name.to_string_lossy().into_owned()),
        );
    }
    names.sort();
    for name in &names {
        let corpus = folder.join("corpus").join(name);
        if fs::read_dir(&corpus).map_or(0, Iterator::count) == 0 {
            return Err(format!("{} has no inputs", corpus.display()));
        }
    }
    Ok(names)
}

/// The file in which libFuzzer has left the input that fails.
fn failed_input(output: &str) -> Option<&str> {
    let written = output
        .lines()
        .rfind(|line| line.contains("Test unit written to "))?;
    Some(written.split_once("Test unit written to ")?.1)
}

fn number_of_inputs(output: &str) -> u64 {
    let lines = output.lines();
    lines
        .filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .filter_map(|number| number.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn every_target_has_inputs_that_are_kept_and_no_others_are() {
        let folder = Workspace::load().unwrap().root.join("fuzz");
        let names = targets(&folder).unwrap();
        assert!(names.len() > 1);
        let kept = fs::read_dir(folder.join("corpus")).unwrap();
        let mut kept: Vec<_> = kept
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        kept.sort();
        assert_eq!(kept, names);
    }

    #[test]
    fn an_input_that_fails_is_found() {
        let output = "==1== ERROR: libFuzzer: deadly signal\n\
            artifact_prefix='/t/found/'; Test unit written to /t/found/crash-1\n\
            Base64: Kio=\nstat::number_of_executed_units: 1234\n";
        assert_eq!(failed_input(output), Some("/t/found/crash-1"));
        assert_eq!(number_of_inputs(output), 1234);
        assert_eq!(failed_input("Done 5 runs in 1 second(s)\n"), None);
    }
}
