//! Lengths, strings, and the items of a file.

use super::crc::crc64;
use super::lzf;
use super::skip;
use std::io::{self, Read};
use thiserror::Error;

/// The newest version that is known: Redis 7.2 and Valkey 8 write 11, Redis 7.0 writes 10.
pub(super) const NEWEST: u32 = 11;

/// The versions with a checksum at the end.
const FIRST_WITH_CHECKSUM: u32 = 5;

/// Bytes that a string may have: what Redis takes by default.
const MOST_STRING: u64 = 512 << 20;

/// What a file says beside its entries.
mod opcode {
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) const FUNCTIONS: u8 = 245;
    pub(super) const MODULE_NOTE: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQUENCY: u8 = 249;
    pub(super) const NOTE: u8 = 250;
    pub(super) const SIZES: u8 = 251;
    pub(super) const EXPIRES_MILLISECONDS: u8 = 252;
    pub(super) const EXPIRES_SECONDS: u8 = 253;
    pub(super) const DATABASE: u8 = 254;
    pub(super) const END: u8 = 255;
}

/// The type of a string's entry.
pub(super) const STRING: u8 = 0;

/// Why a file cannot be read.
#[derive(Debug, Error)]
pub enum RdbError {
    /// The system refused.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is none, or not what was written.
    #[error("damaged at offset {offset}: {what}")]
    Damaged {
        /// Where, in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// It was written by a newer version.
    #[error(
        "version {found}, and this program knows versions up to {NEWEST}: have a Redis of 7.2 or earlier, or a Valkey of 8 or earlier, write the file"
    )]
    Newer {
        /// The version of the file.
        found: u32,
    },
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// What follows is of this database.
    Database(u64),
    /// A string.
    Text {
        key: Vec<u8>,
        value: Vec<u8>,
        /// Milliseconds since 1970.
        expires: Option<u64>,
    },
    /// A key of another type.
    Other { kind: &'static str },
    /// Functions, or what a module has noted: no key.
    Besides { kind: &'static str },
}

/// A file that is being read.
pub(crate) struct Rdb<R> {
    from: R,
    version: u32,
    offset: u64,
    crc: u64,
    has_ended: bool,
}

impl<R: Read> Rdb<R> {
    /// Reads the head. `from` should have a buffer.
    pub(crate) fn new(from: R) -> Result<Self, RdbError> {
        let mut rdb = Self {
            from,
            version: 0,
            offset: 0,
            crc: 0,
            has_ended: false,
        };
        let head = rdb.bytes::<9>()?;
        let version = std::str::from_utf8(&head[5..]).ok();
        let version = version
            .filter(|_| &head[..5] == b"REDIS")
            .and_then(|digits| digits.parse().ok());
        let Some(version) = version else {
            rdb.offset = 0;
            return Err(rdb.damage("it does not begin with REDIS and a version"));
        };
        if version > NEWEST {
            return Err(RdbError::Newer { found: version });
        }
        rdb.version = version;
        Ok(rdb)
    }

    /// The next item; `None` at the end, when the checksum was right.
    pub(crate) fn next(&mut self) -> Result<Option<Item>, RdbError> {
        if self.has_ended {
            return Ok(None);
        }
        let mut expires = None;
        loop {
            let kind = self.byte()?;
            match kind {
                opcode::END => {
                    self.end()?;
                    return Ok(None);
                }
                opcode::DATABASE => return Ok(Some(Item::Database(self.length()?))),
                opcode::EXPIRES_MILLISECONDS => {
                    expires = Some(u64::from_le_bytes(self.bytes()?));
                }
                opcode::EXPIRES_SECONDS => {
                    let seconds = u32::from_le_bytes(self.bytes()?);
                    expires = Some(u64::from(seconds) * 1000);
                }
                opcode::NOTE => {
                    self.skip_string()?;
                    self.skip_string()?;
                }
                opcode::SIZES => {
                    self.length()?;
                    self.length()?;
                }
                opcode::SLOT_INFO => {
                    for _ in 0..3 {
                        self.length()?;
                    }
                }
                opcode::IDLE => {
                    self.length()?;
                }
                opcode::FREQUENCY => {
                    self.byte()?;
                }
                opcode::FUNCTIONS => {
                    self.skip_string()?;
                    return Ok(Some(Item::Besides { kind: "functions" }));
                }
                opcode::MODULE_NOTE => {
                    skip::module_note(self)?;
                    return Ok(Some(Item::Besides {
                        kind: "notes of modules",
                    }));
                }
                STRING => {
                    let key = self.string()?;
                    let value = self.string()?;
                    return Ok(Some(Item::Text {
                        key,
                        value,
                        expires,
                    }));
                }
                kind => {
                    let at = self.offset - 1;
                    let Some(name) = skip::name(kind) else {
                        self.offset = at;
                        return Err(self.damage(&format!("there is no type {kind}")));
                    };
                    self.skip_string()?;
                    skip::value(self, kind)?;
                    return Ok(Some(Item::Other { kind: name }));
                }
            }
        }
    }

    /// Gives back what it reads from, behind the file's end.
    /// Reads what has no head: a value by itself.
    pub(super) const fn of_value(from: R) -> Self {
        Self {
            from,
            version: NEWEST,
            offset: 0,
            crc: 0,
            has_ended: false,
        }
    }

    pub(crate) fn into_inner(self) -> R {
        self.from
    }

    fn end(&mut self) -> Result<(), RdbError> {
        self.has_ended = true;
        if self.version < FIRST_WITH_CHECKSUM {
            return Ok(());
        }
        let (offset, expected) = (self.offset, self.crc);
        let found = u64::from_le_bytes(self.bytes()?);
        // A server may be set to write none.
        if found != 0 && found != expected {
            let what = format!("the checksum is {found:016x} and should be {expected:016x}");
            return Err(RdbError::Damaged { offset, what });
        }
        Ok(())
    }

    pub(super) fn damage(&self, what: &str) -> RdbError {
        RdbError::Damaged {
            offset: self.offset,
            what: what.to_owned(),
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        self.crc = crc64(self.crc, bytes);
        self.offset += bytes.len() as u64;
    }

    fn failed(&self, error: io::Error) -> RdbError {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return self.damage("the file ends here");
        }
        error.into()
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let mut bytes = [0; N];
        let read = self.from.read_exact(&mut bytes);
        read.map_err(|error| self.failed(error))?;
        self.note(&bytes);
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, RdbError> {
        let [byte] = self.bytes()?;
        Ok(byte)
    }

    /// A length that is one: not the beginning of a string of another form.
    pub(super) fn length(&mut self) -> Result<u64, RdbError> {
        let at = self.offset;
        match self.length_or_form()? {
            Length::Bytes(length) => Ok(length),
            Length::Form(form) => Err(RdbError::Damaged {
                offset: at,
                what: format!("the form {form} of a string where a length should be"),
            }),
        }
    }

    fn length_or_form(&mut self) -> Result<Length, RdbError> {
        let at = self.offset;
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(match first >> 6 {
            0 => Length::Bytes(low.into()),
            1 => Length::Bytes(u64::from(low) << 8 | u64::from(self.byte()?)),
            2 if first == 0x80 => Length::Bytes(u32::from_be_bytes(self.bytes()?).into()),
            2 if first == 0x81 => Length::Bytes(u64::from_be_bytes(self.bytes()?)),
            2 => {
                let what = format!("the byte {first} is no length");
                return Err(RdbError::Damaged { offset: at, what });
            }
            _ => Length::Form(low),
        })
    }

    /// A string, in whichever form.
    pub(super) fn string(&mut self) -> Result<Vec<u8>, RdbError> {
        let at = self.offset;
        let damaged = |what: String| RdbError::Damaged { offset: at, what };
        let text = match self.length_or_form()? {
            Length::Bytes(length) => self.take(length)?,
            Length::Form(0) => i8::from_le_bytes(self.bytes()?).to_string().into_bytes(),
            Length::Form(1) => i16::from_le_bytes(self.bytes()?).to_string().into_bytes(),
            Length::Form(2) => i32::from_le_bytes(self.bytes()?).to_string().into_bytes(),
            Length::Form(3) => {
                let (short, long) = (self.length()?, self.length()?);
                if long > MOST_STRING {
                    return Err(damaged(too_long(long)));
                }
                let compressed = self.take(short)?;
                let long = usize::try_from(long).unwrap_or(usize::MAX);
                lzf::decompress(&compressed, long)
                    .ok_or_else(|| damaged("what is compressed is not whole".to_owned()))?
            }
            Length::Form(form) => return Err(damaged(format!("a string of the form {form}"))),
        };
        Ok(text)
    }

    /// Reads this number of bytes. Damage that looks like a length takes no memory for what is not
    /// there.
    fn take(&mut self, length: u64) -> Result<Vec<u8>, RdbError> {
        if length > MOST_STRING {
            return Err(self.damage(&too_long(length)));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.from).take(length).read_to_end(&mut bytes)?;
        self.note(&bytes);
        if (read as u64) < length {
            return Err(self.damage("the file ends here"));
        }
        Ok(bytes)
    }

    /// Reads over a string.
    pub(super) fn skip_string(&mut self) -> Result<(), RdbError> {
        let at = self.offset;
        let length = match self.length_or_form()? {
            Length::Bytes(length) => length,
            Length::Form(0) => 1,
            Length::Form(1) => 2,
            Length::Form(2) => 4,
            Length::Form(3) => {
                let short = self.length()?;
                self.length()?;
                short
            }
            Length::Form(form) => {
                let what = format!("a string of the form {form}");
                return Err(RdbError::Damaged { offset: at, what });
            }
        };
        self.skip(length)
    }

    pub(super) fn skip(&mut self, mut length: u64) -> Result<(), RdbError> {
        let mut buffer = [0; 8 << 10];
        while length > 0 {
            let count = usize::try_from(length).map_or(buffer.len(), |left| left.min(buffer.len()));
            let part = &mut buffer[..count];
            let read = self.from.read_exact(part);
            read.map_err(|error| self.failed(error))?;
            self.crc = crc64(self.crc, part);
            self.offset += count as u64;
            length -= count as u64;
        }
        Ok(())
    }
}

fn too_long(length: u64) -> String {
    format!("a string of {length} bytes, and no more than {MOST_STRING} may be")
}

/// What stands before a string.
enum Length {
    /// The number of its bytes.
    Bytes(u64),
    /// It is a number, or compressed.
    Form(u8),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these items, and its checksum.
    fn file(items: &[&[u8]]) -> Vec<u8> {
        let mut file = b"REDIS0010".to_vec();
        file.extend(items.concat());
        file.push(opcode::END);
        let crc = crc64(0, &file);
        file.extend(crc.to_le_bytes());
        file
    }

    fn read(file: &[u8]) -> Result<Vec<Item>, RdbError> {
        let mut rdb = Rdb::new(file)?;
        let mut all = Vec::new();
        while let Some(item) = rdb.next()? {
            all.push(item);
        }
        assert!(rdb.into_inner().is_empty());
        Ok(all)
    }

    fn text(key: &[u8], value: &[u8], expires: Option<u64>) -> Item {
        Item::Text {
            key: key.to_vec(),
            value: value.to_vec(),
            expires,
        }
    }

    #[test]
    fn strings_have_their_lengths_and_forms() {
        let long = vec![b'x'; 300];
        // 300 is 1 * 256 + 44.
        for length in [
            &[0x41, 44][..],
            &[0x80, 0, 0, 1, 44],
            &[0x81, 0, 0, 0, 0, 0, 0, 1, 44],
        ] {
            let entry = [&[STRING, 1, b'k'][..], length, &long].concat();
            let all = read(&file(&[&entry])).expect("it is whole");
            assert_eq!(all, [text(b"k", &long, None)], "{length:?}");
        }
        for (form, value) in [
            (&[0xc0, 0x85][..], "-123"),
            (&[0xc1, 0x39, 0x30], "12345"),
            (&[0xc2, 0xff, 0xff, 0xff, 0x7f], "2147483647"),
            (&[0xc3, 4, 5, 0, b'a', 0x40, 0], "aaaaa"),
        ] {
            let entry = [&[STRING, 1, b'k'][..], form].concat();
            let all = read(&file(&[&entry])).expect("it is whole");
            assert_eq!(all, [text(b"k", value.as_bytes(), None)]);
        }
    }

    #[test]
    fn what_stands_between_entries_is_of_the_next_one() {
        let all = read(&file(&[
            &[opcode::NOTE, 1, b'a', 1, b'b'],
            &[opcode::DATABASE, 0x40, 15],
            &[opcode::SIZES, 2, 1],
            &[opcode::EXPIRES_MILLISECONDS, 1, 2, 0, 0, 0, 0, 0, 0],
            &[opcode::IDLE, 9, opcode::FREQUENCY, 0xff],
            &[STRING, 1, b'a', 1, b'b'],
            &[STRING, 1, b'c', 0],
            &[opcode::EXPIRES_SECONDS, 2, 0, 0, 0],
            &[STRING, 1, b'd', 0],
            &[opcode::FUNCTIONS, 1, b'f'],
        ]));
        let expected = [
            Item::Database(15),
            text(b"a", b"b", Some(513)),
            text(b"c", b"", None),
            text(b"d", b"", Some(2000)),
            Item::Besides { kind: "functions" },
        ];
        assert_eq!(all.expect("it is whole"), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let whole = file(&[&[STRING, 1, b'a', 1, b'b']]);
        let mut changed = whole.clone();
        changed[13] ^= 1;
        for (bytes, told) in [
            (&b"REDIX0010"[..], "offset 0: it does not begin with REDIS"),
            (b"REDIS00x0", "offset 0: it does not begin with REDIS"),
            (b"REDIS0010\xc8", "offset 9: there is no type 200"),
            (b"REDIS0010\x00\x01", "offset 11: the file ends here"),
            (b"REDIS0010\x00\x82", "offset 10: the byte 130 is no length"),
            (b"REDIS0010\x00\xc4", "offset 10: a string of the form 4"),
            (
                b"REDIS0010\xfe\xc0\x01",
                "offset 10: the form 0 of a string",
            ),
            (
                b"REDIS0010\x00\x80\xff\xff\xff\xff",
                "a string of 4294967295 bytes",
            ),
            (&changed, "offset 15: the checksum is"),
            (&whole[..20], "offset 15: the file ends here"),
            (
                b"REDIS0012",
                "version 12, and this program knows versions up to 11",
            ),
        ] {
            let error = read(bytes).expect_err("it is damaged").to_string();
            assert!(error.contains(told), "{}: {error}", bytes.escape_ascii());
        }
        // A checksum of 0 is none.
        let unchecked = [&changed[..changed.len() - 8], &[0; 8]].concat();
        assert!(read(&unchecked).is_ok());
    }
}
