//! Erlang processes that send to one process.

use super::ErlangMachine;
use crate::{
    LabError,
    case::ContestantKind,
    contestants::{
        contestant::{Asked, Contestant, Entrant, Measures, Samples, Side, Started, Starter},
        signals::{DRAIN, QUANTILES},
    },
    measure::Sample,
    workload::{MessageKind, SignalsJob, Traffic},
};
use std::time::Duration;

/// Bytes of the shortest message in Erlang, including its entry in the queue.
const LEAST_BYTES: u64 = 64;

/// Where the receiving process keeps messages that it has not yet received.
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

    const fn word(self) -> &'static str {
        match self {
            Self::OffHeap => "off_heap",
            Self::OnHeap => "on_heap",
        }
    }
}

impl Entrant for MessageQueue {
    fn name(&self) -> &'static str {
        match self {
            Self::OffHeap => "erlang_off_heap",
            Self::OnHeap => "erlang_on_heap",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::OffHeap => "a process with messages kept off its heap, in Erlang",
            Self::OnHeap => "a process with messages kept on its heap, in Erlang",
        }
    }

    fn side(&self) -> Side {
        Side::Other
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Channels]
    }

    fn is_in_process(&self) -> bool {
        false
    }

    fn missing(&self) -> Option<&'static str> {
        super::missing()
    }

    fn refuses(&self, asked: &Asked<'_>) -> Option<&'static str> {
        let message = asked.key_set.and_then(|name| name.parse().ok());
        // The slices of `phases` have names of their own.
        let traffic = asked.workload.and_then(|name| name.parse().ok());
        refuses(traffic.unwrap_or(Traffic::Phases), message)
    }

    fn start(&self, _kind: ContestantKind, starter: &mut Starter) -> Result<Contestant, LabError> {
        let process = ErlangProcess::new(starter.erlang()?, *self);
        Ok(Contestant::Channel(Box::new(process)))
    }
}

/// Why an Erlang process cannot take part; `None` if it can.
fn refuses(traffic: Traffic, message: Option<MessageKind>) -> Option<&'static str> {
    match traffic {
        _ if message == Some(MessageKind::Boxed100) => Some("Erlang copies what it sends"),
        Traffic::Drain | Traffic::Live | Traffic::PingPong => None,
        Traffic::UncontendedSend | Traffic::Burst | Traffic::Phases => {
            Some("the lab's Erlang program does not have this workload")
        }
    }
}

/// A process on a running machine.
#[derive(Debug)]
pub struct ErlangProcess {
    machine: ErlangMachine,
    queue: MessageQueue,
}

impl ErlangProcess {
    /// A process on this machine, with messages kept in this way.
    #[must_use]
    pub const fn new(machine: ErlangMachine, queue: MessageQueue) -> Self {
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

/// The times to warm up and to measure, in milliseconds.
fn milliseconds(job: &SignalsJob) -> String {
    let [warm_up, counted] =
        [job.span.warm_up, job.span.counted].map(|time| time.as_millis().max(1));
    format!("{warm_up} {counted}")
}

impl Started for ErlangProcess {
    fn name(&self) -> &'static str {
        self.queue.name()
    }

    fn version(&self) -> String {
        self.machine.version()
    }
}

impl Measures<SignalsJob> for ErlangProcess {
    fn measure(&mut self, job: &SignalsJob) -> Samples {
        if let Some(missing) = refuses(job.traffic, Some(job.message)) {
            return Err(LabError::Unavailable {
                engine: self.queue.name(),
                missing,
            });
        }
        let sample = match job.traffic {
            Traffic::PingPong => self.ping_pong(job),
            _ => self.throughput(job),
        };
        Ok(vec![Ok(sample?)])
    }
}
