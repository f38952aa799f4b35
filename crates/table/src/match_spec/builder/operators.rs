//! Operators and functions of expressions.

use super::{Expression, IntoExpression, Variable, call};
use std::ops;

/// Rust's operators, with the names of Erlang's.
macro_rules! operators {
    ($($operator:ident $method:ident $name:literal;)*) => {
        $(
            impl<T: IntoExpression> ops::$operator<T> for Expression {
                type Output = Self;

                fn $method(self, other: T) -> Self {
                    call($name, vec![self, other.into_expression()])
                }
            }

            impl<T: IntoExpression> ops::$operator<T> for Variable {
                type Output = Expression;

                fn $method(self, other: T) -> Expression {
                    call($name, vec![self.into_expression(), other.into_expression()])
                }
            }
        )*
    };
}

operators! {
    Add add "+";
    Sub sub "-";
    Mul mul "*";
    Div div "/";
    Rem rem "rem";
    BitAnd bitand "band";
    BitOr bitor "bor";
    BitXor bitxor "bxor";
    Shl shl "bsl";
    Shr shr "bsr";
}

impl ops::Neg for Expression {
    type Output = Self;

    fn neg(self) -> Self {
        call("-", vec![self])
    }
}

impl ops::Neg for Variable {
    type Output = Expression;

    fn neg(self) -> Expression {
        -self.into_expression()
    }
}

/// Functions of one argument and of two, with their names in Erlang.
macro_rules! functions {
    (
        $($unary:ident = $unary_name:literal;)*
        $(($this:ident, $other:ident) $binary:ident = $binary_name:literal($($argument:ident),*);)*
    ) => {
        /// Erlang's functions, as methods. The macro brings them into scope.
        ///
        /// ```
        /// use tremula_table::{Term, match_spec};
        ///
        /// let spec = match_spec!(|{key, l}| when l.length() > 2 && key.is_atom() => l.hd());
        /// let guard = "{'andalso',{'>',{length,'$2'},2},{is_atom,'$1'}}";
        /// let text = format!("[{{{{'$1','$2'}},[{guard}],[{{hd,'$2'}}]}}]");
        /// assert_eq!(spec, text.parse::<Term>()?);
        /// # Ok::<(), tremula_table::term::ParseError>(())
        /// ```
        #[allow(
            clippy::wrong_self_convention,
            reason = "they make an expression of an expression"
        )]
        pub trait Functions: IntoExpression + Sized {
            $(
                #[doc = concat!("`{'", $unary_name, "', X}`")]
                fn $unary(self) -> Expression {
                    call($unary_name, vec![self.into_expression()])
                }
            )*
            $(
                #[doc = concat!("`{'", $binary_name, "', …}`")]
                fn $binary(self, $other: impl IntoExpression) -> Expression {
                    let ($this, $other) = (self.into_expression(), $other.into_expression());
                    call($binary_name, vec![$($argument),*])
                }
            )*
        }
    };
}

functions! {
    abs = "abs";
    bit_not = "bnot";
    bit_size = "bit_size";
    byte_size = "byte_size";
    ceil = "ceil";
    to_float = "float";
    floor = "floor";
    hd = "hd";
    is_atom = "is_atom";
    is_binary = "is_binary";
    is_bitstring = "is_bitstring";
    is_boolean = "is_boolean";
    is_float = "is_float";
    is_function = "is_function";
    is_integer = "is_integer";
    is_list = "is_list";
    is_map = "is_map";
    is_number = "is_number";
    is_pid = "is_pid";
    is_port = "is_port";
    is_reference = "is_reference";
    is_tuple = "is_tuple";
    length = "length";
    map_size = "map_size";
    node = "node";
    round = "round";
    size = "size";
    tl = "tl";
    trunc = "trunc";
    tuple_size = "tuple_size";
    (this, divisor) whole_div = "div"(this, divisor);
    (this, place) element = "element"(place, this);
    (this, other) identical = "=:="(this, other);
    (this, key) has_key = "is_map_key"(key, this);
    (this, key) map_get = "map_get"(key, this);
    (this, other) max_with = "max"(this, other);
    (this, other) min_with = "min"(this, other);
}

impl Functions for Expression {}
impl Functions for Variable {}
