//! The values of one database, in the index or in the cache.
//!
//! A key whose value was evicted is removed from the index before the command that caused it is
//! answered. A thread that comes in between finds the number in the index and nothing in the cache,
//! and removes the key.

use crate::database::Database;
use crate::databases::Databases;
use crate::effects::Effects;

use crate::value_cache::{Appended, CachedId, Evicted, ValueCache};
use crate::{Expiry, Key, Value, Version};
use bytes::Bytes;
use std::ops::{Deref, Range};
use tremula_index::Update;

/// The values of one database.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    pub(crate) databases: Databases<'a>,
    pub(crate) cache: Option<&'a ValueCache>,
    pub(crate) number: usize,
}

/// A value's bytes.
pub enum Text {
    /// Of a value in the index.
    Plain(Value),
    /// Of a value in the cache.
    Cached(Bytes),
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Plain(value) => value,
            Self::Cached(bytes) => bytes,
        }
    }
}

/// A part of a value, while it is shown.
pub struct Part<'a> {
    whole: Whole<'a>,
    range: Range<usize>,
}

enum Whole<'a> {
    Here(&'a Value),
    Cached(&'a Bytes),
}

impl Part<'_> {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let whole: &[u8] = match self.whole {
            Whole::Here(value) => value,
            Whole::Cached(bytes) => bytes,
        };
        &whole[self.range.clone()]
    }

    /// The bytes for later, as a range of a shared value: long bytes are not copied.
    #[must_use]
    pub fn share(&self) -> (Text, Range<usize>) {
        let whole = match self.whole {
            Whole::Here(value) => Text::Plain(value.clone()),
            Whole::Cached(bytes) => Text::Cached(bytes.clone()),
        };
        (whole, self.range.clone())
    }
}

/// What came of changing a value at once.
#[derive(Debug)]
pub enum Changed {
    /// The value has this length now.
    To(usize),
    /// Nothing has changed, because the value is so long that copying it takes long: the caller
    /// copies it and then [replaces](Values::replace) it.
    Long(Value),
}

/// When a key expires whose value is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// When it would have expired.
    Kept,
    /// Then, or never.
    New(Option<Expiry>),
}

impl Lifetime {
    /// When a key expires that had this value.
    fn of(self, current: Option<&Value>) -> Option<Expiry> {
        match self {
            Self::Kept => current.and_then(Value::expiry),
            Self::New(expiry) => expiry,
        }
    }
}

/// A value would be longer than an argument may be.
#[derive(Clone, Copy, Debug)]
pub struct TooLong;

impl<'a> Databases<'a> {
    /// The values of the database with this number, in the index or in the cache.
    #[must_use]
    pub const fn values(&self, number: usize) -> Values<'a> {
        Values {
            databases: *self,
            cache: self.cache,
            number,
        }
    }
}

impl<'a> Values<'a> {
    fn database(&self) -> Database<'a> {
        self.databases.database(self.number)
    }

    /// Calls `show` with the length of a key's value and the range of bytes that `part` chooses by
    /// it. Bytes in the index are shown without a copy. Returns whether the key has a value.
    pub fn read(
        &self,
        key: &Key,
        part: impl Fn(usize) -> Range<usize> + Copy + Send + 'static,
        show: &mut dyn FnMut(usize, Part<'_>),
    ) -> bool {
        loop {
            let mut cached = None;
            let is_there = self.database().get_with(key, &mut |value| {
                cached = value.cached();
                if cached.is_none() {
                    let whole = Whole::Here(value);
                    let range = part(value.len());
                    show(value.len(), Part { whole, range });
                }
            });
            let (Some(number), Some(cache)) = (cached, self.cache) else {
                return is_there;
            };
            if let Some((length, bytes)) = self.read_cached(cache, key, number, part) {
                let whole = Whole::Cached(&bytes);
                let range = 0..bytes.len();
                show(length, Part { whole, range });
                return true;
            }
        }
    }

    /// The length and a part of the value with this number. `None` if the value has been evicted,
    /// or if the key has got another value meanwhile: the caller looks the key up again.
    fn read_cached(
        &self,
        cache: &ValueCache,
        key: &Key,
        number: u64,
        part: impl Fn(usize) -> Range<usize> + Send + 'static,
    ) -> Option<(usize, Bytes)> {
        let mut evicted = Evicted::new();
        let answer = cache.read(number, &mut evicted, part);
        self.forget(evicted);
        if answer.is_none() {
            self.forget_one(key, number);
        }
        answer
    }

    /// The bytes of a value that was found under this key. If the cache has evicted that value, the
    /// bytes of the value that the key has now.
    pub fn text(&self, key: &Key, value: &Value) -> Option<Text> {
        let mut value = value.clone();
        loop {
            let (Some(number), Some(cache)) = (value.cached(), self.cache) else {
                return Some(Text::Plain(value));
            };
            if let Some((_, bytes)) = self.read_cached(cache, key, number, |length| 0..length) {
                return Some(Text::Cached(bytes));
            }
            value = self.database().get(key)?;
        }
    }

    /// The bytes of a key's value, and the [version](Value::version) that they have. Linearizable:
    /// if the value lies in the cache, both are read under the lock of the key.
    ///
    /// ```
    /// use tremula_store::{Engine, Key, Store, StoreConfig, Value};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let (key, values) = (Key::from(&b"tree"[..]), store.values(0));
    /// assert!(values.versioned(&key).is_none());
    /// let value = Value::from(&b"aspen"[..]);
    /// store.commit(|effects| store.database(0).insert(effects, key.clone(), value))?;
    /// let (text, version) = values.versioned(&key).expect("it was stored");
    /// assert_eq!(&*text, b"aspen");
    /// assert_eq!(store.database(0).get(&key).map(|value| value.version()), Some(version));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn versioned(&self, key: &Key) -> Option<(Text, Version)> {
        let value = self.database().get(key)?;
        let (Some(_), Some(cache)) = (value.cached(), self.cache) else {
            let version = value.version();
            return Some((Text::Plain(value), version));
        };
        let (mut found, mut evicted) = (None, Evicted::new());
        let database = self.database();
        self.databases.commit_anyway(|effects| {
            database.update(effects, key.clone(), &mut |current| {
                let Some(current) = current else {
                    return Update::Keep;
                };
                let text = match current.cached() {
                    None => Text::Plain(current.clone()),
                    Some(number) => match cache.read(number, &mut evicted, |length| 0..length) {
                        Some((_, bytes)) => Text::Cached(bytes),
                        None => return Update::Remove,
                    },
                };
                found = Some((text, current.version()));
                Update::Keep
            });
        });
        self.forget(evicted);
        found
    }

    /// The bytes of a value under the lock of its key; `None` if the cache has evicted it. What the
    /// cache has evicted meanwhile is to be [forgotten](Self::forget) without the lock.
    pub(crate) fn text_within(&self, value: &Value, evicted: &mut Evicted) -> Option<Text> {
        let (Some(number), Some(cache)) = (value.cached(), self.cache) else {
            return Some(Text::Plain(value.clone()));
        };
        let read = cache.read(number, evicted, |length| 0..length);
        read.map(|(_, bytes)| Text::Cached(bytes))
    }

    /// The bytes of a value that was taken out of the index.
    pub fn taken(&self, value: Option<Value>) -> Option<Text> {
        let value = value?;
        let (Some(number), Some(cache)) = (value.cached(), self.cache) else {
            return Some(Text::Plain(value));
        };
        let mut evicted = Evicted::new();
        let bytes = cache.take(number, &mut evicted);
        self.forget(evicted);
        bytes.map(Text::Cached)
    }

    /// Drops a value that was taken out of the index. Returns whether the value still existed.
    pub fn dropped(&self, value: Option<Value>) -> bool {
        let Some(value) = value else { return false };
        match (value.cached(), self.cache) {
            (Some(number), Some(cache)) => cache.remove(number),
            _ => true,
        }
    }

    /// Changes a key's value by its bytes. A value that is put lies in the index, and the key
    /// expires as `lifetime` says.
    pub fn update(
        &self,
        effects: &mut Effects<'_>,
        key: Key,
        lifetime: Lifetime,
        change: &mut dyn FnMut(Option<&[u8]>) -> Update<Value>,
    ) {
        let mut evicted = Evicted::new();
        let mut replaced = None;
        self.database().update(effects, key, &mut |current| {
            let number = current.and_then(Value::cached);
            let change = &mut |bytes: Option<&[u8]>| match change(bytes) {
                Update::Put(value) => Update::Put(value.expiring(lifetime.of(current))),
                other => other,
            };
            let (Some(number), Some(cache)) = (number, self.cache) else {
                return change(current.map(|value| &**value));
            };
            let read = cache.read(number, &mut evicted, |length| 0..length);
            let bytes = read.as_ref().map(|(_, bytes)| &bytes[..]);
            match (change(bytes), bytes.is_some()) {
                (Update::Keep, true) => Update::Keep,
                (Update::Keep, false) => Update::Remove,
                (other, _) => {
                    replaced = Some(number);
                    other
                }
            }
        });
        if let (Some(number), Some(cache)) = (replaced, self.cache) {
            cache.remove(number);
        }
        self.forget(evicted);
    }

    /// Puts `new` in the place of the value `old`, which was under this key, or of no value. Fails
    /// if the key has got another value since, and returns `new`. The key expires when it would
    /// have before.
    pub fn replace(
        &self,
        effects: &mut Effects<'_>,
        key: Key,
        old: Option<&Value>,
        new: Value,
    ) -> Result<(), Value> {
        let mut new = Some(new);
        self.database().update(effects, key, &mut |current| {
            let is_old = match (current, old) {
                (Some(current), Some(old)) => current.is_same(old),
                (None, None) => true,
                _ => false,
            };
            match new.take_if(|_| is_old) {
                Some(new) => Update::Put(new.expiring(current.and_then(Value::expiry))),
                None => Update::Keep,
            }
        });
        new.map_or(Ok(()), Err)
    }

    /// Appends to a key's value; the key expires when it would have before. A value in the index
    /// that would be longer than `at_once` bytes is left to the caller.
    ///
    /// # Errors
    ///
    /// [`TooLong`] if the value would be longer than `limit`.
    pub fn append(
        &self,
        effects: &mut Effects<'_>,
        key: Key,
        suffix: &[u8],
        limit: usize,
        at_once: usize,
    ) -> Result<Changed, TooLong> {
        let mut evicted = Evicted::new();
        let mut length = Ok(0);
        let mut long = None;
        let id_key = self.cache.map(|_| key.clone());
        let database = self.database();
        database.update_noting(effects, key, &mut |effects, current| {
            let cached = current.and_then(Value::cached);
            let expiry = current.and_then(Value::expiry);
            let mut bytes = None;
            if let (Some(cache), Some(number), Some(key)) = (self.cache, cached, &id_key) {
                let id = CachedId {
                    number,
                    database: self.number,
                    key: key.clone(),
                };
                match cache.append(id, suffix, limit, &mut evicted) {
                    Appended::To(appended) => {
                        length = Ok(appended);
                        let offset = appended - suffix.len();
                        let version = effects.tail(database.number(), key, offset, suffix);
                        let mut now = Value::in_cache(number).expiring(expiry);
                        now.stamp(version);
                        return Update::Put(now);
                    }
                    Appended::TooLong => {
                        length = Err(TooLong);
                        return Update::Keep;
                    }
                    Appended::NoRoom(all) => bytes = Some(all),
                    Appended::Gone => {}
                }
            }
            let front: &[u8] = match &bytes {
                Some(bytes) => bytes,
                None => current.map_or(&[], |value| value),
            };
            length = checked_end(front.len(), suffix.len(), limit);
            let Ok(length) = length else {
                return Update::Keep;
            };
            if let (Some(cache), Some(key), None) = (self.cache, &id_key, &bytes)
                && length >= cache.from
                && let Some(number) = cache.begin(self.number, key, [front, suffix], &mut evicted)
            {
                let mut now = Value::in_cache(number).expiring(expiry);
                effects.put_cached(database.number(), key, &mut now, || {
                    Value::from([front, suffix].concat()).expiring(expiry)
                });
                return Update::Put(now);
            }
            if let (Some(value), None) = (current, cached)
                && length > at_once
            {
                long = Some(value.clone());
                return Update::Keep;
            }
            let appended = Value::build(length, |bytes| {
                let (before, behind) = bytes.split_at_mut(front.len());
                before.copy_from_slice(front);
                behind.copy_from_slice(suffix);
            });
            Update::Put(appended.expiring(expiry))
        });
        self.forget(evicted);
        Ok(long.map_or(Changed::To(length?), Changed::Long))
    }

    /// Removes the keys of values that have been evicted.
    pub(crate) fn forget(&self, evicted: Evicted) {
        for id in self.databases.evicted(evicted) {
            self.databases
                .values(id.database)
                .forget_one(&id.key, id.number);
        }
    }

    /// Removes a key if its value is still this one, which the cache has evicted.
    pub(crate) fn forget_one(&self, key: &Key, number: u64) {
        let database = self.database();
        self.databases.for_eviction().commit_anyway(|effects| {
            database.update(effects, key.clone(), &mut |current| match current
                .and_then(Value::cached)
            {
                Some(other) if other == number => Update::Remove,
                _ => Update::Keep,
            });
        });
    }
}

/// The end of a part of a value that begins at `start` and has this length.
///
/// # Errors
///
/// [`TooLong`] if the value would be longer than `limit`.
pub fn checked_end(start: usize, length: usize, limit: usize) -> Result<usize, TooLong> {
    start
        .checked_add(length)
        .filter(|end| *end <= limit)
        .ok_or(TooLong)
}
