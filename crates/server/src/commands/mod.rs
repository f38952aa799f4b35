//! The commands. One table serves dispatch, the check of arities, `COMMAND` and documentation.

mod connection;
mod counters;
mod describe;
mod ets;
mod failure;
mod info;
mod keys;
mod mailbox;
mod ordered;
mod scan;
mod strings;
mod table;

use crate::clients::Client;
use crate::resp::{Arguments, Reply};
use crate::server::Shared;
pub(crate) use ets::Search;
pub(crate) use failure::Failure;
pub(crate) use mailbox::{Receive, Senders};
pub(crate) use table::Command;
use tremula_store::Database;
use tremula_store::Values;

pub use describe::command_table;

/// The state of a connection between commands. The encoder holds the version of the protocol, and
/// the list of clients the name.
#[derive(Default)]
pub(crate) struct Session {
    /// The number of the selected database.
    pub(crate) database: usize,
    /// The senders into mailboxes that this connection has used.
    pub(crate) senders: Senders,
    /// Its state for the commands of tables.
    pub(crate) ets: ets::Session,
    /// The last command that ran, for `CLIENT LIST`.
    pub(crate) last_command: &'static str,
}

/// Everything that a command works on, except its arguments.
pub(crate) struct Context<'a> {
    pub(crate) server: &'a Shared,
    pub(crate) client: &'a Client,
    pub(crate) session: &'a mut Session,
    pub(crate) reply: &'a mut Reply,
    /// The running command, by its full name.
    pub(crate) command: &'static Command,
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
    /// Runs the next command. The replies are sent when no complete command is left or they are
    /// long.
    Reply,
    /// Sends the replies, and lets other connections run first, because this command may have taken
    /// long.
    Pause,
    /// Sends the replies so far, and then receives messages for this command.
    Receive(Receive),
    /// Sends the replies so far, and then goes on with this command's search.
    Search(Box<Search>),
    /// Sends the replies and closes.
    Close,
}

/// The outcome of a command. What a failed command has written is removed.
type Outcome = Result<Next, Failure>;

/// Runs one request and appends its reply.
pub(crate) fn execute(
    server: &Shared,
    client: &Client,
    session: &mut Session,
    reply: &mut Reply,
    arguments: Arguments<'_>,
) -> Next {
    reply.begin();
    let outcome = find(arguments).and_then(|command| {
        session.last_command = command.full_name;
        (command.run)(
            &mut Context {
                server,
                client,
                session,
                reply,
                command,
            },
            arguments,
        )
    });
    let next = match outcome {
        Ok(next) => next,
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
    if reply.finish() { next } else { Next::Close }
}

/// The requested command, if it exists and takes this number of arguments.
fn find(arguments: Arguments<'_>) -> Result<&'static Command, Failure> {
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
    if command.takes(arguments.len()) {
        Ok(command)
    } else {
        Err(Failure::arity(command))
    }
}
