//! Settings as they are, and as a table for the README.

use super::{SERVE, SettingsError, parse, settings, variable};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::fmt::Write;

/// The settings that `serve` has with these flags, as a file has them, each with its help and with
/// where it comes from. What is as the default says is a comment.
///
/// # Errors
///
/// [`SettingsError`], as [`parse`].
pub fn show(command: &Command, flags: &[OsString]) -> Result<String, SettingsError> {
    let line = [command.get_name(), SERVE].map(OsString::from);
    let matches = parse(command, &[&line, flags].concat())?;
    let (Some(definition), Some((_, matches))) =
        (command.find_subcommand(SERVE), matches.subcommand())
    else {
        return Ok(String::new());
    };
    let mut text = String::new();
    for argument in settings(definition) {
        let name = argument.get_long().unwrap_or_default();
        let values: Vec<_> = matches
            .get_raw(argument.get_id().as_str())
            .into_iter()
            .flatten()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let source = match matches.value_source(argument.get_id().as_str()) {
            Some(ValueSource::CommandLine) => "given",
            Some(ValueSource::EnvVariable) => "environment",
            _ => "default",
        };
        let comment = if source == "default" { "# " } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "# {}\n{comment}{name} = ", help(argument));
        let _ = match (&values[..], argument.get_action()) {
            (_, ArgAction::Append) => {
                let values: Vec<_> = values.iter().map(|value| literal(value)).collect();
                writeln!(text, "[{}]  # {source}", values.join(", "))
            }
            ([], _) => writeln!(text, "  # not set"),
            ([value, ..], _) => writeln!(text, "{}  # {source}", literal(value)),
        };
    }
    Ok(text)
}

/// A value as TOML has it.
fn literal(value: &str) -> String {
    let is_plain = value
        .parse::<i64>()
        .is_ok_and(|number| number.to_string() == value)
        || ["true", "false"].contains(&value);
    if is_plain {
        value.to_owned()
    } else {
        toml::Value::from(value).to_string()
    }
}

fn help(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string);
    help.unwrap_or_default().replace('\n', " ")
}

/// The settings as a Markdown table, for the README.
#[must_use]
pub fn table(command: &Command) -> String {
    let definition = command.find_subcommand(SERVE);
    let mut text = String::from("| setting | variable | default | meaning |\n|---|---|---|---|\n");
    for argument in definition.into_iter().flat_map(settings) {
        let name = argument.get_long().unwrap_or_default();
        let defaults: Vec<_> = argument
            .get_default_values()
            .iter()
            .filter(|value| !value.is_empty())
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        let _ = writeln!(
            text,
            "| `{name}` | `{}` | {} | {} |",
            variable(argument).unwrap_or_default(),
            defaults.join(", "),
            help(argument).replace('|', "\\|"),
        );
    }
    text
}
