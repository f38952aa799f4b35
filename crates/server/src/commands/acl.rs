//! `ACL …`: users and what they may do.

use super::reach::NOTHING_OF_USERS;
use super::rows::{ADMIN, ANY_TIME, CLIENT, NOTHING};
use super::table::{self, CATEGORIES, Command, lookup_full};
use super::{Context, Failure, Next, Outcome, Session, apart, describe, ets};
use crate::apart::MANY;
use crate::channels::Kind;
use crate::clients::{Client, Ending};
use crate::feeds::Name;
use crate::group::Change;
use crate::resp::{Arguments, number};
use crate::server::{NO_CLIENT, Shared};
use crate::users::{self, DEFAULT, FileError, Interval, Reason, Selector, SetError, name_problem};
use std::ops::Bound;
use std::sync::Arc;

/// Bits of a generated password, if no other number is asked for, and the most.
const BITS: usize = 256;
const MOST_BITS: usize = 4096;

/// Entries that `ACL LOG` shows, if no other number is asked for.
const ENTRIES: usize = 10;

/// The subcommands of `ACL`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new("cat", -2, cat, ANY_TIME, &[], NOTHING_OF_USERS)
        .full_name("acl|cat")
        .docs(
            "server",
            "6.0.0",
            NOTHING,
            "ACL CAT [category]",
            "The categories of commands, or the commands of one",
        ),
    Command::new("deluser", -3, deluser, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|deluser")
        .docs(
            "server",
            "6.0.0",
            "O(n) for n clients",
            "ACL DELUSER username [username ...]",
            "Remove users, close their connections, and count them",
        ),
    Command::new("dryrun", -4, dryrun, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|dryrun")
        .docs(
            "server",
            "7.0.0",
            NOTHING,
            "ACL DRYRUN username command [arg ...]",
            "Whether a user may run a command, without running it",
        ),
    Command::new("genpass", -2, genpass, CLIENT, &[], NOTHING_OF_USERS)
        .full_name("acl|genpass")
        .docs(
            "server",
            "6.0.0",
            NOTHING,
            "ACL GENPASS [bits]",
            "A new random password",
        ),
    Command::new("getuser", 3, getuser, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|getuser")
        .docs(
            "server",
            "6.0.0",
            "O(n) for n rules",
            "ACL GETUSER username",
            "The rules of a user",
        ),
    Command::new("list", 2, list, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|list")
        .docs(
            "server",
            "6.0.0",
            "O(n) for n users",
            "ACL LIST",
            "All users with their rules, as the file has them",
        ),
    Command::new("load", 2, load, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|load")
        .docs(
            "server",
            "6.0.0",
            "O(n) for n users",
            "ACL LOAD",
            "Read the file of users again, and close the connections of those who changed",
        ),
    Command::new("log", -2, log, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|log")
        .docs(
            "server",
            "6.0.0",
            "O(n) for n entries",
            "ACL LOG [count | RESET]",
            "What was refused lately, or forget it",
        ),
    Command::new("save", 2, save, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|save")
        .docs(
            "server",
            "6.0.0",
            "O(n) for n users",
            "ACL SAVE",
            "Write the users to the file",
        ),
    Command::new("setuser", -3, setuser, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|setuser")
        .docs(
            "server",
            "6.0.0",
            "O(n) for n rules",
            "ACL SETUSER username [rule ...]",
            "Make a user, or change one",
        ),
    Command::new("users", 2, names, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("acl|users")
        .docs(
            "server",
            "6.0.0",
            "O(n) for n users",
            "ACL USERS",
            "The names of all users",
        ),
    Command::new("whoami", 2, whoami, CLIENT, &[], NOTHING_OF_USERS)
        .full_name("acl|whoami")
        .docs(
            "server",
            "6.0.0",
            NOTHING,
            "ACL WHOAMI",
            "The user of this connection",
        ),
    Command::new("help", 2, describe::help, ANY_TIME, &[], NOTHING_OF_USERS)
        .full_name("acl|help")
        .docs(
            "server",
            "6.0.0",
            NOTHING,
            "ACL HELP",
            "What the subcommands do",
        ),
];

fn owned(text: String) -> Failure {
    Failure::Owned(text.into_bytes())
}

fn cat(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() > 3 {
        return Err(Failure::subcommand_arity(arguments));
    }
    let reply = &mut *context.reply;
    if arguments.len() == 2 {
        reply.array(CATEGORIES.len());
        for category in CATEGORIES {
            reply.bulk(&category.as_bytes()[1..]);
        }
        return Ok(Next::Reply);
    }
    let wanted = arguments.get(2);
    let category = CATEGORIES
        .iter()
        .find(|category| category.as_bytes()[1..].eq_ignore_ascii_case(wanted))
        .ok_or_else(|| Failure::quoting("ERR Unknown category '", wanted, "'"))?;
    // A command with subcommands is none of its own.
    let members =
        table::all().filter(|command| command.subcommands.is_empty() && command.is_in(category));
    let members: Vec<_> = members.collect();
    reply.array(members.len());
    for command in members {
        reply.bulk(command.full_name.as_bytes());
    }
    Ok(Next::Reply)
}

fn setuser(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(2);
    if let Some(problem) = name_problem(name) {
        return Err(owned(format!("ERR {problem}")));
    }
    let change = Change::begin(context.server)?;
    let done = context.server.users.set(name, arguments.skip(3));
    done.map_err(|error| match error {
        SetError::Rule(word, why) => {
            let why = format!("': {why}");
            Failure::quoting("ERR Error in ACL SETUSER modifier '", &word, &why)
        }
        SetError::Unmatched(word) => Failure::quoting(
            "ERR Unmatched parenthesis in acl selector starting at '",
            &word,
            "'.",
        ),
        other @ SetError::TooManyUsers(_) => owned(format!("ERR {other}")),
    })?;
    note_change(context.session, change.user(name)?);
    context.reply.ok();
    let is_own = end_subscribers(context.server, context.client.id, name);
    Ok(if is_own { Next::Close } else { Next::Reply })
}

/// The reply waits until the group has what was noted, if anything was.
pub(super) fn note_change(session: &mut Session, is_noted: bool) {
    session.has_written |= is_noted;
    session.shows_keys |= is_noted;
}

/// Makes a user what the log says: `None` is that he was removed.
pub(crate) fn take_user(server: &Shared, name: &[u8], line: Option<&[u8]>) -> Result<(), String> {
    let Some(line) = line else {
        if server.users.remove(name) {
            end_clients(server, NO_CLIENT, |user| user == name);
        }
        return Ok(());
    };
    // The name comes first.
    let words = line.split(u8::is_ascii_whitespace).skip(1);
    let words = std::iter::once(&b"reset"[..]).chain(words);
    let done = server.users.set(name, words);
    done.map_err(|error| error.to_string())?;
    end_subscribers(server, NO_CLIENT, name);
    Ok(())
}

/// Closes the connections of a user that listen to channels, or watch ranges, which are no longer
/// open to him.
/// Returns whether the connection `own`, which still gets its reply, is one of them.
fn end_subscribers(server: &Shared, own: u64, name_of_user: &[u8]) -> bool {
    let Some(user) = server.users.get(name_of_user) else {
        return false;
    };
    let mut is_own = false;
    let passes = |client: &Client, kind, heard: &[u8]| {
        *client.user() != *name_of_user || user.hears(heard, kind == Kind::Pattern)
    };
    for client in server.channels.clients_beyond(passes) {
        if client.id == own {
            is_own = true;
        } else {
            server.clients.end(&client, Ending::NoChannel);
        }
    }
    let watchrange = lookup_full(b"watchrange");
    let passes = |client: &Client, name: &Name| {
        let (low, high) = (name.span.low(), name.span.high());
        let high = high.map_or(Bound::Unbounded, Bound::Excluded);
        let interval = Interval::between(Bound::Included(low), high);
        let sees = |command| user.sees_all_in(command, &interval);
        *client.user() != *name_of_user || watchrange.is_some_and(sees)
    };
    for client in server.feeds.clients_beyond(passes) {
        if client.id == own {
            is_own = true;
        } else {
            server.clients.end(&client, Ending::NoRange);
        }
    }
    is_own
}

fn deluser(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.skip(2).any(|name| name == DEFAULT) {
        return Err(Failure::Text("ERR The 'default' user cannot be removed"));
    }
    let change = Change::begin(context.server)?;
    let mut removed = Vec::new();
    for name in arguments.skip(2) {
        if context.server.users.remove(name) {
            removed.push(name);
            note_change(context.session, change.user(name)?);
        }
    }
    drop(change);
    context.reply.count(removed.len());
    let is_own = end_clients(context.server, context.client.id, |user| {
        removed.contains(&user)
    });
    Ok(if is_own { Next::Close } else { Next::Reply })
}

/// Closes the connections of some users. Returns whether this one, which still gets its reply, is
/// one of them.
fn end_clients(server: &Shared, own: u64, is_ended: impl Fn(&[u8]) -> bool) -> bool {
    let mut is_own = false;
    for client in server.clients.list() {
        if !is_ended(&client.user()) {
            continue;
        }
        if client.id == own {
            is_own = true;
        } else {
            server.clients.end(&client, Ending::NoUser);
        }
    }
    is_own
}

fn getuser(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let Some(user) = context.server.users.get(arguments.get(2)) else {
        context.reply.null();
        return Ok(Next::Reply);
    };
    let (own, others) = user.selectors();
    let parts = own.parts();
    let reply = &mut *context.reply;
    reply.map(3 + parts.len());
    reply.bulk(b"flags");
    let flags = user.flags();
    reply.set(flags.len());
    for flag in flags {
        reply.simple(flag);
    }
    reply.bulk(b"passwords");
    let passwords = user.passwords();
    reply.array(passwords.len());
    for password in passwords {
        reply.bulk(password.as_bytes());
    }
    selector(context, own);
    context.reply.bulk(b"selectors");
    context.reply.array(others.len());
    for other in others {
        context.reply.map(parts.len());
        selector(context, other);
    }
    Ok(Next::Reply)
}

fn selector(context: &mut Context<'_>, selector: &Selector) {
    for (name, words) in selector.parts() {
        context.reply.bulk(name.as_bytes());
        context.reply.bulk(&words);
    }
}

fn list(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let users = context.server.users.all();
    if users.len() >= MANY && !context.is_apart {
        return Ok(Next::Apart);
    }
    context.reply.array(users.len());
    for user in users {
        let line = [b"user ", &user.describe()[..]].concat();
        context.reply.bulk(&line);
    }
    Ok(Next::Reply)
}

fn names(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let users = context.server.users.all();
    if users.len() >= MANY && !context.is_apart {
        return Ok(Next::Apart);
    }
    context.reply.array(users.len());
    for user in users {
        context.reply.bulk(&user.name);
    }
    Ok(Next::Reply)
}

fn whoami(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let user = context.client.user();
    context.reply.bulk(&user);
    Ok(Next::Reply)
}

fn genpass(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let bits = match arguments.len() {
        2 => Some(BITS),
        3 => {
            let bits = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
            let bits = usize::try_from(bits).ok();
            bits.filter(|bits| (1..=MOST_BITS).contains(bits))
        }
        _ => return Err(Failure::subcommand_arity(arguments)),
    };
    let bits = bits.ok_or(Failure::Text(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
         number up to 4096",
    ))?;
    let password = users::generate(bits);
    let password = password.ok_or(Failure::Text("ERR the system has no random numbers"))?;
    context.reply.bulk(password.as_bytes());
    Ok(Next::Reply)
}

fn dryrun(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(2);
    let user = context.server.users.get(name);
    let user = user.ok_or_else(|| Failure::quoting("ERR User '", name, "' not found"))?;
    let arguments = arguments.behind(3);
    let command = super::named(arguments)
        .map_err(|_| Failure::quoting("ERR Command '", arguments.get(0), "' not found"))?;
    if !command.takes(arguments.len()) {
        return Err(Failure::arity(command));
    }
    let denied = match user.check(command, arguments) {
        Ok(()) => ets::denial(context, &user, command, arguments),
        Err(denial) => Some(denial.about(command, arguments)),
    };
    match denied {
        None => context.reply.ok(),
        Some((reason, object)) => context.reply.bulk(&explain(reason, &object)),
    }
    Ok(Next::Reply)
}

/// What `ACL DRYRUN` says of a refusal.
fn explain(reason: Reason, object: &[u8]) -> Vec<u8> {
    let (verb, what) = match reason {
        Reason::Command => ("run", "command"),
        Reason::Key => ("access", "key"),
        Reason::Channel => ("access", "channel"),
        Reason::Table => ("access", "table"),
        Reason::Mailbox => ("access", "mailbox"),
        Reason::Auth => ("be", "user"),
    };
    let before = format!("This user has no permissions to {verb} the '");
    [before.as_bytes(), object, b"' ", what.as_bytes()].concat()
}

fn log(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let most = match arguments.len() {
        2 => ENTRIES,
        3 if arguments.get(2).eq_ignore_ascii_case(b"reset") => {
            context.server.users.clear_log();
            context.reply.ok();
            return Ok(Next::Reply);
        }
        3 => {
            let count = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
            usize::try_from(count).unwrap_or(0)
        }
        _ => return Err(Failure::subcommand_arity(arguments)),
    };
    let entries = context.server.users.log(most);
    context.reply.array(entries.len());
    for entry in entries {
        let reply = &mut *context.reply;
        reply.map(7);
        reply.bulk(b"count");
        reply.count(usize::try_from(entry.count).unwrap_or(usize::MAX));
        let age = entry.last.elapsed().as_secs_f64().to_string();
        for (name, value) in [
            ("reason", entry.reason.name().as_bytes()),
            ("context", b"toplevel"),
            ("object", &entry.object),
            ("username", &entry.user),
            ("age-seconds", age.as_bytes()),
            ("client-info", entry.client.trim_end().as_bytes()),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(value);
        }
    }
    Ok(Next::Reply)
}

/// The error of `ACL LOAD` and `ACL SAVE` without a file.
const NO_FILE: Failure = Failure::Text(
    "ERR This Redis instance is not configured to use an ACL file. Start the server with --acl-file \
     to keep users in one.",
);

/// The error of `ACL LOAD` on a node of a group.
const OF_GROUP: Failure = Failure::Text(
    "ERR the users of a group are in its log: ACL SETUSER on the leader changes them on all nodes",
);

fn failed(error: &FileError) -> Failure {
    owned(format!(
        "ERR {error}. Nothing was changed, and the users are as they were."
    ))
}

fn load(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if context.server.users.file().is_none() {
        return Err(NO_FILE);
    }
    if context.server.group.is_some() {
        return Err(OF_GROUP);
    }
    let own = context.client.id;
    let read = move |server: &Shared| reload(server, own);
    apart(context, arguments, read, |context, done| {
        let is_own = done.map_err(|error| failed(&error))?;
        context.reply.ok();
        if is_own {
            // Closed when this reply has been sent.
            context.client.end(Ending::NoUser);
        }
        Ok(())
    })
}

/// Reads the file of users again, and closes the connections of those who changed. Returns whether
/// the connection `own`, which stays, is one of them.
pub(crate) fn reload(server: &Shared, own: u64) -> Result<bool, FileError> {
    let changed = server.users.load()?;
    let is_ended = |user: &[u8]| changed.iter().any(|name| **name == *user);
    Ok(end_clients(server, own, is_ended))
}

fn save(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if context.server.users.file().is_none() {
        return Err(NO_FILE);
    }
    let write = |server: &Shared| server.users.save();
    apart(context, arguments, write, |context, done| {
        done.map_err(|error| failed(&error))?;
        context.reply.ok();
        Ok(())
    })
}

/// Makes a connection a user's, if the password is right; else notes the failed try, which costs
/// the client time.
///
/// Until there is a password, nobody can prove who he is: a client that sends one must not believe
/// that it protects something. Redis accepts any.
///
/// `typed` is the name of the command as the client wrote it, for `ACL LOG`.
pub(super) fn authenticate(
    context: &mut Context<'_>,
    typed: &[u8],
    name: &[u8],
    password: &[u8],
) -> Result<(), Failure> {
    let users = &context.server.users;
    if !users.has_passwords() {
        return Err(if name == DEFAULT {
            Failure::NO_PASSWORD
        } else {
            Failure::WRONG_PASSWORD
        });
    }
    if let Some(user) = users.authenticate(name, password) {
        context.client.set_user(Arc::clone(&user.name));
        context.session.node = None;
        context.session.identity.become_user(user);
        return Ok(());
    }
    let command = context.command.full_name;
    let mut client = String::new();
    context.client.describe(Some(command), &mut client);
    users.refused(Reason::Auth, typed, name, client);
    let name = name.escape_ascii();
    tracing::warn!(
        "{}: user {name} or the password is wrong",
        context.client.who()
    );
    Err(Failure::WrongPassword(
        users.failed(context.client.address()),
    ))
}

/// Notes in the log that something was refused to the user of a client.
pub(super) fn note(
    server: &Shared,
    client: &Client,
    command: &'static str,
    reason: Reason,
    object: &[u8],
) {
    let mut line = String::new();
    client.describe(Some(command), &mut line);
    let users = &server.users;
    users.refused(reason, object, &client.user(), line);
}
