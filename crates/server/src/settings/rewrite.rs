//! `CONFIG REWRITE`: the file of settings with the values of now.

use super::{LONGEST, SERVE, check, parameter, with_variables};
use crate::cli::ServeArgs;
use crate::server::Shared;
use clap::{Args, Command};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use toml::{Table, Value};

/// Writes the settings that have changed since the file was read, or written last, into it. Lines
/// of other settings, and comments, stay as they are.
///
/// # Errors
///
/// The file cannot be read or written, or a setting has several lines. It then stays as it is.
pub(crate) fn rewrite(server: &Shared, file: &Path) -> io::Result<()> {
    let now: BTreeMap<_, _> = parameter::for_file(server).into_iter().collect();
    let mut written = server.written();
    let changed = now
        .iter()
        .filter(|(flag, value)| written.get(*flag) != Some(value));
    let changed: Vec<_> = changed.map(|(flag, value)| (*flag, &value[..])).collect();
    if fs::metadata(file)?.len() > LONGEST {
        return Err(io::Error::other(format!(
            "it has more than {LONGEST} bytes"
        )));
    }
    let text = fs::read_to_string(file)?;
    let text = with(&text, &changed).map_err(io::Error::other)?;
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // Before it takes the file's place.
    let mut new = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    new.as_file()
        .set_permissions(fs::metadata(file)?.permissions())?;
    // What can be set alive may be more than a start takes.
    check(&command(), new.path()).map_err(io::Error::other)?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    *written = now;
    Ok(())
}

/// The command whose settings the file has.
fn command() -> Command {
    let serve = ServeArgs::augment_args(Command::new(SERVE));
    with_variables(Command::new("tremula").subcommand(serve))
}

/// A text of settings with other values for some of them.
fn with(text: &str, changed: &[(&str, &str)]) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (flag, value) in changed {
        let line = format!("{flag} = {}", literal(value));
        let is_its = |line: &String| key(line) == Some(flag);
        match lines.iter().position(is_its) {
            Some(at) => lines[at] = line,
            None => lines.push(line),
        }
    }
    let new = lines.join("\n") + "\n";
    // A value in several lines would be cut.
    let problem = |problem: &str| format!("{problem}, so the file stays as it is");
    let parsed: Table = new
        .parse()
        .map_err(|_| problem("a setting has several lines"))?;
    let before: Table = text.parse().map_err(|_| problem("it is no TOML"))?;
    let expected = |key: &str| changed.iter().find(|(flag, _)| *flag == key);
    let is_right = parsed.iter().all(|(key, value)| match expected(key) {
        Some((_, text)) => *value == literal(text),
        None => before.get(key) == Some(value),
    });
    if is_right && before.keys().all(|key| parsed.contains_key(key)) {
        return Ok(new);
    }
    Err(problem("a setting has several lines"))
}

/// The key of a line that gives a setting a value.
fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    key.chars().all(plain).then_some(key)
}

fn literal(value: &str) -> Value {
    value
        .parse::<i64>()
        .map_or_else(|_| Value::from(value), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_settings_replace_their_lines_and_nothing_else_changes() {
        let text = "# mine\nport = 7000 # here\n\ntimeout=5\n# timeout = 9\n";
        let changed = [("timeout", "7"), ("max-memory-policy", "allkeys-lru")];
        let expected = "# mine\nport = 7000 # here\n\ntimeout = 7\n# timeout = 9\nmax-memory-policy = \
             \"allkeys-lru\"\n";
        assert_eq!(with(text, &changed).as_deref(), Ok(expected));
        assert_eq!(with(expected, &changed).as_deref(), Ok(expected));
        assert_eq!(with("", &[]).as_deref(), Ok("\n"));
        for wrong in [
            "log-file = \"\"\"\ntimeout = 5\n\"\"\"\n",
            "disable = [\n  \"ets\",\n]\ntimeout = \"\"\"\n5\"\"\"\n",
            "timeout = \n",
        ] {
            assert!(with(wrong, &changed).is_err(), "{wrong}");
        }
    }
}
