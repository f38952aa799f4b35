//! Long values, which are copied in pieces.

use super::{Context, Failure, Next, Outcome, Step, Work, begin};
use crate::apart::{LONG, free};
use crate::resp::Arguments;
use crate::turn::Turn;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tremula_store::{Key, Value};

/// Bytes copied between two looks at the clock: less than a tenth of a millisecond.
const PIECE: usize = 128 << 10;

/// How often another client may change a value while this one copies it. Then the value is copied
/// under its lock.
const ATTEMPTS: u32 = 8;

/// A value that is written piece by piece.
#[derive(Default)]
pub(super) struct Copying(Vec<u8>);

impl Copying {
    /// Copies more of these bytes. Returns the value once it has all.
    ///
    /// # Errors
    ///
    /// The system has no memory for so long a value.
    pub(super) fn go_on(
        &mut self,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<Value>, Failure> {
        if bytes.len() < LONG {
            return Ok(Some(Value::from(bytes)));
        }
        if self.0.is_empty() {
            reserve(&mut self.0, bytes.len())?;
        }
        while self.0.len() < bytes.len() {
            let rest = &bytes[self.0.len()..];
            self.0.extend_from_slice(&rest[..rest.len().min(PIECE)]);
            if turn.spend_bytes(PIECE) && self.0.len() < bytes.len() {
                return Ok(None);
            }
        }
        Ok(Some(Value::from(std::mem::take(&mut self.0))))
    }
}

/// Takes memory for a long value. What the system refuses must not end the process.
fn reserve(bytes: &mut Vec<u8>, length: usize) -> Result<(), Failure> {
    bytes
        .try_reserve_exact(length)
        .map_err(|_| Failure::OUT_OF_MEMORY)
}

/// Runs `then` with the value in an argument, which is copied in pieces if it is long.
pub(super) fn with_value(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    argument: usize,
    then: fn(&mut Context<'_>, Arguments<'_>, Value) -> Result<(), Failure>,
) -> Outcome {
    let bytes = arguments.get(argument);
    if bytes.len() < LONG {
        then(context, arguments, Value::from(bytes))?;
        return Ok(Next::Reply);
    }
    let copying = Copying::default();
    let work = WithValue {
        argument,
        copying,
        then,
    };
    begin(context, arguments, work)
}

struct WithValue {
    argument: usize,
    copying: Copying,
    then: fn(&mut Context<'_>, Arguments<'_>, Value) -> Result<(), Failure>,
}

impl Work for WithValue {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        let bytes = arguments.get(self.argument);
        let Some(value) = self.copying.go_on(bytes, context.turn)? else {
            return Ok(Step::Rest);
        };
        (self.then)(context, arguments, value)?;
        Ok(Step::Done)
    }
}

/// Writes an argument into a long value: `APPEND` and `SETRANGE`.
///
/// Values are immutable, so this copies the value, without a lock and in pieces, and then puts the
/// copy in its place. If another client has changed the value meanwhile, it begins again; another
/// such command for the same key waits, because it would copy in vain.
pub(super) struct Patching {
    /// The value before, if there is one.
    pub(super) old: Option<Value>,
    /// Where the argument goes.
    pub(super) offset: usize,
    /// The argument with the bytes.
    pub(super) argument: usize,
    pub(super) new: Vec<u8>,
    /// How often the value has changed meanwhile.
    pub(super) attempts: u32,
    /// Begins again, with a value that was there just now.
    pub(super) again: fn(&mut Context<'_>, Arguments<'_>, u32) -> Result<Patched, Failure>,
    pub(super) claim: Claim,
}

/// A key of a database.
type Place = (usize, Box<[u8]>);

/// The long values that commands write into in pieces.
#[derive(Default)]
pub(crate) struct Patches(Mutex<HashSet<Place>>);

/// How far a command has come to a long value.
#[derive(Default)]
pub(super) enum Claim {
    /// It has not tried yet.
    #[default]
    None,
    /// Another is there.
    Waits,
    /// It is the only one, until this is dropped.
    Own(#[expect(dead_code, reason = "only its drop matters")] Claimed),
}

/// The place of the only command that writes into a long value.
pub(super) struct Claimed {
    patches: Arc<Patches>,
    place: Place,
}

impl Patches {
    fn claim(self: &Arc<Self>, database: usize, key: &[u8]) -> Option<Claimed> {
        let place = (database, Box::from(key));
        let is_free = self.places().insert(place.clone());
        is_free.then(|| Claimed {
            patches: Arc::clone(self),
            place,
        })
    }

    /// A panic leaves the set whole.
    fn places(&self) -> MutexGuard<'_, HashSet<Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.patches.places().remove(&self.place);
    }
}

/// What came of writing into a value.
pub(super) enum Patched {
    /// It has this length now.
    To(usize),
    /// It is long, and this goes on.
    Goes(Patching),
}

/// The length up to which a value is copied under its lock.
pub(super) const fn at_once(attempts: u32) -> usize {
    if attempts < ATTEMPTS {
        LONG
    } else {
        usize::MAX
    }
}

/// Answers with the new length.
pub(super) fn answer(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    patched: Patched,
) -> Outcome {
    match patched {
        Patched::To(length) => {
            context.reply.count(length);
            Ok(Next::Reply)
        }
        Patched::Goes(patching) => begin(context, arguments, patching),
    }
}

impl Patching {
    /// Begins again, with the same place, unless it is done. Returns the length if it is.
    fn goes_on(&mut self, patched: Patched) -> Option<usize> {
        match patched {
            Patched::To(length) => Some(length),
            Patched::Goes(again) => {
                let claim = std::mem::take(&mut self.claim);
                *self = Self { claim, ..again };
                None
            }
        }
    }

    /// Copies the next piece. Returns whether that was the last.
    fn copy(&mut self, patch: &[u8]) -> Result<bool, Failure> {
        let old: &[u8] = self.old.as_deref().unwrap_or_default();
        let end = self.offset + patch.len();
        let length = end.max(old.len());
        if self.new.is_empty() {
            reserve(&mut self.new, length)?;
        }
        let at = self.new.len();
        if at < self.offset.min(old.len()) {
            let stop = self.offset.min(old.len()).min(at + PIECE);
            self.new.extend_from_slice(&old[at..stop]);
        } else if at < self.offset {
            self.new.resize(self.offset.min(at + PIECE), 0);
        } else if at < end {
            let stop = end.min(at + PIECE);
            self.new
                .extend_from_slice(&patch[at - self.offset..stop - self.offset]);
        } else {
            let stop = length.min(at + PIECE);
            self.new.extend_from_slice(&old[at..stop]);
        }
        Ok(self.new.len() == length)
    }
}

impl Work for Patching {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        // A step holds the key, so nobody else writes into it: a command that has the place waits
        // for the step.
        if !context.databases.are_held() && !matches!(self.claim, Claim::Own(_)) {
            let patches = &context.server.patches;
            let Some(own) = patches.claim(context.session.database, arguments.get(1)) else {
                self.claim = Claim::Waits;
                self.old = None;
                context.turn.end();
                return Ok(Step::Rest);
            };
            if let Claim::Waits = std::mem::replace(&mut self.claim, Claim::Own(own)) {
                let patched = (self.again)(context, arguments, self.attempts)?;
                if let Some(length) = self.goes_on(patched) {
                    context.reply.count(length);
                    return Ok(Step::Done);
                }
            }
        }
        loop {
            while !self.copy(arguments.get(self.argument))? {
                if context.turn.spend_bytes(PIECE) {
                    return Ok(Step::Rest);
                }
            }
            let length = self.new.len();
            let new = Value::from(std::mem::take(&mut self.new));
            let key = Key::from(arguments.get(1));
            let (values, old) = (context.values(), self.old.as_ref());
            let replaced = context.commit(|effects| values.replace(effects, key, old, new))?;
            if let Some(old) = self.old.take() {
                free(old.len(), old);
            }
            let patched = match replaced {
                Ok(()) => Patched::To(length),
                Err(new) => {
                    free(new.len(), new);
                    (self.again)(context, arguments, self.attempts + 1)?
                }
            };
            if let Some(length) = self.goes_on(patched) {
                context.reply.count(length);
                return Ok(Step::Done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_at_a_time_writes_into_a_long_value() {
        let patches = Arc::new(Patches::default());
        let first = patches.claim(0, b"long").unwrap();
        assert!(patches.claim(0, b"long").is_none());
        assert!(patches.claim(1, b"long").is_some(), "another database");
        assert!(patches.claim(0, b"other").is_some());
        drop(first);
        assert!(patches.claim(0, b"long").is_some());
        assert!(patches.places().is_empty());
    }
}
