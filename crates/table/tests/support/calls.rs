//! Calls of ETS functions, in Erlang's form, on our tables.

use tremula_table::term::{Atom, Tuple};
use tremula_table::{BadArgument, Chunk, Continuation, MatchSpec, Options, Table, Tables, Term};

/// The result of a call, or Erlang's `badarg`.
pub(crate) type Called = Result<Term, BadCall>;

/// Why a call fails.
#[derive(Debug)]
pub(crate) struct BadCall(
    #[allow(dead_code, reason = "shown when a test fails")] pub(crate) String,
);

impl From<BadArgument> for BadCall {
    fn from(error: BadArgument) -> Self {
        Self(error.to_string())
    }
}

fn atom(text: &str) -> Term {
    Term::atom(text).unwrap()
}

fn wrong(term: &Term) -> BadCall {
    BadCall(format!("{term}?"))
}

fn done(result: Result<(), BadArgument>) -> Called {
    result?;
    Ok(Term::from(true))
}

fn rows(rows: Vec<Tuple>) -> Term {
    Term::list(rows.into_iter().map(Term::from).collect::<Vec<_>>())
}

fn key(key: Option<Term>) -> Term {
    key.unwrap_or(Atom::END_OF_TABLE.into())
}

fn number(term: &Term) -> Result<usize, BadCall> {
    match term {
        Term::Integer(value) => usize::try_from(*value).map_err(|_| wrong(term)),
        _ => Err(wrong(term)),
    }
}

fn compile(spec: &Term) -> Result<MatchSpec, BadCall> {
    MatchSpec::compile(spec).map_err(|error| BadCall(error.to_string()))
}

/// A table, and the continuation of a search in chunks.
pub(crate) struct Slot {
    pub(crate) table: Table,
    continuation: Option<Continuation>,
}

impl Slot {
    /// A table with these options and `public`.
    pub(crate) fn new(tables: &Tables, options: &Term) -> Self {
        let mut options = Options::from_term(options).unwrap();
        options.access = tremula_table::Access::Public;
        Self {
            table: tables.create("t", options).unwrap(),
            continuation: None,
        }
    }

    /// Calls a function.
    pub(crate) fn call(&mut self, function: &str, arguments: &[Term]) -> Called {
        let table = &self.table;
        Ok(match (function, arguments) {
            ("insert", [objects]) => done(table.insert(objects.clone()))?,
            ("insert_new", [objects]) => table.insert_new(objects.clone())?.into(),
            ("lookup", [key]) => rows(table.lookup(key)?),
            ("lookup_element", [key, position]) => table.lookup_element(key, number(position)?)?,
            ("member", [key]) => table.member(key)?.into(),
            ("take", [key]) => rows(table.take(key)?),
            ("delete", [key]) => done(table.delete_key(key))?,
            ("delete_object", [object]) => done(table.delete_object(object))?,
            ("delete_all_objects", []) => done(table.delete_all_objects())?,
            ("update_counter", [key, update]) => table.update_counter(key, update)?,
            ("update_counter", [key, update, default]) => {
                table.update_counter_or(key, update, default.clone())?
            }
            ("update_element", [key, update]) => table.update_element(key, update)?.into(),
            ("first", []) => key(table.first()?),
            ("last", []) => key(table.last()?),
            ("next", [of]) => key(table.next(of)?),
            ("prev", [of]) => key(table.prev(of)?),
            ("tab2list", []) => rows(table.tab2list()?),
            ("foldl", []) => rows(table.foldl(Vec::new(), prepended)?),
            ("foldr", []) => rows(table.foldr(Vec::new(), prepended)?),
            ("init_table", [objects]) => done(table.init_table([objects.clone()]))?,
            ("info", [item]) => table.info_item(item)?,
            ("keys", []) => self.keys(false)?,
            ("drain", []) => self.keys(true)?,
            ("select", [spec]) => Term::list(table.select(&compile(spec)?)?),
            ("select_reverse", [spec]) => Term::list(table.select_reverse(&compile(spec)?)?),
            ("select_count", [spec]) => table.select_count(&compile(spec)?)?.into(),
            ("select_delete", [spec]) => table.select_delete(&compile(spec)?)?.into(),
            ("select_replace", [spec]) => table.select_replace(&compile(spec)?)?.into(),
            ("match", [pattern]) => Term::list(table.match_pattern(pattern)?),
            ("match_object", [pattern]) => Term::list(table.match_object(pattern)?),
            ("match_delete", [pattern]) => done(table.match_delete(pattern))?,
            ("chunks", [function, pattern, limit]) => self.chunks(function, pattern, limit)?,
            ("chunk", [function, pattern, limit]) => {
                let chunk = self.first_chunk(function, pattern, limit)?;
                self.keep(chunk)
            }
            ("next_chunk", []) => match &self.continuation {
                Some(continuation) => {
                    let chunk = table.select_next(continuation)?;
                    self.keep(chunk)
                }
                None => Atom::END_OF_TABLE.into(),
            },
            _ => panic!("no call of {function} with {arguments:?}"),
        })
    }

    fn keys(&self, delete: bool) -> Called {
        let table = &self.table;
        table.safe_fixtable(true)?;
        let mut keys = Vec::new();
        let mut next = table.first()?;
        while let Some(key) = next {
            if delete {
                table.delete_key(&key)?;
            }
            next = table.next(&key)?;
            keys.push(key);
        }
        table.safe_fixtable(false)?;
        keys.sort();
        Ok(Term::list(keys))
    }

    fn first_chunk(
        &self,
        function: &Term,
        pattern: &Term,
        limit: &Term,
    ) -> Result<Option<Chunk>, BadCall> {
        let (table, limit) = (&self.table, number(limit)?);
        Ok(match function.to_string().as_str() {
            "select" => table.select_limit(&compile(pattern)?, limit)?,
            "select_reverse" => table.select_reverse_limit(&compile(pattern)?, limit)?,
            "match" => table.match_pattern_limit(pattern, limit)?,
            _ => table.match_object_limit(pattern, limit)?,
        })
    }

    fn chunks(&self, function: &Term, pattern: &Term, limit: &Term) -> Called {
        let mut chunks = Vec::new();
        let mut next = self.first_chunk(function, pattern, limit)?;
        loop {
            let Some(chunk) = next else {
                chunks.push(Atom::END_OF_TABLE.into());
                break;
            };
            chunks.push(Term::list(chunk.found));
            let Some(rest) = chunk.rest else { break };
            next = self.table.select_next(&rest)?;
        }
        Ok(Term::list(chunks))
    }

    fn keep(&mut self, chunk: Option<Chunk>) -> Term {
        let Some(chunk) = chunk else {
            self.continuation = None;
            return Atom::END_OF_TABLE.into();
        };
        let end = if chunk.rest.is_some() {
            atom("more")
        } else {
            Atom::END_OF_TABLE.into()
        };
        self.continuation = chunk.rest;
        Term::tuple([Term::list(chunk.found), end])
    }
}

fn prepended(row: Tuple, mut all: Vec<Tuple>) -> Vec<Tuple> {
    all.insert(0, row);
    all
}

/// All elements of a list.
pub(crate) fn elements(term: &Term) -> Option<Vec<Term>> {
    match term {
        Term::List(list) => Some(list.iter().cloned().collect()),
        _ => None,
    }
}
