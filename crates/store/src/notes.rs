//! Notes: short texts with names, which the log has as it has keys. The store does not look into
//! them: a server keeps there what has to be the same after a restart and on all nodes of a group,
//! and is no key.

use crate::Version;
use crate::effects::Unlogged;
use crate::effects::record::Change;
use crate::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use tremula_sync::Mutex;
use tremula_sync::atomic::{AtomicBool, Ordering::Relaxed};

/// All notes of a store.
#[derive(Default)]
pub(crate) struct Notes {
    inner: Mutex<Inner>,
    /// Whether there is a new one. Set under the lock, and a hint without it.
    has_new: AtomicBool,
}

#[derive(Default)]
struct Inner {
    texts: BTreeMap<Box<[u8]>, (Version, Box<[u8]>)>,
    /// The names of those that have come from the log, and were not [taken](Store::new_notes).
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
}

/// Notes.
impl Store {
    /// Gives a note this text; an empty one removes it. O(log n).
    ///
    /// ```
    /// use tremula_store::{Engine, Store, StoreConfig};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// store.note(b"user alice", b"on +@all")?;
    /// assert_eq!(store.noted(b"user alice").as_deref(), Some(&b"on +@all"[..]));
    /// store.note(b"user alice", b"")?;
    /// assert_eq!(store.noted(b"user alice"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unlogged`] if the log takes nothing more. Then nothing has changed.
    pub fn note(&self, name: &[u8], text: &[u8]) -> Result<(), Unlogged> {
        self.commit(|effects| {
            let mut inner = self.notes.inner.lock();
            let version = effects.note_down(name, text);
            inner.set(name, version, text);
        })
    }

    /// The text of a note, if there is one with this name.
    #[must_use]
    pub fn noted(&self, name: &[u8]) -> Option<Box<[u8]>> {
        let inner = self.notes.inner.lock();
        inner.texts.get(name).map(|(_, text)| text.clone())
    }

    /// The notes that have come from the log or a snapshot since the last call: names, and texts,
    /// which are empty where a note was removed. To be called by the thread that [applies] them.
    ///
    /// [applies]: Self::apply
    pub fn new_notes(&self) -> Vec<(Box<[u8]>, Box<[u8]>)> {
        if !self.notes.has_new.load(Relaxed) {
            return Vec::new();
        }
        let mut inner = self.notes.inner.lock();
        self.notes.has_new.store(false, Relaxed);
        let new = std::mem::take(&mut inner.new).into_iter();
        let texts = &inner.texts;
        let notes = new.map(|name| {
            let text = texts.get(&name).map(|(_, text)| text.clone());
            (name, text.unwrap_or_default())
        });
        notes.collect()
    }
}
