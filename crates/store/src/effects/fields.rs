//! The parts of a record's bytes.

use thiserror::Error;
use tremula_table::table::effect::EffectError;

pub(crate) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    write_number(text.len() as u64, out);
    out.extend_from_slice(text);
}

/// Bytes that are no record of this version.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no record of a change: {what}; was it written by a newer version?")]
pub struct BadRecord {
    what: String,
}

impl BadRecord {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

impl From<EffectError> for BadRecord {
    fn from(error: EffectError) -> Self {
        Self::new(format!("an effect of a table with {error}"))
    }
}

/// The fields of a record that have not been read yet.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn number(&mut self) -> Result<u64, BadRecord> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let Some((byte, rest)) = self.0.split_first() else {
                break;
            };
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadRecord::new("a number without its end"))
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8], BadRecord> {
        let length = self.number()?;
        let split = usize::try_from(length).ok();
        let split = split.and_then(|length| self.0.split_at_checked(length));
        let Some((text, rest)) = split else {
            let there = self.0.len();
            let what = format!("a length of {length} with {there} bytes behind it");
            return Err(BadRecord::new(what));
        };
        self.0 = rest;
        Ok(text)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, BadRecord> {
        let Some((byte, rest)) = self.0.split_first() else {
            return Err(BadRecord::new("a byte that is not there"));
        };
        self.0 = rest;
        Ok(*byte)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
