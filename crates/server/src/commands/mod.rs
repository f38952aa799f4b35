//! The commands. One table serves dispatch, the check of arities, `COMMAND` and documentation.

mod acl;
mod atomic;
mod channels;
mod client;
mod config;
mod connection;
mod copy;
mod copying;
mod counters;
mod debug;
mod denied;
mod describe;
mod dump;
mod ets;
mod expiry;
mod failure;
mod feeds;
mod info;
mod keys;
mod latency;
mod lcs;
mod listing;
mod lolwut;
mod mailbox;
mod memory;
mod object;
mod once;
mod operate;
mod ordered;
mod past;
mod persist;
mod ranges;
mod reach;
mod rows;
mod scan;
mod sentinel;
mod shape;
mod slowlog;
mod strings;
mod table;
mod transaction;
mod txn;
mod view;
mod work;

use crate::apart::MANY;
use crate::channels::Subscriptions;
use crate::clients::Client;
use crate::feeds::Watches;
use crate::figures::{Stopwatch, Stripe};
use crate::group::{Group, MOST_FORWARDED, forwarded};
use crate::memory::{Promise, Room};
use crate::notices;
use crate::outbox::{Outbox, Own};
use crate::persist::Durability;
use crate::resp::{Arguments, Reply};
use crate::server::Shared;
use crate::turn::{BYTES_PER_UNIT, Turn};
use crate::users::{Identity, Users};
use crate::watch::Watching;
pub(crate) use connection::REDIS_VERSION;
pub(crate) use copying::Patches;
pub(crate) use denied::{Denied, full_name};
pub(crate) use failure::Failure;
pub(crate) use listing::Gathering;
pub(crate) use mailbox::{Receive, Senders};
pub(crate) use ordered::interval_of;
pub(crate) use persist::Awaited;
pub(crate) use reach::{ChannelReach, KeyReach};
use std::sync::Arc;
use std::time::Duration;
pub(crate) use table::{CATEGORIES, COUNT, Command, all, lookup_full, numbered};
pub(crate) use transaction::{Transaction, Watched};
use tremula_store::{Database, Databases, Effects, Values};
use view::View;
pub(crate) use work::{Step, Unfinished, Work};
use work::{apart, begin};

pub(crate) use acl::{reload, take_user};
pub use describe::command_table;

/// Watched ranges from which it takes long to end them: each waits for the lock of the tail.
const MANY_WATCHES: usize = 64;

/// The state of a connection between commands. The encoder holds the version of the protocol, and
/// the list of clients the name.
pub(crate) struct Session {
    /// Whose the connection is.
    pub(crate) identity: Identity,
    /// The number of the selected database.
    pub(crate) database: usize,
    /// The senders into mailboxes that this connection has used.
    pub(crate) senders: Senders,
    /// Its state for the commands of tables.
    pub(crate) ets: ets::Session,
    /// What the next command has promised to take, while keys are evicted for it.
    pub(crate) promise: Option<Promise>,
    /// The last command that ran, for `CLIENT LIST`.
    pub(crate) last_command: &'static str,
    /// What waits for the connection without its asking, if it is a monitor or a subscriber.
    pub(crate) outbox: Option<Own>,
    /// What the connection sees of all commands, if it is a monitor.
    pub(crate) watching: Option<Watching>,
    /// What it listens to, if it does.
    pub(crate) subscriptions: Option<Subscriptions>,
    /// The commands that wait for `EXEC`, since `MULTI`.
    pub(crate) transaction: Option<Transaction>,
    /// The keys that it watches.
    pub(crate) watched: Watched,
    /// The ranges that it watches, if it does.
    pub(crate) watches: Option<Watches>,
    /// Whether something has been committed that is not on its way into the log.
    pub(crate) has_written: bool,
    /// When its writes are on the disk, if it has chosen.
    pub(crate) durability: Option<Durability>,
    /// Whether its replies may show keys, in a group of nodes.
    pub(crate) shows_keys: bool,
    /// The node's own identity, if the client is another node of the group that writes for a user.
    /// Then `identity` is that user's.
    pub(crate) node: Option<Identity>,
}

impl Session {
    /// The session of a new connection.
    pub(crate) fn new(users: &Users) -> Self {
        Self {
            identity: Identity::new(users),
            database: 0,
            senders: Senders::default(),
            ets: ets::Session::default(),
            promise: None,
            last_command: "",
            outbox: None,
            watching: None,
            subscriptions: None,
            transaction: None,
            watched: Watched::default(),
            watches: None,
            has_written: false,
            durability: None,
            shows_keys: false,
            node: None,
        }
    }
}

/// Everything that a command works on, except its arguments.
pub(crate) struct Context<'a> {
    pub(crate) server: &'a Shared,
    pub(crate) client: &'a Client,
    pub(crate) session: &'a mut Session,
    pub(crate) reply: &'a mut Reply,
    /// The turn of this connection.
    pub(crate) turn: &'a mut Turn,
    /// Whether this is the thread apart, where a step may take long.
    pub(crate) is_apart: bool,
    /// The running command, by its full name.
    pub(crate) command: &'static Command,
    /// What this thread counts.
    pub(crate) stripe: &'a Stripe,
    /// The databases, free or held for a transaction.
    pub(crate) databases: Databases<'a>,
}

impl Session {
    /// Whether it may take long to drop this.
    pub(crate) fn holds_much(&self) -> bool {
        let subscriptions = self.subscriptions.as_ref();
        let watches = self.watches.as_ref();
        self.ets.is_owner()
            || watches.is_some_and(|watches| watches.count() >= MANY_WATCHES)
            || self.senders.count() >= MANY
            || subscriptions.is_some_and(|subscriptions| subscriptions.total() >= MANY)
    }
}

impl<'a> Context<'a> {
    /// The values of the selected database.
    pub(crate) fn values(&self) -> Values<'a> {
        self.databases.values(self.session.database)
    }

    /// Notes that a key was looked up to be read.
    pub(super) fn note_lookup(&self, key: &[u8], is_there: bool) {
        self.count_lookup(is_there);
        if !is_there && self.server.live.notices().has_misses() {
            notices::missed(self.server, self.session.database, key);
        }
    }

    /// Counts a key that was looked up, and does not report it.
    pub(super) fn count_lookup(&self, is_there: bool) {
        let stripe = self.stripe;
        let count = if is_there {
            &stripe.hits
        } else {
            &stripe.misses
        };
        count.add(1);
    }

    /// The selected database.
    pub(crate) fn database(&self) -> Database<'a> {
        self.databases.database(self.session.database)
    }

    /// What waits for this connection without its asking, from now on.
    fn outbox(&mut self) -> Result<Arc<Outbox>, Failure> {
        if self.session.outbox.is_none() {
            let client = self.server.clients.get(self.client.id);
            let client = client.ok_or(Failure::STOPPING)?;
            self.session.outbox = Some(Own::new(&client));
        }
        let outbox = self.session.outbox.as_ref();
        outbox.map(Own::share).ok_or(Failure::STOPPING)
    }

    /// Runs `write` with what every write needs.
    #[inline]
    fn commit<R>(&mut self, write: impl FnOnce(&mut Effects<'_>) -> R) -> Result<R, Failure> {
        self.session.has_written = true;
        let written = self.databases.commit(write)?;
        // Messages about a subscriber's own command come before its reply, as in Redis.
        if self.session.subscriptions.is_some() && !self.databases.are_held() {
            channels::empty_outbox(self);
        }
        Ok(written)
    }
}

/// What the connection does after a command.
pub(crate) enum Next {
    /// Runs the next command. The replies are sent when no complete command is left, when they are
    /// long, or when the turn is over.
    Reply,
    /// Sends the replies so far, and then receives messages for this command.
    Receive(Receive),
    /// Sends the replies so far, and answers this command after a time.
    Wait(Waiting),
    /// Sends the replies so far, lets other connections run if the turn is over, and then goes on
    /// with this command.
    Work(Unfinished),
    /// Sends the replies so far, and runs the command after a pause.
    Paused,
    /// Sends the replies so far, and runs the command on the thread apart. It has not begun.
    Apart,
    /// Sends the replies so far, and runs the command in the next turn.
    Again,
    /// Waits, and then sends the replies: a user or password was wrong.
    Slow(Duration),
    /// Sends the replies so far, and answers this command when what was written is on the disk.
    Durable(Awaited),
    /// Sends the replies so far, and lets the leader of the group answer this request.
    Forward(Vec<u8>),
    /// Sends the replies and closes.
    Close,
}

/// A command that is answered after a time, which holds no thread.
pub(crate) struct Waiting {
    /// `None` is for ever.
    pub(crate) time: Option<Duration>,
    /// Whether `CLIENT UNBLOCK` may end it, and its time is not one that the command took.
    pub(crate) is_blocked: bool,
    pub(crate) answer: fn(&mut Reply),
}

/// The outcome of a command. What a failed command has written is removed.
type Outcome = Result<Next, Failure>;

/// What a connection lends to the commands that it runs.
pub(crate) struct Lent<'a> {
    pub(crate) server: &'a Shared,
    pub(crate) client: &'a Client,
    pub(crate) session: &'a mut Session,
    pub(crate) reply: &'a mut Reply,
    pub(crate) turn: &'a mut Turn,
    pub(crate) is_apart: bool,
    pub(crate) stripe: &'a Stripe,
    pub(crate) stopwatch: &'a mut Stopwatch,
}

impl Lent<'_> {
    fn context(&mut self, command: &'static Command) -> Context<'_> {
        Context {
            server: self.server,
            client: self.client,
            session: self.session,
            reply: self.reply,
            turn: self.turn,
            is_apart: self.is_apart,
            command,
            stripe: self.stripe,
            databases: self.server.store.free().caused_by(command.full_name),
        }
    }

    /// Notes what runs on the worker's thread, for the watchdog.
    fn enter(&self, command: &'static Command) {
        if !self.is_apart {
            self.client.enter(command);
        }
    }

    fn leave(&self) {
        if !self.is_apart {
            self.client.leave();
        }
    }
}

/// Runs one request and appends its reply.
pub(crate) fn execute(lent: &mut Lent<'_>, arguments: Arguments<'_>) -> Next {
    lent.reply.begin();
    let mut found = admitted(lent, arguments);
    // Not in a transaction, which is refused then.
    if let Err(Failure::Elsewhere(_)) = &found
        && lent.session.transaction.is_none()
    {
        match to_forward(arguments) {
            Ok(request) => {
                lent.reply.next_command();
                return Next::Forward(request);
            }
            Err(failure) => found = Err(failure),
        }
    }
    let pause = &lent.server.clients.pause;
    if lent.session.takes(found.as_ref().ok().copied()) {
        return transaction::take(lent, arguments, found);
    }
    let session = &*lent.session;
    let is_held = |command: &&'static Command| pause.holds(command, || session.writes(command));
    if found.as_ref().is_ok_and(is_held) {
        return Next::Paused;
    }
    if let Ok(command) = &found
        && !lent.is_apart
        && command.is_long(arguments)
    {
        lent.session.last_command = command.full_name;
        return Next::Apart;
    }
    let mut room = Room::Enough(None);
    if let Ok(command) = &found {
        let session = &mut *lent.session;
        let waiting = session.need_of(command);
        let held = (session.database, &mut session.promise);
        let memory = &lent.server.memory;
        room = memory.admit(lent.server, held, lent.turn, command, arguments, waiting);
    }
    if let Room::NotYet = room {
        return Next::Again;
    }
    let mute = lent.reply.mute;
    lent.reply.next_command();
    let Room::Enough(promise) = room else {
        let failure = transaction::refused(lent.session, arguments, Failure::OUT_OF_MEMORY);
        return refuse(lent, arguments, failure);
    };
    let command = match found {
        Ok(command) => command,
        Err(failure) => {
            let failure = transaction::refused(lent.session, arguments, failure);
            return refuse(lent, arguments, failure);
        }
    };
    let name = command.full_name;
    lent.session.last_command = name;
    let is_short = command.is_short();
    let is_small = is_short && arguments.size() < BYTES_PER_UNIT;
    lent.stopwatch.before(lent.stripe, command, is_small);
    if lent.stripe.sampler.counts() {
        sample(lent, command, arguments);
    }
    lent.enter(command);
    let mut outcome = (command.run)(&mut lent.context(command), arguments);
    if let Ok(Next::Work(unfinished)) = &mut outcome {
        unfinished.promise = promise;
    }
    lent.leave();
    if is_short {
        lent.turn.spend(1);
    } else {
        lent.turn.look();
    }
    if let Ok(Next::Apart) = outcome {
        // It has no reply yet.
        lent.reply.mute = mute;
    }
    if !is_short && command.group == "server" {
        // `CONFIG SET` may have changed what is slow, also for itself.
        lent.stopwatch.apply(&lent.server.live);
    }
    time(lent, command, is_small, &outcome);
    if lent.server.monitors.count() > 0 {
        show(lent, command, arguments, &outcome);
    }
    end(lent, name, outcome)
}

/// Keeps the first key of a command as a sample.
#[cold]
fn sample(lent: &Lent<'_>, command: &'static Command, arguments: Arguments<'_>) {
    let places = command.keys().first().map(|keys| keys.places(arguments));
    if let Some(at) = places.and_then(|mut places| places.next()) {
        let is_write = command.flags.contains(&"write");
        let database = lent.session.database;
        lent.stripe
            .sampler
            .keep(database, arguments.get(at), is_write);
    } else {
        lent.stripe.sampler.skip();
    }
}

/// A request as the leader of the group gets it.
#[cold]
fn to_forward(arguments: Arguments<'_>) -> Result<Vec<u8>, Failure> {
    if arguments.size() > MOST_FORWARDED {
        let text = format!(
            "ERR a command of {} bytes is not sent on to the leader, at most {MOST_FORWARDED} are",
            arguments.size()
        );
        return Err(Failure::Owned(text.into_bytes()));
    }
    Ok(forwarded(arguments.skip(0)))
}

/// Counts a command that has run, or a step of it.
#[inline]
fn time(lent: &mut Lent<'_>, command: &'static Command, is_small: bool, outcome: &Outcome) {
    let (stripe, stopwatch) = (lent.stripe, &mut *lent.stopwatch);
    match outcome {
        Ok(Next::Apart) => stopwatch.skip(stripe),
        Ok(Next::Work(_)) => stopwatch.step(),
        Ok(Next::Wait(waiting)) => {
            if !waiting.is_blocked {
                stopwatch.wait(waiting.time.unwrap_or_default());
            }
            stopwatch.after(stripe, command, false, false);
        }
        outcome => stopwatch.after(stripe, command, is_small, outcome.is_err()),
    }
}

/// Shows a command to the monitors when it has begun. What administers the server is not shown, as
/// in Redis.
#[cold]
fn show(lent: &Lent<'_>, command: &'static Command, arguments: Arguments<'_>, outcome: &Outcome) {
    let begins_later = matches!(outcome, Ok(Next::Apart));
    if !begins_later && !command.flags.contains(&"admin") {
        let (server, database) = (lent.server, lent.session.database);
        let (client, name) = (lent.client, command.full_name);
        server
            .monitors
            .show(server, client, database, name, arguments);
    }
}

/// Answers a request that does not run.
#[cold]
fn refuse(lent: &mut Lent<'_>, arguments: Arguments<'_>, failure: Failure) -> Next {
    let command = named(arguments).ok();
    if let Some(command) = command {
        lent.stripe.rejected(command);
    }
    let next = end(
        lent,
        command.map_or("NULL", |command| command.full_name),
        Err(failure),
    );
    lent.stopwatch.skip(lent.stripe);
    next
}

/// Goes on with a command whose turn was over.
pub(crate) fn go_on(
    lent: &mut Lent<'_>,
    mut unfinished: Unfinished,
    arguments: Arguments<'_>,
) -> Next {
    let (server, command) = (lent.server, unfinished.command);
    let name = command.full_name;
    lent.stopwatch.go_on();
    if !lent.reply.is_stream() && !server.memory.lets_go_on(server, lent.turn, command) {
        let outcome = Err(Failure::OUT_OF_MEMORY);
        time(lent, command, false, &outcome);
        return end(lent, name, outcome);
    }
    lent.enter(command);
    let context = &mut lent.context(unfinished.command);
    let step = unfinished.work.step(context, arguments);
    lent.leave();
    lent.client.is_active();
    let outcome = match step {
        Ok(Step::Done) => Ok(Next::Reply),
        Ok(Step::Rest) => {
            unfinished.is_long = false;
            Ok(Next::Work(unfinished))
        }
        Ok(Step::Long) => {
            unfinished.is_long = true;
            Ok(Next::Work(unfinished))
        }
        Ok(Step::Apart(job)) => {
            unfinished.apart = Some(job);
            Ok(Next::Work(unfinished))
        }
        Err(failure) => Err(failure),
    };
    time(lent, command, false, &outcome);
    end(lent, name, outcome)
}

/// Ends a reply, unless the command goes on.
fn end(lent: &mut Lent<'_>, name: &'static str, outcome: Outcome) -> Next {
    if let Err(Failure::Denied(reason, object)) = &outcome {
        acl::note(lent.server, lent.client, name, *reason, object);
    }
    let (reply, stripe) = (&mut *lent.reply, lent.stripe);
    let next = match outcome {
        Ok(
            next @ (Next::Work(_)
            | Next::Receive(_)
            | Next::Wait(_)
            | Next::Durable(_)
            | Next::Apart),
        ) => return next,
        Ok(next) => next,
        Err(Failure::WrongPassword(wait)) => {
            let text = Failure::WRONG_PASSWORD.text();
            stripe.error(&text);
            reply.fail(&text);
            Next::Slow(wait)
        }
        Err(Failure::Attack) => {
            tracing::warn!(
                "closed a connection on which HTTP was spoken; a web page may be attacking this server"
            );
            Next::Close
        }
        Err(failure) => {
            let text = failure.text();
            stripe.error(&text);
            reply.fail(&text);
            Next::Reply
        }
    };
    reply.finish();
    next
}

/// The requested command, if this client may run it now.
fn admitted(lent: &mut Lent<'_>, arguments: Arguments<'_>) -> Result<&'static Command, Failure> {
    let command = find(arguments)?;
    check_rights(lent, command, arguments)?;
    lent.server.denied.check(command)?;
    let mut admitted = Ok(command);
    if let Some(group) = &lent.server.group {
        match group.admit(command) {
            Ok(()) => (),
            // What another node has sent goes no further.
            Err(Failure::Elsewhere(text)) if lent.session.node.is_none() => {
                admitted = Err(Failure::Elsewhere(text));
            }
            Err(failure) => return Err(failure),
        }
        lent.session.shows_keys |= Group::shows(command);
    }
    if lent.session.watches.is_some() {
        channels::check_watcher(lent.reply.protocol, command)?;
    } else if let Some(subscriptions) = &lent.session.subscriptions {
        channels::check(subscriptions, lent.reply.protocol, command)?;
    }
    admitted
}

/// Whether the client may run a command with these arguments.
fn check_rights(
    lent: &mut Lent<'_>,
    command: &'static Command,
    arguments: Arguments<'_>,
) -> Result<(), Failure> {
    const OF_NODES: [&str; 3] = ["client|forwarded", "client|lastseq", "select"];
    let (session, users) = (&mut *lent.session, &lent.server.users);
    let check = |session: &mut Session| match session.identity.may_do_everything(users) {
        true => Ok(()),
        false => check_user(session, command, arguments),
    };
    // A node that writes for a user has rights of its own to do so.
    if session.node.is_some()
        && OF_NODES.contains(&command.full_name)
        && let Some(mut node) = session.node.take()
    {
        std::mem::swap(&mut node, &mut session.identity);
        let checked = check(session);
        std::mem::swap(&mut node, &mut session.identity);
        session.node = Some(node);
        return checked;
    }
    check(session)
}

/// Whether the user of the connection may run a command with these arguments.
fn check_user(
    session: &mut Session,
    command: &'static Command,
    arguments: Arguments<'_>,
) -> Result<(), Failure> {
    let Some(user) = session.identity.user() else {
        let is_open = command.flags.contains(&"no_auth");
        return if is_open {
            Ok(())
        } else {
            Err(Failure::NO_AUTH)
        };
    };
    user.check(command, arguments).map_err(|denial| {
        let (reason, object) = denial.about(command, arguments);
        Failure::Denied(reason, object)
    })
}

/// The requested command, if it exists and takes this number of arguments.
fn find(arguments: Arguments<'_>) -> Result<&'static Command, Failure> {
    let command = named(arguments)?;
    if command.takes(arguments.len()) {
        Ok(command)
    } else {
        Err(Failure::arity(command))
    }
}

/// The requested command, if it exists.
fn named(arguments: Arguments<'_>) -> Result<&'static Command, Failure> {
    let name = arguments.get(0);
    let Some(mut command) = table::lookup(name) else {
        return Err(Failure::unknown_command(arguments));
    };
    if arguments.len() > 1 && !command.subcommands.is_empty() {
        command = command
            .subcommands
            .iter()
            .find(|sub| arguments.get(1).eq_ignore_ascii_case(sub.name.as_bytes()))
            .ok_or_else(|| Failure::unknown_subcommand(command, arguments.get(1)))?;
    }
    Ok(command)
}
