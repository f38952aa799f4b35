//! The channels of this process: the mailboxes of this project, and the rivals.

mod burst;
mod channel;
mod kind;
mod phases;
mod ping_pong;
mod queue;
mod rival;
mod stream;
mod throughput;
mod uncontended_send;

pub use burst::burst;
#[cfg(all(test, feature = "rivals"))]
pub(crate) use channel::tests as channel_tests;
#[cfg(feature = "rivals")]
pub(crate) use channel::{Channel, ChannelTask, Receiving, Sending};
pub use kind::ChannelKind;
pub(super) use ping_pong::QUANTILES;
pub use queue::QueueKind;
pub use rival::ChannelRival;
pub(super) use throughput::DRAIN;

use super::{
    contestant::{
        Contestant, Entrant, Measures, Samples, Side, Started, Starter, own_version, samples,
    },
    rival::Rival,
};
use crate::{
    LabError,
    case::ContestantKind,
    measure::{Places, alone},
    memory::FillCommand,
    workload::{MessageKind, SignalsJob, Traffic},
};
use channel::Measured;

impl Entrant for ChannelKind {
    fn name(&self) -> &'static str {
        Self::name(*self)
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Mailbox(_) => "a mailbox of Tremula, in this process",
            Self::Queue(queue) => queue.about(),
            Self::Rival(rival) => rival.about(),
        }
    }

    fn side(&self) -> Side {
        match self {
            Self::Mailbox(_) => Side::Ours,
            Self::Queue(_) => Side::Other,
            Self::Rival(_) => Side::Rival,
        }
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Channels]
    }

    fn missing(&self) -> Option<&'static str> {
        match self {
            Self::Mailbox(_) | Self::Queue(_) => None,
            Self::Rival(_) => Rival::missing(),
        }
    }

    fn start(&self, _kind: ContestantKind, starter: &mut Starter) -> Result<Contestant, LabError> {
        let channel = InProcessChannel::new(*self, starter.fill_command.clone());
        Ok(Contestant::Channel(Box::new(channel)))
    }
}

/// A kind of channel of this process as a contestant.
#[derive(Clone, Debug)]
pub struct InProcessChannel {
    kind: ChannelKind,
    burst_command: Option<FillCommand>,
}

impl InProcessChannel {
    /// The kind, with the command that starts processes to weigh it.
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

impl Started for InProcessChannel {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn version(&self) -> String {
        match self.kind {
            ChannelKind::Mailbox(_) | ChannelKind::Queue(_) => own_version(),
            ChannelKind::Rival(rival) => rival.version().to_owned(),
        }
    }
}

impl Measures<SignalsJob> for InProcessChannel {
    fn measure(&mut self, job: &SignalsJob) -> Samples {
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
        let measured = measured.map(|samples| samples.into_iter().map(Ok).collect());
        samples(self.kind.name(), measured)
    }
}
