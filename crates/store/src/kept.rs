//! What a store keeps that is no key: answers of commands with ids, and notes.

use crate::answers::Asked;
use crate::effects::Unlogged;
use crate::notes::Note;
use crate::store::Store;

/// Commands with ids.
impl Store {
    /// What is known of the command with this id; if it is new, the right to carry it out. O(1) on
    /// average.
    ///
    /// The answer of a command may not be shown before the log has it: it is behind
    /// [`last_effect`](Self::last_effect) then.
    ///
    /// ```
    /// use tremula_store::{Asked, Engine, Hold, Key, Store, StoreConfig, Value};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let key = Key::from(&b"tree"[..]);
    /// let Asked::New(begun) = store.ask(b"id-1") else { panic!("nobody has used it") };
    /// store.hold(&[Hold::key(0, key.clone())], 1, |databases| {
    ///     databases.will_answer();
    ///     let value = Value::from(&b"aspen"[..]);
    ///     let _ = databases.commit(|effects| databases.database(0).insert(effects, key, value));
    ///     databases.answer(&begun, b"done");
    /// })?;
    /// assert!(matches!(store.ask(b"id-1"), Asked::Answered(answer) if *answer == *b"done"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ask(&self, id: &[u8]) -> Asked<'_> {
        self.answers.ask(id)
    }

    /// How many answers are kept, and the bytes of them and of their ids.
    #[must_use]
    pub fn kept_answers(&self) -> (usize, usize) {
        self.answers.held()
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
        self.commit(|effects| self.notes.set(name, text, || effects.note_down(name, text)))
    }

    /// The text of a note, if there is one with this name.
    #[must_use]
    pub fn noted(&self, name: &[u8]) -> Option<Box<[u8]>> {
        self.notes.get(name)
    }

    /// The notes that have come from the log or a snapshot since the last call: names, and texts,
    /// which are empty where a note was removed. To be called by the thread that [applies] them.
    ///
    /// [applies]: Self::apply
    pub fn new_notes(&self) -> Vec<Note> {
        self.notes.take_new()
    }
}
