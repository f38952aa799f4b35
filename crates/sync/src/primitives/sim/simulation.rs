//! Runs virtual threads as coroutines on one thread of the system, always the one with the lowest
//! clock.

use super::machine::Machine;
use super::outcome::Outcome;
use super::state::{Id, State};
use super::{allocator, current, threads};
use std::ptr;

/// What to simulate.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation, work};
///
/// let outcome = Simulation::on(Machine::free_of_charge(2)).seed(7).blame(true).run(|| work(3));
/// assert_eq!(outcome.elapsed / 1000, 3); // nanoseconds
/// ```
#[derive(Clone, Debug)]
pub struct Simulation {
    machine: Machine,
    seed: u64,
    blames: bool,
}

impl Simulation {
    /// A simulation of this machine, with seed 0.
    #[must_use]
    pub const fn on(machine: Machine) -> Self {
        Self {
            machine,
            seed: 0,
            blames: false,
        }
    }

    /// The same with another seed.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same, but the outcome says where in the source threads waited.
    #[must_use]
    pub const fn blame(mut self, blames: bool) -> Self {
        self.blames = blames;
        self
    }

    /// Runs `main` as the first virtual thread. Threads that have not ended when it returns are
    /// abandoned: what they hold is leaked.
    ///
    /// # Panics
    ///
    /// Passes on a panic of `main`. Panics if the machine's shape is not valid, if every thread is
    /// blocked, or inside another simulation.
    pub fn run<R>(&self, main: impl FnOnce() -> R) -> Outcome<R> {
        if let Err(problem) = self.machine.check() {
            panic!("the machine cannot be: {problem}");
        }
        assert!(!current::has_run(), "simulations do not nest");
        let (body, packet) = threads::packed(main);
        // SAFETY: this function returns only after the first thread has ended. If it panics before,
        // the thread never goes on, and its stack is leaked.
        let body = unsafe { threads::forever(body) };
        let mut state = Box::new(State::new(&self.machine, self.seed, self.blames));
        let main = state.add(0, Some("main".to_owned()), threads::coroutine(body));
        let state = Box::into_raw(state);
        let run = Run::begin(state);
        run.until_end_of(main);
        // SAFETY: it came from `into_raw` above, and no thread runs any more.
        let mut state = unsafe { Box::from_raw(state) };
        let outcome = Outcome {
            result: (),
            elapsed: state.threads[main].clock,
            accesses: state.accesses,
            threads: state.spent(),
            blame: state.take_blame(),
            kept: 0,
        };
        for thread in &mut state.threads {
            // The stack of an abandoned thread is not unwound: its frames refer to the run.
            std::mem::forget(thread.coroutine.take_if(|coroutine| !coroutine.done()));
        }
        // SAFETY: no thread of the run goes on.
        unsafe { std::mem::take(&mut state.once).end() };
        drop(state);
        let kept = run.end();
        let result = packet.take();
        match result.unwrap_or_else(|| panic!("the first thread has not ended")) {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(result) => Outcome {
                result,
                elapsed: outcome.elapsed,
                accesses: outcome.accesses,
                threads: outcome.threads,
                blame: outcome.blame,
                kept,
            },
        }
    }
}

/// A run on this thread of the system.
struct Run {
    state: *mut State,
    memory: allocator::Run,
}

impl Run {
    fn begin(state: *mut State) -> Self {
        current::set_state(state);
        Self {
            state,
            memory: allocator::Run::begin(),
        }
    }

    fn until_end_of(&self, main: Id) {
        loop {
            // SAFETY: no virtual thread runs here, so nothing else refers to the state.
            let state = unsafe { &mut *self.state };
            if state.has_ended(main) {
                return;
            }
            let Some(id) = state.next() else {
                panic!("every thread is blocked");
            };
            let mut coroutine = state.threads[id].coroutine.take();
            let running = coroutine
                .as_mut()
                .expect("a thread that runs has not ended");
            current::set_inside(true);
            self.memory.enter(id);
            let stopped = running.resume(());
            self.memory.leave();
            current::set_inside(false);
            // SAFETY: the virtual thread has stopped, so nothing else refers to the state.
            let state = unsafe { &mut *self.state };
            state.threads[id].coroutine = coroutine;
            if stopped.as_return().is_some() {
                state.end();
                // The stack of a thread that has ended is needed no more.
                state.threads[id].coroutine = None;
            }
        }
    }

    /// Gives the memory of the run back; returns how many chunks something still refers to.
    fn end(self) -> usize {
        self.memory.kept()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        current::set_state(ptr::null_mut());
    }
}
