//! Commands for operators: `MONITOR`, `TIME`, `ROLE`, `WAIT`, `SHUTDOWN`.

use super::{Context, Failure, Next, Outcome, Waiting};
use crate::group::host_and_port;
use crate::resp::{Arguments, number};
use crate::watch;
use std::time::Duration;
use tremula_group::Standing;

/// Lets the connection see every command. It can go on sending commands, and its replies come
/// between the lines.
pub(super) fn monitor(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    if context.session.watching.is_none() {
        let outbox = context.outbox()?;
        context.session.watching = Some(context.server.monitors.watch(outbox));
    }
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn time(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let now = watch::now();
    context.reply.array(2);
    context.reply.bulk(now.as_secs().to_string().as_bytes());
    context
        .reply
        .bulk(now.subsec_micros().to_string().as_bytes());
    Ok(Next::Reply)
}

/// As Redis: a master without replicas, because the nodes of a group read its log and not each
/// other; or on a node that does not lead, where the leader is.
pub(super) fn role(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let report = context.server.group.as_ref().map(|group| group.report());
    let reply = &mut *context.reply;
    match report {
        Some(report) if report.standing != Standing::Leader => {
            let leader = report.leader.as_deref().unwrap_or_default();
            let (host, port) = host_and_port(leader);
            reply.array(5);
            reply.bulk(b"slave");
            reply.bulk(host.as_bytes());
            reply.integer(port.parse().unwrap_or(0));
            reply.bulk(match report.leader {
                Some(_) => b"connected",
                None => b"connect",
            });
            reply.integer(i64::try_from(report.last.get()).unwrap_or(i64::MAX));
        }
        report => {
            let offset = report.map_or(0, |report| report.confirmed.get());
            reply.array(3);
            reply.bulk(b"master");
            reply.integer(i64::try_from(offset).unwrap_or(i64::MAX));
            reply.array(0);
        }
    }
    Ok(Next::Reply)
}

/// There are no replicas, so that more than none is waited for in vain: for the time, and with 0
/// for ever, as in Redis.
pub(super) fn wait(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let replicas = number::parse(arguments.get(1)).ok_or(Failure::NOT_AN_INTEGER)?;
    let timeout = number::parse(arguments.get(2));
    let timeout = timeout.ok_or(Failure::Text(
        "ERR timeout is not an integer or out of range",
    ))?;
    let timeout = u64::try_from(timeout).map_err(|_| Failure::Text("ERR timeout is negative"))?;
    if replicas <= 0 {
        context.reply.integer(0);
        return Ok(Next::Reply);
    }
    Ok(Next::Wait(Waiting {
        time: (timeout > 0).then(|| Duration::from_millis(timeout)),
        is_blocked: true,
        answer: |reply| reply.integer(0),
    }))
}

/// Stops the server as SIGTERM does, which saves what is to be kept, whatever the command says.
pub(super) fn shutdown(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let (mut saves, mut others, mut aborts) = (None, false, false);
    for word in arguments.skip(1) {
        match &word.to_ascii_lowercase()[..] {
            b"nosave" if saves.is_none() => saves = Some(false),
            b"save" if saves.is_none() => saves = Some(true),
            b"now" | b"force" => others = true,
            b"abort" => aborts = true,
            _ => return Err(Failure::SYNTAX),
        }
    }
    if aborts && (saves.is_some() || others) {
        return Err(Failure::SYNTAX);
    }
    if aborts {
        // One that has begun cannot be called back: no command arrives after it.
        return Err(Failure::Text("ERR No shutdown in progress."));
    }
    if saves == Some(true) && context.server.persistence.is_none() {
        return Err(Failure::Text(
            "ERR nothing can be saved, because keys are only in memory; SHUTDOWN NOSAVE stops the \
             server, and the keys are lost",
        ));
    }
    tracing::warn!("{} stops the server by SHUTDOWN", context.client.who());
    context.server.stop.notify_one();
    Ok(Next::Close)
}
