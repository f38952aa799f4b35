//! The channels of this process, and how a task gets one.

use super::{
    channel::{ChannelTask, Mailboxes},
    queue::{OneLock, QueueKind, Queues},
    rival::ChannelRival,
};
#[cfg(feature = "rivals")]
use crate::rivals::channels::run as run_rival;
use tremula_mailbox::Mode;
use tremula_papers::two_lock_queue::TwoLockQueue;

/// A kind of channel in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// The mailboxes of this project, in this mode.
    Mailbox(Mode),
    /// A queue with locks, to compare with.
    Queue(QueueKind),
    /// A rival; it needs the feature `rivals`.
    Rival(ChannelRival),
}

impl ChannelKind {
    /// Every kind.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let rivals = ChannelRival::ALL.into_iter().map(Self::Rival);
        let queues = QueueKind::ALL.into_iter().map(Self::Queue);
        let ours = Mode::ALL.into_iter().map(Self::Mailbox);
        ours.chain(queues).chain(rivals)
    }

    /// The contestant's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mailbox(Mode::Auto) => "mailbox_auto",
            Self::Mailbox(Mode::OnHeap) => "mailbox_on_heap",
            Self::Mailbox(Mode::OffHeap) => "mailbox_off_heap",
            Self::Mailbox(_) => "mailbox_in_another_mode",
            Self::Queue(queue) => queue.name(),
            Self::Rival(rival) => rival.name(),
        }
    }

    pub(super) fn run<M: Send + 'static, T: ChannelTask<M>>(self, task: T) -> T::Output {
        match self {
            Self::Mailbox(mode) => task.run(&Mailboxes(mode)),
            Self::Queue(QueueKind::OneLock) => task.run(&Queues::<OneLock<M>>::new()),
            Self::Queue(QueueKind::TwoLocks) => task.run(&Queues::<TwoLockQueue<M>>::new()),
            Self::Rival(rival) => run_rival(rival, task),
        }
    }
}

#[cfg(not(feature = "rivals"))]
fn run_rival<M, T: ChannelTask<M>>(rival: ChannelRival, _task: T) -> T::Output {
    unreachable!("{} is refused where it is missing", rival.name())
}
