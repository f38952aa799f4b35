//! The snapshots of the group, in a place that all machines reach. One of those that are kept may
//! be damaged while it lies there.

use crate::host::Snapshot;
use tremula_group::{Manifest, Position, SavedPoint, Shelf};
use tremula_log::{Sequence, Tail};

struct Object {
    name: String,
    manifest: Manifest,
    snapshot: Snapshot,
    is_damaged: bool,
}

#[derive(Default)]
pub(crate) struct Objects {
    all: Vec<Object>,
    made: u64,
}

impl Objects {
    fn shelf(&self) -> Shelf {
        let named = |object: &Object| (object.name.clone(), object.manifest.clone());
        Shelf::new(self.all.iter().map(named).collect())
    }

    /// Adds a snapshot that was checked, and removes those that are not kept.
    pub(crate) fn put(&mut self, snapshot: Snapshot) {
        self.made += 1;
        self.all.push(Object {
            name: self.made.to_string(),
            manifest: Manifest {
                saved: SavedPoint {
                    group: "main".to_owned(),
                    point: snapshot.point.clone(),
                },
                log: Tail::START,
                begins: Sequence::FIRST,
                snapshot_bytes: 0,
                bytes: 0,
                checksum: 0,
            },
            snapshot,
            is_damaged: false,
        });
        let shelf = self.shelf();
        let kept: Vec<&str> = shelf.kept().collect();
        self.all.retain(|object| kept.contains(&&*object.name));
    }

    pub(crate) fn keep_from(&self, needs: Vec<Position>) -> Position {
        self.shelf().keep_from(needs)
    }

    /// Damages one, if another one is there and all are whole.
    pub(crate) fn damage(&mut self, random: usize) {
        let count = self.all.len();
        if count > 1 && self.all.iter().all(|object| !object.is_damaged) {
            self.all[random % count].is_damaged = true;
        }
    }

    /// The newest whole snapshot from which a log that begins here leads on.
    pub(crate) fn load(&self, first: Position) -> Snapshot {
        let shelf = self.shelf();
        let mut leading = shelf.leading_to(first);
        let whole = leading.find_map(|(name, _)| {
            let mut all = self.all.iter();
            all.find(|object| object.name == name && !object.is_damaged)
        });
        let found = whole.map(|object| object.snapshot.clone());
        found.unwrap_or_else(|| panic!("no snapshot leads to message {first}"))
    }
}
