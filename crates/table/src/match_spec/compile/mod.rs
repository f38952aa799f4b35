//! Compiles a term to a program.
//!
//! `head` compiles patterns, `expression` guards and bodies. Both keep their pending work in a
//! vector rather than on the stack, because a specification may be nested as deep as any term.

mod expression;
mod head;

use super::error::{Path, Paths, SpecError, SpecProblem, Step};
use super::program::{Binding, Clause, Operand, Operands, Operation, Program, Shape};
use super::{Environment, Returns};
use crate::term::{Atom, List, Term};
use expression::Task;
use head::Pending;
use std::collections::BTreeMap;

/// The most operands of all calls and constructions of a specification together. Each `'$$'` has
/// one for every variable, so a program may be as long as the square of its specification's length.
const MAX_OPERANDS: usize = 1 << 22;

type Compiled<T = ()> = Result<T, SpecError>;

/// The state of compiling a specification.
pub(super) struct Compiler<'t> {
    environment: &'t Environment,
    paths: Paths,
    constants: Vec<Term>,
    operands: Vec<Operand>,
    clauses: Vec<Clause>,
    clause: Draft,
    /// Nested patterns of the head that are not compiled yet.
    pending: Vec<Pending<'t>>,
    /// The steps left of an expression, the next one last.
    tasks: Vec<Task<'t>>,
    /// The operands of an expression that are needed later.
    stack: Vec<Operand>,
    /// For each chain of `andalso` or `orelse`, the indices of the operations that leave it.
    chains: Vec<Vec<usize>>,
}

/// The clause being compiled.
#[derive(Default)]
struct Draft {
    shape: Option<Shape>,
    operations: Vec<Operation>,
    variables: BTreeMap<u64, Binding>,
    /// The number of registers that the head fills. The registers of expressions come after them.
    head_registers: u32,
}

pub(super) fn compile(spec: &Term, environment: &Environment) -> Result<Program, SpecError> {
    let mut compiler = Compiler::new(environment);
    let clauses = compiler.proper(spec, None, SpecProblem::NotClauses)?;
    if clauses.is_empty() {
        return Err(compiler.paths.error(None, spec, SpecProblem::NoClauses));
    }
    for (index, clause) in clauses.iter().enumerate() {
        let path = compiler.paths.step(None, Step::Clause(index + 1));
        let [head, guards, body] = (match clause {
            Term::Tuple(parts) => parts.elements(),
            _ => &[],
        }) else {
            return Err(compiler.error(path, clause, SpecProblem::NotAClause));
        };
        compiler.clause(head, guards, body, path)?;
    }
    Ok(compiler.finish())
}

/// Compiles a clause with this head and without guards.
pub(super) fn compile_pattern(head: &Term, returns: Returns) -> Result<Program, SpecError> {
    let environment = Environment::default();
    let body = match returns {
        Returns::Bindings => Atom::ALL_VARIABLES,
        Returns::Row => Atom::WHOLE_ROW,
        Returns::True => Atom::TRUE,
    };
    let (guards, body) = (Term::NIL, Term::list([body.into()]));
    let mut compiler = Compiler::new(&environment);
    let path = compiler.paths.step(None, Step::Clause(1));
    compiler.clause(head, &guards, &body, path)?;
    Ok(compiler.finish())
}

impl<'t> Compiler<'t> {
    fn new(environment: &'t Environment) -> Self {
        Self {
            environment,
            paths: Paths::default(),
            constants: Vec::new(),
            operands: Vec::new(),
            clauses: Vec::new(),
            clause: Draft::default(),
            pending: Vec::new(),
            tasks: Vec::new(),
            stack: Vec::new(),
            chains: Vec::new(),
        }
    }

    fn finish(self) -> Program {
        Program {
            clauses: self.clauses.into(),
            constants: self.constants.into(),
            operands: self.operands.into(),
        }
    }

    fn clause(&mut self, head: &'t Term, guards: &'t Term, body: &'t Term, path: Path) -> Compiled {
        self.clause = Draft::default();
        let head_path = self.step(path, Step::Head);
        self.head(head, head_path)?;

        let guards_path = self.step(path, Step::Guards);
        let guards = self.proper(guards, Some(guards_path), SpecProblem::NotGuards)?;
        for (guard, step) in numbered(guards.iter(), Step::Guard) {
            let path = self.step(path, step);
            self.guard(guard, path)?;
        }
        let start = self.clause.operations.len();

        let body_path = self.step(path, Step::Body);
        let expressions = self.proper(body, Some(body_path), SpecProblem::NotABody)?;
        let mut result = None;
        for (expression, step) in numbered(expressions.iter(), Step::Expression) {
            // Only the value of the last expression counts; the others are only checked.
            self.clause.operations.truncate(start);
            let path = self.step(path, step);
            result = Some(self.expression(expression, path)?);
        }
        let Some(result) = result else {
            return Err(self.error(body_path, body, SpecProblem::NotABody));
        };

        let draft = std::mem::take(&mut self.clause);
        let registers = |operations: &[Operation]| {
            let used = operations.iter().map(Operation::registers);
            used.max().unwrap_or(0) as usize
        };
        self.clauses.push(Clause {
            shape: draft.shape.unwrap_or(Shape::Any),
            registers: registers(&draft.operations),
            guard_registers: registers(&draft.operations[..start]),
            operations: draft.operations.into(),
            body: start,
            result,
            head: head.clone(),
            expressions: body.clone(),
            variables: draft.variables,
        });
        Ok(())
    }

    /// The elements of a term that must be a proper list.
    fn proper<'l>(
        &self,
        term: &'l Term,
        path: Option<Path>,
        problem: SpecProblem,
    ) -> Compiled<&'l List> {
        match term {
            Term::List(list) if list.is_proper() => Ok(list),
            _ => Err(self.paths.error(path, term, problem)),
        }
    }

    fn step(&mut self, from: Path, step: Step) -> Path {
        self.paths.step(Some(from), step)
    }

    fn error(&self, path: Path, term: &Term, problem: SpecProblem) -> SpecError {
        self.paths.error(Some(path), term, problem)
    }

    fn emit(&mut self, operation: Operation) {
        self.clause.operations.push(operation);
    }

    /// Converts a count or an index; one that is too large is an error.
    fn count(&self, count: usize, term: &Term, path: Path) -> Compiled<u32> {
        // The number one past it must fit, too.
        match u32::try_from(count) {
            Ok(count) if count < u32::MAX => Ok(count),
            _ => Err(self.error(path, term, SpecProblem::TooLarge)),
        }
    }

    fn constant(&mut self, value: &Term, path: Path) -> Compiled<Operand> {
        let index = self.count(self.constants.len(), value, path)?;
        self.constants.push(value.clone());
        Ok(Operand::Constant(index))
    }

    fn list_of(&mut self, operands: &[Operand], term: &Term, path: Path) -> Compiled<Operands> {
        if self.operands.len() + operands.len() > MAX_OPERANDS {
            return Err(self.error(path, term, SpecProblem::TooLarge));
        }
        let start = self.operands.len() as u32;
        let count = operands.len() as u32;
        self.operands.extend_from_slice(operands);
        Ok(Operands { start, count })
    }

    fn binding(&self, number: u64) -> Option<Binding> {
        self.clause.variables.get(&number).copied()
    }

    /// Binds a variable, or rebinds it.
    fn bind(&mut self, number: u64, binding: Binding) {
        self.clause.variables.insert(number, binding);
    }
}

/// Parts of a term with the steps to them.
fn numbered<'t>(
    parts: impl IntoIterator<Item = &'t Term>,
    step: fn(usize) -> Step,
) -> impl Iterator<Item = (&'t Term, Step)> {
    parts.into_iter().zip((1..).map(step))
}
