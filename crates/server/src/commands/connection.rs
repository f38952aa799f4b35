//! Commands about the connection itself.

use super::{Context, Failure, Next, Outcome, client};
use crate::resp::{Arguments, Mute, Protocol, number};
use std::sync::atomic::Ordering::Relaxed;
use tremula_store::DATABASES;

/// The version of Redis whose replies the server gives. Clients read it to learn what a server can
/// do, so `HELLO` and `INFO` report it; `INFO` also has Tremula's own version.
pub(super) const REDIS_VERSION: &str = "7.0.15";

/// The only user. It has no password, so no password is right: a client that sends one must not
/// believe that it protects something. Redis accepts any.
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

pub(super) fn auth(_: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    Err(match arguments.len() {
        2 => Failure::NO_PASSWORD,
        3 => refusal(arguments.get(1)),
        _ => Failure::SYNTAX,
    })
}

/// Why nobody can prove to be a user.
fn refusal(user: &[u8]) -> Failure {
    if user == USER {
        Failure::NO_PASSWORD
    } else {
        Failure::WRONG_PASSWORD
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
            client::check_name(context, name.unwrap_or_default())?;
        } else {
            return Err(Failure::quoting(
                "ERR Syntax error in HELLO option '",
                option,
                "'",
            ));
        }
    }
    if let Some(user) = user {
        return Err(refusal(user));
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
    if context.session.ets.is_owner() && !context.is_apart {
        return Ok(Next::Apart);
    }
    context.session.database = 0;
    context.session.ets.reset();
    context.reply.protocol = Protocol::Resp2;
    context.reply.mute = Mute::Off;
    context.client.in_transaction.store(false, Relaxed);
    context.client.no_evict.store(false, Relaxed);
    context.client.set_name(b"");
    publish(context);
    context.reply.simple("RESET");
    Ok(Next::Reply)
}
