//! The bytes of one item, in chunks that never move.

use bytes::{Bytes, BytesMut};

/// The largest size of a chunk that is made for an append smaller than the chunk.
const CHUNK: usize = 64 * 1024;

/// The smallest chunk.
const SMALLEST: usize = 64;

/// Reads shorter than this are copied out of the chunk that still grows. A longer read closes the
/// filled part of that chunk, so that it can be lent. So a segment that was closed before its chunk
/// was full has at least this many bytes, which makes its entry in the list cheap by comparison.
const LENT_FROM: usize = 1024;

/// The additional memory of a shared chunk: its reference count.
const SHARING: usize = 48;

/// Bytes that grow at the end.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// The segments that do not change any more, each with the offset at which it begins.
    closed: Vec<(usize, Bytes)>,
    /// The bytes after the closed segments. Its capacity is the room left in the chunk.
    open: BytesMut,
    len: usize,
    /// Bytes of all chunks made so far.
    chunks: usize,
}

/// A body cannot lend the bytes under a shared lock: the open segment must be closed first.
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
            // Chunks grow with the item. An append that fills at least a quarter of the usual chunk
            // gets its own chunk, so that it can be lent whole. The room lost in the old chunk is
            // smaller than the append.
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

    /// Closes the segment that is open so far. The rest of its chunk stays open.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            let begin = self.len - self.open.len();
            self.closed.push((begin, self.open.split().freeze()));
        }
    }

    /// The bytes from `from` to `to`, which must lie within the body: lent if they are in one
    /// closed segment, copied otherwise. Long ranges in the open segment need it closed.
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
