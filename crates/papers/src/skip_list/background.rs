//! The skip list whose towers a thread of its own builds.

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

/// The number of queues, over which the threads that leave tasks to the builder are spread.
const QUEUES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// Tasks that a queue can hold. A thread that finds the queue full does the task itself, so that
/// neither memory nor searches grow without bound if the builder cannot keep up.
const ROOM: usize = if cfg!(any(loom, shuttle)) { 2 } else { 256 };

/// A [`SkipList`] whose towers are built and unlinked by a thread of its own, the builder.
///
/// An insertion links its node on the lowest level, a removal marks the node. Only the builder
/// writes to the levels above, which all searches read. The comparison of indexes calls this form
/// *no hot spot*. Take it if many threads write to random places at a rate that one thread can
/// follow. Beyond that rate they build their towers themselves. While towers are missing, searches
/// walk along the lowest level: if keys arrive in order take [`SkipList`], or better a B+tree.
///
/// Consistency and memory are those of [`SkipList`], but some thousand removed nodes, with their
/// keys, may wait for the builder. The figure `left_to_thread` of
/// [`shape`](tremula_index::OrderedIndex::shape) says how many. The builder ends with the list. If
/// a comparison of keys panics in it, that tower stays low, and the builder goes on.
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
/// builder looks for nodes to raise, and picks them by their distance. Here inserters leave the
/// nodes to it whose randomly drawn height is more than one.
pub struct BackgroundSkipList<K: Ord + Storable, V: Storable, H: KeyHead<K> = ByteHead> {
    list: Arc<SkipList<K, V, H>>,
    builder: Option<JoinHandle<()>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> BackgroundSkipList<K, V, H> {
    /// An empty list.
    ///
    /// # Panics
    ///
    /// The system refuses a thread.
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

    fn check_invariants(&self) {
        (**self).check_invariants();
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Drop for BackgroundSkipList<K, V, H> {
    fn drop(&mut self) {
        if let Some(backlog) = &self.list.list.backlog {
            backlog.end();
        }
        let Some(builder) = self.builder.take() else {
            return;
        };
        // The last handle of the list may be dropped by user code in the builder, or by a value
        // that it drops. A thread cannot wait for its own end, and two builders cannot wait for
        // each other's. Then the builder ends by itself, and frees the list if it is the last to
        // use it.
        if !is_builder() {
            // An error cannot occur, because the builder catches panics.
            let _ = builder.join();
        }
    }
}

tremula_sync::system::thread_local! {
    /// Whether this thread is the builder of some list. (In a model all threads share it.)
    static BUILDER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is the builder of some list.
fn is_builder() -> bool {
    !cfg!(any(loom, shuttle)) && BUILDER.get()
}

/// The tasks that are left to the builder.
pub(super) struct Backlog<S: Spec> {
    queues: [CachePadded<Mutex<Queue<S>>>; QUEUES],
    /// Tasks that the builder has taken and not finished yet. Raised under the lock of the queue
    /// that a task comes from, and lowered by the builder.
    taken: AtomicUsize,
    ended: AtomicBool,
}

struct Queue<S: Spec> {
    tasks: Vec<Task<S>>,
    /// The builder, if it has found this queue empty and sleeps, or is about to sleep.
    asleep: Option<Waiter>,
}

/// A task for a node, which is kept until the task is done.
enum Task<S: Spec> {
    /// Links the node on its upper levels. It is marked as being built, and these levels keep it.
    Build(Link<S>),
    /// Unlinks the node. It is removed, and its links are marked. The task keeps it.
    Unlink(Link<S>),
}

// SAFETY: a task is a pointer to a node of the list, whose keys and values are `Send` and `Sync`.
// The node lives until the task is done.
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

    /// The number of tasks that the builder has not finished.
    pub(super) fn len(&self) -> usize {
        // Under all locks at once, so that no task is missed on its way to the builder.
        let queues: Vec<_> = self.queues.iter().map(|queue| queue.lock()).collect();
        let waiting: usize = queues.iter().map(|queue| queue.tasks.len()).sum();
        // Acquire: pairs with `done`. The nodes of finished tasks have been retired.
        waiting + self.taken.load(Acquire)
    }

    /// Records that the builder has finished a task.
    fn done(&self) {
        self.taken.fetch_sub(1, Release);
    }

    /// Has the builder link a node on its upper levels. Returns `false` if the queue is full.
    pub(super) fn build(&self, node: Link<S>) -> bool {
        self.push(Task::Build(node))
    }

    /// Has the builder unlink a node. Returns `false` if the queue is full.
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

    /// Makes the builder finish all tasks, and end.
    fn end(&self) {
        // Relaxed: the locks below order this before the builder's next look at each queue.
        self.ended.store(true, Relaxed);
        for queue in &self.queues {
            let asleep = queue.lock().asleep.take();
            if let Some(builder) = asleep {
                builder.wake();
            }
        }
    }

    /// Takes the tasks of all queues; sleeps while there are none. `None` when all are done and the
    /// list has ended.
    fn take(&self) -> Option<Vec<Task<S>>> {
        let mut last_look = false;
        loop {
            let mut taken = Vec::new();
            for queue in &self.queues {
                let mut queue = queue.lock();
                // From here on a thread that leaves a task in this queue wakes the builder.
                queue.asleep = Some(Waiter::this_thread());
                // Relaxed: ordered by the lock.
                self.taken.fetch_add(queue.tasks.len(), Relaxed);
                taken.append(&mut queue.tasks);
            }
            if !taken.is_empty() {
                return Some(taken);
            }
            if last_look {
                return None;
            }
            // Tasks may have come to the queues behind this look, but none comes after the end: one
            // more look finds the last. Relaxed: the lock of a task's queue orders them.
            last_look = self.ended.load(Relaxed);
            if !last_look {
                park(None);
            }
        }
    }
}

impl<S: Spec> List<S> {
    /// Carries out the builder's tasks until the list ends.
    fn build_towers(&self) {
        let Some(backlog) = &self.backlog else {
            return;
        };
        while let Some(tasks) = backlog.take() {
            for task in tasks {
                // If a comparison panics, the task has left the node in order.
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

/// Drops the payload of a panic. If its drop panics, that second payload is forgotten.
fn discard_panic(panic: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
}
