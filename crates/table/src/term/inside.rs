//! Visits the terms inside a term, without recursion.

use super::{Elements, Term};
use std::ops::ControlFlow;
use std::slice;

/// The immediate inner terms of a term, in order: a list's tail comes last, and the key of a map's
/// entry first.
pub(super) enum Inside<'a> {
    Elements(slice::Iter<'a, Term>),
    List(Elements<'a>),
    Entries {
        entries: slice::Iter<'a, (Term, Term)>,
        value: Option<&'a Term>,
    },
}

impl<'a> Inside<'a> {
    pub(super) fn of(term: &'a Term) -> Self {
        match term {
            Term::Tuple(tuple) => Self::Elements(tuple.iter()),
            Term::List(list) if !list.is_empty() => Self::List(list.iter()),
            Term::Map(map) => Self::Entries {
                entries: map.entries().iter(),
                value: None,
            },
            Term::Fun(fun) => Self::Elements(fun.free().iter()),
            _ => Self::Elements([].iter()),
        }
    }

    /// The next term, and whether it is a key of a map.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(&'a Term, bool)> {
        match self {
            Self::Elements(elements) => elements.next().map(|element| (element, false)),
            Self::List(elements) => match elements.next() {
                Some(element) => Some((element, false)),
                None => {
                    let tail = elements.tail();
                    *self = Self::Elements([].iter());
                    Some((tail, false))
                }
            },
            Self::Entries { entries, value } => match value.take() {
                Some(value) => Some((value, false)),
                None => {
                    let (key, its_value) = entries.next()?;
                    *value = Some(its_value);
                    Some((key, true))
                }
            },
        }
    }
}

/// Visits a term and all its inner terms, each before its own inner terms. `visit` also gets
/// whether the term is in a key of a map.
pub(super) fn visit_all<'a>(term: &'a Term, mut visit: impl FnMut(&'a Term, bool)) {
    let all = |term, in_key| {
        visit(term, in_key);
        ControlFlow::Continue(())
    };
    let _: ControlFlow<()> = visit_while(term, all);
}

/// As [`visit_all`], until `visit` breaks.
pub(super) fn visit_while<'a>(
    term: &'a Term,
    mut visit: impl FnMut(&'a Term, bool) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut open: Vec<(Inside<'a>, bool)> = Vec::new();
    visit(term, false)?;
    let (mut inside, mut within_key) = (Inside::of(term), false);
    loop {
        while let Some((term, is_key)) = inside.next() {
            let in_key = within_key || is_key;
            visit(term, in_key)?;
            if term.holds_terms() {
                open.push((inside, within_key));
                (inside, within_key) = (Inside::of(term), in_key);
            }
        }
        match open.pop() {
            Some(outer) => (inside, within_key) = outer,
            None => return ControlFlow::Continue(()),
        }
    }
}

impl Term {
    /// Whether it has inner terms.
    #[inline]
    pub(super) fn holds_terms(&self) -> bool {
        match self {
            Self::Tuple(tuple) => !tuple.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Fun(fun) => !fun.free().is_empty(),
            _ => false,
        }
    }
}
