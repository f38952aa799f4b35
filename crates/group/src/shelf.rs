//! Snapshots of a group in a place that all its nodes reach: what is known of each of them, when
//! the next one is due and who makes it, and how far the shared log may be cut.
//!
//! ```text
//!  the shared log    ....|----------------------|-----------------|----------------->
//!                        cut here               |                 |
//!  snapshots             second newest ---------+     newest -----+
//! ```
//!
//! 1. A snapshot has a manifest only if it was read back from that place and loaded.
//! 2. The shared log keeps everything from the message with which the second newest snapshot ends:
//!    if the newest one proves to be damaged, that one does.
//! 3. It also keeps what a node that was heard of lately needs.

use crate::position::Position;
use crate::saved::{SavedPoint, sealed, take, unsealed};
use tremula_log::{Chain, Sequence, Tail};

const MAGIC: [u8; 4] = *b"TRM1";

/// Snapshots that are kept.
const KEPT: usize = 2;

/// What is known of a snapshot of a group. It lies in a *package*: a snapshot of the state, and
/// behind it the batches of the own log of the node that has made it, from one that is not behind
/// the snapshot's beginning up to the point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The group, and the point up to which the batches go.
    pub saved: SavedPoint,
    /// Where the batches begin.
    pub log: Tail,
    /// The record with which the snapshot of the state begins.
    pub begins: Sequence,
    /// The bytes of that snapshot.
    pub snapshot_bytes: u64,
    /// The bytes of the package.
    pub bytes: u64,
    /// The CRC-32C of the package.
    pub checksum: u32,
}

impl Manifest {
    /// The last message of the shared log that the snapshot has.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.saved.point.position
    }

    /// As bytes, which [`decode`](Self::decode) reads.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let saved = self.saved.encode();
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(saved.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&saved);
        bytes.extend_from_slice(&self.log.chain.get().to_le_bytes());
        let numbers = [
            self.log.next.get(),
            self.begins.get(),
            self.snapshot_bytes,
            self.bytes,
        ];
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.checksum.to_le_bytes());
        sealed(bytes)
    }

    /// The manifest that these bytes are; `None` if they are none, or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = unsealed(bytes, MAGIC)?;
        let length = u32::from_le_bytes(take(&mut rest)?);
        let (saved, mut rest) = rest.split_at_checked(length as usize)?;
        let saved = SavedPoint::decode(saved)?;
        let chain = Chain::new(u128::from_le_bytes(take(&mut rest)?));
        let mut wide = || take(&mut rest).map(u64::from_le_bytes);
        let (next, begins) = (Sequence::new(wide()?), Sequence::new(wide()?));
        let (snapshot_bytes, bytes) = (wide()?, wide()?);
        let checksum = u32::from_le_bytes(take(&mut rest)?);
        rest.is_empty().then_some(Self {
            saved,
            log: Tail { next, chain },
            begins,
            snapshot_bytes,
            bytes,
            checksum,
        })
    }
}

/// What of the shared log there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Its first message.
    pub first: Position,
    /// Its last message.
    pub last: Position,
    /// The bytes of all.
    pub bytes: u64,
}

/// The snapshots of a group that have a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shelf {
    /// Their names and manifests, the newest first.
    all: Vec<(String, Manifest)>,
}

impl Shelf {
    /// The snapshots of these names.
    #[must_use]
    pub fn new(mut all: Vec<(String, Manifest)>) -> Self {
        all.sort_by(|(name, one), (other_name, other)| {
            (other.position(), other_name).cmp(&(one.position(), name))
        });
        Self { all }
    }

    /// The newest snapshot.
    #[must_use]
    pub fn newest(&self) -> Option<&Manifest> {
        self.all.first().map(|(_, manifest)| manifest)
    }

    /// Whether so much was appended behind the newest snapshot that the next one is to be made:
    /// this number of bytes, and no less than the newest one has. 0 makes none.
    ///
    /// The log is taken to have as many bytes a message everywhere.
    #[must_use]
    pub fn is_due(&self, log: Extent, every: u64) -> bool {
        let messages = log.last.get().saturating_sub(log.first.get()) + 1;
        let newest = self.newest();
        let begin = newest.map_or(0, |newest| newest.position().get());
        let behind = log.last.get().saturating_sub(begin).min(messages);
        let bytes = u128::from(log.bytes) * u128::from(behind) / u128::from(messages);
        let least = newest.map_or(every, |newest| newest.bytes.max(every));
        every > 0 && bytes >= u128::from(least)
    }

    /// The first message that the shared log has to keep, if nodes that were heard of lately need
    /// those from `needs` on: each the message that its own point ends with.
    #[must_use]
    pub fn keep_from(&self, needs: impl IntoIterator<Item = Position>) -> Position {
        let Some((_, oldest)) = self.all.get(KEPT - 1) else {
            return Position::NONE;
        };
        let needs = needs.into_iter();
        needs.fold(oldest.position(), Position::min)
    }

    /// The names of the snapshots that are kept.
    pub fn kept(&self) -> impl Iterator<Item = &str> {
        self.all.iter().take(KEPT).map(|(name, _)| name.as_str())
    }

    /// The snapshots from which a log that begins with this message leads on, the newest first.
    pub fn leading_to(&self, first: Position) -> impl Iterator<Item = (&str, &Manifest)> {
        let all = self.all.iter();
        all.filter(move |(_, manifest)| manifest.position().next() >= first)
            .map(|(name, manifest)| (name.as_str(), manifest))
    }
}

/// What a node has said of itself lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Whether it leads.
    pub leads: bool,
    /// Whether it could make a snapshot.
    pub serves: bool,
    /// The message that its own point ends with: from there it reads if it starts again.
    pub needs: Position,
}

impl Peer {
    /// As text, without the name.
    #[must_use]
    pub fn encode(&self) -> String {
        let standing = match (self.serves, self.leads) {
            (true, true) => "leader",
            (true, false) => "follower",
            (false, _) => "behind",
        };
        format!("{standing} {}", self.needs)
    }

    /// The node of this name that has said so.
    #[must_use]
    pub fn decode(name: &str, text: &str) -> Option<Self> {
        let (standing, needs) = text.split_once(' ')?;
        Some(Self {
            name: name.to_owned(),
            leads: standing == "leader",
            serves: ["leader", "follower"].contains(&standing),
            needs: Position::new(needs.parse().ok()?),
        })
    }
}

/// The node that makes the next snapshot: a follower, so that the leader's processors and disk are
/// left to its clients; the leader only if it is alone. Each node comes to the same.
#[must_use]
pub fn maker(peers: &[Peer]) -> Option<&str> {
    let able = peers.iter().filter(|peer| peer.serves);
    let first = able.min_by_key(|peer| (peer.leads, &peer.name));
    first.map(|peer| peer.name.as_str())
}

/// What a node knows of its group's snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The newest snapshot: its last message, its last record, and its bytes.
    pub newest: Option<(Position, Sequence, u64)>,
    /// The first message of the shared log, as far as it was asked for.
    pub first: Position,
    /// Snapshots that this node has made since it started.
    pub made: u64,
    /// Snapshots that this node has begun since it started, and not finished.
    pub failed: u64,
    /// What went wrong last, if nothing has gone well since.
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Point;

    fn manifest(position: u64, bytes: u64) -> Manifest {
        let point = Point {
            position: Position::new(position),
            last: Sequence::new(position * 10),
            ..Point::default()
        };
        Manifest {
            saved: SavedPoint {
                group: "main".to_owned(),
                point,
            },
            log: Tail::START,
            begins: Sequence::new(3),
            snapshot_bytes: 4,
            bytes,
            checksum: 6,
        }
    }

    fn shelf(positions: &[u64]) -> Shelf {
        let named = |position: &u64| (format!("s{position}"), manifest(*position, 100));
        Shelf::new(positions.iter().map(named).collect())
    }

    #[test]
    fn every_damaged_byte_and_every_cut_of_a_manifest_is_noticed() {
        let manifest = manifest(7, 5);
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Some(manifest));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Manifest::decode(&damaged), None, "byte {at}");
            assert_eq!(Manifest::decode(&bytes[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn the_log_is_cut_behind_two_snapshots_and_the_slowest_node() {
        let none = || None.into_iter();
        assert_eq!(shelf(&[]).keep_from(none()), Position::NONE);
        assert_eq!(shelf(&[40]).keep_from(none()), Position::NONE);
        let three = shelf(&[40, 90, 60]);
        assert_eq!(three.keep_from(none()), Position::new(60));
        assert_eq!(three.keep_from([Position::new(50)]), Position::new(50));
        assert_eq!(three.keep_from([Position::new(70)]), Position::new(60));
        assert_eq!(three.kept().collect::<Vec<_>>(), ["s90", "s60"]);
    }

    #[test]
    fn a_log_that_begins_behind_a_snapshot_does_not_continue_it() {
        let three = shelf(&[40, 90, 60]);
        let names = |first| {
            let found = three.leading_to(Position::new(first));
            found.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(1), ["s90", "s60", "s40"]);
        assert_eq!(names(61), ["s90", "s60"]);
        assert_eq!(names(62), ["s90"]);
        assert!(names(92).is_empty());
    }

    #[test]
    fn a_snapshot_is_due_when_enough_was_appended_behind_the_last_one() {
        let log = |first, last, bytes| Extent {
            first: Position::new(first),
            last: Position::new(last),
            bytes,
        };
        assert!(shelf(&[]).is_due(log(1, 10, 1000), 1000));
        assert!(!shelf(&[]).is_due(log(1, 10, 999), 1000));
        assert!(!shelf(&[]).is_due(log(1, 10, 1000), 0));
        assert!(!shelf(&[5]).is_due(log(1, 10, 1000), 501));
        assert!(shelf(&[5]).is_due(log(1, 10, 1000), 500));
        // No less than the snapshot has itself.
        assert!(!shelf(&[5]).is_due(log(1, 10, 199), 1));
        // A log that has lost its end, or everything.
        assert!(!shelf(&[50]).is_due(log(1, 10, 1000), 1));
        assert!(!shelf(&[]).is_due(log(1, 0, 0), 1));
    }

    #[test]
    fn a_follower_makes_the_snapshot_if_there_is_one() {
        let peer = |name: &str, text: &str| Peer::decode(name, text).expect("a peer");
        let mut peers = vec![
            peer("a", "leader 5"),
            peer("c", "follower 4"),
            peer("b", "behind 3"),
        ];
        assert_eq!(maker(&peers), Some("c"));
        assert_eq!(peers[1].encode(), "follower 4");
        peers.remove(1);
        assert_eq!(maker(&peers), Some("a"));
        peers.remove(0);
        assert_eq!(maker(&peers), None);
        assert_eq!(Peer::decode("a", "leader"), None);
    }
}
