//! Match specifications: a small language, written as terms, that picks rows and says what to make
//! of them.
//!
//! A specification is a list of clauses `{Head, Guards, Body}`. The first clause whose head matches a
//! row and whose guards are all `true` gives the value of its body's last expression. [`MatchSpec`]
//! is a specification that has been checked and compiled; a [`Matcher`] runs it against rows;
//! [`match_spec!`](crate::match_spec!) writes one in Rust. Source: the Erlang Run-Time System's user
//! guide, "Match Specifications in Erlang", the dialect of ETS, and a running Erlang 25.
//!
//! | file | holds |
//! |---|---|
//! | `compile/` | from a term to a program: patterns (`head`), guards and bodies (`expression`) |
//! | `program`, `function` | what a program is; the table of functions |
//! | `run`, `evaluate/` | running one; the values of functions |
//! | `range/` | which keys of an `ordered_set` can match: [`KeyInterval`], [`KeyBound`] |
//! | `builder/` | the macro |
//! | `error` | what is wrong with a specification, and where |
//!
//! # The language
//!
//! - **Head.** A tuple is matched field by field. `'_'` matches anything, `'$0'`, `'$1'`, … bind
//!   what they meet first and match what is identical (`=:=`) to it later. A map matches maps that
//!   have its keys, and more; its keys are constants. All else matches what is identical, of the
//!   float zeros the one with the same sign. The whole head may be a variable or `'_'`. A head that is
//!   another term matches no row, but what [`Matcher::run_term`] is given, as `match_spec_run` is.
//! - **Guards and body.** `'$N'` is a variable's value, `'$_'` the row, `'$$'` the list of all
//!   variables' values by their numbers, `{const, T}` is `T`, `{{…}}` makes a tuple, `[…]` a list,
//!   `#{…}` a map, `{Function, Argument…}` calls. All else stands for itself.
//! - **Exceptions.** A function without a value (`{hd, []}`, `{'+', a, 1}`) makes the clause fail in a
//!   guard, also inside of `orelse`; in a body it has the value `'EXIT'`, with which the rest of the
//!   body goes on: `{{{hd, []}, 1}}` is `{'EXIT', 1}`.
//!
//! | functions | |
//! |---|---|
//! | of types | `is_atom is_binary is_bitstring is_boolean is_float is_function is_integer is_list is_map is_number is_pid is_port is_record/3 is_reference is_tuple` |
//! | of booleans | `and or andalso orelse` (of one argument and more; `andthen` is `andalso`), `not xor` |
//! | comparisons | `== /= =:= =/= < =< > >=` |
//! | of numbers | `+ -` (one or two arguments) `* / div rem band bor bxor bnot bsl bsr abs ceil float floor round trunc`, and of any terms `max min` |
//! | of terms within terms | `element hd tl length map_get map_size is_map_key tuple_size size byte_size bit_size binary_part/2,3` |
//! | of places | `node/0,1 self` |
//!
//! # Differences from Erlang 25
//!
//! - `is_bitstring`, `is_boolean`, `ceil`, `floor`, `max`, `min` and `tuple_size` are there, as they
//!   are as guards of the language.
//! - Integers that are made may have 262,144 bits ([`Limits::INTEGER_BITS`]); what would be longer is an
//!   exception. In Erlang the limit is higher: 4,194,304 bits from OTP 27 on.
//! - Big integers become the nearest floats; Erlang 25 is sometimes one bit off.
//! - Variables have numbers of up to 64 bits. In Erlang 25 those of more than 32 are cut off.
//! - A map in the key of a pattern matches larger maps in an `ordered_set`, too. Erlang 25 looks up
//!   the key that is this map.
//! - A map that is made with one key several times has it once, with the last value (in the order of
//!   the keys as written in the specification's map). Erlang 25 makes a broken map of some.
//! - `{self}` and `{node}` are what [`Environment`] says.
//!
//! # Costs
//!
//! Compiling takes time in proportion to the specification. Running takes no recursion, and of memory
//! only what values have to be made: a flat head with a comparison is two tests of the fields where
//! they lie. There is no loop in the language, so a run against one row is over soon: whoever goes
//! through a table may stop between any two rows. Taking the rest of a list (`tl`, or a variable as
//! a pattern's tail) copies it, as lists here lie in one piece.
//!
//! [`Limits::INTEGER_BITS`]: crate::term::Limits::INTEGER_BITS

#[macro_use]
mod builder;
mod compile;
mod error;
mod evaluate;
mod function;
mod program;
mod range;
mod replace;
mod run;

pub use builder::{
    Expression, Functions, IntoExpression, Variable, all_variables, call, expansion, whole_row,
};
pub use error::{SpecError, SpecProblem, Step};
pub(crate) use range::RowSize;
pub use range::{KeyBound, KeyInterval};
pub use run::Matcher;

use crate::term::{Atom, Pid, Term};
use program::Program;

/// A compiled match specification. It is immutable: threads may share it, each with a [`Matcher`] of
/// its own.
///
/// ```
/// use tremula_table::{MatchSpec, Term};
///
/// let spec = "[{{'$1', '$2'}, [{'>', '$2', 10}], [{{'$1', {'*', '$2', 2}}}]}]".parse()?;
/// let spec = MatchSpec::compile(&spec)?;
/// let Term::Tuple(row) = "{a, 17}".parse()? else { panic!("a row") };
/// assert_eq!(spec.run(&row), Some("{a, 34}".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MatchSpec {
    program: Program,
}

/// What `{self}` and `{node}` stand for.
#[derive(Clone, Debug)]
pub struct Environment {
    /// `{self}`: whoever asks.
    pub myself: Pid,
    /// `{node}`: where it is asked.
    pub node: Atom,
}

/// A process that there is not, on a node that is not distributed.
impl Default for Environment {
    fn default() -> Self {
        Self {
            myself: Pid::new(Atom::NO_NODE, 0, 0, 0),
            node: Atom::NO_NODE,
        }
    }
}

/// What a pattern alone makes of the rows that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// The list of its variables' values, in the order of their numbers: `match/2`.
    Bindings,
    /// The row: `match_object/2`.
    Row,
    /// `true`: `match_delete/2`.
    True,
}

impl MatchSpec {
    /// Checks and compiles a specification: `ets:match_spec_compile/1`. Takes time in proportion to
    /// its length, no recursion, and memory in proportion to both.
    ///
    /// A specification without clauses is refused, as Erlang's `match_spec_compile` does;
    /// `ets:select` takes it and finds nothing.
    ///
    /// # Errors
    ///
    /// It is none: the error tells the part that is wrong, and the way to it.
    pub fn compile(spec: &Term) -> Result<Self, SpecError> {
        Self::compile_in(spec, &Environment::default())
    }

    /// As [`compile`](Self::compile), with what `{self}` and `{node}` stand for.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn compile_in(spec: &Term, environment: &Environment) -> Result<Self, SpecError> {
        let program = compile::compile(spec, environment)?;
        Ok(Self { program })
    }

    /// What a specification makes of one term: `ets:test_ms/2`, for trying out. `None` if no clause
    /// matches (Erlang says `false` then, which it says of a result `false`, too).
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term};
    ///
    /// let spec = "[{{'$1', '$2'}, [{is_list, '$2'}], [{{'$1', {length, '$2'}}}]}]".parse()?;
    /// assert_eq!(MatchSpec::test(&spec, &"{a, [x, y]}".parse()?)?, Some("{a, 2}".parse()?));
    /// assert_eq!(MatchSpec::test(&spec, &"{a, b}".parse()?)?, None);
    /// assert_eq!(MatchSpec::test(&spec, &Term::from(1))?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The specification is none.
    pub fn test(spec: &Term, term: &Term) -> Result<Option<Term>, SpecError> {
        Ok(Self::compile(spec)?.matcher().run_term(term))
    }

    /// The specification of one clause that is but a pattern, for `match/2`, `match_object/2` and
    /// `match_delete/2`.
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term, match_spec::Returns};
    ///
    /// let spec = MatchSpec::from_pattern(&"{'$2', '$1', '_'}".parse()?, Returns::Bindings)?;
    /// let Term::Tuple(row) = "{a, b, c}".parse()? else { panic!("a row") };
    /// assert_eq!(spec.run(&row), Some("[b, a]".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A map in it has a variable or `'_'` as a key.
    pub fn from_pattern(pattern: &Term, returns: Returns) -> Result<Self, SpecError> {
        let program = compile::compile_pattern(pattern, returns)?;
        Ok(Self { program })
    }
}

#[cfg(test)]
mod tests;
