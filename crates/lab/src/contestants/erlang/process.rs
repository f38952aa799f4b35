//! Processes that send to one process.

use super::ErlangMachine;
use crate::{
    LabError,
    contestants::{
        Contestant, ContestantName,
        signals::{DRAIN, QUANTILES},
    },
    measure::Sample,
    workload::{Job, MessageKind, SignalsJob, Traffic},
};
use std::time::Duration;

/// Bytes that the shortest message takes in Erlang, together with what holds it in the queue.
const LEAST_BYTES: u64 = 64;

/// Where the receiving process keeps messages that it has not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageQueue {
    /// `{message_queue_data, off_heap}`: with parallel signal sending, as of OTP 25.
    OffHeap,
    /// `{message_queue_data, on_heap}`, the default.
    OnHeap,
}

impl MessageQueue {
    /// Both.
    pub const ALL: [Self; 2] = [Self::OffHeap, Self::OnHeap];

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OffHeap => "erlang_off_heap",
            Self::OnHeap => "erlang_on_heap",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::OffHeap => "a process with messages kept off its heap, in Erlang",
            Self::OnHeap => "a process with messages kept on its heap, in Erlang",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::OffHeap => "off_heap",
            Self::OnHeap => "on_heap",
        }
    }

    /// Why it cannot take part; `None` if it can.
    pub(in crate::contestants) fn refuses(
        traffic: Traffic,
        message: Option<MessageKind>,
    ) -> Option<&'static str> {
        match traffic {
            _ if message == Some(MessageKind::Boxed100) => Some("Erlang copies what it sends"),
            Traffic::Drain | Traffic::Live | Traffic::PingPong => None,
            Traffic::UncontendedSend | Traffic::Burst | Traffic::Phases => {
                Some("the lab's Erlang program does not have this workload")
            }
        }
    }
}

/// A process on a running machine.
pub(super) struct ErlangProcess {
    machine: ErlangMachine,
    queue: MessageQueue,
}

impl ErlangProcess {
    pub(super) const fn new(machine: ErlangMachine, queue: MessageQueue) -> Self {
        Self { machine, queue }
    }

    fn throughput(&self, job: &SignalsJob) -> Result<Sample, LabError> {
        let most = SignalsJob::MOST_WAITING / LEAST_BYTES.max(job.message.bytes() as u64);
        let request = format!(
            "signals {} {} {} {} {most} {}",
            self.queue.word(),
            job.traffic.name(),
            job.message.words(),
            job.senders,
            milliseconds(job),
        );
        let [nanoseconds, messages, sending, receiving] = self.machine.ask(&request, &[])?;
        let mops = |time| Sample::new(messages, Duration::from_nanos(time)).mops();
        let mut sample = Sample::new(messages, Duration::from_nanos(nanoseconds));
        sample.send_mops = Some(mops(sending));
        if job.traffic == Traffic::Drain {
            sample.figures = vec![(DRAIN.to_owned(), mops(receiving))];
        }
        Ok(sample)
    }

    fn ping_pong(&self, job: &SignalsJob) -> Result<Sample, LabError> {
        let request = format!("ping_pong {} {}", self.queue.word(), milliseconds(job));
        let [nanoseconds, round_trips, p50, p99, p999] = self.machine.ask(&request, &[])?;
        let mut sample = Sample::new(round_trips, Duration::from_nanos(nanoseconds));
        sample.figures = QUANTILES
            .into_iter()
            .zip([p50, p99, p999])
            .map(|((name, _), time)| (name.to_owned(), time as f64))
            .collect();
        Ok(sample)
    }
}

/// How long to warm up, and how long to measure.
fn milliseconds(job: &SignalsJob) -> String {
    let [warm_up, counted] =
        [job.span.warm_up, job.span.counted].map(|time| time.as_millis().max(1));
    format!("{warm_up} {counted}")
}

impl Contestant for ErlangProcess {
    fn name(&self) -> ContestantName {
        ContestantName::ErlangProcess(self.queue)
    }

    fn version(&self) -> String {
        self.machine.version.clone()
    }

    fn measure(&mut self, job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError> {
        let sample = match job {
            Job::Signals(job)
                if MessageQueue::refuses(job.traffic, Some(job.message)).is_some() =>
            {
                Err(self.cannot())
            }
            Job::Signals(job) if job.traffic == Traffic::PingPong => self.ping_pong(job),
            Job::Signals(job) => self.throughput(job),
            _ => Err(self.cannot()),
        };
        Ok(vec![Ok(sample?)])
    }
}

impl ErlangProcess {
    /// The answer to a job that [`MessageQueue::refuses`] keeps away.
    const fn cannot(&self) -> LabError {
        LabError::Unavailable {
            engine: self.queue.name(),
            missing: "the lab's Erlang program does not have this workload",
        }
    }
}
