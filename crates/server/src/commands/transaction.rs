//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`: commands that are taken one by one, and run as
//! one atomic step, or not at all if a watched key has changed.

use super::atomic::{self, Batch};
use super::table::Command;
use super::{Context, Failure, Lent, Next, Outcome, Session, refuse};
use crate::memory::Room;
use crate::resp::{Arguments, KeptRequests};
use std::collections::BTreeMap;
use tremula_store::{Databases, Hold, Key, Version};

/// What a connection has taken since `MULTI`.
#[derive(Default)]
pub(crate) struct Transaction {
    batch: Batch,
    /// Whether a command was refused, so that none will run.
    is_spoiled: bool,
}

/// The keys that a client watches.
#[derive(Default)]
pub(crate) struct Watched {
    /// By database; and what each was, `None` if there was no such key.
    keys: BTreeMap<(usize, Key), Option<Version>>,
    /// The bytes of the keys.
    bytes: usize,
}

impl Watched {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The bytes that are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.len() * size_of::<((usize, Key), Option<Version>)>() + self.bytes
    }

    /// Whether all are as they were.
    fn are_unchanged(&self, databases: Databases<'_>) -> bool {
        let mut keys = self.keys.iter();
        keys.all(|((database, key), before)| version(databases, *database, key) == *before)
    }
}

impl Transaction {
    /// How many commands wait.
    pub(crate) fn len(&self) -> usize {
        self.batch.len()
    }

    /// The bytes that are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.batch.capacity()
    }
}

/// The version of the value under a key.
fn version(databases: Databases<'_>, database: usize, key: &Key) -> Option<Version> {
    let mut version = None;
    let database = databases.database(database);
    database.get_with(key, &mut |value| version = Some(value.version()));
    version
}

impl Session {
    /// Whether a command waits for `EXEC`, if it is this one.
    #[inline]
    pub(super) fn takes(&self, command: Option<&Command>) -> bool {
        const AT_ONCE: [&str; 6] = ["multi", "exec", "discard", "watch", "quit", "reset"];
        self.transaction.is_some()
            && command.is_none_or(|command| !AT_ONCE.contains(&command.full_name))
    }

    /// What `EXEC` would need, if it stores anything: the bytes of its commands.
    pub(super) fn need_of(&self, command: &Command) -> Option<usize> {
        if command.full_name == "exec" {
            self.transaction.as_ref()?.batch.need()
        } else {
            None
        }
    }

    /// Whether a command changes something.
    pub(super) fn writes(&self, command: &Command) -> bool {
        let waiting = self.transaction.as_ref();
        command.flags.contains(&"write")
            || command.full_name == "exec" && waiting.is_some_and(|waiting| waiting.batch.writes())
    }

    /// Ends a transaction and forgets what was watched.
    pub(super) fn end_transaction(&mut self) -> Option<Transaction> {
        self.watched = Watched::default();
        self.transaction.take()
    }
}

/// Why a command is refused. If it is `EXEC`, the transaction ends.
#[cold]
pub(super) fn refused(
    session: &mut Session,
    arguments: Arguments<'_>,
    failure: Failure,
) -> Failure {
    if !arguments.get(0).eq_ignore_ascii_case(b"exec") {
        return failure;
    }
    session.end_transaction();
    let text = failure.text();
    let why = text.strip_prefix(b"ERR ").unwrap_or(&text);
    let begin = &b"EXECABORT Transaction discarded because of: "[..];
    Failure::Owned([begin, why].concat())
}

/// Takes a command that waits for `EXEC`.
pub(super) fn take(
    lent: &mut Lent<'_>,
    arguments: Arguments<'_>,
    found: Result<&'static Command, Failure>,
) -> Next {
    let fits = match found {
        Ok(command) => match admit(lent, command, arguments) {
            Ok(Room::NotYet) => return Next::Again,
            Ok(Room::Short) => Err(Failure::OUT_OF_MEMORY),
            Ok(Room::Enough(_)) => Ok(command),
            Err(failure) => Err(failure),
        },
        Err(failure) => Err(failure),
    };
    lent.reply.next_command();
    let command = match fits {
        Ok(command) => command,
        Err(failure) => {
            if let Some(transaction) = &mut lent.session.transaction {
                transaction.is_spoiled = true;
            }
            return refuse(lent, arguments, failure);
        }
    };
    if let Some(transaction) = &mut lent.session.transaction
        && !transaction.is_spoiled
    {
        transaction.batch.push(command, arguments.skip(0));
    }
    lent.session.last_command = command.full_name;
    lent.reply.simple("QUEUED");
    lent.reply.finish();
    lent.turn.spend(1);
    lent.stopwatch.skip(lent.stripe);
    Next::Reply
}

/// Whether a command may wait.
fn admit(
    lent: &mut Lent<'_>,
    command: &'static Command,
    arguments: Arguments<'_>,
) -> Result<Room, Failure> {
    atomic::check(command)?;
    let waiting = lent.session.transaction.as_ref();
    let (count, bytes) = waiting.map_or((0, 0), |waiting| (waiting.len(), waiting.bytes()));
    let most = lent.server.limits.transactions.max_queued;
    if count >= most {
        let text = format!("ERR a transaction has at most {most} commands (--max-queued)");
        return Err(Failure::Owned(text.into_bytes()));
    }
    let most = lent.server.live.max_query_buffer.bytes();
    let size = KeptRequests::size_of(arguments);
    if bytes.saturating_add(size) > most {
        let text = format!(
            "ERR the commands of a transaction take at most {most} bytes (--max-query-buffer)"
        );
        return Err(Failure::Owned(text.into_bytes()));
    }
    let session = &mut *lent.session;
    let held = (session.database, &mut session.promise);
    let memory = &lent.server.memory;
    // What waits takes memory, too.
    let waiting = (!command.needs_memory()).then_some(size);
    Ok(memory.admit(lent.server, held, lent.turn, command, arguments, waiting))
}

pub(super) fn multi(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    if context.session.transaction.is_some() {
        return Err(Failure::Text("ERR MULTI calls can not be nested"));
    }
    context.session.transaction = Some(Transaction::default());
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn exec(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let Some(waiting) = &context.session.transaction else {
        return Err(Failure::Text("ERR EXEC without MULTI"));
    };
    if !waiting.is_spoiled && waiting.batch.is_long() && !context.is_apart {
        return Ok(Next::Apart);
    }
    let watched = std::mem::take(&mut context.session.watched);
    let Some(waiting) = context.session.transaction.take() else {
        return Err(Failure::STOPPING);
    };
    if waiting.is_spoiled {
        return Err(Failure::Text(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    let keys = watched.keys.iter();
    let mut holds: Vec<Hold> = keys
        .map(|((database, key), _)| Hold::key(*database, key.clone()))
        .collect();
    let changes = waiting.batch.reach(context.session.database, &mut holds);
    let decide =
        |databases: Databases<'_>| watched.are_unchanged(databases).then_some(&waiting.batch);
    atomic::run(context, (&holds, changes), decide, |_, _| ())
}

pub(super) fn discard(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    if context.session.end_transaction().is_none() {
        return Err(Failure::Text("ERR DISCARD without MULTI"));
    }
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn watch(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if context.session.transaction.is_some() {
        return Err(Failure::Text("ERR WATCH inside MULTI is not allowed"));
    }
    let number = context.session.database;
    for name in arguments.skip(1) {
        let place = (number, Key::from(name));
        let watched = &mut context.session.watched;
        if watched.keys.contains_key(&place) {
            continue;
        }
        let most = context.server.limits.transactions.max_watched_keys;
        if watched.len() >= most {
            let text = format!("ERR a client watches at most {most} keys (--max-watched-keys)");
            return Err(Failure::Owned(text.into_bytes()));
        }
        let version = version(context.databases, number, &place.1);
        watched.bytes += name.len();
        watched.keys.insert(place, version);
    }
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn unwatch(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.session.watched = Watched::default();
    context.reply.ok();
    Ok(Next::Reply)
}
