//! What a node has loaded takes the place of what it had, at the next start; and what a node has
//! is put aside, so that it follows its group's history from the beginning.

use super::GroupError;
use super::arguments::POINT;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tremula_log::LockedDirectory;
use tremula_store::{Folder, LOG_FOLDER};

/// A directory in a node's directory that is made ready for it, and what that is called when it is.
#[cfg(feature = "jetstream")]
pub(super) const ARRIVING: &str = "group-arriving";
pub(super) const ARRIVED: &str = "group-arrived";

/// A directory for files on the way.
#[cfg(feature = "jetstream")]
pub(super) const SCRATCH: &str = "group-scratch";

/// What a node had before it was to join anew is put here, with a number behind it.
const ASIDE: &str = "before-rejoin";

/// Puts what has arrived into its place. Does nothing if nothing has. If the process dies
/// meanwhile, the next one goes on with it: what was there before goes first, then the point takes
/// its place, and from then on nothing is removed.
pub(crate) fn arrive(directory: &Path) -> Result<(), GroupError> {
    let arrived = directory.join(ARRIVED);
    if !arrived.is_dir() {
        return Ok(());
    }
    let failed = |why: &dyn std::fmt::Display| GroupError::Arrival {
        path: arrived.clone(),
        why: why.to_string(),
    };
    let placed = || -> io::Result<()> {
        let point = arrived.join(POINT);
        if point.exists() {
            for path in snapshots(directory)? {
                fs::remove_file(path)?;
            }
            fs::remove_dir_all(directory.join(LOG_FOLDER))?;
            sync(directory)?;
            fs::rename(point, directory.join(POINT))?;
            sync(directory)?;
        }
        for entry in fs::read_dir(&arrived)? {
            let entry = entry?;
            fs::rename(entry.path(), directory.join(entry.file_name()))?;
        }
        sync(directory)?;
        fs::remove_dir(&arrived)
    };
    let log = directory.join(LOG_FOLDER);
    // Before the point is in its place the old log is there, and nobody else may have it open.
    let locked = arrived.join(POINT).exists();
    let locked = locked.then(|| LockedDirectory::of(&log)).transpose();
    let _locked = locked.map_err(|error| failed(&error))?;
    placed().map_err(|error| failed(&error))
}

/// Puts aside what a node of a group has in its directory, so that it joins its group anew at its
/// next start: from a snapshot of the group, or from the beginning of the group's log. Returns
/// where it lies now.
///
/// # Errors
///
/// The directory is no node's, a server has it open, or the system refuses.
pub fn rejoin(directory: &Path) -> Result<PathBuf, GroupError> {
    let failed = |why: &dyn std::fmt::Display| GroupError::Arrival {
        path: directory.to_path_buf(),
        why: why.to_string(),
    };
    if !directory.join(POINT).exists() {
        return Err(failed(&"it is no directory of a node of a group"));
    }
    let log = directory.join(LOG_FOLDER);
    let _locked = LockedDirectory::of(&log).map_err(|error| failed(&error))?;
    let put_aside = || -> io::Result<PathBuf> {
        let free = (1..).map(|number| directory.join(format!("{ASIDE}-{number}")));
        let aside = free.into_iter().find(|path| !path.exists());
        let aside = aside.ok_or(io::ErrorKind::AlreadyExists)?;
        fs::create_dir(&aside)?;
        let mut all = snapshots(directory)?;
        all.push(log.clone());
        // Last: without it, the rest is no node's.
        all.push(directory.join(POINT));
        for path in all {
            let name = path.file_name().unwrap_or_default();
            fs::rename(&path, aside.join(name))?;
        }
        sync(&aside)?;
        sync(directory)?;
        Ok(aside)
    };
    put_aside().map_err(|error| failed(&error))
}

fn snapshots(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let all = Folder::new(directory).snapshots();
    all.map_err(|failure| failure.source)
}

/// Makes the names in a directory survive a loss of power.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_log::{Batch, Config, FileLog, Log};

    /// A directory as a node has it, whose log has this number of records.
    fn node(directory: &Path, records: usize) {
        fs::create_dir_all(directory).expect("a directory");
        let config = Config::default().prepared(0).segment_bytes(4096);
        let log = FileLog::open(directory.join(LOG_FOLDER), &config).expect("a log");
        for _ in 0..records {
            log.append(&Batch::of(b"a record"), None)
                .expect("it takes it");
        }
        log.close().expect("it is on the disk");
        let snapshot = Folder::new(directory).path_of(log.tail().next);
        fs::write(snapshot, b"a snapshot").expect("a file");
        fs::write(directory.join(POINT), records.to_string()).expect("a file");
    }

    /// The records of the log, the names of the snapshots, and the point.
    fn seen(directory: &Path) -> (u64, usize, String) {
        let config = Config::default().prepared(0);
        let log = FileLog::open(directory.join(LOG_FOLDER), &config).expect("a log");
        let point = fs::read_to_string(directory.join(POINT)).expect("a point");
        let all = snapshots(directory).expect("a folder");
        (log.tail().next.before().get(), all.len(), point)
    }

    /// Fails if a process that dies while a snapshot takes its place leaves something from which
    /// the next one cannot go on.
    #[test]
    fn what_has_arrived_takes_its_place_whenever_the_process_dies() {
        let folder = tempfile::tempdir().expect("a folder");
        let fresh = |name: &str| {
            let directory = folder.path().join(name);
            node(&directory, 3);
            node(&directory.join(ARRIVED), 5);
            directory
        };
        let new = (5, 1, "5".to_owned());
        let directory = fresh("nothing was done");
        arrive(&directory).expect("it arrives");
        assert_eq!(seen(&directory), new);
        assert!(!directory.join(ARRIVED).exists());

        let directory = fresh("the old log is gone");
        fs::remove_dir_all(directory.join(LOG_FOLDER)).expect("it goes");
        arrive(&directory).expect("it arrives");
        assert_eq!(seen(&directory), new);

        let directory = fresh("the point and the log are in their places");
        for old in snapshots(&directory).expect("a folder") {
            fs::remove_file(old).expect("it goes");
        }
        fs::remove_dir_all(directory.join(LOG_FOLDER)).expect("it goes");
        for name in [POINT, LOG_FOLDER] {
            let from = directory.join(ARRIVED).join(name);
            fs::rename(from, directory.join(name)).expect("it moves");
        }
        arrive(&directory).expect("it arrives");
        assert_eq!(seen(&directory), new);

        // Nothing has arrived.
        arrive(&directory).expect("nothing to do");
        assert_eq!(seen(&directory), new);
    }

    #[test]
    fn a_node_in_use_neither_rejoins_nor_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("node");
        node(&directory, 3);
        node(&directory.join(ARRIVED), 5);
        let config = Config::default().prepared(0);
        let log = FileLog::open(directory.join(LOG_FOLDER), &config).expect("a log");
        for error in [
            arrive(&directory).expect_err("it is in use"),
            rejoin(&directory).map(|_| ()).expect_err("it is in use"),
        ] {
            assert!(error.to_string().contains("process"), "{error}");
        }
        drop(log);
        let aside = rejoin(&directory).expect("it is free");
        assert_eq!(seen(&aside), (3, 1, "3".to_owned()));
        assert!(!directory.join(POINT).exists());
        assert!(rejoin(&directory).is_err(), "it is no node's any more");
    }
}
