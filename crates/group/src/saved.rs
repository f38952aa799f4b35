//! The byte form of a point, which a node keeps beside its own log to start from.
//!
//! ```text
//!  magic 4 | position 8 | last record 8 | chain 16 | epoch 8 | incarnation 8 | next message 8 |
//!  is open 1 | length of the group's name 2 | name | length of the address 2 | address |
//!  checksum 4
//! ```
//!
//! Numbers are little-endian; the checksum is CRC-32C over everything before it.

use crate::position::{Epoch, Point, Position, Reign};
use tremula_log::{Chain, Sequence};

const MAGIC: [u8; 4] = *b"TRP1";

/// A point of a group, as a node keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedPoint {
    /// The group's name.
    pub group: String,
    /// The point.
    pub point: Point,
}

impl SavedPoint {
    /// As bytes, which [`decode`](Self::decode) reads.
    ///
    /// ```
    /// use tremula_group::{Point, SavedPoint};
    ///
    /// let saved = SavedPoint { group: "main".to_owned(), point: Point::default() };
    /// assert_eq!(SavedPoint::decode(&saved.encode()), Some(saved));
    /// ```
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Point {
            position,
            last,
            chain,
            reign,
        } = &self.point;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&position.get().to_le_bytes());
        bytes.extend_from_slice(&last.get().to_le_bytes());
        bytes.extend_from_slice(&chain.get().to_le_bytes());
        for number in [reign.epoch.get(), reign.incarnation, reign.next_message] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.push(reign.is_open.into());
        for text in [&self.group, &reign.address] {
            bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        sealed(bytes)
    }

    /// The point that these bytes are; `None` if they are none, or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = unsealed(bytes, MAGIC)?;
        let mut wide = || take(&mut rest).map(u64::from_le_bytes);
        let (position, last) = (Position::new(wide()?), Sequence::new(wide()?));
        let chain = Chain::new(u128::from_le_bytes(take(&mut rest)?));
        let mut wide = || take(&mut rest).map(u64::from_le_bytes);
        let (epoch, incarnation, next_message) = (Epoch::new(wide()?), wide()?, wide()?);
        let is_open = take::<1>(&mut rest)? != [0];
        let mut text = || {
            let length = u16::from_le_bytes(take(&mut rest)?);
            let (text, behind) = rest.split_at_checked(length.into())?;
            rest = behind;
            String::from_utf8(text.to_vec()).ok()
        };
        let (group, address) = (text()?, text()?);
        let reign = Reign {
            epoch,
            incarnation,
            address,
            next_message,
            is_open,
        };
        rest.is_empty().then_some(Self {
            group,
            point: Point {
                position,
                last,
                chain,
                reign,
            },
        })
    }
}

/// Appends the checksum of these bytes.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// What is between the magic and the checksum, if both are right.
pub(crate) fn unsealed(bytes: &[u8], magic: [u8; 4]) -> Option<&[u8]> {
    let (rest, crc) = bytes.split_last_chunk::<4>()?;
    let is_right = crc32c::crc32c(rest) == u32::from_le_bytes(*crc);
    rest.strip_prefix(&magic).filter(|_| is_right)
}

pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damaged_byte_and_every_cut_of_a_point_is_noticed() {
        let saved = SavedPoint {
            group: "main".to_owned(),
            point: Point {
                position: Position::new(1),
                last: Sequence::new(2),
                chain: Chain::new(3),
                reign: Reign {
                    epoch: Epoch::new(4),
                    incarnation: 5,
                    address: "127.0.0.1:6380".to_owned(),
                    next_message: 6,
                    is_open: true,
                },
            },
        };
        let bytes = saved.encode();
        assert_eq!(SavedPoint::decode(&bytes), Some(saved));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(SavedPoint::decode(&damaged), None, "byte {at}");
            assert_eq!(SavedPoint::decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
