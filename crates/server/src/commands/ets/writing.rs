//! Writing terms into replies, in slices.

use super::super::Failure;
use super::call::{ETF, Format};
use crate::resp::Reply;
use std::fmt::{self, Write};
use tremula_table::Term;

/// The tags of the external format that are written here.
mod tag {
    pub(super) const SMALL_TUPLE: u8 = 104;
    pub(super) const LARGE_TUPLE: u8 = 105;
    pub(super) const LIST: u8 = 108;
    pub(super) const MAP: u8 = 116;
}

/// Terms of at most this many bytes are written at once, which takes at most a fraction of a
/// millisecond.
pub(super) const AT_ONCE: usize = if cfg!(test) { 64 } else { 64 << 10 };

/// Writes a term at once. A term that is too long for a reply is an error; the connection goes on.
pub(super) fn write(
    reply: &mut Reply,
    format: Format,
    term: &Term,
    limit: usize,
) -> Result<(), Failure> {
    let mut out = Out::new(format, limit);
    out.term(term)?;
    reply.bulk(out.written());
    Ok(())
}

/// The bytes of a term in a reply with this limit: less the header and the line end of a string.
const fn room(limit: usize) -> usize {
    limit.saturating_sub(64)
}

fn too_long(limit: usize) -> Failure {
    let text = format!(
        "ERR the term exceeds the output buffer limit of {limit} bytes; ask for less at once, \
         with a limit"
    );
    Failure::Owned(text.into_bytes())
}

/// A term that is being written. A large one is written part by part.
pub(super) struct Writing {
    /// The parts that are left, of terms that have begun; each term is inside the one before.
    open: Vec<Open>,
    out: Out,
}

/// The rest of a term that has begun.
struct Open {
    left: Parts,
    /// What the text has behind the last part.
    closing: &'static str,
}

/// The parts that are left, each with what the text has before it.
type Parts = Box<dyn Iterator<Item = (&'static str, Term)> + Send>;

impl Writing {
    pub(super) fn new(term: Term, format: Format, limit: usize) -> Self {
        let only = Open {
            left: Box::new(std::iter::once(("", term))),
            closing: "",
        };
        Self {
            open: vec![only],
            out: Out::new(format, limit),
        }
    }

    /// Begins to write a proper list of these terms.
    pub(super) fn of_list(terms: Vec<Term>, format: Format, limit: usize) -> Result<Self, Failure> {
        if terms.iter().all(is_character) {
            return Ok(Self::new(Term::list(terms), format, limit));
        }
        let mut out = Out::new(format, limit);
        let open = vec![out.list(terms, Term::NIL)?];
        Ok(Self { open, out })
    }

    /// Writes parts as long as it may. Returns whether the term is complete.
    pub(super) fn go_on(&mut self, may_go_on: &mut dyn FnMut() -> bool) -> Result<bool, Failure> {
        while let Some(open) = self.open.last_mut() {
            let Some((before, term)) = open.left.next() else {
                self.out.text(open.closing)?;
                self.open.pop();
                continue;
            };
            self.out.text(before)?;
            match self.out.begin(&term)? {
                Some(begun) => self.open.push(begun),
                None => self.out.term(&term)?,
            }
            if !may_go_on() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn written(&self) -> &[u8] {
        self.out.written()
    }
}

/// What has been written.
struct Out {
    form: Form,
    /// The limit of the reply.
    limit: usize,
}

enum Form {
    Text(Bounded),
    Etf(Vec<u8>),
}

impl Out {
    fn new(format: Format, limit: usize) -> Self {
        let form = match format {
            Format::Text => Form::Text(Bounded::new(room(limit))),
            Format::Etf => Form::Etf(vec![ETF]),
        };
        Self { form, limit }
    }

    fn written(&self) -> &[u8] {
        match &self.form {
            Form::Text(out) => out.text.as_bytes(),
            Form::Etf(out) => out,
        }
    }

    /// Writes a whole term.
    fn term(&mut self, term: &Term) -> Result<(), Failure> {
        let too_long = || too_long(self.limit);
        match &mut self.form {
            Form::Text(out) => write!(out, "{term}").map_err(|_| too_long()),
            Form::Etf(out) => {
                // Only the whole begins with the version.
                let room = room(self.limit).saturating_sub(out.len() - 1);
                let bytes = term.to_etf_within(room).ok_or_else(too_long)?;
                out.extend(&bytes[1..]);
                Ok(())
            }
        }
    }

    /// Writes what only the text has.
    fn text(&mut self, text: &str) -> Result<(), Failure> {
        match &mut self.form {
            Form::Text(out) => out.write_str(text).map_err(|_| too_long(self.limit)),
            Form::Etf(_) => Ok(()),
        }
    }

    /// Writes what the external form has before the parts of a term.
    fn header(&mut self, tag: u8, length: usize) -> Result<(), Failure> {
        let Form::Etf(out) = &mut self.form else {
            return Ok(());
        };
        match (tag, u8::try_from(length)) {
            (tag::LARGE_TUPLE, Ok(small)) => out.extend([tag::SMALL_TUPLE, small]),
            _ => {
                let length = u32::try_from(length).map_err(|_| too_long(self.limit))?;
                out.push(tag);
                out.extend(length.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Begins a large term with parts; `None` if the term is written at once.
    fn begin(&mut self, term: &Term) -> Result<Option<Open>, Failure> {
        if term.heap_bytes() <= AT_ONCE {
            return Ok(None);
        }
        let (left, opening, closing): (Parts, _, _) = match term {
            Term::Tuple(tuple) => {
                self.header(tag::LARGE_TUPLE, tuple.len())?;
                let (tuple, elements) = (tuple.clone(), 0..tuple.len());
                let part = move |index: usize| (comma(index), tuple[index].clone());
                (Box::new(elements.map(part)), "{", "}")
            }
            Term::Map(map) => {
                self.header(tag::MAP, map.len())?;
                let (map, entries) = (map.clone(), 0..map.len());
                let parts = move |index: usize| {
                    let (key, value) = map.entries()[index].clone();
                    [(comma(index), key), (" => ", value)]
                };
                (Box::new(entries.flat_map(parts)), "#{", "}")
            }
            // It may have the form of a string.
            Term::List(list) if list.iter().all(is_character) => return Ok(None),
            Term::List(list) => {
                let mut elements = list.iter();
                let terms = elements.by_ref().cloned().collect();
                return self.list(terms, elements.tail().clone()).map(Some);
            }
            _ => return Ok(None),
        };
        self.text(opening)?;
        Ok(Some(Open { left, closing }))
    }

    /// Begins a list.
    fn list(&mut self, terms: Vec<Term>, tail: Term) -> Result<Open, Failure> {
        self.header(tag::LIST, terms.len())?;
        self.text("[")?;
        let has_tail = matches!(self.form, Form::Etf(_)) || !tail.is_nil();
        let elements = terms.into_iter().enumerate();
        let elements = elements.map(|(index, element)| (comma(index), element));
        Ok(Open {
            left: Box::new(elements.chain(has_tail.then_some(("|", tail)))),
            closing: "]",
        })
    }
}

const fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

/// Whether an element of a list may be a character of a string.
fn is_character(term: &Term) -> bool {
    matches!(term, Term::Integer(0..=255))
}

/// Text with a limit. Writing beyond it fails.
pub(super) struct Bounded {
    pub(super) text: String,
    limit: usize,
}

impl Bounded {
    pub(super) const fn new(limit: usize) -> Self {
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

    const LIMIT: usize = 10_000;

    fn finished(mut writing: Writing) -> (Vec<u8>, usize) {
        let mut slices = 1;
        while !writing.go_on(&mut || false).expect("it fits") {
            slices += 1;
        }
        (writing.written().to_vec(), slices)
    }

    /// Fails if a term that is written in slices differs from one that is written at once.
    #[test]
    fn a_term_in_slices_is_what_it_is_at_once() {
        for text in [
            "a",
            "[]",
            "[a]",
            "[[]]",
            "[1,2,a|b]",
            "\"a string of more characters than are written at once, to see that it is one\"",
            "[256,1,2,3,4,{}|{x,y,z}]",
            "{a,b,[c,d,{e,f},[1|2],\"abc\",<<1,2,3>>],#{k => {v,w,x,y,z},{l,m,n,o} => []}}",
            "[[[[[[a,b,c],d,e,f],g],h]|i],{{{{{j,k,l,m,n}}}}},#{a => #{b => #{c => [d,e,f|g]}}}]",
        ] {
            let term: Term = text.parse().unwrap();
            let wide = Term::tuple(vec![term.clone(); 300]);
            for term in [term, wide] {
                for format in [Format::Text, Format::Etf] {
                    let whole = match format {
                        Format::Text => term.to_string().into_bytes(),
                        Format::Etf => term.to_etf().unwrap(),
                    };
                    let (written, slices) = finished(Writing::new(term.clone(), format, 1 << 20));
                    assert_eq!(written, whole, "{text}");
                    assert!(slices > term.as_tuple().map_or(0, |tuple| tuple.len().min(2)));
                    if let Term::List(list) = &term
                        && list.is_proper()
                    {
                        let terms = list.iter().cloned().collect();
                        let writing = Writing::of_list(terms, format, LIMIT).unwrap();
                        assert_eq!(finished(writing).0, whole, "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_too_long_for_a_reply_is_an_error() {
        let long = vec![Term::binary(&[b'x'; 900]); 12];
        for format in [Format::Text, Format::Etf] {
            let mut writing = Writing::of_list(long.clone(), format, LIMIT).unwrap();
            assert!(writing.go_on(&mut || true).is_err());
            let mut writing = Writing::new(Term::list(long.clone()), format, LIMIT);
            assert!(writing.go_on(&mut || true).is_err());
        }
    }
}
