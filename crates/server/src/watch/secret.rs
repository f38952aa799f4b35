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
        "acl|dryrun" => {
            let inner = arguments.behind(3.min(arguments.len()));
            at >= 3 && inner.len() > 0 && is_secret(&name_of(inner), inner, at - 3)
        }
        // The value of this parameter, and of any that may be a misspelling of it.
        "config|set" => at >= 3 && at % 2 == 1 && !is_harmless(arguments.get(at - 1)),
        _ => false,
    }
}

/// The name of a command that is an argument of another.
fn name_of(arguments: Arguments<'_>) -> String {
    let lower = |at: usize| String::from_utf8_lossy(arguments.get(at)).to_ascii_lowercase();
    match lower(0) {
        name if matches!(&name[..], "acl" | "config") && arguments.len() > 1 => {
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
    use crate::limits::Limits;
    use crate::resp::RequestParser;

    /// The words of a command of which no one may see those that are in capitals.
    fn check(line: &str) {
        let mut parser = RequestParser::new(&Limits::default());
        let request = format!("{line}\r\n").into_bytes();
        parser
            .parse(&request)
            .expect("a request")
            .expect("a whole one");
        let arguments = parser.arguments(&request);
        let name = name_of(arguments);
        for (at, word) in line.split(' ').enumerate() {
            let is_capital = word.contains("SECRET");
            assert_eq!(
                is_secret(&name, arguments, at),
                is_capital,
                "{line}: {word}"
            );
        }
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
