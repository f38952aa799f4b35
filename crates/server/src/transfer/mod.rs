//! `tremula import` and `tremula export`: keys and values from Redis's files and servers, and out
//! of a directory or a server.
//!
//! | file | holds |
//! |---|---|
//! | `import` | files of Redis, and a full copy from a server, into a directory |
//! | `export` | a directory or a server, as lines |
//! | `redis` | a client of a Redis server: as much as these two and `tremula top` need |
//! | `reply` | the replies of a server, and how they are read |
//! | `trust` | what a connection over TLS needs |

mod export;
mod import;
mod redis;
mod reply;
mod trust;

pub use export::{ExportArgs, export};
#[cfg(any(test, fuzzing))]
pub(crate) use import::each_of;
pub use import::{ImportArgs, import};
pub use redis::{Address, Client};
pub use reply::Reply;
pub use trust::Trust;

use crate::rdb::RdbError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use tremula_store::local::{LocalError, MapError};
use tremula_store::{SaveError, Stopped};

/// Why keys were not imported or exported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file of Redis cannot be read. Nothing was imported.
    #[error("{from}: {source}; nothing was imported")]
    Rdb {
        /// The file or the server.
        from: String,
        /// Why not.
        #[source]
        source: RdbError,
    },
    /// A server refused something, or the connection broke.
    #[error("{from}: {what}")]
    Server {
        /// The server's address.
        from: String,
        /// What was wrong.
        what: String,
    },
    /// A key is in a database that there is not.
    #[error(
        "{from} has keys in database {database}, and the last one here is 15; nothing was imported"
    )]
    Database {
        /// The file or the server.
        from: String,
        /// The number.
        database: u64,
    },
    /// The directory cannot be opened.
    #[error("{}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: LocalError,
    },
    /// The directory has taken a part only.
    #[error("only a part was imported: {0}")]
    Write(#[from] MapError),
    /// The directory has taken a part only.
    #[error("only a part may be on the disk: {0}")]
    Stopped(#[from] Stopped),
    /// No snapshot was made; everything is in the log.
    #[error("all is imported, and no snapshot was made: {0}")]
    Save(#[from] SaveError),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[source] io::Error),
}
