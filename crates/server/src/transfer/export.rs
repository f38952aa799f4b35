//! Keys and values as lines.

use super::TransferError;
use super::import::open;
use super::redis::{Address, Client};
use super::reply::Reply;
use crate::load::Format;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use tremula_store::DATABASES;

/// Keys that are asked for at once.
const AT_ONCE: &str = "1000";

/// Export keys and values, a line each, sorted by key if they come from a directory.
///
/// Tsv has the key, a tab, the value: keys and values with tabs, ends of lines, or a carriage
/// return at their end are refused. Csv quotes what must be quoted. Jsonl has objects with the
/// members key and value; bytes that are no text (UTF-8) are refused. `tremula serve --load` reads
/// all of these again. None has the times at which keys expire: use `tremula backup` for these.
#[derive(clap::Args, Clone, Debug)]
pub struct ExportArgs {
    /// The directory of a server that does not run
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub directory: Option<PathBuf>,

    /// A server: redis://HOST, redis://HOST:PORT or redis://USER:PASSWORD@HOST:PORT. Keys that are
    /// written meanwhile may be missing, or come twice
    #[arg(long, value_name = "URL", value_parser = |text: &str| text.parse::<Address>())]
    pub from: Option<Address>,

    /// The format
    #[arg(long, value_name = "FORMAT")]
    pub format: Format,

    /// The database, 0 to 15
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..DATABASES as i64))]
    pub database: u8,

    /// Where to write [default: the standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Exports, and says on `errors` how much, and what was not.
///
/// # Errors
///
/// [`TransferError`]. What was written before stays.
pub fn export(
    arguments: &ExportArgs,
    out: &mut impl Write,
    errors: &mut impl Write,
) -> Result<(), TransferError> {
    let Some(path) = &arguments.output else {
        return write(arguments, out, errors);
    };
    let failed = |source| TransferError::File {
        path: path.clone(),
        source,
    };
    let file = File::create_new(path).map_err(failed)?;
    let mut file = BufWriter::new(file);
    write(arguments, &mut file, errors)?;
    let file = file
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)
}

fn write(
    arguments: &ExportArgs,
    out: &mut impl Write,
    errors: &mut impl Write,
) -> Result<(), TransferError> {
    let mut lines = Lines {
        format: arguments.format,
        out,
        count: 0,
    };
    let mut others = BTreeMap::new();
    match (&arguments.directory, &arguments.from) {
        (Some(directory), _) => {
            // Opening makes what is missing.
            let log = directory.join(tremula_store::LOG_FOLDER);
            if !log.is_dir() {
                return Err(TransferError::File {
                    path: log,
                    source: io::ErrorKind::NotFound.into(),
                });
            }
            let store = open(directory)?;
            let map = store.map::<Vec<u8>, Vec<u8>>(arguments.database.into());
            for entry in &map {
                let (key, value) = entry?;
                lines.write(&key, &value)?;
            }
        }
        (None, Some(address)) => from_server(arguments, address, &mut lines, &mut others)?,
        (None, None) => unreachable!("the command line has one of them"),
    }
    lines.out.flush().map_err(TransferError::Output)?;
    let mut report = || {
        writeln!(errors, "exported {} keys", lines.count)?;
        for (kind, count) in &others {
            writeln!(errors, "not exported: {count} keys of the type {kind}")?;
        }
        Ok(())
    };
    report().map_err(TransferError::Output)
}

fn from_server<W: Write>(
    arguments: &ExportArgs,
    address: &Address,
    lines: &mut Lines<'_, W>,
    others: &mut BTreeMap<String, u64>,
) -> Result<(), TransferError> {
    let mut client = Client::connect(address)?;
    client.call(&["SELECT", &arguments.database.to_string()])?;
    let mut cursor = b"0".to_vec();
    loop {
        let page = client.call(&[&b"SCAN"[..], &cursor, b"COUNT", AT_ONCE.as_bytes()])?;
        let (next, keys) = match page {
            Reply::Many(parts) => match <[Reply; 2]>::try_from(parts) {
                Ok([Reply::Text(next), Reply::Many(keys)]) => (next, keys),
                _ => return Err(client.wrong("no page of keys")),
            },
            _ => return Err(client.wrong("no page of keys")),
        };
        let keys: Vec<Vec<u8>> = keys
            .into_iter()
            .filter_map(|key| match key {
                Reply::Text(key) => Some(key),
                _ => None,
            })
            .collect();
        for key in &keys {
            client.send(&[&b"GET"[..], key])?;
        }
        let mut of_other_types = Vec::new();
        for key in keys {
            match client.reply()? {
                Reply::Text(value) => lines.write(&key, &value)?,
                // It was removed meanwhile.
                Reply::Nothing => {}
                Reply::Error(text) if text.starts_with("WRONGTYPE") => of_other_types.push(key),
                other => return Err(client.wrong(format!("GET: {other:?}"))),
            }
        }
        for key in of_other_types {
            if let Reply::Line(kind) = client.call(&[&b"TYPE"[..], &key])? {
                *others.entry(kind).or_default() += 1;
            }
        }
        if next == b"0" {
            return Ok(());
        }
        cursor = next;
    }
}

struct Lines<'a, W> {
    format: Format,
    out: &'a mut W,
    count: u64,
}

impl<W: Write> Lines<'_, W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), TransferError> {
        let line = self.line(key, value);
        let line = line.map_err(|what| {
            let shown = key[..key.len().min(80)].escape_ascii();
            let error = io::Error::other(format!("the key \"{shown}\" {what}"));
            TransferError::Output(error)
        })?;
        self.count += 1;
        self.out.write_all(&line).map_err(TransferError::Output)
    }

    fn line(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>, &'static str> {
        match self.format {
            Format::Tsv => {
                let breaks =
                    |text: &[u8], bytes: &[u8]| text.iter().any(|byte| bytes.contains(byte));
                if breaks(key, b"\t\n") || breaks(value, b"\n") || value.ends_with(b"\r") {
                    return Err("or its value cannot stand in a line of tsv; use csv");
                }
                Ok([key, b"\t", value, b"\n"].concat())
            }
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(Vec::new());
                let written = writer.write_record([key, value]);
                written.map_err(|_| "does not fit into csv")?;
                writer.into_inner().map_err(|_| "does not fit into csv")
            }
            Format::Jsonl => {
                let text = |bytes| {
                    std::str::from_utf8(bytes).map_err(|_| "or its value is no text; use csv")
                };
                let object = json!({ "key": text(key)?, "value": text(value)? });
                Ok(format!("{object}\n").into_bytes())
            }
        }
    }
}
