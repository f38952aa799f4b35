//! Shared by the tests of stores with a log: a log, a folder of snapshots, and the store on them.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod copying;

use std::sync::Arc;
use tempfile::TempDir;
use tremula_log::{Log, MemoryLog};
use tremula_store::{Folder, Recovered, Store, StoreConfig};

/// A log in memory, which outlives the stores that are opened on it.
pub(crate) fn new_log() -> Arc<dyn Log> {
    Arc::new(MemoryLog::new())
}

/// An empty folder, and the directory that is removed when it is dropped.
pub(crate) fn new_folder() -> (TempDir, Folder) {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = Folder::new(directory.path());
    (directory, folder)
}

/// The store that a log and a folder make.
pub(crate) fn open(
    config: &StoreConfig,
    log: &Arc<dyn Log>,
    folder: &Folder,
) -> (Store, Recovered) {
    Store::recover(config, Arc::clone(log), folder, &mut |_| ()).expect("what was written is whole")
}
