//! One item's bytes, in chunks that never move.

use bytes::{Bytes, BytesMut};

/// The largest chunk that is made for appends smaller than itself.
const CHUNK: usize = 64 * 1024;

/// The smallest chunk.
const SMALLEST: usize = 64;

/// What is read and is shorter than this is copied out of the chunk that still grows; for longer
/// reads the chunk's filled part is closed, so that it can be lent. So closed segments that were
/// not full have this many bytes at least, for which their place in the list is cheap.
const LENT_FROM: usize = 1024;

/// What sharing a chunk costs besides: the counter of who has it.
const SHARING: usize = 48;

/// Bytes that grow at the end.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// What does not change any more, with the place at which each begins.
    closed: Vec<(usize, Bytes)>,
    /// What follows; the chunk's room is its capacity.
    open: BytesMut,
    len: usize,
    /// Bytes of the chunks that were made.
    chunks: usize,
}

/// What a body could not give under a shared lock.
#[derive(Debug)]
pub(super) struct MustClose;

impl Body {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory held.
    pub(super) fn held(&self) -> usize {
        self.chunks + self.closed.capacity() * size_of::<(usize, Bytes)>()
    }

    /// Appends; copies nothing but `bytes`.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        if self.open.capacity() - self.open.len() < bytes.len() {
            self.close();
            // Chunks grow with the item. What fills a good part of a chunk has one of its own, so
            // that it can be lent whole; and no more room is left behind than is made use of.
            let usual = (self.len / 2).clamp(SMALLEST, CHUNK);
            let size = if bytes.len() >= usual / 4 {
                bytes.len().max(SMALLEST)
            } else {
                usual
            };
            self.open = BytesMut::with_capacity(size);
            self.chunks += self.open.capacity() + SHARING;
        }
        self.open.extend_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Closes what is open so far. The rest of the chunk stays open.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            let begin = self.len - self.open.len();
            self.closed.push((begin, self.open.split().freeze()));
        }
    }

    /// The bytes from `from` to `to`, which lie within: lent if they are in one closed segment,
    /// else copied. Long ones that lie in the open one are given once that is closed.
    pub(super) fn read(&self, from: usize, to: usize) -> Result<Bytes, MustClose> {
        if from == to {
            return Ok(Bytes::new());
        }
        let open = self.len - self.open.len();
        if from >= open {
            if to - from >= LENT_FROM {
                return Err(MustClose);
            }
            return Ok(Bytes::copy_from_slice(&self.open[from - open..to - open]));
        }
        let first = self.closed.partition_point(|(begin, _)| *begin <= from) - 1;
        let (begin, segment) = &self.closed[first];
        if to <= begin + segment.len() {
            return Ok(segment.slice(from - begin..to - begin));
        }
        let mut copy = BytesMut::with_capacity(to - from);
        let closed = self.closed[first..]
            .iter()
            .map(|(begin, bytes)| (*begin, &bytes[..]));
        for (begin, bytes) in closed.chain([(open, &self.open[..])]) {
            let end = (begin + bytes.len()).min(to);
            let start = begin.max(from);
            if start < end {
                copy.extend_from_slice(&bytes[start - begin..end - begin]);
            }
        }
        Ok(copy.freeze())
    }
}
