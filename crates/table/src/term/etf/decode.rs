//! Reading the external term format.

use super::super::map::pairs;
use super::super::{Limits, LocalFun, Map, Term, Tuple};
use super::error::{DecodeError, DecodeProblem};
use super::reader::Reader;
use super::{expand, leaves, tag};

/// Reads one term, including its version byte, from the front of `bytes`. Also returns how many
/// bytes it took.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<(Term, usize), DecodeError> {
    let mut reader = Reader::new(bytes, false);
    let version = reader.u8()?;
    if version != tag::VERSION {
        return Err(reader.error(0, DecodeProblem::Version(version)));
    }
    let offset = reader.position();
    if bytes.get(offset) != Some(&tag::COMPRESSED) {
        let term = Decoder::new(&mut reader, limits).term()?;
        return Ok((term, reader.position()));
    }
    reader.u8()?;
    let (expanded, used) = expand::expand(&mut reader, offset, limits)?;
    let mut reader = Reader::new(&expanded, true);
    let term = Decoder::new(&mut reader, limits).term()?;
    match reader.left() {
        0 => Ok((term, used)),
        left => Err(reader.error(reader.position(), DecodeProblem::Trailing(left))),
    }
}

/// Reads one term without a version byte from the front of `bytes`. Also returns how many bytes it
/// took.
pub(super) fn decode_body(bytes: &[u8], limits: &Limits) -> Result<(Term, usize), DecodeError> {
    let mut reader = Reader::new(bytes, false);
    let term = Decoder::new(&mut reader, limits).term()?;
    Ok((term, reader.position()))
}

struct Decoder<'r, 'a, 'l> {
    reader: &'r mut Reader<'a>,
    limits: &'l Limits,
    /// Finished terms whose outer term is not finished.
    values: Vec<Term>,
    /// Terms that have begun; each is inside the one before.
    open: Vec<Open>,
}

/// A term of which `left` inner terms are missing.
struct Open {
    shape: Shape,
    offset: usize,
    /// Where its values begin in `values`.
    start: usize,
    left: u64,
}

enum Shape {
    Tuple,
    /// The last value is the tail.
    List,
    /// Keys and values alternate.
    Map,
    Fun(Box<BegunFun>),
}

/// A function without the values that it holds.
struct BegunFun {
    fun: LocalFun,
    /// Where it must end, by its own size.
    end: usize,
}

impl<'r, 'a, 'l> Decoder<'r, 'a, 'l> {
    fn new(reader: &'r mut Reader<'a>, limits: &'l Limits) -> Self {
        Self {
            reader,
            limits,
            values: Vec::new(),
            open: Vec::new(),
        }
    }

    fn term(mut self) -> Result<Term, DecodeError> {
        loop {
            let offset = self.reader.position();
            let tag = self.reader.u8()?;
            let term = match leaves::leaf(self.reader, offset, tag, self.limits)? {
                Some(term) => Some(term),
                None => self.begin(offset, tag)?,
            };
            if let Some(term) = term
                && let Some(whole) = self.add(term)?
            {
                return Ok(whole);
            }
        }
    }

    /// Begins a term with inner terms. Returns the term if it has none.
    fn begin(&mut self, offset: usize, tag: u8) -> Result<Option<Term>, DecodeError> {
        let (shape, count) = match tag {
            tag::SMALL_TUPLE => (Shape::Tuple, self.reader.u8()?.into()),
            tag::LARGE_TUPLE => (Shape::Tuple, self.reader.u32()?.into()),
            tag::LIST => (Shape::List, u64::from(self.reader.u32()?) + 1),
            tag::MAP => (Shape::Map, u64::from(self.reader.u32()?) * 2),
            tag::NEW_FUN => self.begin_fun(offset)?,
            _ => return Err(self.reader.error(offset, DecodeProblem::UnknownTag(tag))),
        };
        // Every term takes at least one byte.
        self.reader.expect(count)?;
        let open = Open {
            shape,
            offset,
            start: self.values.len(),
            left: count,
        };
        if count == 0 {
            return self.finish(open).map(Some);
        }
        if self.open.len() >= self.limits.nesting {
            let problem = DecodeProblem::TooDeep(self.limits.nesting);
            return Err(self.reader.error(offset, problem));
        }
        self.open.push(open);
        Ok(None)
    }

    fn begin_fun(&mut self, offset: usize) -> Result<(Shape, u64), DecodeError> {
        let start = self.reader.position();
        let size = self.reader.u32()?;
        let arity = self.reader.u8()?;
        let unique = self.reader.array()?;
        let index = self.reader.u32()?;
        let free = self.reader.u32()?;
        let fun = LocalFun {
            arity,
            unique,
            index,
            module: leaves::atom(self.reader, self.limits)?,
            old_index: leaves::integer(self.reader, self.limits)?,
            old_unique: leaves::integer(self.reader, self.limits)?,
            pid: leaves::pid(self.reader, self.limits)?,
            free: Tuple::default(),
        };
        let end = start
            .checked_add(size as usize)
            .ok_or_else(|| self.reader.error(offset, DecodeProblem::FunSize))?;
        let begun = Box::new(BegunFun { fun, end });
        Ok((Shape::Fun(begun), free.into()))
    }

    /// Adds a term to its outer term. If that is now complete, adds it to the next outer one, and
    /// so on. Returns the outermost term when it is complete.
    fn add(&mut self, term: Term) -> Result<Option<Term>, DecodeError> {
        let mut term = term;
        loop {
            let Some(open) = self.open.last_mut() else {
                return Ok(Some(term));
            };
            self.values.push(term);
            open.left -= 1;
            if open.left > 0 {
                return Ok(None);
            }
            term = match self.open.pop() {
                Some(open) => self.finish(open)?,
                None => return Ok(None),
            };
        }
    }

    fn finish(&mut self, open: Open) -> Result<Term, DecodeError> {
        let mut values = self.values.drain(open.start..);
        Ok(match open.shape {
            Shape::Tuple => Term::tuple(values),
            Shape::List => {
                let tail = values.next_back().unwrap_or_default();
                Term::list_with_tail(values, tail)
            }
            Shape::Map => {
                let map = Map::from_distinct(pairs(values))
                    .ok_or_else(|| self.reader.error(open.offset, DecodeProblem::DuplicateKey))?;
                Term::Map(map)
            }
            Shape::Fun(begun) => {
                let BegunFun { mut fun, end } = *begun;
                fun.free = Tuple::new(values);
                if self.reader.position() != end {
                    return Err(self.reader.error(open.offset, DecodeProblem::FunSize));
                }
                Term::from(fun)
            }
        })
    }
}
