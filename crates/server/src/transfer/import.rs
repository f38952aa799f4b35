//! Keys from Redis into a directory.

use super::TransferError;
use super::redis::{Address, Client};
use crate::rdb::{Item, Rdb, RdbError};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tremula_store::local::{DurableMap, LocalOptions, LocalStore};
use tremula_store::{DATABASES, Expiry};

/// Bytes that are read at once.
const BUFFER: usize = 256 << 10;

/// Import keys and values from Redis into the directory of a server that does not run.
///
/// Everything that is read is checked first: a damaged file imports nothing. Keys keep the times at
/// which they expire; those whose time has come are left out. Keys of other types than strings are
/// not imported; they are counted, and named by type.
#[derive(clap::Args, Clone, Debug)]
pub struct ImportArgs {
    /// The directory: the --dir of a server; made if it is missing. Keys that are there are
    /// replaced
    pub directory: PathBuf,

    /// A file of Redis (dump.rdb, up to version 11)
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub file: Option<PathBuf>,

    /// A server: redis://HOST, redis://HOST:PORT or redis://USER:PASSWORD@HOST:PORT. It sends a
    /// copy of the moment when it was asked, as to a replica
    #[arg(long, value_name = "URL", value_parser = |text: &str| text.parse::<Address>())]
    pub from: Option<Address>,
}

/// What was in a file.
#[derive(Debug, Default)]
struct Found {
    texts: u64,
    /// Those of them that will expire.
    expiring: u64,
    /// Those that are left out because they have.
    expired: u64,
    /// By type.
    others: BTreeMap<&'static str, u64>,
    besides: BTreeMap<&'static str, u64>,
}

/// Imports, and says on `out` what was imported, and on `errors` what was not.
///
/// # Errors
///
/// [`TransferError`].
pub fn import(
    arguments: &ImportArgs,
    out: &mut impl Write,
    errors: &mut impl Write,
) -> Result<(), TransferError> {
    let (from, mut file) = match (&arguments.file, &arguments.from) {
        (Some(path), _) => {
            let file = File::open(path).map_err(|source| TransferError::File {
                path: path.clone(),
                source,
            })?;
            (path.display().to_string(), file)
        }
        (None, Some(address)) => (address.shown(), download(address)?),
        (None, None) => unreachable!("the command line has one of them"),
    };
    let failed = |source| TransferError::Rdb {
        from: from.clone(),
        source,
    };
    // Once to see that it is whole, and once to take it.
    let mut highest = 0;
    let found = read(&mut file, |database, _, _, _| {
        highest = highest.max(database);
        Ok::<(), RdbError>(())
    });
    let found = found.map_err(failed)?;
    if highest >= DATABASES as u64 {
        let database = highest;
        return Err(TransferError::Database { from, database });
    }
    let store = open(&arguments.directory)?;
    let maps: Vec<DurableMap<Vec<u8>, Vec<u8>>> =
        (0..DATABASES).map(|database| store.map(database)).collect();
    let mut written = Ok(());
    let again = read(&mut file, |database, key, value, expiry| {
        let map = usize::try_from(database).ok().and_then(|at| maps.get(at));
        let Some(map) = map else { return Ok(()) };
        let inserted = match expiry {
            Some(expiry) => map.insert_expiring(&key, &value, expiry),
            None => map.insert(&key, &value),
        };
        inserted.map(|_| ()).map_err(|error| {
            written = Err(error);
            RdbError::Read(io::ErrorKind::Other.into())
        })
    });
    written?;
    again.map_err(failed)?;
    drop(maps);
    store.sync()?;
    // So that the next start need not apply the log.
    store.snapshot()?;
    store.close()?;
    found
        .report(&from, &arguments.directory, out, errors)
        .map_err(TransferError::Output)
}

pub(super) fn open(directory: &Path) -> Result<LocalStore, TransferError> {
    // As a server's, which goes on with these files.
    let options = LocalOptions::default().segment_bytes(64 << 20);
    LocalStore::open_with(directory, &options).map_err(|source| TransferError::Directory {
        path: directory.to_owned(),
        source,
    })
}

/// Shows each string that has not expired: the database, the key, the value, when it will expire.
/// Counts everything.
fn read(
    file: &mut File,
    take: impl FnMut(u64, Vec<u8>, Vec<u8>, Option<Expiry>) -> Result<(), RdbError>,
) -> Result<Found, RdbError> {
    file.seek(SeekFrom::Start(0))?;
    let mut found = Found::default();
    let rest = each(
        BufReader::with_capacity(BUFFER, file),
        Expiry::now(),
        &mut found,
        take,
    )?;
    let mut behind = [0];
    if rest.take(1).read(&mut behind)? > 0 {
        return Err(RdbError::Damaged {
            offset: 0,
            what: "something lies behind its end".to_owned(),
        });
    }
    Ok(found)
}

/// The same for anything that can be read. Returns what lies behind the end.
fn each<R: Read>(
    from: R,
    now: Expiry,
    found: &mut Found,
    mut take: impl FnMut(u64, Vec<u8>, Vec<u8>, Option<Expiry>) -> Result<(), RdbError>,
) -> Result<R, RdbError> {
    let mut rdb = Rdb::new(from)?;
    let mut database = 0;
    while let Some(item) = rdb.next()? {
        match item {
            Item::Database(number) => database = number,
            Item::Text {
                key,
                value,
                expires,
            } => {
                // A time after the last that there is here is as good as that.
                let expiry =
                    expires.map(|millis| Expiry::from_millis(millis).unwrap_or(Expiry::LAST));
                if expiry.is_some_and(|expiry| expiry <= now) {
                    found.expired += 1;
                } else {
                    found.texts += 1;
                    found.expiring += u64::from(expiry.is_some());
                    take(database, key, value, expiry)?;
                }
            }
            Item::Other { kind } => *found.others.entry(kind).or_default() += 1,
            Item::Besides { kind } => *found.besides.entry(kind).or_default() += 1,
        }
    }
    Ok(rdb.into_inner())
}

impl Found {
    fn report(
        &self,
        from: &str,
        directory: &Path,
        out: &mut impl Write,
        errors: &mut impl Write,
    ) -> io::Result<()> {
        let into = directory.display();
        writeln!(out, "imported {} from {from} into {into}", keys(self.texts))?;
        if self.expiring > 0 {
            writeln!(out, "{} of them will expire", self.expiring)?;
        }
        if self.expired > 0 {
            let keys = keys(self.expired);
            writeln!(errors, "not imported: {keys} whose time had come")?;
        }
        for (kind, count) in &self.others {
            let keys = keys(*count);
            writeln!(errors, "not imported: {keys} of the type {kind}")?;
        }
        for kind in self.besides.keys() {
            writeln!(errors, "not imported: {kind}")?;
        }
        out.flush()
    }
}

fn keys(count: u64) -> String {
    format!("{count} key{}", if count == 1 { "" } else { "s" })
}

/// A copy of all that a server has, in a file that has no name.
fn download(address: &Address) -> Result<File, TransferError> {
    let (copy, length) = Client::connect(address)?.full_copy()?;
    let failed = |what: String| TransferError::Server {
        from: address.shown(),
        what,
    };
    let mut file =
        tempfile::tempfile().map_err(|error| failed(format!("no file for the copy: {error}")))?;
    let copied = io::copy(&mut copy.take(length), &mut file)
        .map_err(|error| failed(format!("the copy of {length} bytes broke: {error}")))?;
    if copied < length {
        return Err(failed(format!(
            "the copy of {length} bytes ended after {copied}"
        )));
    }
    Ok(file)
}

/// A database, a key, its value, when it expires.
#[cfg(any(test, fuzzing))]
pub(crate) type Entry = (u64, Vec<u8>, Vec<u8>, Option<Expiry>);

/// Reads any bytes as a file, for fuzzing: what it has, or why not.
#[cfg(any(test, fuzzing))]
pub(crate) fn each_of(bytes: &[u8]) -> Result<Vec<Entry>, RdbError> {
    let mut all = Vec::new();
    each(
        bytes,
        // The same however often it is read.
        Expiry::from_millis(0).expect("a time"),
        &mut Found::default(),
        |database, key, value, expiry| {
            all.push((database, key, value, expiry));
            Ok(())
        },
    )?;
    Ok(all)
}
