//! What was appended and not yet written, and its hand-over to the flusher.
//!
//! A writer copies its batch behind the others under the lock, and gets its sequence and chain
//! there; so the order of the bytes is the order of the sequences. Batches that wait together go
//! into one frame, which takes one head and one checksum for all of them. The flusher takes
//! everything at once, and leaves its empty buffer, so that neither allocates.
//!
//! A writer calls the flusher only when it finds the queue empty, or has filled it: between these
//! the flusher either knows of the batches, or has not taken the first of them yet.

use super::format::{ALIGNMENT, FRAME_HEAD, frame_length};
use crate::batch::Batch;
use crate::config::Config;
use crate::error::{Fenced, Full, Refused, Stopped};
use crate::log::{Tail, Ticket};
use crate::sequence::{Chain, Digest, Sequence};
use std::mem;
use tremula_sync::Mutex;

/// Bytes of the body of a frame that gets no further batch: enough that its head costs nothing,
/// few enough to be read and checked at once.
const FRAME_BODY: usize = if cfg!(any(loom, shuttle)) {
    16
} else {
    256 << 10
};

/// Bytes that wait, from which the flusher is called though nobody waits for them.
const MANY: usize = 256 << 10;

/// Room of a buffer that the flusher keeps for the next round.
const KEPT: usize = 4 << 20;

/// Frames of which the heads are still to be written.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) bytes: Vec<u8>,
    pub(super) frames: Vec<Draft>,
}

/// A frame whose body lies in the buffer.
pub(super) struct Draft {
    /// Where its head belongs in the buffer.
    pub(super) start: usize,
    pub(super) body: usize,
    pub(super) first: Sequence,
    pub(super) count: u32,
    /// The chain before it.
    pub(super) chain: Chain,
}

impl Draft {
    pub(super) const fn end(&self) -> usize {
        self.start + frame_length(self.body)
    }

    pub(super) const fn last(&self) -> Sequence {
        self.first.plus(self.count as u64 - 1)
    }
}

impl Pending {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.frames.clear();
    }

    /// Frees the room for further frames, if there is no frame.
    fn free_if_empty(&mut self) {
        if self.frames.is_empty() {
            *self = Self::default();
        }
    }

    fn add(&mut self, batch: &Batch, tail: Tail) {
        let length = batch.bytes();
        let fits = |last: &&mut Draft| {
            last.body + length <= FRAME_BODY && last.count.checked_add(batch.count()).is_some()
        };
        if let Some(last) = self.frames.last_mut().filter(fits) {
            last.body += length;
            last.count += batch.count();
        } else {
            self.fill_up();
            self.frames.push(Draft {
                start: self.bytes.len(),
                body: length,
                first: tail.next,
                count: batch.count(),
                chain: tail.chain,
            });
            self.bytes.resize(self.bytes.len() + FRAME_HEAD, 0);
        }
        self.bytes.extend_from_slice(batch.encoded());
    }

    /// Ends the last frame, so that another can begin behind it.
    fn fill_up(&mut self) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
}

/// Why the flusher is to be called, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Needed,
    NotNeeded,
}

pub(super) struct Queue(Mutex<State>);

struct State {
    pending: Pending,
    tail: Tail,
    /// Bytes of all batches that were appended, since the log was opened.
    appended: u64,
    /// Bytes that surely find a place on the disk.
    room: u64,
    full: Option<Full>,
    stopped: Option<Stopped>,
    is_closing: bool,
}

impl Queue {
    pub(super) fn new(tail: Tail, room: u64) -> Self {
        Self(Mutex::new(State {
            pending: Pending::default(),
            tail,
            appended: 0,
            room,
            full: None,
            stopped: None,
            is_closing: false,
        }))
    }

    pub(super) fn append(
        &self,
        batch: &Batch,
        expected: Option<Sequence>,
        config: &Config,
    ) -> Result<(Ticket, Call), Refused> {
        if batch.is_empty() {
            return Err(Refused::Empty);
        }
        // The only hash over all bytes, without the lock.
        let digest = Digest::of(batch.encoded());
        let mut state = self.0.lock();
        state.admits(batch.bytes(), config)?;
        let tail = state.tail;
        if let Some(expected) = expected.filter(|expected| *expected != tail.next) {
            let next = tail.next;
            return Err(Fenced { expected, next }.into());
        }
        let before = state.pending.bytes.len();
        state.pending.add(batch, tail);
        let after = state.pending.bytes.len();
        state.appended += batch.bytes() as u64;
        let ticket = Ticket::new(tail.next, batch.len(), tail.chain.and(digest));
        state.tail = Tail {
            next: ticket.next(),
            chain: ticket.chain(),
        };
        drop(state);
        let is_needed = before == 0 || (before < MANY && after >= MANY);
        let call = if is_needed {
            Call::Needed
        } else {
            Call::NotNeeded
        };
        Ok((ticket, call))
    }

    pub(super) fn admits(&self, bytes: usize, config: &Config) -> Result<(), Refused> {
        self.0.lock().admits(bytes, config)
    }

    pub(super) fn tail(&self) -> Tail {
        self.0.lock().tail
    }

    /// Bytes of all batches that were appended, since the log was opened.
    pub(super) fn appended(&self) -> u64 {
        self.0.lock().appended
    }

    /// Whether something waits, and whether it is much.
    pub(super) fn waits(&self) -> (bool, bool) {
        let waiting = self.0.lock().pending.bytes.len();
        (waiting > 0, waiting >= MANY)
    }

    /// Takes all that waits, in exchange for an empty buffer.
    pub(super) fn take(&self, into: &mut Pending) {
        into.clear();
        mem::swap(&mut self.0.lock().pending, into);
        into.fill_up();
    }

    /// Frees the flusher's buffer and its own, as far as nothing is in them: the log is at rest.
    pub(super) fn free_if_empty(&self, taken: &mut Pending) {
        self.0.lock().pending.free_if_empty();
        taken.free_if_empty();
    }

    pub(super) fn set_room(&self, bytes: u64) {
        self.0.lock().room = bytes;
    }

    /// Notes that there is no room for more, or that there is again.
    pub(super) fn set_full(&self, full: Option<Full>) {
        let before = mem::replace(&mut self.0.lock().full, full);
        drop(before);
    }

    pub(super) fn full(&self) -> Option<Full> {
        self.0.lock().full.clone()
    }

    /// Takes no batch from now on. Returns whether it is the first call.
    pub(super) fn close(&self) -> bool {
        let mut state = self.0.lock();
        state.stopped.get_or_insert(Stopped::Closed);
        !mem::replace(&mut state.is_closing, true)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.0.lock().is_closing
    }

    /// Takes no batch from now on, for this reason.
    pub(super) fn stop(&self, why: Stopped) {
        let before = self.0.lock().stopped.replace(why);
        drop(before);
    }
}

impl State {
    fn admits(&self, bytes: usize, config: &Config) -> Result<(), Refused> {
        if let Some(why) = &self.stopped {
            return Err(why.clone().into());
        }
        let limit = config.max_batch;
        if bytes > limit {
            return Err(Refused::TooLarge { bytes, limit });
        }
        let pending = self.pending.bytes.len();
        let limit = config.max_pending;
        if pending > 0 && pending.saturating_add(bytes) > limit {
            return Err(Refused::Behind { pending, limit });
        }
        if let Some(full) = &self.full {
            let needed = pending + frame_length(bytes) + ALIGNMENT;
            if needed as u64 > self.room {
                return Err(full.clone().into());
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue::new(Tail::START, 0)
    }

    #[test]
    fn what_waits_together_is_one_frame() {
        let (queue, config) = (queue(), Config::default());
        let mut calls = Vec::new();
        for record in [&b"one"[..], b"two", b"three"] {
            let (_, call) = queue.append(&Batch::of(record), None, &config).unwrap();
            calls.push(call);
        }
        assert_eq!(calls, [Call::Needed, Call::NotNeeded, Call::NotNeeded]);
        let mut pending = Pending::default();
        queue.take(&mut pending);
        assert_eq!(pending.frames.len(), 1);
        assert_eq!(pending.frames[0].last(), Sequence::new(3));
        assert_eq!(pending.frames[0].end(), pending.bytes.len());
        assert_eq!(queue.waits(), (false, false));
    }

    #[test]
    fn a_long_batch_gets_a_frame_by_itself_and_calls_the_flusher() {
        let (queue, config) = (queue(), Config::default());
        queue.append(&Batch::of(b"one"), None, &config).unwrap();
        let long = Batch::of(&vec![7; FRAME_BODY]);
        let (ticket, call) = queue.append(&long, None, &config).unwrap();
        assert_eq!(call, Call::Needed);
        queue.append(&Batch::of(b"two"), None, &config).unwrap();
        let mut pending = Pending::default();
        queue.take(&mut pending);
        let firsts: Vec<u64> = pending
            .frames
            .iter()
            .map(|frame| frame.first.get())
            .collect();
        assert_eq!(firsts, [1, 2, 3]);
        assert_eq!(pending.frames[2].chain, ticket.chain());
    }

    #[test]
    fn a_full_disk_refuses_what_has_no_room_and_takes_the_rest() {
        let (queue, config) = (queue(), Config::default());
        let source = std::io::ErrorKind::StorageFull.into();
        let failure = crate::error::Failure::new("fill", "spare".into(), source);
        queue.set_full(Some(Full { failure }));
        queue.set_room(frame_length(100) as u64 + 100);
        queue.append(&Batch::of(&[0; 90]), None, &config).unwrap();
        let refused = queue.append(&Batch::of(&[0; 90]), None, &config);
        assert!(matches!(refused, Err(Refused::Full(_))), "{refused:?}");
        assert_eq!(queue.tail().next, Sequence::new(2));
        queue.set_full(None);
        assert!(queue.append(&Batch::of(&[0; 90]), None, &config).is_ok());
    }

    #[test]
    fn what_is_refused_says_the_value_and_the_limit() {
        let queue = queue();
        let config = Config::default().max_batch(10).max_pending(70);
        let text = |record: &[u8]| match queue.append(&Batch::of(record), None, &config) {
            Ok(_) => String::new(),
            Err(refused) => refused.to_string(),
        };
        assert!(text(b"12345678").starts_with("a batch of 12 bytes is longer than the 10"));
        assert_eq!(text(b"123"), "");
        assert!(text(b"123").starts_with("71 bytes wait to be written, and no more than 70"));
        let empty = queue.append(&Batch::new(), None, &config);
        assert!(matches!(empty, Err(Refused::Empty)));
    }
}
