//! What a log asks of a directory, so that a disk that fails on purpose can stand in for it.

pub(crate) mod os;

use std::io;
use std::path::PathBuf;

/// A directory. Names are plain: there are no folders in it.
pub(crate) trait Disk: Send + Sync {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Opens a file for reading, and for writing if the disk is not read-only.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Makes an empty file.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file, and replaces one of the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes what was created, renamed and removed so far survive a loss of power.
    fn sync_directory(&self) -> io::Result<()>;
    /// The path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file of a [`Disk`].
pub(crate) trait DiskFile: Send + Sync {
    /// Fills the buffer from this offset on, as far as the file goes.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes what was written survive a loss of power. After a failure, what of it does is not
    /// known, and a second call may succeed without having done anything.
    fn sync(&self) -> io::Result<()>;
    /// The length in bytes.
    fn length(&self) -> io::Result<u64>;
}
