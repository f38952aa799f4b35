//! Messages from many senders to one receiver: what is sent, and in which workload.

use crate::{LabError, measure::Span};
use std::{fmt, str::FromStr};

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// One `u64`.
    Word,
    /// Eight words, sent by value.
    Words8,
    /// A hundred words, sent by value.
    Words100,
    /// A hundred words, sent as a pointer. The sender allocates, the receiver frees.
    Boxed100,
}

impl MessageKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Word, Self::Words8, Self::Words100, Self::Boxed100];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Word => "u64",
            Self::Words8 => "words8",
            Self::Words100 => "words100",
            Self::Boxed100 => "boxed100",
        }
    }

    /// How many words of eight bytes it has, wherever they are stored.
    #[must_use]
    pub const fn words(self) -> usize {
        match self {
            Self::Word => 1,
            Self::Words8 => 8,
            Self::Words100 | Self::Boxed100 => 100,
        }
    }

    /// The bytes of a message, wherever they are stored.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.words() * size_of::<u64>()
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for MessageKind {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| LabError::UnknownMessageKind {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// A message of some kind, which carries its sender's number and its own.
pub trait Message: Send + 'static {
    /// A message with this stamp in all of its words.
    fn new(stamp: Stamp) -> Self;

    /// Its stamp; `None` if its words differ, so that no sender can have sent it.
    fn stamp(&self) -> Option<Stamp>;
}

/// The number of a sender and of one of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(u64);

impl Stamp {
    /// Numbers of messages lie below two to the power of this: enough for weeks.
    const NUMBER_BITS: u32 = 48;

    /// The stamp of a sender's message with this number, counted from 0.
    #[inline]
    #[must_use]
    pub const fn new(sender: usize, number: u64) -> Self {
        Self((sender as u64) << Self::NUMBER_BITS | number)
    }

    /// The sender.
    #[inline]
    #[must_use]
    pub const fn sender(self) -> usize {
        (self.0 >> Self::NUMBER_BITS) as usize
    }

    /// How many messages the sender had sent before this one.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 & ((1 << Self::NUMBER_BITS) - 1)
    }
}

impl Message for u64 {
    #[inline]
    fn new(stamp: Stamp) -> Self {
        stamp.0
    }

    #[inline]
    fn stamp(&self) -> Option<Stamp> {
        Some(Stamp(*self))
    }
}

impl<const WORDS: usize> Message for [u64; WORDS] {
    #[inline]
    fn new(stamp: Stamp) -> Self {
        [stamp.0; WORDS]
    }

    #[inline]
    fn stamp(&self) -> Option<Stamp> {
        (self[0] == self[WORDS - 1]).then_some(Stamp(self[0]))
    }
}

impl<M: Message> Message for Box<M> {
    #[inline]
    fn new(stamp: Stamp) -> Self {
        let message = Self::new(M::new(stamp));
        #[cfg(sim)]
        tremula_sync::sim::touch(&raw const *message, size_of::<M>(), true);
        message
    }

    #[inline]
    fn stamp(&self) -> Option<Stamp> {
        // Of the words, the first and the last are read.
        #[cfg(sim)]
        for at in [0, size_of::<M>().saturating_sub(size_of::<u64>())] {
            let word = (&raw const **self).wrapping_byte_add(at);
            tremula_sync::sim::touch(word, size_of::<u64>(), false);
        }
        (**self).stamp()
    }
}

/// What senders and the receiver do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// Senders send until the time is up; then the receiver receives.
    Drain,
    /// Senders send until the time is up, and the receiver receives meanwhile.
    Live,
    /// Two threads send one message back and forth.
    PingPong,
    /// One thread sends, and then receives what it sent.
    UncontendedSend,
    /// Many messages are sent, and then received, in a process that weighs itself.
    Burst,
    /// The same as [`Live`](Self::Live): first with one sender, then with many, then with one
    /// again.
    Phases,
}

impl Traffic {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Drain,
        Self::Live,
        Self::PingPong,
        Self::UncontendedSend,
        Self::Burst,
        Self::Phases,
    ];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Live => "live",
            Self::PingPong => "ping_pong",
            Self::UncontendedSend => "uncontended_send",
            Self::Burst => "burst",
            Self::Phases => "phases",
        }
    }
}

impl FromStr for Traffic {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|traffic| traffic.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// Messages from senders to one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalsJob {
    /// What they do.
    pub traffic: Traffic,
    /// What they send.
    pub message: MessageKind,
    /// How many senders there are; in [`Traffic::Phases`] that is the number in the middle phase.
    pub senders: usize,
    /// How many messages a burst has.
    pub messages: u64,
    /// How long the senders send; during the warm-up they use another channel.
    pub span: Span,
}

impl SignalsJob {
    /// Bytes of messages that may wait for the receiver. If there are more, senders stop before
    /// their time is up instead of taking all of the machine's memory.
    pub const MOST_WAITING: u64 = 2 << 30;

    /// How many slices each of the three phases of [`Traffic::Phases`] has.
    pub const SLICES: usize = 4;

    /// How many messages may wait.
    #[must_use]
    pub const fn most_waiting(&self) -> u64 {
        Self::MOST_WAITING / self.message.bytes() as u64
    }

    /// The number of senders in each slice of [`Traffic::Phases`].
    #[must_use]
    pub fn senders_of_slices(senders: usize) -> [usize; 3 * Self::SLICES] {
        std::array::from_fn(|slice| match slice / Self::SLICES {
            1 => senders,
            _ => 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for kind in MessageKind::ALL {
            assert_eq!(kind.name().parse::<MessageKind>().unwrap(), kind);
        }
        for traffic in Traffic::ALL {
            assert_eq!(traffic.name().parse::<Traffic>().unwrap(), traffic);
        }
        let error = "words9".parse::<MessageKind>().unwrap_err().to_string();
        assert!(error.contains("'words9'") && error.contains("boxed100"));
    }

    #[test]
    fn a_message_says_who_sent_it_as_which() {
        fn tells<M: Message>() {
            let stamp = Stamp::new(1023, 1 << 40);
            let read = M::new(stamp).stamp().unwrap();
            assert_eq!((read.sender(), read.number()), (1023, 1 << 40));
        }
        tells::<u64>();
        tells::<[u64; 8]>();
        tells::<[u64; 100]>();
        tells::<Box<[u64; 100]>>();
        let mut torn = <[u64; 8]>::new(Stamp::new(1, 2));
        torn[7] = 0;
        assert_eq!(torn.stamp(), None);
    }

    #[test]
    fn there_is_one_sender_before_and_after_many() {
        let slices = SignalsJob::senders_of_slices(16);
        assert_eq!(slices, [1, 1, 1, 1, 16, 16, 16, 16, 1, 1, 1, 1]);
    }
}
