//! The keeper: what the accepting thread looks at regularly, so that no command has to.
//!
//! At every [`LOOK`] it looks at the workers: whether their threads still turn, how busy they are,
//! and whether their clients should gather or spread; whether huge pages suit what is used; and it
//! evicts keys if the limit of memory has been lowered. Once a second it looks at the clients: who
//! is silent, who does not read, and what all hold.

use crate::clients::Clients;
use crate::commands::Command;
use crate::gather::{Judge, LOOK, Seen, Threads};
use crate::huge_pages;
use crate::machine::Processors;
use crate::server::Shared;
use crate::watch::Event;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::runtime::RuntimeMetrics;
use tokio::time::MissedTickBehavior;

/// How often a worker shows that its thread turns.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// How long a thread may not turn before the log names it and it gets no new clients.
pub(crate) const STUCK: Duration = Duration::from_secs(1);

/// Looks at the workers from one look at the clients to the next.
const LOOKS_OF_CLIENTS: u32 = 10;

/// What a worker shows to other threads, and what they ask of it.
pub(crate) struct Pulse {
    /// The clients of the worker.
    pub(crate) clients: AtomicUsize,
    /// Its clients that have completed a command since the last look.
    pub(crate) active: AtomicUsize,
    /// When its thread last turned, in milliseconds from the start of the server.
    beat: AtomicU64,
    /// Its busy time before the last look, in thousandths.
    busy: AtomicUsize,
    is_stuck: AtomicBool,
    /// Whether clients gather on it.
    is_open: AtomicBool,
    /// How many of its clients should leave it before the next look.
    leave: AtomicUsize,
    /// The thread that they should go to, plus one; 0 if to any that is open.
    target: AtomicUsize,
    /// Clients that came from other threads, and that went to others.
    pub(crate) moved_in: AtomicU64,
    pub(crate) moved_out: AtomicU64,
}

impl Pulse {
    pub(crate) fn new(is_open: bool) -> Self {
        Self {
            clients: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            beat: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            is_stuck: AtomicBool::new(false),
            is_open: AtomicBool::new(is_open),
            leave: AtomicUsize::new(0),
            target: AtomicUsize::new(0),
            moved_in: AtomicU64::new(0),
            moved_out: AtomicU64::new(0),
        }
    }

    pub(crate) fn beat(&self, started: Instant) {
        self.beat.store(milliseconds(started.elapsed()), Relaxed);
    }

    /// Whether the keeper saw the thread turn at its last look.
    pub(crate) fn turns(&self) -> bool {
        !self.is_stuck.load(Relaxed)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Relaxed)
    }

    pub(crate) fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Relaxed);
    }

    /// What the keeper sees. The count of active clients begins anew.
    pub(crate) fn seen(&self) -> Seen {
        Seen {
            busy: self.busy(),
            active: self.active.swap(0, Relaxed),
            is_open: self.is_open(),
            is_stuck: self.is_stuck.load(Relaxed),
        }
    }

    /// Its busy time before the last look, in thousandths.
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Relaxed)
    }

    /// For how long its thread has not turned.
    pub(crate) fn still(&self, started: Instant) -> Duration {
        let beat = Duration::from_millis(self.beat.load(Relaxed));
        started.elapsed().saturating_sub(beat)
    }

    /// Asks some clients to leave: for one thread, or for any that is open.
    pub(crate) fn let_leave(&self, clients: usize, to: Option<usize>) {
        self.target.store(to.map_or(0, |to| to + 1), Relaxed);
        self.leave.store(clients, Relaxed);
    }

    /// Whether a client of this thread should leave, and for which thread. Only the worker itself
    /// calls this.
    pub(crate) fn take_leave(&self) -> Option<Option<usize>> {
        let leave = self.leave.load(Relaxed);
        if leave == 0 {
            return None;
        }
        if leave < usize::MAX {
            // The keeper may have stored another number meanwhile; then that order is one short or
            // one long, and a later look mends it.
            self.leave.store(leave - 1, Relaxed);
        }
        Some(self.target.load(Relaxed).checked_sub(1))
    }

    /// The load of the thread: its clients, each as much as four if the thread is always busy. The
    /// keeper learns of busy time late, so it must not decide alone: else all clients that come
    /// between two looks would go to one thread. `None` if the thread is stuck or closed.
    fn load(&self) -> Option<usize> {
        let clients = self.clients.load(Relaxed).saturating_add(1);
        let load = clients.saturating_mul(1000 + 3 * self.busy.load(Relaxed));
        (self.is_open() && !self.is_stuck.load(Relaxed)).then_some(load)
    }
}

/// The worker that the next client goes to: the one with the least load among those that are open
/// and turn. If no thread is and does, the one with the fewest clients.
pub(crate) fn next_worker(pulses: &[Pulse]) -> Option<usize> {
    let numbered = || pulses.iter().enumerate();
    let turning = numbered().filter_map(|(number, pulse)| Some((pulse.load()?, number)));
    let any = numbered().map(|(number, pulse)| (pulse.clients.load(Relaxed), number));
    turning.min().or(any.min()).map(|(_, number)| number)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A worker as the keeper sees it.
pub(crate) struct Watched {
    number: usize,
    metrics: RuntimeMetrics,
    /// The busy time at the last look.
    busy: Duration,
    /// Its last beat, while it is stuck.
    stopped: u64,
}

/// Looks at workers and clients for ever.
pub(crate) async fn keep(shared: &Shared) {
    let threads = &shared.threads;
    let mut workers: Vec<_> = (0..threads.count())
        .map(|number| Watched::new(number, threads))
        .collect();
    let mut judge = Judge::default();
    let mut processors = Processors::default();
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = ticks.tick().await.into_std();
    let mut number: u32 = 0;
    loop {
        ticks.tick().await;
        let passed = last.elapsed();
        last = Instant::now();
        let idle = processors.idle(passed);
        // If this thread has not turned either, the whole process or machine stood still.
        if passed < STUCK {
            for worker in &mut workers {
                worker.look_at_busy(passed, threads);
                if let Some(line) = worker.look(shared) {
                    tracing::warn!("{line}");
                }
            }
            threads.look(&mut judge, idle);
        }
        huge_pages::fit();
        while shared.memory.shrink(shared) {
            tokio::task::yield_now().await;
        }
        number = number.wrapping_add(1);
        if number.is_multiple_of(LOOKS_OF_CLIENTS) {
            let timeout = shared.live.timeout.get();
            let timeout = (timeout > 0).then(|| Duration::from_secs(timeout));
            let slow = Duration::from_secs(shared.live.soft_output_seconds.get());
            let is_short = shared.memory.was_short();
            shared.clients.close_idle(timeout, slow, is_short);
            shared.clients.keep_within_limit();
        }
    }
}

impl Watched {
    pub(crate) fn new(number: usize, threads: &Threads) -> Self {
        let metrics = threads.handle(number).metrics();
        Self {
            number,
            busy: metrics.worker_total_busy_duration(0),
            metrics,
            stopped: 0,
        }
    }

    fn look_at_busy(&mut self, passed: Duration, threads: &Threads) {
        let busy = self.metrics.worker_total_busy_duration(0);
        let share = busy.saturating_sub(self.busy).as_secs_f64() / passed.as_secs_f64();
        self.busy = busy;
        // Between 0 and 1000.
        let busy = (share.clamp(0.0, 1.0) * 1000.0) as usize;
        threads.pulse(self.number).busy.store(busy, Relaxed);
    }

    /// Looks whether the thread turns. Returns what the log says of it if that has changed.
    pub(crate) fn look(&mut self, shared: &Shared) -> Option<String> {
        let number = self.number;
        let pulse = shared.threads.pulse(number);
        let beat = pulse.beat.load(Relaxed);
        let still = milliseconds(shared.started.elapsed()).saturating_sub(beat);
        let is_stuck = still >= milliseconds(STUCK);
        if pulse.is_stuck.swap(is_stuck, Relaxed) == is_stuck {
            return None;
        }
        if !is_stuck {
            note_stuck(shared, beat.saturating_sub(self.stopped));
            return Some(format!("thread tremula-{number} turns again"));
        }
        self.stopped = beat;
        // So that LATENCY shows it before the thread turns again; the whole time follows then.
        note_stuck(shared, still);
        let what = culprit(number, &shared.clients);
        Some(format!(
            "thread tremula-{number} has not turned for {still} ms: {what}; it gets no new clients \
             until it turns"
        ))
    }
}

/// Keeps for `LATENCY` how many milliseconds a thread has stood.
fn note_stuck(shared: &Shared, milliseconds: u64) {
    let stood = Duration::from_millis(milliseconds);
    if shared.live.long_event().is_some_and(|long| stood >= long) {
        shared.latencies.add(Event::Stuck, stood);
    }
}

/// What runs on the thread of a worker.
fn culprit(worker: usize, clients: &Clients) -> String {
    for client in clients.list() {
        // 0, if no command of the client runs at this moment, stands for no command.
        let command = Command::of_token(client.on_thread());
        if let (true, Some(command)) = (client.worker() == worker, command) {
            return format!("it runs {} of {}", command.full_name, client.who());
        }
    }
    "no command runs on it".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(clients: usize, busy: usize, is_stuck: bool) -> Pulse {
        let pulse = Pulse::new(true);
        pulse.clients.store(clients, Relaxed);
        pulse.busy.store(busy, Relaxed);
        pulse.is_stuck.store(is_stuck, Relaxed);
        pulse
    }

    fn next(pulses: &[Pulse]) -> Option<usize> {
        next_worker(pulses)
    }

    #[test]
    fn only_a_thread_that_is_stuck_does_not_turn() {
        assert!(pulse(9, 1000, false).turns());
        assert!(!pulse(0, 0, true).turns());
        let closed = pulse(0, 0, false);
        closed.set_open(false);
        assert!(closed.turns());
    }

    #[test]
    fn a_client_goes_to_the_thread_with_the_least_load_that_turns() {
        assert_eq!(next(&[]), None);
        let even = [pulse(3, 500, false), pulse(2, 500, false)];
        assert_eq!(next(&even), Some(1));
        let busy = [pulse(3, 0, false), pulse(2, 1000, false)];
        assert_eq!(next(&busy), Some(0), "busy time counts");
        let crowded = [pulse(100, 0, false), pulse(2, 1000, false)];
        assert_eq!(next(&crowded), Some(1), "it does not decide alone");
        let stuck = [pulse(0, 0, true), pulse(9, 1000, false)];
        assert_eq!(next(&stuck), Some(1));
        let all = [pulse(5, 0, true), pulse(4, 0, true)];
        assert_eq!(next(&all), Some(1), "a client may wait, but comes in");
        let closed = [pulse(0, 0, false), pulse(9, 900, false)];
        closed[0].set_open(false);
        assert_eq!(next(&closed), Some(1), "clients gather");
    }
}
