//! A call of a function of `ets`: reads the arguments as terms, and writes the value as a term.

use super::super::{Command, Context, Failure, Next, Outcome, Step, Work, begin};
use super::writing::{AT_ONCE, Bounded, Writing, write};
use crate::apart::MANY;
use crate::resp::Arguments;
use crate::server::Shared;
use crate::turn::Turn;
use crate::users::{Reason, User};
use std::cell::Cell;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tremula_store::{Effects, Store, Table, TableOwner};
use tremula_table::match_spec::Environment;
use tremula_table::term::{Atom, Bounds, Limits};
use tremula_table::{BadArgument, Problem, Term};

/// The first byte of a term in the external format.
pub(super) const ETF: u8 = 131;

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
    owner: &'a TableOwner,
    user: Option<&'a Arc<User>>,
    command: &'static Command,
    /// Whether it has committed something.
    has_written: Cell<bool>,
    /// Whether this is the thread apart.
    is_apart: bool,
    terms: Vec<Term>,
}

/// The progress of a call.
pub(super) enum Progress {
    Value(Term),
    Slices(Slices),
}

/// A call that may take long.
pub(super) struct Slices {
    run: Run,
    /// The table that it visits.
    table: Option<Table>,
    /// Whether one row may take long.
    is_long: bool,
}

/// Goes on, by at least one row, as long as the given function returns true after each row, and
/// returns the value when it is done.
type Run = Box<dyn FnMut(&mut Slice<'_>) -> Result<Option<Value>, Failure> + Send>;

/// What a slice of a call works with.
pub(super) struct Slice<'a> {
    store: &'a Store,
    /// Whether it has committed something.
    has_written: bool,
    /// Counts a row, and returns whether the turn is not over.
    pub(super) may_go_on: &'a mut dyn FnMut() -> bool,
}

impl Slice<'_> {
    /// Runs `write` with what every write needs, and whether it may go on.
    pub(super) fn commit<R>(
        &mut self,
        write: impl FnOnce(&mut Effects<'_>, &mut dyn FnMut() -> bool) -> R,
    ) -> Result<R, Failure> {
        self.has_written = true;
        let may_go_on = &mut *self.may_go_on;
        Ok(self.store.commit(|effects| write(effects, may_go_on))?)
    }
}

impl Slices {
    pub(super) fn new(
        run: impl FnMut(&mut Slice<'_>) -> Result<Option<Value>, Failure> + Send + 'static,
    ) -> Self {
        Self {
            run: Box::new(run),
            table: None,
            is_long: false,
        }
    }

    /// A call that visits this table; one row may take long.
    pub(super) fn over(self, table: &Table, is_long: bool) -> Self {
        Self {
            table: Some(table.clone()),
            is_long,
            ..self
        }
    }

    /// Whether the next row may take long.
    fn is_long(&self) -> bool {
        self.is_long || self.table.as_ref().is_some_and(Table::is_busy)
    }
}

/// The value of a call.
pub(super) enum Value {
    Term(Term),
    /// A proper list of these terms, which is written in slices.
    List(Vec<Term>),
}

impl From<Term> for Value {
    fn from(term: Term) -> Self {
        Self::Term(term)
    }
}

/// A call that goes on until its value is written.
struct InSlices {
    state: State,
    format: Format,
}

enum State {
    Working(Slices),
    Writing(Writing),
}

impl Work for InSlices {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        if let State::Working(slices) = &self.state
            && !context.is_apart
            && slices.is_long()
        {
            return Ok(Step::Long);
        }
        let limit = context.server.live.max_output_buffer.bytes();
        let (reply, format) = (&mut *context.reply, self.format);
        let mut pace = Pace::new(context.turn);
        let may_go_on = &mut || pace.may_go_on();
        loop {
            match &mut self.state {
                State::Working(slices) => {
                    let slice = &mut Slice {
                        store: &context.server.store,
                        has_written: false,
                        may_go_on,
                    };
                    let value = (slices.run)(slice);
                    context.session.has_written |= slice.has_written;
                    let Some(value) = value? else {
                        let is_long = slices.is_long();
                        return Ok(if is_long { Step::Long } else { Step::Rest });
                    };
                    self.state = State::Writing(match value {
                        Value::Term(term) => Writing::new(term, format, limit),
                        Value::List(terms) => Writing::of_list(terms, format, limit)?,
                    });
                }
                State::Writing(writing) => {
                    if !writing.go_on(may_go_on)? {
                        return Ok(Step::Rest);
                    }
                    reply.bulk(writing.written());
                    return Ok(Step::Done);
                }
            }
        }
    }
}

/// Looks at the clock of a turn now and then: after every row if rows take long, else after some.
struct Pace<'t> {
    turn: &'t mut Turn,
    /// When it last looked.
    looked: Instant,
    /// Rows between two looks.
    rows: u32,
    /// Rows until the next look.
    left: u32,
}

impl<'t> Pace<'t> {
    /// The most rows between two looks. For cheap rows, looking is a tenth of the work; and if
    /// costly rows follow, this number of them ends soon after the turn should.
    const MOST_ROWS: u32 = 16;

    /// Rows that have taken less than this between two looks are cheap.
    const CHEAP: Duration = Duration::from_micros(20);

    fn new(turn: &'t mut Turn) -> Self {
        Self {
            turn,
            looked: Instant::now(),
            rows: 1,
            left: 1,
        }
    }

    /// Counts a row. Returns whether the turn is not over.
    #[inline]
    fn may_go_on(&mut self) -> bool {
        self.left -= 1;
        self.left > 0 || self.look()
    }

    fn look(&mut self) -> bool {
        let now = Instant::now();
        let is_cheap = now - self.looked < Self::CHEAP;
        self.rows = if is_cheap {
            (self.rows * 2).min(Self::MOST_ROWS)
        } else {
            1
        };
        (self.looked, self.left) = (now, self.rows);
        !self.turn.look()
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
    if arguments.len() > most.saturating_add(1) {
        return Err(Failure::arity(context.command));
    }
    let Some(progress) = called(context, arguments.behind(1), run)? else {
        return Ok(Next::Apart);
    };
    let format = context.session.ets.format;
    let limit = context.server.live.max_output_buffer.bytes();
    match progress {
        Progress::Value(value) if value.heap_bytes() <= AT_ONCE => {
            write(context.reply, format, &value, limit)?;
            Ok(Next::Reply)
        }
        Progress::Value(value) => {
            let state = State::Writing(Writing::new(value, format, limit));
            begin(context, arguments, InSlices { state, format })
        }
        Progress::Slices(slices) => {
            let state = State::Working(slices);
            begin(context, arguments, InSlices { state, format })
        }
    }
}

/// Runs a call with these arguments, all of which are terms. `None` if it is to run on the thread
/// apart.
pub(super) fn called<R>(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    run: impl FnOnce(&Call<'_>) -> Result<R, Failure>,
) -> Result<Option<R>, Failure> {
    let (command, server) = (context.command, context.server);
    let function = command.name.strip_prefix("ets.").unwrap_or(command.name);
    let given = arguments.skip(0);
    let mut terms = Vec::with_capacity(given.len());
    let limits = context.session.ets.limits(server, context.client);
    for argument in given {
        let term = read(argument, limits).map_err(|why| bad(function, terms.len() + 1, why))?;
        terms.push(term);
    }
    let call = Call {
        function,
        server,
        owner: context.session.ets.owner(server),
        is_apart: context.is_apart,
        user: context.session.identity.user(),
        command,
        has_written: Cell::new(false),
        terms,
    };
    let result = run(&call);
    let has_written = call.has_written.get();
    context.session.has_written |= has_written;
    match result {
        Err(Failure::Long) => Ok(None),
        result => result.map(Some),
    }
}

/// Reads a term in the external format, if it begins like that, or as text.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Term, Box<dyn Display>> {
    if bytes.first() == Some(&ETF) {
        return Term::from_etf(bytes, limits).map_err(|error| Box::new(error) as _);
    }
    Term::parse_bytes(bytes, limits).map_err(|error| Box::new(error) as _)
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
    /// Runs `write` with what every write needs.
    pub(super) fn commit<R>(
        &self,
        write: impl FnOnce(&mut Effects<'_>) -> R,
    ) -> Result<R, Failure> {
        self.has_written.set(true);
        Ok(self.server.store.commit(write)?)
    }

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

    /// The table that the first argument names. If it is busy, the call waits on the thread apart.
    pub(super) fn table(&self) -> Result<Table, Failure> {
        let named = self.find(self.term(1)?)?;
        let table = named.ok_or_else(|| self.wrong(1, Problem::NoTable))?;
        self.is_long(table.is_busy())?;
        Ok(table)
    }

    /// Goes to the thread apart if the call may take long. It must not have changed anything yet.
    pub(super) fn is_long(&self, is_long: bool) -> Result<(), Failure> {
        if is_long && !self.is_apart {
            return Err(Failure::Long);
        }
        Ok(())
    }

    /// As [`is_long`](Self::is_long), for a step over all rows of a table.
    pub(super) fn all_rows(&self, table: &Table) -> Result<(), Failure> {
        self.is_long(!self.is_apart && table.size()? > MANY)
    }

    /// As [`is_long`](Self::is_long), for a step over all rows with a key, of which a bag may have
    /// many.
    pub(super) fn rows_of(&self, table: &Table, key: &Term) -> Result<(), Failure> {
        // A caller that may not read learns it from the step.
        let has_many = || table.has_more_rows(key, MANY).unwrap_or(false);
        self.is_long(!self.is_apart && table.kind().is_bag() && has_many())
    }

    /// The table that a term names, if there is one.
    pub(super) fn find(&self, name: &Term) -> Result<Option<Table>, Failure> {
        if let Term::Atom(name) = name {
            self.may_name(name.text())?;
        }
        let table = self.owner.find(name);
        if let Some(table) = &table {
            self.may_name(table.name().text())?;
        }
        Ok(table)
    }

    /// Whether the user may use, or make, a table of this name.
    pub(super) fn may_name(&self, name: &str) -> Result<(), Failure> {
        if self.sees_table(name) {
            return Ok(());
        }
        Err(Failure::Denied(Reason::Table, name.into()))
    }

    fn sees_table(&self, name: &str) -> bool {
        self.user
            .is_some_and(|user| user.may_use_table(self.command, name.as_bytes()))
    }

    /// Which tables the user sees, for a call that goes on in slices.
    pub(super) fn seen_tables(&self) -> impl Fn(&Table) -> bool + Send + 'static {
        let (user, command) = (self.user.cloned(), self.command);
        move |table| {
            let name = table.name();
            let may_use = |user: &User| user.may_use_table(command, name.text().as_bytes());
            user.as_deref().is_some_and(may_use)
        }
    }

    /// Whether the user may use a mailbox of this name.
    pub(super) fn may_use_mailbox(&self, name: &[u8]) -> Result<(), Failure> {
        let user = self.user;
        if user.is_some_and(|user| user.may_use_mailbox(self.command, name)) {
            return Ok(());
        }
        Err(Failure::Denied(Reason::Mailbox, name.to_vec()))
    }

    /// Whether the user may use files of tables: every table has to be open to him.
    pub(super) fn may_use_files(&self) -> Result<(), Failure> {
        let user = self.user;
        if user.is_some_and(|user| user.may_use_all_tables(self.command)) {
            return Ok(());
        }
        Err(Failure::Denied(Reason::Table, b"*".to_vec()))
    }

    /// The connection, as an owner of tables. What it finds or makes must be checked.
    pub(super) fn unchecked_owner(&self) -> &TableOwner {
        self.owner
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

    /// The bounds of what a match specification may make.
    pub(super) fn bounds(&self) -> Bounds {
        self.server.store.tables().bounds()
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
        let read = |text: &[u8]| read(text, &Limits::default());
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert!(read(nested(Limits::NESTING).as_bytes()).is_ok());
        assert!(read(nested(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn a_pace_looks_at_the_clock_after_each_row_that_takes_long() {
        let mut over = Turn::begin(Duration::ZERO);
        assert!(!Pace::new(&mut over).may_go_on(), "after the first row");
        let mut short = Turn::begin(Duration::from_millis(1));
        let mut pace = Pace::new(&mut short);
        while pace.may_go_on() {}
        let mut long = Turn::begin(Duration::MAX);
        let mut pace = Pace::new(&mut long);
        assert!((0..1000).all(|_| pace.may_go_on()));
        pace.rows = Pace::MOST_ROWS;
        std::thread::sleep(Pace::CHEAP);
        assert!(pace.look() && pace.left == 1, "the last row took long");
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
            if let Ok(term) = read(&bytes, &Limits::default()) {
                let _ = text_of(&term);
            }
        }

        #[test]
        fn no_text_panics(text in "[\\[\\]{}#<>=|,:$'\"a-cA_0-9. ~%\\\\-]{0,60}") {
            if let Ok(term) = read(text.as_bytes(), &Limits::default()) {
                let printed = term.to_string();
                let again = read(printed.as_bytes(), &Limits::default());
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
                let _ = read(&bytes, &Limits::default()).map(|term| term.to_string());
            }
        }
    }
}
