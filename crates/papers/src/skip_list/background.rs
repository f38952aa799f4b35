//! The list whose towers a thread of its own builds.

use super::node::{Link, NodeRef};
use super::search::Gap;
use super::{List, SkipList};
use std::any::Any;
use std::cell::Cell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tremula_index::Storable;
use tremula_index::key::{ByteHead, KeyHead};
use tremula_index::kit::{Implementation as OrderedIndex, Spec, delegate_to_target};
use tremula_sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use tremula_sync::reclaim::Guard;
use tremula_sync::thread::{self, JoinHandle};
use tremula_sync::{Arc, CachePadded, Mutex, Waiter, park, thread_index};

/// Among how many queues the threads are spread that leave work to the builder.
const QUEUES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// Tasks that a queue has room for. Who finds it full does the work himself: neither memory nor the
/// length of searches grows without bound if the builder cannot follow.
const ROOM: usize = if cfg!(any(loom, shuttle)) { 2 } else { 256 };

/// A [`SkipList`] whose towers are built, and taken down, by a thread of its own.
///
/// An insertion links its node on the lowest level, a removal marks it: nobody but the builder
/// writes to the levels above, which all searches read. That is the form that the comparison of
/// indexes calls *no hot spot*. It is for lists that many threads write to here and there at a
/// rate that one thread can follow; beyond that they build their towers themselves. Where towers lag
/// behind, searches walk along the lowest level: for keys that arrive in order [`SkipList`], or
/// better a B+tree, is the one to take.
///
/// Consistency and memory are those of [`SkipList`]; some thousand removed nodes, with their keys,
/// may wait for the thread. How many nodes do is the figure `left_to_thread` of its
/// [`shape`](tremula_index::OrderedIndex::shape). The thread ends with the list. If the comparison of keys panics in it, that tower stays
/// low, and the builder goes on.
///
/// ```
/// use tremula_index::OrderedIndex;
/// use tremula_papers::BackgroundSkipList;
///
/// let index = BackgroundSkipList::<u32, &'static str>::new();
/// index.insert(2, "two");
/// index.insert(1, "one");
/// assert_eq!(index.first(), Some((1, "one")));
/// ```
///
/// Source: Crain, Gramoli, Raynal, "No hot spot non-blocking skip list", ICDCS 2013. There the
/// builder looks for nodes to raise, and picks them by their distance; here it is told of those
/// whose height, drawn as ever, is more than one.
pub struct BackgroundSkipList<K: Ord + Storable, V: Storable, H: KeyHead<K> = ByteHead> {
    list: Arc<SkipList<K, V, H>>,
    builder: Option<JoinHandle<()>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> BackgroundSkipList<K, V, H> {
    /// An empty list.
    ///
    /// # Panics
    ///
    /// The system has no thread to give.
    #[must_use]
    pub fn new() -> Self {
        let list = List::new(Some(Box::new(Backlog::new())));
        let list = Arc::new(SkipList { list });
        let shared = Arc::clone(&list);
        let builder = Some(thread::spawn(move || {
            BUILDER.set(true);
            shared.list.build_towers();
        }));
        Self { list, builder }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Default for BackgroundSkipList<K, V, H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Deref for BackgroundSkipList<K, V, H> {
    type Target = SkipList<K, V, H>;

    fn deref(&self) -> &SkipList<K, V, H> {
        &self.list
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> OrderedIndex<K, V>
    for BackgroundSkipList<K, V, H>
{
    delegate_to_target!();
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Drop for BackgroundSkipList<K, V, H> {
    fn drop(&mut self) {
        if let Some(backlog) = &self.list.list.backlog {
            backlog.end();
        }
        let Some(builder) = self.builder.take() else {
            return;
        };
        // User code in the builder, or a value that it drops, may have had the last handle of the
        // list. A thread cannot wait for its own end, and two builders not for each other's: then
        // this one ends by itself, and frees the list if it is the last to have it.
        if !is_builder() {
            // It catches what panics in it.
            let _ = builder.join();
        }
    }
}

tremula_sync::system::thread_local! {
    /// Whether this thread is the builder of some list. (Of a model, all threads share it.)
    static BUILDER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is the builder of some list.
fn is_builder() -> bool {
    !cfg!(any(loom, shuttle)) && BUILDER.get()
}

/// What is left to the builder.
pub(super) struct Backlog<S: Spec> {
    queues: [CachePadded<Mutex<Queue<S>>>; QUEUES],
    /// Tasks that the builder has taken and not done yet. Changed under the lock of the queue that
    /// they come from, or by the builder, which has them.
    taken: AtomicUsize,
    ended: AtomicBool,
}

struct Queue<S: Spec> {
    tasks: Vec<Task<S>>,
    /// The builder, if it has found this queue empty and sleeps, or is about to.
    asleep: Option<Waiter>,
}

/// Something to be done to a node, which is kept until it is done.
enum Task<S: Spec> {
    /// Link it on its upper levels: it is marked as being built, and these levels keep it.
    Build(Link<S>),
    /// Unlink it: it has been removed, and its links are marked. The task keeps it.
    Unlink(Link<S>),
}

// SAFETY: a task is a pointer to a node of the list, whose keys and values are `Send` and `Sync`;
// until it is done the node lives.
unsafe impl<S: Spec> Send for Task<S> {}

impl<S: Spec> Backlog<S> {
    fn new() -> Self {
        Self {
            queues: std::array::from_fn(|_| {
                CachePadded::new(Mutex::new(Queue {
                    tasks: Vec::new(),
                    asleep: None,
                }))
            }),
            taken: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// How many tasks are left to the builder.
    pub(super) fn len(&self) -> usize {
        // Under all the locks at once, so that no task is missed on its way to the builder.
        let queues: Vec<_> = self.queues.iter().map(|queue| queue.lock()).collect();
        let waiting: usize = queues.iter().map(|queue| queue.tasks.len()).sum();
        // Acquire: pairs with `done`. What the tasks retired was retired before.
        waiting + self.taken.load(Acquire)
    }

    /// Says that the builder has done a task.
    fn done(&self) {
        self.taken.fetch_sub(1, Release);
    }

    /// Leaves a node to the builder that is to be linked on its upper levels; whether there was
    /// room.
    pub(super) fn build(&self, node: Link<S>) -> bool {
        self.push(Task::Build(node))
    }

    /// Leaves a node to the builder that is to be unlinked; whether there was room.
    pub(super) fn unlink(&self, node: Link<S>) -> bool {
        self.push(Task::Unlink(node))
    }

    fn push(&self, task: Task<S>) -> bool {
        let mut queue = self.queues[thread_index() % self.queues.len()].lock();
        if queue.tasks.len() >= ROOM {
            return false;
        }
        queue.tasks.push(task);
        let asleep = queue.asleep.take();
        drop(queue);
        if let Some(builder) = asleep {
            builder.wake();
        }
        true
    }

    /// Tells the builder to do what is left, and to end.
    fn end(&self) {
        // Relaxed: the locks below order it before the builder's next look at each queue.
        self.ended.store(true, Relaxed);
        for queue in &self.queues {
            let asleep = queue.lock().asleep.take();
            if let Some(builder) = asleep {
                builder.wake();
            }
        }
    }

    /// Takes the tasks of all queues; sleeps while there are none. `None` when all is done and the
    /// list has ended.
    fn take(&self) -> Option<Vec<Task<S>>> {
        loop {
            let mut taken = Vec::new();
            for queue in &self.queues {
                let mut queue = queue.lock();
                // From here on whoever leaves work in this queue wakes the builder.
                queue.asleep = Some(Waiter::this_thread());
                // Relaxed: ordered by the lock.
                self.taken.fetch_add(queue.tasks.len(), Relaxed);
                taken.append(&mut queue.tasks);
            }
            if !taken.is_empty() {
                return Some(taken);
            }
            if self.ended.load(Relaxed) {
                return None;
            }
            park(None);
        }
    }
}

impl<S: Spec> List<S> {
    /// Does what is left to the builder, until the list ends.
    fn build_towers(&self) {
        let Some(backlog) = &self.backlog else {
            return;
        };
        while let Some(tasks) = backlog.take() {
            for task in tasks {
                // Where a comparison panics, what was begun has been left in order.
                let done = catch_unwind(AssertUnwindSafe(|| self.carry_out(&task)));
                if let Err(panic) = done {
                    discard_panic(panic);
                }
                backlog.done();
            }
        }
    }

    fn carry_out(&self, task: &Task<S>) {
        let guard = &self.collector.pin();
        match *task {
            Task::Build(link) => {
                let Some(node) = self.node(link, guard) else {
                    return;
                };
                self.finish(node, guard);
            }
            Task::Unlink(link) => {
                if let Some(node) = self.node(link, guard) {
                    self.unlink_for_task(node, guard);
                }
            }
        }
    }

    /// Builds the tower of a node that may have been removed meanwhile.
    fn finish<'g>(&'g self, node: NodeRef<'g, S>, guard: &'g Guard<'_>) {
        if node.is_removed() {
            return self.finish_building(node, node.height() - 1, guard);
        }
        let path = self.guarding_tower(node, &Cell::new(1), guard, || {
            node.with_key(|key| self.path(&Gap::at(key), guard))
        });
        self.build_now(node, path, guard);
    }
}

/// Drops what a panic carries; where that panics in turn, the second one is forgotten.
fn discard_panic(panic: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
}
