//! Which specifications keep the keys of the rows that they replace.

use super::MatchSpec;
use super::program::{Clause, is_atom, variable};
use crate::term::{Atom, Term, Tuple};

impl MatchSpec {
    /// The first clause, counted from 1, that could replace a row by one with another key, or by no
    /// row, together with its body: `select_replace` refuses the specification then. `key_position`
    /// is counted from 0.
    ///
    /// As in Erlang, the text of the clause decides. The body must be one expression, which is
    /// `'$_'` or makes a tuple that has, in the key's position, what the head has there or
    /// `{element, Position, '$_'}`. A key that contains a map cannot be written again.
    ///
    /// ```
    /// use tremula_table::MatchSpec;
    ///
    /// let spec = |text: &str| MatchSpec::compile(&text.parse().unwrap()).unwrap();
    /// assert_eq!(spec("[{{'$1', '_'}, [], [{{'$1', new}}]}]").changes_key(0), None);
    /// let (clause, body) = spec("[{{'$1', '_'}, [], [{{new}}]}]").changes_key(0).unwrap();
    /// assert_eq!((clause, body.to_string()), (1, "[{{new}}]".into()));
    /// ```
    #[must_use]
    pub fn changes_key(&self, key_position: usize) -> Option<(usize, Term)> {
        let clauses = &self.program.clauses;
        let clause = clauses
            .iter()
            .position(|clause| !keeps_key(clause, key_position))?;
        Some((clause + 1, clauses[clause].expressions.clone()))
    }
}

fn keeps_key(clause: &Clause, key_position: usize) -> bool {
    let Term::List(expressions) = &clause.expressions else {
        return false;
    };
    let mut expressions = expressions.iter();
    let (Some(body), None) = (expressions.next(), expressions.next()) else {
        return false;
    };
    if is_atom(body, Atom::WHOLE_ROW) {
        return true;
    }
    let (Term::Tuple(head), Term::Tuple(body)) = (&clause.head, body) else {
        return false;
    };
    let Some((made, is_constant)) = made_tuple(body) else {
        return false;
    };
    let (Some(head), Some(made)) = (head.get(key_position), made.get(key_position)) else {
        return false;
    };
    is_same(head, made, is_constant) || !is_constant && is_element_of_row(made, key_position)
}

/// The tuple that `{{…}}` or `{const, {…}}` makes, and whether it is a constant.
fn made_tuple(expression: &Tuple) -> Option<(&Tuple, bool)> {
    match expression.elements() {
        [Term::Tuple(made)] => Some((made, false)),
        [word, Term::Tuple(made)] if is_atom(word, Atom::CONST) => Some((made, true)),
        _ => None,
    }
}

/// Whether an expression is `{element, Position, '$_'}` of the key.
fn is_element_of_row(expression: &Term, key_position: usize) -> bool {
    let Term::Tuple(call) = expression else {
        return false;
    };
    match call.elements() {
        [Term::Atom(function), Term::Integer(position), row] => {
            function.text() == "element"
                && usize::try_from(*position) == Ok(key_position + 1)
                && is_atom(row, Atom::WHOLE_ROW)
        }
        _ => false,
    }
}

/// Whether an expression makes exactly what a pattern has matched. `is_constant` if the expression
/// stands for itself.
fn is_same(pattern: &Term, expression: &Term, is_constant: bool) -> bool {
    let mut pairs = vec![(pattern, expression, is_constant)];
    while let Some((pattern, made, is_constant)) = pairs.pop() {
        match made {
            Term::Tuple(expression) => {
                let tuple = match expression.elements() {
                    _ if is_constant => expression,
                    [Term::Tuple(tuple)] => tuple,
                    [word, value] if is_atom(word, Atom::CONST) => {
                        pairs.push((pattern, value, true));
                        continue;
                    }
                    _ => return false,
                };
                let Some(elements) = elements_of(pattern, tuple.len()) else {
                    return false;
                };
                let elements = elements.iter().zip(tuple.iter());
                pairs.extend(elements.map(|(one, two)| (one, two, is_constant)));
            }
            Term::List(list) if !list.is_empty() => {
                let Term::List(other) = pattern else {
                    return false;
                };
                let (mut ours, mut theirs) = (list.iter(), other.iter());
                loop {
                    match (theirs.next(), ours.next()) {
                        (Some(one), Some(two)) => pairs.push((one, two, is_constant)),
                        (None, None) => break,
                        _ => return false,
                    }
                }
                pairs.push((theirs.tail(), ours.tail(), is_constant));
            }
            // A map pattern also matches larger maps.
            Term::Map(_) => return false,
            Term::Atom(atom) => {
                let stands_for_many =
                    [Atom::UNDERSCORE, Atom::ALL_VARIABLES, Atom::WHOLE_ROW].contains(atom);
                let is_taken_for_itself = is_constant && variable(made).is_some();
                if stands_for_many || is_taken_for_itself || !made.is_identical(pattern) {
                    return false;
                }
            }
            _ if made.is_identical(pattern) => {}
            _ => return false,
        }
    }
    true
}

/// The elements of a tuple of this size.
fn elements_of(term: &Term, size: usize) -> Option<&[Term]> {
    match term {
        Term::Tuple(tuple) if tuple.len() == size => Some(tuple.elements()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected answers are Erlang's own.
    #[test]
    fn what_keeps_keys_is_what_erlang_takes() {
        let keeps = |clauses: &str, position| {
            let spec = MatchSpec::compile(&clauses.parse().unwrap()).unwrap();
            spec.changes_key(position).is_none()
        };
        for kept in [
            "[{{'$1', '_'}, [], [{{'$1', n}}]}]",
            "[{'_', [], ['$_']}]",
            "[{{'$1', '_'}, [], [{{{element, 1, '$_'}, n}}]}]",
            "[{{{k, '$1'}, '_'}, [], [{{{{k, '$1'}}, n}}]}]",
            "[{{{k, 2}, '_'}, [], [{{{const, {k, 2}}, n}}]}]",
            "[{{{k, 2}, '_'}, [], [{const, {{k, 2}, n}}]}]",
            "[{{{k, 2}, '_'}, [], [{{{{k, {const, 2}}}, n}}]}]",
            "[{{['$1', '$2'], '_'}, [], [{{['$1', '$2'], n}}]}]",
            "[{{['$1' | '$2'], '_'}, [], [{{['$1' | '$2'], n}}]}]",
            "[{{[x, y], '_'}, [], [{{{const, [x, y]}, n}}]}]",
            "[{{1.0, '_'}, [], [{{1.0, n}}]}]",
            "[{{{}, '_'}, [], [{{{{}}, n}}]}]",
            "[{{18446744073709551616, '_'}, [], [{{18446744073709551616, n}}]}]",
        ] {
            assert!(keeps(kept, 0), "{kept}");
        }
        for changed in [
            "[{{'$1', '_'}, [], [x, {{'$1', n}}]}]",
            "[{{'$1', '_'}, [], [x, '$_']}]",
            "[{'$1', [], ['$1']}]",
            "[{{'$1', '_'}, [], [{{{element, 2, '$_'}, n}}]}]",
            "[{{{k, '$1'}, '_'}, [], [{{{{k, 2}}, n}}]}]",
            "[{{#{a => 1}, '_'}, [], [{{#{a => 1}, n}}]}]",
            "[{{#{a => 1}, '_'}, [], [{const, {#{a => 1}, n}}]}]",
            "[{{'_', '_'}, [], [{{'_', n}}]}]",
            "[{{'$1', '_'}, [], [{{'$$', n}}]}]",
            "[{{'$1', '_'}, [], ['$_']}, {{'$1'}, [], [{{x}}]}]",
            "[{{1, '_'}, [], [{{1.0, n}}]}]",
            "[{{'$1', '_'}, [], [{const, {'$1', n}}]}]",
            "[{{'$1', '_'}, [], [{{}}]}]",
            "[{{'$1', '_'}, [], [{{{const, '$1'}, n}}]}]",
            "[{{'$1', '_'}, [{'==', '$1', 1}], [{{1, n}}]}]",
        ] {
            assert!(!keeps(changed, 0), "{changed}");
        }
        assert!(keeps(
            "[{{'$1', '$2'}, [], [{{x, {element, 2, '$_'}}}]}]",
            1
        ));
        assert!(!keeps("[{{'$1'}, [], [{{x, y}}]}]", 1));
    }
}
