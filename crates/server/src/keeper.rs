//! The keeper: what the accepting thread looks at regularly, so that no command has to.
//!
//! Every [`TICK`] it looks at the workers: whether their threads still turn, and how busy they are.
//! Once a second it looks at the clients: who is silent, who does not read, and what all hold.

use crate::clients::Clients;
use crate::commands::Command;
use crate::server::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::runtime::RuntimeMetrics;
use tokio::time::MissedTickBehavior;

/// How often a worker shows that its thread turns, and how often the keeper looks.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// How long a thread may not turn before the log names it and it gets no new clients.
pub(crate) const STUCK: Duration = Duration::from_secs(1);

/// Ticks from one look at the clients to the next.
const TICKS_OF_CLIENTS: u32 = 4;

/// What a worker shows to other threads.
#[derive(Default)]
pub(crate) struct Pulse {
    /// The clients of the worker.
    pub(crate) clients: AtomicUsize,
    /// When its thread last turned, in milliseconds from the start of the server.
    beat: AtomicU64,
    /// Its busy time in the last tick, in thousandths.
    busy: AtomicUsize,
    is_stuck: AtomicBool,
}

impl Pulse {
    pub(crate) fn beat(&self, started: Instant) {
        self.beat.store(milliseconds(started.elapsed()), Relaxed);
    }

    /// The load of the thread: its clients, each as much as four if the thread is always busy. The
    /// keeper learns of busy time late, so it must not decide alone: else all clients that come
    /// within a tick would go to one thread. `None` if the thread is stuck.
    fn load(&self) -> Option<usize> {
        let clients = self.clients.load(Relaxed).saturating_add(1);
        let load = clients.saturating_mul(1000 + 3 * self.busy.load(Relaxed));
        (!self.is_stuck.load(Relaxed)).then_some(load)
    }
}

/// The worker that the next client goes to: the one with the least load among those whose threads
/// turn; the one with the fewest clients if none does.
pub(crate) fn next_worker<'a>(pulses: impl Iterator<Item = &'a Pulse> + Clone) -> Option<usize> {
    let turning = pulses
        .clone()
        .enumerate()
        .filter_map(|(number, pulse)| Some((pulse.load()?, number)))
        .min();
    let any = pulses
        .enumerate()
        .map(|(number, pulse)| (pulse.clients.load(Relaxed), number))
        .min();
    turning.or(any).map(|(_, number)| number)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A worker as the keeper sees it.
pub(crate) struct Watched {
    pulse: Arc<Pulse>,
    metrics: RuntimeMetrics,
    /// The busy time at the last look.
    busy: Duration,
}

/// Looks at workers and clients for ever.
pub(crate) async fn keep(mut workers: Vec<Watched>, shared: &Shared) {
    let limits = &shared.limits.clients;
    let timeout = (limits.timeout > 0).then(|| Duration::from_secs(limits.timeout));
    let slow = Duration::from_secs(limits.soft_output_seconds);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = ticks.tick().await.into_std();
    let mut number: u32 = 0;
    loop {
        ticks.tick().await;
        let passed = last.elapsed();
        last = Instant::now();
        // If this thread has not turned either, the whole process or machine stood still.
        if passed < STUCK {
            for (number, worker) in workers.iter_mut().enumerate() {
                worker.look_at_busy(passed);
                if let Some(line) = worker.look(number, shared) {
                    tracing::warn!("{line}");
                }
            }
        }
        number = number.wrapping_add(1);
        if number.is_multiple_of(TICKS_OF_CLIENTS) {
            shared.clients.close_idle(timeout, slow);
            shared.clients.keep_within_limit();
        }
    }
}

impl Watched {
    pub(crate) fn new(pulse: Arc<Pulse>, metrics: RuntimeMetrics) -> Self {
        Self {
            pulse,
            metrics,
            busy: Duration::ZERO,
        }
    }

    fn look_at_busy(&mut self, passed: Duration) {
        let busy = self.metrics.worker_total_busy_duration(0);
        let share = busy.saturating_sub(self.busy).as_secs_f64() / passed.as_secs_f64();
        self.busy = busy;
        // Between 0 and 1000.
        self.pulse
            .busy
            .store((share.clamp(0.0, 1.0) * 1000.0) as usize, Relaxed);
    }

    /// Looks whether the thread turns. Returns what the log says of it if that has changed.
    pub(crate) fn look(&mut self, number: usize, shared: &Shared) -> Option<String> {
        let beat = self.pulse.beat.load(Relaxed);
        let still = milliseconds(shared.started.elapsed()).saturating_sub(beat);
        let is_stuck = still >= milliseconds(STUCK);
        if self.pulse.is_stuck.swap(is_stuck, Relaxed) == is_stuck {
            return None;
        }
        if !is_stuck {
            return Some(format!("thread tremula-{number} turns again"));
        }
        let what = culprit(number, &shared.clients);
        Some(format!(
            "thread tremula-{number} has not turned for {still} ms: {what}; it gets no new clients \
             until it turns"
        ))
    }
}

/// What runs on the thread of a worker.
fn culprit(worker: usize, clients: &Clients) -> String {
    for client in clients.list() {
        // 0, if no command of the client runs at this moment, stands for no command.
        let command = Command::of_token(client.on_thread());
        if let (true, Some(command)) = (client.worker == worker, command) {
            return format!("it runs {} of {}", command.full_name, client.who());
        }
    }
    "no command runs on it".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(clients: usize, busy: usize, is_stuck: bool) -> Pulse {
        Pulse {
            clients: AtomicUsize::new(clients),
            beat: AtomicU64::new(0),
            busy: AtomicUsize::new(busy),
            is_stuck: AtomicBool::new(is_stuck),
        }
    }

    fn next(pulses: &[Pulse]) -> Option<usize> {
        next_worker(pulses.iter())
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
    }
}
