//! Match specifications written in Rust: the expansion of [`match_spec!`](crate::match_spec!).
//! Nothing here compiles or checks a specification: the result is a term, like that of Erlang's
//! `fun2ms`.

#[macro_use]
mod syntax;
mod operators;

pub use operators::Functions;

use crate::term::{Atom, Float, Term};

/// An expression of a guard or a body: a variable, a constant, or a call.
///
/// [`Functions`] has the functions; `+`, `-`, `*`, `/`, `%` (`rem`), `&`, `|`, `^`, `<<` and `>>`
/// stand for Erlang's operators.
#[derive(Clone, Debug)]
pub struct Expression(Term);

/// A variable that the head of a clause binds.
#[derive(Clone, Copy, Debug)]
pub struct Variable(u32);

/// A value that can be part of an expression.
pub trait IntoExpression {
    /// Converts it to an expression.
    fn into_expression(self) -> Expression;
}

/// `'$_'`: the whole row.
///
/// ```
/// use tremula_table::{Term, match_spec, match_spec::whole_row};
///
/// let spec = match_spec!(|{_, count}| when count > 10 => whole_row());
/// assert_eq!(spec, "[{{'_','$1'},[{'>','$1',10}],['$_']}]".parse::<Term>()?);
/// # Ok::<(), tremula_table::term::ParseError>(())
/// ```
#[must_use]
pub fn whole_row() -> Expression {
    Expression(Term::Atom(Atom::WHOLE_ROW))
}

/// `'$$'`: the list of all variables' values, in the order of their first appearance.
#[must_use]
pub fn all_variables() -> Expression {
    Expression(Term::Atom(Atom::ALL_VARIABLES))
}

/// A call of the function with this Erlang name.
///
/// # Panics
///
/// The name is too long for an atom, or there are too many atoms.
#[must_use]
pub fn call(name: &str, arguments: Vec<Expression>) -> Expression {
    let name = Term::atom(name).unwrap_or_else(|error| panic!("{name} is no function: {error}"));
    let arguments = arguments.into_iter().map(|Expression(term)| term);
    let call: Vec<_> = [name].into_iter().chain(arguments).collect();
    Expression(Term::tuple(call))
}

/// A term that stands for itself.
fn constant(term: Term) -> Expression {
    let is_plain = match &term {
        Term::Tuple(_) | Term::List(_) | Term::Map(_) => term.is_nil(),
        Term::Atom(atom) => !atom.text().starts_with('$'),
        _ => true,
    };
    if is_plain {
        return Expression(term);
    }
    Expression(Term::tuple([Term::Atom(Atom::CONST), term]))
}

impl Variable {
    /// The variable's atom, `'$1'` for the first.
    fn term(self) -> Term {
        let text = format!("${}", self.0);
        Term::atom(&text).unwrap_or_else(|error| panic!("there is no atom {text}: {error}"))
    }
}

impl IntoExpression for Expression {
    fn into_expression(self) -> Expression {
        self
    }
}

impl IntoExpression for Variable {
    fn into_expression(self) -> Expression {
        Expression(self.term())
    }
}

/// Anything that converts to a term stands for itself.
macro_rules! constants {
    ($($kind:ty),*) => {
        $(impl IntoExpression for $kind {
            fn into_expression(self) -> Expression {
                constant(Term::from(self))
            }
        })*
    };
}

constants!(
    Term, Atom, Float, bool, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, usize
);

impl<T: Clone + IntoExpression> IntoExpression for &T {
    fn into_expression(self) -> Expression {
        self.clone().into_expression()
    }
}

/// A list of expressions.
impl<T: IntoExpression> IntoExpression for Vec<T> {
    fn into_expression(self) -> Expression {
        let elements: Vec<_> = self
            .into_iter()
            .map(|element| element.into_expression().0)
            .collect();
        Expression(Term::list(elements))
    }
}

/// Rust tuples become Erlang tuples.
macro_rules! tuples {
    ($($($name:ident)+;)*) => {
        $(impl<$($name: IntoExpression),+> IntoExpression for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_expression(self) -> Expression {
                let ($($name,)+) = self;
                let elements = [$($name.into_expression().0),+];
                Expression(Term::tuple([Term::tuple(elements)]))
            }
        })*
    };
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

/// What the macro calls; not meant for users.
#[doc(hidden)]
pub mod expansion {
    use super::{Expression, IntoExpression, Variable};
    use crate::term::{Atom, Term};

    /// A variable of a clause; numbers follow the order of appearance.
    #[must_use]
    pub const fn variable(number: u32) -> Variable {
        Variable(number)
    }

    #[must_use]
    pub fn anything() -> Term {
        Term::Atom(Atom::UNDERSCORE)
    }

    #[must_use]
    pub fn variable_pattern(variable: Variable) -> Term {
        variable.term()
    }

    /// Fixes the element type of a tuple, which may have no elements.
    #[must_use]
    pub const fn elements<const N: usize>(elements: [Term; N]) -> [Term; N] {
        elements
    }

    pub fn expression(value: impl IntoExpression) -> Expression {
        value.into_expression()
    }

    #[must_use]
    pub fn clause(head: Term, guard: Option<Expression>, body: Expression) -> Term {
        let guards: Vec<_> = guard.into_iter().map(|Expression(term)| term).collect();
        Term::tuple([head, Term::list(guards), Term::list([body.0])])
    }
}

#[cfg(test)]
mod tests;
