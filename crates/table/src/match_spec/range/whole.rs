//! Which clauses say `true` of every row whose key is in their interval.

use super::RowSize;
use crate::match_spec::function::Comparison;
use crate::match_spec::program::{
    Binding, Clause, Operand, Operation, Program, Shape, is_atom, variable,
};
use crate::term::{Atom, Term};

/// The condition that a part of a pattern sets.
enum Part {
    Anything,
    Variable(u64),
    Something,
}

fn part(pattern: &Term) -> Part {
    match variable(pattern) {
        Some(number) => Part::Variable(number),
        None if is_atom(pattern, Atom::UNDERSCORE) => Part::Anything,
        None => Part::Something,
    }
}

/// The size of the rows for which the clause says `true` exactly if their keys are in its interval;
/// `None` if the clause may not match some rows in the interval.
pub(super) fn whole(clause: &Clause, program: &Program, key_position: usize) -> Option<RowSize> {
    let says_true = match clause.result {
        Operand::Constant(constant) => is_atom(&program.constants[constant as usize], Atom::TRUE),
        _ => false,
    };
    if !says_true || clause.operations.len() > clause.body {
        return None;
    }
    let (size, head) = match (clause.shape, &clause.head) {
        (Shape::Any, _) if clause.operations.is_empty() => return Some(RowSize::Any),
        (Shape::Size(size), Term::Tuple(head)) => (size, head),
        _ => return None,
    };
    let mut seen = Vec::new();
    // A repeated variable is a condition.
    let mut is_new = |number| {
        let is_new = !seen.contains(&number);
        seen.push(number);
        is_new
    };
    for (position, pattern) in head.iter().enumerate() {
        match part(pattern) {
            _ if position == key_position => (),
            Part::Anything => (),
            Part::Variable(number) if is_new(number) => (),
            _ => return None,
        }
    }
    // The key begins with constants; then comes one part bounded by guards, then anything.
    let mut bounded = None;
    let mut is_open = false;
    let mut ahead = vec![head.get(key_position)?];
    while let Some(pattern) = ahead.pop() {
        match part(pattern) {
            Part::Anything => is_open = true,
            Part::Variable(number) if is_new(number) => {
                if !is_open {
                    bounded = Some(number);
                }
                is_open = true;
            }
            Part::Something if !is_open => match pattern {
                Term::Tuple(tuple) => ahead.extend(tuple.iter().rev()),
                _ if is_only_itself(pattern) => (),
                _ => return None,
            },
            _ => return None,
        }
    }
    let bounded = bounded.and_then(|number| clause.variables.get(&number));
    let guards = &clause.operations[..clause.body];
    guards
        .iter()
        .all(|guard| is_bound(guard, bounded))
        .then_some(RowSize::Only(size))
}

/// Whether only identical terms equal a term (`==`). Otherwise the interval may have rows that the
/// pattern does not match.
fn is_only_itself(term: &Term) -> bool {
    match term {
        Term::Atom(_) | Term::Bitstring(_) | Term::Pid(_) | Term::Port(_) | Term::Reference(_) => {
            true
        }
        other => other.is_nil(),
    }
}

/// Whether an operation is a step of the head, or a guard that only bounds the interval through
/// this variable.
fn is_bound(operation: &Operation, bounded: Option<&Binding>) -> bool {
    if let Operation::Test(_) = operation {
        return true;
    }
    let Some(&Binding::Operand(variable)) = bounded else {
        return false;
    };
    let bounds = |comparison| {
        !matches!(
            comparison,
            Comparison::Identical | Comparison::NotIdentical | Comparison::NotEqual
        )
    };
    operation
        .compares(variable)
        .is_some_and(|(comparison, _)| bounds(comparison))
}
