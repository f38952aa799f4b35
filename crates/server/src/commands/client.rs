//! `CLIENT …`: commands about connections, one's own and others'.

use super::reach::NOTHING_OF_USERS;
use super::rows::{ADMIN, ANY_TIME, CLIENT, CONNECTION, NOTHING};
use super::table::Command;
use super::{Context, Failure, Next, Outcome, Step, Work, begin, describe, persist};
use crate::apart::MANY;
use crate::clients::{Client, Ending, Unblock};
use crate::resp::{Arguments, Mute, number};
use crate::users::Identity;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::vec;

/// The subcommands of `CLIENT`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new("id", 2, id, CLIENT, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|id")
        .docs("connection", "5.0.0", NOTHING, "CLIENT ID", "The connection's number"),
    Command::new("setname", 3, setname, CLIENT, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|setname")
        .docs("connection", "2.6.9", NOTHING, "CLIENT SETNAME name", "Name the connection"),
    Command::new("getname", 2, getname, CLIENT, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|getname")
        .docs("connection", "2.6.9", NOTHING, "CLIENT GETNAME", "The connection's name"),
    Command::new("setinfo", 4, setinfo, CLIENT, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|setinfo")
        .docs("connection", "7.2.0", NOTHING, "CLIENT SETINFO LIB-NAME | LIB-VER value",
            "What library the client uses, for `CLIENT LIST`"),
    Command::new("info", 2, info, CLIENT, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|info")
        .tips(&["nondeterministic_output"])
        .docs("connection", "6.2.0", NOTHING, "CLIENT INFO", "About this connection"),
    Command::new("list", -2, list, ADMIN, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|list")
        .tips(&["nondeterministic_output"])
        .docs("connection", "2.4.0", "O(n); O(m log n) with m ids",
            "CLIENT LIST [TYPE type | ID id [id ...]]", "About all connections, or some"),
    Command::new("kill", -3, kill, ADMIN, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|kill")
        .docs("connection", "2.4.0", "O(n)",
            "CLIENT KILL addr:port | [ID id] [TYPE type] [USER user] [ADDR addr:port] [LADDR addr:port] [SKIPME yes | no] [MAXAGE seconds]",
            "Close the connection from an address, or all that pass every filter, and count these"),
    Command::new("pause", -3, pause, ADMIN, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|pause")
        .docs("connection", "3.0.0", NOTHING, "CLIENT PAUSE milliseconds [WRITE | ALL]",
            "Let all commands, or only those that write, wait for a time"),
    Command::new("unpause", 2, unpause, ADMIN, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|unpause")
        .docs("connection", "6.2.0", NOTHING, "CLIENT UNPAUSE", "End the pause"),
    Command::new("reply", 3, reply, CLIENT, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|reply")
        .docs("connection", "3.2.0", NOTHING, "CLIENT REPLY ON | OFF | SKIP",
            "Whether this connection gets replies; none to the next command with `SKIP`"),
    Command::new("no-evict", 3, no_evict, ADMIN, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|no-evict")
        .docs("connection", "7.0.0", NOTHING, "CLIENT NO-EVICT ON | OFF",
            "Whether this connection stays when the largest are closed"),
    Command::new("durability", 3, persist::client_durability, CLIENT, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|durability")
        .docs("connection", "7.2.0", NOTHING, "CLIENT DURABILITY ALWAYS | EVERYSEC | NO | DEFAULT",
            "When this connection's writes are on the disk: before their replies, or later"),
    Command::new("lastseq", 2, persist::client_lastseq, CLIENT, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|lastseq")
        .docs("connection", "0.1.0", NOTHING, "CLIENT LASTSEQ",
            "The number of the last effect that this connection has made or can have seen"),
    Command::new("forwarded", 3, forwarded, ADMIN, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|forwarded")
        .docs("connection", "0.1.0", NOTHING, "CLIENT FORWARDED username",
            "By other nodes of a group: commands of this connection are that user's, and go no further"),
    Command::new("unblock", -3, unblock, ADMIN, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|unblock")
        .docs("connection", "5.0.0", "O(log n)", "CLIENT UNBLOCK id [TIMEOUT | ERROR]",
            "End the waiting of a client for a message"),
    Command::new("help", 2, describe::help, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
        .full_name("client|help")
        .docs("connection", "5.0.0", NOTHING, "CLIENT HELP", "What the subcommands do"),
];

fn forwarded(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(2);
    let user = context.server.users.get(name);
    let user = user.ok_or_else(|| Failure::quoting("ERR User '", name, "' not found"))?;
    context.client.set_user(Arc::clone(&user.name));
    let session = &mut *context.session;
    let own = Identity::new(&context.server.users);
    let own = std::mem::replace(&mut session.identity, own);
    session.node.get_or_insert(own);
    session.identity.become_user(user);
    context.reply.ok();
    Ok(Next::Reply)
}

fn id(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let id = i64::try_from(context.client.id).unwrap_or(i64::MAX);
    context.reply.integer(id);
    Ok(Next::Reply)
}

fn getname(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    match &context.client.name()[..] {
        b"" => context.reply.null(),
        name => context.reply.bulk(name),
    }
    Ok(Next::Reply)
}

fn setname(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(2);
    check_name(context, name)?;
    context.client.set_name(name);
    context.reply.ok();
    Ok(Next::Reply)
}

/// Names are part of the lines of `CLIENT LIST`, so they must not break them, nor be long.
pub(super) fn check_name(context: &Context<'_>, name: &[u8]) -> Result<(), Failure> {
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err(Failure::CLIENT_NAME);
    }
    check_length(context, "Client names", name)
}

fn check_length(context: &Context<'_>, what: &str, text: &[u8]) -> Result<(), Failure> {
    let limit = context.server.limits.clients.max_client_name;
    let length = text.len();
    if length <= limit {
        return Ok(());
    }
    let text = format!(
        "ERR {what} cannot have more than {limit} bytes (--max-client-name), and this has {length}."
    );
    Err(Failure::Owned(text.into_bytes()))
}

/// From Redis 7.2: the library that the client uses.
fn setinfo(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let attribute = arguments.get(2);
    let known = ["lib-name", "lib-ver"];
    let part = known
        .iter()
        .position(|known| attribute.eq_ignore_ascii_case(known.as_bytes()));
    let Some(part) = part else {
        return Err(Failure::quoting(
            "ERR Unrecognized option '",
            attribute,
            "'",
        ));
    };
    let text = arguments.get(3);
    let name = known[part];
    if !text.iter().all(u8::is_ascii_graphic) {
        return Err(Failure::Owned(
            format!("ERR {name} cannot contain spaces, newlines or special characters.").into(),
        ));
    }
    check_length(context, name, text)?;
    context.client.set_library(part, text);
    context.reply.ok();
    Ok(Next::Reply)
}

fn info(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let mut text = String::new();
    context
        .client
        .describe(Some(context.command.full_name), &mut text);
    context.reply.text(&text);
    Ok(Next::Reply)
}

fn list(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let clients = &context.server.clients;
    let listed: Vec<Arc<Client>> = match arguments.len() {
        2 => clients.list(),
        4 if is(arguments.get(2), "type") => {
            let kind = ClientKind::read(arguments.get(3))?;
            let mut all = clients.list();
            all.retain(|client| kind.is(client));
            all
        }
        4.. if is(arguments.get(2), "id") => {
            let limit = context.server.limits.clients.max_listed_clients;
            let count = arguments.len() - 3;
            if count > limit {
                return Err(Failure::Owned(
                    format!(
                        "ERR CLIENT LIST takes at most {limit} ids (--max-listed-clients), and \
                         there are {count}"
                    )
                    .into_bytes(),
                ));
            }
            let ids = arguments.skip(3).map(|id| {
                // No client has a negative id, but asking for one is not an error.
                let id = number::parse(id).ok_or(Failure::CLIENT_ID)?;
                Ok(u64::try_from(id).unwrap_or(0))
            });
            let ids = ids.collect::<Result<Vec<_>, Failure>>()?;
            ids.into_iter().filter_map(|id| clients.get(id)).collect()
        }
        _ => return Err(Failure::SYNTAX),
    };
    let list = List {
        clients: listed.into_iter(),
        text: String::new(),
    };
    begin(context, arguments, list)
}

/// A list of clients that is being written.
struct List {
    clients: vec::IntoIter<Arc<Client>>,
    text: String,
}

impl Work for List {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        for client in self.clients.by_ref() {
            // One that is ended is no client any more, although its connection may take a while.
            if client.ending().is_some() {
                continue;
            }
            let is_me = client.id == context.client.id;
            client.describe(is_me.then_some(context.command.full_name), &mut self.text);
            if context.turn.spend(1) {
                return Ok(Step::Rest);
            }
        }
        context.reply.text(&self.text);
        Ok(Step::Done)
    }
}

fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// A type of clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientKind {
    Normal,
    Subscriber,
    /// One that does not exist here.
    Replica,
}

impl ClientKind {
    fn read(kind: &[u8]) -> Result<Self, Failure> {
        if is(kind, "normal") {
            Ok(Self::Normal)
        } else if is(kind, "pubsub") {
            Ok(Self::Subscriber)
        } else if ["slave", "replica", "master"]
            .iter()
            .any(|name| is(kind, name))
        {
            Ok(Self::Replica)
        } else {
            Err(Failure::quoting("ERR Unknown client type '", kind, "'"))
        }
    }

    fn is(self, client: &Client) -> bool {
        match self {
            Self::Normal => !client.is_subscriber(),
            Self::Subscriber => client.is_subscriber(),
            Self::Replica => false,
        }
    }
}

/// Which clients `CLIENT KILL` closes.
struct Filter<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    kind: Option<ClientKind>,
    skip_me: bool,
    least_age: Option<Duration>,
    user: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    fn parse(context: &Context<'_>, arguments: Arguments<'a>) -> Result<Self, Failure> {
        let mut filter = Self {
            id: None,
            address: None,
            local_address: None,
            kind: None,
            skip_me: true,
            least_age: None,
            user: None,
        };
        let mut rest = arguments.skip(2);
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or(Failure::SYNTAX)?;
            if is(name, "id") {
                let id = number::parse(value).and_then(|id| u64::try_from(id).ok());
                let id = id.filter(|id| *id > 0);
                filter.id =
                    Some(id.ok_or(Failure::Text("ERR client-id should be greater than 0"))?);
            } else if is(name, "type") {
                filter.kind = Some(ClientKind::read(value)?);
            } else if is(name, "addr") {
                filter.address = Some(value);
            } else if is(name, "laddr") {
                filter.local_address = Some(value);
            } else if is(name, "user") {
                if context.server.users.get(value).is_none() {
                    return Err(Failure::quoting("ERR No such user '", value, "'"));
                }
                filter.user = Some(value);
            } else if is(name, "skipme") {
                filter.skip_me = match () {
                    () if is(value, "yes") => true,
                    () if is(value, "no") => false,
                    () => return Err(Failure::SYNTAX),
                };
            } else if is(name, "maxage") {
                let seconds = number::parse(value).and_then(|age| u64::try_from(age).ok());
                let seconds = seconds.filter(|seconds| *seconds > 0);
                filter.least_age = Some(Duration::from_secs(seconds.ok_or(Failure::Text(
                    "ERR maxage is not an integer or out of range",
                ))?));
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(filter)
    }

    fn takes(&self, client: &Client, me: u64) -> bool {
        self.kind.is_none_or(|kind| kind.is(client))
            && self.id.is_none_or(|id| id == client.id)
            && self
                .address
                .is_none_or(|address| client.has_address(address, false))
            && self
                .local_address
                .is_none_or(|address| client.has_address(address, true))
            && self.user.is_none_or(|user| *client.user() == *user)
            && self.least_age.is_none_or(|age| client.age() >= age)
            && !(self.skip_me && client.id == me)
    }
}

fn kill(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let by_address = arguments.len() == 3;
    let filter = if by_address {
        Filter {
            id: None,
            address: Some(arguments.get(2)),
            local_address: None,
            kind: None,
            skip_me: false,
            least_age: None,
            user: None,
        }
    } else {
        Filter::parse(context, arguments)?
    };
    let clients = &context.server.clients;
    let candidates: Vec<_> = match filter.id {
        Some(id) => clients.get(id).into_iter().collect(),
        None => clients.list(),
    };
    if candidates.len() >= MANY && !context.is_apart {
        return Ok(Next::Apart);
    }
    let me = context.client.id;
    let mut killed = 0;
    let mut kills_me = false;
    for client in candidates {
        if filter.takes(&client, me) {
            killed += 1;
            if client.id == me {
                // After its reply.
                kills_me = true;
            } else {
                clients.end(&client, Ending::Killed);
            }
        }
    }
    match (by_address, killed) {
        (true, 0) => return Err(Failure::Text("ERR No such client")),
        (true, _) => context.reply.ok(),
        (false, _) => context.reply.count(killed),
    }
    Ok(if kills_me { Next::Close } else { Next::Reply })
}

fn pause(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let only_writes = match arguments.len() {
        3 => false,
        4 if is(arguments.get(3), "write") => true,
        4 if is(arguments.get(3), "all") => false,
        4 => {
            return Err(Failure::Text("ERR CLIENT PAUSE mode must be WRITE or ALL"));
        }
        _ => return Err(Failure::subcommand_arity(arguments)),
    };
    let time = number::parse(arguments.get(2)).ok_or(Failure::Text(
        "ERR timeout is not an integer or out of range",
    ))?;
    let time = u64::try_from(time).map_err(|_| Failure::Text("ERR timeout is negative"))?;
    let time = Duration::from_millis(time);
    context.server.clients.pause.begin(time, only_writes);
    context.reply.ok();
    Ok(Next::Reply)
}

fn unpause(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.server.clients.pause.end();
    context.reply.ok();
    Ok(Next::Reply)
}

fn reply(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mode = arguments.get(2);
    context.reply.mute = match () {
        () if is(mode, "on") => Mute::Off,
        () if is(mode, "off") => Mute::On,
        // Replies stay off until they are switched on.
        () if is(mode, "skip") && context.reply.mute == Mute::On => Mute::On,
        () if is(mode, "skip") => Mute::SkipNext,
        () => return Err(Failure::SYNTAX),
    };
    if context.reply.mute == Mute::Off {
        context.reply.ok();
    }
    Ok(Next::Reply)
}

fn no_evict(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mode = arguments.get(2);
    let is_on = is(mode, "on");
    if !is_on && !is(mode, "off") {
        return Err(Failure::SYNTAX);
    }
    context.client.no_evict.store(is_on, Relaxed);
    context.reply.ok();
    Ok(Next::Reply)
}

fn unblock(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let how = match arguments.len() {
        3 => Unblock::Timeout,
        4 if is(arguments.get(3), "timeout") => Unblock::Timeout,
        4 if is(arguments.get(3), "error") => Unblock::Error,
        4 => {
            return Err(Failure::Text(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
        _ => return Err(Failure::subcommand_arity(arguments)),
    };
    let id = number::parse(arguments.get(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let client = u64::try_from(id)
        .ok()
        .and_then(|id| context.server.clients.get(id));
    let was_blocked = client.is_some_and(|client| client.unblock(how));
    context.reply.count(usize::from(was_blocked));
    Ok(Next::Reply)
}
