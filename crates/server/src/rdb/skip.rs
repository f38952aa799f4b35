//! Reading over the values of other types than strings.

use super::read::{Rdb, RdbError};
use std::io::Read;

/// The parts of values.
#[derive(Clone, Copy)]
enum Part {
    /// A string.
    Text,
    /// A number as text, with its length before it.
    OldDouble,
    /// Eight bytes.
    Double,
    /// A length, then a string.
    NumberedText,
}

/// What a type's values are made of.
#[derive(Clone, Copy)]
enum Shape {
    /// One string.
    Packed,
    /// A length, then each of these once for each element.
    Elements(&'static [Part]),
    /// A stream, of this version.
    Stream(u8),
    Module,
}

const TYPES: [(u8, &str, Shape); 19] = {
    use Part::{Double, NumberedText, OldDouble, Text};
    use Shape::{Elements, Module, Packed, Stream};
    [
        (1, "list", Elements(&[Text])),
        (2, "set", Elements(&[Text])),
        (3, "sorted set", Elements(&[Text, OldDouble])),
        (4, "hash", Elements(&[Text, Text])),
        (5, "sorted set", Elements(&[Text, Double])),
        (7, "value of a module", Module),
        (9, "hash", Packed),
        (10, "list", Packed),
        (11, "set", Packed),
        (12, "sorted set", Packed),
        (13, "hash", Packed),
        (14, "list", Elements(&[Text])),
        (15, "stream", Stream(1)),
        (16, "hash", Packed),
        (17, "sorted set", Packed),
        (18, "list", Elements(&[NumberedText])),
        (19, "stream", Stream(2)),
        (20, "set", Packed),
        (21, "stream", Stream(3)),
    ]
};

/// What a type is called; `None` if it is not known. The values of modules before Redis 4.0 say
/// nothing of where they end, so they are not known.
pub(super) fn name(kind: u8) -> Option<&'static str> {
    let found = TYPES.iter().find(|(one, _, _)| *one == kind);
    found.map(|(_, name, _)| *name)
}

/// Reads over a value.
pub(super) fn value<R: Read>(rdb: &mut Rdb<R>, kind: u8) -> Result<(), RdbError> {
    let found = TYPES.iter().find(|(one, _, _)| *one == kind);
    match found.map(|(_, _, shape)| *shape) {
        Some(Shape::Packed) => rdb.skip_string(),
        Some(Shape::Elements(parts)) => {
            for _ in 0..rdb.length()? {
                for one in parts {
                    part(rdb, *one)?;
                }
            }
            Ok(())
        }
        Some(Shape::Stream(version)) => stream(rdb, version),
        Some(Shape::Module) => {
            rdb.length()?;
            module_parts(rdb)
        }
        None => Err(rdb.damage(&format!("there is no type {kind}"))),
    }
}

fn part<R: Read>(rdb: &mut Rdb<R>, part: Part) -> Result<(), RdbError> {
    match part {
        Part::Text => rdb.skip_string(),
        Part::Double => rdb.skip(8),
        // Lengths from 253 on are NaN and the infinities.
        Part::OldDouble => match rdb.byte()? {
            253..=255 => Ok(()),
            length => rdb.skip(length.into()),
        },
        Part::NumberedText => {
            rdb.length()?;
            rdb.skip_string()
        }
    }
}

fn lengths<R: Read>(rdb: &mut Rdb<R>, count: usize) -> Result<(), RdbError> {
    for _ in 0..count {
        rdb.length()?;
    }
    Ok(())
}

fn stream<R: Read>(rdb: &mut Rdb<R>, version: u8) -> Result<(), RdbError> {
    for _ in 0..rdb.length()? {
        // The first entry's number, and the entries.
        rdb.skip_string()?;
        rdb.skip_string()?;
    }
    // How many entries there are, and the last one's number; later also the first one's, that of
    // the last one that was deleted, and how many were added.
    lengths(rdb, if version >= 2 { 8 } else { 3 })?;
    for _ in 0..rdb.length()? {
        // A group: its name, the last number; later also how many entries were read.
        rdb.skip_string()?;
        lengths(rdb, if version >= 2 { 3 } else { 2 })?;
        for _ in 0..rdb.length()? {
            // An entry that was delivered: its number, the time, how often.
            rdb.skip(24)?;
            rdb.length()?;
        }
        for _ in 0..rdb.length()? {
            // A consumer: its name, a time, later two; the numbers of its entries.
            rdb.skip_string()?;
            rdb.skip(if version >= 3 { 16 } else { 8 })?;
            for _ in 0..rdb.length()? {
                rdb.skip(16)?;
            }
        }
    }
    Ok(())
}

/// Reads over what a module has noted beside its keys.
pub(super) fn module_note<R: Read>(rdb: &mut Rdb<R>) -> Result<(), RdbError> {
    // The module, and when it is to read this: an opcode and its number.
    lengths(rdb, 3)?;
    module_parts(rdb)
}

fn module_parts<R: Read>(rdb: &mut Rdb<R>) -> Result<(), RdbError> {
    loop {
        match rdb.length()? {
            0 => return Ok(()),
            1 | 2 => {
                rdb.length()?;
            }
            3 => rdb.skip(4)?,
            4 => rdb.skip(8)?,
            5 => rdb.skip_string()?,
            other => return Err(rdb.damage(&format!("the part {other} of a value of a module"))),
        }
    }
}
