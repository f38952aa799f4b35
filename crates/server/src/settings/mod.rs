//! One definition of settings: the flags of `tremula serve`.
//!
//! A setting comes from its flag, else from its variable of the environment, else from the file
//! that `--config` names, else it has its default. All four are made from the flag's definition:
//! the variable of `--max-term` is `TREMULA_MAX_TERM`, and the key in the file is `max-term`. So
//! there is one check of a value, one text of help, and one list of names.
//!
//! The file is TOML, a key a setting, without sections:
//!
//! ```toml
//! port = 6380
//! max-memory = "2gb"
//! protected-mode = true
//! disable = ["ets"]
//! ```

mod forms;
mod live;
mod parameter;
mod rewrite;
mod show;
mod values;

use clap::builder::OsStr;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
pub(crate) use live::Live;
pub(crate) use parameter::{Refused, all as parameters, for_file, is_alive, set};
pub(crate) use rewrite::rewrite;
pub use show::{show, table};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::{Table, Value};
pub use values::values;

/// The name of the subcommand that has settings.
const SERVE: &str = "serve";

/// The setting that names the file, which no file has.
const CONFIG: &str = "config";

/// How like a known name an unknown one is that was perhaps meant; 1 is the same.
const LIKE: f64 = 0.7;

/// Bytes of a file of settings.
const LONGEST: u64 = 1 << 20;

/// Why settings are refused.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The command line, or a variable of the environment, is wrong; or help was asked for.
    #[error("{0}")]
    CommandLine(Box<clap::Error>),
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is too long.
    #[error("{}: it has more than {LONGEST} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The file is no TOML.
    #[error("{}:{line}: {problem}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A key of the file is no setting, or its value is wrong.
    #[error("{}: {problem}", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the name of the setting.
        problem: String,
    },
}

impl From<clap::Error> for SettingsError {
    fn from(error: clap::Error) -> Self {
        Self::CommandLine(Box::new(error))
    }
}

/// The command with a variable of the environment for each setting of `serve`. A flag that is given
/// twice has its last value.
#[must_use]
pub fn with_variables(command: Command) -> Command {
    command.mut_subcommand(SERVE, |serve| {
        serve.args_override_self(true).mut_args(|argument| {
            let Some(variable) = variable(&argument) else {
                return argument;
            };
            argument.env(OsStr::from(variable)).hide_env(true)
        })
    })
}

/// The variable of a setting: `TREMULA_MAX_TERM` for `--max-term`.
fn variable(argument: &Arg) -> Option<String> {
    let name = argument.get_long()?;
    (!matches!(argument.get_action(), ArgAction::Help | ArgAction::Version))
        .then(|| format!("TREMULA_{}", name.replace('-', "_").to_ascii_uppercase()))
}

/// The settings among the arguments of a command.
fn settings(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && variable(argument).is_some())
        .filter(|argument| argument.get_long() != Some(CONFIG))
}

/// Parses a command line of `command`, which has [variables](with_variables). If it names a file of
/// settings, those of the file are added that are neither on the command line nor in the
/// environment.
///
/// # Errors
///
/// [`SettingsError`] names the file and the setting.
pub fn parse(command: &Command, given: &[OsString]) -> Result<ArgMatches, SettingsError> {
    let matches = command.clone().try_get_matches_from(given)?;
    let Some((name, serve)) = matches.subcommand() else {
        return Ok(matches);
    };
    let file = match name {
        SERVE => serve.get_one::<PathBuf>(CONFIG),
        _ => None,
    };
    let Some(file) = file else {
        return Ok(matches);
    };
    let definition = command
        .find_subcommand(SERVE)
        .expect("it has matched just now");
    let mut flags = Vec::new();
    for (id, flag) in flags_of_file(command, definition, file)? {
        let source = serve.value_source(&id);
        if !matches!(
            source,
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        ) {
            flags.push(flag);
        }
    }
    let at = given
        .iter()
        .position(|word| word == SERVE)
        .map_or(given.len(), |at| at + 1);
    let line = [&given[..at], &flags, &given[at..]].concat();
    Ok(command.clone().try_get_matches_from(line)?)
}

/// Checks a file of settings. Returns how many it has.
///
/// # Errors
///
/// [`SettingsError`] names the file and the setting.
pub fn check(command: &Command, file: &Path) -> Result<usize, SettingsError> {
    let definition = command
        .find_subcommand(SERVE)
        .expect("the command has settings");
    let flags = flags_of_file(command, definition, file)?;
    // Some settings need or exclude others.
    let mut line = vec![OsString::from(command.get_name()), OsString::from(SERVE)];
    let count = flags.len();
    line.extend(flags.into_iter().map(|(_, flag)| flag));
    let parsed = command.clone().try_get_matches_from(line);
    parsed.map_err(|error| wrong(file, &error))?;
    Ok(count)
}

/// The settings of a file as flags, each with the identifier of its argument. Every one is right by
/// itself.
fn flags_of_file(
    command: &Command,
    definition: &Command,
    file: &Path,
) -> Result<Vec<(String, OsString)>, SettingsError> {
    let mut flags = Vec::new();
    for (key, value) in read(file)? {
        let setting = |problem: String| SettingsError::Setting {
            path: file.to_owned(),
            problem,
        };
        let argument = settings(definition)
            .find(|argument| argument.get_long() == Some(&key))
            .ok_or_else(|| setting(unknown(definition, &key)))?;
        let flag = flag(argument, &value).map_err(|why| setting(format!("{key}: {why}")))?;
        let Some(flag) = flag else {
            continue;
        };
        let line = [command.get_name(), SERVE].map(OsString::from);
        let line = line.into_iter().chain([OsString::from(&flag)]);
        if let Err(error) = command.clone().try_get_matches_from(line)
            && error.kind() != clap::error::ErrorKind::MissingRequiredArgument
        {
            return Err(wrong(file, &error));
        }
        flags.push((argument.get_id().to_string(), OsString::from(flag)));
    }
    Ok(flags)
}

/// The error of a setting.
fn wrong(file: &Path, error: &clap::Error) -> SettingsError {
    SettingsError::Setting {
        path: file.to_owned(),
        problem: in_one_line(error),
    }
}

/// An error of a command line in one line, without the advice that follows it.
pub fn in_one_line(error: &impl ToString) -> String {
    let text = error.to_string();
    let words: Vec<_> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect();
    let line = words.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

fn read(file: &Path) -> Result<Table, SettingsError> {
    let path = || file.to_owned();
    let failed = |source| SettingsError::Io {
        path: file.to_owned(),
        source,
    };
    let length = fs::metadata(file).map_err(failed)?.len();
    if length > LONGEST {
        return Err(SettingsError::TooLong { path: path() });
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    text.parse().map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        SettingsError::Syntax {
            path: path(),
            line: 1 + text.as_bytes()[..start]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count(),
            problem: error.message().replace('\n', "; "),
        }
    })
}

fn unknown(definition: &Command, key: &str) -> String {
    let like = |name: &str| strsim::jaro(name, &key.replace('_', "-"));
    let nearest = settings(definition)
        .filter_map(Arg::get_long)
        .max_by(|one, other| like(one).total_cmp(&like(other)))
        .filter(|name| like(name) >= LIKE);
    match nearest {
        Some(name) => format!("there is no setting '{key}'; did you mean '{name}'?"),
        None => format!("there is no setting '{key}'; 'tremula serve --help' has them all"),
    }
}

/// The flag that gives a setting a value; `None` if it is a switch that is off, or an empty list.
fn flag(argument: &Arg, value: &Value) -> Result<Option<String>, String> {
    let name = argument.get_long().unwrap_or_default();
    if let (ArgAction::SetTrue, Value::Boolean(is_on)) = (argument.get_action(), value) {
        return Ok(is_on.then(|| format!("--{name}")));
    }
    let text = match value {
        Value::Array(values) => {
            if !matches!(argument.get_action(), ArgAction::Append) {
                return Err("it has one value, not a list".to_owned());
            }
            if values.is_empty() {
                return Ok(None);
            }
            let texts: Result<Vec<_>, _> = values.iter().map(scalar).collect();
            texts?.join(",")
        }
        value => scalar(value)?,
    };
    Ok(Some(format!("--{name}={text}")))
}

fn scalar(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(is_true) => is_true.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            return Err("it is a text, a number, or true or false".to_owned());
        }
    })
}

#[cfg(test)]
mod tests;
