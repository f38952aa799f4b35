//! Terms in their two written forms.

use crate::Term;
use crate::term::{Atom, Bounds, DecodeProblem, FunKind, Limits, ParseProblem};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Atoms are never freed. From this number on, inputs may only use those that exist.
const MOST_ATOMS: u32 = 100_000;

/// What a short form may expand to under the tight limits.
const TIGHT_EXPANSION: usize = 1 << 10;

/// What a short form may expand to under the wide limits.
const WIDE_EXPANSION: usize = 1 << 16;

/// The most bytes on the heap for a byte of input: a number of one digit and a comma is an element
/// of 16 bytes, and an empty bit string is an allocation.
const HEAP_PER_BYTE: usize = 100;

/// The most bytes of text for a byte of a term: a byte of a string becomes a number and a comma.
const TEXT_PER_BYTE: usize = 10;

/// Limits that short inputs reach.
fn tight() -> Limits {
    wide()
        .nesting(6)
        .integer_bits(256)
        .expanded_bytes(TIGHT_EXPANSION)
}

/// Limits that hardly any input reaches.
fn wide() -> Limits {
    Limits::default()
        .expanded_bytes(WIDE_EXPANSION)
        .new_atoms(Atom::count() < MOST_ATOMS)
}

/// A text that may be a term.
///
/// An error names a byte of the text. A term that is read keeps to the limits, prints as a text
/// that reads as the same term and prints the same, and takes memory in proportion to the text.
///
/// # Panics
///
/// One of these does not hold.
pub fn terms(data: &[u8]) {
    let read = [tight(), wide()].map(|limits| {
        let read = Term::parse_bytes(data, &limits);
        match &read {
            Ok(term) => keeps_to(term, &limits, data.len()),
            Err(error) => {
                assert!(error.offset <= data.len(), "{error}");
                let is_boundary = |text: &str| text.is_char_boundary(error.offset);
                assert!(std::str::from_utf8(data).map_or(true, is_boundary));
                assert!(
                    error
                        .to_string()
                        .starts_with(&format!("byte {}: ", error.offset))
                );
            }
        }
        read
    });
    match read {
        [Ok(tight), Ok(wide)] => assert!(tight.is_identical(&wide), "{tight} {wide}"),
        [Ok(term), Err(error)] => panic!("{term} is refused by wider limits: {error}"),
        [Err(error), Ok(_)] => assert!(
            matches!(
                error.problem,
                ParseProblem::TooDeep(_)
                    | ParseProblem::IntegerTooLong { .. }
                    | ParseProblem::ExpandsTooFar(_)
            ),
            "{error}"
        ),
        [Err(_), Err(_)] => return,
    }
    let Ok(term) = Term::parse_bytes(data, &wide()) else {
        return;
    };
    assert!(!holds_local_fun(&term), "{term} cannot be written as text");
    prints_and_reads(&term);
    encodes_and_decodes(&term);
}

/// Bytes that may be a term in the external format.
///
/// An error names a byte of the input, or of what that expands to. A term that is read keeps to the
/// limits, and is encoded as bytes that decode as the same term. A limit of the encoded length is
/// kept to the byte.
///
/// # Panics
///
/// One of these does not hold.
pub fn etf(data: &[u8]) {
    let read = [(tight(), TIGHT_EXPANSION), (wide(), WIDE_EXPANSION)].map(|(limits, expansion)| {
        let read = Term::from_etf_prefix(data, &limits);
        match &read {
            Ok((term, used)) => {
                assert!(*used <= data.len());
                keeps_to(term, &limits, data.len());
                let whole = Term::from_etf(&data[..*used], &limits);
                assert!(whole.is_ok_and(|whole| whole.is_identical(term)));
                assert_eq!(Term::from_etf(data, &limits).is_ok(), *used == data.len());
            }
            Err(error) => {
                let bytes = if error.in_expanded {
                    expansion
                } else {
                    data.len()
                };
                assert!(error.offset <= bytes, "{error}");
                assert!(
                    error
                        .to_string()
                        .starts_with(&format!("byte {}", error.offset))
                );
                assert_eq!(Term::from_etf(data, &limits).as_ref(), Err(error));
            }
        }
        read
    });
    match read {
        [Ok((tight, _)), Ok((wide, _))] => assert!(tight.is_identical(&wide), "{tight} {wide}"),
        [Ok((term, _)), Err(error)] => panic!("{term} is refused by wider limits: {error}"),
        [Err(error), Ok(_)] => assert!(
            matches!(
                error.problem,
                DecodeProblem::TooDeep(_)
                    | DecodeProblem::IntegerTooLong { .. }
                    | DecodeProblem::ExpandsTooFar { .. }
            ),
            "{error}"
        ),
        [Err(_), Err(_)] => return,
    }
    let Ok((term, _)) = Term::from_etf_prefix(data, &wide()) else {
        return;
    };
    encodes_and_decodes(&term);
    if holds_local_fun(&term) {
        let _ = term.to_string();
    } else {
        prints_and_reads(&term);
    }
}

fn keeps_to(term: &Term, limits: &Limits, input: usize) {
    let (bytes, depth) = (term.heap_bytes(), term.depth());
    assert_eq!(depth, measured_depth(term), "{term}");
    assert!(depth <= limits.nesting, "{depth} levels: {term}");
    let most = HEAP_PER_BYTE * (input + limits.expanded_bytes);
    assert!(bytes <= most, "{bytes} bytes of {input}: {term}");
    assert_eq!(Bounds { bytes, depth }.check(term), Ok(()));
    let smaller = Bounds {
        bytes: bytes.wrapping_sub(1),
        depth,
    };
    assert_eq!(smaller.check(term).is_ok(), bytes == 0);
    if let Term::BigInteger(number) = term {
        assert!(number.value().bits() <= limits.integer_bits);
    }
}

fn prints_and_reads(term: &Term) {
    let text = term.to_string();
    let most = TEXT_PER_BYTE * (term.heap_bytes() + longest_names(term) + 100);
    assert!(text.len() <= most, "{} bytes: {text}", text.len());
    let read = match Term::parse(&text, &Limits::NONE) {
        Ok(read) => read,
        Err(error) => panic!("{text}: {error}"),
    };
    assert!(read.is_identical(term), "{text} reads as {read}");
    assert_eq!(read.to_string(), text);
    assert!(read == *term && read.cmp(term).is_eq(), "{text}");
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    assert_eq!(hasher.hash_one(&read), hasher.hash_one(term), "{text}");
}

fn encodes_and_decodes(term: &Term) {
    let Ok(bytes) = term.to_etf() else {
        panic!("no short term is too large for the format: {term}");
    };
    assert_eq!(term.to_etf_within(bytes.len()).as_ref(), Some(&bytes));
    assert_eq!(term.to_etf_within(bytes.len() - 1), None);
    let Ok(compressed) = term.to_etf_compressed(6) else {
        panic!("no short term is too large for the format: {term}");
    };
    assert!(compressed.len() <= bytes.len());
    for written in [&bytes, &compressed] {
        let read = match Term::from_etf(written, &Limits::NONE) {
            Ok(read) => read,
            Err(error) => panic!("{written:?}: {error}"),
        };
        assert!(read.is_identical(term), "{term} became {read}");
        // The parts of a list may be in one allocation now.
        assert!(read.heap_bytes() <= term.heap_bytes(), "{term}");
        assert_eq!(read.to_etf().as_ref(), Ok(&bytes));
    }
}

/// The terms directly inside a term; the tail of a list is the last.
fn inner(term: &Term) -> Vec<&Term> {
    match term {
        Term::Tuple(tuple) => tuple.iter().collect(),
        Term::Map(map) => map
            .entries()
            .iter()
            .flat_map(|(key, value)| [key, value])
            .collect(),
        Term::List(list) => {
            let mut elements = list.iter();
            let mut inner: Vec<_> = elements.by_ref().collect();
            inner.push(elements.tail());
            inner
        }
        Term::Fun(fun) => match fun.kind() {
            FunKind::Local(fun) => fun.free.iter().collect(),
            FunKind::Export(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn any(term: &Term, is_so: &mut dyn FnMut(&Term) -> bool) -> bool {
    let mut open = vec![term];
    while let Some(term) = open.pop() {
        if is_so(term) {
            return true;
        }
        let is_nil = term.is_nil();
        open.extend(inner(term).into_iter().filter(|_| !is_nil));
    }
    false
}

fn holds_local_fun(term: &Term) -> bool {
    any(
        term,
        &mut |term| matches!(term, Term::Fun(fun) if matches!(fun.kind(), FunKind::Local(_))),
    )
}

/// The bytes of all atoms and numbers, which take none on the heap.
fn longest_names(term: &Term) -> usize {
    let mut bytes = 0;
    any(term, &mut |term| {
        bytes += match term {
            Term::Atom(atom) => atom.text().len(),
            // The names of nodes and modules are atoms, too.
            Term::Pid(_) | Term::Port(_) | Term::Reference(_) | Term::Fun(_) => 1024,
            _ => 32,
        };
        false
    });
    bytes
}

/// The depth, counted level by level.
fn measured_depth(term: &Term) -> usize {
    let mut deepest = 0;
    let mut open = vec![(term, 0)];
    while let Some((term, depth)) = open.pop() {
        deepest = deepest.max(depth);
        if term.is_nil() {
            continue;
        }
        open.extend(inner(term).into_iter().map(|inner| (inner, depth + 1)));
    }
    deepest
}
