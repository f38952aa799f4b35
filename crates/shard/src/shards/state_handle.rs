//! Where the states of a worker are: in their delegation locks, or with the worker for good.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use tremula_sync::contained;

/// What the delegation lock of a shard keeps of its state.
pub(super) trait StateHandle<S>: Sized + 'static {
    /// Whether every thread may use the state, or only its worker.
    const ANYWHERE: bool;
    /// The handle of a state that this worker has just made.
    fn new(state: S, shard: usize, locals: &Locals<S>) -> Self;
    /// The handle of a state that was [taken](Self::take).
    fn back(state: Box<S>, shard: usize) -> Self;
    /// The state itself. If it may not change threads, only its worker takes it.
    fn take(self, shard: usize) -> Box<S>;
    /// The state itself, if it may change threads.
    fn into_state(self) -> Option<S>;
    /// The state, to be shared, if it may change threads.
    fn share(&self) -> Option<&S>;
    /// Runs `run` on the state.
    fn with(&mut self, shard: usize, run: &mut dyn FnMut(&mut S));
}

/// The states that never leave their worker.
pub(super) type Locals<S> = Rc<Vec<RefCell<Option<Box<S>>>>>;

/// A state that may change threads.
pub(super) struct Movable<S>(Box<S>);

impl<S: 'static> StateHandle<S> for Movable<S> {
    const ANYWHERE: bool = true;

    fn new(state: S, _: usize, _: &Locals<S>) -> Self {
        Self(Box::new(state))
    }

    fn back(state: Box<S>, _: usize) -> Self {
        Self(state)
    }

    fn take(self, _: usize) -> Box<S> {
        self.0
    }

    fn into_state(self) -> Option<S> {
        Some(*self.0)
    }

    #[inline]
    fn share(&self) -> Option<&S> {
        Some(&self.0)
    }

    #[inline]
    fn with(&mut self, _: usize, run: &mut dyn FnMut(&mut S)) {
        run(&mut self.0);
    }
}

/// The token of a state that stays with its worker.
pub(super) struct Fixed;

impl<S> Movable<S> {
    #[inline]
    pub(super) fn get(&self) -> &S {
        &self.0
    }

    #[inline]
    pub(super) fn get_mut(&mut self) -> &mut S {
        &mut self.0
    }
}

impl<S: 'static> StateHandle<S> for Fixed {
    const ANYWHERE: bool = false;

    fn new(state: S, shard: usize, locals: &Locals<S>) -> Self {
        *locals[shard].borrow_mut() = Some(Box::new(state));
        Self
    }

    fn back(state: Box<S>, shard: usize) -> Self {
        *locals()[shard].borrow_mut() = Some(state);
        Self
    }

    fn take(self, shard: usize) -> Box<S> {
        let state = locals::<S>()[shard].borrow_mut().take();
        state.expect("the token is there only while the state is")
    }

    fn into_state(self) -> Option<S> {
        None
    }

    fn share(&self) -> Option<&S> {
        None
    }

    fn with(&mut self, shard: usize, run: &mut dyn FnMut(&mut S)) {
        let locals = locals::<S>();
        let mut state = locals[shard].borrow_mut();
        run(state
            .as_mut()
            .expect("the token is there only while the state is"));
    }
}

/// The states that stay with this worker.
fn locals<S: 'static>() -> Locals<S> {
    let locals = LOCALS.with(|locals| locals.borrow().clone());
    let locals = locals.and_then(|locals| locals.downcast::<Vec<RefCell<Option<Box<S>>>>>().ok());
    locals.expect("the token is taken by the worker only")
}

tremula_sync::thread_local! {
    /// The states of this worker that stay with it.
    static LOCALS: RefCell<Option<Rc<dyn Any>>> = const { RefCell::new(None) };
}

/// The empty places of the states that this worker makes, for `shards` shards in all.
pub(super) fn no_locals<S>(shards: usize) -> Locals<S> {
    Rc::new((0..shards).map(|_| RefCell::new(None)).collect())
}

/// Keeps the states that stay with this thread.
pub(super) fn keep_locals<S: 'static>(locals: Locals<S>) {
    LOCALS.with(|all| *all.borrow_mut() = Some(locals));
}

/// Drops the states that stay with this thread.
pub(super) fn drop_locals() {
    let locals = LOCALS.with(|all| all.borrow_mut().take());
    contained(|| drop(locals));
}
