//! Why a node refuses to serve, and why it refuses one request.

use crate::position::{Epoch, Position};
use tremula_log::{Chain, Sequence};

/// The way out of most refusals.
const REPAIR: &str = "compare the nodes' own logs (tremula log check DIRECTORY/log). To go on from \
                      the longest of them: tremula cluster publish DIRECTORY. To give up what this \
                      node has, and follow the group as it is: tremula cluster rejoin DIRECTORY";

/// What is wrong between a node and the shared log. The node serves nothing any more; its state and
/// its own log stay as they are, for a repair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The log ends before what the node has already read.
    #[error(
        "the shared log has lost its tail: it ends at message {end}, and this node has read up to \
         {read}; {REPAIR}"
    )]
    LostTail {
        /// The last message that the log has.
        end: Position,
        /// The last message that the node has read, or has seen confirmed.
        read: Position,
    },
    /// A message is missing in the middle of the log.
    #[error(
        "the shared log has a hole: message {missing} is missing before message {found}; {REPAIR}"
    )]
    Hole {
        /// The first message that is missing.
        missing: Position,
        /// The next one that is there.
        found: Position,
    },
    /// A message does not continue what the node has.
    #[error(
        "the shared log and this node have different histories: message {position} continues record \
         {theirs} with chain {their_chain}, and this node has record {ours} with chain {our_chain}; {REPAIR}"
    )]
    OtherHistory {
        /// The message.
        position: Position,
        /// The last record before it, as it says.
        theirs: Sequence,
        /// The chain before it, as it says.
        their_chain: Chain,
        /// The last record that the node has.
        ours: Sequence,
        /// The chain that the node has.
        our_chain: Chain,
    },
    /// The node's own log has records that the shared log does not lead to.
    #[error(
        "this node's own log has record {own}, and the shared log ends at record {shared} or goes \
         another way; {REPAIR}"
    )]
    OwnLogAhead {
        /// The last record of the node's own log.
        own: Sequence,
        /// The last record that the shared log leads to.
        shared: Sequence,
    },
    /// Messages of one term are not numbered one behind the other.
    #[error("message {position} is number {found} of its term, and number {expected} is missing")]
    SkippedMessage {
        /// The message.
        position: Position,
        /// The number that was to come.
        expected: u64,
        /// The number it has.
        found: u64,
    },
    /// A message is of a term whose claim is not there.
    #[error("message {position} is of term {found}, whose claim is missing behind term {known}")]
    MissingClaim {
        /// The message.
        position: Position,
        /// Its term.
        found: Epoch,
        /// The last term whose claim was read.
        known: Epoch,
    },
    /// A message is no message of this group.
    #[error("message {position} cannot be read: {why}")]
    Unreadable {
        /// The message.
        position: Position,
        /// What is wrong with it.
        why: Unreadable,
    },
    /// The log has given up what the node must read next.
    #[error(
        "the shared log begins at message {first}, and this node needs {wanted}: load a newer snapshot"
    )]
    Truncated {
        /// The message that the node needs.
        wanted: Position,
        /// The first message that the log has.
        first: Position,
    },
    /// The log has stored a message elsewhere than it was asked to.
    #[error("the log has stored at {stored} a message that it was to store at {expected} only")]
    Misplaced {
        /// Where it was to be stored.
        expected: Position,
        /// Where the log says it is.
        stored: Position,
    },
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The bytes end too early, or are of another kind or version.
    #[error("it is no message of a group, or of another version")]
    Form,
    /// The checksum is another one.
    #[error("it is damaged")]
    Damaged,
    /// The parts of a batch do not fit together.
    #[error("it is no next part of the batch that was begun")]
    Part,
    /// The records are not what the header says.
    #[error("its records are not those that its header names")]
    Records,
    /// The batch is longer than any may be.
    #[error("its batch is longer than the limit")]
    TooLong,
}

/// Why a node does not do what a client asks. The client may try again, here or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryAgain {
    /// Another node leads, or no node does.
    #[error("this node does not lead{}", at(.leader))]
    NotLeading {
        /// Where the last known leader takes its clients.
        leader: Option<String>,
    },
    /// The leader has lost its term. It is not known whether the write will be in the log.
    #[error("the leader has stepped down; the write may or may not have happened")]
    SteppedDown,
    /// The leader's lease has run out, so that another node may lead already.
    #[error("the leader's lease has run out, and the log has not confirmed a new one")]
    LeaseOver,
    /// More waits than may.
    #[error("too much waits for the log: {waiting} of at most {most}")]
    Busy {
        /// What waits.
        waiting: usize,
        /// What may.
        most: usize,
    },
    /// The node has not yet read to the end of the log.
    #[error("this node is catching up")]
    CatchingUp,
    /// The sequence was not reached in time.
    #[error("record {wanted} was not there in time; this node has record {reached}")]
    NotReached {
        /// What the client waits for.
        wanted: Sequence,
        /// The node's last record.
        reached: Sequence,
    },
    /// The effects of one command have more bytes than a batch may have.
    #[error("the effects have {bytes} bytes, more than {most}")]
    TooLong {
        /// Their bytes.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The node refuses to serve.
    #[error("{0}")]
    Refusing(#[from] Refusal),
}

fn at(leader: &Option<String>) -> String {
    leader
        .as_ref()
        .map_or_else(String::new, |address| format!("; {address} does"))
}
