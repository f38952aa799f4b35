//! What a step did.

use crate::job::{Ended, Job};

/// What a step did, gathered while it runs.
#[derive(Default)]
pub(crate) struct Report {
    /// The step's name.
    pub(crate) step: &'static str,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// What a model checker explored, in words.
    pub(crate) explored: String,
    /// All that its commands printed.
    pub(crate) output: String,
    problems: Vec<String>,
}

/// Whether a step passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
}

impl Report {
    pub(crate) fn of(step: &'static str) -> Self {
        Self {
            step,
            ..Self::default()
        }
    }

    /// Adds a reason why the step fails.
    pub(crate) fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(crate) fn outcome(&self) -> Outcome {
        if self.problems.is_empty() {
            Outcome::Passed
        } else {
            Outcome::Failed
        }
    }

    /// The failed tests; a failure that no test owns counts as one.
    pub(crate) fn failures(&self) -> u64 {
        self.failed
            .max(u64::from(self.outcome() == Outcome::Failed))
    }

    /// Runs a command, keeps what it prints, and makes its failure the step's.
    pub(crate) fn run(&mut self, job: &Job) -> Option<Ended> {
        self.output += &format!("$ {}\n", job.told());
        match job.run_for(self.step) {
            Ok(ended) => {
                self.output += &ended.output;
                if !ended.ending.success() {
                    self.problem(format!("`{}`: {}", job.told(), ended.ending));
                }
                Some(ended)
            }
            Err(error) => {
                self.problem(error);
                None
            }
        }
    }

    /// The counts in words, for the line that says that the step has ended.
    pub(crate) fn detail(&self) -> String {
        let mut detail = String::new();
        if self.passed + self.failed > 0 {
            detail += &format!(": {} tests passed, {} failed", self.passed, self.failed);
        }
        if !self.explored.is_empty() {
            detail += &format!("; {}", self.explored);
        }
        detail
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
        })
    }
}

/// A count with its thousands set apart.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_failure_that_no_test_owns_counts_as_one() {
        let mut report = Report {
            passed: 3,
            ..Report::default()
        };
        assert_eq!((report.outcome(), report.failures()), (Outcome::Passed, 0));
        report.problem("it crashed");
        assert_eq!((report.outcome(), report.failures()), (Outcome::Failed, 1));
        report.failed = 2;
        assert_eq!(report.failures(), 2);
    }

    #[test]
    fn a_command_that_fails_is_a_problem() {
        let mut report = Report::default();
        report.run(&Job::new("false", "/"));
        assert_eq!(report.problems().len(), 1);
    }

    #[test]
    fn thousands_are_set_apart() {
        let all = [0, 12, 123, 1234, 123_456, 1_234_567].map(thousands);
        assert_eq!(all, ["0", "12", "123", "1 234", "123 456", "1 234 567"]);
    }
}
