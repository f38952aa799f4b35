//! The settings with which a server has begun, as `CONFIG GET` shows them.

use super::{SERVE, settings};
use crate::limits::Bytes;
use clap::{ArgMatches, Command};

/// The names and values of all settings of `serve`, which `command` has. Numbers of bytes are
/// digits and switches are `yes` and `no`, as in Redis.
#[must_use]
pub fn values(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let (Some(definition), Some((SERVE, matches))) =
        (command.find_subcommand(SERVE), matches.subcommand())
    else {
        return Vec::new();
    };
    let value = |argument: &clap::Arg| {
        let texts = matches
            .get_raw(argument.get_id().as_str())
            .into_iter()
            .flatten();
        let texts: Vec<_> = texts
            .map(|text| text.to_string_lossy().into_owned())
            .collect();
        let text = texts.join(" ");
        let is = |name: &str| {
            let names = argument.get_value_names().unwrap_or_default();
            names.iter().any(|known| known.as_str() == name)
        };
        if is("BYTES") {
            let bytes = text.parse::<Bytes>();
            return bytes.map_or(text, |bytes| bytes.0.to_string());
        }
        match &text[..] {
            "true" if is("YES|NO") => "yes".to_owned(),
            "false" if is("YES|NO") => "no".to_owned(),
            _ => text,
        }
    };
    settings(definition)
        .map(|argument| {
            (
                argument.get_long().unwrap_or_default().to_owned(),
                value(argument),
            )
        })
        .collect()
}
