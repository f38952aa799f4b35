//! Files of records: JSON Lines, appended to and read back.

use super::Record;
use crate::LabError;
use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// How every line begins.
const BEGINNING: &[u8] = b"{\"experiment\":";

/// A file that records are appended to, a line each.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: File,
    cut_off: usize,
}

impl RecordFile {
    /// Opens the file for appending, creating it if necessary. If its last line is the beginning of
    /// a record, because a program was killed while it wrote, that line is cut off.
    ///
    /// # Errors
    ///
    /// The file cannot be opened for reading and writing, or its last line is unfinished and is not
    /// the beginning of a record: then the user has named a wrong file.
    pub fn open(path: &Path) -> Result<Self, LabError> {
        let failed = |error| LabError::Write {
            path: path.to_owned(),
            error,
        };
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).open(path);
        let mut file = opened.map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let last = last_line(&bytes);
        let mut cut_off = 0;
        if !last.is_empty() {
            match serde_json::from_slice::<Record>(last) {
                // Only the line end is missing.
                Ok(_) => file.write_all(b"\n").map_err(failed)?,
                Err(_) if is_torn(last) => {
                    cut_off = last.len();
                    let kept = bytes.len() - cut_off;
                    file.set_len(kept as u64).map_err(failed)?;
                    file.seek(SeekFrom::End(0)).map_err(failed)?;
                }
                Err(error) => {
                    return Err(LabError::NoRecord {
                        path: path.to_owned(),
                        line: bytes.split(|byte| *byte == b'\n').count(),
                        error,
                    });
                }
            }
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            cut_off,
        })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes of an unfinished record were cut off when the file was opened.
    #[must_use]
    pub const fn cut_off(&self) -> usize {
        self.cut_off
    }

    /// Appends the records in one write.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn append(&mut self, records: &[Record]) -> Result<(), LabError> {
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record).expect("a record is plain data");
            lines.push(b'\n');
        }
        self.file
            .write_all(&lines)
            .map_err(|error| LabError::Write {
                path: self.path.clone(),
                error,
            })
    }
}

/// What follows the last line end.
fn last_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    &bytes[end.map_or(0, |end| end + 1)..]
}

/// Whether an unfinished line can be the beginning of a record.
fn is_torn(line: &[u8]) -> bool {
    line.starts_with(BEGINNING) || BEGINNING.starts_with(line)
}

/// The records of a file, in order. An unfinished last line, left by a program that was killed
/// while it wrote, does not count.
///
/// # Errors
///
/// The file cannot be read, or has a line that is no record.
pub fn read(path: &Path) -> Result<Vec<Record>, LabError> {
    let bytes = fs::read(path).map_err(|error| LabError::Read {
        path: path.to_owned(),
        error,
    })?;
    let mut records = Vec::new();
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match serde_json::from_slice(line) {
            Ok(record) => records.push(record),
            Err(_) if !line.ends_with(b"\n") && is_torn(line) => break,
            Err(error) => {
                return Err(LabError::NoRecord {
                    path: path.to_owned(),
                    line: number + 1,
                    error,
                });
            }
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    /// A file with two records and then this text.
    fn file_with(end: &str) -> (tempfile::TempDir, PathBuf, [Record; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.jsonl");
        let records = ["a", "b"].map(|engine| some_record("lookup", 1, engine, 1.0));
        RecordFile::open(&path).unwrap().append(&records).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text + end).unwrap();
        (folder, path, records)
    }

    #[test]
    fn a_file_is_appended_to_and_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.jsonl");
        let records = ["a", "b", "c"].map(|engine| some_record("lookup", 1, engine, 0.1 + 0.2));
        RecordFile::open(&path)
            .unwrap()
            .append(&records[..1])
            .unwrap();
        RecordFile::open(&path)
            .unwrap()
            .append(&records[1..])
            .unwrap();
        assert_eq!(read(&path).unwrap(), records);
    }

    #[test]
    fn half_of_a_record_is_cut_off_and_the_others_stay() {
        for half in [
            "{",
            "{\"experiment\":\"ycsb\",\"worklo",
            "{\"experiment\":3}",
        ] {
            let (_folder, path, [first, second]) = file_with(half);
            assert_eq!(read(&path).unwrap(), [first.clone(), second.clone()]);
            let mut file = RecordFile::open(&path).unwrap();
            assert_eq!(file.cut_off(), half.len());
            file.append(std::slice::from_ref(&first)).unwrap();
            assert_eq!(read(&path).unwrap(), [first.clone(), second, first]);
        }
    }

    #[test]
    fn a_record_of_which_only_the_end_of_the_line_is_missing_stays() {
        let (_folder, path, [first, second]) = file_with("");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.trim_end()).unwrap();
        let mut file = RecordFile::open(&path).unwrap();
        assert_eq!(file.cut_off(), 0);
        file.append(std::slice::from_ref(&first)).unwrap();
        assert_eq!(read(&path).unwrap(), [first.clone(), second, first]);
    }

    #[test]
    fn a_file_of_something_else_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letter.txt");
        fs::write(&path, "Dear Sir,\nyours").unwrap();
        let error = RecordFile::open(&path).unwrap_err().to_string();
        assert!(
            error.contains("letter.txt', line 2, is no record"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "Dear Sir,\nyours");
    }

    #[test]
    fn a_line_that_is_no_record_is_named() {
        let (_folder, path, _) = file_with("{\"engine\":3}\n");
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.contains("records.jsonl', line 3, is no record"),
            "{error}"
        );
        let error = read(Path::new("/no/such/file")).unwrap_err();
        assert!(
            error.to_string().contains("cannot read '/no/such/file'"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = RecordFile::open(Path::new("/no/such/folder/x")).unwrap_err();
        assert!(error.to_string().contains("/no/such/folder/x"), "{error}");
    }
}
