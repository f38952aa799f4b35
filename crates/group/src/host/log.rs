//! A host as the log of its state.

use super::Host;
use crate::action::Role;
use crate::clock::boot_time;
use crate::node::Node;
use crate::refusal::TryAgain;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use tremula_log::{
    Batch, Entry, Failure, Fenced, Log, ReadError, Reader, Refused, Sequence, Stopped, Tail,
    Ticket, Watermark,
};

impl Log for Host {
    /// As [`Log::append`], on a leader. The chain of the ticket is that of the own log, because the
    /// group's is known only when a message is made of the batch.
    fn append(&self, batch: &Batch, expected: Option<Sequence>) -> Result<Ticket, Refused> {
        if batch.is_empty() {
            return Err(Refused::Empty);
        }
        let mut inner = self.inner.lock();
        let Some(node) = &mut inner.node else {
            return Err(Refused::NotLeading);
        };
        let Role::Leader(epoch) = node.role() else {
            return Err(Refused::NotLeading);
        };
        let next = Sequence::new(self.last.load(SeqCst)).plus(1);
        if let Some(expected) = expected.filter(|expected| *expected != next) {
            return Err(Refused::Fenced(Fenced { expected, next }));
        }
        let proposed = node.propose_batch(boot_time(), epoch, batch, 0);
        let last = proposed.map_err(|why| refused(&why))?;
        self.last.store(last.get(), SeqCst);
        let deadline = node.deadline().map_or(u64::MAX, crate::Moment::micros);
        if deadline < self.scheduled.load(SeqCst)
            && let Some(parts) = &inner.parts
        {
            parts.engine.wake();
        }
        self.carry_out(inner);
        Ok(Ticket::new(next, batch.len(), self.own.tail().chain))
    }

    fn admits(&self, bytes: usize) -> Result<(), Refused> {
        let mut inner = self.inner.lock();
        let admit = |node: &mut Node| node.admits(boot_time(), bytes);
        let admitted = inner.node.as_mut().map(admit);
        admitted
            .ok_or(Refused::NotLeading)?
            .map_err(|why| refused(&why))
    }

    fn tail(&self) -> Tail {
        Tail {
            next: Sequence::new(self.last.load(SeqCst)).plus(1),
            chain: self.own.tail().chain,
        }
    }

    /// Rises to what the group has confirmed.
    fn watermark(&self) -> &Watermark {
        &self.watermark
    }

    fn first(&self) -> Sequence {
        self.own.first()
    }

    fn read(&self, from: Sequence) -> Result<Box<dyn Reader>, ReadError> {
        let own = Arc::clone(&self.own);
        write(&*own, from);
        let reader = own.read(from)?;
        Ok(Box::new(OwnReader { own, reader }))
    }

    fn keeps_from(&self) -> Sequence {
        self.own.keeps_from()
    }

    fn truncate_below(&self, sequence: Sequence) -> Result<(), Failure> {
        self.own.truncate_below(sequence)
    }

    fn close(&self) -> Result<(), Stopped> {
        self.stop();
        self.own.close()
    }

    /// Waits for the group and for the own log: what reads behind it finds the record there, and a
    /// snapshot is of no use without it.
    fn wait(&self, sequence: Sequence) -> Result<(), Stopped> {
        self.watermark.wait(sequence)?;
        self.own.wait(sequence)
    }
}

fn refused(why: &TryAgain) -> Refused {
    match why {
        TryAgain::Busy { waiting, most } => Refused::Behind {
            pending: *waiting,
            limit: *most,
        },
        TryAgain::TooLong { bytes, most } => Refused::TooLarge {
            bytes: *bytes,
            limit: *most,
        },
        _ => Refused::NotLeading,
    }
}

/// Makes a log write a record, if it has it.
fn write(log: &dyn Log, sequence: Sequence) {
    if log.durable() < sequence && log.tail().next > sequence {
        // An error shows when the record is read.
        let _ = log.wait(sequence);
    }
}

/// Reads the own log, which writes what it has when somebody asks for it.
struct OwnReader {
    own: Arc<dyn Log>,
    reader: Box<dyn Reader>,
}

impl Iterator for OwnReader {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        write(&*self.own, self.reader.next_sequence());
        self.reader.next()
    }
}

impl Reader for OwnReader {
    fn next_sequence(&self) -> Sequence {
        self.reader.next_sequence()
    }
}
