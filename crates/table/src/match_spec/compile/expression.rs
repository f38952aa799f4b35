//! Guards and bodies.
//!
//! The compiler goes through an expression in the order of evaluation, arguments first. Values that
//! are needed later form a stack of operands. The operand at a height of that stack is in the
//! register of that height, counted after the head's registers, unless it existed before (a field,
//! a constant or a register of the head).

use super::{Compiler, MAX_OPERANDS};
use crate::match_spec::error::{Path, SpecError, SpecProblem, Step};
use crate::match_spec::function::{Comparison, Compute, Function, Lookup, Project, lookup};
use crate::match_spec::program::{Binding, Make, Operand, Operation, is_atom, variable};
use crate::term::{Atom, Term, Tuple};

/// A step of the compilation.
enum Task<'t> {
    Evaluate(&'t Term, Path),
    /// Combine the topmost operands.
    Finish(Build, usize, &'t Term, Path),
    /// Leave a chain of `andalso` or `orelse` if the topmost operand decides it.
    Leave {
        decides: bool,
        chain: usize,
    },
    /// End a chain. The topmost operand is its value if nothing has decided it before.
    End {
        chain: usize,
    },
}

#[derive(Clone, Copy)]
enum Build {
    Tuple,
    /// The last operand is the tail.
    List,
    /// Keys and values alternate.
    Map,
    Comparison(Comparison),
    Compute(Compute),
    Project(Project),
}

/// The state of compiling an expression.
struct Work<'t> {
    tasks: Vec<Task<'t>>,
    operands: Vec<Operand>,
    /// For each chain, the indices of the operations that leave it.
    chains: Vec<Vec<usize>>,
}

impl Work<'_> {
    /// Removes the topmost operand, which the previous task has left.
    fn pop(&mut self) -> Operand {
        self.operands
            .pop()
            .expect("an expression leaves an operand")
    }
}

impl Compiler<'_> {
    /// Compiles a guard, which fails unless it is `true`. Splits `andalso` and `and` into
    /// successive guards.
    pub(super) fn guard(&mut self, guard: &Term, path: Path) -> Result<(), SpecError> {
        let mut guards = vec![(guard, path)];
        while let Some((guard, path)) = guards.pop() {
            if let Term::Tuple(call) = guard
                && let [Term::Atom(name), arguments @ ..] = call.elements()
                && !arguments.is_empty()
                && ["andalso", "andthen", "and"].contains(&name.text())
            {
                let first = guards.len();
                for (index, argument) in arguments.iter().enumerate() {
                    let path = self.paths.step(Some(path), Step::Argument(index + 1));
                    guards.push((argument, path));
                }
                guards[first..].reverse();
                continue;
            }
            let of = self.expression(guard, path)?;
            self.require(of);
        }
        Ok(())
    }

    fn require(&mut self, of: Operand) {
        if let Operand::Constant(index) = of {
            if !self.constants[index as usize].is_identical(&Term::from(true)) {
                self.emit(Operation::Never);
            }
            return;
        }
        // A comparison that only has to be true needs no register. No operation jumps to just after
        // it, because a chain ends in another operation.
        if let Some(&Operation::Put { to, value }) = self.clause.operations.last()
            && of == Operand::Register(to)
            && let Make::Comparison {
                comparison,
                one,
                two,
            } = value
        {
            self.clause.operations.pop();
            self.emit(Operation::RequireComparison {
                comparison,
                one,
                two,
            });
            return;
        }
        self.emit(Operation::Require(of));
    }

    /// Compiles an expression. Returns where its value will be.
    pub(super) fn expression(&mut self, term: &Term, path: Path) -> Result<Operand, SpecError> {
        let mut work = Work {
            tasks: vec![Task::Evaluate(term, path)],
            operands: Vec::new(),
            chains: Vec::new(),
        };
        while let Some(task) = work.tasks.pop() {
            match task {
                Task::Evaluate(term, path) => self.evaluate(term, path, &mut work)?,
                Task::Finish(build, count, term, path) => {
                    self.build(build, count, term, path, &mut work)?;
                }
                Task::Leave { decides, chain } => {
                    let of = work.pop();
                    let to = self.register_of(&work, term, path)?;
                    work.chains[chain].push(self.clause.operations.len());
                    let end = 0;
                    self.emit(Operation::Branch {
                        of,
                        decides,
                        to,
                        end,
                    });
                }
                Task::End { chain } => {
                    let from = work.pop();
                    let to = self.register_of(&work, term, path)?;
                    self.emit(Operation::Put {
                        to,
                        value: Make::Copy(from),
                    });
                    let behind = self.count(self.clause.operations.len(), term, path)?;
                    for &leave in &work.chains[chain] {
                        if let Operation::Branch { end, .. } = &mut self.clause.operations[leave] {
                            *end = behind;
                        }
                    }
                    work.operands.push(Operand::Register(to));
                }
            }
        }
        Ok(work.pop())
    }

    /// The register of the next operand on the stack.
    fn register_of(&self, work: &Work<'_>, term: &Term, path: Path) -> Result<u32, SpecError> {
        let register = self.clause.head_registers as usize + work.operands.len();
        self.count(register, term, path)
    }

    fn evaluate<'t>(
        &mut self,
        term: &'t Term,
        path: Path,
        work: &mut Work<'t>,
    ) -> Result<(), SpecError> {
        match term {
            Term::Tuple(tuple) => return self.call(term, tuple, path, work),
            Term::List(list) if !list.is_empty() => {
                let mut elements = list.iter();
                let length = elements.by_ref().count();
                let tail = elements.tail();
                work.tasks
                    .push(Task::Finish(Build::List, length + 1, term, path));
                let first = work.tasks.len();
                for (index, element) in list.iter().enumerate() {
                    let path = self.paths.step(Some(path), Step::Element(index + 1));
                    work.tasks.push(Task::Evaluate(element, path));
                }
                let path = self.paths.step(Some(path), Step::Tail);
                work.tasks.push(Task::Evaluate(tail, path));
                work.tasks[first..].reverse();
                return Ok(());
            }
            Term::Map(map) => {
                let count = 2 * map.len();
                work.tasks.push(Task::Finish(Build::Map, count, term, path));
                let first = work.tasks.len();
                for (index, (key, value)) in map.entries().iter().enumerate() {
                    let key_path = self.paths.step(Some(path), Step::Key(index + 1));
                    work.tasks.push(Task::Evaluate(key, key_path));
                    let value_path = self.paths.step(Some(path), Step::Value(index + 1));
                    work.tasks.push(Task::Evaluate(value, value_path));
                }
                work.tasks[first..].reverse();
                return Ok(());
            }
            _ if is_atom(term, Atom::WHOLE_ROW) => {
                let to = self.register_of(work, term, path)?;
                self.emit(Operation::Put {
                    to,
                    value: Make::Row,
                });
                work.operands.push(Operand::Register(to));
                return Ok(());
            }
            _ if is_atom(term, Atom::ALL_VARIABLES) => {
                let before = work.operands.len();
                let bindings: Vec<_> = self.clause.variables.values().copied().collect();
                if work.operands.len() + bindings.len() > MAX_OPERANDS {
                    return Err(self.error(path, term, SpecProblem::TooLarge));
                }
                for binding in bindings {
                    self.load(binding, term, path, work)?;
                }
                let nil = self.constant(&Term::NIL, path)?;
                work.operands.push(nil);
                let count = work.operands.len() - before;
                return self.build(Build::List, count, term, path, work);
            }
            _ => {}
        }
        match variable(term) {
            Some(number) => match self.binding(number) {
                Some(binding) => self.load(binding, term, path, work)?,
                None => {
                    let problem = SpecProblem::Unbound(term.clone());
                    return Err(self.error(path, term, problem));
                }
            },
            None => {
                let constant = self.constant(term, path)?;
                work.operands.push(constant);
            }
        }
        Ok(())
    }

    /// Pushes a variable's value.
    fn load(
        &mut self,
        binding: Binding,
        term: &Term,
        path: Path,
        work: &mut Work<'_>,
    ) -> Result<(), SpecError> {
        let operand = match binding {
            Binding::Operand(operand) => operand,
            Binding::Row => {
                let to = self.register_of(work, term, path)?;
                self.emit(Operation::Put {
                    to,
                    value: Make::Row,
                });
                Operand::Register(to)
            }
            Binding::Rest { of, skip } => {
                let to = self.register_of(work, term, path)?;
                self.emit(Operation::Put {
                    to,
                    value: Make::Rest { of, skip },
                });
                Operand::Register(to)
            }
        };
        work.operands.push(operand);
        Ok(())
    }

    /// A tuple: a function with its arguments, or a tuple in a tuple, which makes a tuple.
    fn call<'t>(
        &mut self,
        term: &'t Term,
        tuple: &'t Tuple,
        path: Path,
        work: &mut Work<'t>,
    ) -> Result<(), SpecError> {
        let (name, arguments) = match tuple.elements() {
            [Term::Tuple(elements)] => {
                let build = Build::Tuple;
                work.tasks
                    .push(Task::Finish(build, elements.len(), term, path));
                let first = work.tasks.len();
                let path = self.paths.step(Some(path), Step::Element(1));
                for (index, element) in elements.iter().enumerate() {
                    let path = self.paths.step(Some(path), Step::Element(index + 1));
                    work.tasks.push(Task::Evaluate(element, path));
                }
                work.tasks[first..].reverse();
                return Ok(());
            }
            [Term::Atom(name), arguments @ ..] => (*name, arguments),
            _ => return Err(self.error(path, term, SpecProblem::NotACall)),
        };
        let function = self.function(name, arguments.len(), term, path)?;
        match function {
            Function::Const => {
                let constant = self.constant(&arguments[0], path)?;
                work.operands.push(constant);
            }
            Function::Myself => {
                let constant = self.constant(&Term::from(self.environment.myself.clone()), path)?;
                work.operands.push(constant);
            }
            Function::Node => {
                let constant = self.constant(&Term::from(self.environment.node), path)?;
                work.operands.push(constant);
            }
            Function::Branch(decides) => {
                let chain = work.chains.len();
                work.chains.push(Vec::new());
                let first = work.tasks.len();
                for (index, argument) in arguments.iter().enumerate() {
                    if index > 0 {
                        work.tasks.push(Task::Leave { decides, chain });
                    }
                    let path = self.paths.step(Some(path), Step::Argument(index + 1));
                    work.tasks.push(Task::Evaluate(argument, path));
                }
                work.tasks.push(Task::End { chain });
                work.tasks[first..].reverse();
            }
            Function::Compare(function) => {
                self.arguments(Build::Comparison(function), arguments, term, path, work);
            }
            Function::Compute(function) => {
                self.arguments(Build::Compute(function), arguments, term, path, work);
            }
            Function::Project(function) => {
                self.arguments(Build::Project(function), arguments, term, path, work);
            }
        }
        Ok(())
    }

    /// Evaluates the arguments of a function, and then the function.
    fn arguments<'t>(
        &mut self,
        build: Build,
        arguments: &'t [Term],
        term: &'t Term,
        path: Path,
        work: &mut Work<'t>,
    ) {
        work.tasks
            .push(Task::Finish(build, arguments.len(), term, path));
        let first = work.tasks.len();
        for (index, argument) in arguments.iter().enumerate() {
            let path = self.paths.step(Some(path), Step::Argument(index + 1));
            work.tasks.push(Task::Evaluate(argument, path));
        }
        work.tasks[first..].reverse();
    }

    fn function(
        &self,
        name: Atom,
        arity: usize,
        term: &Term,
        path: Path,
    ) -> Result<Function, SpecError> {
        let problem = match lookup(name.text(), arity) {
            Lookup::Found(function) => return Ok(function),
            Lookup::Takes(takes) => SpecProblem::Arity {
                name: name.into(),
                takes,
                given: arity,
            },
            Lookup::Unknown => SpecProblem::UnknownFunction {
                name: name.into(),
                arity,
            },
        };
        Err(self.error(path, term, problem))
    }

    /// Combines the topmost operands into one.
    fn build(
        &mut self,
        build: Build,
        count: usize,
        term: &Term,
        path: Path,
        work: &mut Work<'_>,
    ) -> Result<(), SpecError> {
        let parts = work.operands.split_off(work.operands.len() - count);
        if let Some(constant) = self.constructed(build, &parts) {
            let constant = self.constant(&constant, path)?;
            work.operands.push(constant);
            return Ok(());
        }
        let to = self.register_of(work, term, path)?;
        let value = match (build, parts.as_slice()) {
            (Build::Comparison(comparison), &[one, two]) => Make::Comparison {
                comparison,
                one,
                two,
            },
            (_, parts) => {
                let parts = self.operand_list(parts, term, path)?;
                match build {
                    Build::Tuple => Make::Tuple(parts),
                    Build::List => Make::List(parts),
                    Build::Map => Make::Map(parts),
                    Build::Compute(function) => Make::Compute {
                        function,
                        arguments: parts,
                    },
                    Build::Project(function) => Make::Project {
                        function,
                        arguments: parts,
                    },
                    Build::Comparison(_) => unreachable!("comparisons have two arguments"),
                }
            }
        };
        self.emit(Operation::Put { to, value });
        work.operands.push(Operand::Register(to));
        Ok(())
    }

    /// The tuple, list or map of these parts, if all of them are constants.
    fn constructed(&self, build: Build, parts: &[Operand]) -> Option<Term> {
        if !matches!(build, Build::Tuple | Build::List | Build::Map) {
            return None;
        }
        let value = |operand: &Operand| match operand {
            Operand::Constant(index) => Some(self.constants[*index as usize].clone()),
            _ => None,
        };
        let mut values = parts.iter().map(value).collect::<Option<Vec<_>>>()?;
        match build {
            Build::Tuple => Some(Term::tuple(values)),
            Build::List => {
                let tail = values.pop()?;
                Some(Term::list_with_tail(values, tail))
            }
            _ => Some(Term::map(pairs(values))),
        }
    }
}

/// Pairs up alternating keys and values.
fn pairs(values: Vec<Term>) -> Vec<(Term, Term)> {
    let mut values = values.into_iter();
    std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect()
}
