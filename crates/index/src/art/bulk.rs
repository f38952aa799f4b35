//! Bulk loading: a tree from sorted entries.

use super::Art;
use super::child::{Child, NodeRef, Word};
use super::form::Form;
use super::header::{Prefix, Symbol, symbol_at};
use super::leaf::common_bytes;
use crate::bulk::{Ascending, NotSorted};
use crate::byte_keyed::{ByteForm, RecordRef};
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::kit::Packed;
use tremula_sync::atomic::Ordering;

/// A node on the way of the last key, with its entries so far. The node itself is made when the
/// keys leave it, of the smallest kind that can hold the entries.
struct Open {
    depth: usize,
    entries: Vec<(Symbol, Word)>,
}

/// What is to be inserted into the last open node.
enum Below<K, V> {
    Entry(K, V),
    Node(Word),
}

/// A tree that is being built.
///
/// If an iterator panics, what has been built so far is not freed.
struct Builder<K: ByteKey, V: Storable> {
    tree: Art<K, V>,
    /// From the root downwards.
    open: Vec<Open>,
    /// Vectors of closed nodes, for reuse.
    spare: Vec<Vec<(Symbol, Word)>>,
    /// What is below the last open node on the way of the last key, and that key's byte form.
    below: Option<Below<K, V>>,
    last: Vec<u8>,
    entries: isize,
}

impl<K: ByteKey, V: Storable> Builder<K, V> {
    fn new() -> Self {
        Self {
            tree: Art::new(),
            open: vec![Open {
                depth: 0,
                entries: Vec::new(),
            }],
            spare: Vec::new(),
            below: None,
            last: Vec::new(),
            entries: 0,
        }
    }

    /// Adds an entry. Returns `false` if its byte form is not above that of the last, whatever the
    /// order of the keys says.
    fn push(&mut self, key: K, value: V) -> bool {
        let goes_up = Form::with(&key, |bytes| {
            if self.below.is_some() {
                let common = common_bytes(bytes, &self.last);
                if symbol_at(bytes, common) <= symbol_at(&self.last, common) {
                    return false;
                }
                self.open_at(common);
            }
            self.last.clear();
            self.last.extend_from_slice(bytes);
            true
        });
        if goes_up {
            self.entries += 1;
            self.below = Some(Below::Entry(key, value));
        }
        goes_up
    }

    /// Closes the nodes on the way of the last key that are not on the way of the next. Afterwards
    /// the lowest open node is one at this depth.
    fn open_at(&mut self, depth: usize) {
        while let Some(lowest) = self.open.pop_if(|lowest| lowest.depth > depth) {
            let above = self.open.last().map_or(0, |above| above.depth);
            self.close(lowest, above.max(depth));
        }
        if self.open.last().is_none_or(|lowest| lowest.depth < depth) {
            let entries = self.spare.pop().unwrap_or_default();
            self.open.push(Open { depth, entries });
        }
        self.insert_below();
    }

    /// Inserts what is below into the lowest open node.
    fn insert_below(&mut self) {
        let (Some(below), Some(lowest)) = (self.below.take(), self.open.last_mut()) else {
            return;
        };
        let word = match below {
            Below::Node(word) => word,
            Below::Entry(_, value) if Art::<K, V>::has_values_at(lowest.depth) => {
                Packed::new(value).word()
            }
            Below::Entry(key, value) => Child::leaf(RecordRef::new(key, Packed::new(value))).word(),
        };
        let symbol = symbol_at(&self.last, lowest.depth);
        lowest.entries.push((symbol, word));
    }

    /// Makes a node of an open one, below a node at depth `above`.
    fn close(&mut self, lowest: Open, above: usize) {
        self.open.push(lowest);
        self.insert_below();
        let Some(mut closed) = self.open.pop() else {
            return;
        };
        let prefix = Prefix::new(&self.last[above + 1..closed.depth]);
        let of_values = Art::<K, V>::has_values_at(closed.depth);
        let node = NodeRef::of(closed.depth, prefix, &closed.entries, of_values);
        self.below = Some(Below::Node(node.child().word()));
        closed.entries.clear();
        self.spare.push(closed.entries);
    }

    fn finish(mut self) -> Art<K, V> {
        if self.below.is_some() {
            self.open_at(0);
        }
        let root = Child::of_word(self.tree.root.load(Ordering::Relaxed));
        // SAFETY: no other thread has the tree yet.
        if let super::child::ChildRef::Node(root) = unsafe { root.follow_alone::<K>() } {
            for (symbol, word) in self.open.drain(..).flat_map(|open| open.entries) {
                root.insert(symbol, word);
            }
        }
        self.tree.len.add(self.entries);
        self.tree
    }
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// A tree of these entries, whose keys ascend strictly. O(n). No node is larger than necessary,
    /// so this is faster than inserting the entries, and the tree is smaller until entries are
    /// added.
    ///
    /// # Errors
    ///
    /// [`NotSorted`] names the first entry whose key is not above the one before it.
    ///
    /// ```
    /// use tremula_index::{Art, NotSorted, OrderedIndex};
    ///
    /// let squares = Art::from_sorted((0..1000_u64).map(|n| (n * n, n)))?;
    /// assert_eq!(squares.next(&50), Some((64, 8)));
    /// let unsorted = Art::from_sorted([("b", 1), ("a", 2)]);
    /// assert_eq!(unsorted.err().map(|error| error.position), Some(1));
    /// # Ok::<(), NotSorted>(())
    /// ```
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self, NotSorted> {
        let mut builder = Builder::new();
        let mut failed = None;
        for (position, entry) in Ascending::new(entries.into_iter()).enumerate() {
            let pushed = entry.map(|(key, value)| builder.push(key, value));
            if pushed != Ok(true) {
                failed = Some(pushed.err().unwrap_or(NotSorted { position }));
                break;
            }
        }
        // If the load failed, dropping the tree frees what was built.
        let tree = builder.finish();
        failed.map_or(Ok(tree), Err)
    }
}
