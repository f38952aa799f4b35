//! `select`, `match` and their kin.
//!
//! A continuation is a tuple of the table's continuation, the kind of search, and the match
//! specification or pattern. The server keeps nothing. Any connection that may read the table may
//! use it.

use super::super::{Context, Failure, Outcome};
use super::call::{Call, Progress, Slices, Value, answer, answer_in_slices, bad};
use crate::apart::MANY;
use crate::resp::Arguments;
use std::ops::ControlFlow;
use tremula_store::{Changing, Table};
use tremula_table::match_spec::{Returns, SpecError};
use tremula_table::term::Atom;
use tremula_table::{Chunk, Kind, MatchSpec, Outcome as Found, Problem, Term, Traversal};

/// What a search is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Spec = 0,
    Bindings = 1,
    Row = 2,
}

impl By {
    const ALL: [Self; 3] = [Self::Spec, Self::Bindings, Self::Row];

    fn compile(self, call: &Call<'_>, source: &Term) -> Result<MatchSpec, SpecError> {
        match self {
            Self::Spec => MatchSpec::compile_in(source, &call.environment()),
            Self::Bindings => MatchSpec::from_pattern(source, Returns::Bindings),
            Self::Row => MatchSpec::from_pattern(source, Returns::Row),
        }
    }
}

/// The match specification in an argument.
fn spec(call: &Call<'_>, by: By, argument: usize) -> Result<MatchSpec, Failure> {
    let compiled = by.compile(call, call.term(argument)?);
    compiled.map_err(|error| bad(call.function, argument, error))
}

/// `ETS.SELECT table spec [limit]`, `ETS.SELECT continuation`, and the other searches.
fn search(context: &mut Context<'_>, arguments: Arguments<'_>, by: By, reverse: bool) -> Outcome {
    answer_in_slices(context, arguments, 3, |call| {
        if call.len() == 1 {
            return go_on(call);
        }
        let (table, spec) = (call.table()?, spec(call, by, 2)?);
        let limit = match call.get(3) {
            None => None,
            Some(_) => Some(call.limit(3)?),
        };
        let traversal = table.select(spec, reverse, limit);
        searching(call, &table, traversal, by, call.term(2)?)
    })
}

/// Whether one step of a search may take long: a key of a bag may have many rows, and a whole range
/// of keys of an `ordered_set` may be deleted at once.
fn is_long(table: &Table, deletes: bool) -> Result<bool, Failure> {
    let may_be = match table.kind() {
        Kind::Bag | Kind::DuplicateBag => true,
        Kind::OrderedSet => deletes,
        Kind::Set => false,
    };
    Ok(table.has_wide_rows() || may_be && table.size()? > MANY)
}

/// A search that changes nothing, and whose value is of these kinds.
fn searching(
    call: &Call<'_>,
    table: &Table,
    traversal: Traversal,
    by: By,
    source: &Term,
) -> Result<Progress, Failure> {
    let source = source.clone();
    let mut left = Some(traversal.named(call.function));
    let slices = Slices::new(move |slice| {
        let Some(traversal) = left.take() else {
            return Ok(None);
        };
        Ok(match traversal.step(&mut *slice.may_go_on)? {
            ControlFlow::Continue(rest) => {
                left = Some(rest);
                None
            }
            ControlFlow::Break(found) => Some(value(found, by, &source)),
        })
    });
    let is_long = is_long(table, false)?;
    Ok(Progress::Slices(slices.over(table, is_long)))
}

/// A search that deletes or replaces the rows that it finds. What it does in one slice is
/// committed together.
fn changing(
    call: &Call<'_>,
    table: &Table,
    (changing, deletes): (Changing, bool),
    finish: fn(usize) -> Term,
) -> Result<Progress, Failure> {
    let mut left = Some(changing.named(call.function));
    let slices = Slices::new(move |slice| {
        let Some(changing) = left.take() else {
            return Ok(None);
        };
        let step = slice.commit(|effects, may_go_on| changing.step(effects, may_go_on))?;
        Ok(match step? {
            ControlFlow::Continue(rest) => {
                left = Some(rest);
                None
            }
            ControlFlow::Break(Found::Count(count)) => Some(finish(count).into()),
            ControlFlow::Break(_) => unreachable!("such a search counts"),
        })
    });
    let is_long = is_long(table, deletes)?;
    Ok(Progress::Slices(slices.over(table, is_long)))
}

fn value(found: Found, by: By, source: &Term) -> Value {
    match found {
        Found::Found(all) => Value::List(all),
        Found::Chunk(chunk) => chunk_term(chunk, by, source).into(),
        Found::Count(count) => Term::from(count).into(),
    }
}

/// `{Found, Continuation}`, or `'$end_of_table'`.
fn chunk_term(chunk: Option<Chunk>, by: By, source: &Term) -> Term {
    let end = Term::from(Atom::END_OF_TABLE);
    let Some(Chunk { found, rest, .. }) = chunk else {
        return end;
    };
    let rest = rest.map_or(end, |rest| continuation(rest.to_term(), by, source));
    Term::tuple([Term::list(found), rest])
}

fn continuation(place: Term, by: By, source: &Term) -> Term {
    Term::tuple([place, Term::from(by as u8), source.clone()])
}

fn is_end(term: &Term) -> bool {
    matches!(term, Term::Atom(atom) if *atom == Atom::END_OF_TABLE)
}

/// The parts of a continuation: the table's continuation, what the search is given, and the
/// specification or pattern.
fn parts_of<'a>(call: &Call<'_>, term: &'a Term) -> Result<(&'a Term, By, &'a Term), Failure> {
    let no_continuation = || bad(call.function, 1, format_args!("{term} is no continuation"));
    let Term::Tuple(parts) = term else {
        return Err(no_continuation());
    };
    let [place, Term::Integer(by), source] = parts.elements() else {
        return Err(no_continuation());
    };
    let by = By::ALL.into_iter().find(|known| *known as i64 == *by);
    Ok((place, by.ok_or_else(no_continuation)?, source))
}

fn table_of(call: &Call<'_>, place: &Term) -> Result<Table, Failure> {
    let id = match place {
        Term::Tuple(parts) => parts.first(),
        _ => None,
    };
    let table = id.map(|id| call.find(id)).transpose()?.flatten();
    table.ok_or_else(|| call.wrong(1, Problem::NoTable))
}

fn go_on(call: &Call<'_>) -> Result<Progress, Failure> {
    let term = call.term(1)?;
    if is_end(term) {
        return Ok(Progress::Value(term.clone()));
    }
    let (place, by, source) = parts_of(call, term)?;
    let table = table_of(call, place)?;
    let spec = by
        .compile(call, source)
        .map_err(|error| bad(call.function, 1, error))?;
    let rest = table.repair_continuation(place, &spec)?;
    searching(call, &table, table.select_on(&rest), by, source)
}

pub(in super::super) fn select(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    search(context, arguments, By::Spec, false)
}

pub(in super::super) fn select_reverse(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    search(context, arguments, By::Spec, true)
}

pub(in super::super) fn match_pattern(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    search(context, arguments, By::Bindings, false)
}

pub(in super::super) fn match_object(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    search(context, arguments, By::Row, false)
}

pub(in super::super) fn match_delete(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer_in_slices(context, arguments, 2, |call| {
        let (table, pattern) = (call.table()?, call.term(2)?);
        let spec = MatchSpec::from_pattern(pattern, Returns::True);
        let spec = spec.map_err(|error| bad(call.function, 2, error))?;
        let deleting = (table.delete_found(spec), true);
        changing(call, &table, deleting, |_| Term::from(true))
    })
}

pub(in super::super) fn select_count(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer_in_slices(context, arguments, 2, |call| {
        let (table, spec) = (call.table()?, spec(call, By::Spec, 2)?);
        let traversal = table.select_count(spec);
        searching(call, &table, traversal, By::Spec, call.term(2)?)
    })
}

pub(in super::super) fn select_delete(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer_in_slices(context, arguments, 2, |call| {
        let (table, spec) = (call.table()?, spec(call, By::Spec, 2)?);
        changing(call, &table, (table.delete_found(spec), true), Term::from)
    })
}

pub(in super::super) fn select_replace(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer_in_slices(context, arguments, 2, |call| {
        let (table, spec) = (call.table()?, spec(call, By::Spec, 2)?);
        changing(call, &table, (table.replace_found(spec), false), Term::from)
    })
}

/// `ETS.TAB2LIST table`.
pub(in super::super) fn tab2list(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer_in_slices(context, arguments, 1, |call| {
        let table = call.table()?;
        let every_row = MatchSpec::from_pattern(&Term::from(Atom::UNDERSCORE), Returns::Row);
        let every_row = every_row.map_err(|error| bad(call.function, 1, error))?;
        let traversal = table.select(every_row, false, None);
        searching(call, &table, traversal, By::Row, &Term::NIL)
    })
}

/// `ETS.REPAIR_CONTINUATION continuation spec`: replaces the specification.
pub(in super::super) fn repair_continuation(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer(context, arguments, 2, |call| {
        let (term, source) = (call.term(1)?, call.term(2)?);
        let spec = spec(call, By::Spec, 2)?;
        if is_end(term) {
            return Ok(term.clone());
        }
        let (place, _, _) = parts_of(call, term)?;
        let repaired = table_of(call, place)?.repair_continuation(place, &spec)?;
        Ok(continuation(repaired.to_term(), By::Spec, source))
    })
}

/// `ETS.MATCH_SPEC_RUN terms spec`.
pub(in super::super) fn match_spec_run(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer_in_slices(context, arguments, 2, |call| {
        let list = match call.term(1)? {
            Term::List(list) if list.is_proper() => list,
            other => {
                return Err(bad(
                    call.function,
                    1,
                    format_args!("{other} is no proper list"),
                ));
            }
        };
        let (function, spec, bounds) = (call.function, spec(call, By::Spec, 2)?, call.bounds());
        let mut left = list.iter().cloned().collect::<Vec<_>>().into_iter();
        let mut found = Vec::new();
        Ok(Progress::Slices(Slices::new(move |slice| {
            let mut matcher = spec.matcher().bounded(bounds);
            for term in left.by_ref() {
                found.extend(matcher.run_term(&term));
                if let Some(reached) = matcher.reached() {
                    return Err(bad(function, 2, reached));
                }
                if !(slice.may_go_on)() {
                    return Ok(None);
                }
            }
            Ok(Some(Value::List(std::mem::take(&mut found))))
        })))
    })
}

/// `ETS.TEST_MS term spec`. A problem of the specification is the value, as in Erlang.
pub(in super::super) fn test_ms(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer(context, arguments, 2, |call| {
        let (term, source) = (call.term(1)?, call.term(2)?);
        let error = |text: &str| Term::tuple([Atom::ERROR.into(), Term::string(text)]);
        let (tag, value) = match By::Spec.compile(call, source) {
            Ok(spec) => {
                let mut matcher = spec.matcher().bounded(call.bounds());
                let made = matcher.run_term(term);
                if let Some(reached) = matcher.reached() {
                    return Err(bad(call.function, 2, reached));
                }
                (Atom::OK, made.unwrap_or_else(|| false.into()))
            }
            Err(wrong) => (Atom::ERROR, Term::list([error(&wrong.to_string())])),
        };
        Ok(Term::tuple([tag.into(), value]))
    })
}
