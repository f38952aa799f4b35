//! Columns, encoded as differences.
//!
//! A block has columns of the same bounds. Its first column is encoded from nothing, each other one
//! from the column before: of levels the differences are kept, of counts the counts. A run of zeros
//! takes two or three bytes. Whole blocks go when there are too many columns or bytes, the oldest
//! first.

use super::bounds::Bounds;
use super::column::{COUNTS, Column, Figures, LAYERS, Mark, MarkKind};
use std::collections::VecDeque;
use std::sync::Arc;

/// Columns of a block. Bounds are encoded once a block.
const BLOCK: usize = 60;

#[derive(Debug)]
struct Head {
    seq: u64,
    at: u64,
    width_ms: u64,
    /// Where its bytes begin.
    from: usize,
}

#[derive(Debug)]
struct Block {
    bounds: Arc<Bounds>,
    heads: Vec<Head>,
    bytes: Vec<u8>,
}

impl Block {
    fn held(&self) -> usize {
        let heads = self.heads.capacity() * size_of::<Head>();
        size_of::<Self>() + self.bytes.capacity() + heads
    }
}

/// Columns of one width, the oldest first.
#[derive(Debug)]
pub(crate) struct Series {
    blocks: VecDeque<Block>,
    /// The levels of the last column, from which the next is encoded.
    last: Vec<Figures>,
    count: usize,
    most_columns: usize,
    most_bytes: usize,
}

impl Series {
    pub(crate) fn new(most_columns: usize, most_bytes: usize) -> Self {
        Self {
            blocks: VecDeque::new(),
            last: Vec::new(),
            count: 0,
            most_columns,
            most_bytes,
        }
    }

    /// Changes how many bytes it may hold.
    pub(crate) fn limit(&mut self, most_bytes: usize) {
        if self.most_bytes != most_bytes {
            self.most_bytes = most_bytes;
            self.keep();
        }
    }

    /// The number of columns.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The bytes that it holds.
    pub(crate) fn held(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::held).sum();
        let mut before: Option<&Arc<Bounds>> = None;
        let mut bounds = 0;
        // Blocks in a row may share theirs.
        for block in &self.blocks {
            if before.is_none_or(|before| !Arc::ptr_eq(before, &block.bounds)) {
                bounds += block.bounds.bytes();
            }
            before = Some(&block.bounds);
        }
        blocks + bounds
    }

    /// Adds a column behind all others.
    pub(crate) fn push(&mut self, column: &Column) {
        let fits = |block: &&mut Block| {
            block.heads.len() < BLOCK && Arc::ptr_eq(&block.bounds, &column.bounds)
        };
        let block = match self.blocks.back_mut().filter(fits) {
            Some(block) => block,
            None => {
                if let Some(full) = self.blocks.back_mut() {
                    full.bytes.shrink_to_fit();
                    full.heads.shrink_to_fit();
                }
                self.last = vec![Figures::default(); column.bounds.len()];
                self.blocks.push_back(Block {
                    bounds: Arc::clone(&column.bounds),
                    heads: Vec::new(),
                    bytes: Vec::new(),
                });
                let Some(block) = self.blocks.back_mut() else {
                    return;
                };
                block
            }
        };
        block.heads.push(Head {
            seq: column.seq,
            at: column.at,
            width_ms: column.width_ms,
            from: block.bytes.len(),
        });
        encode(&column.figures, &self.last, &mut block.bytes);
        encode_marks(&column.marks, &mut block.bytes);
        self.last.clone_from(&column.figures);
        self.count += 1;
        self.keep();
    }

    /// Drops what is too much. The block that is being filled stays.
    fn keep(&mut self) {
        while self.blocks.len() > 1 {
            let oldest = self.blocks.front().map_or(0, |block| block.heads.len());
            let without = self.count - oldest;
            if without < self.most_columns && self.held() <= self.most_bytes {
                return;
            }
            self.count = without;
            self.blocks.pop_front();
        }
    }

    /// Shows the columns that end within these times and come behind a sequence, ascending.
    pub(crate) fn visit(
        &self,
        (from, to): (u64, u64),
        behind: Option<u64>,
        mut visit: impl FnMut(&Column),
    ) {
        for block in &self.blocks {
            let wanted = |head: &Head| {
                (from..=to).contains(&head.at) && behind.is_none_or(|seq| head.seq > seq)
            };
            if !block.heads.iter().any(wanted) {
                continue;
            }
            let buckets = block.bounds.len();
            let mut column = Column {
                seq: 0,
                at: 0,
                width_ms: 0,
                bounds: Arc::clone(&block.bounds),
                figures: vec![Figures::default(); buckets],
                marks: Vec::new(),
            };
            for head in &block.heads {
                let mut bytes = &block.bytes[head.from..];
                decode(&mut column.figures, &mut bytes);
                column.marks = decode_marks(&mut bytes);
                (column.seq, column.at) = (head.seq, head.at);
                column.width_ms = head.width_ms;
                if wanted(head) {
                    visit(&column);
                }
            }
        }
    }
}

/// Appends figures, of levels the differences from the `last` ones.
fn encode(figures: &[Figures], last: &[Figures], bytes: &mut Vec<u8>) {
    for layer in 0..LAYERS {
        let mut zeros = 0;
        for (now, before) in figures.iter().zip(last) {
            let value = match layer < COUNTS {
                true => zigzag(now[layer].wrapping_sub(before[layer])),
                false => now[layer],
            };
            if value == 0 {
                zeros += 1;
                continue;
            }
            put_zeros(&mut zeros, bytes);
            put(value, bytes);
        }
        put_zeros(&mut zeros, bytes);
    }
}

fn put_zeros(zeros: &mut u64, bytes: &mut Vec<u8>) {
    if *zeros > 0 {
        bytes.push(0);
        put(*zeros, bytes);
        *zeros = 0;
    }
}

/// Reads figures over those of the column before.
fn decode(figures: &mut [Figures], bytes: &mut &[u8]) {
    for layer in 0..LAYERS {
        let mut zeros = 0;
        for now in figures.iter_mut() {
            let mut value = 0;
            if zeros == 0 {
                value = take(bytes);
                if value == 0 {
                    zeros = take(bytes);
                }
            }
            zeros = zeros.saturating_sub(u64::from(value == 0));
            now[layer] = match layer < COUNTS {
                true => now[layer].wrapping_add(unzigzag(value)),
                false => value,
            };
        }
    }
}

fn encode_marks(marks: &[Mark], bytes: &mut Vec<u8>) {
    put(marks.len() as u64, bytes);
    for mark in marks {
        put(mark.bucket as u64, bytes);
        bytes.push(mark.kind as u8);
        put(mark.n, bytes);
    }
}

fn decode_marks(bytes: &mut &[u8]) -> Vec<Mark> {
    let count = take(bytes);
    let mark = |_| {
        let bucket = take(bytes) as usize;
        let kind = take(bytes) as usize;
        Mark {
            bucket,
            kind: MarkKind::ALL[kind.min(MarkKind::ALL.len() - 1)],
            n: take(bytes),
        }
    };
    (0..count).map(mark).collect()
}

/// A difference as a number that is small if the difference is, whatever its sign.
fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    (difference << 1) ^ (signed >> 63).cast_unsigned()
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Seven bits a byte, the lowest first.
fn put(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((first, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 || shift > 63 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::column::add_mark;
    use proptest::prelude::*;

    fn figures(buckets: usize) -> impl Strategy<Value = Vec<Figures>> {
        let value = prop_oneof![4 => Just(0), 4 => 0..300_u64, 1 => any::<u64>()];
        let one = proptest::array::uniform6(value);
        proptest::collection::vec(one, buckets)
    }

    fn column(seq: u64, bounds: &Arc<Bounds>, figures: Vec<Figures>) -> Column {
        let mut marks = Vec::new();
        for (bucket, figures) in figures.iter().enumerate() {
            let kind = MarkKind::ALL[(figures[5] % 3) as usize];
            let n = figures[4] % 4;
            if n > 0 {
                add_mark(&mut marks, Mark { bucket, kind, n });
            }
        }
        Column {
            seq,
            at: 1000 * seq,
            width_ms: 1000,
            bounds: Arc::clone(bounds),
            figures,
            marks,
        }
    }

    fn bounds(buckets: usize) -> Arc<Bounds> {
        let keys: Vec<[u8; 2]> = (1..buckets as u16).map(u16::to_be_bytes).collect();
        Arc::new(Bounds::at(keys.iter().map(|key| &key[..]), crate::map::hex))
    }

    proptest! {
        #[test]
        fn columns_come_back_as_they_were(
            all in proptest::collection::vec((1..9_usize).prop_flat_map(figures), 1..150),
        ) {
            let kinds: Vec<_> = (1..9).map(bounds).collect();
            let columns: Vec<_> = (1..)
                .zip(all)
                .map(|(seq, figures)| column(seq, &kinds[figures.len() - 1], figures))
                .collect();
            let mut series = Series::new(usize::MAX, usize::MAX);
            columns.iter().for_each(|column| series.push(column));
            let mut back = Vec::new();
            series.visit((0, u64::MAX), None, |column| back.push(column.clone()));
            prop_assert_eq!(&back, &columns);
            back.clear();
            series.visit((20_000, 90_000), Some(30), |column| back.push(column.clone()));
            let some = columns.iter().filter(|column| (31..=90).contains(&column.seq));
            prop_assert_eq!(back, some.cloned().collect::<Vec<_>>());
        }

        #[test]
        fn a_series_keeps_within_its_limits_and_has_the_newest(
            figures in proptest::collection::vec(figures(40), 1..50),
            most_columns in 1..400_usize,
        ) {
            const MOST: usize = 64 << 10;
            let bounds = bounds(40);
            let mut series = Series::new(most_columns, MOST);
            for seq in 1..600_u64 {
                let figures = figures[seq as usize % figures.len()].clone();
                series.push(&column(seq, &bounds, figures));
                // The block that is being filled has no other limit than its number of columns.
                prop_assert!(series.held() <= MOST || series.blocks.len() == 1);
                prop_assert!(series.len() < most_columns + BLOCK);
            }
            let mut seen = Vec::new();
            series.visit((0, u64::MAX), None, |column| seen.push(column.seq));
            prop_assert_eq!(seen.len(), series.len());
            let newest: Vec<u64> = (600 - seen.len() as u64..600).collect();
            prop_assert_eq!(seen, newest);
        }

        #[test]
        fn merging_columns_loses_no_count(
            parts in proptest::collection::vec((1..9_usize).prop_flat_map(figures), 1..12),
        ) {
            let small = |figures: &mut Vec<Figures>| {
                figures.iter_mut().flatten().for_each(|value| *value %= 1 << 32);
            };
            let kinds: Vec<_> = (1..9).map(bounds).collect();
            let columns: Vec<_> = (1..)
                .zip(parts)
                .map(|(seq, mut figures)| {
                    small(&mut figures);
                    column(seq, &kinds[figures.len() - 1], figures)
                })
                .collect();
            let sum = |layer: usize, columns: &[Column]| -> u64 {
                let all = columns.iter().flat_map(|column| &column.figures);
                all.map(|figures| figures[layer]).sum()
            };
            let marks = |columns: &[Column]| -> u64 {
                columns.iter().flat_map(|column| &column.marks).map(|mark| mark.n).sum()
            };
            let mut whole = columns[0].clone();
            columns[1..].iter().for_each(|later| whole.absorb(later));
            let last = &columns[columns.len() - 1];
            for layer in 0..LAYERS {
                let expected = match layer < COUNTS {
                    true => sum(layer, std::slice::from_ref(last)),
                    false => sum(layer, &columns),
                };
                prop_assert_eq!(sum(layer, std::slice::from_ref(&whole)), expected, "{}", layer);
            }
            prop_assert_eq!(marks(std::slice::from_ref(&whole)), marks(&columns));
            prop_assert_eq!((whole.at, whole.width_ms), (last.at, 1000 * columns.len() as u64));
        }
    }

    #[test]
    fn an_hour_at_rest_takes_little() {
        let bounds = bounds(256);
        let mut series = Series::new(3600, usize::MAX);
        let still = vec![[1000, 65_536, 0, 0, 0, 0]; 256];
        for seq in 1..=3600 {
            series.push(&column(seq, &bounds, still.clone()));
        }
        assert!(series.held() < 1 << 20, "{} bytes", series.held());
    }
}
