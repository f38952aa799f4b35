//! What a few runs can show: the median, their spread, and the confidence of a ratio.

use crate::{
    measure::median,
    workload::{Purpose, generator},
};
use rand::{Rng, RngExt};

/// How many times the runs are resampled for an interval.
pub const RESAMPLES: usize = 2000;

/// The fraction of the resampled ratios that an interval contains.
pub const CONFIDENCE: f64 = 0.95;

/// The seed of the resamples: the same runs give the same interval.
const SEED: u64 = 0x7265_6d75_6c61;

/// The least and the greatest of some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

impl Spread {
    /// The spread of these runs; `None` if there are no runs.
    #[must_use]
    pub fn of(runs: &[f64]) -> Option<Self> {
        let first = *runs.first()?;
        let widen = |spread: Self, &run: &f64| Self {
            least: spread.least.min(run),
            most: spread.most.max(run),
        };
        let start = Self {
            least: first,
            most: first,
        };
        Some(runs.iter().fold(start, widen))
    }

    /// Half the width, relative to `middle`; `None` if `middle` is not positive.
    #[must_use]
    pub fn half_width(self, middle: f64) -> Option<f64> {
        (middle > 0.0).then(|| (self.most - self.least) / 2.0 / middle)
    }
}

/// A ratio of two medians, with its interval at a confidence of [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of the medians.
    pub value: f64,
    /// Its interval; `None` if one side was run only once, which shows nothing about its
    /// confidence.
    pub interval: Option<Interval>,
}

/// Both ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it, or at one of its ends.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Why two lists of runs have no ratio.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NoRatio {
    /// A list has no runs.
    #[error("there are no runs")]
    Empty,
    /// A run is no finite number, or is negative.
    #[error("a run of {0} is no measurement")]
    NoMeasurement(f64),
    /// The median of the denominator is zero.
    #[error("nothing can be divided by a median of 0")]
    Zero,
}

/// The ratio of the medians of two lists of runs, with an interval by the percentile bootstrap
/// (Efron, "Bootstrap methods: another look at the jackknife", 1979): both lists are resampled with
/// replacement [`RESAMPLES`] times, and the interval contains the middle [`CONFIDENCE`] of the
/// ratios. It takes time in proportion to the number of runs.
///
/// Few runs make a rough interval. With three runs a side it reaches from the worst pair to the
/// best one; it then separates two equally fast contestants once in ten times. With five runs that
/// happens less than once in twenty times.
///
/// # Errors
///
/// A list is empty or has an element that is no measurement, or the second list's median is zero.
///
/// ```
/// use tremula_lab::statistics::ratio;
///
/// let ratio = ratio(&[3.0, 3.1, 2.9, 3.0, 3.2], &[1.5, 1.4, 1.6, 1.5, 1.5])?;
/// assert_eq!(ratio.value, 2.0);
/// let interval = ratio.interval.expect("there are several runs");
/// assert!(interval.contains(2.0) && !interval.contains(1.0));
/// # Ok::<(), tremula_lab::statistics::NoRatio>(())
/// ```
pub fn ratio(numerator: &[f64], denominator: &[f64]) -> Result<Ratio, NoRatio> {
    for &run in numerator.iter().chain(denominator) {
        if !run.is_finite() || run < 0.0 {
            return Err(NoRatio::NoMeasurement(run));
        }
    }
    let above = median(numerator).ok_or(NoRatio::Empty)?;
    let below = median(denominator).ok_or(NoRatio::Empty)?;
    if below == 0.0 {
        return Err(NoRatio::Zero);
    }
    let value = above / below;
    let single = numerator.len() < 2 || denominator.len() < 2;
    Ok(Ratio {
        value,
        interval: (!single).then(|| interval(numerator, denominator)),
    })
}

fn interval(numerator: &[f64], denominator: &[f64]) -> Interval {
    let mut random = generator(SEED, Purpose::Resamples, 0, 0);
    let mut drawn = (Vec::new(), Vec::new());
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let above = resampled_median(numerator, &mut drawn.0, &mut random);
            let below = resampled_median(denominator, &mut drawn.1, &mut random);
            // A resample may consist of zeros only; its ratio lies beyond all others.
            if below == 0.0 {
                f64::INFINITY
            } else {
                above / below
            }
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let outside = (1.0 - CONFIDENCE) / 2.0;
    let at = |part: f64| ratios[(part * (ratios.len() - 1) as f64).round() as usize];
    Interval {
        low: at(outside),
        high: at(1.0 - outside),
    }
}

fn resampled_median(runs: &[f64], drawn: &mut Vec<f64>, random: &mut impl Rng) -> f64 {
    drawn.clear();
    drawn.extend((0..runs.len()).map(|_| runs[random.random_range(0..runs.len())]));
    median(drawn).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random runs around a middle, off by at most the fraction `off`.
    fn runs(middle: f64, off: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut random = generator(seed, Purpose::Stream, 0, 0);
        let mut run = || middle * (1.0 + off * (2.0 * random.random::<f64>() - 1.0));
        (0..count).map(|_| run()).collect()
    }

    #[test]
    fn the_spread_is_the_least_and_the_greatest() {
        let spread = Spread::of(&[2.0, 1.0, 4.0]).unwrap();
        assert_eq!((spread.least, spread.most), (1.0, 4.0));
        assert_eq!(spread.half_width(2.0), Some(0.75));
        assert_eq!(spread.half_width(0.0), None);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn the_interval_of_known_distributions_holds_the_true_ratio_nearly_always() {
        let mut held = 0;
        for seed in 0..200 {
            let above = runs(3.0, 0.1, 9, 2 * seed);
            let below = runs(2.0, 0.1, 9, 2 * seed + 1);
            let ratio = ratio(&above, &below).unwrap();
            let interval = ratio.interval.unwrap();
            assert!(interval.contains(ratio.value), "{ratio:?}");
            assert!(!interval.contains(1.0), "{ratio:?}");
            held += usize::from(interval.contains(1.5));
        }
        // 95 % are 190 of 200. The seeds are fixed, so the count is always the same.
        assert!((180..=200).contains(&held), "{held}");
    }

    #[test]
    fn the_same_runs_give_the_same_interval_and_more_noise_a_wider_one() {
        let width = |off| {
            let (above, below) = (runs(1.0, off, 7, 1), runs(1.0, off, 7, 2));
            let one = ratio(&above, &below).unwrap();
            assert_eq!(one, ratio(&above, &below).unwrap());
            let interval = one.interval.unwrap();
            interval.high - interval.low
        };
        assert!(width(0.3) > 5.0 * width(0.03));
    }

    #[test]
    fn three_runs_reach_from_the_worst_pair_to_the_best() {
        let ratio = ratio(&[1.0, 2.0, 3.0], &[4.0, 5.0, 8.0]).unwrap();
        let interval = ratio.interval.unwrap();
        assert_eq!((interval.low, interval.high), (1.0 / 8.0, 3.0 / 4.0));
    }

    #[test]
    fn degenerate_runs_have_no_interval_or_are_refused() {
        assert_eq!(
            ratio(&[4.0], &[2.0, 2.1, 1.9]),
            Ok(Ratio {
                value: 2.0,
                interval: None
            })
        );
        let same = ratio(&[2.0; 4], &[1.0; 4]).unwrap().interval.unwrap();
        assert_eq!((same.low, same.high), (2.0, 2.0));
        assert_eq!(ratio(&[0.0; 3], &[1.0; 3]).unwrap().value, 0.0);
        assert_eq!(ratio(&[], &[1.0]), Err(NoRatio::Empty));
        assert_eq!(ratio(&[1.0], &[]), Err(NoRatio::Empty));
        assert_eq!(ratio(&[1.0; 3], &[0.0; 3]), Err(NoRatio::Zero));
        for wrong in [f64::NAN, f64::INFINITY, -1.0] {
            let refused = ratio(&[1.0, wrong], &[1.0]).unwrap_err();
            assert!(matches!(refused, NoRatio::NoMeasurement(_)), "{refused}");
        }
        let some_zeros = ratio(&[1.0, 1.0, 1.0], &[0.0, 1.0, 1.0]).unwrap();
        assert!(some_zeros.interval.unwrap().contains(1.0));
    }
}
