//! Guards and bodies.
//!
//! The compiler goes through an expression in the order of evaluation, arguments first. Values that
//! are needed later form a stack of operands. The operand at a height of that stack is in the
//! register of that height, counted after the head's registers, unless it existed before (a field,
//! a constant or a register of the head).

use super::{Compiled, Compiler, MAX_OPERANDS, numbered};
use crate::match_spec::error::{Path, SpecProblem, Step};
use crate::match_spec::function::{Comparison, Compute, Function, Lookup, Project, lookup};
use crate::match_spec::program::{Binding, Make, Operand, Operation, is_atom, variable};
use crate::term::{Atom, Term, Tuple, pairs};

/// A step of the compilation.
pub(super) enum Task<'t> {
    Evaluate(&'t Term, Path),
    /// Combine the topmost operands.
    Finish(Build, usize, &'t Term, Path),
    /// Leave a chain of `andalso` or `orelse` if the topmost operand is this deciding boolean.
    Leave(bool, usize),
    /// End a chain. The topmost operand is its value if nothing has decided it before.
    End(usize),
}

#[derive(Clone, Copy)]
pub(super) enum Build {
    Tuple,
    /// The last operand is the tail.
    List,
    /// Keys and values alternate.
    Map,
    Comparison(Comparison),
    Compute(Compute),
    Project(Project),
}

impl<'t> Compiler<'t> {
    /// Compiles a guard, which fails unless it is `true`. Splits `andalso` and `and` into
    /// successive guards.
    pub(super) fn guard(&mut self, guard: &'t Term, path: Path) -> Compiled {
        let mut guards = vec![(guard, path)];
        while let Some((guard, path)) = guards.pop() {
            if let Term::Tuple(call) = guard
                && let [Term::Atom(name), arguments @ ..] = call.elements()
                && !arguments.is_empty()
                && ["andalso", "andthen", "and"].contains(&name.text())
            {
                let first = guards.len();
                for (argument, step) in numbered(arguments, Step::Argument) {
                    let path = self.step(path, step);
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
        if let Some(&Operation::Put(to, value)) = self.clause.operations.last()
            && of == Operand::Register(to)
            && let Make::Comparison(comparison, one, two) = value
        {
            self.clause.operations.pop();
            self.emit(Operation::RequireComparison(comparison, one, two));
            return;
        }
        self.emit(Operation::Require(of));
    }

    /// Compiles an expression. Returns where its value will be.
    pub(super) fn expression(&mut self, term: &'t Term, path: Path) -> Compiled<Operand> {
        self.tasks.push(Task::Evaluate(term, path));
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Evaluate(term, path) => self.evaluate(term, path)?,
                Task::Finish(build, count, term, path) => self.build(build, count, term, path)?,
                Task::Leave(decides, chain) => {
                    let of = self.pop();
                    let to = self.next_register(term, path)?;
                    self.chains[chain].push(self.clause.operations.len());
                    let end = 0;
                    self.emit(Operation::Branch {
                        of,
                        decides,
                        to,
                        end,
                    });
                }
                Task::End(chain) => {
                    let from = self.pop();
                    self.put(Make::Copy(from), term, path)?;
                    let behind = self.count(self.clause.operations.len(), term, path)?;
                    for leave in std::mem::take(&mut self.chains[chain]) {
                        if let Operation::Branch { end, .. } = &mut self.clause.operations[leave] {
                            *end = behind;
                        }
                    }
                }
            }
        }
        Ok(self.pop())
    }

    /// Removes the topmost operand, which the previous task has left.
    fn pop(&mut self) -> Operand {
        self.stack.pop().expect("an expression leaves an operand")
    }

    /// The register of the next operand on the stack.
    fn next_register(&self, term: &Term, path: Path) -> Compiled<u32> {
        let register = self.clause.head_registers as usize + self.stack.len();
        self.count(register, term, path)
    }

    /// Puts a value into the next register, and pushes that.
    fn put(&mut self, value: Make, term: &Term, path: Path) -> Compiled {
        let to = self.next_register(term, path)?;
        self.emit(Operation::Put(to, value));
        self.stack.push(Operand::Register(to));
        Ok(())
    }

    fn push_constant(&mut self, value: &Term, path: Path) -> Compiled {
        let constant = self.constant(value, path)?;
        self.stack.push(constant);
        Ok(())
    }

    fn evaluate(&mut self, term: &'t Term, path: Path) -> Compiled {
        match term {
            Term::Tuple(tuple) => return self.call(term, tuple, path),
            Term::List(list) if !list.is_empty() => {
                let tail = (list.iter().remaining().1, Step::Tail);
                let parts = numbered(list, Step::Element).chain([tail]);
                self.parts(Build::List, parts, path, term, path);
            }
            Term::Map(map) => {
                let entries = map.entries().iter().zip(1..);
                let parts = entries.flat_map(|((key, value), index)| {
                    [(key, Step::Key(index)), (value, Step::Value(index))]
                });
                self.parts(Build::Map, parts, path, term, path);
            }
            _ if is_atom(term, Atom::WHOLE_ROW) => self.put(Make::Row, term, path)?,
            _ if is_atom(term, Atom::ALL_VARIABLES) => {
                let before = self.stack.len();
                let bindings: Vec<_> = self.clause.variables.values().copied().collect();
                if before + bindings.len() > MAX_OPERANDS {
                    return Err(self.error(path, term, SpecProblem::TooLarge));
                }
                for binding in bindings {
                    self.load(binding, term, path)?;
                }
                self.push_constant(&Term::NIL, path)?;
                self.build(Build::List, self.stack.len() - before, term, path)?;
            }
            _ => match variable(term) {
                None => self.push_constant(term, path)?,
                Some(number) => match self.binding(number) {
                    Some(binding) => self.load(binding, term, path)?,
                    None => return Err(self.error(path, term, SpecProblem::Unbound(term.clone()))),
                },
            },
        }
        Ok(())
    }

    /// Pushes a variable's value.
    fn load(&mut self, binding: Binding, term: &Term, path: Path) -> Compiled {
        match binding {
            Binding::Operand(operand) => {
                self.stack.push(operand);
                Ok(())
            }
            Binding::Row => self.put(Make::Row, term, path),
            Binding::Rest { of, skip } => self.put(Make::Rest { of, skip }, term, path),
        }
    }

    /// A tuple: a function with its arguments, or a tuple in a tuple, which makes a tuple.
    fn call(&mut self, term: &'t Term, tuple: &'t Tuple, path: Path) -> Compiled {
        let (name, arguments) = match tuple.elements() {
            [Term::Tuple(elements)] => {
                let within = self.step(path, Step::Element(1));
                let elements = numbered(elements.iter(), Step::Element);
                self.parts(Build::Tuple, elements, within, term, path);
                return Ok(());
            }
            [Term::Atom(name), arguments @ ..] => (*name, arguments),
            _ => return Err(self.error(path, term, SpecProblem::NotACall)),
        };
        let build = match self.function(name, arguments.len(), term, path)? {
            Function::Const => return self.push_constant(&arguments[0], path),
            Function::Myself => {
                return self.push_constant(&self.environment.myself.clone().into(), path);
            }
            Function::Node => return self.push_constant(&self.environment.node.into(), path),
            Function::Branch(decides) => {
                let chain = self.chains.len();
                self.chains.push(Vec::new());
                let first = self.tasks.len();
                for (argument, step) in numbered(arguments, Step::Argument) {
                    if self.tasks.len() > first {
                        self.tasks.push(Task::Leave(decides, chain));
                    }
                    let path = self.step(path, step);
                    self.tasks.push(Task::Evaluate(argument, path));
                }
                self.tasks.push(Task::End(chain));
                self.tasks[first..].reverse();
                return Ok(());
            }
            Function::Compare(function) => Build::Comparison(function),
            Function::Compute(function) => Build::Compute(function),
            Function::Project(function) => Build::Project(function),
        };
        let arguments = numbered(arguments, Step::Argument);
        self.parts(build, arguments, path, term, path);
        Ok(())
    }

    /// Evaluates the parts of a term, which are within `within`, and then combines them.
    fn parts(
        &mut self,
        build: Build,
        parts: impl Iterator<Item = (&'t Term, Step)>,
        within: Path,
        term: &'t Term,
        path: Path,
    ) {
        let first = self.tasks.len();
        for (part, step) in parts {
            let path = self.step(within, step);
            self.tasks.push(Task::Evaluate(part, path));
        }
        let count = self.tasks.len() - first;
        self.tasks.push(Task::Finish(build, count, term, path));
        self.tasks[first..].reverse();
    }

    fn function(&self, name: Atom, arity: usize, term: &Term, path: Path) -> Compiled<Function> {
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
    fn build(&mut self, build: Build, count: usize, term: &Term, path: Path) -> Compiled {
        let parts = self.stack.split_off(self.stack.len() - count);
        if let Some(constant) = self.constructed(build, &parts) {
            return self.push_constant(&constant, path);
        }
        if let (Build::Comparison(comparison), &[one, two]) = (build, parts.as_slice()) {
            return self.put(Make::Comparison(comparison, one, two), term, path);
        }
        let parts = self.list_of(&parts, term, path)?;
        let value = match build {
            Build::Tuple => Make::Tuple(parts),
            Build::List => Make::List(parts),
            Build::Map => Make::Map(parts),
            Build::Compute(function) => Make::Compute(function, parts),
            Build::Project(function) => Make::Project(function, parts),
            Build::Comparison(_) => unreachable!("comparisons have two arguments"),
        };
        self.put(value, term, path)
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
            _ => Some(Term::map(pairs(values.into_iter()))),
        }
    }
}
