//! Many series, shared by threads.

use super::Point;
use super::block::Block;
use super::codec::Encoder;
use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::{Bound, RangeBounds};
use tremula_sync::{Arc, CachePadded, ShortLock, StripedCounter};

/// The configuration of a [`SeriesCache`]. The defaults are Gorilla's.
///
/// ```
/// use tremula_papers::series::{SeriesCache, SeriesConfig};
///
/// let week = SeriesConfig::default().retain(7 * 24 * 60 * 60);
/// let cache = SeriesCache::new(week);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeriesConfig {
    /// The time that a block covers, in the unit of the timestamps. By default 2 hours in seconds.
    pub block_span: NonZeroU32,
    /// A closed block is dropped when it ends further than this behind its series' last point. The
    /// default is 26 hours in seconds.
    pub retain: u64,
    /// The number of cells, each with a lock, over which the series are spread. The default is 64.
    pub cells: NonZeroUsize,
}

impl Default for SeriesConfig {
    fn default() -> Self {
        Self {
            block_span: NonZeroU32::new(2 * 60 * 60).expect("not 0"),
            retain: 26 * 60 * 60,
            cells: NonZeroUsize::new(64).expect("not 0"),
        }
    }
}

impl SeriesConfig {
    /// Sets the time that a block covers; 0 means 1.
    #[must_use]
    pub const fn block_span(mut self, block_span: u32) -> Self {
        self.block_span = match NonZeroU32::new(block_span) {
            Some(block_span) => block_span,
            None => NonZeroU32::MIN,
        };
        self
    }

    /// Sets how far behind its series' last point a closed block may end before it is dropped.
    #[must_use]
    pub const fn retain(mut self, retain: u64) -> Self {
        self.retain = retain;
        self
    }

    /// Sets the number of cells; 0 means 1.
    #[must_use]
    pub const fn cells(mut self, cells: usize) -> Self {
        self.cells = match NonZeroUsize::new(cells) {
            Some(cells) => cells,
            None => NonZeroUsize::MIN,
        };
        self
    }
}

/// A point was not appended because it is earlier than the last one of its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("series {series} is at {last} already; a point at {timestamp} comes too late")]
#[non_exhaustive]
pub struct LatePoint {
    /// The series.
    pub series: u64,
    /// The timestamp of the point.
    pub timestamp: i64,
    /// The timestamp of the series' last point.
    pub last: i64,
}

/// Many time series, compressed.
///
/// Each operation on one series is linearizable. Operations on series of the same cell wait for
/// each other, as long as it takes to append a point or to copy an open block. A cell has one short
/// lock, because a shared lock for it and one for each series would dominate the cost of an append.
///
/// ```
/// use tremula_papers::series::SeriesCache;
///
/// let cache = SeriesCache::default();
/// for minute in 0..600 {
///     cache.append(7, minute * 60, 21.5).unwrap();
/// }
/// let hour = cache.range(7, 3600..7200).unwrap();
/// assert_eq!((hour.len(), hour[0].timestamp, hour[0].value), (60, 3600, 21.5));
/// assert!(cache.range(8, ..).is_none());
/// assert!(cache.append(7, 0, 21.5).unwrap_err().to_string().contains("too late"));
/// ```
pub struct SeriesCache {
    cells: Box<[CachePadded<ShortLock<Cell>>]>,
    hasher: RandomState,
    block_span: i64,
    retain: u64,
    bytes: StripedCounter,
}

type Cell = HashMap<u64, Series, RandomState>;

/// One series.
#[derive(Debug, Default)]
struct Series {
    /// Oldest first. No timestamp of a block is before one of the previous block.
    closed: VecDeque<Arc<Block>>,
    /// Never empty, except while a block is being closed.
    open: Encoder,
    /// The last timestamp that the open block covers.
    open_until: i64,
    /// Bytes of the closed blocks.
    closed_bytes: usize,
    /// Bytes added to the cache's account.
    held: usize,
}

impl Default for SeriesCache {
    fn default() -> Self {
        Self::new(SeriesConfig::default())
    }
}

impl SeriesCache {
    /// A cache without series.
    #[must_use]
    pub fn new(config: SeriesConfig) -> Self {
        let cells = config.cells.get().next_power_of_two();
        let hasher = RandomState::default();
        let cell = || CachePadded::new(ShortLock::new(HashMap::with_hasher(hasher.clone())));
        Self {
            cells: (0..cells).map(|_| cell()).collect(),
            hasher,
            block_span: i64::from(config.block_span.get()),
            retain: config.retain,
            bytes: StripedCounter::new(),
        }
    }

    #[inline]
    fn cell(&self, series: u64) -> &ShortLock<Cell> {
        // The map inside the cell chooses its buckets by other bits.
        let hash = self.hasher.hash_one(series) >> 32;
        &self.cells[hash as usize & (self.cells.len() - 1)]
    }

    /// Appends a point. A series that does not exist is created.
    ///
    /// O(1) amortized. Several points may have one timestamp.
    ///
    /// # Errors
    ///
    /// The point is earlier than the series' last one; it was not appended.
    pub fn append(&self, series: u64, timestamp: i64, value: f64) -> Result<(), LatePoint> {
        let point = Point { timestamp, value };
        let mut cell = self.cell(series).lock();
        self.append_to(cell.entry(series).or_default(), series, point)
    }

    /// The last timestamp of the block that covers `timestamp`.
    fn end_of_block(&self, timestamp: i64) -> i64 {
        let into = timestamp.rem_euclid(self.block_span);
        timestamp.saturating_add(self.block_span - 1 - into)
    }

    #[inline]
    fn append_to(&self, to: &mut Series, series: u64, point: Point) -> Result<(), LatePoint> {
        let timestamp = point.timestamp;
        if let Some(last) = to.open.last() {
            if timestamp < last {
                return Err(LatePoint {
                    series,
                    timestamp,
                    last,
                });
            }
            if timestamp > to.open_until {
                to.close();
                to.drop_before(timestamp, self.retain);
                to.open_until = self.end_of_block(timestamp);
            }
        } else {
            to.open_until = self.end_of_block(timestamp);
        }
        to.open.append(point);
        let held = to.held();
        if held != to.held {
            self.bytes.add(held.wrapping_sub(to.held).cast_signed());
            to.held = held;
        }
        Ok(())
    }

    /// The points of a series with timestamps in `range`, in the order of time. `None`: no such
    /// series.
    ///
    /// As of one moment. O(log blocks + points of the blocks that meet the range).
    #[must_use]
    pub fn range(&self, series: u64, range: impl RangeBounds<i64>) -> Option<Vec<Point>> {
        let mut points = Vec::new();
        self.scan(series, range, |point| points.push(point))
            .then_some(points)
    }

    /// Calls `each` with the points of a series with timestamps in `range`, in the order of time.
    /// Returns whether the series exists.
    ///
    /// As of one moment. O(log blocks + points of the blocks that meet the range). No lock is held
    /// while `each` runs. Closed blocks are decoded where they are, the open one is copied.
    ///
    /// ```
    /// use tremula_papers::series::SeriesCache;
    ///
    /// let cache = SeriesCache::default();
    /// (0..10).for_each(|second| cache.append(1, second, second as f64).unwrap());
    /// let mut greatest = f64::MIN;
    /// assert!(cache.scan(1, ..=6, |point| greatest = greatest.max(point.value)));
    /// assert_eq!(greatest, 6.0);
    /// ```
    pub fn scan(
        &self,
        series: u64,
        range: impl RangeBounds<i64>,
        mut each: impl FnMut(Point),
    ) -> bool {
        let cell = self.cell(series).lock();
        let Some(found) = cell.get(&series) else {
            return false;
        };
        let closed: Vec<Arc<Block>> = found.closed_in(&range).cloned().collect();
        let open = found.open_in(&range).then(|| found.open.clone());
        drop(cell);
        let mut inside = |point: Point| {
            if range.contains(&point.timestamp) {
                each(point);
            }
        };
        for block in closed {
            block.points().for_each(&mut inside);
        }
        if let Some(open) = open {
            open.decode().for_each(inside);
        }
        true
    }

    /// Removes a series. Returns whether it existed. O(blocks).
    pub fn remove(&self, series: u64) -> bool {
        let removed = self.cell(series).lock().remove(&series);
        if let Some(removed) = &removed {
            self.bytes.add(-removed.held.cast_signed());
        }
        removed.is_some()
    }

    /// The number of series. O(cells).
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.iter().map(|cell| cell.lock().len()).sum()
    }

    /// Whether there is no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of blocks and series, without the maps that hold them. Exact if no thread appends.
    /// O(1).
    #[must_use]
    pub fn bytes(&self) -> usize {
        usize::try_from(self.bytes.sum()).unwrap_or(0)
    }
}

impl std::fmt::Debug for SeriesCache {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SeriesCache")
            .field("series", &self.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl Series {
    #[cold]
    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        let block = Block::from_encoder(open);
        self.closed_bytes += block.held();
        self.closed.push_back(Arc::new(block));
    }

    /// Drops blocks that end more than `retain` before `timestamp`.
    fn drop_before(&mut self, timestamp: i64, retain: u64) {
        let is_old = |block: &Arc<Block>| {
            let end = block.span().map(|span| *span.end());
            end.is_none_or(|end| timestamp.abs_diff(end) > retain)
        };
        while let Some(old) = self.closed.front().filter(|block| is_old(block)) {
            self.closed_bytes -= old.held();
            self.closed.pop_front();
        }
    }

    fn closed_in(&self, range: &impl RangeBounds<i64>) -> impl Iterator<Item = &Arc<Block>> {
        // No closed block is empty.
        let range = bounds(range);
        let before = |block: &Arc<Block>| {
            block
                .span()
                .is_some_and(|span| ends_before(*span.end(), &range))
        };
        let behind = |block: &Arc<Block>| {
            block
                .span()
                .is_some_and(|span| begins_behind(*span.start(), &range))
        };
        let from = self.closed.partition_point(before);
        let to = self.closed.partition_point(|block| !behind(block));
        self.closed.range(from..to.max(from))
    }

    fn open_in(&self, range: &impl RangeBounds<i64>) -> bool {
        let range = bounds(range);
        let span = self.open.span();
        span.is_some_and(|(least, greatest)| {
            !ends_before(greatest, &range) && !begins_behind(least, &range)
        })
    }

    /// Bytes of the series, its open block and its closed ones.
    #[inline]
    fn held(&self) -> usize {
        let fixed = size_of::<Self>() + size_of::<u64>();
        let list = self.closed.capacity() * size_of::<Arc<Block>>();
        fixed + self.open.held() + self.closed_bytes + list
    }
}

type Bounds = (Bound<i64>, Bound<i64>);

fn bounds(range: &impl RangeBounds<i64>) -> Bounds {
    (range.start_bound().cloned(), range.end_bound().cloned())
}

/// Whether something that ends at `greatest` is before the range.
fn ends_before(greatest: i64, range: &Bounds) -> bool {
    match range.0 {
        Bound::Included(start) => greatest < start,
        Bound::Excluded(start) => greatest <= start,
        Bound::Unbounded => false,
    }
}

/// Whether something that begins at `least` is behind the range.
fn begins_behind(least: i64, range: &Bounds) -> bool {
    match range.1 {
        Bound::Included(end) => least > end,
        Bound::Excluded(end) => least >= end,
        Bound::Unbounded => false,
    }
}
