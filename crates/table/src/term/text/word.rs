//! Words: atoms without quotes, and functions by name.

use super::super::{Atom, Export, Term};
use super::error::{ParseError, ParseProblem};
use super::scan::Scanner;
use super::{atom, number, quoted};

/// Reads an atom without quotes, or a `fun`.
pub(super) fn word(scanner: &mut Scanner<'_>) -> Result<Term, ParseError> {
    let start = scanner.position();
    let text = scanner.take_while(atom::in_word);
    if text == "fun" {
        return export(scanner, start);
    }
    if atom::is_reserved(text) {
        let word = text.to_owned();
        return Err(Scanner::error(start, ParseProblem::Reserved(word)));
    }
    scanner.atom(start, text).map(Term::Atom)
}

/// The error about a variable, which no term contains.
pub(super) fn variable(scanner: &mut Scanner<'_>) -> ParseError {
    let start = scanner.position();
    let name = scanner.take_while(atom::in_word).to_owned();
    Scanner::error(start, ParseProblem::Variable(name))
}

/// Reads `module:function/arity` after the `fun` at `start`.
fn export(scanner: &mut Scanner<'_>, start: usize) -> Result<Term, ParseError> {
    scanner.skip_blanks();
    if scanner.peek_byte() == Some(b'(') {
        return Err(Scanner::error(start, ParseProblem::LocalFun));
    }
    let module = name(scanner)?;
    scanner.skip_blanks();
    scanner.expect(":")?;
    scanner.skip_blanks();
    let function = name(scanner)?;
    scanner.skip_blanks();
    scanner.expect("/")?;
    scanner.skip_blanks();
    let arity = number::plain(scanner)?;
    Ok(Term::from(Export {
        module,
        function,
        arity,
    }))
}

/// Reads an atom, with or without quotes.
pub(super) fn name(scanner: &mut Scanner<'_>) -> Result<Atom, ParseError> {
    let start = scanner.position();
    match scanner.peek() {
        Some('\'') => {
            let text = quoted::quoted(scanner)?;
            scanner.atom(start, &text)
        }
        Some(first) if atom::begins_atom(first) => {
            let text = scanner.take_while(atom::in_word);
            scanner.atom(start, text)
        }
        _ => Err(scanner.wanted("an atom")),
    }
}
