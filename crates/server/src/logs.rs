//! The log: what it says, how, and where.

use clap::ValueEnum;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// How often a log looks whether its file has been moved away.
const LOOK: Duration = Duration::from_secs(1);

/// The least serious events that are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// What the server could not do.
    Error,
    /// And what an operator should know.
    Warn,
    /// And what the server does.
    Info,
    /// And what happens to each client.
    Debug,
    /// And everything else.
    Trace,
}

impl Level {
    fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        out.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Time, level, part of the program, and text.
    Text,
    /// The same as an object of JSON.
    Json,
}

/// The flags of the log.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Log")]
pub struct LogArgs {
    /// Least serious events that are logged; read again from the file of settings on SIGHUP
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "warn",
        hide_possible_values = false
    )]
    pub log_level: Level,

    /// Form of a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: Format,

    /// File that the log is appended to; made anew when it has been moved away [default: none, the
    /// standard error]
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

/// The log cannot be written.
#[derive(Debug, Error)]
#[error("cannot open the log {}: {source}", path.display())]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

/// The level of the log, and what changes it once the log has begun.
static LEVEL: Mutex<Level> = Mutex::new(Level::Warn);
static HANDLE: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

/// The least serious events that are logged.
pub(crate) fn level() -> Level {
    *LEVEL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the level of the process's log.
pub(crate) fn set_level(level: Level) {
    *LEVEL.lock().unwrap_or_else(PoisonError::into_inner) = level;
    if let Some(handle) = HANDLE.get() {
        // Fails if the program has a log of its own, whose level is its own.
        let _ = handle.reload(level.filter());
    }
}

/// The level with this name.
pub(crate) fn parse_level(name: &str) -> Result<Level, String> {
    Level::from_str(name, true)
}

/// Begins the log. If the program has one of its own, that one is used.
///
/// # Errors
///
/// [`LogError`] if the file cannot be opened.
pub(crate) fn begin(arguments: &LogArgs) -> Result<(), LogError> {
    let (level, handle) = reload::Layer::new(arguments.log_level.filter());
    let (writer, is_terminal) = match &arguments.log_file {
        Some(path) => (Output::File(LogFile::open(path)?), false),
        None => (Output::Errors, io::stderr().is_terminal()),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(is_terminal);
    let lines = match arguments.log_format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().boxed(),
    };
    // The client of NATS logs each try to connect; a group says itself, and seldom, why it fails.
    let lines = lines.with_filter(filter_fn(|event| !event.target().starts_with("async_nats")));
    // Fails if the program has a log of its own.
    let _ = tracing_subscriber::registry()
        .with(level)
        .with(lines)
        .try_init();
    // Fails if a server of this process has begun before; the log is the first one's.
    let _ = HANDLE.set(handle);
    set_level(arguments.log_level);
    Ok(())
}

/// Where lines go.
enum Output {
    Errors,
    File(LogFile),
}

impl<'a> MakeWriter<'a> for Output {
    type Writer = Writer<'a>;

    fn make_writer(&'a self) -> Writer<'a> {
        match self {
            Self::Errors => Writer::Errors(io::stderr()),
            Self::File(file) => Writer::File(file.current()),
        }
    }
}

enum Writer<'a> {
    Errors(io::Stderr),
    File(MutexGuard<'a, Open>),
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Errors(out) => out.write(bytes),
            Self::File(open) => open.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Errors(out) => out.flush(),
            Self::File(open) => open.file.flush(),
        }
    }
}

/// A log in a file. Programs that rotate logs move the file away, or cut it: it is opened for
/// appending, and made anew when another or none has its name.
struct LogFile {
    path: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    looked: Instant,
}

impl LogFile {
    fn open(path: &Path) -> Result<Self, LogError> {
        let file = append(path).map_err(|source| LogError {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            open: Mutex::new(Open {
                file,
                looked: Instant::now(),
            }),
        })
    }

    /// The file with this log's name.
    fn current(&self) -> MutexGuard<'_, Open> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.looked.elapsed() >= LOOK {
            open.looked = Instant::now();
            // If no file can be made, the one so far goes on.
            if !is_at(&open.file, &self.path)
                && let Ok(file) = append(&self.path)
            {
                open.file = file;
            }
        }
        open
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Whether a path leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_goes_on_in_a_new_file_when_its_file_is_moved_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        fs::write(&path, "before\n").expect("written");
        let log = LogFile::open(&path).expect("a log");
        let say = |line: &str| writeln!(log.current().file, "{line}").expect("written");
        say("one");
        fs::rename(&path, &old).expect("moved");
        say("two");
        // The time passes.
        if let Some(earlier) = Instant::now().checked_sub(LOOK) {
            log.current().looked = earlier;
        }
        say("three");
        let text = |path| fs::read_to_string(path).expect("read");
        assert_eq!(text(&old), "before\none\ntwo\n");
        assert_eq!(text(&path), "three\n");
        assert!(LogFile::open(&folder.path().join("no/log")).is_err());
    }
}
