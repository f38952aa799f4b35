//! Commands about the connection itself.

use super::{Context, Failure, Next, Outcome, ets};
use crate::resp::{Arguments, Protocol, number};
use tremula_store::DATABASES;

/// The version of Redis whose replies the server gives. Clients read it to learn what a server can
/// do, so `HELLO` and `INFO` report it; `INFO` also has Tremula's own version.
pub(super) const REDIS_VERSION: &str = "7.0.15";

/// The only user, who has no password. So any password is accepted, as in Redis.
const USER: &[u8] = b"default";

pub(super) fn ping(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    match arguments.len() {
        1 => context.reply.simple("PONG"),
        2 => context.reply.bulk(arguments.get(1)),
        _ => return Err(Failure::arity(context.command)),
    }
    Ok(Next::Reply)
}

pub(super) fn echo(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    context.reply.bulk(arguments.get(1));
    Ok(Next::Reply)
}

pub(super) fn auth(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    match arguments.len() {
        2 => return Err(Failure::NO_PASSWORD),
        3 => authenticate(arguments.get(1))?,
        _ => return Err(Failure::SYNTAX),
    }
    context.reply.ok();
    Ok(Next::Reply)
}

fn authenticate(user: &[u8]) -> Result<(), Failure> {
    if user == USER {
        Ok(())
    } else {
        Err(Failure::WRONG_PASSWORD)
    }
}

pub(super) fn hello(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut protocol = None;
    if arguments.len() > 1 {
        protocol = Some(match number::parse(arguments.get(1)) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(Failure::PROTOCOL),
            None => return Err(Failure::PROTOCOL_NUMBER),
        });
    }
    let mut name = None;
    let mut user = None;
    let mut rest = arguments.skip(2);
    while let Some(option) = rest.next() {
        if option.eq_ignore_ascii_case(b"auth") && rest.len() >= 2 {
            user = rest.next();
            rest.next();
        } else if option.eq_ignore_ascii_case(b"setname") && rest.len() >= 1 {
            name = rest.next();
            validate_name(name.unwrap_or_default())?;
        } else {
            return Err(Failure::quoting(
                "ERR Syntax error in HELLO option '",
                option,
                "'",
            ));
        }
    }
    if let Some(user) = user {
        authenticate(user)?;
    }
    if let Some(name) = name {
        context.client.set_name(name);
    }
    if let Some(protocol) = protocol {
        context.reply.protocol = protocol;
        publish(context);
    }
    let id = i64::try_from(context.client.id).unwrap_or(i64::MAX);
    let reply = &mut *context.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(reply.protocol.version());
    reply.bulk(b"id");
    reply.integer(id);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(Next::Reply)
}

/// Updates the list of clients from the session.
fn publish(context: &Context<'_>) {
    context
        .client
        .set_session(context.session.database, context.reply.protocol);
}

pub(super) fn select(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let database = number::parse(arguments.get(1)).ok_or(Failure::NOT_AN_INTEGER)?;
    let database = i32::try_from(database).map_err(|_| Failure::BEYOND_INT)?;
    context.session.database = usize::try_from(database)
        .ok()
        .filter(|database| *database < DATABASES)
        .ok_or(Failure::DATABASE)?;
    publish(context);
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn quit(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.reply.ok();
    Ok(Next::Close)
}

pub(super) fn reset(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.session.database = 0;
    context.session.ets = ets::Session::default();
    context.reply.protocol = Protocol::Resp2;
    context.client.set_name(b"");
    publish(context);
    context.reply.simple("RESET");
    Ok(Next::Reply)
}

pub(super) fn client_id(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let id = i64::try_from(context.client.id).unwrap_or(i64::MAX);
    context.reply.integer(id);
    Ok(Next::Reply)
}

pub(super) fn client_getname(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    match &context.client.name()[..] {
        b"" => context.reply.null(),
        name => context.reply.bulk(name),
    }
    Ok(Next::Reply)
}

pub(super) fn client_setname(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(2);
    validate_name(name)?;
    context.client.set_name(name);
    context.reply.ok();
    Ok(Next::Reply)
}

/// Names are part of the lines of `CLIENT LIST`, so they must not break them.
fn validate_name(name: &[u8]) -> Result<(), Failure> {
    if name.iter().all(u8::is_ascii_graphic) {
        Ok(())
    } else {
        Err(Failure::CLIENT_NAME)
    }
}

/// From Redis 7.2: the library that the client uses. It is checked, but not kept.
pub(super) fn client_setinfo(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let attribute = arguments.get(2);
    let known = ["lib-name", "lib-ver"]
        .iter()
        .find(|known| attribute.eq_ignore_ascii_case(known.as_bytes()));
    let Some(known) = known else {
        return Err(Failure::quoting(
            "ERR Unrecognized option '",
            attribute,
            "'",
        ));
    };
    if !arguments.get(3).iter().all(u8::is_ascii_graphic) {
        return Err(Failure::Owned(
            format!("ERR {known} cannot contain spaces, newlines or special characters.").into(),
        ));
    }
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn client_info(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let mut text = String::new();
    context
        .client
        .describe(Some(context.command.full_name), &mut text);
    context.reply.text(&text);
    Ok(Next::Reply)
}

pub(super) fn client_list(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut wanted: Option<Vec<u64>> = None;
    match arguments.len() {
        2 => (),
        4 if arguments.get(2).eq_ignore_ascii_case(b"type") => {
            let kind = arguments.get(3);
            let is = |name: &&str| kind.eq_ignore_ascii_case(name.as_bytes());
            if ["slave", "replica", "pubsub", "master"].iter().any(is) {
                wanted = Some(Vec::new());
            } else if !is(&"normal") {
                return Err(Failure::quoting("ERR Unknown client type '", kind, "'"));
            }
        }
        4.. if arguments.get(2).eq_ignore_ascii_case(b"id") => {
            let ids = arguments.skip(3).map(|id| {
                // No client has a negative id, but asking for one is not an error.
                let id = number::parse(id).ok_or(Failure::CLIENT_ID)?;
                Ok(u64::try_from(id).unwrap_or(0))
            });
            wanted = Some(ids.collect::<Result<_, Failure>>()?);
        }
        _ => return Err(Failure::SYNTAX),
    }
    let mut text = String::new();
    for client in context.server.clients.list() {
        if wanted.as_ref().is_none_or(|ids| ids.contains(&client.id)) {
            let is_me = client.id == context.client.id;
            client.describe(is_me.then_some(context.command.full_name), &mut text);
        }
    }
    context.reply.text(&text);
    Ok(Next::Reply)
}
