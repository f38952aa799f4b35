//! `--load`: fills a database from a file before the server serves.

mod columns;
mod rows;

use crate::huge_pages;
pub(crate) use columns::Columns;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use thiserror::Error;
use tremula_store::Store;
use tremula_store::{Key, Value};
use tremula_sync::counting_allocator::used_bytes;

/// Bytes read from the file at once, enough for many lines in one system call.
const READ_SIZE: usize = 256 << 10;

/// Flags that say what to load.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Loading")]
pub struct LoadArgs {
    /// File of keys and values to load into database 0 before serving
    #[arg(long = "load", value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Its format [default: by its extension]
    #[arg(long = "load-format", value_name = "FORMAT", requires = "file")]
    pub format: Option<Format>,

    /// Column of the key, by number from 1 or by name [default: 1; in JSON lines: key]
    #[arg(long = "load-key", value_name = "COLUMN", requires = "file")]
    pub key: Option<String>,

    /// Column of the value, by number from 1 or by name [default: all but the key]
    #[arg(long = "load-value", value_name = "COLUMN", requires = "file")]
    pub value: Option<String>,

    /// The first line holds the names of the columns; so it does when one is named
    #[arg(long = "load-header", requires = "file")]
    pub header: bool,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Columns between tabs, without quotes
    Tsv,
    /// Columns between commas, with quotes where needed (RFC 4180)
    Csv,
    /// One JSON object a line
    Jsonl,
}

impl Format {
    /// The format that a file's extension names.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "tab" => Some(Self::Tsv),
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

/// Why a file could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Neither the extension nor a flag gives the format.
    #[error(
        "cannot tell the format of {} by its extension; say --load-format tsv, csv or jsonl",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The limit of memory is too low for the file.
    #[error("{}: only {count} rows fit within the limit of memory, {limit} bytes; raise --max-memory", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The rows that fit.
        count: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A line is malformed.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and in which column or byte.
        what: String,
    },
}

/// The error of a row reader. [`load`] adds the file's name.
pub(crate) enum RowError {
    Read(io::Error),
    Line {
        line: u64,
        what: String,
    },
    /// There is no memory for the row.
    Full,
}

impl RowError {
    fn line(line: u64, what: impl Into<String>) -> Self {
        Self::Line {
            line,
            what: what.into(),
        }
    }
}

impl From<io::Error> for RowError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// Loads the file that the flags name, if any. Shows the progress on standard error if that is a
/// terminal. If a key comes twice, the later value replaces the earlier.
///
/// # Errors
///
/// [`LoadError`], with the number of the bad line.
pub(crate) fn load(
    arguments: &LoadArgs,
    keyspace: &Store,
    max_memory: Option<u64>,
) -> Result<(), LoadError> {
    let Some(path) = &arguments.file else {
        return Ok(());
    };
    let format = arguments
        .format
        .or_else(|| Format::of(path))
        .ok_or_else(|| LoadError::UnknownFormat { path: path.clone() })?;
    let limit = max_memory.unwrap_or(u64::MAX);
    let failure = |error, count| match error {
        RowError::Read(source) => LoadError::Read {
            path: path.clone(),
            source,
        },
        RowError::Line { line, what } => LoadError::Line {
            path: path.clone(),
            line,
            what,
        },
        RowError::Full => LoadError::Memory {
            path: path.clone(),
            count,
            limit,
        },
    };
    let file = File::open(path).map_err(|error| failure(error.into(), 0))?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = progress_bar(bytes);
    let reader = BufReader::with_capacity(READ_SIZE, bar.wrap_read(file));
    let columns = Columns::new(arguments.key.as_deref(), arguments.value.as_deref());
    let mut count = 0_u64;
    let mut store = |key: &[u8], value: &[u8]| {
        let bytes = key.len().saturating_add(value.len()) as u64;
        if used_bytes().saturating_add(bytes) > limit {
            return Err(RowError::Full);
        }
        let (key, value) = (Key::from(key), Value::from(value));
        let database = keyspace.database(0);
        let stored = keyspace.commit(|effects| database.insert(effects, key, value));
        stored.map_err(io::Error::other)?;
        count += 1;
        huge_pages::fit();
        Ok(())
    };
    let loaded = read(reader, format, &columns, arguments.header, &mut store);
    bar.finish_and_clear();
    loaded.map_err(|error| failure(error, count))?;
    eprintln!("loaded {count} rows from {}", path.display());
    Ok(())
}

/// Reads rows, and stores the key and the value of each.
pub(crate) fn read(
    reader: impl BufRead,
    format: Format,
    columns: &Columns,
    has_header: bool,
    store: &mut rows::Store<'_>,
) -> Result<(), RowError> {
    match format {
        Format::Tsv => rows::tsv(reader, columns, has_header, store),
        Format::Csv => rows::csv(reader, columns, has_header, store),
        Format::Jsonl => rows::jsonl(reader, columns, store),
    }
}

fn progress_bar(bytes: u64) -> ProgressBar {
    let template = "loading {bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta} left";
    let bar = ProgressBar::new(bytes);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
