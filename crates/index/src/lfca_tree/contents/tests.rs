//! Edits free every node and release every entry once, however trees share them.

use super::{Edit, Owned, OwnedEntry, OwnedTree, Root, View};
use crate::key::{ByteHead, KeyHead, NoHead};
use crate::kit::{Parameters, SearchKey, Spec};
use std::cell::Cell;
use std::process::{Command, exit};
use std::sync::Arc;

thread_local! {
    /// The nodes of contents that this thread has allocated, minus those that it has freed.
    pub(super) static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// The successive trees of a base node, without an epoch, because only one thread reads them.
struct Contents<S: Spec<Value = Arc<()>>> {
    root: Root<S>,
    value: Arc<()>,
}

impl<S: Spec<Value = Arc<()>>> Contents<S> {
    fn new() -> Self {
        Self {
            root: Root::EMPTY,
            value: Arc::new(()),
        }
    }

    fn view(&self) -> View<'static, S> {
        // SAFETY: no view is used after `commit` or `drop` has freed its nodes.
        unsafe { self.root.view() }
    }

    fn commit(&mut self, edit: Edit<'_, '_, S>, put: Option<OwnedEntry<S>>) {
        let root = edit.root();
        edit.check_moved();
        // SAFETY: the new tree replaces the old one, which is not used any more.
        unsafe {
            let (nodes, contents) = edit.commit(put);
            self.root = root;
            nodes.free();
            drop(contents.own());
        }
    }

    /// Puts a value under a key. A first edit is aborted, as if another thread were faster.
    fn put(&mut self, key: S::Key) {
        let word = if S::HEAD_IS_KEY {
            Owned::none()
        } else {
            Owned::new(key.clone())
        };
        let value = Owned::new(Arc::clone(&self.value));
        let probe = SearchKey::new(&key);
        self.view().find(&probe).put(&word, &value).abort();
        let mut path = self.view().find(&probe);
        let edit = path.put(&word, &value);
        self.commit(edit, Some((word, value)));
    }

    /// Removes a key, if it is there. A first edit is aborted.
    fn remove(&mut self, key: &S::Key) {
        let probe = SearchKey::new(key);
        if self.view().get(&probe).is_none() {
            return;
        }
        self.view().find(&probe).remove().abort();
        let mut path = self.view().find(&probe);
        let edit = path.remove();
        self.commit(edit, None);
    }

    fn len(&self) -> usize {
        self.view().check_at_rest(None, None);
        self.view().measure().1
    }

    /// Drops the tree, and checks that nothing is left of it.
    fn end(self) {
        self.view().check_at_rest(None, None);
        // SAFETY: this owns a count of the tree.
        drop(unsafe { self.root.own() });
        assert_eq!(LIVE.get(), 0, "nodes are left");
        assert_eq!(Arc::strong_count(&self.value), 1, "values are left");
    }
}

/// Enough keys for two inner nodes, the second with a few children, and a root above them.
const KEYS: u64 = 1_900;

/// Integer keys, and values that are counted.
type Counted<H> = Parameters<u64, Arc<()>, H>;

fn filled<H: KeyHead<u64>>() -> Contents<Counted<H>> {
    let mut contents = Contents::new();
    (0..KEYS).for_each(|key| contents.put(key));
    contents
}

#[test]
fn a_node_that_appends_left_poor_is_merged_without_a_leak() {
    // The last inner node has only a few children, all of them full: a removal does not merge its
    // leaf, but it merges the node above.
    let mut contents = filled::<ByteHead>();
    contents.remove(&(KEYS - 50));
    assert_eq!(contents.len(), KEYS as usize - 1);
    contents.end();
}

fn edits_beside_snapshots<H: KeyHead<u64>>() {
    let mut contents = filled::<H>();
    let mut snapshots: Vec<OwnedTree<Counted<H>>> = Vec::new();
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    // The tree shrinks to nothing and grows again, twice.
    for turn in 0..8 * KEYS {
        let key = random(KEYS);
        let grows = (turn / (2 * KEYS)) % 2 == 1;
        if random(8) == 0 || grows {
            contents.put(key);
        } else {
            (key..key + 4).for_each(|key| contents.remove(&key));
        }
        match random(200) {
            0 => snapshots.push(contents.view().share()),
            1 => drop(snapshots.pop()),
            2 => {
                // A split and a join that both succeed.
                if let Some((lower, upper, _)) = contents.view().split() {
                    let joined = lower.view().join(upper.view()).into_root();
                    // SAFETY: this owns a count of the old tree.
                    drop(unsafe { contents.root.own() });
                    contents.root = joined;
                }
            }
            _ => {}
        }
    }
    drop(snapshots);
    contents.end();
}

#[test]
fn edits_beside_snapshots_leave_nothing() {
    edits_beside_snapshots::<ByteHead>();
}

#[test]
fn edits_beside_snapshots_leave_nothing_without_heads() {
    edits_beside_snapshots::<NoHead>();
}

/// A count that wraps to 0 would free what others still have. The test fails if the process that
/// adds one count too many goes on.
#[test]
fn a_node_with_too_many_counts_ends_the_process() {
    const CHILD: &str = "TREMULA_TOO_MANY_COUNTS";
    const NAME: &str = "lfca_tree::contents::tests::a_node_with_too_many_counts_ends_the_process";
    if std::env::var_os(CHILD).is_some() {
        let mut contents = Contents::<Counted<ByteHead>>::new();
        contents.put(1);
        contents
            .view()
            .root
            .unwrap()
            .pretend_counts(isize::MAX as usize);
        for _ in 0..2 {
            std::mem::forget(contents.view().share());
        }
        exit(0);
    }
    let this = std::env::current_exe().unwrap();
    let child = Command::new(this)
        .args([NAME, "--exact"])
        .env(CHILD, "")
        .output();
    let status = child.unwrap().status;
    assert!(!status.success(), "it lives on");
    // The exit status of a test that fails.
    assert_ne!(status.code(), Some(101), "it never came to the counts");
}
