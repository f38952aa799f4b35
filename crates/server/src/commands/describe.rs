//! Descriptions of commands from their table, for clients (`COMMAND`, `… HELP`) and for readers.

use super::reach::Keys;
use super::rows::COMMANDS;
use super::table::{self, CATEGORIES, Command};
use super::{Context, Failure, Next, Outcome, named};
use crate::glob;
use crate::resp::{Arguments, Reply};
use std::fmt::Write;

pub(super) fn command(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    info_of(context.reply, COMMANDS.iter().map(Some));
    Ok(Next::Reply)
}

pub(super) fn command_count(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    context.reply.count(COMMANDS.len());
    Ok(Next::Reply)
}

pub(super) fn command_info(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    if arguments.len() == 2 {
        info_of(context.reply, COMMANDS.iter().map(Some));
    } else {
        info_of(context.reply, arguments.skip(2).map(table::lookup_full));
    }
    Ok(Next::Reply)
}

fn info_of(reply: &mut Reply, commands: impl ExactSizeIterator<Item = Option<&'static Command>>) {
    reply.array(commands.len());
    for command in commands {
        match command {
            Some(command) => info(reply, command),
            None => reply.null(),
        }
    }
}

fn info(reply: &mut Reply, command: &Command) {
    reply.array(10);
    reply.bulk(command.full_name.as_bytes());
    reply.integer(command.arity);
    simple_set(reply, command.flags.iter().copied());
    // As if all of them were one list, in the format before Redis 7.
    let keys = command.keys();
    let (first, last) = (keys.first(), keys.last());
    reply.integer(first.map_or(0, |keys| keys.first));
    reply.integer(last.map_or(0, |keys| keys.last));
    reply.integer(first.map_or(0, |keys| keys.step));
    simple_set(reply, command.categories());
    reply.set(command.tips.len());
    for tip in command.tips {
        reply.bulk(tip.as_bytes());
    }
    reply.set(keys.len());
    for keys in keys {
        key_specification(reply, keys);
    }
    reply.set(command.subcommands.len());
    for subcommand in command.subcommands {
        info(reply, subcommand);
    }
}

/// The same as first, last and step, in the format of Redis 7.
fn key_specification(reply: &mut Reply, keys: &Keys) {
    reply.map(3 + usize::from(!keys.notes.is_empty()));
    if !keys.notes.is_empty() {
        reply.bulk(b"notes");
        reply.bulk(keys.notes.as_bytes());
    }
    reply.bulk(b"flags");
    simple_set(reply, keys.flags.iter().copied());
    reply.bulk(b"begin_search");
    specification(reply, "index", &[("index", keys.first)]);
    reply.bulk(b"find_keys");
    // The last key is counted from the first one here, unless it is counted from the end.
    let last = if keys.last < 0 {
        keys.last
    } else {
        keys.last - keys.first
    };
    specification(
        reply,
        "range",
        &[("lastkey", last), ("keystep", keys.step), ("limit", 0)],
    );
}

fn specification(reply: &mut Reply, kind: &str, fields: &[(&str, i64)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}

fn simple_set(reply: &mut Reply, items: impl Iterator<Item = &'static str> + Clone) {
    reply.set(items.clone().count());
    for item in items {
        reply.simple(item);
    }
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`.
pub(super) fn command_list(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let mut names: Vec<_> = table::all().collect();
    if arguments.len() > 2 {
        let is = |at, word: &str| arguments.get(at).eq_ignore_ascii_case(word.as_bytes());
        if arguments.len() != 5 || !is(2, "filterby") {
            return Err(Failure::SYNTAX);
        }
        let wanted = arguments.get(4).to_ascii_lowercase();
        if is(3, "module") {
            // There are no modules.
            names.clear();
        } else if is(3, "aclcat") {
            let mut known = CATEGORIES.iter();
            match known.find(|known| known.as_bytes()[1..] == wanted) {
                Some(category) => names.retain(|command| command.is_in(category)),
                None => names.clear(),
            }
        } else if is(3, "pattern") {
            let mut failed = false;
            names.retain(|command| {
                let matches = glob::matches(&wanted, command.full_name.as_bytes());
                failed |= matches.is_err();
                matches.unwrap_or(false)
            });
            if failed {
                return Err(Failure::PATTERN);
            }
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    context.reply.array(names.len());
    for command in names {
        context.reply.bulk(command.full_name.as_bytes());
    }
    Ok(Next::Reply)
}

/// `COMMAND GETKEYS command [arg ...]`.
pub(super) fn getkeys(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let request = arguments.behind(2);
    let keys = keys_of(request)?;
    let count = keys.iter().map(|keys| keys.of(request).count()).sum();
    context.reply.array(count);
    for key in keys.iter().flat_map(|keys| keys.of(request)) {
        context.reply.bulk(key);
    }
    Ok(Next::Reply)
}

/// `COMMAND GETKEYSANDFLAGS command [arg ...]`.
pub(super) fn getkeysandflags(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let request = arguments.behind(2);
    let keys = keys_of(request)?;
    let count = keys.iter().map(|keys| keys.of(request).count()).sum();
    context.reply.array(count);
    for keys in keys {
        let flags = keys.flags_for(request);
        for key in keys.of(request) {
            context.reply.array(2);
            context.reply.bulk(key);
            simple_set(context.reply, flags.iter().copied());
        }
    }
    Ok(Next::Reply)
}

/// Where the keys of a request are.
fn keys_of(request: Arguments<'_>) -> Result<&'static [Keys], Failure> {
    let command = named(request).map_err(|_| Failure::Text("ERR Invalid command specified"))?;
    if command.keys().is_empty() {
        return Err(Failure::Text("ERR The command has no key arguments"));
    }
    if !command.takes(request.len()) {
        return Err(Failure::Text(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    Ok(command.keys())
}

pub(super) fn command_docs(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let commands: Vec<_> = if arguments.len() == 2 {
        COMMANDS.iter().collect()
    } else {
        arguments.skip(2).filter_map(table::lookup_full).collect()
    };
    docs_of(context.reply, &commands);
    Ok(Next::Reply)
}

fn docs_of(reply: &mut Reply, commands: &[&Command]) {
    reply.map(commands.len());
    for command in commands {
        reply.bulk(command.full_name.as_bytes());
        reply.map(5 + usize::from(!command.subcommands.is_empty()));
        for (name, text) in [
            ("summary", command.summary),
            ("since", command.since),
            ("group", command.group),
            ("complexity", command.complexity),
            ("syntax", command.syntax),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
        if !command.subcommands.is_empty() {
            reply.bulk(b"subcommands");
            docs_of(reply, &command.subcommands.iter().collect::<Vec<_>>());
        }
    }
}

/// The `HELP` of a command with subcommands.
pub(super) fn help(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let container = table::lookup(arguments.get(0)).unwrap_or(context.command);
    let name = container.name.to_ascii_uppercase();
    let lines = container.subcommands.iter().map(|subcommand| {
        let syntax = subcommand.syntax;
        let short = syntax.split_once(' ').map_or(syntax, |(_, rest)| rest);
        (short, format!("{}.", subcommand.summary))
    });
    help_lines(context.reply, &name, lines);
    Ok(Next::Reply)
}

/// What the subcommands of a command are, and what they do.
pub(super) fn help_lines<T: std::fmt::Display>(
    reply: &mut Reply,
    name: &str,
    lines: impl ExactSizeIterator<Item = (&'static str, T)>,
) {
    reply.array(1 + 2 * lines.len());
    reply.simple(&format!(
        "{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    ));
    for (syntax, summary) in lines {
        reply.simple(syntax);
        reply.simple(&format!("    {summary}"));
    }
}

/// The commands as a Markdown table, for the README.
#[must_use]
pub fn command_table() -> String {
    let mut text = String::from("| command | what it does | complexity |\n|---|---|---|\n");
    for command in COMMANDS {
        let rows = match command.subcommands {
            [] => std::slice::from_ref(command),
            subcommands => subcommands,
        };
        for row in rows {
            let syntax = row.syntax.replace('|', "\\|");
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| `{syntax}` | {} | {} |",
                row.summary, row.complexity
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_readme_holds_the_table_of_commands() {
        let table = super::command_table();
        assert!(
            include_str!("../../README.md").contains(&table),
            "put this into crates/server/README.md:\n{table}"
        );
    }
}
