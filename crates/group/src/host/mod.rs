//! A node with its clock, its own log and its state: what carries out a [`Node`]'s actions.
//!
//! ```text
//!   state --(effects: Log::append)--> Host --(appends, readings, questions)--> Engine
//!     ^                              |    ^                                      |
//!     |   apply, lead, ended         |    `------- answers, messages, ticks -----'
//!     `------------------------------+
//!                                    `--> own log: every confirmed batch
//! ```
//!
//! To the state a host is its [`Log`](tremula_log::Log): what it appends is durable when the group
//! has confirmed it. What is read from it is read from the node's own log.
//!
//! Invariants:
//!
//! 1. The node is called under one lock, and its actions are carried out under that lock, in their
//!    order. So the own log and the state get the batches in the order of the shared log.
//! 2. The watermark rises only to a record that the own log has got, and that the state shows.
//! 3. A host that was the leader and has stepped down does nothing more: its state has effects that
//!    are not confirmed. The process makes a new host, from the own log.
//! 4. [`Standing::Leader`] is seen only after the state has been prepared by [`State::lead`].

mod log;
mod report;

use crate::action::{Action, Attempt, Outcome, Role};
use crate::clock::boot_time;
use crate::config::Config;
use crate::node::{Node, Start};
use crate::position::{MessageId, Point, Position};
use crate::refusal::Refusal;
use crate::time::Moment;
pub use report::{Report, Standing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};
use tremula_log::{Batch, Log, Sequence, Stopped, Watermark};
use tremula_sync::{Mutex, MutexGuard};

/// What stands between a host and the shared log. Its methods return at once, and may be called
/// under a lock; the answers go to the host's methods, from a thread of the engine's own.
pub trait Engine: Send + Sync {
    /// Appends: [`Action::Append`]. The answer is [`Host::appended`].
    fn append(&self, attempt: Attempt, expected: Position, id: MessageId, bytes: Arc<[u8]>);
    /// Reads from a message on: [`Action::Read`]. The answers are [`Host::record`].
    fn read(&self, reading: u64, from: Position);
    /// Ends the reading: a leader learns of other messages by its appends.
    fn stop_reading(&self);
    /// Asks for the log's end: [`Action::Ask`]. The answer is [`Host::end`].
    fn ask(&self, question: u64);
    /// [`Host::deadline`] has become earlier.
    fn wake(&self);
}

/// The state that a group has on one node.
pub trait State: Send + Sync {
    /// Makes true what the records of a confirmed batch say. Called in order.
    ///
    /// # Errors
    ///
    /// Why it cannot. The node serves nothing any more.
    fn apply(&self, first: Sequence, batch: &Batch) -> Result<(), String>;

    /// The node leads from now on: the state's next effect has this number. No lock is held.
    fn lead(&self, next: Sequence);

    /// A node of the group has said that it is there: each does so now and then, also this one. No
    /// lock is held.
    fn heard(&self, _node: &Presence<'_>) {}

    /// The node serves nothing any more: it has stepped down, refuses, or needs a snapshot. Called
    /// under a lock.
    fn ended(&self, standing: Standing, why: &str);
}

/// What a node says of itself now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where it takes clients.
    pub address: &'a str,
    /// What it may do, and the last record that its state has, if it has said so.
    pub state: Option<(Standing, Sequence)>,
}

/// A node of a group at work.
pub struct Host {
    /// The node's own log.
    own: Arc<dyn Log>,
    watermark: Watermark,
    standing: AtomicU8,
    /// Until when a leader serves reads, in microseconds of [`boot_time`].
    lease_until: AtomicU64,
    /// The last record of the state that its log has: on a leader also what is not confirmed.
    last: AtomicU64,
    /// When the engine calls [`tick`](Self::tick) next, as far as is known.
    scheduled: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    node: Option<Node>,
    parts: Option<Parts>,
    /// Why the node serves nothing.
    refusal: Option<String>,
}

struct Parts {
    engine: Arc<dyn Engine>,
    state: Arc<dyn State>,
}

/// What is left to do when the lock is free.
#[derive(Default)]
struct Rest {
    leads_from: Option<Sequence>,
}

impl Host {
    /// A host on a node's own log. It does nothing before it is [started](Self::start), and can be
    /// read until then.
    #[must_use]
    pub fn new(own: Arc<dyn Log>) -> Arc<Self> {
        let last = own.tail().next.before();
        Arc::new(Self {
            own,
            watermark: Watermark::new(last),
            standing: AtomicU8::new(Standing::CatchingUp as u8),
            lease_until: AtomicU64::new(0),
            last: AtomicU64::new(last.get()),
            scheduled: AtomicU64::new(0),
            inner: Mutex::new(Inner::default()),
        })
    }

    /// Starts the node. `address` is where it takes clients; `point` is one that its own log has
    /// reached, if one was kept.
    ///
    /// # Errors
    ///
    /// As [`Node::start`].
    pub fn start(
        &self,
        config: Config,
        (address, incarnation): (&str, u64),
        point: Option<Point>,
        state: Arc<dyn State>,
        engine: Arc<dyn Engine>,
    ) -> Result<(), String> {
        let tail = self.own.tail();
        let own = tail.next.before();
        let mut start = Start::empty(&config);
        start.point = point.filter(|point| point.last <= own).unwrap_or_default();
        start.own = (own > Sequence::NONE).then_some((own, tail.chain));
        let node = Node::start(config, address, incarnation, start, boot_time())?;
        let mut inner = self.inner.lock();
        inner.node = Some(node);
        inner.parts = Some(Parts { engine, state });
        self.carry_out(inner);
        Ok(())
    }

    /// The log's answer to a try to append.
    pub fn appended(&self, attempt: Attempt, outcome: Outcome) {
        self.call(|node, now| node.appended(now, attempt, outcome));
    }

    /// A message that a reading has come to.
    pub fn record(&self, reading: u64, position: Position, bytes: &[u8]) {
        self.call(|node, now| node.record(now, reading, position, bytes));
    }

    /// The log begins behind the message that the reading was to begin with.
    pub fn truncated(&self, reading: u64, first: Position) {
        self.call(|node, now| node.truncated(now, reading, first));
    }

    /// The log's last message.
    pub fn end(&self, question: u64, end: Position) {
        self.call(|node, now| node.end(now, question, end));
    }

    /// Does what is due.
    pub fn tick(&self) {
        self.call(Node::tick);
    }

    /// When [`tick`](Self::tick) has something to do, if nothing happens before.
    pub fn deadline(&self) -> Option<Moment> {
        let inner = self.inner.lock();
        let deadline = inner.node.as_ref().and_then(Node::deadline);
        let scheduled = deadline.map_or(u64::MAX, Moment::micros);
        self.scheduled.store(scheduled, SeqCst);
        deadline
    }

    /// Whether the host does nothing any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let standing = self.standing();
        matches!(
            standing,
            Standing::SteppedDown | Standing::Refusing | Standing::Behind
        )
    }

    /// Says why the node serves nothing any more, if there is more to say than before.
    pub fn explain(&self, why: &str) {
        self.inner.lock().refusal = Some(why.to_owned());
    }

    /// Ends the node, and all waits for what is not confirmed.
    pub fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.node = None;
        drop(inner);
        self.watermark.stop(Stopped::Closed);
    }

    fn call(&self, act: impl FnOnce(&mut Node, Moment)) {
        let mut inner = self.inner.lock();
        if let Some(node) = &mut inner.node {
            act(node, boot_time());
            self.carry_out(inner);
        }
    }

    /// Carries out what the node asks for, and then what needs no lock.
    fn carry_out(&self, mut inner: MutexGuard<'_, Inner>) {
        let mut rest = Rest::default();
        self.act(&mut inner, &mut rest);
        let state = inner.parts.as_ref().map(|parts| Arc::clone(&parts.state));
        drop(inner);
        if let (Some(next), Some(state)) = (rest.leads_from, state) {
            state.lead(next);
            // A host that has ended meanwhile stays so.
            let (from, to) = (Standing::Follower as u8, Standing::Leader as u8);
            let _ = self.standing.compare_exchange(from, to, SeqCst, SeqCst);
        }
    }

    fn act(&self, inner: &mut Inner, rest: &mut Rest) {
        let (Some(node), Some(parts)) = (&mut inner.node, &inner.parts) else {
            return;
        };
        let engine = &parts.engine;
        let mut end = None;
        while let Some(action) = node.next_action() {
            match action {
                Action::Append {
                    attempt,
                    expected,
                    id,
                    bytes,
                } => engine.append(attempt, expected, id, bytes),
                Action::Read { reading, from } => engine.read(reading, from),
                Action::Ask { question } => engine.ask(question),
                Action::Commit {
                    first,
                    batch,
                    apply,
                } => {
                    if let Err(why) = self.commit(&*parts.state, first, &batch, apply) {
                        end = Some((Standing::Refusing, why));
                        break;
                    }
                }
                // Replies wait for the watermark.
                Action::Release { .. } | Action::Retract { .. } => {}
                Action::Reload(_) => {
                    let why = "the leader has stepped down, because another node has appended";
                    end = Some((Standing::SteppedDown, why.to_owned()));
                    break;
                }
                Action::Refuse(refusal) => {
                    let standing = match refusal {
                        Refusal::Truncated { .. } => Standing::Behind,
                        _ => Standing::Refusing,
                    };
                    end = Some((standing, refusal.to_string()));
                    break;
                }
                Action::Became(Role::Leader(_)) => {
                    engine.stop_reading();
                    let last = node.point().last;
                    self.last.store(last.get(), SeqCst);
                    rest.leads_from = Some(last.plus(1));
                }
                Action::Became(Role::Follower) => {
                    self.standing.store(Standing::Follower as u8, SeqCst);
                }
                Action::Became(_) => {}
            }
        }
        if let Some((standing, why)) = end {
            self.standing.store(standing as u8, SeqCst);
            self.watermark.stop(Stopped::Closed);
            parts.state.ended(standing, &why);
            inner.refusal = Some(why);
            inner.node = None;
            return;
        }
        let lease = node.lease_until().map_or(0, Moment::micros);
        self.lease_until.store(lease, SeqCst);
        self.watermark.advance(node.point().last);
    }

    /// Keeps a confirmed batch, and shows it.
    fn commit(
        &self,
        state: &dyn State,
        first: Sequence,
        batch: &Batch,
        apply: bool,
    ) -> Result<(), String> {
        let failed = |why: &dyn std::fmt::Display| {
            format!("this node's own log does not take what the group has confirmed: {why}")
        };
        loop {
            match self.own.append(batch, Some(first)) {
                Ok(_) => break,
                // What is written next makes room.
                Err(tremula_log::Refused::Behind { .. }) => {
                    let next = self.own.durable().plus(1);
                    self.own.wait(next).map_err(|stopped| failed(&stopped))?;
                }
                Err(refused) => return Err(failed(&refused)),
            }
        }
        if apply {
            state.apply(first, batch)?;
            let last = first.plus(batch.len() as u64).before();
            self.last.store(last.get(), SeqCst);
        }
        Ok(())
    }
}
