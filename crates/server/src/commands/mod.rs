//! The commands. One table serves dispatch, the check of arities, `COMMAND` and documentation.

mod acl;
mod client;
mod connection;
mod copying;
mod counters;
mod denied;
mod describe;
mod ets;
mod failure;
mod info;
mod keys;
mod listing;
mod mailbox;
mod ordered;
mod reach;
mod scan;
mod strings;
mod table;
mod transaction;
mod view;
mod work;

use crate::apart::MANY;
use crate::clients::Client;
use crate::memory::{Promise, Room};
use crate::resp::{Arguments, Reply};
use crate::server::Shared;
use crate::turn::Turn;
use crate::users::{Denial, Identity, Reason, Users};
pub(crate) use denied::{Denied, full_name};
pub(crate) use failure::Failure;
pub(crate) use listing::Gathering;
pub(crate) use mailbox::{Receive, Senders};
pub(crate) use ordered::interval_of;
pub(crate) use reach::KeyReach;
use std::time::Duration;
pub(crate) use table::{CATEGORIES, Command, all, lookup_full};
use tremula_store::Database;
use tremula_store::Values;
use view::View;
pub(crate) use work::{Step, Unfinished, Work};
use work::{apart, begin};

pub(crate) use acl::reload;
pub use describe::command_table;

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
}

impl Session {
    /// Whether it may take long to drop this.
    pub(crate) fn holds_much(&self) -> bool {
        self.ets.is_owner() || self.senders.count() >= MANY
    }
}

impl<'a> Context<'a> {
    /// The values of the selected database.
    pub(crate) fn values(&self) -> Values<'a> {
        self.server.store.values(self.session.database)
    }

    /// The selected database.
    pub(crate) fn database(&self) -> &'a Database {
        self.server.store.database(self.session.database)
    }
}

/// What the connection does after a command.
pub(crate) enum Next {
    /// Runs the next command. The replies are sent when no complete command is left, when they are
    /// long, or when the turn is over.
    Reply,
    /// Sends the replies so far, and then receives messages for this command.
    Receive(Receive),
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
    /// Sends the replies and closes.
    Close,
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
    let found = admitted(lent, arguments);
    let pause = &lent.server.clients.pause;
    if found.as_ref().is_ok_and(|command| pause.holds(command)) {
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
        let held = (session.database, &mut session.promise);
        let memory = &lent.server.memory;
        room = memory.admit(lent.server, held, lent.turn, command, arguments);
    }
    if let Room::NotYet = room {
        return Next::Again;
    }
    let mute = lent.reply.mute;
    lent.reply.next_command();
    let mut name = "NULL";
    let outcome = found.and_then(|command| {
        name = command.full_name;
        let Room::Enough(promise) = room else {
            return Err(Failure::OUT_OF_MEMORY);
        };
        lent.session.last_command = command.full_name;
        lent.enter(command);
        let mut outcome = (command.run)(&mut lent.context(command), arguments);
        if let Ok(Next::Work(unfinished)) = &mut outcome {
            unfinished.promise = promise;
        }
        lent.leave();
        if command.is_short() {
            lent.turn.spend(1);
        } else {
            lent.turn.look();
        }
        outcome
    });
    if let Ok(Next::Apart) = outcome {
        // It has no reply yet.
        lent.reply.mute = mute;
    }
    end(lent, name, outcome)
}

/// Goes on with a command whose turn was over.
pub(crate) fn go_on(
    lent: &mut Lent<'_>,
    mut unfinished: Unfinished,
    arguments: Arguments<'_>,
) -> Next {
    let (server, command) = (lent.server, unfinished.command);
    let name = command.full_name;
    if !lent.reply.is_stream() && !server.memory.lets_go_on(server, lent.turn, command) {
        return end(lent, name, Err(Failure::OUT_OF_MEMORY));
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
    end(lent, name, outcome)
}

/// Ends a reply, unless the command goes on.
fn end(lent: &mut Lent<'_>, name: &'static str, outcome: Outcome) -> Next {
    if let Err(Failure::Denied(reason, object)) = &outcome {
        acl::note(lent.server, lent.client, name, *reason, object);
    }
    let reply = &mut *lent.reply;
    let next = match outcome {
        Ok(next @ (Next::Work(_) | Next::Receive(_) | Next::Apart)) => return next,
        Ok(next) => next,
        Err(Failure::WrongPassword(wait)) => {
            reply.fail(&Failure::WRONG_PASSWORD.text());
            Next::Slow(wait)
        }
        Err(Failure::Attack) => {
            tracing::warn!(
                "closed a connection on which HTTP was spoken; a web page may be attacking this server"
            );
            Next::Close
        }
        Err(failure) => {
            reply.fail(&failure.text());
            Next::Reply
        }
    };
    reply.finish();
    next
}

/// The requested command, if this client may run it now.
fn admitted(lent: &mut Lent<'_>, arguments: Arguments<'_>) -> Result<&'static Command, Failure> {
    let found = find(arguments);
    transaction::check(lent.client, found.as_ref().ok().copied())?;
    let command = found?;
    if !lent.session.identity.may_do_everything(&lent.server.users) {
        check_user(lent, command, arguments)?;
    }
    lent.server.denied.check(command)?;
    Ok(command)
}

/// Whether the user of the connection may run a command with these arguments.
fn check_user(
    lent: &mut Lent<'_>,
    command: &'static Command,
    arguments: Arguments<'_>,
) -> Result<(), Failure> {
    let Some(user) = lent.session.identity.user() else {
        let is_open = command.flags.contains(&"no_auth");
        return if is_open {
            Ok(())
        } else {
            Err(Failure::NO_AUTH)
        };
    };
    let Err(denial) = user.check(command, arguments) else {
        return Ok(());
    };
    let (reason, object) = match denial {
        Denial::Command => (Reason::Command, command.full_name.as_bytes()),
        Denial::Key(key) => (Reason::Key, key),
        Denial::AllKeys => (Reason::Key, &b"*"[..]),
        Denial::Mailbox(name) => (Reason::Mailbox, name),
    };
    Err(Failure::Denied(reason, object.to_vec()))
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
