//! The rivals of the mailboxes, one adapter a file.
//!
//! An adapter does what a mailbox does: it sends without a limit, and receives, one message a call,
//! with a wait if there is none, until all senders are gone. It uses what the crate's own
//! documentation recommends for threads, and says what the crate cannot do.

mod crossbeam_channel;
mod crossfire;
mod flume;
mod kanal;
mod mutex_vec;
mod seg_queue;
mod spillway;
mod std_mpsc;
#[cfg(test)]
mod tests;
mod tokio_mpsc;
mod unclosed;

use crate::contestants::{ChannelRival, ChannelTask};

/// Does the task with channels of this kind.
pub(crate) fn run<M: Send + 'static, T: ChannelTask<M>>(rival: ChannelRival, task: T) -> T::Output {
    match rival {
        ChannelRival::StdMpsc => task.run(&std_mpsc::Channels),
        ChannelRival::CrossbeamChannel => task.run(&crossbeam_channel::Channels),
        ChannelRival::Flume => task.run(&flume::Channels),
        ChannelRival::Kanal => task.run(&kanal::Channels),
        ChannelRival::TokioMpsc => task.run(&tokio_mpsc::Channels),
        ChannelRival::SegQueue => task.run(&seg_queue::Channels),
        ChannelRival::Crossfire => task.run(&crossfire::Channels),
        ChannelRival::Spillway => task.run(&spillway::Channels),
        ChannelRival::MutexVec => task.run(&mutex_vec::Channels),
    }
}
