//! `file2tab` and `tabfile_info`.

use super::MAGIC;
use super::erlang;
use super::error::{FileError, FileProblem};
use super::properties::TabfileInfo;
use super::records::Records;
use crate::table::note::Notes;
use crate::table::object::Present;
use crate::table::registry::{Caller, NODE};
use crate::table::{Access, Kind, Owner, Table, Tables};
use crate::term::Term;
use std::fs::File;
use std::path::Path;

/// A file that has been opened, and whose properties have been read.
pub(super) struct Opened {
    pub(super) records: Records,
    pub(super) info: TabfileInfo,
    format: Format,
}

enum Format {
    Ours,
    Erlang,
}

impl Opened {
    fn open(path: &Path) -> Result<Self, FileProblem> {
        let mut records = Records::new(File::open(path)?)?;
        let first = match records.array::<4>() {
            Err(FileProblem::Truncated { .. }) => return Err(FileProblem::NotATable),
            other => other?,
        };
        if first == erlang::MAGIC {
            let info = erlang::properties(&mut records)?;
            return Ok(Self {
                records,
                info,
                format: Format::Erlang,
            });
        }
        let (name, version) = MAGIC.split_at(7);
        let second = records.array::<4>()?;
        if first != name[..4] || second[..3] != name[4..] {
            return Err(FileProblem::NotATable);
        }
        if second[3..] != *version {
            return Err(FileProblem::Version(second[3]));
        }
        let offset = records.offset();
        let info = match records.record()? {
            Term::List(pairs) => TabfileInfo::from_pairs(pairs.iter()),
            _ => None,
        };
        let wanted = "the properties of a table";
        let info = info.ok_or(FileProblem::Unexpected { offset, wanted })?;
        Ok(Self {
            records,
            info,
            format: Format::Ours,
        })
    }

    /// Passes all rows to `put`, which returns whether a term is a row.
    fn rows(mut self, put: &mut dyn FnMut(&Term) -> bool) -> Result<(), FileProblem> {
        if let Format::Erlang = self.format {
            return erlang::rows(self, put);
        }
        let mut found = 0;
        loop {
            let offset = self.records.offset();
            let wanted = "a list of rows, or the end";
            let unexpected = || FileProblem::Unexpected { offset, wanted };
            match self.records.record()? {
                Term::List(rows) => {
                    for row in &rows {
                        if !put(row) {
                            return Err(unexpected());
                        }
                        found += 1;
                    }
                }
                Term::Tuple(end) => {
                    let said = erlang::count_of(&end, "end").ok_or_else(unexpected)?;
                    return self.records.check_end(offset, said, found);
                }
                _ => return Err(unexpected()),
            }
        }
    }
}

impl Tables {
    /// Reads a file that [`tab2file`](Table::tab2file) or Erlang's `ets:tab2file` wrote into a new
    /// table that belongs to the node: Erlang's `file2tab/2`, always with `{verify, true}`. No
    /// caller finds the table before it is complete.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is damaged or truncated, or is not the file of a table: the error
    /// names the byte. Or a table has its name. In each case there is no new table.
    pub fn file2tab(&self, path: impl AsRef<Path>) -> Result<Table, FileError> {
        self.file2tab_for(&mut Notes::nobody(), |_| NODE, path.as_ref())
    }

    /// What a file says about its table, without reading the rows: Erlang's `tabfile_info/1`. Fails
    /// if the file cannot be read, or does not begin as the file of a table does.
    pub fn tabfile_info(&self, path: impl AsRef<Path>) -> Result<TabfileInfo, FileError> {
        let path = path.as_ref();
        let opened = Opened::open(path).map_err(FileError::at(path))?;
        Ok(opened.info)
    }

    pub(in super::super) fn file2tab_for(
        &self,
        notes: &mut Notes<'_>,
        owner: impl Fn(Access) -> Caller,
        path: &Path,
    ) -> Result<Table, FileError> {
        let mut read = || {
            let opened = Opened::open(path)?;
            let (name, options) = (opened.info.name, opened.info.options.clone());
            let caller = owner(options.access);
            let shared = self.unlisted(caller, name, options)?;
            // The table and its rows appear in one step, if the whole file is good.
            let mut pending = notes.pending();
            shared.report_created(pending.notes());
            let mut within_bounds = Ok(());
            let mut of_a_bag = Vec::new();
            let read = opened.rows(&mut |term| {
                let Some(row) = shared.checked_row(term) else {
                    return false;
                };
                within_bounds = shared.check_bounds(row, "file2tab");
                if within_bounds.is_ok() && shared.options.kind == Kind::Bag {
                    of_a_bag.push(row.clone());
                } else if within_bounds.is_ok() {
                    shared.put(pending.notes(), row.clone(), Present::Goes);
                }
                within_bounds.is_ok()
            });
            within_bounds?;
            read?;
            shared.put_all(pending.notes(), of_a_bag);
            Ok(self.list(shared, "file2tab", |_| pending.happens())?)
        };
        read().map_err(FileError::at(path))
    }
}

impl Owner {
    /// As [`Tables::file2tab`], for a table that belongs to this owner.
    pub fn file2tab(&self, path: impl AsRef<Path>) -> Result<Table, FileError> {
        let notes = &mut Notes::nobody();
        self.tables
            .file2tab_for(notes, |_| self.number, path.as_ref())
    }

    /// As [`file2tab`](Self::file2tab), but a public table belongs to the node: for owners that
    /// make public tables for all callers, and other tables for themselves.
    ///
    /// ```
    /// use tremula_table::{Access, Options, Tables};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let tables = Tables::new();
    /// for (access, stays) in [(Access::Public, true), (Access::Private, false)] {
    ///     let path = folder.path().join("t.tab");
    ///     let written = tables.create("t", Options::new().access(access))?;
    ///     written.tab2file(&path, &[])?;
    ///     let owner = tables.owner();
    ///     let table = owner.file2tab_unless_public(&path)?;
    ///     assert_eq!(table.info().unwrap().access, access);
    ///     drop(owner);
    ///     assert_eq!(!table.is_deleted(), stays);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn file2tab_unless_public(&self, path: impl AsRef<Path>) -> Result<Table, FileError> {
        self.file2tab_by_access(&mut Notes::nobody(), path.as_ref())
    }

    pub(in super::super) fn file2tab_by_access(
        &self,
        notes: &mut Notes<'_>,
        path: &Path,
    ) -> Result<Table, FileError> {
        let owner = |access| match access {
            Access::Public => NODE,
            Access::Protected | Access::Private => self.number,
        };
        self.tables.file2tab_for(notes, owner, path)
    }
}
