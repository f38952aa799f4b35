//! Reading byte forms.

use super::super::{
    Atom, Bitstring, DecodeError, DecodeProblem, Export, Limits, LocalFun, Map, Pid, Port,
    Reference, Term, Tuple,
};
use super::{END, OWN_ZERO, SHORT_SIZE, error, number, tag};

/// In the place of what is missing.
const MISSING: &str = "...";

/// Bits of an integer that can be seen at a glimpse: as many as floats have, and some more.
const MOST_SHOWN_BITS: u64 = 2048;

/// A term whose inner terms are being read.
enum Open {
    Tuple {
        size: usize,
        made: Vec<Term>,
    },
    /// Elements of a list, and whether the next term is its rest.
    List {
        made: Vec<Term>,
        is_rest: bool,
    },
    Keys {
        size: usize,
        made: Vec<Term>,
    },
    Values {
        keys: Vec<Term>,
        made: Vec<Term>,
    },
    Fun {
        code: (Atom, u32, i64),
        size: usize,
        made: Vec<Term>,
    },
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a Limits,
    open: Vec<Open>,
    /// How many of the open terms are keys of maps.
    keys: usize,
    /// What has been read of a string that does not end.
    partial: Option<Vec<u8>>,
    /// Whether atoms that do not exist are read as missing.
    is_glimpse: bool,
}

pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<Term, DecodeError> {
    let mut reader = Reader::new(bytes, limits, false);
    let term = reader.read()?;
    match bytes.len() - reader.at {
        0 => Ok(term),
        left => error(reader.at, DecodeProblem::Trailing(left)),
    }
}

pub(super) fn glimpse(bytes: &[u8]) -> Result<Term, DecodeError> {
    let limits = Limits::default()
        .new_atoms(false)
        .integer_bits(MOST_SHOWN_BITS);
    let mut reader = Reader::new(bytes, &limits, true);
    match reader.read() {
        Err(cut) if matches!(cut.problem, DecodeProblem::Truncated { .. }) => reader.close(),
        read => read,
    }
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], limits: &'a Limits, is_glimpse: bool) -> Self {
        Self {
            bytes,
            at: 0,
            limits,
            open: Vec::new(),
            keys: 0,
            partial: None,
            is_glimpse,
        }
    }

    fn read(&mut self) -> Result<Term, DecodeError> {
        loop {
            let mut whole = self.begin()?;
            // Each term that is whole may be the last one of the term around it.
            while let Some(term) = whole.take() {
                let Some(open) = self.open.pop() else {
                    return Ok(term);
                };
                whole = self.add(open, term)?;
            }
        }
    }

    /// Reads a term, or the beginning of one, which is open then.
    fn begin(&mut self) -> Result<Option<Term>, DecodeError> {
        let tag = self.take::<1>()?[0];
        if let Some(Open::List { is_rest, .. }) = self.open.last_mut()
            && *is_rest
            && tag == tag::LIST
        {
            *is_rest = false;
            return Ok(None);
        }
        let is_by_type = self.keys > 0;
        Ok(Some(match tag {
            tag::ZERO => Term::from(0),
            tag::ZERO_FLOAT if is_by_type => self.float_zero()?,
            tag::NEGATIVE | tag::POSITIVE => self.number(tag)?,
            tag::NEGATIVE_FLOAT | tag::POSITIVE_FLOAT if is_by_type => self.number(tag)?,
            tag::ATOM => self.atom()?.into(),
            tag::REFERENCE => self.reference()?,
            tag::LOCAL_FUN => {
                let (module, index) = (self.atom()?, u32::from_be_bytes(self.take()?));
                let old_unique = i64::from_be_bytes(self.take()?) ^ i64::MIN;
                let code = (module, index, old_unique);
                let (size, made) = (self.size()?, Vec::new());
                return self.open(size, Open::Fun { code, size, made });
            }
            tag::EXPORT => Export {
                module: self.atom()?,
                function: self.atom()?,
                arity: self.take::<1>()?[0],
            }
            .into(),
            tag::PORT => {
                let (node, creation) = (self.atom()?, u32::from_be_bytes(self.take()?));
                Port::new(node, u64::from_be_bytes(self.take()?), creation).into()
            }
            tag::PID => {
                let serial = u32::from_be_bytes(self.take()?);
                let id = u32::from_be_bytes(self.take()?);
                let node = self.atom()?;
                Pid::new(node, id, serial, u32::from_be_bytes(self.take()?)).into()
            }
            tag::TUPLE => {
                let (size, made) = (self.size()?, Vec::new());
                return self.open(size, Open::Tuple { size, made });
            }
            tag::MAP => {
                let (size, made) = (self.size()?, Vec::new());
                return self.open(size, Open::Keys { size, made });
            }
            tag::NIL => Term::NIL,
            tag::LIST => {
                let (made, is_rest) = (Vec::new(), false);
                return self.open(1, Open::List { made, is_rest });
            }
            tag::BITSTRING => self.bitstring()?,
            other => return error(self.at - 1, DecodeProblem::UnknownTag(other)),
        }))
    }

    /// Opens a term with this number of inner terms, unless it is whole without any.
    fn open(&mut self, size: usize, open: Open) -> Result<Option<Term>, DecodeError> {
        if size == 0 {
            return Ok(Some(self.made(open)?));
        }
        if self.open.len() >= self.limits.nesting {
            return error(self.at, DecodeProblem::TooDeep(self.limits.nesting));
        }
        self.keys += usize::from(matches!(open, Open::Keys { .. }));
        self.open.push(open);
        Ok(None)
    }

    /// Adds an inner term. Returns the term around it if that is whole now.
    fn add(&mut self, mut open: Open, term: Term) -> Result<Option<Term>, DecodeError> {
        let is_whole = match &mut open {
            Open::Tuple { size, made } | Open::Fun { size, made, .. } => {
                made.push(term);
                made.len() == *size
            }
            Open::List {
                is_rest: true,
                made,
            } => {
                let made = std::mem::take(made);
                return Ok(Some(Term::list_with_tail(made, term)));
            }
            Open::List { made, is_rest } => {
                made.push(term);
                *is_rest = true;
                false
            }
            Open::Keys { size, made } => {
                if made
                    .last()
                    .is_some_and(|last| last.cmp_exact(&term).is_ge())
                {
                    return error(self.at, DecodeProblem::DuplicateKey);
                }
                made.push(term);
                if made.len() == *size {
                    self.keys -= 1;
                    let (keys, made) = (std::mem::take(made), Vec::new());
                    open = Open::Values { keys, made };
                }
                false
            }
            Open::Values { keys, made } => {
                made.push(term);
                made.len() == keys.len()
            }
        };
        if is_whole {
            return Ok(Some(self.made(open)?));
        }
        self.open.push(open);
        Ok(None)
    }

    /// The term of what has been read of it.
    fn made(&self, open: Open) -> Result<Term, DecodeError> {
        Ok(match open {
            Open::Tuple { made, .. } => Term::tuple(made),
            Open::List { made, .. } => Term::list(made),
            Open::Keys { made, .. } => {
                let missing = self.missing()?;
                Term::map(made.into_iter().map(|key| (key, missing.clone())).collect())
            }
            Open::Values { keys, made } => {
                let missing = self.missing()?;
                let values = made.into_iter().chain(std::iter::repeat(missing));
                Map::new(keys.into_iter().zip(values).collect()).into()
            }
            Open::Fun { code, made, .. } => LocalFun {
                module: code.0,
                index: code.1,
                old_unique: code.2,
                old_index: code.1.into(),
                unique: [0; 16],
                arity: 0,
                pid: Pid::new(Atom::NO_NODE, 0, 0, 0),
                free: Tuple::new(made),
            }
            .into(),
        })
    }

    /// Closes all terms that are open where the bytes end.
    fn close(&mut self) -> Result<Term, DecodeError> {
        let partial = self.partial.take();
        let mut inner =
            partial.map(|partial| Term::binary(&[&partial, MISSING.as_bytes()].concat()));
        while let Some(open) = self.open.pop() {
            inner = Some(self.closed(open, inner)?);
        }
        inner.map_or_else(|| self.missing(), Ok)
    }

    /// A term with the part that could be read of an inner term, if there is any.
    fn closed(&self, mut open: Open, inner: Option<Term>) -> Result<Term, DecodeError> {
        if let Open::List { made, is_rest } = &mut open
            && (*is_rest || inner.is_none())
        {
            let rest = inner.map_or_else(|| self.missing(), Ok)?;
            return Ok(Term::list_with_tail(std::mem::take(made), rest));
        }
        let inner = inner.map_or_else(|| self.missing(), Ok)?;
        match &mut open {
            Open::Tuple { made, .. }
            | Open::List { made, .. }
            | Open::Keys { made, .. }
            | Open::Values { made, .. }
            | Open::Fun { made, .. } => made.push(inner),
        }
        self.made(open)
    }

    fn missing(&self) -> Result<Term, DecodeError> {
        Term::atom(MISSING).or_else(|problem| error(self.at, DecodeProblem::Atom(problem)))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let rest = &self.bytes[self.at..];
        let Some((taken, _)) = rest.split_first_chunk() else {
            let missing = (N - rest.len()) as u64;
            return error(self.bytes.len(), DecodeProblem::Truncated { missing });
        };
        self.at += N;
        Ok(*taken)
    }

    fn float_zero(&self) -> Result<Term, DecodeError> {
        Term::try_from(0.0).or_else(|_| error(self.at, DecodeProblem::Float))
    }

    fn number(&mut self, tag: u8) -> Result<Term, DecodeError> {
        let rest = &self.bytes[self.at..];
        let read = number::read(tag, rest, self.keys > 0, self.limits);
        let (number, used) = read.map_err(|mut problem| {
            problem.offset += self.at;
            problem
        })?;
        self.at += used;
        Ok(number)
    }

    fn size(&mut self) -> Result<usize, DecodeError> {
        let at = self.at;
        let first = self.take::<1>()?[0];
        let length = match first.checked_sub(SHORT_SIZE) {
            None | Some(0) => return Ok(first.into()),
            Some(length) => length,
        };
        let mut size = 0_u64;
        for _ in 0..length {
            let byte = self.take::<1>()?[0];
            if size == 0 && byte == 0 || size >> 56 != 0 {
                return error(at, DecodeProblem::NotCanonical);
            }
            size = size << 8 | u64::from(byte);
        }
        match usize::try_from(size) {
            Ok(size) if size > SHORT_SIZE.into() => Ok(size),
            _ => error(at, DecodeProblem::NotCanonical),
        }
    }

    /// Reads bytes up to their end.
    fn string(&mut self) -> Result<Vec<u8>, DecodeError> {
        let mut read = Vec::new();
        loop {
            let rest = &self.bytes[self.at..];
            let plain = rest.iter().position(|byte| *byte == 0);
            read.extend(&rest[..plain.unwrap_or(rest.len())]);
            self.at += plain.unwrap_or(rest.len());
            match self.take() {
                Ok([0, END]) => return Ok(read),
                Ok([0, OWN_ZERO]) => read.push(0),
                Ok(_) => return error(self.at - 1, DecodeProblem::NotCanonical),
                Err(cut) => {
                    self.partial = Some(read);
                    return Err(cut);
                }
            }
        }
    }

    fn atom(&mut self) -> Result<Atom, DecodeError> {
        let at = self.at;
        let bytes = self.string();
        if bytes.is_err() {
            // A part of an atom is none.
            self.partial = None;
        }
        let Ok(text) = String::from_utf8(bytes?) else {
            return error(at, DecodeProblem::NotUtf8);
        };
        let atom = match self.limits.atom(&text) {
            Ok(None) if self.is_glimpse => Atom::new(MISSING).map(Some),
            other => other,
        };
        match atom {
            Ok(Some(atom)) => Ok(atom),
            Ok(None) => error(at, DecodeProblem::NewAtom(text)),
            Err(problem) => error(at, DecodeProblem::Atom(problem)),
        }
    }

    fn bitstring(&mut self) -> Result<Term, DecodeError> {
        let bytes = self.string()?;
        let used = self.take::<1>()?[0];
        let bits = match (bytes.len(), used) {
            (0, 8) => 0,
            (length, 1..=8) if length > 0 => (length - 1) * 8 + usize::from(used),
            (length, bits) => {
                let bytes = u32::try_from(length).unwrap_or(u32::MAX);
                return error(self.at - 1, DecodeProblem::BitCount { bytes, bits });
            }
        };
        let string = Bitstring::from_bits(&bytes, bits);
        if string.bytes() != bytes {
            return error(self.at - 1, DecodeProblem::NotCanonical);
        }
        Ok(string.into())
    }

    fn reference(&mut self) -> Result<Term, DecodeError> {
        let (node, creation) = (self.atom()?, u32::from_be_bytes(self.take()?));
        let mut words = [0; Reference::MAX_WORDS];
        for word in words.iter_mut().rev() {
            *word = u32::from_be_bytes(self.take()?);
        }
        let zeros = words.iter().rev().take_while(|word| **word == 0).count();
        let words = &words[..(Reference::MAX_WORDS - zeros).max(1)];
        match Reference::new(node, creation, words) {
            Some(reference) => Ok(reference.into()),
            None => error(self.at, DecodeProblem::ReferenceWords(words.len() as u16)),
        }
    }
}
