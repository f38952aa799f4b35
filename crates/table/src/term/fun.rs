//! Functions; they cannot be called here.

use super::extent::Extent;
use super::{Atom, Pid, Term, Tuple};
use std::cmp::Ordering;
use std::fmt;
use triomphe::Arc;

/// A function of Erlang: stored, compared and returned, never called.
#[derive(Clone)]
pub struct Fun(Arc<FunKind>);

/// The two kinds of functions.
#[derive(Clone, Debug)]
pub enum FunKind {
    /// `fun module:function/arity`.
    Export(Export),
    /// A function made by `fun … end`.
    Local(LocalFun),
}

/// A function by its name; in text `fun module:function/arity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Export {
    /// The module.
    pub module: Atom,
    /// The function's name in it.
    pub function: Atom,
    /// How many arguments it takes.
    pub arity: u8,
}

/// A function by its index in a module's code, with the values that it holds.
///
/// Its text is Erlang's, `#Fun<module.index.unique>`, which cannot be read back: it contains
/// neither the values that the function holds nor the code that it belongs to. The external term
/// format has both.
#[derive(Clone)]
pub struct LocalFun {
    /// The module.
    pub module: Atom,
    /// Which function of the module it is.
    pub index: u32,
    /// A hash of its code, of 27 bits.
    pub old_unique: i64,
    /// Its index, in the order of older versions.
    pub old_index: i64,
    /// A hash of the module's code.
    pub unique: [u8; 16],
    /// How many arguments it takes.
    pub arity: u8,
    /// The process that made it.
    pub pid: Pid,
    /// The values that it holds.
    pub free: Tuple,
}

impl Fun {
    /// Its kind, with its parts.
    #[must_use]
    pub fn kind(&self) -> &FunKind {
        &self.0
    }

    /// The values that it holds.
    pub(super) fn free(&self) -> &[Term] {
        match self.kind() {
            FunKind::Export(_) => &[],
            FunKind::Local(fun) => &fun.free,
        }
    }

    /// Erlang's order without the values that the functions hold, which are compared last.
    pub(super) fn cmp_code(&self, other: &Self) -> Ordering {
        match (self.kind(), other.kind()) {
            (FunKind::Local(one), FunKind::Local(two)) => one.code().cmp(&two.code()),
            (FunKind::Local(_), FunKind::Export(_)) => Ordering::Less,
            (FunKind::Export(_), FunKind::Local(_)) => Ordering::Greater,
            (FunKind::Export(one), FunKind::Export(two)) => one.cmp(two),
        }
    }

    pub(super) fn extent(&self) -> Extent {
        let own = size_of::<usize>() + size_of::<FunKind>();
        match self.kind() {
            FunKind::Export(_) => Extent::of_leaf(own),
            FunKind::Local(fun) => fun.free.extent().plus(own + Pid::HEAP_BYTES),
        }
    }
}

impl LocalFun {
    /// What distinguishes functions, apart from the values that they hold.
    pub(super) fn code(&self) -> (Atom, u32, i64, usize) {
        (self.module, self.index, self.old_unique, self.free.len())
    }
}

impl fmt::Display for Fun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            FunKind::Export(export) => export.fmt(formatter),
            FunKind::Local(fun) => fun.fmt(formatter),
        }
    }
}

impl fmt::Display for Export {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, function) = (self.module, self.function);
        write!(formatter, "fun {module}:{function}/{}", self.arity)
    }
}

impl fmt::Display for LocalFun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, index) = (self.module, self.index);
        write!(formatter, "#Fun<{module}.{index}.{}>", self.old_unique)
    }
}

impl From<Export> for Term {
    fn from(export: Export) -> Self {
        Self::Fun(Fun(Arc::new(FunKind::Export(export))))
    }
}

impl From<LocalFun> for Term {
    fn from(fun: LocalFun) -> Self {
        Self::Fun(Fun(Arc::new(FunKind::Local(fun))))
    }
}
