//! Tables in files.
//!
//! # The format
//!
//! A file has eight bytes, `TREMTAB` and the version, 1; then records, each of
//!
//! ```text
//! | length, 4 bytes | CRC-32 of the length and the payload, 4 bytes | payload |
//! ```
//!
//! with big-endian numbers. Payloads are in the external term format. The first is the table's
//! properties, a list of pairs. The rows follow in lists of up to
//! [`ROWS_OF_A_RECORD`](write::ROWS_OF_A_RECORD). The last is `{end, Rows}` with their number.
//!
//! `tab2file` writes under another name, syncs the file, renames it, and syncs the folder: under
//! its name is always the whole old file or the whole new one. `file2tab` also reads files that
//! Erlang's `ets:tab2file` wrote: see `erlang`.
//!
//! | file | holds |
//! |---|---|
//! | `write` | tab2file |
//! | `read` | file2tab, tabfile_info |
//! | `records` | the bytes of a file, record by record |
//! | `properties` | what a file says about its table |
//! | `error` | what is wrong with a file |

mod erlang;
mod error;
mod properties;
mod read;
mod records;
mod write;

pub use error::{FileError, FileProblem};
pub use properties::{ExtendedInfo, TabfileInfo};

/// The first bytes of a file; the last of them is the version.
const MAGIC: &[u8; 8] = b"TREMTAB\x01";
