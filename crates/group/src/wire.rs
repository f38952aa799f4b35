//! What a message in the shared log looks like.
//!
//! ```text
//!  magic 3 | version 1 | kind 1 | incarnation 8 | number 8 | epoch 8 | in term 8 |
//!  last record before 8 | chain before 16 | chain after 16 | records 4 | part 4 | parts 4 |
//!  checksum 4 | body
//! ```
//!
//! Numbers are little-endian. The checksum is CRC-32C over everything but itself. The chains are
//! those of the whole batch in each of its parts. The body of a claim is the leader's address; a
//! renewal has none; a batch's is its part of the bytes of a `Batch`.

use crate::position::{Epoch, MessageId};
use crate::refusal::Unreadable;
use tremula_log::{Chain, Sequence};

/// Bytes before the body.
pub(crate) const HEADER_BYTES: usize = 3 + 1 + 1 + 4 * 8 + 8 + 2 * 16 + 4 * 4;

const MAGIC: [u8; 3] = *b"TRG";
const VERSION: u8 = 1;

/// Bytes that an address may have.
pub(crate) const MOST_ADDRESS_BYTES: usize = 1024;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A node becomes the leader.
    Claim,
    /// The leader says that it is there.
    Renewal,
    /// A batch, or a part of one.
    Part,
}

/// The fixed fields of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) id: MessageId,
    pub(crate) epoch: Epoch,
    /// The message's number within its term; the claim is 0.
    pub(crate) in_term: u64,
    /// The last record before the message.
    pub(crate) before: Sequence,
    pub(crate) chain_before: Chain,
    pub(crate) chain_after: Chain,
    /// The records of the whole batch.
    pub(crate) records: u32,
    pub(crate) part: u32,
    pub(crate) parts: u32,
}

impl Header {
    /// The last record behind the whole batch.
    pub(crate) const fn after(&self) -> Sequence {
        self.before.plus(self.records as u64)
    }

    pub(crate) const fn is_last_part(&self) -> bool {
        self.part + 1 == self.parts
    }

    /// The message with this body.
    pub(crate) fn encode(&self, body: &[u8]) -> Vec<u8> {
        let kind = match self.kind {
            Kind::Claim => 1,
            Kind::Renewal => 2,
            Kind::Part => 3,
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, kind]);
        let numbers = [
            self.id.incarnation,
            self.id.number,
            self.epoch.get(),
            self.in_term,
            self.before.get(),
        ];
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for chain in [self.chain_before, self.chain_after] {
            bytes.extend_from_slice(&chain.get().to_le_bytes());
        }
        for number in [self.records, self.part, self.parts] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes), body);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    /// The header and the body of a message.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Unreadable> {
        let mut rest = bytes;
        let form = Unreadable::Form;
        if take::<3>(&mut rest) != Some(MAGIC) || take::<1>(&mut rest) != Some([VERSION]) {
            return Err(form);
        }
        let kind = match take::<1>(&mut rest) {
            Some([1]) => Kind::Claim,
            Some([2]) => Kind::Renewal,
            Some([3]) => Kind::Part,
            _ => return Err(form),
        };
        let mut wide = || take(&mut rest).map(u64::from_le_bytes).ok_or(form);
        let id = MessageId {
            incarnation: wide()?,
            number: wide()?,
        };
        let (epoch, in_term, before) = (wide()?, wide()?, wide()?);
        let mut chain = || take(&mut rest).map(u128::from_le_bytes).ok_or(form);
        let (chain_before, chain_after) = (chain()?, chain()?);
        let mut narrow = || take(&mut rest).map(u32::from_le_bytes).ok_or(form);
        let (records, part, parts, crc) = (narrow()?, narrow()?, narrow()?, narrow()?);
        let head = &bytes[..HEADER_BYTES - 4];
        if crc32c::crc32c_append(crc32c::crc32c(head), rest) != crc {
            return Err(Unreadable::Damaged);
        }
        let is_whole = parts == 1 && records == 0 && chain_before == chain_after;
        if part >= parts || (kind != Kind::Part && !is_whole) {
            return Err(form);
        }
        let header = Self {
            kind,
            id,
            epoch: Epoch::new(epoch),
            in_term,
            before: Sequence::new(before),
            chain_before: Chain::new(chain_before),
            chain_after: Chain::new(chain_after),
            records,
            part,
            parts,
        };
        Ok((header, rest))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: Kind::Part,
            id: MessageId {
                incarnation: 7,
                number: 8,
            },
            epoch: Epoch::new(9),
            in_term: 10,
            before: Sequence::new(11),
            chain_before: Chain::new(12),
            chain_after: Chain::new(13),
            records: 14,
            part: 1,
            parts: 3,
        }
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let bytes = header().encode(b"body");
        assert_eq!(bytes.len(), HEADER_BYTES + 4);
        assert_eq!(Header::decode(&bytes), Ok((header(), &b"body"[..])));
    }

    #[test]
    fn every_damaged_byte_and_every_cut_is_noticed() {
        let bytes = header().encode(b"body");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Header::decode(&damaged).is_err(), "byte {at}");
            assert!(Header::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
