//! `tab2file`.

use super::error::{FileError, FileProblem};
use super::properties::{ExtendedInfo, TabfileInfo};
use super::records::record_checksum;
use super::{FileProblem as Problem, MAGIC};
use crate::table::Table;
use crate::term::{Atom, Term, TooLarge};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use tempfile::NamedTempFile;
use tremula_index::Direction;

/// The most rows of a record: enough that the record's head does not matter beside them, and few
/// enough that a reader holds little at once.
pub(super) const ROWS_OF_A_RECORD: usize = 256;

impl Table {
    /// Writes the table to a file, in place of an existing one: Erlang's `tab2file/2`. Consistency:
    /// see [search](crate::table#consistency). When it returns, the file is on the disk; if it
    /// fails, an existing file is as it was.
    ///
    /// ```
    /// use tremula_table::{Options, Tables};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("ages.tab");
    /// let tables = Tables::new();
    /// let ages = tables.create("ages", Options::new())?;
    /// ages.insert("[{ada, 36}, {alan, 41}]".parse()?)?;
    /// ages.tab2file(&path, &[])?;
    ///
    /// assert_eq!(tables.tabfile_info(&path)?.size, 2);
    /// let again = tables.file2tab(&path)?;
    /// assert_eq!(again.size()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller [may not read](crate::table#errors), or the system cannot write the file.
    pub fn tab2file(
        &self,
        path: impl AsRef<Path>,
        extended_info: &[ExtendedInfo],
    ) -> Result<(), FileError> {
        let path = path.as_ref();
        self.write_file(path, extended_info)
            .map_err(FileError::at(path))
    }

    fn write_file(&self, path: &Path, extended_info: &[ExtendedInfo]) -> Result<(), Problem> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let size = self.size()?;
        let file = new_file(folder)?;
        let mut out = BufWriter::new(file);
        out.write_all(MAGIC)?;
        let info = TabfileInfo::of(self, size, extended_info);
        write_record(&mut out, &info.to_record())?;
        let mut count = 0_u64;
        let mut rows = Vec::with_capacity(ROWS_OF_A_RECORD);
        let mut written = Ok(());
        self.each_row("tab2file", Direction::Ascending, &mut |row| {
            rows.push(Term::from(row));
            count += 1;
            if rows.len() < ROWS_OF_A_RECORD {
                return ControlFlow::Continue(());
            }
            written = write_record(&mut out, &Term::list(std::mem::take(&mut rows)));
            if written.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        written?;
        if !rows.is_empty() {
            write_record(&mut out, &Term::list(rows))?;
        }
        let end = Term::tuple([Atom::END.into(), Term::from(count)]);
        write_record(&mut out, &end)?;
        let file = out
            .into_inner()
            .map_err(|error| Problem::System(error.into_error()))?;
        file.as_file().sync_all()?;
        file.persist(path)
            .map_err(|error| Problem::System(error.error))?;
        // Puts the new name on the disk, too. Only some systems can open a folder.
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(())
    }
}

/// A file in the same folder as the final one, with the permissions of any new file. It is removed
/// unless it becomes the final one.
fn new_file(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tab2file-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

fn write_record(out: &mut impl Write, term: &Term) -> Result<(), FileProblem> {
    let payload = term.to_etf()?;
    let length = u32::try_from(payload.len()).map_err(|_| TooLarge {
        what: "record",
        length: payload.len(),
    })?;
    let length = length.to_be_bytes();
    out.write_all(&length)?;
    out.write_all(&record_checksum(length, &payload).to_be_bytes())?;
    out.write_all(&payload)?;
    Ok(())
}
