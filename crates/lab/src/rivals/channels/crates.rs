//! The rivals that are complete channels: a sender's end that can be cloned, and a receiver's end
//! that waits. None of them has priorities or a selective receive.

use crate::contestants::{Channel, Receiving, Sending};

/// Adapters of channels: the name, the function that opens the channel, the types of its ends, the
/// function that sends, and an expression that waits for a message and is `None` when all senders
/// are gone.
macro_rules! adapters {
    ($($(#[$doc:meta])* $name:ident: $open:expr, $sender:ty, $send:path, $receiver:ty, |$end:ident| $receive:expr;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name;

        impl<M: Send + 'static> Channel<M> for $name {
            type Sender = $sender;
            type Receiver = $receiver;

            fn open(&self, _senders: usize) -> (Self::Sender, Self::Receiver) {
                $open()
            }
        }

        impl<M: Send + 'static> Sending<M> for $sender {
            fn another(&self) -> Self {
                self.clone()
            }

            #[inline]
            fn send(&mut self, message: M) {
                let sent = $send(self, message);
                assert!(sent.is_ok(), "the receiver is there");
            }
        }

        impl<M: Send + 'static> Receiving<M> for $receiver {
            #[inline]
            fn receive(&mut self) -> Option<M> {
                let $end = self;
                $receive
            }
        }
    )*};
}

adapters! {
    /// `std::sync::mpsc::channel`: a list of blocks, an older form of `crossbeam-channel`. A task
    /// cannot receive from it, and it reports no length.
    StdMpsc: std::sync::mpsc::channel,
        std::sync::mpsc::Sender<M>, std::sync::mpsc::Sender::send,
        std::sync::mpsc::Receiver<M>, |end| end.recv().ok();

    /// `crossbeam_channel::unbounded`: a list of blocks of 31 messages, for many receivers. A task
    /// cannot receive from it, and each call returns one message only.
    CrossbeamChannel: ::crossbeam_channel::unbounded,
        ::crossbeam_channel::Sender<M>, ::crossbeam_channel::Sender::send,
        ::crossbeam_channel::Receiver<M>, |end| end.recv().ok();

    /// `flume::unbounded`: a queue under one lock, for many receivers.
    Flume: ::flume::unbounded,
        ::flume::Sender<M>, ::flume::Sender::send, ::flume::Receiver<M>, |end| end.recv().ok();

    /// `kanal::unbounded`: a queue under one lock, for many receivers. A sender hands its message
    /// directly to a waiting receiver.
    Kanal: ::kanal::unbounded,
        ::kanal::Sender<M>, ::kanal::Sender::send, ::kanal::Receiver<M>, |end| end.recv().ok();

    /// `tokio::sync::mpsc::unbounded_channel`: a list of blocks of 32 messages, made for tasks. A
    /// thread receives with `blocking_recv`, as here; a task of tokio with `recv`.
    TokioMpsc: tokio::sync::mpsc::unbounded_channel,
        tokio::sync::mpsc::UnboundedSender<M>, tokio::sync::mpsc::UnboundedSender::send,
        tokio::sync::mpsc::UnboundedReceiver<M>, |end| end.blocking_recv();

    /// `crossfire::mpsc::unbounded_blocking`: a list of blocks, with one receiver, which may be a
    /// thread.
    Crossfire: ::crossfire::mpsc::unbounded_blocking,
        ::crossfire::MTx<::crossfire::mpsc::List<M>>, ::crossfire::Tx::send,
        ::crossfire::Rx<::crossfire::mpsc::List<M>>, |end| end.recv().ok();
}
