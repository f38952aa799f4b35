//! `tremula log`: looks into the directory of a log that no server has open.

use crate::backup::shown;
use clap::Subcommand;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tremula_log::inspect::{self, Report};
use tremula_log::{Entry, OpenError, ReadError, Sequence};

/// The exit code for a log that is damaged.
const DAMAGED: u8 = 1;

/// The exit code for a directory that cannot be looked into.
const FAILED: u8 = 2;

/// What to do with a log.
#[derive(Subcommand)]
pub(crate) enum Log {
    /// Check every byte of a log: exits with 0 if it is whole, 1 if it is damaged, 2 if it cannot
    /// be read. Changes nothing.
    Check {
        /// The log's directory
        directory: PathBuf,
    },
    /// Print the batches of a log, up to its end or its damage. Changes nothing.
    Dump {
        /// The log's directory
        directory: PathBuf,
        /// Begin with the batch that has this record
        #[arg(long, value_name = "SEQUENCE", default_value_t = 1)]
        from: u64,
        /// Print no more batches than this [default: all]
        #[arg(long, value_name = "BATCHES")]
        limit: Option<u64>,
        /// Print no more bytes of each record than this
        #[arg(long, value_name = "BYTES", default_value_t = 80)]
        bytes: usize,
    },
    /// Cut a damaged log behind its last whole batch, so that it opens again. The files as they
    /// were are kept in the folder damaged.N of the directory.
    Repair {
        /// The log's directory
        directory: PathBuf,
    },
}

/// Does it, and prints what there is to say.
pub(crate) fn run(command: Log) -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let result = match command {
        Log::Check { directory } => inspect::check(&directory)
            .map_err(Failure::from)
            .and_then(|report| check(&report, &mut out)),
        Log::Dump {
            directory,
            from,
            limit,
            bytes,
        } => inspect::entries(&directory)
            .map_err(Failure::from)
            .and_then(|entries| {
                let limit = limit.unwrap_or(u64::MAX);
                dump(entries, Sequence::new(from), limit, bytes, &mut out)
            }),
        Log::Repair { directory } => inspect::repair(&directory)
            .map_err(Failure::from)
            .and_then(|repaired| repair(repaired.as_ref(), &mut out)),
    };
    let result = result.and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match result {
        Ok(code) => code,
        // The reader of the output has seen enough.
        Err(Failure::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

enum Failure {
    Open(OpenError),
    Read(ReadError),
    Print(io::Error),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Open(OpenError::Damaged(_)) | Self::Read(ReadError::Damaged(_)) => DAMAGED,
            _ => FAILED,
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Print(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(out),
            Self::Read(error) => error.fmt(out),
            Self::Print(error) => write!(out, "cannot print: {error}"),
        }
    }
}

fn check(report: &Report, out: &mut impl Write) -> Result<ExitCode, Failure> {
    for segment in &report.segments {
        writeln!(
            out,
            "{}: from sequence {} up to {}, {} in {}, {}",
            segment.path.display(),
            segment.first,
            segment.tail.next.before(),
            counted(segment.batches, "batch", "batches"),
            counted(segment.frames, "frame", "frames"),
            counted(segment.bytes, "byte", "bytes"),
        )?;
    }
    if let Some(damage) = &report.damage {
        writeln!(out, "damaged: {damage}")?;
        writeln!(
            out,
            "whole before that: up to where it goes on at {}",
            report.tail()
        )?;
        return Ok(ExitCode::from(DAMAGED));
    }
    if report.segments.is_empty() {
        writeln!(out, "there is no log yet")?;
        return Ok(ExitCode::SUCCESS);
    }
    if report.rest > 0 {
        let rest = counted(report.rest, "byte", "bytes");
        writeln!(
            out,
            "{rest} behind the last batch: a torn write, or an earlier use of the file; \
             the next open clears them"
        )?;
    }
    let closed = if report.was_closed {
        "closed"
    } else {
        "not closed"
    };
    writeln!(out, "whole, and {closed}: goes on at {}", report.tail())?;
    Ok(ExitCode::SUCCESS)
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn dump(
    entries: impl Iterator<Item = Result<Entry, ReadError>>,
    from: Sequence,
    limit: u64,
    bytes: usize,
    out: &mut impl Write,
) -> Result<ExitCode, Failure> {
    let mut left = limit;
    for entry in entries {
        let entry = entry.map_err(Failure::Read)?;
        if entry.last() < from {
            continue;
        }
        if left == 0 {
            break;
        }
        left -= 1;
        write!(
            out,
            "batch {}..={} chain {}",
            entry.first(),
            entry.last(),
            entry.chain()
        )?;
        match entry.written() {
            Some(written) => writeln!(out, " written {}", shown(written))?,
            None => writeln!(out)?,
        }
        for (index, record) in (0..).zip(entry.records()) {
            let shown = &record[..record.len().min(bytes)];
            let more = if shown.len() < record.len() {
                "..."
            } else {
                ""
            };
            writeln!(
                out,
                "  {} {} \"{}\"{more}",
                entry.first().plus(index),
                counted(record.len() as u64, "byte", "bytes"),
                shown.escape_ascii()
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn repair(repaired: Option<&inspect::Repaired>, out: &mut impl Write) -> Result<ExitCode, Failure> {
    let Some(repaired) = repaired else {
        writeln!(out, "nothing to repair: the log is whole")?;
        return Ok(ExitCode::SUCCESS);
    };
    let damage = &repaired.damage;
    writeln!(
        out,
        "{} was damaged at offset {}: {}",
        damage.path.display(),
        damage.offset,
        damage.what
    )?;
    writeln!(out, "the log was cut, and goes on at {}", repaired.tail)?;
    writeln!(
        out,
        "as they were, in {}: {}",
        repaired.backup.display(),
        repaired.files.join(", ")
    )?;
    Ok(ExitCode::SUCCESS)
}
