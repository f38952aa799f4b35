//! Making a snapshot while all write.

use super::format::{
    BLOCK, END, EffectBlock, EntryBlock, KEPT, MAIL, ROWS, TABLES, VERSIONED, block_head, head,
    write_kept,
};
use super::{FileFailure, Progress};
use crate::effects::mail::Mail;
use crate::effects::record;
use crate::effects::records;
use crate::store::Store;
use crate::tables::Table;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use tremula_log::Sequence;
use tremula_table::table::effect::{Change, Effect};

/// Tables that are looked up at once.
const TABLES_AT_ONCE: usize = 64;

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
pub(crate) fn write(
    store: &Store,
    begins: Sequence,
    path: &Path,
    progress: &Progress,
) -> Result<Written, FileFailure> {
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
        rows: EffectBlock::default(),
        ordered: EffectBlock::default(),
        is_in_order: false,
        written: Written {
            entries: 0,
            bytes: 0,
            ends: begins,
        },
        progress,
    };
    progress.begin(entries(store));
    writing.write(store, begins).map_err(failure("write"))?;
    let file = writing
        .out
        .into_inner()
        .map_err(|error| failure("write")(error.into_error()))?;
    file.sync_all().map_err(failure("sync"))?;
    Ok(writing.written)
}

/// About how many entries a snapshot will have. O(tables).
fn entries(store: &Store) -> u64 {
    let keys: usize = store.databases().map(|database| database.len()).sum();
    let tables = store.tables().made_after(None, usize::MAX);
    // A table that is deleted meanwhile has none.
    let rows = tables.iter().map(|table| table.size().unwrap_or(0));
    (keys + rows.sum::<usize>()) as u64
}

/// Writes a block, unless it is empty, and empties it.
fn end(
    out: &mut impl Write,
    written: &mut Written,
    kind: u8,
    block: &mut EffectBlock,
) -> io::Result<()> {
    if block.count() > 0 {
        let head = block_head(kind, block.body());
        out.write_all(&head)?;
        out.write_all(block.body())?;
        written.bytes += (head.len() + block.body().len()) as u64;
        written.entries += block.count();
        block.clear();
    }
    Ok(())
}

struct Writing<'a> {
    out: BufWriter<File>,
    block: EntryBlock,
    /// Rows of a table.
    rows: EffectBlock,
    /// What has to come before what is behind it.
    ordered: EffectBlock,
    /// Whether the last effect is in `ordered`.
    is_in_order: bool,
    written: Written,
    progress: &'a Progress,
}

impl Writing<'_> {
    fn write(&mut self, store: &Store, begins: Sequence) -> io::Result<()> {
        self.put(&head(begins.get()))?;
        for (number, database) in store.databases().enumerate() {
            let values = store.values(number);
            self.block.begin(database.number());
            let mut result = Ok(());
            database.visit(&mut |key, value| {
                // A value that the cache has evicted meanwhile is gone, and the log says so.
                if let Some(text) = values.text(key, value) {
                    let (version, expiry) = (value.version(), value.expiry());
                    self.block.push(key.as_bytes(), &text, version, expiry);
                    if self.block.body().len() >= BLOCK {
                        result = self.end_entries(database.number());
                    }
                }
                match result {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
            result?;
            self.end_entries(database.number())?;
        }
        let mut last = None;
        loop {
            let part = store.tables().made_after(last.as_ref(), TABLES_AT_ONCE);
            part.iter().try_for_each(|table| self.table(table))?;
            let Some(table) = part.into_iter().next_back() else {
                break;
            };
            last = Some(table);
        }
        self.end_tables()?;
        let mut result = Ok(());
        store.mailboxes().describe(&mut |mail| {
            if result.is_ok() {
                result = self.mail(mail);
            }
        });
        result.and_then(|()| self.end_mail())?;
        let kept = store.answers.all().into_iter().chain(store.notes.all());
        for (version, change) in kept {
            self.ordered.push(&write_kept(version, &change));
            if self.ordered.body().len() >= BLOCK {
                self.end_kept()?;
            }
        }
        self.end_kept()?;
        self.written.ends = store.last_effect();
        let mut body = Vec::new();
        for number in [self.written.entries, self.written.ends.get()] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        self.put(&block_head(END, &body))?;
        self.put(&body)
    }

    /// Writes a table with its options, and its rows. If it is deleted meanwhile, the log says so.
    fn table(&mut self, table: &Table) -> io::Result<()> {
        let mut result = Ok(());
        table.describe(&mut |effect| {
            result = self.effect(effect);
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        result
    }

    fn effect(&mut self, effect: &Effect<'_>) -> io::Result<()> {
        let (first, rest) = records(effect);
        // The time of a key goes into the block of its rows, behind them.
        if !matches!(effect.change, Change::Expiry { .. }) {
            if self.rows.body().len() >= BLOCK || self.ordered.body().len() >= BLOCK {
                self.end_tables()?;
            }
            self.is_in_order = effect.key().is_none() || !rest.is_empty();
        }
        let block = if self.is_in_order {
            &mut self.ordered
        } else {
            &mut self.rows
        };
        block.push(&first);
        for record in rest {
            block.push(&record);
        }
        Ok(())
    }

    fn mail(&mut self, mail: Mail) -> io::Result<()> {
        let mut record = Vec::new();
        record::Change::Mail(mail).write(&mut record);
        self.ordered.push(&record);
        if self.ordered.body().len() >= BLOCK {
            self.end_mail()?;
        }
        Ok(())
    }

    fn end_mail(&mut self) -> io::Result<()> {
        end(&mut self.out, &mut self.written, MAIL, &mut self.ordered)
    }

    fn end_kept(&mut self) -> io::Result<()> {
        end(&mut self.out, &mut self.written, KEPT, &mut self.ordered)
    }

    /// Writes what is left of tables. Rows come behind what makes their table.
    fn end_tables(&mut self) -> io::Result<()> {
        let Self { out, written, .. } = self;
        end(out, written, TABLES, &mut self.ordered)?;
        end(out, written, ROWS, &mut self.rows)?;
        self.progress.reach(self.written.entries);
        Ok(())
    }

    /// Writes the block of entries, unless it is empty, and begins a new one.
    fn end_entries(&mut self, database: u8) -> io::Result<()> {
        let Self {
            out,
            written,
            block,
            ..
        } = self;
        if block.count() > 0 {
            let head = block_head(VERSIONED, block.body());
            out.write_all(&head)?;
            out.write_all(block.body())?;
            written.entries += block.count();
            written.bytes += (head.len() + block.body().len()) as u64;
            block.begin(database);
            self.progress.reach(self.written.entries);
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
