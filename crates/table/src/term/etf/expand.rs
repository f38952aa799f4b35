//! Expands compressed terms without trusting the size that they declare.

use super::super::Limits;
use super::error::{DecodeError, DecodeProblem};
use super::reader::Reader;
use flate2::{Decompress, FlushDecompress, Status};

/// Bytes by which the buffer for the expanded term grows at first. After that it doubles, so that
/// it is never much larger than what has been expanded.
const FIRST_ROOM: usize = 16 << 10;

/// Expands the bytes after a tag at `offset`. Also returns where they end.
pub(super) fn expand(
    reader: &mut Reader<'_>,
    offset: usize,
    limits: &Limits,
) -> Result<(Vec<u8>, usize), DecodeError> {
    let declared = reader.u32()? as usize;
    if declared > limits.expanded_bytes {
        let problem = DecodeProblem::ExpandsTooFar {
            length: declared,
            limit: limits.expanded_bytes,
        };
        return Err(reader.error(offset, problem));
    }
    let start = reader.position();
    let compressed = reader.take(reader.left())?;
    let mut stream = Decompress::new(true);
    let mut expanded = Vec::new();
    loop {
        // One byte more than declared shows whether more follows.
        let room = expanded
            .len()
            .max(FIRST_ROOM)
            .min(declared + 1 - expanded.len());
        expanded.reserve_exact(room);
        let read = stream.total_in() as usize;
        let before = expanded.len();
        let status = stream
            .decompress_vec(&compressed[read..], &mut expanded, FlushDecompress::None)
            .map_err(|_| reader.error(start + read, DecodeProblem::Damaged))?;
        let read_now = stream.total_in() as usize;
        if expanded.len() > declared {
            return Err(reader.error(offset, DecodeProblem::ExpandedLength { declared }));
        }
        if status == Status::StreamEnd {
            break;
        }
        if expanded.len() == before && read_now == read {
            // No more comes out, but the end has not been reached.
            let missing = 1;
            return Err(reader.error(
                start + compressed.len(),
                DecodeProblem::Truncated { missing },
            ));
        }
    }
    if expanded.len() != declared {
        return Err(reader.error(offset, DecodeProblem::ExpandedLength { declared }));
    }
    Ok((expanded, start + stream.total_in() as usize))
}
