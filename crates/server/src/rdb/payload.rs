//! One value as `DUMP` has it: its type, its bytes as in a file, the version, the checksum.

use super::crc::crc64;
use super::read::{NEWEST, Rdb, STRING};
use super::skip;

/// The version that Redis 7.0 writes, which every later one reads.
const VERSION: u16 = 10;

/// Bytes of the version and the checksum.
const ENVELOPE: usize = 10;

/// Why a payload is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadPayload {
    /// It is too short, of a newer version, or its checksum is another one.
    Envelope,
    /// It holds a value of this type.
    Kind(&'static str),
    /// It is not what any server writes.
    Format,
}

/// A string as a payload.
pub(crate) fn payload(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 1 + 9 + ENVELOPE);
    out.push(STRING);
    match whole_number(value) {
        Some(number) => write_number(number, &mut out),
        None => {
            write_length(value.len(), &mut out);
            out.extend_from_slice(value);
        }
    }
    out.extend_from_slice(&VERSION.to_le_bytes());
    let crc = crc64(0, &out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// The number that the text is, if it is written as such a number always is.
fn whole_number(text: &[u8]) -> Option<i32> {
    let number: i32 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

fn write_number(number: i32, out: &mut Vec<u8>) {
    if let Ok(number) = i8::try_from(number) {
        out.push(0xc0);
        out.extend_from_slice(&number.to_le_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        out.push(0xc1);
        out.extend_from_slice(&number.to_le_bytes());
    } else {
        out.push(0xc2);
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn write_length(length: usize, out: &mut Vec<u8>) {
    match length {
        // Below 64.
        0..0x40 => out.push(length as u8),
        // Fourteen bits.
        0x40..0x4000 => out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes()),
        _ => match u32::try_from(length) {
            Ok(length) => {
                out.push(0x80);
                out.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                out.push(0x81);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        },
    }
}

/// The string that a payload holds.
pub(crate) fn read_payload(payload: &[u8]) -> Result<Vec<u8>, BadPayload> {
    let at = payload.len().checked_sub(ENVELOPE);
    let (body, envelope) = payload.split_at(at.ok_or(BadPayload::Envelope)?);
    let (version, crc) = envelope.split_at(2);
    let signed = &payload[..payload.len() - crc.len()];
    let version = u32::from(version[0]) | u32::from(version[1]) << 8;
    if version > NEWEST || crc64(0, signed).to_le_bytes() != *crc {
        return Err(BadPayload::Envelope);
    }
    let (kind, mut rest) = body.split_first().ok_or(BadPayload::Format)?;
    if *kind != STRING {
        return Err(skip::name(*kind).map_or(BadPayload::Format, BadPayload::Kind));
    }
    let value = Rdb::of_value(&mut rest).string();
    let value = value.map_err(|_| BadPayload::Format)?;
    match rest {
        [] => Ok(value),
        _ => Err(BadPayload::Format),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(body: &[u8], version: u16) -> Vec<u8> {
        let mut out = [body, &version.to_le_bytes()].concat();
        let crc = crc64(0, &out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// As a Redis 7.0 has written them.
    #[test]
    fn payloads_are_those_of_redis() {
        for (value, written) in [
            (
                &b"10"[..],
                &b"\x00\xc0\x0a\x0a\x00\x6e\x9f\x57\x45\x0e\xae\x63\xbb"[..],
            ),
            (
                &b"foo"[..],
                &b"\x00\x03\x66\x6f\x6f\x0a\x00\x73\x49\x39\xdb\x4d\xc1\xba\x97"[..],
            ),
        ] {
            assert_eq!(payload(value), written);
        }
    }

    #[test]
    fn what_is_no_payload_of_a_string_is_refused() {
        for (payload, why) in [
            (b"".to_vec(), BadPayload::Envelope),
            (vec![0; 9], BadPayload::Envelope),
            (sealed(b"\x00\x01a", 99), BadPayload::Envelope),
            (sealed(b"", 10), BadPayload::Format),
            (sealed(b"\x00", 10), BadPayload::Format),
            (sealed(b"\x00\x02a", 10), BadPayload::Format),
            (sealed(b"\x00\x01ab", 10), BadPayload::Format),
            (sealed(b"\x00\x80\xff\xff\xff\xff", 10), BadPayload::Format),
            (sealed(b"\x00\xc3\x02\x05ab", 10), BadPayload::Format),
            (sealed(b"\xee\x01a", 10), BadPayload::Format),
            (sealed(b"\x01\x01a", 10), BadPayload::Kind("list")),
        ] {
            assert_eq!(read_payload(&payload), Err(why), "{payload:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_no_damage_is(
            value in prop::collection::vec(any::<u8>(), 0..20_000),
            number: i32,
            at: prop::sample::Index,
            bit in 0..8_u32,
        ) {
            for value in [value, number.to_string().into_bytes()] {
                let mut written = payload(&value);
                prop_assert_eq!(read_payload(&written), Ok(value));
                let at = at.index(written.len());
                written[at] ^= 1_u8 << bit;
                prop_assert_eq!(read_payload(&written), Err(BadPayload::Envelope));
            }
        }

        #[test]
        fn any_bytes_are_a_payload_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_payload(&bytes);
            let _ = read_payload(&sealed(&bytes, 10));
        }
    }
}
