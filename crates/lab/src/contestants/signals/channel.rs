//! What the workloads ask of a channel in this process.

use crate::measure::Sample;
use tremula_mailbox::{Config, Mailbox, Mode, Sender, mailbox};

/// A kind of unbounded channel from many senders to one receiver, as the workloads use it.
///
/// The workloads are generic over it, so that calls are static and can be inlined, as they would be
/// in a program that uses the channel.
pub(crate) trait Channel<M>: Sync {
    /// A sender's end.
    type Sender: Sending<M>;
    /// The receiver's end.
    type Receiver: Receiving<M>;

    /// Opens a new channel, which `senders` senders will use at the same time.
    fn open(&self, senders: usize) -> (Self::Sender, Self::Receiver);
}

/// A sender's end of a channel. Dropping the last one closes the channel.
pub(crate) trait Sending<M>: Send + Sized + 'static {
    /// Another sender's end.
    fn another(&self) -> Self;

    /// Sends a message; the receiver exists.
    fn send(&mut self, message: M);

    /// What the channel counts about itself, by name; nothing if it counts nothing.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The receiver's end of a channel.
pub(crate) trait Receiving<M>: Send + 'static {
    /// Waits for the next message; `None` when all senders are gone and no message is left.
    fn receive(&mut self) -> Option<M>;
}

/// A task with channels of messages of some type. It is generic in the channel, so that its calls
/// are static.
pub(crate) trait ChannelTask<M> {
    /// What the task returns.
    type Output;

    /// Does the task with this kind of channel.
    fn run<C: Channel<M>>(self, channel: &C) -> Self::Output;
}

/// The result of a job: for each of its measurements a sample, or what was wrong with the channel.
pub(super) type Measured = Result<Vec<Sample>, String>;

/// The mailboxes of this project, in one mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mailboxes(pub(super) Mode);

impl<M: Send + 'static> Channel<M> for Mailboxes {
    type Sender = Sender<M>;
    type Receiver = Mailbox<M>;

    fn open(&self, _senders: usize) -> (Sender<M>, Mailbox<M>) {
        mailbox(Config::default().mode(self.0))
    }
}

impl<M: Send + 'static> Sending<M> for Sender<M> {
    fn another(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn send(&mut self, message: M) {
        let sent = Self::send(self, message);
        assert!(sent.is_ok(), "the receiver is there");
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let stats = self.stats();
        vec![
            ("contended_sends", stats.contended_sends),
            ("uncontended_sends", stats.uncontended_sends),
            ("installs", stats.installs.into()),
            ("removals", stats.removals.into()),
            ("growths", stats.growths.into()),
            ("shrinks", stats.shrinks.into()),
            ("flushes", stats.flushes),
            ("by_way_of_slots", stats.flushed),
        ]
    }
}

impl<M: Send + 'static> Receiving<M> for Mailbox<M> {
    #[inline]
    fn receive(&mut self) -> Option<M> {
        self.recv().ok()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::thread;

    /// What every channel must do before it may be measured: keep the order of each sender, give
    /// out each message once, wait for a message, and report the end.
    pub(crate) fn does_its_work<C: Channel<Box<u64>>>(channel: &C) {
        const MESSAGES: u64 = 3000;
        let (mut first, mut receiver) = channel.open(3);
        first.send(Box::new(7));
        assert_eq!(receiver.receive(), Some(Box::new(7)));
        let senders = [first.another(), first.another(), first];
        let threads = senders.map(|mut sender| {
            thread::spawn(move || {
                for number in 0..MESSAGES {
                    sender.send(Box::new(number));
                }
                sender
            })
        });
        // The three sequences come merged: `seen[n]` counts the senders whose next message is `n`.
        let mut seen = [0; MESSAGES as usize + 1];
        seen[0] = 3;
        for _ in 0..3 * MESSAGES {
            let number = *receiver.receive().expect("the senders are there") as usize;
            assert!(seen[number] > 0, "{number} before its predecessor");
            seen[number] -= 1;
            seen[number + 1] += 1;
        }
        assert_eq!(seen[MESSAGES as usize], 3);
        let mut senders = threads.map(|thread| thread.join().unwrap());
        senders[1].send(Box::new(8));
        drop(senders);
        assert_eq!(receiver.receive(), Some(Box::new(8)));
        assert_eq!(receiver.receive(), None);

        // A waiting receiver must learn of a message, and of the end.
        let (mut sender, mut receiver) = channel.open(1);
        let thread = thread::spawn(move || (receiver.receive(), receiver.receive()));
        thread::sleep(std::time::Duration::from_millis(5));
        sender.send(Box::new(9));
        thread::sleep(std::time::Duration::from_millis(5));
        drop(sender);
        assert_eq!(thread.join().unwrap(), (Some(Box::new(9)), None));

        // Messages that no thread receives are dropped with the channel.
        let (mut sender, receiver) = channel.open(1);
        sender.send(Box::new(10));
        drop((sender, receiver));
    }

    #[test]
    fn every_mode_of_the_mailbox_does_its_work() {
        for mode in Mode::ALL {
            does_its_work(&Mailboxes(mode));
        }
    }
}
