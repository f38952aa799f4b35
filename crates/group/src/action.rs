//! What a node asks of its host, and how the host answers.

use crate::position::{Epoch, MessageId, Point, Position};
use crate::refusal::{Refusal, TryAgain};
use std::sync::Arc;
use tremula_log::{Batch, Sequence};

/// What the host is to do, in the order in which the node has asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Append to the shared log on the condition that its last message is `expected`, and report
    /// what came of it by [`Node::appended`](crate::Node::appended). If the host does not know what
    /// came of it, it may report [`Outcome::Unknown`] or nothing.
    Append {
        /// Names this try; to be passed back.
        attempt: Attempt,
        /// The last message that the log must have.
        expected: Position,
        /// By which the log notices that it has the message already.
        id: MessageId,
        /// The message.
        bytes: Arc<[u8]>,
    },
    /// Read the shared log from this message on, in order, and pass each by
    /// [`Node::record`](crate::Node::record) with this number. An earlier reading ends: nothing of
    /// it need be passed on. If the log begins later, say so by
    /// [`Node::truncated`](crate::Node::truncated).
    Read {
        /// Names this reading; to be passed back.
        reading: u64,
        /// The first message.
        from: Position,
    },
    /// Ask the shared log for its last message, and pass it to [`Node::end`](crate::Node::end).
    Ask {
        /// Names this question; to be passed back.
        question: u64,
    },
    /// Keep a batch in the node's own log; it is confirmed.
    Commit {
        /// The sequence of its first record.
        first: Sequence,
        /// Its records, which [`records`](crate::records) takes apart.
        batch: Batch,
        /// Whether the state is to take it too. `false` on the leader, whose state has it already.
        apply: bool,
    },
    /// Send the reply of this token.
    Release {
        /// The host's name of the reply.
        token: u64,
        /// The last record that the reply shows, or stands for.
        sequence: Sequence,
    },
    /// Drop the reply of this token, and answer the client so.
    Retract {
        /// The host's name of the reply.
        token: u64,
        /// What the client may know.
        why: TryAgain,
    },
    /// Make the state anew from what is confirmed, up to this point: the state has effects that are
    /// not. Comes before anything else is asked of the state.
    Reload(Point),
    /// The node's role is another one now.
    Became(Role),
    /// The node serves nothing any more.
    Refuse(Refusal),
}

/// What a node does in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reads the log up to where it ended when it was asked first; it serves nothing.
    CatchingUp,
    /// It applies what the leader writes; its reads are stale.
    Follower,
    /// It has sent a claim; otherwise a follower.
    Candidate,
    /// It takes writes in this epoch; its reads are linearizable.
    Leader(Epoch),
    /// It and the log do not fit together.
    Refusing,
}

/// One try to append one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The message.
    pub message: MessageId,
    /// The number of the try.
    pub number: u32,
}

/// What came of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The log has the message, from this try or from an earlier one, here. The log must give this
    /// answer for a message that it has, although the condition does not hold any more.
    Stored(Position),
    /// The condition does not hold: this is the last message.
    WrongEnd(Position),
    /// Not known: no answer in time, a connection that was lost, a log without a majority.
    Unknown,
}

/// Whether a reply may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// At once. It shows the records up to this one.
    Now(Sequence),
    /// Later: an action will release or retract its token.
    Later,
}
