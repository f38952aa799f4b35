//! A disk in memory that loses power, pages and bits on command.
//!
//! What is written goes to a live image, which readers see. A sync copies it to a durable image. A
//! [loss of power](FaultyDisk::lose_power) leaves the durable image and a random part of what was
//! not synced, sector by sector, some sectors torn: of what was new in them only the beginning is
//! there. What had been in a sector before stays, as on disks whose overwriting is safe. Of the
//! changes to the directory that were not synced a random number is left, oldest first.

use crate::disk::{Disk, DiskFile};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::DerefMut;
use std::path::PathBuf;
use std::time::Duration;
use tremula_sync::system::{Arc, Mutex, thread};

/// Bytes that a disk writes at once.
const SECTOR_BYTES: usize = 512;

/// A disk in memory, which fails when it is asked to. Its clones are handles to one disk.
///
/// [`FileLog::open_on`](crate::FileLog::open_on) keeps a log on it, with the same code as in a
/// directory. The same seed makes the same losses.
///
/// ```
/// use tremula_log::{Batch, Config, FaultyDisk, FileLog, Log};
///
/// let disk = FaultyDisk::new(1);
/// let log = FileLog::open_on(&disk, &Config::default().segment_bytes(4096)).unwrap();
/// let ticket = log.append(&Batch::of(b"kept"), None).unwrap();
/// log.wait(ticket.last()).unwrap();
/// disk.lose_power();
///
/// let log = FileLog::open_on(&disk, &Config::default().segment_bytes(4096)).unwrap();
/// assert_eq!(log.durable(), ticket.last());
/// ```
#[derive(Clone)]
pub struct FaultyDisk(Arc<Mutex<State>>);

struct State {
    files: Vec<FileState>,
    /// The names, as readers see them.
    names: BTreeMap<String, usize>,
    /// The names that survive a loss of power.
    durable_names: BTreeMap<String, usize>,
    /// What was done to the names since, oldest first.
    changes: Vec<Change>,
    /// Handles of an earlier one are dead.
    generation: u64,
    is_in_use: bool,
    random: u64,
    faults: Faults,
    syncs: u64,
}

#[derive(Default)]
struct Faults {
    /// Syncs that succeed before one fails.
    sync_fails_after: Option<u64>,
    sync_takes: Duration,
    /// Bytes that all files may have together.
    room: Option<u64>,
    writes_fail: bool,
}

#[derive(Clone, Default)]
struct FileState {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// The sectors that differ, or may.
    dirty: BTreeSet<usize>,
}

#[derive(Clone)]
enum Change {
    Name(String, usize),
    Rename(String, String),
    Remove(String),
}

impl FaultyDisk {
    /// An empty disk without a fault.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            generation: 0,
            is_in_use: false,
            // Any number but 0, of which the generator makes nothing else.
            random: seed | 1 << 63,
            faults: Faults::default(),
            syncs: 0,
        })))
    }

    /// Takes the power away and gives it back: everything that was not synced is there, torn, or
    /// gone. Faults end; a log that had files open gets errors from now on.
    pub fn lose_power(&self) {
        let mut state = self.lock();
        let state = &mut *state;
        let kept = below(&mut state.random, state.changes.len() as u64 + 1) as usize;
        for change in &state.changes[..kept] {
            apply(&mut state.durable_names, change);
        }
        for file in &mut state.files {
            file.lose_power(&mut state.random);
        }
        state.restart();
    }

    /// Ends the process that has files open: everything that was written is there. Faults end.
    pub fn kill(&self) {
        let mut state = self.lock();
        state.sync_all();
        state.restart();
    }

    /// Lets this number of syncs succeed, and the next one fail. What that one was to make durable
    /// stays readable, but is not written by later syncs, which succeed: so do disks whose system
    /// marks pages clean when it could not write them.
    pub fn fail_sync_after(&self, successes: u64) {
        self.lock().faults.sync_fails_after = Some(successes);
    }

    /// Makes each sync take so long.
    pub fn slow_syncs(&self, each: Duration) {
        self.lock().faults.sync_takes = each;
    }

    /// Lets all files together have no more bytes than this: a write beyond writes what fits, then
    /// fails as on a full disk. `None` for as many as there is memory for.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.lock().faults.room = bytes;
    }

    /// Makes all writes fail, and not for lack of room.
    pub fn fail_writes(&self) {
        self.lock().faults.writes_fail = true;
    }

    /// Ends all faults; what they have done stays done.
    pub fn end_faults(&self) {
        self.lock().faults = Faults::default();
    }

    /// The names of all files.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock().names.keys().cloned().collect()
    }

    /// The bytes of a file; none if there is no such file.
    #[must_use]
    pub fn contents(&self, name: &str) -> Vec<u8> {
        let state = self.lock();
        let file = state.names.get(name).map(|file| &state.files[*file]);
        file.map_or_else(Vec::new, |file| file.live.clone())
    }

    /// Replaces the bytes of a file, or makes one, past all faults and durable at once: so a test
    /// flips, zeroes or cuts what it likes.
    pub fn replace(&self, name: &str, contents: Vec<u8>) {
        let mut state = self.lock();
        state.files.push(FileState {
            durable: contents.clone(),
            live: contents,
            dirty: BTreeSet::new(),
        });
        let file = state.files.len() - 1;
        state.names.insert(name.to_owned(), file);
        state.durable_names.insert(name.to_owned(), file);
    }

    /// Flips one bit of a file, past all faults and durable at once.
    ///
    /// # Panics
    ///
    /// The file has no such byte.
    pub fn flip(&self, name: &str, offset: usize, bit: u8) {
        let mut contents = self.contents(name);
        contents[offset] ^= 1 << (bit % 8);
        self.replace(name, contents);
    }

    /// Removes a file, past all faults and durable at once.
    pub fn remove(&self, name: &str) {
        let mut state = self.lock();
        state.names.remove(name);
        state.durable_names.remove(name);
    }

    /// A second disk, with what readers of this one see, and without its faults.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = Self::new(self.lock().random);
        for name in self.names() {
            copy.replace(&name, self.contents(&name));
        }
        copy
    }

    /// How many syncs of files there were.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// A panic under the lock is a failed test, which may go on to say why.
    fn lock(&self) -> impl DerefMut<Target = State> + '_ {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A handle for one process; `None` if another has the disk.
    pub(crate) fn open(&self) -> Option<Handle> {
        let mut state = self.lock();
        if state.is_in_use {
            return None;
        }
        state.is_in_use = true;
        Some(Handle(View {
            disk: self.clone(),
            generation: state.generation,
        }))
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "FaultyDisk of {} files", self.names().len())
    }
}

impl State {
    fn restart(&mut self) {
        self.names = self.durable_names.clone();
        self.changes.clear();
        self.faults = Faults::default();
        self.generation += 1;
        self.is_in_use = false;
    }

    fn sync_all(&mut self) {
        self.durable_names = self.names.clone();
        self.files.iter_mut().for_each(FileState::sync);
    }

    fn used(&self) -> u64 {
        let length = |file: &usize| self.files[*file].live.len() as u64;
        self.names.values().map(length).sum()
    }

    fn file_of(&self, name: &str) -> io::Result<usize> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        self.names.get(name).copied().ok_or_else(missing)
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }
}

fn apply(names: &mut BTreeMap<String, usize>, change: &Change) {
    match change {
        Change::Name(name, file) => {
            names.insert(name.clone(), *file);
        }
        Change::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Change::Remove(name) => {
            names.remove(name);
        }
    }
}

impl FileState {
    fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let range = sector_range(sector, self.live.len());
            self.durable[range.clone()].copy_from_slice(&self.live[range]);
        }
    }

    /// A failed sync: some sectors are durable, and the others never will be.
    fn sync_badly(&mut self, random: &mut u64) {
        self.dirty.retain(|_| below(random, 2) == 0);
        self.sync();
    }

    fn lose_power(&mut self, random: &mut u64) {
        if below(random, 2) == 0 {
            self.durable.resize(self.live.len(), 0);
        }
        for sector in std::mem::take(&mut self.dirty) {
            let mut range = sector_range(sector, self.live.len().min(self.durable.len()));
            match below(random, 3) {
                0 => continue,
                1 => {}
                _ => range.end -= below(random, range.len() as u64 + 1) as usize,
            }
            self.durable[range.clone()].copy_from_slice(&self.live[range]);
        }
        self.live.clone_from(&self.durable);
    }
}

/// The bytes of a sector in a file of this length.
fn sector_range(sector: usize, length: usize) -> std::ops::Range<usize> {
    let begin = (sector * SECTOR_BYTES).min(length);
    begin..(begin + SECTOR_BYTES).min(length)
}

/// A random number below `limit`, by xorshift.
fn below(random: &mut u64, limit: u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    // The low bits are the weakest.
    (*random >> 11) % limit
}

/// The disk as one process sees it: dead once the power was lost.
#[derive(Clone)]
struct View {
    disk: FaultyDisk,
    generation: u64,
}

impl View {
    fn with<R>(&self, work: impl FnOnce(&mut State) -> io::Result<R>) -> io::Result<R> {
        let mut state = self.disk.lock();
        if state.generation != self.generation {
            return Err(io::Error::other("the disk has lost its power"));
        }
        work(&mut state)
    }

    fn file(&self, file: usize) -> Box<dyn DiskFile> {
        let view = self.clone();
        Box::new(File { view, file })
    }
}

/// The disk, in use by one process until this is dropped.
pub(crate) struct Handle(View);

impl Drop for Handle {
    fn drop(&mut self) {
        // An error says that the view was dead already, and that another one may be in use.
        let _ = self.0.with(|state| {
            state.is_in_use = false;
            Ok(())
        });
    }
}

impl Disk for Handle {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0
            .with(|state| Ok(state.names.keys().cloned().collect()))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.0.with(|state| state.file_of(name))?;
        Ok(self.0.file(file))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.0.with(|state| {
            state.files.push(FileState::default());
            let file = state.files.len() - 1;
            state.change(Change::Name(name.to_owned(), file));
            Ok(file)
        })?;
        Ok(self.0.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.with(|state| {
            state.file_of(from)?;
            state.change(Change::Rename(from.to_owned(), to.to_owned()));
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.with(|state| {
            state.file_of(name)?;
            state.change(Change::Remove(name.to_owned()));
            Ok(())
        })
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.with(|state| {
            state.durable_names = state.names.clone();
            state.changes.clear();
            Ok(())
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(name)
    }
}

struct File {
    view: View,
    file: usize,
}

impl DiskFile for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.view.with(|state| {
            let live = &state.files[self.file].live;
            let from = &live[(offset as usize).min(live.len())..];
            let count = from.len().min(into.len());
            into[..count].copy_from_slice(&from[..count]);
            Ok(count)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.view.with(|state| {
            if state.faults.writes_fail {
                return Err(io::Error::other("the disk refuses to write"));
            }
            let offset = offset as usize;
            let length = state.files[self.file].live.len();
            let grows = (offset + bytes.len()).saturating_sub(length) as u64;
            let free = state
                .faults
                .room
                .map(|room| room.saturating_sub(state.used()));
            let missing = free.map_or(0, |free| grows.saturating_sub(free)) as usize;
            let bytes = &bytes[..bytes.len().saturating_sub(missing)];
            let file = &mut state.files[self.file];
            let end = offset + bytes.len();
            if end > length && !bytes.is_empty() {
                file.live.resize(end, 0);
            }
            if !bytes.is_empty() {
                file.live[offset..end].copy_from_slice(bytes);
                file.dirty
                    .extend(offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES);
            }
            if missing > 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        let takes = self.view.with(|state| Ok(state.faults.sync_takes))?;
        if takes > Duration::ZERO {
            thread::sleep(takes);
        }
        self.view.with(|state| {
            state.syncs += 1;
            let state = &mut *state;
            let file = &mut state.files[self.file];
            match &mut state.faults.sync_fails_after {
                Some(0) => {
                    file.sync_badly(&mut state.random);
                    state.faults.sync_fails_after = None;
                    return Err(io::Error::other("the disk could not write"));
                }
                Some(successes) => *successes -= 1,
                None => {}
            }
            file.sync();
            Ok(())
        })
    }

    fn length(&self) -> io::Result<u64> {
        self.view
            .with(|state| Ok(state.files[self.file].live.len() as u64))
    }
}
