//! `tremula generate`: manual pages and completions, made of the definitions of the flags. Packages
//! call it, so no page is kept that could be older than its program.

use clap::{Command, Subcommand};
use clap_complete::Shell;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write manual pages or completions.
#[derive(Subcommand)]
pub(crate) enum Generate {
    /// Write a manual page for each command into a directory.
    Man {
        /// The directory, which is made if it is missing
        directory: PathBuf,
    },
    /// Print the completions of a shell.
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Writes what was asked for. `command` is the whole command line.
pub(crate) fn run(what: &Generate, command: &Command) -> ExitCode {
    let written = match what {
        Generate::Man { directory } => {
            man(command, directory).map_err(|error| format!("{}: {error}", directory.display()))
        }
        Generate::Completions { shell } => {
            completions(*shell, command).map_err(|error| format!("cannot print: {error}"))
        }
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn man(command: &Command, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command.clone(), directory)
}

fn completions(shell: Shell, command: &Command) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command.clone(), "tremula", &mut script);
    io::stdout().write_all(&script)
}
