//! The bytes of a snapshot.
//!
//! | part | bytes |
//! |---|---|
//! | head | `TREMSNAP`, version (u32), sequence (u64), CRC-32C of these (u32) |
//! | block | length (u32), CRC-32C of the kind and the body (u32), kind (u8), body |
//! | last block | kind 0: the number of entries (u64), the last sequence that it has seen (u64) |
//!
//! All numbers are little-endian, or LEB128 where nothing else is said. The body of kind 1 is the
//! number of a database (u8) and its entries: for each how many bytes its key has in common with
//! the key before it in the block, the length of the rest, the rest, the length of the value, the
//! value. Kind 6 is likewise, and behind each value are its version, and when its key expires, in
//! milliseconds since 1970 began, or 0 for never. Blocks of entries come first; those of a database
//! lie one behind the other, and its keys rise from block to block. The body of kinds 2 and 3 are
//! effects of tables, each with its length before it. Those of kind 2 are to be applied in the
//! file's order and before all that comes behind them: tables with their options, and parts of the
//! rows of one key. Those of kind 3 are the rows of keys, in any order, each with the time of its
//! key behind it, if it has one. The body of kind 4 are records of mailboxes, likewise in order.
//! The body of kind 7 are answers and notes, each with its length before it: its version, and its
//! record as the log has it. A file without its last block was not finished.
//!
//! This version writes kinds 6, 2, 3, 4 and 7, and reads all. Version 1 had no tables and no
//! mailboxes, and version 2 no keys that expire. Version 3 had them in blocks of kind 5, which has
//! a time behind each value, and no versions of values: those that it wrote get the last sequence
//! before the snapshot. Version 4 had no times of the keys of tables, and version
//! 5 no answers and no notes.

use super::SnapshotError;
use crate::effects::DATABASES;
use crate::effects::fields::{Fields, write_number};
use crate::effects::record::{Change, Record};
use crate::{Expiry, Version};
use std::path::Path;

pub(super) const MAGIC: &[u8; 8] = b"TREMSNAP";
pub(super) const VERSION: u32 = 6;
pub(super) const HEAD_BYTES: usize = 24;
pub(super) const BLOCK_HEAD_BYTES: usize = 9;

/// Bytes of a block that gets no further entry.
pub(super) const BLOCK: usize = 256 << 10;
/// The longest block: an entry has a key and a value of 512 MiB each at most.
pub(super) const MOST_BLOCK: usize = 3 << 29;

pub(super) const END: u8 = 0;
/// Bytes of the last block, without its head.
pub(super) const END_BYTES: usize = 16;
pub(super) const ENTRIES: u8 = 1;
pub(super) const TABLES: u8 = 2;
pub(super) const ROWS: u8 = 3;
pub(super) const MAIL: u8 = 4;
pub(super) const EXPIRING: u8 = 5;
pub(super) const VERSIONED: u8 = 6;
pub(super) const KEPT: u8 = 7;

/// The head of a snapshot that begins at this sequence.
pub(super) fn head(sequence: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..20].copy_from_slice(&sequence.to_le_bytes());
    let sum = crc32c::crc32c(&head[..20]);
    head[20..].copy_from_slice(&sum.to_le_bytes());
    head
}

/// The sequence at which the snapshot with this head begins.
pub(super) fn read_head(head: &[u8; HEAD_BYTES], path: &Path) -> Result<u64, SnapshotError> {
    let damaged = |offset, what: &str| SnapshotError::Damaged {
        path: path.to_path_buf(),
        offset,
        what: what.to_owned(),
    };
    if &head[..8] != MAGIC {
        return Err(damaged(0, "it does not begin as a snapshot does"));
    }
    let sum = u32::from_le_bytes(part(head, 20));
    if crc32c::crc32c(&head[..20]) != sum {
        return Err(damaged(8, "the checksum of its head is wrong"));
    }
    let found = u32::from_le_bytes(part(head, 8));
    if found > VERSION {
        return Err(SnapshotError::Newer {
            path: path.to_path_buf(),
            found,
            known: VERSION,
        });
    }
    Ok(u64::from_le_bytes(part(head, 12)))
}

/// A part of a head, at a fixed place.
pub(super) fn part<const N: usize>(head: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&head[at..at + N]);
    part
}

/// The head of a block with this body.
pub(super) fn block_head(kind: u8, body: &[u8]) -> [u8; BLOCK_HEAD_BYTES] {
    let mut head = [0; BLOCK_HEAD_BYTES];
    let sum = crc32c::crc32c_append(crc32c::crc32c(&[kind]), body);
    head[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
    head[4..8].copy_from_slice(&sum.to_le_bytes());
    head[8] = kind;
    head
}

/// Entries of one database that go into one block.
#[derive(Default)]
pub(super) struct EntryBlock {
    body: Vec<u8>,
    last: Vec<u8>,
    count: u64,
}

impl EntryBlock {
    pub(super) fn begin(&mut self, database: u8) {
        self.body.clear();
        self.body.push(database);
        self.last.clear();
        self.count = 0;
    }

    pub(super) fn push(
        &mut self,
        key: &[u8],
        value: &[u8],
        version: Version,
        expiry: Option<Expiry>,
    ) {
        let pairs = key.iter().zip(&self.last);
        let common = pairs.take_while(|(one, other)| one == other).count();
        write_number(common as u64, &mut self.body);
        write_number((key.len() - common) as u64, &mut self.body);
        self.body.extend_from_slice(&key[common..]);
        write_number(value.len() as u64, &mut self.body);
        self.body.extend_from_slice(value);
        write_number(version.get(), &mut self.body);
        write_number(expiry.map_or(0, Expiry::millis), &mut self.body);
        self.last.truncate(common);
        self.last.extend_from_slice(&key[common..]);
        self.count += 1;
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// An entry of a block.
pub(super) struct Entry<'a> {
    pub(super) database: usize,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    /// `None` in a block of a kind without them.
    pub(super) version: Option<Version>,
    pub(super) expiry: Option<Expiry>,
}

/// Shows the entries of a block of this kind. Returns how many there were.
pub(super) fn read_entries(
    kind: u8,
    body: &[u8],
    mut show: impl FnMut(Entry<'_>),
) -> Result<u64, String> {
    let (database, rest) = body.split_first().ok_or("a block without a database")?;
    let database = usize::from(*database);
    if database >= DATABASES {
        return Err(format!("database {database}"));
    }
    let mut fields = Fields(rest);
    let mut key = Vec::new();
    let mut count = 0;
    while !fields.0.is_empty() {
        let mut read = || -> Result<_, crate::BadRecord> {
            let (common, rest, value) = (fields.number()?, fields.text()?, fields.text()?);
            let mut number_in =
                |kinds: &[u8]| kinds.contains(&kind).then(|| fields.number()).transpose();
            let version = number_in(&[VERSIONED])?;
            let time = number_in(&[VERSIONED, EXPIRING])?;
            Ok((common, rest, value, version, time))
        };
        let (common, rest, value, version, time) = read().map_err(|error| error.to_string())?;
        let known = |number| Version::new(number).ok_or_else(|| format!("a version of {number}"));
        let version = version.map(known).transpose()?;
        let expiry = time.map_or(Ok(None), Expiry::read)?;
        let common = usize::try_from(common)
            .ok()
            .filter(|common| *common <= key.len())
            .ok_or_else(|| format!("{common} common bytes of a key of {}", key.len()))?;
        key.truncate(common);
        key.extend_from_slice(rest);
        show(Entry {
            database,
            key: &key,
            value,
            version,
            expiry,
        });
        count += 1;
    }
    Ok(count)
}

/// Effects of tables, or records, that go into one block.
#[derive(Default)]
pub(super) struct EffectBlock {
    body: Vec<u8>,
    count: u64,
}

impl EffectBlock {
    pub(super) fn clear(&mut self) {
        self.body.clear();
        self.count = 0;
    }

    pub(super) fn push(&mut self, effect: &[u8]) {
        write_number(effect.len() as u64, &mut self.body);
        self.body.extend_from_slice(effect);
        self.count += 1;
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// An answer or a note, as a snapshot has it.
pub(super) fn write_kept(version: Version, change: &Change) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_number(version.get(), &mut bytes);
    change.write(&mut bytes);
    bytes
}

/// The version and the record of an answer or a note.
pub(super) fn read_kept(bytes: &[u8]) -> Result<(u64, Record<'_>), crate::BadRecord> {
    let mut fields = Fields(bytes);
    let version = fields.number()?;
    Ok((version, Record::read(fields.rest())?))
}

/// What an [`EffectBlock`] has, in its order.
pub(super) fn read_effects(body: &[u8]) -> impl Iterator<Item = Result<&[u8], crate::BadRecord>> {
    let mut fields = Fields(body);
    std::iter::from_fn(move || (!fields.0.is_empty()).then(|| fields.text()))
}
