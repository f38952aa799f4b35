//! Which arguments nobody may see: passwords, and what may hold them.

use crate::resp::Arguments;

/// Whether an argument of a command, which has this full name, is not shown. As in Redis: of `ACL
/// SETUSER` nothing is, because a rule may be a password that is misspelt. Of a wrong command too
/// much is hidden rather than too little.
pub(super) fn is_secret(command: &str, arguments: Arguments<'_>, at: usize) -> bool {
    let is = |at: usize, name: &[u8]| arguments.get(at).eq_ignore_ascii_case(name);
    match command {
        "auth" => at >= 1,
        // The two words behind AUTH, which is not the first word.
        "hello" => (2..at).rev().take(2).any(|before| is(before, b"auth")),
        "acl|setuser" => at >= 2,
        "acl|dryrun" => is_inner_secret(arguments, 3, at),
        "command|getkeys" | "command|getkeysandflags" => is_inner_secret(arguments, 2, at),
        // The value of this parameter, and of any that may be a misspelling of it.
        "config|set" => at >= 3 && at % 2 == 1 && !is_harmless(arguments.get(at - 1)),
        _ => false,
    }
}

/// The same for a command that begins at an argument of another.
fn is_inner_secret(arguments: Arguments<'_>, first: usize, at: usize) -> bool {
    let inner = arguments.behind(first);
    at >= first && inner.len() > 0 && is_secret(&name_of(inner), inner, at - first)
}

/// The name of a command that is an argument of another.
fn name_of(arguments: Arguments<'_>) -> String {
    let lower = |at: usize| String::from_utf8_lossy(arguments.get(at)).to_ascii_lowercase();
    match lower(0) {
        name if matches!(&name[..], "acl" | "command" | "config") && arguments.len() > 1 => {
            format!("{name}|{}", lower(1))
        }
        name => name,
    }
}

/// Whether a parameter of this name has a value that may be seen.
fn is_harmless(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let known = crate::settings::is_alive(&name);
    known && !matches!(&name[..], b"requirepass" | b"masterauth" | b"masteruser")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::with_line;

    /// The words of a command of which no one may see those that are in capitals.
    fn check(line: &str) {
        with_line(line, |arguments| {
            let name = name_of(arguments);
            for (at, word) in line.split(' ').enumerate() {
                let is_capital = word.contains("SECRET");
                let is_hidden = is_secret(&name, arguments, at);
                assert_eq!(is_hidden, is_capital, "{line}: {word}");
            }
        });
    }

    #[test]
    fn passwords_are_secret_and_nothing_else_is() {
        for line in [
            "auth SECRET",
            "auth SECRET SECRET",
            "auth SECRET SECRET SECRET",
            "hello 3 auth SECRET SECRET setname me",
            "hello 3 setname me auth SECRET SECRET",
            "hello 3 auth SECRET",
            "acl setuser SECRET SECRET",
            "acl setuser SECRET on SECRET"
                .replace(" on ", " SECRET ")
                .as_str(),
            "acl dryrun me auth SECRET",
            "acl dryrun me acl setuser SECRET SECRET",
            "acl dryrun",
            "command getkeys auth SECRET",
            "command getkeys acl setuser SECRET SECRET",
            "command getkeys get me",
            "command getkeysandflags hello 3 auth SECRET SECRET",
            "acl getuser me",
            "config set requirepass SECRET",
            "config set maxmemory 1 requirepass SECRET timeout 1",
            "config set requirepas SECRET",
            "config get requirepass",
            "set auth value",
            "get auth",
        ] {
            check(line);
        }
    }
}
