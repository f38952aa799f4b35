//! Notes: short texts with names, which the log has as it has keys. The store does not look into
//! them: a server keeps there what has to be the same after a restart and on all nodes of a group,
//! and is no key.

use crate::Version;
use crate::effects::record::Change;
use std::collections::{BTreeMap, BTreeSet};
use tremula_sync::Mutex;
use tremula_sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A note: its name, and its text, which is empty if the note was removed.
pub type Note = (Box<[u8]>, Box<[u8]>);

/// All notes of a store.
#[derive(Default)]
pub(crate) struct Notes {
    inner: Mutex<Inner>,
    /// Whether there is a new one. Set under the lock, and a hint without it.
    has_new: AtomicBool,
}

/// A text, with the version of the record that has it.
type Kept = (Version, Box<[u8]>);

#[derive(Default)]
struct Inner {
    texts: BTreeMap<Box<[u8]>, Kept>,
    /// The names of those that have come from the log, and were not [taken](Notes::take_new).
    new: BTreeSet<Box<[u8]>>,
}

impl Inner {
    fn set(&mut self, name: &[u8], version: Version, text: &[u8]) {
        match text {
            [] => drop(self.texts.remove(name)),
            text => drop(self.texts.insert(name.into(), (version, text.into()))),
        }
    }
}

impl Notes {
    /// Makes true what a record says.
    pub(crate) fn apply(&self, name: &[u8], version: Version, text: &[u8]) {
        let mut inner = self.inner.lock();
        inner.set(name, version, text);
        inner.new.insert(name.into());
        self.has_new.store(true, Relaxed);
    }

    /// All of them, as the log has them.
    pub(crate) fn all(&self) -> Vec<(Version, Change)> {
        let inner = self.inner.lock();
        let texts = inner.texts.iter();
        let notes = texts
            .map(|(name, (version, text))| (*version, Change::Note(name.clone(), text.clone())));
        notes.collect()
    }

    /// Gives a note this text, with the version that `number` returns under the lock.
    pub(crate) fn set(&self, name: &[u8], text: &[u8], number: impl FnOnce() -> Version) {
        let mut inner = self.inner.lock();
        let version = number();
        inner.set(name, version, text);
    }

    /// The text of a note.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Box<[u8]>> {
        let inner = self.inner.lock();
        inner.texts.get(name).map(|(_, text)| text.clone())
    }

    /// Those that have come from the log, once.
    pub(crate) fn take_new(&self) -> Vec<Note> {
        if !self.has_new.load(Relaxed) {
            return Vec::new();
        }
        let mut inner = self.inner.lock();
        self.has_new.store(false, Relaxed);
        let new = std::mem::take(&mut inner.new).into_iter();
        let texts = &inner.texts;
        let notes = new.map(|name| {
            let text = texts.get(&name).map(|(_, text)| text.clone());
            (name, text.unwrap_or_default())
        });
        notes.collect()
    }
}
