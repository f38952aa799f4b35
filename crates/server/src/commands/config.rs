//! `CONFIG …`: the settings of the server.

use super::reach::NOTHING_OF_USERS;
use super::rows::{ADMIN, ANY_TIME, NOTHING};
use super::table::Command;
use super::{Context, Failure, Next, Outcome, acl, apart, describe};
use crate::figures::Figures;
use crate::glob;
use crate::group::{Change, is_common};
use crate::resp::Arguments;
use crate::settings::{self, Refused};

/// The subcommands of `CONFIG`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new("get", -3, get, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("config|get")
        .docs(
            "server",
            "2.0.0",
            NOTHING,
            "CONFIG GET pattern [pattern ...]",
            "Settings and their values",
        ),
    Command::new("set", -4, set, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("config|set")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .docs(
            "server",
            "2.0.0",
            NOTHING,
            "CONFIG SET parameter value [parameter value ...]",
            "Change settings, all of them or none",
        ),
    Command::new("rewrite", 2, rewrite, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("config|rewrite")
        .docs(
            "server",
            "2.8.0",
            NOTHING,
            "CONFIG REWRITE",
            "Write the changed settings into the file of settings",
        ),
    Command::new("resetstat", 2, resetstat, ADMIN, &[], NOTHING_OF_USERS)
        .full_name("config|resetstat")
        .docs(
            "server",
            "2.0.0",
            NOTHING,
            "CONFIG RESETSTAT",
            "Let the counters of `INFO` begin at 0",
        ),
    Command::new("help", 2, describe::help, ANY_TIME, &[], NOTHING_OF_USERS)
        .full_name("config|help")
        .docs(
            "server",
            "5.0.0",
            NOTHING,
            "CONFIG HELP",
            "What the subcommands do",
        ),
];

fn get(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let parameters = settings::parameters(context.server);
    let mut found: Vec<(&[u8], &str)> = Vec::new();
    for pattern in arguments.skip(2) {
        // A plain name comes back as the client wrote it, not as it is written here.
        let is_plain = !pattern.iter().any(|byte| b"*?[".contains(byte));
        let lower = pattern.to_ascii_lowercase();
        for (name, value) in &parameters {
            let known = name.as_bytes();
            let matches = if is_plain {
                lower == known
            } else {
                glob::matches(&lower, known).map_err(|_| Failure::PATTERN)?
            };
            let is_there = |(name, _): &(&[u8], _)| name.eq_ignore_ascii_case(known);
            if matches && !found.iter().any(is_there) {
                found.push((if is_plain { pattern } else { known }, value));
            }
        }
    }
    context.reply.map(found.len());
    for (name, value) in found {
        context.reply.bulk(name);
        context.reply.bulk(value.as_bytes());
    }
    Ok(Next::Reply)
}

fn set(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if !arguments.len().is_multiple_of(2) {
        return Err(Failure::SYNTAX);
    }
    // Another policy of evictions forgets what every key was used for.
    if !context.is_apart {
        return Ok(Next::Apart);
    }
    let names = || (2..arguments.len()).step_by(2).map(|at| arguments.get(at));
    let change = match names().any(is_common) {
        true => Some(Change::begin(context.server)?),
        false => None,
    };
    let pairs = (2..arguments.len()).step_by(2);
    let pairs = pairs.map(|at| (arguments.get(at), arguments.get(at + 1)));
    settings::set(context.server, pairs).map_err(|refused| match refused {
        Refused::Unknown(name) => Failure::quoting(
            "ERR Unknown option or number of arguments for CONFIG SET - '",
            &name,
            "'",
        ),
        Refused::Parameter(name, why) => Failure::quoting(
            "ERR CONFIG SET failed (possibly related to argument '",
            &name,
            &format!("') - {why}"),
        ),
    })?;
    if let Some(change) = change {
        for name in names() {
            acl::note_change(context.session, change.setting(name)?);
        }
    }
    context.reply.ok();
    Ok(Next::Reply)
}

fn rewrite(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let Some(file) = context.server.config_file.clone() else {
        return Err(Failure::Text(
            "ERR The server is running without a config file",
        ));
    };
    let write = move |server: &_| settings::rewrite(server, &file);
    apart(context, arguments, write, |context, done| {
        let failed = |error| Failure::Owned(format!("ERR Rewriting config file: {error}").into());
        done.map_err(failed)?;
        context.reply.ok();
        Ok(())
    })
}

fn resetstat(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    Figures::reset(context.server);
    context.reply.ok();
    Ok(Next::Reply)
}
