//! How long measuring will take: an estimate beforehand, and a better one as measurements finish.

use crate::{
    Settings,
    contestants::ContestantName,
    experiments::{Case, Experiment},
    rounds::takes_part,
};
use std::time::Instant;

/// What it takes to make a key, to insert it, and to look at it once more in the end: most tables do
/// that within a microsecond. What it really takes shows when measurements finish.
const SECONDS_A_KEY: f64 = 1e-6;

/// What surrounds each measurement: starting threads, and two readings of how busy the machine is.
const SECONDS_BESIDE: f64 = 0.02;

/// About how long a measurement takes, in seconds, that is made of so many that last as the settings
/// say, one after the other on a table with so many keys.
pub(crate) fn measurement(timed: usize, keys: u64, settings: &Settings) -> f64 {
    let span = settings.span();
    let length = (span.warm_up + span.counted).as_secs_f64();
    length * timed as f64 + keys as f64 * SECONDS_A_KEY + SECONDS_BESIDE
}

/// How long a group of cases takes.
#[derive(Clone, Debug)]
pub(crate) struct GroupEstimate {
    /// Its first case, by which it is found.
    first: Case,
    /// One contestant's measurement, once.
    seconds: f64,
    /// How many measurements there are.
    turns: usize,
}

impl GroupEstimate {
    fn of(
        experiment: &dyn Experiment,
        group: &[Case],
        settings: &Settings,
        contestants: &[ContestantName],
    ) -> Self {
        let weighing = usize::from(experiment.weighing(group, settings).is_some());
        let takes_part = |name: &&ContestantName| takes_part(experiment, group, **name);
        let contestants = contestants.iter().filter(takes_part).count();
        let first = group[0].clone();
        Self {
            seconds: experiment.estimate(group, settings),
            first,
            turns: (settings.runs + weighing) * contestants,
        }
    }

    fn all(&self) -> f64 {
        self.seconds * self.turns as f64
    }
}

/// The groups of an experiment with these settings and contestants, each with its estimate: how many
/// measurements there are, times how long one lasts, and the making and inserting of keys.
pub(crate) fn groups(
    experiment: &dyn Experiment,
    settings: &Settings,
    contestants: &[ContestantName],
) -> Vec<GroupEstimate> {
    let groups = experiment.groups(settings);
    let estimate = |group: &Vec<Case>| GroupEstimate::of(experiment, group, settings, contestants);
    groups.iter().map(estimate).collect()
}

/// How long all groups take, in seconds.
pub(crate) fn total(groups: &[GroupEstimate]) -> f64 {
    groups.iter().map(GroupEstimate::all).sum()
}

/// Estimated and real seconds so far.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    estimated: f64,
    spent: f64,
}

impl Account {
    /// By what factor estimates are wrong. The fewer seconds were measured, the nearer to what else is
    /// believed.
    fn factor(self, belief: f64) -> f64 {
        const WEIGHT: f64 = 5.0;
        (self.spent + WEIGHT * belief) / (self.estimated + WEIGHT)
    }
}

/// How much time is left of several experiments, each of which is wrongly estimated in its own way.
#[derive(Debug)]
pub(crate) struct TimeLeft {
    /// The groups of each experiment.
    parts: Vec<Vec<GroupEstimate>>,
    /// The estimate for all.
    total: f64,
    /// The one under way, and how much of its estimate is left.
    part: usize,
    left: f64,
    all: Account,
    of_part: Account,
    /// When the last measurement was over.
    last: Instant,
    /// The estimate of the measurement under way.
    step: f64,
}

impl TimeLeft {
    pub(crate) fn of(parts: Vec<Vec<GroupEstimate>>) -> Self {
        Self {
            total: parts.iter().map(|groups| total(groups)).sum(),
            left: parts.first().map_or(0.0, |groups| total(groups)),
            parts,
            part: 0,
            all: Account::default(),
            of_part: Account::default(),
            last: Instant::now(),
            step: 0.0,
        }
    }

    /// Estimated seconds in all, and of them those that lie behind.
    pub(crate) fn progress(&self) -> (f64, f64) {
        (self.total - self.left - self.later(), self.total)
    }

    fn later(&self) -> f64 {
        let later = self.parts.iter().skip(self.part + 1);
        later.map(|groups| total(groups)).sum()
    }

    /// The experiment of this place begins.
    pub(crate) fn begin(&mut self, part: usize) {
        self.part = part;
        self.left = total(&self.parts[part]);
        self.of_part = Account::default();
        self.last = Instant::now();
    }

    fn group(&self, first: &Case) -> Option<&GroupEstimate> {
        let mut groups = self.parts[self.part].iter();
        groups.find(|group| group.first == *first)
    }

    /// The group of which these are the first workload and so on is not measured again.
    pub(crate) fn skip(&mut self, is_first: impl Fn(&Case) -> bool) {
        let mut groups = self.parts[self.part].iter();
        let group = groups.find(|group| is_first(&group.first));
        self.left -= group.map_or(0.0, GroupEstimate::all);
    }

    /// A measurement of the group with this first case begins.
    pub(crate) fn measures(&mut self, first: &Case) {
        self.step = self.group(first).map_or(0.0, |group| group.seconds);
    }

    /// It is over.
    pub(crate) fn measured(&mut self) {
        let now = Instant::now();
        self.add((now - self.last).as_secs_f64());
        self.last = now;
    }

    fn add(&mut self, spent: f64) {
        for account in [&mut self.all, &mut self.of_part] {
            account.estimated += self.step;
            account.spent += spent;
        }
        self.left -= self.step;
    }

    /// Seconds until all is measured, as far as is known by now.
    pub(crate) fn seconds(&self) -> f64 {
        let all = self.all.factor(1.0);
        self.left.max(0.0) * self.of_part.factor(all) + self.later() * all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use std::time::Duration;

    fn estimates(experiment: &str, settings: &Settings) -> Vec<GroupEstimate> {
        let names = ["locked", "ca_tree", "mailbox_auto"].map(|name| name.parse().unwrap());
        groups(experiments::find(experiment).unwrap(), settings, &names)
    }

    fn settings() -> Settings {
        Settings {
            threads: Some(vec![1, 2]),
            keys: Some(1_000_000),
            runs: 3,
            duration: Duration::from_millis(400),
            mixes: vec!["lookup".to_owned()],
            ..Settings::default()
        }
    }

    #[test]
    fn an_estimate_is_measurements_times_their_length_and_the_keys() {
        let groups = estimates("ordered_mix", &settings());
        // Two numbers of threads; three runs of two tables; a quarter of the time before it counts.
        let expected = 2.0 * 6.0 * (0.5 + 1.0 + SECONDS_BESIDE);
        assert!((total(&groups) - expected).abs() < 1e-9);
    }

    #[test]
    fn what_is_left_follows_what_measurements_really_take() {
        let groups = estimates("ordered_mix", &settings());
        let one = total(&groups);
        let mut left = TimeLeft::of(vec![groups.clone(), groups.clone()]);
        assert!((left.seconds() - 2.0 * one).abs() < 1e-9);
        left.begin(0);
        for group in &groups {
            for _ in 0..group.turns {
                left.measures(&group.first);
                // Three times as long as estimated.
                left.add(3.0 * group.seconds);
            }
        }
        let (done, total) = left.progress();
        assert!((done - one).abs() < 1e-9 && (total - 2.0 * one).abs() < 1e-9);
        // The belief that estimates are right has not died out, but it has little weight.
        assert!((2.0 * one..3.0 * one).contains(&left.seconds()), "{left:?}");
        left.begin(1);
        let before = left.seconds();
        left.skip(|first| *first == groups[0].first);
        assert!((before / 2.0 - left.seconds()).abs() < 1e-9);
    }
}
