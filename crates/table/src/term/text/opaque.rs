//! `#Pid<…>`, `#Port<…>`, `#Ref<…>`: the forms that this crate prints and Erlang cannot read.

use super::super::{Pid, Port, Reference, Term};
use super::error::{ParseError, ParseProblem};
use super::scan::Scanner;
use super::{number, word};

/// Reads an opaque form from its beginning.
pub(super) fn opaque(scanner: &mut Scanner<'_>) -> Result<Term, ParseError> {
    let start = scanner.position();
    let term = if scanner.take("#Pid<") {
        let node = word::name(scanner)?;
        let [id, serial, creation] = [part(scanner)?, part(scanner)?, part(scanner)?];
        Term::Pid(Pid::new(node, id, serial, creation))
    } else if scanner.take("#Port<") {
        let node = word::name(scanner)?;
        let id = part(scanner)?;
        Term::Port(Port::new(node, id, part(scanner)?))
    } else if scanner.take("#Ref<") {
        let node = word::name(scanner)?;
        let creation = part(scanner)?;
        let mut words = Vec::new();
        while words.len() < Reference::MAX_WORDS && scanner.peek_byte() == Some(b'.') {
            words.push(part(scanner)?);
        }
        match Reference::new(node, creation, &words) {
            Some(reference) => Term::Reference(reference),
            None => return Err(scanner.wanted(">")),
        }
    } else if scanner.take("#Fun<") {
        return Err(Scanner::error(start, ParseProblem::LocalFun));
    } else {
        scanner.take("#");
        return Err(scanner.wanted("{ or Pid<, Port<, Ref<"));
    };
    scanner.expect(">")?;
    Ok(term)
}

/// Reads a full stop and a number.
fn part<T: std::str::FromStr>(scanner: &mut Scanner<'_>) -> Result<T, ParseError> {
    scanner.expect(".")?;
    number::plain(scanner)
}
