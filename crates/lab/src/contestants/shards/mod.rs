//! The strategies of `tremula-shard`, each in several forms, with a cache in their shards.

mod load;
#[cfg(sim)]
mod requesters;
mod store;

use super::contestant::{
    Contestant, Entrant, Measures, Samples, Side, Started, Starter, own_version, samples,
};
use crate::{
    LabError,
    case::ContestantKind,
    measure::{Sample, Span},
    workload::{CacheTraffic, ShardCacheJob, ValueSize},
};
use store::{PlainLocks, cache};
use tremula_papers::article::ARTICLE;
use tremula_shard::{Config, Shards, Strategy};

/// A way to run the shards of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardForm {
    /// The same caches behind readers-writer locks, which the requesters use directly.
    PlainLocks,
    /// A strategy in the form that the article gives it.
    Article(Strategy),
    /// A strategy.
    Direct(Strategy),
    /// A strategy whose workers never give shards away.
    Unbalanced(Strategy),
    /// A strategy in which only workers run requests.
    Queued(Strategy),
    /// A strategy with both restrictions.
    QueuedUnbalanced(Strategy),
}

impl ShardForm {
    /// Every form, in the order of the records.
    pub const ALL: [Self; 13] = {
        use Strategy::{Affinity, LocalSet, Threading};
        [
            Self::PlainLocks,
            Self::Article(Threading),
            Self::Direct(Threading),
            Self::Article(LocalSet),
            Self::Direct(LocalSet),
            Self::Unbalanced(LocalSet),
            Self::Queued(LocalSet),
            Self::QueuedUnbalanced(LocalSet),
            Self::Article(Affinity),
            Self::Direct(Affinity),
            Self::Unbalanced(Affinity),
            Self::Queued(Affinity),
            Self::QueuedUnbalanced(Affinity),
        ]
    };

    fn config(self, workers: usize) -> Option<Config> {
        let config = |strategy| {
            let config = Config::new(strategy).workers(workers);
            config.shards(ShardCacheJob::SHARDS)
        };
        Some(match self {
            Self::PlainLocks => return None,
            Self::Article(strategy) => config(strategy).form(ARTICLE),
            Self::Direct(strategy) => config(strategy),
            Self::Unbalanced(strategy) => config(strategy).balance(None),
            Self::Queued(strategy) => config(strategy).delegate(false),
            Self::QueuedUnbalanced(strategy) => config(strategy).delegate(false).balance(None),
        })
    }

    fn run(self, job: &ShardCacheJob) -> Result<Sample, String> {
        let shards = ShardCacheJob::SHARDS;
        match self.config(job.workers) {
            None => load::measure(PlainLocks::new(shards), job),
            Some(config) => {
                let started = Shards::start(config, move |_| cache(shards));
                let shards = started.map_err(|error| error.to_string())?;
                load::measure(shards, job)
            }
        }
    }
}

/// The most requests a second that `affinity` answers under this kind of job.
///
/// # Errors
///
/// It answered wrongly, or could not be started.
pub fn peak_of_affinity(job: &ShardCacheJob) -> Result<f64, LabError> {
    let form = ShardForm::Direct(Strategy::Affinity);
    let job = ShardCacheJob {
        traffic: CacheTraffic::Read(ValueSize::Small),
        rate: None,
        span: Span::warmed(job.span.counted / 2),
        ..*job
    };
    let sample = form.run(&job).map_err(|fault| LabError::Wrong {
        engine: form.name(),
        fault,
    })?;
    Ok(sample.mops() * 1e6)
}

impl Entrant for ShardForm {
    fn name(&self) -> &'static str {
        use Strategy::{Affinity, LocalSet, Threading};
        match *self {
            Self::PlainLocks => "plain_locks",
            Self::Article(Threading) => "threading_article",
            Self::Direct(Threading) => "threading",
            Self::Unbalanced(Threading) => "threading_unbalanced",
            Self::Queued(Threading) => "threading_queued",
            Self::QueuedUnbalanced(Threading) => "threading_queued_unbalanced",
            Self::Article(LocalSet) => "local_set_article",
            Self::Direct(LocalSet) => "local_set",
            Self::Unbalanced(LocalSet) => "local_set_unbalanced",
            Self::Queued(LocalSet) => "local_set_queued",
            Self::QueuedUnbalanced(LocalSet) => "local_set_queued_unbalanced",
            Self::Article(Affinity) => "affinity_article",
            Self::Direct(Affinity) => "affinity",
            Self::Unbalanced(Affinity) => "affinity_unbalanced",
            Self::Queued(Affinity) => "affinity_queued",
            Self::QueuedUnbalanced(Affinity) => "affinity_queued_unbalanced",
            _ => unreachable!("`ALL` lists the strategies that there are"),
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::PlainLocks => "a cache in parts with a lock each, used by tasks themselves",
            Self::Article(_) => "a strategy of tremula-shard, in the form of the article",
            Self::Direct(_) => "a strategy of tremula-shard",
            Self::Unbalanced(_) => "a strategy of tremula-shard, without balancing",
            Self::Queued(_) => "a strategy of tremula-shard, run by workers only",
            Self::QueuedUnbalanced(_) => {
                "a strategy of tremula-shard, run by workers only, without balancing"
            }
        }
    }

    fn side(&self) -> Side {
        Side::Variant
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Shards]
    }

    fn missing(&self) -> Option<&'static str> {
        let needs_tokio = match *self {
            Self::PlainLocks => false,
            Self::Article(_) => true,
            Self::Direct(strategy)
            | Self::Unbalanced(strategy)
            | Self::Queued(strategy)
            | Self::QueuedUnbalanced(strategy) => strategy == Strategy::LocalSet,
        };
        (cfg!(sim) && needs_tokio)
            .then_some("its workers wait in tokio's runtime, which knows no virtual time")
    }

    fn start(&self, _kind: ContestantKind, _starter: &mut Starter) -> Result<Contestant, LabError> {
        Ok(Contestant::Shards(Box::new(ShardContestant(*self))))
    }
}

/// A form as a contestant.
#[derive(Clone, Copy, Debug)]
struct ShardContestant(ShardForm);

impl Started for ShardContestant {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn version(&self) -> String {
        own_version()
    }
}

impl Measures<ShardCacheJob> for ShardContestant {
    fn measure(&mut self, job: &ShardCacheJob) -> Samples {
        samples(
            self.0.name(),
            self.0.run(job).map(|sample| vec![Ok(sample)]),
        )
    }
}
