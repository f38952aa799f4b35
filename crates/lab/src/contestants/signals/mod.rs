//! The channels of this process: the mailboxes of this project, and the rivals.

mod burst;
mod channel;
mod phases;
mod ping_pong;
mod rival;
mod stream;
mod throughput;
mod uncontended_send;

pub use burst::burst;
#[cfg(all(test, feature = "rivals"))]
pub(crate) use channel::tests as channel_tests;
pub(crate) use channel::{Channel, Receiving, Sending};
pub(super) use ping_pong::QUANTILES;
pub use rival::ChannelRival;
pub(super) use throughput::DRAIN;

use super::{Contestant, ContestantName};
use crate::{
    LabError,
    measure::{Places, Sample, alone},
    memory::FillCommand,
    workload::{Job, MessageKind, SignalsJob, Traffic},
};
use channel::Mailboxes;
use tremula_mailbox::Mode;

/// A kind of channel in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// The mailboxes of this project, in this mode.
    Mailbox(Mode),
    /// A rival; its feature must be there.
    Rival(ChannelRival),
}

/// Something to be done with channels of messages of some type.
///
/// It is generic where it is carried out, so that its calls of the channel are static.
pub(crate) trait ChannelTask<M> {
    /// What comes out of it.
    type Output;

    /// Does it with this kind of channel.
    fn run<C: Channel<M>>(self, channel: &C) -> Self::Output;
}

impl ChannelKind {
    /// The contestant's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mailbox(mode) => mailbox_name(mode),
            Self::Rival(rival) => rival.name(),
        }
    }

    fn run<M: Send + 'static, T: ChannelTask<M>>(self, task: T) -> T::Output {
        match self {
            Self::Mailbox(mode) => task.run(&Mailboxes(mode)),
            Self::Rival(rival) => rival.run(task),
        }
    }
}

/// The name of the contestant that is a mailbox in this mode.
pub(super) const fn mailbox_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto => "mailbox_auto",
        Mode::OnHeap => "mailbox_on_heap",
        Mode::OffHeap => "mailbox_off_heap",
    }
}

impl From<ChannelKind> for ContestantName {
    fn from(kind: ChannelKind) -> Self {
        match kind {
            ChannelKind::Mailbox(mode) => Self::Mailbox(mode),
            ChannelKind::Rival(rival) => Self::ChannelRival(rival),
        }
    }
}

/// A kind of channel of this process as a contestant.
#[derive(Clone, Debug)]
pub struct InProcessChannel {
    kind: ChannelKind,
    burst_command: Option<FillCommand>,
}

/// What a job gives: for each of its measurements a sample, or what was wrong with the channel.
type Measured = Result<Vec<Sample>, String>;

impl InProcessChannel {
    /// The kind, with the command for processes that weigh it.
    #[must_use]
    pub const fn new(kind: ChannelKind, burst_command: Option<FillCommand>) -> Self {
        Self {
            kind,
            burst_command,
        }
    }

    fn throughput(&self, job: &SignalsJob) -> Measured {
        let task = throughput::Throughput {
            live: job.traffic == Traffic::Live,
            senders: job.senders,
            most_waiting: job.most_waiting(),
            span: job.span,
        };
        match job.message {
            MessageKind::Word => self.kind.run::<u64, _>(task),
            MessageKind::Words8 => self.kind.run::<[u64; 8], _>(task),
            MessageKind::Words100 => self.kind.run::<[u64; 100], _>(task),
            MessageKind::Boxed100 => self.kind.run::<Box<[u64; 100]>, _>(task),
        }
    }
}

impl Contestant for InProcessChannel {
    fn name(&self) -> ContestantName {
        self.kind.into()
    }

    fn version(&self) -> String {
        match self.kind {
            ChannelKind::Mailbox(_) => format!("tremula {}", env!("CARGO_PKG_VERSION")),
            ChannelKind::Rival(rival) => rival.version().to_owned(),
        }
    }

    fn measure(&mut self, job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError> {
        let Job::Signals(job) = job else {
            return Err(LabError::Unavailable {
                engine: self.kind.name(),
                missing: "it is a channel, and was given the work of a table",
            });
        };
        let measured = match job.traffic {
            Traffic::Drain | Traffic::Live => self.throughput(job),
            Traffic::PingPong => {
                let (span, places) = (job.span, &Places::of_workers());
                alone(|| self.kind.run(ping_pong::PingPong { places, span }))
            }
            Traffic::UncontendedSend => {
                let span = job.span;
                alone(|| self.kind.run(uncontended_send::UncontendedSend { span }))
            }
            Traffic::Phases => self.kind.run(phases::Phases {
                senders: job.senders,
                most_waiting: job.most_waiting(),
                span: job.span,
            }),
            Traffic::Burst => {
                let command = self.burst_command.as_ref().ok_or(LabError::NoFillCommand {
                    experiment: "signals",
                })?;
                return Ok(vec![Ok(command.run_burst(self.kind.name(), job)?)]);
            }
        };
        let samples = measured.map_err(|fault| LabError::Wrong {
            engine: self.kind.name(),
            fault,
        })?;
        Ok(samples.into_iter().map(Ok).collect())
    }
}
