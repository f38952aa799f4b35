//! `MULTI` and its kin, which are refused: there are no transactions yet.
//!
//! A client that sends a transaction as one pipeline does not wait for the answer to `MULTI`. If
//! only that were refused, the commands behind it would run one by one, and half a transaction
//! could be applied. So each of them is refused too, up to `EXEC` or `DISCARD`.

use super::table::Command;
use super::{Context, Failure, Next, Outcome};
use crate::clients::Client;
use crate::resp::Arguments;
use std::sync::atomic::Ordering::Relaxed;

/// Refuses a command within a transaction that is refused.
pub(super) fn check(client: &Client, command: Option<&Command>) -> Result<(), Failure> {
    const TAKEN: [&str; 5] = ["multi", "exec", "discard", "reset", "quit"];
    let is_taken = || command.is_some_and(|command| TAKEN.contains(&command.full_name));
    if !client.in_transaction.load(Relaxed) || is_taken() {
        return Ok(());
    }
    Err(Failure::Text(
        "ERR not executed, because MULTI was refused; EXEC or DISCARD ends this",
    ))
}

pub(super) fn multi(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    if context.client.in_transaction.swap(true, Relaxed) {
        return Err(Failure::Text("ERR MULTI calls can not be nested"));
    }
    Err(Failure::Text(
        "ERR MULTI is not supported yet; commands are refused until EXEC or DISCARD",
    ))
}

pub(super) fn exec(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    Err(if context.client.in_transaction.swap(false, Relaxed) {
        Failure::Text("EXECABORT Transaction discarded because of previous errors.")
    } else {
        Failure::Text("ERR EXEC without MULTI")
    })
}

pub(super) fn discard(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    if !context.client.in_transaction.swap(false, Relaxed) {
        return Err(Failure::Text("ERR DISCARD without MULTI"));
    }
    context.reply.ok();
    Ok(Next::Reply)
}

pub(super) fn watch(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let name = context.command.name.to_ascii_uppercase();
    Err(Failure::Owned(
        format!("ERR {name} is not supported yet, because there are no transactions").into_bytes(),
    ))
}
