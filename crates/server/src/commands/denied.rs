//! The commands that this server refuses: `--disable` and `--deny-commands`.

use super::Failure;
use super::table::{self, Command};

/// The full name of a command or subcommand, from text in upper or lower case.
pub(crate) fn full_name(text: &str) -> Option<&'static str> {
    table::lookup_full(text.as_bytes()).map(|command| command.full_name)
}

/// The refused commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denied {
    /// Sorted full names. With a command, all its subcommands are here.
    names: Vec<&'static str>,
}

impl Denied {
    /// Refuses the commands of some groups, and some commands or subcommands by their full names.
    pub(crate) fn new(groups: &[String], names: &[String]) -> Self {
        let is_named = |name: &str| names.iter().any(|named| named == name);
        let mut names: Vec<_> = table::all()
            .filter(|command| {
                let container = command.full_name.split('|').next().unwrap_or_default();
                groups.iter().any(|group| group == command.group)
                    || is_named(command.full_name)
                    || is_named(container)
            })
            .map(|command| command.full_name)
            .collect();
        names.sort_unstable();
        Self { names }
    }

    /// Whether a command may run.
    pub(crate) fn check(&self, command: &Command) -> Result<(), Failure> {
        if self.names.is_empty() || self.names.binary_search(&command.full_name).is_err() {
            return Ok(());
        }
        let name = command.full_name;
        Err(Failure::Owned(
            format!("NOPERM this server is started without the command '{name}'").into_bytes(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_denied(denied: &Denied, name: &str) -> bool {
        let command = table::lookup_full(name.as_bytes()).expect("a command");
        denied.check(command).is_err()
    }

    #[test]
    fn groups_commands_and_subcommands_are_refused_and_nothing_else() {
        let nothing = Denied::default();
        assert!(table::all().all(|command| nothing.check(command).is_ok()));
        let some = Denied::new(
            &["mailbox".to_owned()],
            &[
                "keys".to_owned(),
                "client|list".to_owned(),
                "config".to_owned(),
            ],
        );
        for name in ["mailbox.new", "keys", "client|list", "config", "config|get"] {
            assert!(is_denied(&some, name), "{name}");
        }
        for name in ["ets.new", "get", "client", "client|id", "command"] {
            assert!(!is_denied(&some, name), "{name}");
        }
    }
}
