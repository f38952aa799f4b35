//! Chores of the workspace: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask mutants`,
//! `cargo xtask dist`, `cargo xtask semver`, `cargo xtask lines`.

#![forbid(unsafe_code)]

mod dist;
mod flavour;
mod job;
mod lines;
mod mutants;
mod output;
mod semver;
mod steps;
mod table;
mod tidy;
mod tools;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use workspace::Workspace;

/// Chores of the Tremula workspace.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every check and every test, in order, and print a table of what ran.
    Test(steps::TestArgs),
    /// Check the house rules that the compiler does not know.
    Tidy,
    /// Plant known bugs, one at a time, and demand that the checker named for each catches it.
    Mutants(mutants::MutantsArgs),
    /// Compare the library's crates with an earlier revision: do programs that compile with it
    /// still compile?
    Semver(semver::SemverArgs),
    /// Make the packages that are shipped: an archive, a package of Debian, an image for
    /// containers, with checksums and a list of components.
    Dist(dist::DistArgs),
    /// Count the lines of each crate's source, and demand that the product stays within its limit.
    Lines,
}

fn main() -> ExitCode {
    let chore = Cli::parse().chore;
    let passed = job::stop_jobs_on_signals()
        .and_then(|()| Workspace::load())
        .and_then(|workspace| match chore {
            Chore::Test(arguments) => {
                let deep = arguments.deep;
                steps::test(&Workspace { deep, ..workspace }, &arguments)
            }
            Chore::Tidy => tidy::command(&workspace),
            Chore::Mutants(arguments) => mutants::command(&workspace, &arguments),
            Chore::Semver(arguments) => semver::command(&workspace, &arguments),
            Chore::Dist(arguments) => dist::command(&workspace, &arguments),
            Chore::Lines => lines::command(&workspace),
        });
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
