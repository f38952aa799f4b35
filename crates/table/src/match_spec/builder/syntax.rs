//! The macro.

/// Writes a match specification in the style of a closure, as `ets:fun2ms` does in Erlang. The
/// value is the specification as a term.
///
/// ```
/// use tremula_table::{MatchSpec, Term, match_spec, term::Atom};
///
/// let least = 10;
/// let spec: Term =
///     match_spec!(|{key, count, _}| when count > least && key != Atom::OK => (key, count));
/// let text = "[{{'$1','$2','_'},[{'andalso',{'>','$2',10},{'/=','$1',ok}}],[{{'$1','$2'}}]}]";
/// assert_eq!(spec, text.parse::<Term>()?);
/// let row = "{a, 17, <<>>}".parse()?;
/// assert_eq!(MatchSpec::test(&spec, &row)?, Some("{a, 17}".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Syntax
///
/// `|{PATTERN, …}| when GUARD => BODY`. The guard is optional; further clauses follow after `;`.
///
/// - A pattern is a name, which it binds; `_`; a number or a boolean; a tuple `{…}`; a list `[a, b
///   | rest]`; or a Rust expression in parentheses, whose value is a term.
/// - A guard combines Rust expressions with `&&`, `||`, `!` (of everything up to the next `&&` or
///   `||`), `==`, `!=`, `<`, `<=`, `>`, `>=` and parentheses. The expressions use names that the
///   pattern binds, Rust variables, whose values become constants, operators with a name on their
///   left, and [`Functions`](crate::match_spec::Functions). `==` is Erlang's; for `=:=` use
///   [`identical`](crate::match_spec::Functions::identical).
/// - A body is such a Rust expression. Tuples become tuples, vectors become lists.
///
/// A name that nothing binds is an error of the Rust compiler, and so is one that is bound twice:
///
/// ```compile_fail,E0425
/// # use tremula_table::match_spec;
/// match_spec!(|{key, _}| when count > 10 => key);
/// ```
///
/// ```compile_fail,E0415
/// # use tremula_table::match_spec;
/// match_spec!(|{key, key}| => key);
/// ```
///
/// A guard of more than about a hundred words needs a greater `recursion_limit`.
#[macro_export]
macro_rules! match_spec {
    // Clauses, one by one: [finished clauses] remaining input.
    (@clauses [$($done:tt)*]) => {
        $crate::Term::list([$($done)*])
    };
    (@clauses [$($done:tt)*] | {$($head:tt)*} | => $body:expr $(; $($rest:tt)*)?) => {
        $crate::match_spec!(@clauses [
            $($done)* $crate::match_spec!(@clause {$($head)*} [] $body),
        ] $($($rest)*)?)
    };
    (@clauses [$($done:tt)*] | {$($head:tt)*} | when $($rest:tt)+) => {
        $crate::match_spec!(@when [$($done)*] {$($head)*} [] $($rest)+)
    };
    (@when [$($done:tt)*] {$($head:tt)*} [$($guard:tt)+] => $body:expr $(; $($rest:tt)*)?) => {
        $crate::match_spec!(@clauses [
            $($done)* $crate::match_spec!(@clause {$($head)*} [$($guard)+] $body),
        ] $($($rest)*)?)
    };
    (@when [$($done:tt)*] {$($head:tt)*} [$($guard:tt)*] $next:tt $($rest:tt)+) => {
        $crate::match_spec!(@when [$($done)*] {$($head)*} [$($guard)* $next] $($rest)+)
    };
    (@clause {$($head:tt)*} $guard:tt $body:expr) => {
        $crate::match_spec!(@names [] [{$($head)*} $guard $body] $($head)*)
    };

    // The names in a pattern: [names] [the clause] remaining pattern.
    (@names [$($name:ident)*] [$head:tt [$($guard:tt)*] $body:expr]) => {{
        #[allow(unused_imports)]
        use $crate::match_spec::Functions as _;
        let clause = |$($name: $crate::match_spec::Variable),*| {
            $crate::match_spec::expansion::clause(
                $crate::match_spec!(@pattern $head),
                $crate::match_spec!(@guards $($guard)*),
                $crate::match_spec::expansion::expression($body),
            )
        };
        $crate::match_spec!(@apply clause [] [$($name)*] 1)
    }};
    (@names [$($name:ident)*] $clause:tt {$($inner:tt)*} $($rest:tt)*) => {
        $crate::match_spec!(@names [$($name)*] $clause $($inner)* $($rest)*)
    };
    (@names [$($name:ident)*] $clause:tt [$($inner:tt)*] $($rest:tt)*) => {
        $crate::match_spec!(@names [$($name)*] $clause $($inner)* $($rest)*)
    };
    (@names [$($name:ident)*] $clause:tt true $($rest:tt)*) => {
        $crate::match_spec!(@names [$($name)*] $clause $($rest)*)
    };
    (@names [$($name:ident)*] $clause:tt false $($rest:tt)*) => {
        $crate::match_spec!(@names [$($name)*] $clause $($rest)*)
    };
    (@names [$($name:ident)*] $clause:tt $next:ident $($rest:tt)*) => {
        $crate::match_spec!(@names [$($name)* $next] $clause $($rest)*)
    };
    (@names [$($name:ident)*] $clause:tt $other:tt $($rest:tt)*) => {
        $crate::match_spec!(@names [$($name)*] $clause $($rest)*)
    };

    // A call of the clause with a variable for each name.
    (@apply $clause:ident [$($variable:expr,)*] [] $number:expr) => {
        $clause($($variable),*)
    };
    (@apply $clause:ident [$($variable:expr,)*] [$name:ident $($rest:ident)*] $number:expr) => {
        $crate::match_spec!(@apply $clause [
            $($variable,)* $crate::match_spec::expansion::variable($number),
        ] [$($rest)*] $number + 1)
    };

    // A pattern.
    (@pattern _) => {
        $crate::match_spec::expansion::anything()
    };
    (@pattern true) => {
        $crate::Term::from(true)
    };
    (@pattern false) => {
        $crate::Term::from(false)
    };
    (@pattern $name:ident) => {
        $crate::match_spec::expansion::variable_pattern($name)
    };
    (@pattern {$($inner:tt)*}) => {
        $crate::Term::tuple($crate::match_spec!(@elements [] [] $($inner)*))
    };
    (@pattern [$($inner:tt)*]) => {
        $crate::match_spec!(@list [] [] $($inner)*)
    };
    (@pattern ($value:expr)) => {
        $crate::Term::from($value)
    };
    (@pattern $($value:tt)+) => {
        $crate::Term::from($($value)+)
    };

    // The elements of a tuple: [finished elements] [the current one] remaining input.
    (@elements [$($done:expr,)*] []) => {
        $crate::match_spec::expansion::elements([$($done),*])
    };
    (@elements [$($done:expr,)*] [$($at:tt)+]) => {
        $crate::match_spec!(@elements [$($done,)* $crate::match_spec!(@pattern $($at)+),] [])
    };
    (@elements [$($done:expr,)*] [$($at:tt)+] , $($rest:tt)*) => {
        $crate::match_spec!(
            @elements [$($done,)* $crate::match_spec!(@pattern $($at)+),] [] $($rest)*
        )
    };
    (@elements [$($done:expr,)*] [$($at:tt)*] $next:tt $($rest:tt)*) => {
        $crate::match_spec!(@elements [$($done,)*] [$($at)* $next] $($rest)*)
    };

    // A list: the same as `@elements`, with an optional tail.
    (@list [$($done:tt)*] [$($at:tt)*]) => {
        $crate::Term::list($crate::match_spec!(@elements [] [] $($done)* $($at)*))
    };
    (@list [$($done:tt)*] [$($at:tt)+] | $($tail:tt)+) => {
        $crate::Term::list_with_tail(
            $crate::match_spec!(@elements [] [] $($done)* $($at)+),
            $crate::match_spec!(@pattern $($tail)+),
        )
    };
    (@list [$($done:tt)*] [$($at:tt)*] $next:tt $($rest:tt)*) => {
        $crate::match_spec!(@list [$($done)*] [$($at)* $next] $($rest)*)
    };

    // Guards. The rules look for the operator of lowest precedence first.
    (@guards) => {
        None
    };
    (@guards $($guard:tt)+) => {
        Some($crate::match_spec!(@or [] [] $($guard)+))
    };
    (@or [$($done:tt)*] [$($at:tt)+] || $($rest:tt)+) => {
        $crate::match_spec!(@or [$($done)* {$($at)+}] [] $($rest)+)
    };
    (@or [$($done:tt)*] [$($at:tt)*] $next:tt $($rest:tt)*) => {
        $crate::match_spec!(@or [$($done)*] [$($at)* $next] $($rest)*)
    };
    (@or [] [$($at:tt)+]) => {
        $crate::match_spec!(@and [] [] $($at)+)
    };
    (@or [$({$($done:tt)+})+] [$($at:tt)+]) => {
        $crate::match_spec::call("orelse", vec![
            $($crate::match_spec!(@and [] [] $($done)+),)+
            $crate::match_spec!(@and [] [] $($at)+),
        ])
    };
    (@and [$($done:tt)*] [$($at:tt)+] && $($rest:tt)+) => {
        $crate::match_spec!(@and [$($done)* {$($at)+}] [] $($rest)+)
    };
    (@and [$($done:tt)*] [$($at:tt)*] $next:tt $($rest:tt)*) => {
        $crate::match_spec!(@and [$($done)*] [$($at)* $next] $($rest)*)
    };
    (@and [] [$($at:tt)+]) => {
        $crate::match_spec!(@compare [] $($at)+)
    };
    (@and [$({$($done:tt)+})+] [$($at:tt)+]) => {
        $crate::match_spec::call("andalso", vec![
            $($crate::match_spec!(@compare [] $($done)+),)+
            $crate::match_spec!(@compare [] $($at)+),
        ])
    };
    (@compare [] ! $($rest:tt)+) => {
        $crate::match_spec::call("not", vec![$crate::match_spec!(@compare [] $($rest)+)])
    };
    (@compare [$($left:tt)+] == $($right:tt)+) => {
        $crate::match_spec!(@call "==" [$($left)+] [$($right)+])
    };
    (@compare [$($left:tt)+] != $($right:tt)+) => {
        $crate::match_spec!(@call "/=" [$($left)+] [$($right)+])
    };
    (@compare [$($left:tt)+] < $($right:tt)+) => {
        $crate::match_spec!(@call "<" [$($left)+] [$($right)+])
    };
    (@compare [$($left:tt)+] <= $($right:tt)+) => {
        $crate::match_spec!(@call "=<" [$($left)+] [$($right)+])
    };
    (@compare [$($left:tt)+] > $($right:tt)+) => {
        $crate::match_spec!(@call ">" [$($left)+] [$($right)+])
    };
    (@compare [$($left:tt)+] >= $($right:tt)+) => {
        $crate::match_spec!(@call ">=" [$($left)+] [$($right)+])
    };
    (@compare [$($left:tt)*] $next:tt $($rest:tt)*) => {
        $crate::match_spec!(@compare [$($left)* $next] $($rest)*)
    };
    (@compare [$($operand:tt)+]) => {
        $crate::match_spec!(@operand $($operand)+)
    };
    (@call $name:literal [$($left:tt)+] [$($right:tt)+]) => {
        $crate::match_spec::call($name, vec![
            $crate::match_spec!(@operand $($left)+),
            $crate::match_spec!(@operand $($right)+),
        ])
    };
    (@operand ($($inner:tt)+)) => {
        $crate::match_spec!(@or [] [] $($inner)+)
    };
    (@operand $value:expr) => {
        $crate::match_spec::expansion::expression($value)
    };

    (| $($clauses:tt)+) => {
        $crate::match_spec!(@clauses [] | $($clauses)+)
    };
}
