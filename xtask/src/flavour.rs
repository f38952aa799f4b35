//! The ways in which the same code is built: as it ships, under a model checker, in the simulator,
//! under a sanitizer. Each has a build directory of its own, so that none throws away another's
//! cache.

use crate::job::Job;
use std::path::Path;

/// One way of building.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flavour {
    /// As it ships.
    Plain,
    /// Under loom: every interleaving of small models.
    Loom,
    /// Under shuttle: random schedules of larger tests.
    Shuttle,
    /// In the simulator: virtual cores in virtual time.
    Sim,
    /// Under ThreadSanitizer: data races in what really runs.
    Tsan,
    /// Under AddressSanitizer: use after free, overflows, leaks.
    Asan,
    /// For libFuzzer, and under AddressSanitizer: the branches that an input takes are counted, and
    /// what it is compared with is seen.
    Fuzz,
}

/// What would let a model end early and still look complete.
const CUTS_LOOM_SHORT: [&str; 4] = [
    "LOOM_MAX_DURATION",
    "LOOM_MAX_PERMUTATIONS",
    "LOOM_MAX_PREEMPTIONS",
    "LOOM_CHECKPOINT_FILE",
];

impl Flavour {
    /// The name, as a step and a folder under the build directory have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Loom => "loom",
            Self::Shuttle => "shuttle",
            Self::Sim => "sim",
            Self::Tsan => "tsan",
            Self::Asan => "asan",
            Self::Fuzz => "fuzz",
        }
    }

    pub(crate) fn rustflags(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Loom => "--cfg loom",
            Self::Shuttle => "--cfg shuttle",
            Self::Sim => "--cfg sim",
            Self::Tsan => {
                "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg tremula_tsan"
            }
            Self::Asan => "-Zsanitizer=address",
            Self::Fuzz => {
                "-Zsanitizer=address --cfg fuzzing -Cpasses=sancov-module \
                 -Cllvm-args=-sanitizer-coverage-level=4 \
                 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                 -Cllvm-args=-sanitizer-coverage-pc-table \
                 -Cllvm-args=-sanitizer-coverage-trace-compares \
                 -Cllvm-args=-simplifycfg-branch-fold-threshold=0"
            }
        }
    }

    pub(crate) fn needs_nightly(self) -> bool {
        matches!(self, Self::Tsan | Self::Asan | Self::Fuzz)
    }

    /// `cargo SUBCOMMAND` in this way of building, in the workspace at `root`, with `target`
    /// as its build directory.
    pub(crate) fn cargo(self, subcommand: &str, root: &Path, target: &Path, host: &str) -> Job {
        let mut job = Job::new("cargo", root)
            .args(self.needs_nightly().then_some("+nightly"))
            .arg(subcommand)
            .env("CARGO_TARGET_DIR", target.to_string_lossy())
            .env("CARGO_TERM_COLOR", "never")
            .without_env("CARGO_ENCODED_RUSTFLAGS");
        if self.needs_nightly() {
            // With a target named, build scripts and macros stay free of the sanitizer. Its reports
            // name lines.
            job = job
                .args(["--target", host])
                .env("CARGO_PROFILE_TEST_DEBUG", "line-tables-only");
        }
        if self != Self::Plain {
            let given = std::env::var("RUSTFLAGS").unwrap_or_default();
            job = job.env("RUSTFLAGS", format!("{given} {}", self.rustflags()).trim());
        }
        match self {
            Self::Loom => CUTS_LOOM_SHORT.into_iter().fold(job, Job::without_env),
            Self::Tsan => {
                let suppressions = root.join("xtask/tsan.supp");
                job.env(
                    "TSAN_OPTIONS",
                    format!("suppressions={}", suppressions.display()),
                )
            }
            Self::Plain | Self::Shuttle | Self::Sim | Self::Asan | Self::Fuzz => job,
        }
    }
}
