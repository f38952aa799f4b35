//! A directory of the operating system, locked against other processes.

use super::{Disk, DiskFile};
use crate::error::{Failure, OpenError};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Held by the process that has the directory open.
const LOCK: &str = "LOCK";

/// A directory that no other process has open.
pub(crate) struct OsDisk {
    directory: PathBuf,
    /// Locked until it is closed. `None` if the directory is only read, and has no such file.
    _lock: Option<File>,
    read_only: bool,
}

impl OsDisk {
    /// Makes the directory if it is missing, and locks it.
    pub(crate) fn open(directory: &Path) -> Result<Self, OpenError> {
        let refused = |action, path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Directory(Failure::new(action, path, source))
        };
        fs::create_dir_all(directory).map_err(refused("make the directory", directory))?;
        let path = directory.join(LOCK);
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(refused("write to", &path))?;
        take(&mut lock, directory, &path)?;
        let own = format!("process {}\n", std::process::id());
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(own.as_bytes()))
            .map_err(refused("write to", &path))?;
        Ok(Self {
            directory: directory.to_owned(),
            _lock: Some(lock),
            read_only: false,
        })
    }

    /// Only reads, and does not lock: another process may write there.
    pub(crate) fn unlocked(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            _lock: None,
            read_only: true,
        }
    }

    /// Locks the directory if it has ever been open, and writes nothing.
    pub(crate) fn open_to_read(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(LOCK);
        let refused =
            |path: PathBuf| move |source| OpenError::Directory(Failure::new("read", path, source));
        fs::read_dir(directory).map_err(refused(directory.to_owned()))?;
        let lock = match File::open(&path) {
            Ok(mut lock) => {
                take(&mut lock, directory, &path)?;
                Some(lock)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(refused(path)(error)),
        };
        Ok(Self {
            directory: directory.to_owned(),
            _lock: lock,
            read_only: true,
        })
    }
}

/// The directory of a log, which no process opens while this is there.
///
/// ```
/// use tremula_log::{Config, FileLog, LockedDirectory};
///
/// let directory = tempfile::tempdir().unwrap();
/// let _locked = LockedDirectory::of(directory.path()).unwrap();
/// assert!(FileLog::open(directory.path(), &Config::default()).is_err());
/// ```
pub struct LockedDirectory(OsDisk);

impl LockedDirectory {
    /// Locks a directory, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// Another process has it open, or the system refuses.
    pub fn of(directory: &Path) -> Result<Self, OpenError> {
        Ok(Self(OsDisk::open(directory)?))
    }
}

impl std::fmt::Debug for LockedDirectory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "LockedDirectory {}", self.0.directory.display())
    }
}

/// Locks the file, or says who holds it.
fn take(lock: &mut File, directory: &Path, path: &Path) -> Result<(), OpenError> {
    match flock(&*lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut owner = String::new();
            let known = lock.take(64).read_to_string(&mut owner).is_ok();
            let owner = owner.trim();
            let is_known = known && !owner.is_empty();
            Err(OpenError::InUse {
                path: directory.to_owned(),
                owner: if is_known { owner } else { "another process" }.to_owned(),
            })
        }
        Err(error) => Err(OpenError::Directory(Failure::new(
            "lock",
            path.to_owned(),
            error.into(),
        ))),
    }
}

impl Disk for OsDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            // A name that is no text is not one of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(!self.read_only);
        Ok(Box::new(options.open(self.path(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Box::new(options.open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl DiskFile for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match FileExt::read_at(self, &mut into[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
