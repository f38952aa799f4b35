//! `tremula backup` and `tremula restore`: copies of what a server keeps.

use clap::Args;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;
use tremula_server::moment::Moment;
use tremula_store::{CopiedStore, CopyStoreError, Point, backup, restore};

/// Copy what a server keeps, while it runs or not.
#[derive(Args)]
pub(crate) struct Backup {
    /// The directory of the server: its --dir
    directory: PathBuf,
    /// Where to put the copy: a new directory, or an empty one
    target: PathBuf,
    /// Copy every snapshot and all of the log, so that the copy can be restored to any state that
    /// the directory can be
    #[arg(long)]
    history: bool,
}

/// Make a directory for `tremula serve --dir` from a backup, or from another directory.
#[derive(Args)]
pub(crate) struct Restore {
    /// The backup, or the directory of a server, which may run
    from: PathBuf,
    /// Where to put it: a new directory, or an empty one
    directory: PathBuf,
    /// The state to restore: the number of an effect, a time as 2026-01-31T12:00:00Z (or with an
    /// offset), or @ and seconds since 1970. What the log holds together stays together, so it may
    /// be the state a few milliseconds before [default: the last one]
    #[arg(long, value_name = "SEQUENCE|TIME")]
    to: Option<Moment>,
}

/// Copies, and says what the copy has.
pub(crate) fn run_backup(command: &Backup) -> ExitCode {
    let copied = backup(&command.directory, &command.target, command.history);
    report(copied, |copied| {
        println!(
            "{} is a backup of {}: {}, checked",
            command.target.display(),
            command.directory.display(),
            Shown(copied)
        );
        if command.history {
            println!(
                "it can be restored to sequence {} and later",
                copied.earliest
            );
        }
    })
}

/// Restores, and says what is there now.
pub(crate) fn run_restore(command: &Restore) -> ExitCode {
    let point = command.to.map_or(Point::End, |to| to.0);
    let copied = restore(&command.from, &command.directory, point);
    report(copied, |copied| {
        println!(
            "{} is {} as it was: {}, checked",
            command.directory.display(),
            command.from.display(),
            Shown(copied)
        );
        println!(
            "serve it with: tremula serve --dir {}",
            command.directory.display()
        );
    })
}

fn report(copied: Result<CopiedStore, CopyStoreError>, show: impl Fn(&CopiedStore)) -> ExitCode {
    match copied {
        Ok(copied) => {
            for damaged in &copied.damaged {
                eprintln!("warning: a newer snapshot is not used: {damaged}");
            }
            show(&copied);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a copy has, in words.
struct Shown<'a>(&'a CopiedStore);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copied = self.0;
        write!(out, "up to sequence {}", copied.last)?;
        if let Some(written) = copied.written {
            write!(out, ", written {}", shown(written))?;
        }
        write!(out, ", {} bytes", copied.bytes)
    }
}

/// A time as `--to` takes it.
pub(crate) fn shown(time: SystemTime) -> impl fmt::Display {
    humantime::format_rfc3339_micros(time)
}
