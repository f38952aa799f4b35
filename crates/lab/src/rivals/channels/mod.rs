//! The rivals of the mailboxes: complete channels in `crates`, the others in a file each.
//!
//! An adapter does what a mailbox does: it sends without a limit, and receives one message a call,
//! waiting if none is there, until all senders are gone. It uses what the crate's own documentation
//! recommends for threads, and says what the crate cannot do.

mod crates;
mod mutex_vec;
mod seg_queue;
mod spillway;
#[cfg(test)]
mod tests;
mod unclosed;

use crate::contestants::{ChannelRival, ChannelTask};

/// Does the task with channels of this kind.
pub(crate) fn run<M: Send + 'static, T: ChannelTask<M>>(rival: ChannelRival, task: T) -> T::Output {
    match rival {
        ChannelRival::StdMpsc => task.run(&crates::StdMpsc),
        ChannelRival::CrossbeamChannel => task.run(&crates::CrossbeamChannel),
        ChannelRival::Flume => task.run(&crates::Flume),
        ChannelRival::Kanal => task.run(&crates::Kanal),
        ChannelRival::TokioMpsc => task.run(&crates::TokioMpsc),
        ChannelRival::SegQueue => task.run(&seg_queue::Channels),
        ChannelRival::Crossfire => task.run(&crates::Crossfire),
        ChannelRival::Spillway => task.run(&spillway::Channels),
        ChannelRival::MutexVec => task.run(&mutex_vec::Channels),
    }
}
