//! A snapshot of a group as one file: a snapshot of the state, and behind it batches of the own log
//! of the node that has made it, each with its length before it.
//!
//! A snapshot of the state shows each key as it was at some moment while it was made, so it needs
//! the records of that time; and a node starts from the end of its own log. So the batches go from
//! one that is not behind the snapshot's beginning to the point of the manifest, and the node that
//! loads it has in its directory what the other one had. It goes on with the message behind that
//! point.

use super::arguments::{POINT, write};
use super::arrival::sync;
use super::{Group, GroupError};
use crate::persist::Persistence;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use tremula_group::{Manifest, SavedPoint};
use tremula_log::{Batch, Config, FileLog, Log, Refused, Tail};
use tremula_store::{Engine, Folder, LOG_FOLDER, Sequence, Store, StoreConfig};

/// Bytes that are read and written at once.
const BUFFER: usize = 1 << 20;

/// Bytes of the segments of an own log that is made of a package.
const LEAST_SEGMENT: u64 = 1 << 16;
const MOST_SEGMENT: u64 = 64 << 20;

/// Writes a package of what the node has.
pub(super) fn pack(
    store: &Store,
    persistence: &Arc<Persistence>,
    group: &Group,
    package: &Path,
) -> Result<Manifest, String> {
    let saving = persistence.begin_save();
    let saving = saving.ok_or("another snapshot of this node is being made")?;
    let saved = saving.run(store).map_err(|error| error.to_string())?;
    let snapshot = saved.path;
    let point = group.host.kept_point();
    let point = point.ok_or("this node serves nothing any more")?;
    let saved = SavedPoint {
        group: group.name.clone(),
        point,
    };
    pack_files(&snapshot, persistence.files(), saved, package)
}

/// Writes a package of a snapshot of the state, and of the own log up to a point.
pub(super) fn pack_files(
    snapshot: &Path,
    files: &FileLog,
    saved: SavedPoint,
    package: &Path,
) -> Result<Manifest, String> {
    let begins = Folder::begins(snapshot).map_err(|error| error.to_string())?;
    let ends = Folder::ends(snapshot).map_err(|error| error.to_string())?;
    let point = &saved.point;
    if point.last < ends {
        return Err(format!(
            "the snapshot has record {ends}, and this node has read up to {}",
            point.last
        ));
    }
    let start = batch_of(files, begins, point.last)?;
    let failed = |error: io::Error| format!("{}: {error}", package.display());
    let mut out = BufWriter::with_capacity(BUFFER, File::create(package).map_err(failed)?);
    let from = File::open(snapshot);
    let mut from = from.map_err(|error| format!("{}: {error}", snapshot.display()))?;
    let snapshot_bytes = io::copy(&mut from, &mut out).map_err(failed)?;
    if start.next <= point.last {
        let entries = files.read(start.next).map_err(|error| error.to_string())?;
        for entry in entries {
            let entry = entry.map_err(|error| error.to_string())?;
            if entry.first() > point.last {
                break;
            }
            let batch = entry.to_batch();
            let length = batch.as_bytes().len() as u64;
            out.write_all(&length.to_le_bytes()).map_err(failed)?;
            out.write_all(batch.as_bytes()).map_err(failed)?;
        }
    }
    out.flush().map_err(failed)?;
    Ok(Manifest {
        saved,
        log: start,
        begins,
        snapshot_bytes,
        bytes: 0,
        checksum: 0,
    })
}

/// Where the batch begins that has this record; or the end, if no batch has it.
fn batch_of(log: &FileLog, record: Sequence, last: Sequence) -> Result<Tail, String> {
    let mut before = record.before().min(last);
    while before >= log.first() {
        let mut entries = log.read(before).map_err(|error| error.to_string())?;
        let entry = entries.next().ok_or("its own log ends too early")?;
        let entry = entry.map_err(|error| error.to_string())?;
        if entry.last() < record {
            return Ok(Tail {
                next: entry.last().plus(1),
                chain: entry.chain(),
            });
        }
        before = entry.first().before();
    }
    let beginning = log.beginning();
    if beginning.next > record {
        return Err(format!(
            "its own log begins at record {}, behind the snapshot's beginning {record}",
            beginning.next
        ));
    }
    Ok(beginning)
}

/// Makes of a package a directory as a node has it.
pub(super) fn unpack(package: &Path, manifest: &Manifest, directory: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(failed)?;
    }
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.map_err(failed)?;
    let file = File::open(package);
    let file = file.map_err(|error| format!("{}: {error}", package.display()))?;
    let mut file = BufReader::with_capacity(BUFFER, file);
    let path = Folder::new(directory).path_of(manifest.begins);
    let mut out = File::create(&path).map_err(failed)?;
    let snapshot = &mut file.by_ref().take(manifest.snapshot_bytes);
    let copied = io::copy(snapshot, &mut out).map_err(failed)?;
    if copied < manifest.snapshot_bytes {
        return Err("the package ends within its snapshot".to_owned());
    }
    out.sync_all().map_err(failed)?;
    // No longer than needed: all of it is written to the disk, and waited for.
    let batches = manifest.bytes.saturating_sub(manifest.snapshot_bytes);
    let segment = (2 * batches).clamp(LEAST_SEGMENT, MOST_SEGMENT);
    let config = Config::default().prepared(0).segment_bytes(segment);
    let log = FileLog::open_from(directory.join(LOG_FOLDER), &config, manifest.log);
    let log = log.map_err(|error| error.to_string())?;
    while let Some(batch) = next_batch(&mut file)? {
        append(&log, &batch)?;
    }
    let point = &manifest.saved.point;
    let end = Tail {
        next: point.last.plus(1),
        chain: point.chain,
    };
    if log.tail() != end {
        return Err(format!(
            "its batches lead to {}, and not to {end}",
            log.tail()
        ));
    }
    log.close().map_err(|stopped| stopped.to_string())?;
    let group = &manifest.saved.group;
    write(&directory.join(POINT), group, point).map_err(|error: GroupError| error.to_string())?;
    sync(directory).map_err(failed)
}

fn next_batch(file: &mut impl Read) -> Result<Option<Batch>, String> {
    let mut length = [0; 8];
    let failed = |error: io::Error| error.to_string();
    let read = file.read(&mut length[..1]).map_err(failed)?;
    if read == 0 {
        return Ok(None);
    }
    file.read_exact(&mut length[1..]).map_err(failed)?;
    let mut bytes = Vec::new();
    let length = u64::from_le_bytes(length);
    file.take(length).read_to_end(&mut bytes).map_err(failed)?;
    let batch = Batch::from_bytes(&bytes);
    let batch = batch.ok_or("the package has something that is no batch")?;
    Ok(Some(batch))
}

fn append(log: &FileLog, batch: &Batch) -> Result<(), String> {
    loop {
        match log.append(batch, None) {
            Ok(_) => return Ok(()),
            // What is written next makes room.
            Err(Refused::Behind { .. }) => {
                let next = log.durable().plus(1);
                log.wait(next).map_err(|stopped| stopped.to_string())?;
            }
            Err(refused) => return Err(refused.to_string()),
        }
    }
}

/// Loads what a package was unpacked to, as a node does that starts from it, and returns the number
/// of its keys. For a process of its own: the memory is not the server's.
///
/// # Errors
///
/// What is there does not make a state, or not the one to which its own log leads.
pub fn check_package(directory: &Path, engine: Engine) -> Result<u64, String> {
    let log = FileLog::open(directory.join(LOG_FOLDER), &Config::default().prepared(0));
    let log = Arc::new(log.map_err(|error| error.to_string())?);
    let config = StoreConfig::new(engine);
    let folder = Folder::new(directory);
    let recovered = Store::recover_to_follow(&config, log, &folder, &mut |_| ());
    let (store, recovered) = recovered.map_err(|error| error.to_string())?;
    if let Some(damaged) = recovered.damaged.first() {
        return Err(damaged.to_string());
    }
    if recovered.snapshot.is_none() {
        return Err("it has no snapshot".to_owned());
    }
    let keys = store.databases().map(|database| database.len() as u64);
    Ok(keys.sum())
}
