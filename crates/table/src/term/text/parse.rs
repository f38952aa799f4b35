//! Reads nested terms.

use super::super::map::pairs;
use super::super::{Limits, Term};
use super::error::{ParseError, ParseProblem};
use super::scan::Scanner;
use super::{atom, number, opaque, quoted, segments, word};

/// Reads a text that consists of one term.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Term, ParseError> {
    let mut scanner = Scanner::new(text, limits);
    let term = Parser {
        scanner: &mut scanner,
        values: Vec::new(),
        open: Vec::new(),
    }
    .term()?;
    scanner.skip_blanks();
    if scanner.take(".") {
        scanner.skip_blanks();
    }
    match scanner.peek() {
        Some(more) => Err(Scanner::error(
            scanner.position(),
            ParseProblem::Trailing(more),
        )),
        None => Ok(term),
    }
}

struct Parser<'s, 'a> {
    scanner: &'s mut Scanner<'a>,
    /// Finished terms whose outer term is not finished.
    values: Vec<Term>,
    /// Terms that have begun; each is inside the one before.
    open: Vec<Open>,
}

/// A term that has begun.
struct Open {
    place: Place,
    /// Where its values begin in `values`.
    start: usize,
}

/// The position, in an outer term, of the value being read.
#[derive(Clone, Copy)]
enum Place {
    TupleElement,
    ListElement,
    ListTail,
    MapKey,
    MapValue,
}

impl Parser<'_, '_> {
    fn term(mut self) -> Result<Term, ParseError> {
        loop {
            self.scanner.skip_blanks();
            if let Some(value) = self.value()?
                && let Some(whole) = self.add(value)?
            {
                return Ok(whole);
            }
        }
    }

    /// Reads a value, or begins one that has inner values.
    fn value(&mut self) -> Result<Option<Term>, ParseError> {
        let scanner = &mut *self.scanner;
        let start = scanner.position();
        Ok(Some(match scanner.peek() {
            Some('{') => return self.begin("{", Place::TupleElement, "}"),
            Some('[') => return self.begin("[", Place::ListElement, "]"),
            Some('#') if scanner.rest().starts_with("#{") => {
                return self.begin("#{", Place::MapKey, "}");
            }
            Some('#') => opaque::opaque(scanner)?,
            Some('<') if scanner.take("<<") => segments::binary(scanner)?,
            Some('"') => Term::string(&quoted::strings(scanner)?),
            Some('\'') => {
                let text = quoted::quoted(scanner)?;
                Term::Atom(scanner.atom(start, &text)?)
            }
            Some('0'..='9' | '-' | '+' | '$') => numeric(scanner)?,
            Some(first) if atom::begins_atom(first) => word::word(scanner)?,
            Some(first) if atom::begins_variable(first) => return Err(word::variable(scanner)),
            _ => return Err(scanner.wanted("a term")),
        }))
    }

    /// Begins a term with inner values. Returns it if it has none.
    fn begin(
        &mut self,
        opening: &str,
        place: Place,
        closing: &str,
    ) -> Result<Option<Term>, ParseError> {
        let offset = self.scanner.position();
        self.scanner.take(opening);
        let start = self.values.len();
        let open = Open { place, start };
        self.scanner.skip_blanks();
        if self.scanner.take(closing) {
            return Ok(Some(self.finish(&open)));
        }
        let nesting = self.scanner.limits.nesting;
        if self.open.len() >= nesting {
            return Err(Scanner::error(offset, ParseProblem::TooDeep(nesting)));
        }
        self.open.push(open);
        Ok(None)
    }

    /// Adds a value to its outer term. If that ends after it, adds it to the next outer one, and so
    /// on. Returns the outermost term when it is complete.
    fn add(&mut self, value: Term) -> Result<Option<Term>, ParseError> {
        let mut value = value;
        loop {
            let Some(open) = self.open.last_mut() else {
                return Ok(Some(value));
            };
            self.values.push(value);
            let scanner = &mut *self.scanner;
            scanner.skip_blanks();
            let (goes_on, closing, wanted) = match open.place {
                Place::TupleElement => (scanner.take(","), "}", "',' or '}'"),
                Place::ListElement if scanner.take("|") => {
                    open.place = Place::ListTail;
                    return Ok(None);
                }
                Place::ListElement => (scanner.take(","), "]", "',', '|' or ']'"),
                Place::ListTail => (false, "]", "']'"),
                Place::MapKey => {
                    scanner.expect("=>")?;
                    open.place = Place::MapValue;
                    return Ok(None);
                }
                Place::MapValue => {
                    let goes_on = scanner.take(",");
                    if goes_on {
                        open.place = Place::MapKey;
                    }
                    (goes_on, "}", "',' or '}'")
                }
            };
            if goes_on {
                return Ok(None);
            }
            if !scanner.take(closing) {
                return Err(scanner.wanted(wanted));
            }
            value = match self.open.pop() {
                Some(open) => self.finish(&open),
                None => return Ok(None),
            };
        }
    }

    fn finish(&mut self, open: &Open) -> Term {
        let mut values = self.values.drain(open.start..);
        match open.place {
            Place::TupleElement => Term::tuple(values),
            Place::ListElement => Term::list(values),
            Place::ListTail => {
                let tail = values.next_back().unwrap_or_default();
                Term::list_with_tail(values, tail)
            }
            Place::MapKey | Place::MapValue => Term::map(pairs(values)),
        }
    }
}

/// Reads a number or a `$` character, possibly with a sign.
pub(super) fn numeric(scanner: &mut Scanner<'_>) -> Result<Term, ParseError> {
    let negative = scanner.take("-");
    if negative || scanner.take("+") {
        scanner.skip_blanks();
    }
    if scanner.take("$") {
        let point = i64::from(u32::from(quoted::character(scanner)?));
        return Ok(Term::from(if negative { -point } else { point }));
    }
    match scanner.peek_byte() {
        Some(b'0'..=b'9') => number::number(scanner, negative),
        _ => Err(scanner.wanted("a number")),
    }
}
