//! What each thread counts of the commands that it runs.
//!
//! A worker and its thread apart have a stripe each, which nobody else writes to: so counting costs
//! a few plain loads and stores. A reader adds the stripes up. `CONFIG RESETSTAT` does not
//! write to them either: it keeps the sums of that moment, and readers take these away.

use super::count::Count;
use super::histogram::{Histogram, Times};
use super::sampler::{Sample, Sampler};
use crate::commands::{COUNT, Command, numbered};
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use tremula_sync::CachePadded;

/// Codes of errors that are counted apart. The server has a dozen; should a client find a way to
/// make new ones, these are counted together.
const MOST_CODES: usize = 128;

/// The code under which errors are counted whose own code would be one too many.
const OTHER_CODES: &str = "OTHER";

/// What one thread has counted of one command.
#[derive(Default)]
struct OfCommand {
    calls: Count,
    nanoseconds: Count,
    rejected: Count,
    failed: Count,
    times: OnceLock<Box<Histogram>>,
}

/// What one thread has counted.
pub(crate) struct Stripe {
    commands: Box<[OfCommand]>,
    /// Requests, also those that were refused.
    pub(crate) requests: Count,
    /// Bytes read from clients, and bytes sent to them.
    pub(crate) read: Count,
    pub(crate) sent: Count,
    /// Lookups of keys that were there, and of others.
    pub(crate) hits: Count,
    pub(crate) misses: Count,
    /// Keys of commands, one of many.
    pub(crate) sampler: Sampler,
    /// Replies that were errors.
    pub(crate) errors: Count,
    /// The same, by the first word of their text.
    codes: Mutex<BTreeMap<Box<str>, u64>>,
}

impl Stripe {
    fn new() -> Self {
        Self {
            commands: (0..COUNT).map(|_| OfCommand::default()).collect(),
            requests: Count::default(),
            read: Count::default(),
            sent: Count::default(),
            hits: Count::default(),
            misses: Count::default(),
            errors: Count::default(),
            sampler: Sampler::default(),
            codes: Mutex::default(),
        }
    }

    /// Notes that a command has run `count` times, which took `time` altogether, and how many of
    /// these failed.
    pub(crate) fn ran(
        &self,
        command: &'static Command,
        time: Duration,
        count: u64,
        failed: u64,
        keeps_times: bool,
    ) {
        let of = &self.commands[command.number()];
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        of.calls.add(count);
        of.nanoseconds.add(nanoseconds);
        if failed > 0 {
            of.failed.add(failed);
        }
        if keeps_times {
            let times = of.times.get_or_init(Histogram::new);
            times.add(nanoseconds / count.max(1), count);
        }
    }

    /// Notes that a command was refused before it ran.
    pub(crate) fn rejected(&self, command: &'static Command) {
        self.commands[command.number()].rejected.add(1);
    }

    /// Notes that a command that counts as run has failed later.
    pub(crate) fn failed_later(&self, command: &'static Command) {
        self.commands[command.number()].failed.add(1);
    }

    /// Notes an error by its text, which begins with its code.
    pub(crate) fn error(&self, text: &[u8]) {
        let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let code = std::str::from_utf8(code).unwrap_or(OTHER_CODES);
        self.errors.add(1);
        let mut errors = lock(&self.codes);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
            return;
        }
        let code = if errors.len() < MOST_CODES {
            code
        } else {
            OTHER_CODES
        };
        *errors.entry(code.into()).or_default() += 1;
    }
}

/// The sums of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandSum {
    pub(crate) calls: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    pub(crate) times: Times,
}

impl CommandSum {
    fn add(&mut self, of: &OfCommand) {
        self.calls += of.calls.get();
        self.nanoseconds += of.nanoseconds.get();
        self.rejected += of.rejected.get();
        self.failed += of.failed.get();
        if let Some(times) = of.times.get() {
            self.times.add(times);
        }
    }

    fn subtract(&mut self, before: &Self) {
        self.calls = self.calls.saturating_sub(before.calls);
        self.nanoseconds = self.nanoseconds.saturating_sub(before.nanoseconds);
        self.rejected = self.rejected.saturating_sub(before.rejected);
        self.failed = self.failed.saturating_sub(before.failed);
        self.times.subtract(&before.times);
    }

    /// Whether there is anything to show.
    pub(crate) fn is_used(&self) -> bool {
        self.calls > 0 || self.rejected > 0 || self.failed > 0
    }
}

/// The sums of a moment that readers take away.
#[derive(Default)]
struct Base {
    /// By the number of the command; empty before the first reset.
    commands: Vec<CommandSum>,
    errors: BTreeMap<Box<str>, u64>,
}

/// The stripes of all threads.
pub(crate) struct Stripes {
    stripes: Box<[CachePadded<Stripe>]>,
    base: Mutex<Base>,
}

impl Stripes {
    /// Two stripes for each of `threads` workers.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            stripes: (0..2 * threads.max(1))
                .map(|_| CachePadded::new(Stripe::new()))
                .collect(),
            base: Mutex::default(),
        }
    }

    /// The stripe of a worker, or of its thread apart.
    #[inline]
    pub(crate) fn of(&self, worker: usize, is_apart: bool) -> &Stripe {
        &self.stripes[2 * worker + usize::from(is_apart)]
    }

    /// The sum of one count over all stripes, from the start of the server on.
    pub(crate) fn sum(&self, count: impl Fn(&Stripe) -> &Count) -> u64 {
        self.stripes.iter().map(|stripe| count(stripe).get()).sum()
    }

    /// The sums of one command since the last reset.
    pub(crate) fn command(&self, command: &'static Command) -> CommandSum {
        let number = command.number();
        let mut sum = self.whole(number);
        if let Some(before) = lock(&self.base).commands.get(number) {
            sum.subtract(before);
        }
        sum
    }

    fn whole(&self, number: usize) -> CommandSum {
        let mut sum = CommandSum::default();
        for stripe in &self.stripes {
            sum.add(&stripe.commands[number]);
        }
        sum
    }

    /// The commands that ran or were refused since the last reset, with their sums.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static Command, CommandSum)> {
        (0..COUNT)
            .filter_map(numbered)
            .filter(|command| command.subcommands.is_empty())
            .map(|command| (command, self.command(command)))
            .filter(|(_, sum)| sum.is_used())
    }

    /// The sums of every command that has run, by its number, from the start of the server on.
    pub(crate) fn all_commands(&self) -> impl Iterator<Item = (usize, CommandSum)> {
        (0..COUNT)
            .map(|number| (number, self.whole(number)))
            .filter(|(_, sum)| sum.calls > 0)
    }

    /// Moves the keys that the threads have sampled to `into`.
    pub(crate) fn take_samples(&self, into: &mut Vec<Sample>) {
        for stripe in &self.stripes {
            stripe.sampler.take(into);
        }
    }

    /// The errors since the last reset, by their codes.
    pub(crate) fn errors(&self) -> BTreeMap<Box<str>, u64> {
        let mut errors = self.all_errors();
        for (code, before) in &lock(&self.base).errors {
            if let Some(count) = errors.get_mut(code) {
                *count = count.saturating_sub(*before);
            }
        }
        errors.retain(|_, count| *count > 0);
        errors
    }

    fn all_errors(&self) -> BTreeMap<Box<str>, u64> {
        let mut errors = BTreeMap::new();
        for stripe in &self.stripes {
            for (code, count) in &*lock(&stripe.codes) {
                *errors.entry(code.clone()).or_default() += count;
            }
        }
        errors
    }

    /// Lets what was counted so far no longer show.
    pub(crate) fn reset(&self) {
        let base = Base {
            commands: (0..COUNT).map(|number| self.whole(number)).collect(),
            errors: self.all_errors(),
        };
        *lock(&self.base) = base;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::lookup_full;

    fn command(name: &str) -> &'static Command {
        lookup_full(name.as_bytes()).expect("a command")
    }

    #[test]
    fn sums_are_those_of_all_threads_since_the_last_reset() {
        let stripes = Stripes::new(2);
        let (get, set) = (command("get"), command("config|set"));
        let time = Duration::from_micros(8);
        stripes.of(0, false).ran(get, time, 4, 0, true);
        stripes.of(0, true).ran(get, time, 1, 1, true);
        stripes.of(1, false).rejected(set);
        stripes.of(1, true).failed_later(get);
        let sum = stripes.command(get);
        assert_eq!((sum.calls, sum.nanoseconds, sum.failed), (5, 16_000, 2));
        assert_eq!(sum.times.cumulative(), [(2, 4), (8, 5)]);
        let names: Vec<_> = stripes
            .commands()
            .map(|(command, _)| command.full_name)
            .collect();
        assert_eq!(names, ["get", "config|set"]);
        stripes.reset();
        assert_eq!(stripes.commands().count(), 0);
        stripes.of(1, false).ran(get, time, 2, 0, true);
        let sum = stripes.command(get);
        assert_eq!(
            (sum.calls, sum.nanoseconds, sum.times.count()),
            (2, 8000, 2)
        );
    }

    #[test]
    fn errors_are_counted_by_their_codes_which_have_a_limit() {
        let stripes = Stripes::new(1);
        stripes.of(0, false).error(b"ERR one");
        stripes.of(0, true).error(b"ERR two");
        stripes.of(0, true).error(b"NOAUTH");
        let counted = |stripes: &Stripes| -> Vec<_> {
            let errors = stripes.errors().into_iter();
            errors
                .map(|(code, count)| (code.to_string(), count))
                .collect()
        };
        assert_eq!(
            counted(&stripes),
            [("ERR".to_owned(), 2), ("NOAUTH".to_owned(), 1)]
        );
        stripes.reset();
        assert!(counted(&stripes).is_empty());
        for number in 0..2 * MOST_CODES {
            stripes
                .of(0, false)
                .error(format!("CODE{number} text").as_bytes());
        }
        let errors = stripes.errors();
        assert!(errors.len() <= MOST_CODES + 1);
        assert_eq!(errors.values().sum::<u64>(), 2 * MOST_CODES as u64);
    }
}
