//! What the page says of one record, wherever it appears.

use super::{markup::number, study::Words};
use crate::{record::Record, statistics::Spread};

/// The least and the greatest run, if there are several.
pub(super) fn spread(record: &Record) -> Option<(f64, f64)> {
    let several = record.runs.len() > 1;
    let spread = Spread::of(&record.runs).filter(|_| several)?;
    Some((spread.least, spread.most))
}

/// Whether more threads worked than the machine runs at the same time.
pub(super) fn is_oversubscribed(record: &Record) -> bool {
    record.threads > record.made_by.machine.cores
}

/// The text shown when the reader points at a record.
pub(super) fn title(record: &Record, words: Words) -> String {
    let mut text = format!(
        "{}, {} {}: {} million {} per second",
        record.engine,
        record.threads,
        words.threads,
        number(record.mops),
        words.operations
    );
    if let Some((least, most)) = spread(record) {
        text += &format!(
            " ({} to {} in {} runs)",
            number(least),
            number(most),
            record.runs.len()
        );
    }
    if record.is_disturbed() {
        text += "; disturbed by other work";
    }
    if is_oversubscribed(record) {
        text += &format!("; more {} than cores", words.threads);
    }
    text
}
