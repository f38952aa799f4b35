//! Loading a snapshot, on all cores.

use super::format::{
    BLOCK_HEAD_BYTES, END, END_BYTES, ENTRIES, EXPIRING, HEAD_BYTES, KEPT, MAIL, MOST_BLOCK, ROWS,
    TABLES, VERSIONED, part, read_effects, read_entries, read_head, read_kept,
};
use super::{FileFailure, SnapshotError};
use crate::effects::Effects;
use crate::effects::mail::Mail;
use crate::effects::record::Record;
use crate::store::Store;
use crate::{Key, Value, Version};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use tremula_log::Sequence;
use tremula_sync::system::atomic::{AtomicU64, Ordering};
use tremula_sync::system::mpsc::{Receiver, sync_channel};
use tremula_sync::system::{Mutex, thread};
use tremula_table::table::effect::OwnedEffect;
use tremula_table::term::Limits;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;

/// Blocks that have been read and not taken yet.
const AHEAD: usize = 8;

/// A block that has been read, with its place in the file.
pub(super) struct Block {
    pub(super) offset: u64,
    sum: u32,
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// What a snapshot held.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Where the log goes on.
    pub(crate) begins: Sequence,
    /// How far the log reached when the snapshot was made.
    pub(crate) ends: Sequence,
    pub(crate) entries: u64,
}

/// Reads the head of a snapshot.
pub(super) fn begins(path: &Path) -> Result<Sequence, SnapshotError> {
    let mut file = File::open(path).map_err(|error| FileFailure::new("open", path, error))?;
    Ok(Sequence::new(head_of(&mut file, path)?))
}

/// Reads the end of a snapshot: the last record that it may have seen.
pub(super) fn ends(path: &Path) -> Result<Sequence, SnapshotError> {
    let failed = |action| move |error| FileFailure::new(action, path, error);
    let mut file = File::open(path).map_err(failed("open"))?;
    let length = file.metadata().map_err(failed("measure"))?.len();
    let offset = length.saturating_sub((BLOCK_HEAD_BYTES + END_BYTES) as u64);
    file.seek(SeekFrom::Start(offset)).map_err(failed("read"))?;
    let block = read_block(&mut file, offset, path)?;
    if block.kind != END {
        return Err(damaged(path, offset, "it has no end"));
    }
    let (_, ends) = read_end(&block, path)?;
    Ok(ends)
}

pub(super) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> SnapshotError {
    SnapshotError::Damaged {
        path: path.to_path_buf(),
        offset,
        what: what.into(),
    }
}

/// Reads the block at this offset. Its checksum is not looked at.
pub(super) fn read_block(
    file: &mut impl Read,
    offset: u64,
    path: &Path,
) -> Result<Block, SnapshotError> {
    let mut head = [0; BLOCK_HEAD_BYTES];
    fill(file, &mut head, offset, path)?;
    let length = u32::from_le_bytes(part(&head, 0)) as usize;
    if length > MOST_BLOCK {
        let what = format!("a block of {length} bytes");
        return Err(damaged(path, offset, what));
    }
    Ok(Block {
        offset,
        sum: u32::from_le_bytes(part(&head, 4)),
        kind: head[8],
        body: read_body(file, length, offset, path)?,
    })
}

/// What stands in the last block: the number of entries, and the last record that the snapshot may
/// have seen.
pub(super) fn read_end(block: &Block, path: &Path) -> Result<(u64, Sequence), SnapshotError> {
    check(block, path)?;
    if block.body.len() != END_BYTES {
        return Err(damaged(path, block.offset, "an end of a wrong length"));
    }
    let number = |at| u64::from_le_bytes(part(&block.body, at));
    Ok((number(0), Sequence::new(number(8))))
}

/// That nothing lies behind the end, which is at this offset.
pub(super) fn end_of_file(
    file: &mut impl Read,
    offset: u64,
    path: &Path,
) -> Result<(), SnapshotError> {
    match file.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(damaged(path, offset, "something lies behind its end")),
        Err(error) => Err(FileFailure::new("read", path, error).into()),
    }
}

fn head_of(file: &mut impl Read, path: &Path) -> Result<u64, SnapshotError> {
    let mut head = [0; HEAD_BYTES];
    fill(file, &mut head, 0, path)?;
    read_head(&head, path)
}

/// Fills the buffer from what comes at this offset.
pub(super) fn fill(
    file: &mut impl Read,
    buffer: &mut [u8],
    offset: u64,
    path: &Path,
) -> Result<(), SnapshotError> {
    file.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::Damaged {
            path: path.to_path_buf(),
            offset,
            what: "the file ends here".to_owned(),
        },
        _ => FileFailure::new("read", path, error).into(),
    })
}

/// Loads a snapshot into a store that nobody else uses yet, with this number of threads. Now and
/// then `progress` gets the number of bytes that have been read.
///
/// If it fails, the store has a part of the snapshot.
pub(crate) fn load(
    store: &Store,
    path: &Path,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Loaded, SnapshotError> {
    let file = File::open(path).map_err(|error| FileFailure::new("open", path, error))?;
    let mut file = BufReader::with_capacity(BUFFER, file);
    let begins = Sequence::new(head_of(&mut file, path)?);
    // Where the snapshot has no versions: no record that comes has this one.
    let unknown = Version::wrapping(begins.before().get());
    let (entries, failed) = (AtomicU64::new(0), Mutex::new(None));
    let (sender, receiver) = sync_channel(AHEAD);
    let receiver = Mutex::new(receiver);
    let store_block = |block: &Block| store_block(store, block, unknown, path);
    let (expected, ends) = thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| store_blocks(&store_block, &receiver, &entries, &failed));
        }
        let entries = &entries;
        let mut take = move |block: Block| {
            if ![TABLES, MAIL].contains(&block.kind) {
                // Fails if every thread has found damage: they say which.
                return Ok(sender.send(block).is_ok());
            }
            // What comes behind it needs it.
            entries.fetch_add(store_block(&block)?, Ordering::Relaxed);
            Ok(true)
        };
        let read = read_blocks(&mut file, path, progress, &mut take);
        // The threads end when nothing more can come.
        drop(take);
        read
    })?;
    let failed = failed.lock().map_or(None, |mut failed| failed.take());
    if let Some(error) = failed {
        return Err(error);
    }
    let entries = entries.load(Ordering::Relaxed);
    if entries != expected {
        return Err(SnapshotError::Damaged {
            path: path.to_path_buf(),
            offset: HEAD_BYTES as u64,
            what: format!("it has {entries} entries, and its end speaks of {expected}"),
        });
    }
    Ok(Loaded {
        begins,
        ends,
        entries,
    })
}

/// Reads block after block for `take`, until it returns false, and returns what stands in the last
/// one: the number of entries, and the last record that the snapshot may have seen.
fn read_blocks(
    file: &mut impl Read,
    path: &Path,
    progress: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(Block) -> Result<bool, SnapshotError>,
) -> Result<(u64, Sequence), SnapshotError> {
    let mut offset = HEAD_BYTES as u64;
    loop {
        let block = read_block(file, offset, path)?;
        offset += (BLOCK_HEAD_BYTES + block.body.len()) as u64;
        progress(offset);
        if block.kind == END {
            let end = read_end(&block, path)?;
            end_of_file(file, offset, path)?;
            return Ok(end);
        }
        if !take(block)? {
            return Ok((0, Sequence::NONE));
        }
    }
}

/// Reads the body in pieces: a length that damage has made takes no memory for what is not there.
fn read_body(
    file: &mut impl Read,
    length: usize,
    offset: u64,
    path: &Path,
) -> Result<Vec<u8>, SnapshotError> {
    let mut body = Vec::new();
    let read = file
        .take(length as u64)
        .read_to_end(&mut body)
        .map_err(|error| FileFailure::new("read", path, error))?;
    if read < length {
        return Err(SnapshotError::Damaged {
            path: path.to_path_buf(),
            offset,
            what: format!("a block of {length} bytes, of which {read} are there"),
        });
    }
    Ok(body)
}

pub(super) fn check(block: &Block, path: &Path) -> Result<(), SnapshotError> {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&[block.kind]), &block.body);
    if sum == block.sum {
        return Ok(());
    }
    Err(SnapshotError::Damaged {
        path: path.to_path_buf(),
        offset: block.offset,
        what: "the checksum of a block is wrong".to_owned(),
    })
}

/// Takes blocks and stores their entries, until there are no more, or one is damaged.
fn store_blocks(
    store_block: &impl Fn(&Block) -> Result<u64, SnapshotError>,
    blocks: &Mutex<Receiver<Block>>,
    entries: &AtomicU64,
    failed: &Mutex<Option<SnapshotError>>,
) {
    loop {
        let Ok(Ok(block)) = blocks.lock().map(|blocks| blocks.recv()) else {
            return;
        };
        let stored = store_block(&block);
        match stored {
            Ok(count) => {
                entries.fetch_add(count, Ordering::Relaxed);
            }
            Err(error) => {
                if let Ok(mut failed) = failed.lock() {
                    failed.get_or_insert(error);
                }
                // Reads on, so that the reader does not wait for ever.
            }
        }
    }
}

/// Stores what a block has, and returns how many entries that were. Values without a version get
/// the `unknown` one.
fn store_block(
    store: &Store,
    block: &Block,
    unknown: Version,
    path: &Path,
) -> Result<u64, SnapshotError> {
    check(block, path)?;
    let damaged = |what| SnapshotError::Damaged {
        path: path.to_path_buf(),
        offset: block.offset,
        what,
    };
    match block.kind {
        ENTRIES | EXPIRING | VERSIONED => {
            let stored = read_entries(block.kind, &block.body, |entry| {
                let mut effects = Effects::again(entry.version.unwrap_or(unknown));
                let value = Value::from(entry.value).expiring(entry.expiry);
                let database = store.database(entry.database);
                database.insert(&mut effects, Key::from(entry.key), value);
            });
            stored.map_err(damaged)
        }
        TABLES | ROWS => {
            let mut count = 0;
            for effect in read_effects(&block.body) {
                let effect = effect.map_err(|error| damaged(error.to_string()))?;
                let effect = OwnedEffect::decode(effect, &Limits::NONE);
                let effect = effect.map_err(|error| damaged(error.to_string()))?;
                let applied = store.tables().apply(&effect.borrow());
                applied.map_err(|source| SnapshotError::Table {
                    path: path.to_path_buf(),
                    source: Box::new(source),
                })?;
                count += 1;
            }
            Ok(count)
        }
        MAIL => {
            let mut count = 0;
            for record in read_effects(&block.body) {
                let mail = record.and_then(Mail::read);
                let mail = mail.map_err(|error| damaged(error.to_string()))?;
                store.mailboxes().apply(mail);
                count += 1;
            }
            Ok(count)
        }
        KEPT => {
            let mut count = 0;
            for kept in read_effects(&block.body) {
                let kept = kept.and_then(read_kept);
                let (version, record) = kept.map_err(|error| damaged(error.to_string()))?;
                let version = Version::wrapping(version);
                match record {
                    Record::Answer(id, answer) => store.answers.enter(id, version, answer),
                    Record::Note(name, text) => store.notes.apply(name, version, text),
                    _ => return Err(damaged("a change in the place of an answer".to_owned())),
                }
                count += 1;
            }
            Ok(count)
        }
        other => Err(damaged(format!("a block of kind {other}"))),
    }
}
