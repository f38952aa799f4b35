//! Redis's files of keys (RDB), read.
//!
//! A file is a head with a version, and items: entries, each with its type, and notes between them
//! (the database, an expiry, …). What is no string is read over, whatever it is, and named. Every
//! type of Redis up to 7.2 and of Valkey 8 is known.
//!
//! | file | holds |
//! |---|---|
//! | `read` | lengths, strings, items |
//! | `skip` | reading over the values of other types |
//! | `lzf` | strings that are compressed |
//! | `payload` | one value, for `DUMP` and `RESTORE` |
//! | `crc` | the checksum over all |
//!
//! Sources: the layout as Redis 7.0's documentation and its own files show it; Marc Lehmann's LZF;
//! the CRC-64 with the polynomial of Jones.

mod crc;
mod lzf;
mod payload;
mod read;
mod skip;

pub(crate) use payload::{BadPayload, payload, read_payload};
pub(crate) use read::{Item, Rdb, RdbError};
