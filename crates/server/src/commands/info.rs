//! `INFO`: the figures of the server.

use super::{Context, Next, Outcome};
use crate::apart::MANY;
use crate::figures::{Reading, Section, write_info};
use crate::resp::Arguments;

/// Clients and mailboxes from which it takes longer to sum what they hold than to call another
/// thread: each takes some tens of nanoseconds.
const SUMMED: usize = 8 * MANY;

pub(super) fn info(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let server = context.server;
    let summed = server.clients.count() + server.store.mailboxes().count();
    if summed >= SUMMED && !context.is_apart {
        return Ok(Next::Apart);
    }
    let is_asked = |section: Section| {
        let asks = |word: &[u8]| {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            is(section.name())
                || is("all")
                || is("everything")
                || (is("default") && section.is_default())
        };
        arguments.skip(1).any(asks) || (arguments.len() == 1 && section.is_default())
    };
    let reading = Reading::new(context.server, Some(context.client));
    let mut text = String::new();
    for section in Section::ALL
        .into_iter()
        .filter(|section| is_asked(*section))
    {
        if !text.is_empty() {
            text += "\r\n";
        }
        // Writing to a string does not fail.
        let _ = write_info(section, &reading, &mut text);
    }
    context.reply.text(&text);
    Ok(Next::Reply)
}
