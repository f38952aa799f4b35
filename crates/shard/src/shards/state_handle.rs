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
    /// The state, to be shared, if it may change threads.
    fn share(&self) -> Option<&S>;
    /// Runs `run` on the state.
    fn with(&mut self, shard: usize, run: &mut dyn FnMut(&mut S));
}

/// The states that never leave their worker.
pub(super) type Locals<S> = Rc<Vec<RefCell<Option<S>>>>;

/// A state that may change threads.
pub(super) struct Movable<S>(Box<S>);

impl<S: 'static> StateHandle<S> for Movable<S> {
    const ANYWHERE: bool = true;

    fn new(state: S, _: usize, _: &Locals<S>) -> Self {
        Self(Box::new(state))
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
        *locals[shard].borrow_mut() = Some(state);
        Self
    }

    fn share(&self) -> Option<&S> {
        None
    }

    fn with(&mut self, shard: usize, run: &mut dyn FnMut(&mut S)) {
        let locals = LOCALS.with_borrow(|locals| locals.clone());
        let locals = locals.and_then(|locals| locals.downcast::<Vec<RefCell<Option<S>>>>().ok());
        let locals = locals.expect("the token is taken by the worker only");
        let mut state = locals[shard].borrow_mut();
        run(state.as_mut().expect("the handle is made with the state"));
    }
}

tremula_sync::system::thread_local! {
    /// The states of this worker that stay with it.
    static LOCALS: RefCell<Option<Rc<dyn Any>>> = const { RefCell::new(None) };
}

/// The empty places of the states that this worker makes, for `shards` shards in all.
pub(super) fn no_locals<S>(shards: usize) -> Locals<S> {
    Rc::new((0..shards).map(|_| RefCell::new(None)).collect())
}

/// Keeps the states that stay with this thread.
pub(super) fn keep_locals<S: 'static>(locals: Locals<S>) {
    LOCALS.set(Some(locals));
}

/// Drops the states that stay with this thread.
pub(super) fn drop_locals() {
    let locals = LOCALS.take();
    contained(|| drop(locals));
}
