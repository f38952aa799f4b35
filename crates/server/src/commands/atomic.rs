//! Several commands as one atomic step: what `EXEC` and `TXN` run.
//!
//! The step holds the keys and ranges that the commands name, in all databases, and then runs the
//! commands as they are, on the databases that it [holds](tremula_store::Store::hold). Others see
//! all of it or nothing; only threads that touch the same parts of an index wait.

use super::ordered::held_bounds;
use super::table::Command;
use super::{Context, Failure, Next, Outcome, Step, Unfinished, acl, check_user, copy};
use crate::apart::{LONG, MANY};
use crate::resp::{Arguments, KeptRequests, Reply, spelt, too_long};
use std::time::Instant;
use tremula_store::{
    Begun, CannotHold, DATABASES, Databases, Hold, Key, KeyRange, MOST_ANSWER_BYTES,
};

/// Commands that run together.
#[derive(Default)]
pub(super) struct Batch {
    requests: KeptRequests,
    commands: Vec<&'static Command>,
}

impl Batch {
    pub(super) fn push<'a>(
        &mut self,
        command: &'static Command,
        request: impl IntoIterator<Item = &'a [u8]>,
    ) {
        self.requests.push(request);
        self.commands.push(command);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    /// The bytes that are allocated.
    pub(super) fn capacity(&self) -> usize {
        self.requests.capacity() + self.commands.capacity() * size_of::<&Command>()
    }

    fn each(&self) -> impl Iterator<Item = (&'static Command, Arguments<'_>)> {
        let commands = self.commands.iter().enumerate();
        commands.map(|(at, command)| (*command, self.requests.get(at)))
    }

    /// Whether any of them may need memory, and the bytes that they came with.
    pub(super) fn need(&self) -> Option<usize> {
        let needs = self.commands.iter().any(|command| command.needs_memory());
        needs.then(|| self.requests.bytes())
    }

    /// Whether any of them changes something.
    pub(super) fn writes(&self) -> bool {
        let mut commands = self.commands.iter();
        commands.any(|command| command.flags.contains(&"write"))
    }

    /// Whether they may take so long together that they run on the thread apart.
    pub(super) fn is_long(&self) -> bool {
        let is_short = |command: &&&Command| command.is_short() && !command.reach.goes_far();
        self.len() >= MANY
            || self.requests.bytes() >= LONG
            || self.commands.iter().filter(is_short).count() < self.len()
    }

    /// What they touch, if `database` is selected before the first one, and how much they change at
    /// most.
    pub(super) fn reach(&self, mut database: usize, holds: &mut Vec<Hold>) -> usize {
        let mut changes = 0;
        for (command, arguments) in self.each() {
            let before = holds.len();
            reach_of(command, arguments, &mut database, holds);
            if command.flags.contains(&"write") {
                // A value may go from the cache into the index first.
                changes += 2 * (holds.len() - before);
            }
        }
        changes
    }
}

/// What a command touches. It may select another database for those behind it.
fn reach_of(
    command: &Command,
    arguments: Arguments<'_>,
    database: &mut usize,
    holds: &mut Vec<Hold>,
) {
    let own = *database;
    // What the command refuses, it does not touch.
    match command.full_name {
        "select" => *database = copy::database(arguments.get(1)).unwrap_or(own),
        "flushall" => holds.extend((0..DATABASES).map(Hold::database)),
        "move" | "copy" => {
            let target = copy::target(command, arguments, own).unwrap_or(own);
            let at = if command.full_name == "move" { 1 } else { 2 };
            holds.push(Hold::key(own, Key::from(arguments.get(1))));
            holds.push(Hold::key(target, Key::from(arguments.get(at))));
        }
        "range" | "rangecount" | "delrange" => {
            let bounds = held_bounds(arguments);
            holds.extend(bounds.map(|(low, high)| Hold {
                database: own,
                low,
                high,
            }));
        }
        _ if command.reach.goes_far() => holds.push(Hold::database(own)),
        _ => {
            let keys = command.keys().iter().flat_map(|keys| keys.of(arguments));
            holds.extend(keys.map(|key| Hold::key(own, Key::from(key))));
        }
    }
}

/// Whether a command can run with others as one step.
///
/// # Errors
///
/// It cannot; the error says why.
pub(super) fn check(command: &Command) -> Result<(), Failure> {
    let Some(why) = why_alone(command) else {
        return Ok(());
    };
    let name = command.full_name;
    let text = format!("ERR Command not allowed inside a transaction: '{name}', because {why}");
    Err(Failure::Owned(text.into_bytes()))
}

/// Why a command cannot run with others as one step, if so.
pub(super) fn why_alone(command: &Command) -> Option<&'static str> {
    let why = match (command.group, command.full_name) {
        ("string" | "ordered" | "generic", "shape" | "wait" | "waitaof") => "it waits for others",
        ("ordered", "watchrange" | "unwatchrange" | "watches") => "it is about the connection",
        ("ordered", "expirerange" | "copyrange" | "moverange") | ("server", "swapdb") => {
            "it is a step of its own"
        }
        ("string" | "ordered" | "generic", _)
        | ("connection", "ping" | "echo" | "select")
        | ("pubsub", "publish" | "spublish")
        | ("server", "dbsize" | "flushdb" | "flushall" | "time" | "lastsave") => return None,
        ("ets", _) => "rows of tables are not held together with keys",
        ("mailbox", _) => "messages are not held together with keys",
        _ => "it is about more than keys",
    };
    Some(why)
}

/// Holds keys and ranges, and runs `decide`, which returns the commands that run then. Writes what
/// `begin` writes, and their replies as an array; a null array if none are to run.
pub(super) fn run<'b>(
    context: &mut Context<'_>,
    (holds, changes): (&[Hold], usize),
    decide: impl FnOnce(Databases<'_>) -> Option<&'b Batch>,
    begin: impl FnOnce(&mut Context<'_>, &'b Batch),
) -> Outcome {
    let server = context.server;
    let ran = server.store.hold(holds, changes, |databases| {
        let Some(batch) = decide(databases) else {
            context.reply.null_array();
            return;
        };
        begin(context, batch);
        context.reply.array(batch.len());
        run_all(context, databases, batch);
    });
    match ran {
        Ok(()) => Ok(Next::Reply),
        Err(why) => Err(cannot_hold(why)),
    }
}

/// Runs the commands of a step, and writes their replies one behind the other.
fn run_all(context: &mut Context<'_>, databases: Databases<'_>, batch: &Batch) {
    context.reply.hold(true);
    // One look at the clock ends a command and begins the next.
    let mut begun = Instant::now();
    for (command, arguments) in batch.each() {
        begun = run_one(context, databases, command, arguments, begun);
    }
    context.reply.hold(false);
    context.reply.begin();
}

/// As [`run`], for a command with an id: what the client gets is remembered as a part of the step,
/// in RESP2. `begin` writes what comes before the replies of the commands.
pub(super) fn run_once<'b>(
    context: &mut Context<'_>,
    id: &Begun<'_>,
    (holds, changes): (&[Hold], usize),
    decide: impl FnOnce(Databases<'_>) -> &'b Batch,
    begin: impl FnOnce(&mut Reply, &'b Batch),
) -> Outcome {
    let server = context.server;
    let mut reply = Reply::new(context.reply.limit());
    context.session.has_written = true;
    let ran = server.store.hold(holds, changes, |databases| {
        databases.will_answer();
        let batch = decide(databases);
        reply.begin();
        begin(&mut reply, batch);
        let mut inner = Context {
            server,
            client: context.client,
            session: context.session,
            reply: &mut reply,
            turn: context.turn,
            is_apart: true,
            command: context.command,
            stripe: context.stripe,
            databases: context.databases,
        };
        run_all(&mut inner, databases, batch);
        let answer = reply.take_all();
        if answer.len() > MOST_ANSWER_BYTES {
            let text = format!(
                "-ERR the command with this id was carried out; its reply of {} bytes is not kept\r\n",
                answer.len()
            );
            databases.answer(id, text.as_bytes());
        } else {
            databases.answer(id, &answer);
        }
        answer
    });
    let answer = ran.map_err(cannot_hold)?;
    let spelt = spelt(&answer, context.reply.protocol);
    context.reply.encoded(&spelt);
    Ok(Next::Reply)
}

/// Nothing was held.
pub(super) fn cannot_hold(why: CannotHold) -> Failure {
    match why {
        CannotHold::Unlogged(unlogged) => unlogged.into(),
        other => Failure::Owned(
            format!("EXECABORT Transaction discarded because of: {other}").into_bytes(),
        ),
    }
}

/// Runs one command of a step, which begins now, and writes its reply. Returns when it was over.
fn run_one(
    context: &mut Context<'_>,
    databases: Databases<'_>,
    command: &'static Command,
    arguments: Arguments<'_>,
    begun: Instant,
) -> Instant {
    let (server, stripe) = (context.server, context.stripe);
    context.reply.begin();
    let failed = match try_one(context, databases, command, arguments) {
        Ok(()) => false,
        Err(failure) => {
            if let Failure::Denied(reason, object) = &failure {
                acl::note(server, context.client, command.full_name, *reason, object);
            }
            let text = failure.text();
            stripe.error(&text);
            context.reply.fail(&text);
            true
        }
    };
    context.reply.finish();
    let keeps_times = server.live.tracks_latency();
    let ends = Instant::now();
    let took = ends.duration_since(begun);
    stripe.ran(command, took, 1, failed.into(), keeps_times);
    ends
}

fn try_one(
    context: &mut Context<'_>,
    databases: Databases<'_>,
    command: &'static Command,
    arguments: Arguments<'_>,
) -> Result<(), Failure> {
    if context.reply.is_full() {
        let text = too_long(context.reply.limit());
        return Err(Failure::Owned(text.into_bytes()));
    }
    // The user's rights may have changed since it was taken.
    if !context
        .session
        .identity
        .may_do_everything(&context.server.users)
    {
        check_user(context.session, command, arguments)?;
    }
    context.server.denied.check(command)?;
    let most = context.server.limits.transactions.max_atomic;
    let database = databases.database(context.session.database);
    if command.visits_all() && database.has_more_than(KeyRange::all(), most) {
        return Err(too_many(most));
    }
    let monitors = &context.server.monitors;
    if monitors.count() > 0 {
        let (client, database) = (context.client, context.session.database);
        monitors.show(
            context.server,
            client,
            database,
            command.full_name,
            arguments,
        );
    }
    let mut inner = Context {
        server: context.server,
        client: context.client,
        session: context.session,
        reply: context.reply,
        turn: context.turn,
        // Everything is done here and now.
        is_apart: true,
        command,
        stripe: context.stripe,
        databases: databases.caused_by(command.full_name),
    };
    match (command.run)(&mut inner, arguments)? {
        Next::Reply => Ok(()),
        Next::Work(unfinished) => finish(&mut inner, unfinished, arguments),
        _ => Err(Failure::Text("ERR a command of a transaction cannot wait")),
    }
}

/// Goes on with a command to its end.
fn finish(
    context: &mut Context<'_>,
    mut unfinished: Unfinished,
    arguments: Arguments<'_>,
) -> Result<(), Failure> {
    loop {
        if unfinished.apart.is_some() {
            return Err(Failure::Text("ERR a command of a transaction cannot wait"));
        }
        match unfinished.work.step(context, arguments)? {
            Step::Done => return Ok(()),
            Step::Rest | Step::Long => (),
            Step::Apart(job) => unfinished.apart = Some(job),
        }
    }
}

/// A command of a step would go through more keys than it may.
pub(super) fn too_many(most: usize) -> Failure {
    let text = format!(
        "ERR the command goes through more than {most} keys, the limit within a transaction \
         (--max-atomic)"
    );
    Failure::Owned(text.into_bytes())
}
