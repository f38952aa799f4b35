//! Tables in files.
//!
//! # The format
//!
//! Eight bytes, `TREMTAB` and the version, 1; then records, each of
//!
//! ```text
//! | length, 4 bytes | CRC-32 of the length and the payload, 4 bytes | payload |
//! ```
//!
//! with big-endian numbers. The first payload is the table's properties, a list of pairs; then
//! come the rows, in lists of up to [`ROWS_OF_A_RECORD`](write::ROWS_OF_A_RECORD); the last is
//! `{end, Rows}` with their number, and nothing follows. Payloads are in the external term format.
//!
//! A file is written under another name, synced, and renamed, and the folder is synced: under its
//! name is the old file or the new one, whole.
//!
//! What Erlang's `ets:tab2file` wrote is read, too: see `erlang`.
//!
//! | file | holds |
//! |---|---|
//! | `write` | tab2file |
//! | `read` | file2tab, tabfile_info |
//! | `records` | the bytes of a file, record by record |
//! | `properties` | what a file says of its table |
//! | `error` | what is wrong with a file |

mod erlang;
mod error;
mod properties;
mod read;
mod records;
mod write;

pub use error::{FileError, FileProblem};
pub use properties::{ExtendedInfo, TabfileInfo};

/// What a file begins with: the last byte is the version.
const MAGIC: &[u8; 8] = b"TREMTAB\x01";
