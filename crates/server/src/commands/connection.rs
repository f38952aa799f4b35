//! Commands about the connection itself.

use super::copy::database;
use super::{Context, Failure, Next, Outcome, acl, channels, client};
use crate::resp::{Arguments, Mute, Protocol, number};
use crate::users::{DEFAULT, Identity};
use std::sync::atomic::Ordering::Relaxed;

/// The version of Redis whose replies the server gives. Clients read it to learn what a server can
/// do, so `HELLO` and `INFO` report it; `INFO` also has Tremula's own version.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

pub(super) fn ping(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    match arguments.len() {
        1 | 2 if channels::speaks_only_messages(context) => {
            let mut message = arguments.skip(1);
            let message = message.next().unwrap_or_default();
            context.reply.array(2);
            context.reply.bulk(b"pong");
            context.reply.bulk(message);
        }
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
        2 => {
            let default = context.server.users.get(DEFAULT);
            if default.is_none_or(|user| user.takes_any_password()) {
                return Err(Failure::NO_PASSWORD);
            }
            acl::authenticate(context, arguments.get(0), DEFAULT, arguments.get(1))?;
        }
        3 => {
            let (typed, name) = (arguments.get(0), arguments.get(1));
            acl::authenticate(context, typed, name, arguments.get(2))?;
        }
        _ => return Err(Failure::SYNTAX),
    }
    context.reply.ok();
    Ok(Next::Reply)
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
            user = rest.next().zip(rest.next());
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
    if let Some((user, password)) = user {
        acl::authenticate(context, arguments.get(0), user, password)?;
    }
    if context.session.identity.user().is_none() {
        return Err(Failure::NO_AUTH_HELLO);
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
    context.session.database = database(arguments.get(1))?;
    publish(context);
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn quit(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.reply.ok();
    Ok(Next::Close)
}

pub(super) fn reset(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    if context.session.holds_much() && !context.is_apart {
        return Ok(Next::Apart);
    }
    context.session.database = 0;
    context.session.identity = Identity::new(&context.server.users);
    context.client.set_user(DEFAULT.into());
    // The tables of the connection end.
    context.session.has_written |= context.session.ets.is_owner();
    context.session.ets.reset();
    context.session.watching = None;
    context.session.subscriptions = None;
    context.session.watches = None;
    context.session.outbox = None;
    context.reply.protocol = Protocol::Resp2;
    context.reply.mute = Mute::Off;
    context.session.end_transaction();
    context.session.node = None;
    context.client.no_evict.store(false, Relaxed);
    context.client.set_name(b"");
    publish(context);
    context.reply.simple("RESET");
    Ok(Next::Reply)
}
