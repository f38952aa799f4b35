//! Reading rows in each format. Every error has the number of the bad line.

use super::RowError;
use super::columns::{Columns, Fields};
use csv::{ByteRecord, ReaderBuilder, WriterBuilder};
use serde_json::Value as Json;
use std::io::{self, BufRead};

/// Takes a key and a value.
pub(super) type Store<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), RowError> + 'a;

/// Reads tab-separated columns. A value that is the rest of a line keeps its tabs.
pub(super) fn tsv(
    reader: impl BufRead,
    columns: &Columns,
    header: bool,
    store: &mut Store<'_>,
) -> Result<(), RowError> {
    let mut fields = None;
    let mut value = Vec::new();
    each_line(reader, |number, line| {
        let row: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
        let Some(found) = fields else {
            let is_header = header || columns.are_named();
            let found = columns.find(if is_header { &row } else { &[] });
            fields = Some(found.map_err(|what| RowError::line(number, what))?);
            return if is_header {
                Ok(())
            } else {
                store_tsv(number, &row, fields, &mut value, store)
            };
        };
        store_tsv(number, &row, Some(found), &mut value, store)
    })
}

fn store_tsv(
    number: u64,
    row: &[&[u8]],
    fields: Option<Fields>,
    value: &mut Vec<u8>,
    store: &mut Store<'_>,
) -> Result<(), RowError> {
    let Some(fields) = fields else {
        return Ok(());
    };
    check_width(number, row.len(), fields)?;
    value.clear();
    match fields.value {
        Some(column) => value.extend_from_slice(row[column]),
        None => {
            for (column, field) in row.iter().enumerate() {
                if column != fields.key {
                    value.extend_from_slice(field);
                    value.push(b'\t');
                }
            }
            value.pop();
        }
    }
    store(row[fields.key], value)
}

/// Checks that a row has the wanted columns.
fn check_width(line: u64, width: usize, fields: Fields) -> Result<(), RowError> {
    // Without a column for the value, there must be a column other than the key's.
    let wanted = 1 + match fields.value {
        Some(value) => fields.key.max(value),
        None => fields.key.max(1),
    };
    if width < wanted {
        let what = format!(
            "{}, expected at least {wanted}",
            count_columns(width as u64)
        );
        return Err(RowError::line(line, what));
    }
    Ok(())
}

fn count_columns(count: u64) -> String {
    match count {
        1 => "1 column".to_owned(),
        count => format!("{count} columns"),
    }
}

/// Reads comma-separated columns. A value that is the rest of a line is written as CSV again,
/// unless it is a single column, which is taken as it is.
pub(super) fn csv(
    reader: impl BufRead,
    columns: &Columns,
    header: bool,
    store: &mut Store<'_>,
) -> Result<(), RowError> {
    // The CSV reader reports rows of different widths, with the line.
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(reader);
    let mut record = ByteRecord::new();
    let mut fields = None;
    while reader.read_byte_record(&mut record).map_err(csv_error)? {
        let line = record.position().map_or(0, csv::Position::line);
        let row: Vec<&[u8]> = record.iter().collect();
        let found = match fields {
            Some(found) => found,
            None => {
                let is_header = header || columns.are_named();
                let found = columns
                    .find(if is_header { &row } else { &[] })
                    .map_err(|what| RowError::line(line, what))?;
                fields = Some(found);
                if is_header {
                    continue;
                }
                found
            }
        };
        check_width(line, row.len(), found)?;
        let key = row[found.key];
        match found.value {
            Some(column) => store(key, row[column]),
            None if row.len() == 2 => store(key, row[1 - found.key]),
            None => store(key, &csv_without(&row, found.key)?),
        }?;
    }
    Ok(())
}

fn csv_without(row: &[&[u8]], key: usize) -> Result<Vec<u8>, RowError> {
    let rest = row.iter().enumerate().filter(|(column, _)| *column != key);
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    writer
        .write_record(rest.map(|(_, field)| field))
        .map_err(csv_error)?;
    let mut value = writer
        .into_inner()
        .map_err(|error| io::Error::other(error.to_string()))?;
    value.pop_if(|byte| *byte == b'\n');
    Ok(value)
}

fn csv_error(error: csv::Error) -> RowError {
    let line = error.position().map_or(0, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(error) => RowError::Read(error),
        csv::ErrorKind::UnequalLengths {
            expected_len,
            len,
            pos,
        } => {
            let line = pos.map_or(line, |position| position.line());
            RowError::line(
                line,
                format!("{}, expected {expected_len} as before", count_columns(len)),
            )
        }
        other => RowError::line(line, format!("{other:?}")),
    }
}

/// Reads JSON objects. A key is a string or a number. A value that is a string is its text, and any
/// other value is JSON. Without a member for the value, the value is the object without its key.
pub(super) fn jsonl(
    reader: impl BufRead,
    columns: &Columns,
    store: &mut Store<'_>,
) -> Result<(), RowError> {
    let (key, value) = columns.members();
    each_line(reader, |number, line| {
        let fail = |what: String| RowError::line(number, what);
        let mut object = match serde_json::from_slice(line) {
            Ok(Json::Object(object)) => object,
            Ok(_) => return Err(fail("not a JSON object".to_owned())),
            Err(error) => {
                // The error has a line number of its own, which is always 1.
                let text = error.to_string();
                let what = text.split(" at line ").next().unwrap_or_default();
                return Err(fail(format!("column {}: {what}", error.column())));
            }
        };
        let key = match object.remove(key) {
            Some(Json::String(text)) => text,
            Some(Json::Number(number)) => number.to_string(),
            Some(_) => return Err(fail(format!("'{key}' is neither a string nor a number"))),
            None => return Err(fail(format!("no '{key}' for the key"))),
        };
        let value = match value {
            Some(name) => object
                .remove(name)
                .ok_or_else(|| fail(format!("no '{name}' for the value")))?,
            None => Json::Object(object),
        };
        match value {
            Json::String(text) => store(key.as_bytes(), text.as_bytes()),
            other => store(key.as_bytes(), other.to_string().as_bytes()),
        }
    })
}

/// Calls `each` with the number and the bytes of every line that is not empty.
fn each_line(
    mut reader: impl BufRead,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), RowError>,
) -> Result<(), RowError> {
    let mut line = Vec::new();
    let mut number = 0;
    while reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if !text.is_empty() {
            each(number, text)?;
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows = Vec<(String, String)>;

    fn collect(
        read: impl FnOnce(&mut Store<'_>) -> Result<(), RowError>,
    ) -> Result<Rows, (u64, String)> {
        let mut rows = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let result = read(&mut |key, value| {
            rows.push((text(key), text(value)));
            Ok(())
        });
        match result {
            Ok(()) => Ok(rows),
            Err(RowError::Line { line, what }) => Err((line, what)),
            Err(RowError::Read(error)) => panic!("{error}"),
            Err(RowError::Full) => panic!("every row was stored"),
        }
    }

    fn rows(rows: &[(&str, &str)]) -> Result<Rows, (u64, String)> {
        Ok(rows
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect())
    }

    fn read_tsv(text: &str, key: Option<&str>, value: Option<&str>) -> Result<Rows, (u64, String)> {
        collect(|store| tsv(text.as_bytes(), &Columns::new(key, value), false, store))
    }

    fn read_csv(text: &str, key: Option<&str>, value: Option<&str>) -> Result<Rows, (u64, String)> {
        collect(|store| csv(text.as_bytes(), &Columns::new(key, value), false, store))
    }

    fn read_json(
        text: &str,
        key: Option<&str>,
        value: Option<&str>,
    ) -> Result<Rows, (u64, String)> {
        collect(|store| jsonl(text.as_bytes(), &Columns::new(key, value), store))
    }

    fn fault(line: u64, what: &str) -> Result<Rows, (u64, String)> {
        Err((line, what.to_owned()))
    }

    #[test]
    fn tsv_takes_the_rest_or_a_column_as_the_value() {
        let text = "a\tb\tc\r\n\n\"d\te\tf\n";
        assert_eq!(
            read_tsv(text, None, None),
            rows(&[("a", "b\tc"), ("\"d", "e\tf")])
        );
        assert_eq!(
            read_tsv(text, Some("2"), None),
            rows(&[("b", "a\tc"), ("e", "\"d\tf")])
        );
        assert_eq!(read_tsv(text, Some("c"), Some("1")), rows(&[("f", "\"d")]));
        assert_eq!(
            read_tsv("a\tb\nc\n", None, None),
            fault(2, "1 column, expected at least 2")
        );
        assert_eq!(
            read_tsv(text, Some("z"), None),
            fault(1, "no column 'z'; there are 'a', 'b', 'c'")
        );
    }

    #[test]
    fn csv_reads_quotes_and_counts_lines() {
        let text = "id,name,note\n1,\"a,b\",\"x\ny\"\n2,c,\n";
        assert_eq!(
            read_csv(text, Some("id"), None),
            rows(&[("1", "\"a,b\",\"x\ny\""), ("2", "c,")])
        );
        assert_eq!(
            read_csv(text, Some("name"), Some("id")),
            rows(&[("a,b", "1"), ("c", "2")])
        );
        assert_eq!(read_csv("a,\"b\"\"\"\n", None, None), rows(&[("a", "b\"")]));
        assert_eq!(
            read_csv("a,\"b\nb\"\nc,d\ne\n", None, None),
            fault(4, "1 column, expected 2 as before")
        );
    }

    #[test]
    fn json_lines_take_members() {
        let text = "{\"key\":\"a\",\"n\":1,\"s\":\"t\"}\n\n{\"key\":2,\"n\":[1]}\n";
        assert_eq!(
            read_json(text, None, None),
            rows(&[("a", "{\"n\":1,\"s\":\"t\"}"), ("2", "{\"n\":[1]}")])
        );
        assert_eq!(
            read_json(text, None, Some("n")),
            rows(&[("a", "1"), ("2", "[1]")])
        );
        assert_eq!(
            read_json(text, None, Some("s")),
            fault(3, "no 's' for the value")
        );
        assert_eq!(
            read_json("\n{\"a\":1}\n", None, None),
            fault(2, "no 'key' for the key")
        );
        assert_eq!(read_json("[1]", None, None), fault(1, "not a JSON object"));
        assert_eq!(
            read_json("{\"key\":\"a\"}\n{\"key\":}\n", None, None),
            fault(2, "column 8: expected value")
        );
    }
}
