//! The requesters: tasks that send a request, wait for the answer, and go on.

#[cfg(sim)]
use super::requesters::Requesters;
use super::store::{Appended, BUDGET, Store};
#[cfg(not(sim))]
use crate::measure::Span;
use crate::{
    measure::{Lap, Sample, Stage},
    workload::{CacheTraffic, HOT_IDS, Purpose, ShardCacheJob, ValueSize, generator},
};
use hdrhistogram::Histogram;
use rand::{Rng, RngExt};

use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tremula_shard::CallError;

/// The quantiles of the time of a request, by the names of their figures.
const QUANTILES: [(&str, f64); 3] = [
    ("request_ns_p50", 0.5),
    ("request_ns_p99", 0.99),
    ("request_ns_p99.9", 0.999),
];

/// Significant digits of a time.
const DIGITS: u8 = 3;

/// One request in this many is timed, because reading the clock takes as long as the shortest
/// request.
const TIMED: u64 = 16;

/// How many requests a requester makes before it yields, if none of them had to wait.
const TURN: u64 = 64;

/// How often a requester of a paced load makes a burst of requests: the resolution of timers.
const PACE: Duration = Duration::from_millis(2);

/// The period of the payload's beginnings. It divides no value size, so that ids get different
/// bytes.
const OFFSETS: u64 = 61;

const LARGEST: usize = ValueSize::Large.bytes();

/// The bytes that pieces are cut from.
static PAYLOAD: [u8; LARGEST + OFFSETS as usize] = {
    let mut bytes = [0; LARGEST + OFFSETS as usize];
    let mut place = 0;
    while place < bytes.len() {
        bytes[place] = ((place * 31) ^ (place >> 7)) as u8;
        place += 1;
    }
    bytes
};

/// The piece that is always appended to this id.
#[inline]
fn piece(id: u64, size: usize) -> &'static [u8] {
    &PAYLOAD[(id % OFFSETS) as usize..][..size]
}

/// Which ids requesters ask for.
#[derive(Clone)]
struct Choice {
    ids: u64,
    hot: Arc<[u64]>,
    /// How many of a hundred requests are for the hot ids.
    share: u32,
}

impl Choice {
    fn of<C: Store>(job: &ShardCacheJob, store: &C) -> Self {
        let (hot, share): (Vec<u64>, _) = match job.traffic {
            CacheTraffic::HotId => (vec![0], 50),
            CacheTraffic::HotWorker(_) => {
                // Shards are assigned to workers in turn. Each hot id is in a different shard, so
                // that these shards can be given away one by one.
                let mut shards = Vec::new();
                let fits = |id: &u64| {
                    let shard = store.shard_of(*id);
                    let fits = shard.is_multiple_of(job.workers) && !shards.contains(&shard);
                    if fits {
                        shards.push(shard);
                    }
                    fits
                };
                ((0..job.ids).filter(fits).take(HOT_IDS).collect(), 90)
            }
            _ => (Vec::new(), 0),
        };
        Self {
            ids: job.ids,
            share: if hot.is_empty() { 0 } else { share },
            hot: hot.into(),
        }
    }

    #[inline]
    fn draw(&self, random: &mut impl Rng) -> u64 {
        let number = random.random::<u64>();
        let (high, low) = (number >> 32, number & u64::from(u32::MAX));
        let of = |count: u64| (high * count) >> 32;
        if self.share > 0 && low % 100 < u64::from(self.share) {
            self.hot[of(self.hot.len() as u64) as usize]
        } else {
            of(self.ids)
        }
    }
}

/// Appends twice to each id, and gets what was appended. Checks all answers.
async fn check<C: Store>(store: &C, job: &ShardCacheJob) -> Result<(), String> {
    let size = job.traffic.size().bytes();
    for id in 0..job.ids {
        for length in [size, 2 * size] {
            let answer = length_of(store.append(id, piece(id, size)).await)?;
            if answer != length {
                return Err(format!("{id} should have {length} bytes, not {answer}"));
            }
        }
        let all = piece(id, size).repeat(2);
        for part in [size, 2 * size, 3 * size] {
            let expected = &all[all.len().saturating_sub(part)..];
            match store.get(id, part).await.map_err(failed)? {
                Some(bytes) if *bytes == *expected => {}
                Some(_) => return Err(format!("the last {part} bytes of {id} are others")),
                None => return Err(format!("{id} is not there")),
            }
        }
    }
    match store.get(job.ids, size).await.map_err(failed)? {
        None => Ok(()),
        Some(_) => Err(format!("{} is there", job.ids)),
    }
}

/// Spends the budget, so that appends evict from the beginning on, and reuse memory.
async fn fill<C: Store>(store: &C, job: &ShardCacheJob) -> Result<(), String> {
    for round in 0..BUDGET.div_ceil(LARGEST) as u64 {
        let id = round % job.ids;
        length_of(store.append(id, piece(id, LARGEST)).await)?;
    }
    Ok(())
}

fn failed(error: CallError) -> String {
    error.to_string()
}

fn length_of(answer: Result<Appended, CallError>) -> Result<usize, String> {
    answer.map_err(failed)?.map_err(|error| error.to_string())
}

/// What one requester did.
struct Tally {
    begun: Instant,
    ended: Instant,
    operations: u64,
    times: Histogram<u64>,
}

struct Requester<C> {
    store: Arc<C>,
    choice: Choice,
    size: usize,
    writes: bool,
}

impl<C: Store> Requester<C> {
    /// Makes one request, and checks its answer as far as that is possible.
    #[inline]
    async fn ask(&self, id: u64) -> Result<(), String> {
        let piece = piece(id, self.size);
        if self.writes {
            let length = length_of(self.store.append(id, piece).await)?;
            return if length > 0 && length.is_multiple_of(self.size) {
                Ok(())
            } else {
                Err(format!("{id} cannot have {length} bytes"))
            };
        }
        let answer = self.store.get(id, self.size).await.map_err(failed)?;
        let ends = |bytes: &[u8]| (bytes.first().copied(), bytes.last().copied());
        match answer {
            Some(bytes) if bytes.len() == self.size && ends(&bytes) == ends(piece) => Ok(()),
            Some(_) => Err(format!("the last {} bytes of {id} are others", self.size)),
            None => Err(format!("{id} is not there")),
        }
    }

    /// Makes requests until the time is up; if `burst` is given, that many each [`PACE`].
    async fn run(
        self,
        stage: Arc<Stage>,
        mut random: impl Rng,
        burst: Option<f64>,
    ) -> Result<Tally, String> {
        let mut times = Histogram::<u64>::new(DIGITS).expect("so many digits are possible");
        let mut lap = Lap::new(&stage);
        let mut timer = burst.map(|burst| (tokio::time::interval(PACE), burst));
        let (mut due, mut asked) = (0.0, 0_u64);
        loop {
            let turn = match &mut timer {
                None => TURN,
                Some((timer, burst)) => {
                    timer.tick().await;
                    // The fraction of a request carries over to the next burst.
                    due += *burst;
                    due as u64 - asked
                }
            };
            for _ in 0..turn {
                let id = self.choice.draw(&mut random);
                asked += 1;
                if asked.is_multiple_of(TIMED) && lap.counts() {
                    let before = tremula_sync::now();
                    self.ask(id).await?;
                    let time = tremula_sync::now() - before;
                    times += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                } else {
                    self.ask(id).await?;
                }
            }
            if !lap.done(turn) {
                break;
            }
            if burst.is_none() {
                tokio::task::yield_now().await;
            }
        }
        let (begun, operations) = lap.end();
        Ok(Tally {
            begun,
            ended: tremula_sync::now(),
            operations,
            times,
        })
    }
}

/// Checks the store, and measures it under the job's load.
pub(super) fn measure<C: Store>(store: C, job: &ShardCacheJob) -> Result<Sample, String> {
    let requesters = Requesters::new(job)?;
    let store = Arc::new(store);
    requesters.wait_for(check(&*store, job))?;
    if job.traffic.writes() {
        requesters.wait_for(fill(&*store, job))?;
    }
    let choice = Choice::of(job, &*store);
    let rate = |rate: f64| rate * PACE.as_secs_f64() / ShardCacheJob::REQUESTERS as f64;
    let burst = job.rate.map(rate);
    let requester = |number, stage: &Arc<Stage>| {
        let requester = Requester {
            store: Arc::clone(&store),
            choice: choice.clone(),
            size: job.traffic.size().bytes(),
            writes: job.traffic.writes(),
        };
        let random = generator(job.seed, Purpose::Choices, job.run, number);
        requester.run(Arc::clone(stage), random, burst)
    };
    let tallies = requesters.run(job.span, requester)?;
    let mut times = Histogram::<u64>::new(DIGITS).expect("so many digits are possible");
    let (mut operations, mut first, mut last) = (0, None, None);
    for tally in tallies {
        let tally = tally?;
        operations += tally.operations;
        first = first.into_iter().chain([tally.begun]).min();
        last = last.max(Some(tally.ended));
        times += tally.times;
    }
    let elapsed = first
        .zip(last)
        .map_or(Duration::ZERO, |(first, last)| last - first);
    let mut sample = Sample::new(operations, elapsed);
    sample.figures = QUANTILES
        .map(|(name, quantile)| (name.to_owned(), times.value_at_quantile(quantile) as f64))
        .into();
    Ok(sample)
}

/// The threads on which requesters run: a runtime of tokio.
#[cfg(not(sim))]
struct Requesters(tokio::runtime::Runtime);

#[cfg(not(sim))]
impl Requesters {
    fn new(job: &ShardCacheJob) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(job.workers)
            .enable_time()
            .build();
        match runtime {
            Ok(runtime) => Ok(Self(runtime)),
            Err(error) => Err(format!("its requesters could not be started: {error}")),
        }
    }

    fn wait_for<R>(&self, future: impl Future<Output = R>) -> R {
        self.0.block_on(future)
    }

    /// Runs the requesters, and returns what each returned.
    fn run<F: Future<Output: Send + 'static> + Send + 'static>(
        &self,
        span: Span,
        requester: impl Fn(usize, &Arc<Stage>) -> F,
    ) -> Result<Vec<F::Output>, String> {
        let stage = Arc::new(Stage::new());
        let start = |number| self.0.spawn(requester(number, &stage));
        let tasks: Vec<_> = (0..ShardCacheJob::REQUESTERS).map(start).collect();
        stage.pass(span);
        let ended = |task| self.0.block_on(task);
        let ended = tasks.into_iter().map(ended).collect::<Result<_, _>>();
        ended.map_err(|error: tokio::task::JoinError| format!("a requester ended: {error}"))
    }
}
