//! How long measuring will take: an estimate beforehand, and a better one as measurements finish.

use crate::{
    case::Case,
    plan::{Group, Plan},
};
use std::time::Instant;

fn total(groups: &[Group]) -> f64 {
    groups.iter().map(Group::all_seconds).sum()
}

/// Estimated and real seconds so far.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    estimated: f64,
    spent: f64,
}

impl Account {
    /// The factor by which estimates are wrong. The fewer seconds were measured, the closer it is
    /// to `belief`.
    fn factor(self, belief: f64) -> f64 {
        const WEIGHT: f64 = 5.0;
        (self.spent + WEIGHT * belief) / (self.estimated + WEIGHT)
    }
}

/// How much time is left of several experiments, each with an error of its own in the estimates.
#[derive(Debug)]
pub(crate) struct TimeLeft {
    /// The groups of each experiment.
    parts: Vec<Vec<Group>>,
    /// The estimate for all experiments.
    total: f64,
    /// The current experiment, and how much of its estimate is left.
    part: usize,
    left: f64,
    all: Account,
    of_part: Account,
    /// When the last measurement ended.
    last: Instant,
    /// The estimate of the current measurement.
    step: f64,
}

impl TimeLeft {
    pub(crate) fn of(plans: &[Plan]) -> Self {
        let parts: Vec<_> = plans.iter().map(|plan| plan.groups.clone()).collect();
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

    /// The estimated seconds that lie behind, and those in total.
    pub(crate) fn progress(&self) -> (f64, f64) {
        (self.total - self.left - self.later(), self.total)
    }

    fn later(&self) -> f64 {
        let later = self.parts.iter().skip(self.part + 1);
        later.map(|groups| total(groups)).sum()
    }

    /// The experiment with this index begins.
    pub(crate) fn begin(&mut self, part: usize) {
        self.part = part;
        self.left = total(&self.parts[part]);
        self.of_part = Account::default();
        self.last = Instant::now();
    }

    fn group(&self, first: &Case) -> Option<&Group> {
        let mut groups = self.parts[self.part].iter();
        groups.find(|group| group.cases[0] == *first)
    }

    /// The group with this first case is not measured again.
    pub(crate) fn skip(&mut self, is_first: impl Fn(&Case) -> bool) {
        let mut groups = self.parts[self.part].iter();
        let group = groups.find(|group| is_first(&group.cases[0]));
        self.left -= group.map_or(0.0, Group::all_seconds);
    }

    /// A measurement of the group with this first case begins.
    pub(crate) fn measures(&mut self, first: &Case) {
        self.step = self.group(first).map_or(0.0, |group| group.seconds);
    }

    /// The measurement is over.
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

    /// Seconds until all is measured, by what is known so far.
    pub(crate) fn seconds(&self) -> f64 {
        let all = self.all.factor(1.0);
        self.left.max(0.0) * self.of_part.factor(all) + self.later() * all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, experiments, settings::SECONDS_BESIDE};
    use std::time::Duration;

    fn planned(experiment: &str, settings: Settings) -> Plan {
        let names = ["locked", "ca_tree", "mailbox_auto"].map(|name| name.parse().unwrap());
        Plan::new(experiments::find(experiment).unwrap(), settings, &names).unwrap()
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
        let plan = planned("ordered_mix", settings());
        // Two numbers of threads; three runs of two tables; a quarter of the time as warm-up.
        let expected = 2.0 * 6.0 * (0.5 + 1.0 + SECONDS_BESIDE);
        assert!((plan.seconds() - expected).abs() < 1e-9);
    }

    #[test]
    fn what_is_left_follows_what_measurements_really_take() {
        let plan = planned("ordered_mix", settings());
        let one = plan.seconds();
        let mut left = TimeLeft::of(&[plan.clone(), plan.clone()]);
        let groups = plan.groups;
        assert!((left.seconds() - 2.0 * one).abs() < 1e-9);
        left.begin(0);
        for group in &groups {
            for _ in 0..group.turns() {
                left.measures(&group.cases[0]);
                // Three times as long as estimated.
                left.add(3.0 * group.seconds);
            }
        }
        let (done, total) = left.progress();
        assert!((done - one).abs() < 1e-9 && (total - 2.0 * one).abs() < 1e-9);
        // The initial belief in the estimates still counts, but with little weight.
        assert!((2.0 * one..3.0 * one).contains(&left.seconds()), "{left:?}");
        left.begin(1);
        let before = left.seconds();
        left.skip(|first| *first == groups[0].cases[0]);
        assert!((before / 2.0 - left.seconds()).abs() < 1e-9);
    }
}
