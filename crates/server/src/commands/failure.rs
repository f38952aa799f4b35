//! Why a command fails, in Redis's words.

use super::Command;
use crate::resp::Arguments;
use crate::users::Reason;
use std::borrow::Cow;
use std::time::Duration;
use tremula_log::Refused;
use tremula_store::Unlogged;

/// A command's failure: the text of its error reply, with its code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A fixed text.
    Text(&'static str),
    /// A text that repeats what the client sent, which need not be UTF-8.
    Owned(Vec<u8>),
    /// A wrong password, or a user who is not known or off. The error waits for this time.
    WrongPassword(Duration),
    /// The user may not run the command, or not with this key, table, mailbox or channel.
    Denied(Reason, Vec<u8>),
    /// The leader of the group would do it. The text of the error, if it is not asked.
    Elsewhere(Vec<u8>),
    /// A browser's request, made by a page that attacks a Redis port. It gets no answer.
    Attack,
    /// No failure: the command may take long, has changed nothing yet, and begins again on the
    /// thread apart.
    Long,
}

/// How many bytes of a client's input an error repeats.
const REPEATED: usize = 128;

/// As Redis calls it when it cannot write its log.
impl From<Unlogged> for Failure {
    fn from(unlogged: Unlogged) -> Self {
        let code = match &unlogged.0 {
            Refused::NotLeading => "TRYAGAIN",
            _ => "MISCONF",
        };
        Self::Owned(format!("{code} {unlogged}").into_bytes())
    }
}

impl Failure {
    pub(crate) const OUT_OF_MEMORY: Self =
        Self::Text("OOM command not allowed when used memory > 'maxmemory'.");
    pub(crate) const SYNTAX: Self = Self::Text("ERR syntax error");
    pub(crate) const NOT_AN_INTEGER: Self =
        Self::Text("ERR value is not an integer or out of range");
    pub(crate) const NOT_A_FLOAT: Self = Self::Text("ERR value is not a valid float");
    pub(crate) const NAN_OR_INFINITY: Self =
        Self::Text("ERR increment would produce NaN or Infinity");
    pub(crate) const OVERFLOW: Self = Self::Text("ERR increment or decrement would overflow");
    pub(crate) const DECREMENT_OVERFLOW: Self = Self::Text("ERR decrement would overflow");
    pub(crate) const OFFSET: Self = Self::Text("ERR offset is out of range");
    pub(crate) const TOO_LONG: Self =
        Self::Text("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    pub(crate) const CURSOR: Self = Self::Text("ERR invalid cursor");
    pub(crate) const DATABASE: Self = Self::Text("ERR DB index is out of range");
    pub(crate) const NO_SUCH_KEY: Self = Self::Text("ERR no such key");
    pub(crate) const SAME_KEY: Self = Self::Text("ERR source and destination objects are the same");
    pub(crate) const BEYOND_INT: Self =
        Self::Text("ERR value is out of range, value must between -2147483648 and 2147483647");
    pub(crate) const CLIENT_NAME: Self =
        Self::Text("ERR Client names cannot contain spaces, newlines or special characters.");
    pub(crate) const CLIENT_ID: Self = Self::Text("ERR Invalid client ID");
    pub(crate) const WRONG_PASSWORD: Self =
        Self::Text("WRONGPASS invalid username-password pair or user is disabled.");
    pub(crate) const NO_PASSWORD: Self = Self::Text(
        "ERR AUTH <password> called without any password configured for the default user. \
         Are you sure your configuration is correct?",
    );
    pub(crate) const NO_AUTH: Self = Self::Text("NOAUTH Authentication required.");
    pub(crate) const NO_AUTH_HELLO: Self = Self::Text(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
         AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
         protocol version at the same time",
    );
    pub(crate) const PROTOCOL_NUMBER: Self =
        Self::Text("ERR Protocol version is not an integer or out of range");
    pub(crate) const PROTOCOL: Self = Self::Text("NOPROTO unsupported protocol version");
    pub(crate) const STOPPING: Self = Self::Text("ERR the server is stopping");
    pub(crate) const PATTERN: Self =
        Self::Text("ERR the pattern takes more steps than a match may");
    pub(crate) const BOUND: Self = Self::Text("ERR min or max not valid string range item");

    pub(crate) fn text(self) -> Cow<'static, [u8]> {
        match self {
            Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            Self::Owned(text) | Self::Elsewhere(text) => Cow::Owned(text),
            Self::Denied(reason, object) => denied(reason, &object).text(),
            Self::WrongPassword(_) => Self::WRONG_PASSWORD.text(),
            Self::Attack | Self::Long => Cow::Borrowed(b"ERR"),
        }
    }

    pub(crate) fn arity(command: &Command) -> Self {
        let name = command.full_name;
        Self::Owned(format!("ERR wrong number of arguments for '{name}' command").into_bytes())
    }

    pub(crate) fn unknown_command(arguments: Arguments<'_>) -> Self {
        let name = arguments.get(0);
        if [&b"host:"[..], b"post"]
            .iter()
            .any(|http| name.eq_ignore_ascii_case(http))
        {
            return Self::Attack;
        }
        let mut repeated = Vec::new();
        for argument in arguments.skip(1) {
            let room = REPEATED.saturating_sub(repeated.len());
            if room == 0 {
                break;
            }
            repeated.push(b'\'');
            repeated.extend_from_slice(c_string(argument, room));
            repeated.extend_from_slice(b"' ");
        }
        Self::Owned(
            [
                b"ERR unknown command '",
                c_string(name, REPEATED),
                b"', with args beginning with: ",
                &repeated,
            ]
            .concat(),
        )
    }

    pub(crate) fn unknown_subcommand(command: &Command, name: &[u8]) -> Self {
        let container = command.name.to_ascii_uppercase();
        Self::quoting(
            "ERR unknown subcommand '",
            name,
            &format!("'. Try {container} HELP."),
        )
    }

    /// Too many arguments for a subcommand that takes a varying number.
    pub(crate) fn subcommand_arity(arguments: Arguments<'_>) -> Self {
        let command = String::from_utf8_lossy(arguments.get(0)).to_ascii_uppercase();
        Self::quoting(
            "ERR unknown subcommand or wrong number of arguments for '",
            arguments.get(1),
            &format!("'. Try {command} HELP."),
        )
    }

    /// An error that repeats one argument.
    pub(crate) fn quoting(before: &str, argument: &[u8], after: &str) -> Self {
        Self::Owned(
            [
                before.as_bytes(),
                c_string(argument, REPEATED),
                after.as_bytes(),
            ]
            .concat(),
        )
    }
}

/// What a client learns of a refusal. The texts for commands and keys are Redis's.
fn denied(reason: Reason, object: &[u8]) -> Failure {
    let before = match reason {
        Reason::Auth => return Failure::WRONG_PASSWORD,
        Reason::Key => {
            return Failure::Text(
                "NOPERM this user has no permissions to access one of the keys used as arguments",
            );
        }
        Reason::Channel => {
            return Failure::Text(
                "NOPERM this user has no permissions to access one of the channels used as arguments",
            );
        }
        Reason::Command => "NOPERM this user has no permissions to run the '",
        Reason::Table => "NOPERM this user has no permissions to access the table '",
        Reason::Mailbox => "NOPERM this user has no permissions to access the mailbox '",
    };
    let after = if reason == Reason::Command {
        "' command"
    } else {
        "'"
    };
    Failure::quoting(before, object, after)
}

/// The part of a string that C prints with a precision: at most its bytes, none behind a zero.
fn c_string(bytes: &[u8], precision: usize) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(precision)];
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}
