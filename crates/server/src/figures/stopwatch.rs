//! How long commands take, with few looks at the clock.
//!
//! A look takes about a tenth of the time of a short command. So a run of the same short command in
//! a pipeline, up to [`LONGEST_RUN`] of them, is timed as a whole, and each counts as the average.
//! The time of a command includes the reading of its request. When short times matter, because
//! `SLOWLOG` or `LATENCY` asks for them, each command is timed by itself.

use super::stripes::Stripe;
use crate::commands::Command;
use crate::settings::Live;
use std::time::{Duration, Instant};

/// Commands that are timed together.
const LONGEST_RUN: u64 = 16;

/// A command that took long.
pub(crate) struct Took {
    pub(crate) command: &'static Command,
    /// Where its request is in the input.
    pub(crate) at: usize,
    pub(crate) time: Duration,
}

/// The stopwatch of one connection.
pub(crate) struct Stopwatch {
    /// When what runs has begun.
    since: Instant,
    /// Whether each command is timed by itself.
    is_exact: bool,
    /// Whether times go into histograms.
    keeps_times: bool,
    /// From this time on, what took so long is [taken out](Self::take_slow).
    slow: Option<Duration>,
    /// Where the request is that runs.
    pub(crate) at: usize,
    run: Option<Run>,
    took: Option<Took>,
    /// The time of the steps so far of a command that has several.
    steps: Duration,
}

/// Commands that are timed together.
struct Run {
    command: &'static Command,
    count: u64,
    failed: u64,
    /// Where the last one's request is.
    at: usize,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            is_exact: false,
            keeps_times: true,
            slow: None,
            at: 0,
            run: None,
            took: None,
            steps: Duration::ZERO,
        }
    }

    /// Begins with the requests that have arrived.
    pub(crate) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// Takes over the settings that may have changed.
    pub(crate) fn apply(&mut self, live: &Live) {
        (self.slow, self.is_exact) = live.noticeable();
        self.keeps_times = live.tracks_latency();
    }

    /// A command is about to run: ends a run that it does not belong to.
    #[inline]
    pub(crate) fn before(&mut self, stripe: &Stripe, command: &'static Command, is_small: bool) {
        if let Some(run) = &self.run
            && !(is_small && std::ptr::eq(run.command, command))
        {
            self.end(stripe);
        }
    }

    /// A command has run.
    #[inline]
    pub(crate) fn after(
        &mut self,
        stripe: &Stripe,
        command: &'static Command,
        is_small: bool,
        failed: bool,
    ) {
        let run = self.run.get_or_insert(Run {
            command,
            count: 0,
            failed: 0,
            at: 0,
        });
        run.count += 1;
        run.failed += u64::from(failed);
        run.at = self.at;
        if !is_small || self.is_exact || run.count == LONGEST_RUN {
            self.end(stripe);
        }
    }

    /// Ends the run, if there is one. Returns the time if the clock was read.
    pub(crate) fn end(&mut self, stripe: &Stripe) -> Option<Instant> {
        let run = self.run.take()?;
        let now = Instant::now();
        let time = now.saturating_duration_since(self.since) + std::mem::take(&mut self.steps);
        self.since = now;
        self.note(stripe, &run, time);
        Some(now)
    }

    fn note(&mut self, stripe: &Stripe, run: &Run, time: Duration) {
        let (command, count, failed) = (run.command, run.count, run.failed);
        stripe.ran(command, time, count, failed, self.keeps_times);
        let is_slow = self.slow.is_some_and(|slow| time >= slow);
        #[cfg(feature = "otel")]
        crate::spans::ran(command, time, (count, failed), is_slow);
        if is_slow {
            self.took = Some(Took {
                command,
                at: run.at,
                time,
            });
        }
    }

    /// A command has done a step, and goes on later: only its own time counts.
    pub(crate) fn step(&mut self) {
        let now = Instant::now();
        self.steps += now.saturating_duration_since(self.since);
        self.since = now;
    }

    /// A command is about to go on after a pause.
    pub(crate) fn go_on(&mut self) {
        self.since = Instant::now();
    }

    /// Adds a time that the command waits before it is answered.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.steps += time;
    }

    /// A request was refused: its time is no command's.
    pub(crate) fn skip(&mut self, stripe: &Stripe) {
        if self.end(stripe).is_none() {
            self.since = Instant::now();
        }
        self.steps = Duration::ZERO;
    }

    /// What took so long that it is to be kept.
    #[inline]
    pub(crate) fn take_slow(&mut self) -> Option<Took> {
        self.took.take()
    }
}

#[cfg(test)]
mod tests {
    use super::super::stripes::Stripes;
    use super::*;
    use crate::commands::lookup_full;

    fn command(name: &str) -> &'static Command {
        lookup_full(name.as_bytes()).expect("a command")
    }

    /// Runs commands, some of which fail, and returns the calls and failures of `get` and `set`.
    fn counted(stopwatch: &mut Stopwatch, ran: &[(&str, bool, bool)]) -> [(u64, u64); 2] {
        let stripes = Stripes::new(1);
        let stripe = stripes.of(0, false);
        stopwatch.begin();
        for (name, is_small, failed) in ran {
            let command = command(name);
            stopwatch.before(stripe, command, *is_small);
            stopwatch.after(stripe, command, *is_small, *failed);
        }
        stopwatch.end(stripe);
        ["get", "set"].map(|name| {
            let sum = stripes.command(command(name));
            assert_eq!(sum.times.count(), sum.calls);
            (sum.calls, sum.failed)
        })
    }

    #[test]
    fn each_command_counts_once_as_what_it_was() {
        let mut stopwatch = Stopwatch::new();
        let one = [
            ("get", true, false),
            ("get", true, true),
            ("set", true, false),
        ];
        let long = [
            ("set", false, true),
            ("get", true, false),
            ("get", false, false),
        ];
        for is_exact in [false, true] {
            stopwatch.is_exact = is_exact;
            assert_eq!(counted(&mut stopwatch, &one), [(2, 1), (1, 0)]);
            assert_eq!(counted(&mut stopwatch, &long), [(2, 0), (1, 1)]);
            assert_eq!(
                counted(&mut stopwatch, &one.repeat(40)),
                [(80, 40), (40, 0)]
            );
            assert_eq!(
                counted(&mut stopwatch, &one[..1].repeat(40)),
                [(40, 0), (0, 0)]
            );
        }
    }

    #[test]
    fn the_time_of_a_command_is_that_of_its_steps() {
        let stripes = Stripes::new(1);
        let (stripe, keys) = (stripes.of(0, false), command("keys"));
        let mut stopwatch = Stopwatch::new();
        stopwatch.slow = Some(Duration::from_millis(20));
        let begun = Instant::now();
        let mut of_others = Duration::ZERO;
        stopwatch.begin();
        stopwatch.at = 7;
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(10));
            stopwatch.step();
            let others = Instant::now();
            std::thread::sleep(Duration::from_millis(10));
            of_others += others.elapsed();
            stopwatch.go_on();
        }
        stopwatch.after(stripe, keys, false, false);
        let took = stopwatch.take_slow().expect("it was slow");
        assert_eq!((took.command.full_name, took.at), ("keys", 7));
        assert!(took.time >= Duration::from_millis(20));
        assert!(
            took.time + of_others <= begun.elapsed(),
            "others' time is not its own"
        );
        assert!(stopwatch.take_slow().is_none());
        let sum = stripes.command(keys);
        assert_eq!(
            (u128::from(sum.nanoseconds), sum.calls),
            (took.time.as_nanos(), 1)
        );
    }
}
