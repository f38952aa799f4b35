//! What a host shows of itself.

use super::Host;
use crate::action::Role;
use crate::clock::boot_time;
use crate::position::{Epoch, Point, Position};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tremula_log::Sequence;

/// What a node may do for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Standing {
    /// Nothing yet: it has not read to the end of the shared log.
    CatchingUp,
    /// Stale reads.
    Follower,
    /// Everything.
    Leader,
    /// Nothing any more: it has led, and its state has effects that are not confirmed.
    SteppedDown,
    /// Nothing any more: it and the shared log do not fit together.
    Refusing,
    /// Nothing any more: the shared log begins behind what it needs, and it has to start from a
    /// snapshot.
    Behind,
}

impl Standing {
    const ALL: [Self; 6] = [
        Self::CatchingUp,
        Self::Follower,
        Self::Leader,
        Self::SteppedDown,
        Self::Refusing,
        Self::Behind,
    ];

    /// The one with this [name](Self::name).
    ///
    /// ```
    /// use tremula_group::Standing;
    ///
    /// assert_eq!(Standing::named("leader"), Some(Standing::Leader));
    /// assert_eq!(Standing::named("king"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|standing| standing.name() == name)
    }

    /// As `INFO` shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CatchingUp => "catching_up",
            Self::Follower => "follower",
            Self::Leader => "leader",
            Self::SteppedDown => "stepped_down",
            Self::Refusing => "refusing",
            Self::Behind => "behind",
        }
    }
}

/// What is known of a group at one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the node may do.
    pub standing: Standing,
    /// The term of leadership.
    pub epoch: Epoch,
    /// Where the leader takes its clients, if one was heard of within its lease.
    pub leader: Option<String>,
    /// The last record that is confirmed.
    pub confirmed: Sequence,
    /// The last record that the state has.
    pub last: Sequence,
    /// The last message of the shared log that was read.
    pub position: Position,
    /// Since when nothing has come of the leader; `None` on the leader itself.
    pub staleness: Option<Duration>,
    /// For how long the leader still serves reads; `None` on others.
    pub lease: Option<Duration>,
    /// Why the node serves nothing any more, if it does not.
    pub refusal: Option<String>,
}

/// What a host shows.
impl Host {
    /// What the node may do. O(1), without a lock.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing::ALL[usize::from(self.standing.load(SeqCst)) % Standing::ALL.len()]
    }

    /// The last record of the state that its log has. O(1), without a lock.
    #[must_use]
    pub fn last(&self) -> Sequence {
        Sequence::new(self.last.load(SeqCst))
    }

    /// Whether the leader's lease lasts *now*. To be asked behind a read of the state. O(1), no
    /// lock.
    #[must_use]
    pub fn has_lease(&self) -> bool {
        boot_time().micros() < self.lease_until.load(SeqCst)
    }

    /// Where the leader takes its clients, if one was heard of within its lease.
    #[must_use]
    pub fn leader(&self) -> Option<String> {
        let inner = self.inner.lock();
        let node = inner.node.as_ref()?;
        node.leader().map(str::to_owned)
    }

    /// What is confirmed, if the own log has all of it on the disk. Waits for that.
    #[must_use]
    pub fn kept_point(&self) -> Option<Point> {
        let inner = self.inner.lock();
        let point = inner.node.as_ref()?.point().clone();
        drop(inner);
        // While the node reads again what it has, the point is behind the own log.
        self.own.wait(point.last).ok()?;
        Some(point)
    }

    /// What is known of the group.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut inner = self.inner.lock();
        let refusal = inner.refusal.clone();
        let last = Sequence::new(self.last.load(SeqCst));
        let Some(node) = &mut inner.node else {
            return Report {
                standing: self.standing(),
                epoch: Epoch::NONE,
                leader: None,
                confirmed: self.watermark.get(),
                last,
                position: Position::NONE,
                staleness: None,
                lease: None,
                refusal,
            };
        };
        let now = boot_time();
        let is_leader = matches!(node.role(), Role::Leader(_));
        let staleness = node.freshness(now).ok().map(|fresh| fresh.staleness);
        Report {
            standing: self.standing(),
            epoch: node.point().reign.epoch,
            leader: node.leader().map(str::to_owned),
            confirmed: self.watermark.get(),
            last,
            position: node.read_position(),
            staleness: staleness.filter(|_| !is_leader),
            lease: node.lease_until().map(|until| until.since(now)),
            refusal,
        }
    }
}
