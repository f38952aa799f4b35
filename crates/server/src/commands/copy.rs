//! `COPY`.

use super::copying::Copying;
use super::strings::drop_from;
use super::{Context, Failure, Next, Outcome, Step, Work, begin};
use crate::memory::note_access;
use crate::resp::{Arguments, number};
use bytes::Bytes;
use tremula_store::{DATABASES, Expiry, Key, Lifetime, Text, Update, Value};

/// `COPY source destination [DB index] [REPLACE]`.
///
/// Reads the source at one moment and stores at a later one; other clients may change the source
/// between the two. The copy expires when the source does. A value in the index is shared by both
/// keys, and not copied.
pub(super) fn copy(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let target = Target::read(context.session.database, arguments)?;
    let (source, destination) = (arguments.get(1), arguments.get(2));
    if source == destination && target.database == context.session.database {
        return Err(Failure::SAME_KEY);
    }
    note_access(context.server, context.session.database, source);
    let source = Key::from(source);
    let value = context.database().get(&source);
    let expiry = value.as_ref().and_then(Value::expiry);
    let text = value.and_then(|value| context.values().text(&source, &value));
    context.note_lookup(text.is_some());
    match text {
        None => {
            context.reply.integer(0);
            Ok(Next::Reply)
        }
        Some(Text::Plain(value)) => {
            target.store(context, arguments, value)?;
            Ok(Next::Reply)
        }
        Some(Text::Cached(bytes)) => {
            let copying = Copying::default();
            let work = CopyingCached {
                target,
                bytes,
                expiry,
                copying,
            };
            begin(context, arguments, work)
        }
    }
}

/// Where a copy goes.
#[derive(Clone, Copy)]
struct Target {
    database: usize,
    /// Whether it may take the place of another value.
    replaces: bool,
}

impl Target {
    fn read(own: usize, arguments: Arguments<'_>) -> Result<Self, Failure> {
        let mut target = Self {
            database: own,
            replaces: false,
        };
        let mut options = arguments.skip(3);
        while let Some(option) = options.next() {
            if option.eq_ignore_ascii_case(b"replace") {
                target.replaces = true;
            } else if option.eq_ignore_ascii_case(b"db")
                && let Some(index) = options.next()
            {
                target.database = database(index)?;
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(target)
    }

    /// Stores the value under the second argument, and answers with whether it did.
    fn store(
        self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
        value: Value,
    ) -> Result<(), Failure> {
        note_access(context.server, self.database, arguments.get(2));
        let key = Key::from(arguments.get(2));
        let mut stored = true;
        let store = &context.server.store;
        if self.replaces {
            let database = store.database(self.database);
            let old = context.commit(|effects| database.insert(effects, key, value))?;
            drop_from(context.server, self.database, old);
        } else {
            let lifetime = Lifetime::New(value.expiry());
            let mut value = Some(value);
            let values = store.values(self.database);
            let mut decide = |current: Option<&[u8]>| {
                stored = current.is_none();
                match value.take_if(|_| stored) {
                    Some(value) => Update::Put(value),
                    None => Update::Keep,
                }
            };
            context.commit(|effects| values.update(effects, key, lifetime, &mut decide))?;
        }
        context.reply.integer(stored.into());
        Ok(())
    }
}

/// The number of a database.
pub(super) fn database(index: &[u8]) -> Result<usize, Failure> {
    let index = number::parse(index).ok_or(Failure::NOT_AN_INTEGER)?;
    let index = i32::try_from(index).map_err(|_| Failure::BEYOND_INT)?;
    let index = usize::try_from(index).ok();
    index
        .filter(|index| *index < DATABASES)
        .ok_or(Failure::DATABASE)
}

/// Copies a value out of the cache, in pieces if it is long.
struct CopyingCached {
    target: Target,
    bytes: Bytes,
    expiry: Option<Expiry>,
    copying: Copying,
}

impl Work for CopyingCached {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        let Some(value) = self.copying.go_on(&self.bytes, context.turn)? else {
            return Ok(Step::Rest);
        };
        let value = value.expiring(self.expiry);
        self.target.store(context, arguments, value)?;
        Ok(Step::Done)
    }
}
