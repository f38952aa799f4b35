//! Making a snapshot while all write.

use super::FileFailure;
use super::format::{BLOCK, END, ENTRIES, EntryBlock, block_head, head};
use crate::store::Store;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use tremula_log::Sequence;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;

/// What a snapshot has.
pub(crate) struct Written {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    /// The last record that the snapshot may have seen.
    pub(crate) ends: Sequence,
}

/// Writes everything into a new file, which is on the disk when this returns. `begins` must have
/// been read from the log before. O(n), in batches: holds up no writer for longer than one.
///
/// The snapshot is of use only once the log is durable up to where it [ends](Written::ends).
pub(crate) fn write(store: &Store, begins: Sequence, path: &Path) -> Result<Written, FileFailure> {
    let failure = |action| move |error| FileFailure::new(action, path, error);
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(failure("create"))?;
    let mut writing = Writing {
        out: BufWriter::with_capacity(BUFFER, file),
        block: EntryBlock::default(),
        written: Written {
            entries: 0,
            bytes: 0,
            ends: begins,
        },
    };
    writing.write(store, begins).map_err(failure("write"))?;
    let file = writing
        .out
        .into_inner()
        .map_err(|error| failure("write")(error.into_error()))?;
    file.sync_all().map_err(failure("sync"))?;
    Ok(writing.written)
}

struct Writing {
    out: BufWriter<File>,
    block: EntryBlock,
    written: Written,
}

impl Writing {
    fn write(&mut self, store: &Store, begins: Sequence) -> io::Result<()> {
        self.put(&head(begins.get()))?;
        for (number, database) in store.databases().enumerate() {
            let values = store.values(number);
            self.block.begin(database.number());
            let mut result = Ok(());
            database.visit(&mut |key, value| {
                // A value that the cache has evicted meanwhile is gone, and the log says so.
                if let Some(text) = values.text(key, value) {
                    self.block.push(key.as_bytes(), &text);
                }
                if self.block.body().len() >= BLOCK {
                    result = self.end_block();
                    self.block.begin(database.number());
                }
                match result {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
            result?;
            if self.block.count() > 0 {
                self.end_block()?;
            }
        }
        self.written.ends = store.last_effect();
        let mut body = Vec::new();
        for number in [self.written.entries, self.written.ends.get()] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        self.put(&block_head(END, &body))?;
        self.put(&body)
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.written.entries += self.block.count();
        let head = block_head(ENTRIES, self.block.body());
        self.put(&head)?;
        self.written.bytes += self.block.body().len() as u64;
        self.out.write_all(self.block.body())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
