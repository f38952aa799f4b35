//! A call of a function of `ets`: reads the arguments as terms, and writes the value as a term.

use super::super::{Context, Failure, Next, Outcome, Step, Work, begin};
use crate::resp::{Arguments, Reply};
use crate::server::Shared;
use std::fmt::{self, Display, Write};
use std::ops::ControlFlow;
use tremula_table::match_spec::Environment;
use tremula_table::term::{Atom, Limits};
use tremula_table::{BadArgument, Owner, Problem, Table, Term, Traversal};

/// The first byte of a term in the external format.
const ETF: u8 = 131;

/// The most bytes of an error, which repeats the wrong term.
const ERROR_LENGTH: usize = 1024;

/// The form of the replies.
#[derive(Clone, Copy, Default)]
pub(super) enum Format {
    #[default]
    Text,
    Etf,
}

/// A call of a function of `ets`.
pub(super) struct Call<'a> {
    /// The function, by its name in Erlang.
    pub(super) function: &'static str,
    pub(super) server: &'a Shared,
    /// The connection.
    pub(super) owner: &'a Owner,
    terms: Vec<Term>,
}

/// The progress of a call.
pub(super) enum Progress {
    Value(Term),
    /// A search that may look at many rows.
    Search(Traversal, Finish),
}

/// Makes the value of a search from its outcome.
pub(super) type Finish = Box<dyn FnOnce(tremula_table::Outcome) -> Term + Send>;

/// Rows that a search looks at between two looks at the clock.
const ROWS_PER_LOOK: usize = 256;

/// An unfinished search.
struct Search {
    /// `None` once it has ended.
    left: Option<(Traversal, Finish)>,
    format: Format,
}

impl Work for Search {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        while let Some((traversal, finish)) = self.left.take() {
            match traversal.step(ROWS_PER_LOOK)? {
                ControlFlow::Continue(traversal) => self.left = Some((traversal, finish)),
                ControlFlow::Break(outcome) => {
                    let limit = context.server.limits.max_output_buffer.0;
                    write(context.reply, self.format, &finish(outcome), limit)?;
                }
            }
            if self.left.is_some() && context.turn.look() {
                return Ok(Step::Rest);
            }
        }
        Ok(Step::Done)
    }
}

/// Runs a call with up to `most` arguments, and writes its value.
pub(super) fn answer(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    most: usize,
    run: impl FnOnce(&Call<'_>) -> Result<Term, Failure>,
) -> Outcome {
    answer_in_slices(context, arguments, most, |call| {
        run(call).map(Progress::Value)
    })
}

/// Like [`answer`], for a call that may look at many rows. Writes the value of a search that ends
/// with its first slice, and leaves any other search to the connection.
pub(super) fn answer_in_slices(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    most: usize,
    run: impl FnOnce(&Call<'_>) -> Result<Progress, Failure>,
) -> Outcome {
    let (command, server) = (context.command, context.server);
    if arguments.len() > most.saturating_add(1) {
        return Err(Failure::arity(command));
    }
    let function = command.name.strip_prefix("ets.").unwrap_or(command.name);
    let given = arguments.skip(1);
    let mut terms = Vec::with_capacity(given.len());
    for argument in given {
        let term = read(argument).map_err(|why| bad(function, terms.len() + 1, why))?;
        terms.push(term);
    }
    let call = Call {
        function,
        server,
        owner: context.session.ets.owner(server),
        terms,
    };
    let (progress, format) = (run(&call)?, context.session.ets.format);
    match progress {
        Progress::Value(value) => {
            let limit = server.limits.max_output_buffer.0;
            write(context.reply, format, &value, limit)?;
            Ok(Next::Reply)
        }
        Progress::Search(traversal, finish) => {
            let left = Some((traversal.named(function), finish));
            begin(context, arguments, Search { left, format })
        }
    }
}

/// Reads a term in the external format, if it begins like that, or as text.
fn read(bytes: &[u8]) -> Result<Term, Box<dyn Display>> {
    let limits = Limits::default();
    if bytes.first() == Some(&ETF) {
        return Term::from_etf(bytes, &limits).map_err(|error| Box::new(error) as _);
    }
    Term::parse_bytes(bytes, &limits).map_err(|error| Box::new(error) as _)
}

/// Writes a term. A term that is too long for a reply is an error; the connection goes on.
fn write(reply: &mut Reply, format: Format, term: &Term, limit: usize) -> Result<(), Failure> {
    // Leaves room for the header and the line end of a string.
    let room = limit.saturating_sub(64);
    let too_long = || {
        let text = format!(
            "ERR the term exceeds the output buffer limit of {limit} bytes; ask for less at once, \
             with a limit"
        );
        Failure::Owned(text.into_bytes())
    };
    match format {
        Format::Text => {
            let mut text = Bounded::new(room);
            if write!(text, "{term}").is_err() {
                return Err(too_long());
            }
            reply.bulk(text.text.as_bytes());
        }
        Format::Etf => match term.to_etf() {
            Ok(bytes) if bytes.len() <= room => reply.bulk(&bytes),
            _ => return Err(too_long()),
        },
    }
    Ok(())
}

/// The error `badarg`, with the argument and the reason.
pub(super) fn bad(function: &str, argument: usize, why: impl Display) -> Failure {
    badarg(format_args!("{function}, argument {argument}: {why}"))
}

fn badarg(why: impl Display) -> Failure {
    let mut error = Bounded::new(ERROR_LENGTH);
    if write!(error, "BADARG {why}").is_err() {
        error.text.push('…');
    }
    Failure::Owned(error.text.into_bytes())
}

impl From<BadArgument> for Failure {
    fn from(error: BadArgument) -> Self {
        badarg(error)
    }
}

impl Call<'_> {
    /// The number of arguments.
    pub(super) fn len(&self) -> usize {
        self.terms.len()
    }

    pub(super) fn get(&self, argument: usize) -> Option<&Term> {
        self.terms.get(argument.wrapping_sub(1))
    }

    /// The argument of this number, counted from 1.
    pub(super) fn term(&self, argument: usize) -> Result<&Term, Failure> {
        self.get(argument)
            .ok_or_else(|| bad(self.function, argument, "it is missing"))
    }

    /// The arguments from this number on, counted from 1.
    pub(super) fn from(&self, argument: usize) -> &[Term] {
        self.terms.get(argument.wrapping_sub(1)..).unwrap_or(&[])
    }

    /// The table that the first argument names.
    pub(super) fn table(&self) -> Result<Table, Failure> {
        let named = self.owner.find(self.term(1)?);
        named.ok_or_else(|| self.wrong(1, Problem::NoTable))
    }

    /// The name in an argument.
    pub(super) fn name(&self, argument: usize) -> Result<&'static str, Failure> {
        match self.term(argument)? {
            Term::Atom(name) => Ok(name.text()),
            other => Err(self.wrong(argument, Problem::NotAName(other.clone()))),
        }
    }

    pub(super) fn limit(&self, argument: usize) -> Result<usize, Failure> {
        let term = self.term(argument)?;
        let limit = positive(term);
        limit.ok_or_else(|| self.wrong(argument, Problem::NotALimit(term.clone())))
    }

    pub(super) fn position(&self, argument: usize) -> Result<usize, Failure> {
        let term = self.term(argument)?;
        let position = positive(term);
        position.ok_or_else(|| self.wrong(argument, Problem::NotAPosition(term.clone())))
    }

    pub(super) fn boolean(&self, argument: usize) -> Result<bool, Failure> {
        match self.term(argument)? {
            Term::Atom(atom) if *atom == Atom::TRUE => Ok(true),
            Term::Atom(atom) if *atom == Atom::FALSE => Ok(false),
            other => Err(bad(
                self.function,
                argument,
                format_args!("{other} is neither true nor false"),
            )),
        }
    }

    /// The error of an argument.
    pub(super) fn wrong(&self, argument: usize, problem: Problem) -> Failure {
        bad(self.function, argument, problem)
    }

    /// The environment of a match specification. `{self}` is the connection.
    pub(super) fn environment(&self) -> Environment {
        Environment::default()
            .myself(self.owner.pid().clone())
            .node(Atom::NO_NODE)
    }
}

fn positive(term: &Term) -> Option<usize> {
    let Term::Integer(number) = term else {
        return None;
    };
    usize::try_from(*number).ok().filter(|number| *number > 0)
}

/// The text of an atom, a binary or a string, for a name that need not be an atom.
pub(super) fn text_of(term: &Term) -> Option<String> {
    match term {
        Term::Atom(atom) => Some(atom.text().to_owned()),
        Term::Bitstring(bits) => String::from_utf8(bits.as_binary()?.to_vec()).ok(),
        Term::List(list) if list.is_proper() => list
            .iter()
            .map(|point| match point {
                Term::Integer(point) => u32::try_from(*point).ok().and_then(char::from_u32),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

/// Text with a limit. Writing beyond it fails.
struct Bounded {
    text: String,
    limit: usize,
}

impl Bounded {
    const fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
        }
    }
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.limit.saturating_sub(self.text.len());
        let mut fitting = part.len().min(room);
        while !part.is_char_boundary(fitting) {
            fitting -= 1;
        }
        self.text.push_str(&part[..fitting]);
        if fitting < part.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_error_repeats_a_part_of_a_long_term() {
        let long = Term::binary(&[b'x'; 100_000]);
        let error = bad("insert", 2, &long).text().into_owned();
        assert!(error.starts_with(b"BADARG insert, argument 2: <<\"xxx"));
        assert!(error.len() <= ERROR_LENGTH + '…'.len_utf8());
    }

    #[test]
    fn a_term_nested_beyond_the_limit_is_refused() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert!(read(nested(Limits::NESTING).as_bytes()).is_ok());
        assert!(read(nested(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn names_are_atoms_binaries_or_strings() {
        for text in ["heir", "<<\"heir\">>", "\"heir\""] {
            assert_eq!(text_of(&text.parse().unwrap()).as_deref(), Some("heir"));
        }
        for text in ["1", "{heir}", "[heir]", "[-1]", "<<1:1>>", "<<255>>"] {
            assert_eq!(text_of(&text.parse().unwrap()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), etf in any::<bool>()) {
            let mut bytes = bytes;
            if etf {
                bytes.insert(0, ETF);
            }
            if let Ok(term) = read(&bytes) {
                let _ = text_of(&term);
            }
        }

        #[test]
        fn no_text_panics(text in "[\\[\\]{}#<>=|,:$'\"a-cA_0-9. ~%\\\\-]{0,60}") {
            if let Ok(term) = read(text.as_bytes()) {
                let printed = term.to_string();
                let again = read(printed.as_bytes());
                prop_assert!(again.is_ok_and(|again| again.is_identical(&term)), "{}", printed);
            }
        }

        /// A term with any changed byte is read or refused.
        #[test]
        fn damaged_terms_do_not_panic(at in 0_usize..200, byte in any::<u8>()) {
            let term: Term = "{a,[1,2|x],#{b => <<5:3>>},1.5,\"s\",#Ref<n@h.0.1.2.3>}".parse().unwrap();
            for mut bytes in [term.to_string().into_bytes(), term.to_etf().unwrap()] {
                let at = at % bytes.len();
                bytes[at] = byte;
                let _ = read(&bytes).map(|term| term.to_string());
            }
        }
    }
}
