//! One moment of a map.

use super::bounds::Bounds;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use std::sync::Arc;

/// How many figures a bucket has.
pub(crate) const LAYERS: usize = 6;

/// The figures of a bucket, in this order: entries, bytes, acquisitions, waits, writes, reads. The
/// first two are levels, the others are counts of the column's width.
pub(crate) type Figures = [u64; LAYERS];

pub(crate) const ENTRIES: usize = 0;
pub(crate) const BYTES: usize = 1;
pub(crate) const ACQUISITIONS: usize = 2;
pub(crate) const WAITS: usize = 3;
pub(crate) const WRITES: usize = 4;
pub(crate) const READS: usize = 5;

/// The first layer that is a count.
pub(crate) const COUNTS: usize = ACQUISITIONS;

/// What happened to leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MarkKind {
    Split,
    Join,
    Format,
}

impl MarkKind {
    pub(crate) const ALL: [Self; 3] = [Self::Split, Self::Join, Self::Format];
}

/// What happened to leaves of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    pub(crate) bucket: usize,
    pub(crate) kind: MarkKind,
    pub(crate) n: u64,
}

/// One moment of a map, or some seconds of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) seq: u64,
    /// Its end, in milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) width_ms: u64,
    pub(crate) bounds: Arc<Bounds>,
    /// One for each bucket.
    pub(crate) figures: Vec<Figures>,
    pub(crate) marks: Vec<Mark>,
}

impl Column {
    /// Adds the counts of a later column, and takes its levels and its end. The buckets of `self`
    /// become those of `later`; no count is lost.
    pub(crate) fn absorb(&mut self, later: &Self) {
        self.move_to(&later.bounds);
        for (sum, more) in self.figures.iter_mut().zip(&later.figures) {
            for (layer, (sum, more)) in sum.iter_mut().zip(more).enumerate() {
                *sum = if layer < COUNTS {
                    *more
                } else {
                    sum.saturating_add(*more)
                };
            }
        }
        for mark in &later.marks {
            add_mark(&mut self.marks, *mark);
        }
        self.seq = later.seq;
        self.at = later.at;
        self.width_ms += later.width_ms;
    }

    /// Puts what each bucket has into the bucket of `bounds` that has its lowest key.
    fn move_to(&mut self, bounds: &Arc<Bounds>) {
        if Arc::ptr_eq(&self.bounds, bounds) {
            return;
        }
        let to: Vec<usize> = (self.bounds.raw.iter())
            .map(|low| bounds.bucket_of(low))
            .collect();
        let mut figures = vec![Figures::default(); bounds.len()];
        for (from, bucket) in self.figures.iter().zip(&to) {
            for (sum, more) in figures[*bucket].iter_mut().zip(from) {
                *sum = sum.saturating_add(*more);
            }
        }
        let mut marks = Vec::new();
        for mark in &self.marks {
            let bucket = to.get(mark.bucket).copied().unwrap_or(0);
            add_mark(&mut marks, Mark { bucket, ..*mark });
        }
        self.figures = figures;
        self.marks = marks;
        self.bounds = Arc::clone(bounds);
    }

    /// As the page gets it: with its bounds, if they are not those of the column before.
    pub(crate) fn shown(&self, with_bounds: bool) -> Shown<'_> {
        Shown {
            column: self,
            with_bounds,
        }
    }

    fn layer(&self, layer: usize) -> Vec<u64> {
        self.figures.iter().map(|figures| figures[layer]).collect()
    }
}

/// Adds a mark to marks that are in order.
pub(crate) fn add_mark(marks: &mut Vec<Mark>, mark: Mark) {
    let place = |known: &Mark| (known.bucket, known.kind).cmp(&(mark.bucket, mark.kind));
    match marks.binary_search_by(place) {
        Ok(at) => marks[at].n = marks[at].n.saturating_add(mark.n),
        Err(at) => marks.insert(at, mark),
    }
}

/// A column as JSON.
pub(crate) struct Shown<'a> {
    column: &'a Column,
    with_bounds: bool,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let column = self.column;
        let bounds = self.with_bounds.then_some(&*column.bounds);
        let raw = bounds.map(|bounds| {
            let raw = bounds.raw.iter();
            raw.map(|key| super::hex(key)).collect::<Vec<_>>()
        });
        let mut shown = to.serialize_struct("Column", 11)?;
        shown.serialize_field("at", &column.at)?;
        shown.serialize_field("width_ms", &column.width_ms)?;
        shown.serialize_field("bounds", &bounds.map(|bounds| &bounds.text))?;
        shown.serialize_field("raw", &raw)?;
        for (layer, name) in [
            "entries",
            "bytes",
            "acquisitions",
            "waits",
            "writes",
            "reads",
        ]
        .into_iter()
        .enumerate()
        {
            shown.serialize_field(name, &column.layer(layer))?;
        }
        shown.serialize_field("marks", &column.marks)?;
        shown.end()
    }
}
