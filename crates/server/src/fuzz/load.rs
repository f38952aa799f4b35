//! Files for `--load`.

use crate::load::{Columns, Format, RowError, read};
use std::io::BufReader;

/// A file: a byte chooses the format and the columns.
///
/// The file means the same however it is read. An error names one of its lines. Keys and values
/// are, together, hardly longer than the file.
///
/// # Panics
///
/// One of these does not hold.
pub fn load(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else {
        return;
    };
    let choice = usize::from(*choice);
    let format = [Format::Tsv, Format::Csv, Format::Jsonl][choice % 3];
    let columns = [None, Some("1"), Some("2"), Some("a"), Some("")];
    let (key, value) = (columns[choice / 3 % 5], columns[choice / 15 % 5]);
    let has_header = choice / 75 % 2 == 1;
    let columns = Columns::new(key, value);
    let rows_of = |capacity: usize| {
        let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut store = |key: &[u8], value: &[u8]| {
            rows.push((key.to_vec(), value.to_vec()));
            Ok(())
        };
        let reader = BufReader::with_capacity(capacity, file);
        let result = read(reader, format, &columns, has_header, &mut store);
        let error = result.err().map(|error| match error {
            RowError::Line { line, what } => (line, what),
            RowError::Read(error) => panic!("bytes can be read: {error}"),
            RowError::Full => panic!("every row was stored"),
        });
        (rows, error)
    };
    let (rows, error) = rows_of(file.len().max(1));
    assert_eq!(rows_of(1), (rows.clone(), error.clone()));
    let ends_line = |byte: &&u8| matches!(byte, b'\n' | b'\r');
    let lines = 1 + file.iter().filter(ends_line).count();
    if let Some((line, what)) = error {
        assert!((1..=lines as u64).contains(&line), "line {line}: {what}");
        assert!(!what.is_empty());
    }
    assert!(rows.len() <= lines);
    let bytes: usize = rows
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    // A character of JSON may become an escape of six, and a field of CSV may get quotes.
    assert!(
        bytes <= 6 * file.len() + 4 * rows.len(),
        "{bytes} bytes of {}",
        file.len()
    );
}
