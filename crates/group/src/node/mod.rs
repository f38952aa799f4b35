//! One node of a group.
//!
//! ```text
//!                read to the end              lease and margin over, nothing heard
//!   CatchingUp ------------------> Follower -------------------------------------> Candidate
//!       ^                           ^                                               |     |
//!       |                           |    another message took the claim's place     |     |
//!       |                           +-----------------------------------------------+     |
//!       |   an append refused, or another leader's message read                           |
//!       +---------------------------- Leader <--------------------------------------------+
//!                                                the log has the claim
//!   any role -- the log does not continue what the node has --> Refusing
//! ```
//!
//! Invariants:
//!
//! 1. The confirmed state (`Replica`) is what the log's messages up to its position lead to, in
//!    every role. A leader's own messages go through it like all others, in order, once they are
//!    confirmed.
//! 2. A reply is released only when the last record that it shows is in the confirmed state.
//! 3. A claim is appended behind the last message that was read, and nowhere else.
//! 4. A node claims against another leader's term only after it has heard nothing of it for a lease
//!    and a margin. Its own term it may replace at once, since it serves no reads any more.
//! 5. A leader serves a read only while its lease lasts, counted from the first sending of a
//!    message of its term that the log has taken.
//! 6. What a peer or a client can make grow has a limit in `Config`.

mod leading;
mod reading;
mod waits;

use crate::action::{Action, Role};
use crate::config::Config;
use crate::leader::{Leader, Names};
use crate::once::OnceTable;
use crate::position::{Point, Position};
use crate::refusal::{Refusal, TryAgain};
use crate::replica::Replica;
use crate::time::Moment;
use crate::window::Window;
use std::collections::VecDeque;
use std::time::Duration;
use tremula_log::{Chain, Sequence};
use waits::Waits;

/// From where a node starts.
#[derive(Clone, Debug)]
pub struct Start {
    /// What its snapshot shows; [`Point::default`] without one.
    pub point: Point,
    /// The answers of the snapshot; an empty table without one.
    pub once: OnceTable,
    /// The end of the node's own log, if it has records behind the snapshot. The node finds them in
    /// the shared log again, or refuses to serve.
    pub own: Option<(Sequence, Chain)>,
}

impl Start {
    /// A node that has nothing.
    #[must_use]
    pub fn empty(config: &Config) -> Self {
        Self {
            point: Point::default(),
            once: OnceTable::new(config.most_once, config.most_once_bytes),
            own: None,
        }
    }
}

/// What a follower's read may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// The last record that is applied.
    pub sequence: Sequence,
    /// Since when nothing of the leader has come. The read shows all that the log has delivered
    /// until then; what is on its way from the log is not in this figure.
    pub staleness: Duration,
}

/// One node of a group: the whole state machine, without threads, clocks and sockets.
///
/// Each method takes the moment at which it is called. After each call, and at
/// [`deadline`](Self::deadline), the host carries out each
/// [`next_action`](Self::next_action).
#[derive(Debug)]
pub struct Node {
    config: Config,
    address: String,
    names: Names,
    now: Moment,
    role: Role,
    replica: Replica,
    /// The end of the node's own log, until the confirmed state has come to it.
    own: Option<(Sequence, Chain)>,
    /// When the node has heard last of the leader; its start, if it has not.
    heard: Moment,
    /// Before this moment it claims nothing.
    claim_not_before: Moment,
    reading: Reading,
    asking: Asking,
    /// The claim of a candidate.
    claim: Option<Window>,
    leader: Option<Leader>,
    waits: Waits,
    /// Why it refuses to serve.
    refusal: Option<Refusal>,
    actions: VecDeque<Action>,
}

/// The reading that the host does.
#[derive(Debug, Default)]
struct Reading {
    number: u64,
    /// A message that a reading has left out.
    gap: Option<Position>,
    /// Whether it begins with the message that the node's point ends with.
    begins_at_point: bool,
}

/// The questions for the log's end.
#[derive(Debug, Default)]
struct Asking {
    number: u64,
    /// What had been read when the last one was asked.
    read: Position,
    next_at: Moment,
    /// What had been read at the last answer that named a later end.
    behind_at: Option<Position>,
    /// Up to where the node must read before it serves.
    target: Option<Position>,
}

impl Node {
    /// A node that starts now. `incarnation` must be another number at each start of each node: 64
    /// random bits. `address` is where it takes clients.
    ///
    /// # Errors
    ///
    /// [`Config::check`]'s, or the address has more than 1024 bytes.
    pub fn start(
        config: Config,
        address: &str,
        incarnation: u64,
        start: Start,
        now: Moment,
    ) -> Result<Self, String> {
        config.check()?;
        if address.len() > crate::wire::MOST_ADDRESS_BYTES {
            return Err(format!("the address has {} bytes", address.len()));
        }
        let own = start.own.filter(|(last, _)| *last > start.point.last);
        let mut node = Self {
            replica: Replica::new(start.point, start.once, &config),
            waits: Waits::new(config.most_waiting),
            config,
            address: address.to_owned(),
            names: Names::new(incarnation),
            now,
            role: Role::CatchingUp,
            own,
            heard: now,
            claim_not_before: now,
            reading: Reading::default(),
            asking: Asking::default(),
            claim: None,
            leader: None,
            refusal: None,
            actions: VecDeque::new(),
        };
        if let Some((own, chain)) = start.own
            && own == node.replica.point().last
            && chain != node.replica.point().chain
        {
            node.refuse(Refusal::OwnLogAhead { own, shared: own });
        }
        node.read_again();
        node.tick(now);
        Ok(node)
    }

    /// What the node does at present.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Why the node serves nothing, if the log does not continue what it has.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// The confirmed state: what a snapshot that is taken now shows.
    #[must_use]
    pub const fn point(&self) -> &Point {
        self.replica.point()
    }

    /// Until when the node, as the leader, serves reads; later if the log confirms more.
    #[must_use]
    pub fn lease_until(&self) -> Option<Moment> {
        self.leader.as_ref().map(|leader| leader.lease_until)
    }

    /// The last message of the log that was read, void ones included.
    #[must_use]
    pub const fn read_position(&self) -> Position {
        self.replica.position()
    }

    /// The answers that belong to the confirmed state.
    #[must_use]
    pub const fn once_table(&self) -> &OnceTable {
        self.replica.once()
    }

    /// The last record that the state shows: on a leader, one that may not be confirmed.
    #[must_use]
    pub fn last(&self) -> Sequence {
        let confirmed = self.replica.point().last;
        self.leader.as_ref().map_or(confirmed, Leader::last)
    }

    /// Where the leader takes its clients, if the log shows one that was heard of lately.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        let reign = self.replica.reign();
        let is_there = reign.is_open && self.now < self.lease_of_leader_over();
        is_there.then_some(reign.address.as_str())
    }

    /// The next thing that the host has to do.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`tick`](Self::tick) has something to do, if nothing happens before.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        let asks = match self.role {
            Role::Refusing => return None,
            Role::Leader(_) => None,
            _ => Some(self.asking.next_at),
        };
        let claims = (self.role == Role::Follower).then(|| self.claims_at());
        let resends = self.window().and_then(Window::retry_at);
        let leads = self.leader.iter();
        let leads = leads.flat_map(|leader| {
            let config = &self.config;
            [leader.cut_at(config), leader.renew_at(config)]
        });
        [asks, claims, resends, self.waits.deadline()]
            .into_iter()
            .chain(leads)
            .flatten()
            .min()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Moment) {
        self.set(now);
        self.waits
            .expire(self.now, self.replica.point().last, &mut self.actions);
        match self.role {
            Role::Refusing => {}
            Role::Leader(_) => self.lead_on(),
            Role::CatchingUp | Role::Follower | Role::Candidate => {
                self.ask_if_due();
                self.claim_if_due();
            }
        }
    }

    /// The time does not go back.
    fn set(&mut self, now: Moment) {
        self.now = self.now.max(now);
    }

    fn turn(&mut self, role: Role) {
        if self.role != role {
            self.role = role;
            self.actions.push_back(Action::Became(role));
        }
    }

    /// The messages that this node has under way.
    fn window(&self) -> Option<&Window> {
        let leads = self.leader.as_ref().map(|leader| &leader.window);
        leads.or(self.claim.as_ref())
    }

    fn window_mut(&mut self) -> Option<&mut Window> {
        match &mut self.leader {
            Some(leader) => Some(&mut leader.window),
            None => self.claim.as_mut(),
        }
    }

    /// Serves nothing any more.
    fn refuse(&mut self, refusal: Refusal) {
        if self.role == Role::Refusing {
            return;
        }
        self.leader = None;
        self.claim = None;
        let why = TryAgain::Refusing(refusal.clone());
        self.waits.retract_all(&why, &mut self.actions);
        self.role = Role::Refusing;
        self.refusal = Some(refusal.clone());
        self.actions.push_back(Action::Refuse(refusal));
        self.actions.push_back(Action::Became(Role::Refusing));
    }
}
