//! `ONCE`: a command that is carried out once, however often a client sends it.
//!
//! A client that gets no answer cannot know whether its command was carried out. With an id it may
//! send it again, also to the next leader of a group: the first answer is a part of the step that
//! the command is, in the log too, and a client that sends the id again gets that answer.
//!
//! The commands are those that `EXEC` runs, as far as they change keys, and `TXN` for several of
//! them. Ids of different users are apart, so nobody gets an answer that is another user's.

use super::atomic::{self, Batch};
use super::{Context, Failure, Next, Outcome, check_user, find, txn};
use crate::resp::{Arguments, spelt};
use std::sync::atomic::Ordering::Relaxed;
use tremula_store::{Asked, Hold, MOST_ID_BYTES};

const WRONG_ID: Failure = Failure::Text("ERR an id of ONCE has 1 to 256 bytes");
const RUNS: Failure =
    Failure::Text("TRYAGAIN the command with this id runs at the moment; ask again for its answer");

/// `ONCE id command [arg …]`.
pub(super) fn once(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let id = arguments.get(1);
    if !(1..=MOST_ID_BYTES).contains(&id.len()) {
        return Err(WRONG_ID);
    }
    let request = arguments.behind(2);
    let command = find(request)?;
    let server = context.server;
    let session = &mut *context.session;
    if !session.identity.may_do_everything(&server.users) {
        check_user(session, command, request)?;
    }
    server.denied.check(command)?;
    let is_txn = command.full_name == "txn";
    let why = match atomic::why_alone(command) {
        Some(why) if !is_txn => Some(why),
        _ if !command.flags.contains(&"write") => Some("it changes no keys"),
        _ => None,
    };
    if let Some(why) = why {
        let name = command.full_name;
        let text = format!("ERR Command not allowed with ONCE: '{name}', because {why}");
        return Err(Failure::Owned(text.into_bytes()));
    }
    let mut batch = Batch::default();
    batch.push(command, request.skip(0));
    if !is_txn && batch.is_long() && !context.is_apart {
        return Ok(Next::Apart);
    }
    // A name of a user has no zero byte.
    let user = context.client.user();
    let begun = match server.store.ask(&[&user[..], b"\0", id].concat()) {
        Asked::New(begun) => begun,
        Asked::Runs => return Err(RUNS),
        Asked::Answered(answer) => {
            server.stats.repeated.fetch_add(1, Relaxed);
            let spelt = spelt(&answer, context.reply.protocol);
            context.reply.encoded(&spelt);
            return Ok(Next::Reply);
        }
    };
    if is_txn {
        return txn::carry_out(context, request, Some(&begun));
    }
    let mut holds: Vec<Hold> = Vec::new();
    let changes = batch.reach(context.session.database, &mut holds);
    let whole = (&holds[..], changes);
    atomic::run_once(context, &begun, whole, |_| &batch, |_, _| ())
}
