//! Long lists of keys: `KEYS`, `SCAN` and `RANGE`.
//!
//! The protocol wants the number of elements before the elements. So a list is gathered first and
//! written afterwards, both in steps of one turn. What is gathered is not the reply but the keys,
//! or keys and values, as the index has them: long ones are shared, and each takes the size of its
//! type. They are written when the client has read what was written before.

use super::atomic::too_many;
use super::ordered::WAY_OUT;
use super::{Context, Failure, Outcome, Step, View, Work, begin};
use crate::clients::Client;
use crate::glob::{Matching, STEPS_PER_BYTE, TooManySteps};
use crate::limits::REPLY_BATCH;
use crate::resp::{Arguments, Protocol, too_long};
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tremula_store::{Direction, Held, Key, Position, SnapshotWalk, Value, Walk};

/// The most bytes that an element takes in a reply besides its own.
const OVERHEAD: usize = 32;

/// Elements in one piece of what is gathered.
const PIECE: usize = 1024;

/// Steps of a match between two looks at the clock, some microseconds.
const STEPS_PER_LOOK: usize = 4096;

/// One element of a list.
pub(super) trait Element: Send + 'static {
    fn of(entry: (Key, Value)) -> Self;

    /// The bytes that it takes in a reply. A value in the cache does not count.
    fn length(&self) -> usize;

    fn write(self, context: &mut Context<'_>);

    /// The elements of the reply's array for each of these.
    fn width(protocol: Protocol) -> usize;
}

impl Element for Key {
    fn of((key, _): (Key, Value)) -> Self {
        key
    }

    fn length(&self) -> usize {
        self.as_bytes().len() + OVERHEAD
    }

    fn write(self, context: &mut Context<'_>) {
        context.reply.bulk(self.as_bytes());
    }

    fn width(_: Protocol) -> usize {
        1
    }
}

impl Element for (Key, Value) {
    fn of(entry: (Key, Value)) -> Self {
        entry
    }

    fn length(&self) -> usize {
        self.0.length() + self.1.len() + OVERHEAD
    }

    /// A value that the cache has evicted since is null, because the number of elements has been
    /// written.
    fn write(self, context: &mut Context<'_>) {
        let (key, value) = self;
        let text = context.values().text(&key, &value);
        if context.reply.protocol == Protocol::Resp3 {
            context.reply.array(2);
        }
        context.reply.bulk(key.as_bytes());
        match text {
            Some(text) => context.reply.value(text),
            None => context.reply.null(),
        }
    }

    fn width(protocol: Protocol) -> usize {
        match protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 1,
        }
    }
}

/// What long lists of all clients hold, in bytes.
#[derive(Default)]
pub(crate) struct Gathering(AtomicUsize);

impl Gathering {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// What one command holds of that, which counts as its client's, until it is dropped.
pub(super) struct Share {
    all: Arc<Gathering>,
    client: Arc<Client>,
    bytes: usize,
}

impl Share {
    /// Nothing, at first.
    pub(super) fn new(context: &Context<'_>) -> Result<Self, Failure> {
        let server = context.server;
        Ok(Self {
            all: Arc::clone(&server.gathering),
            client: server
                .clients
                .get(context.client.id)
                .ok_or(Failure::STOPPING)?,
            bytes: 0,
        })
    }

    /// Notes what the command holds now.
    ///
    /// # Errors
    ///
    /// All clients hold more than `most` bytes now. It is noted.
    pub(super) fn set(&mut self, bytes: usize, most: usize) -> Result<(), TooMuch> {
        let Self { all, client, .. } = self;
        let before = all.0.fetch_add(bytes, Relaxed) - self.bytes;
        all.0.fetch_sub(self.bytes, Relaxed);
        self.bytes = bytes;
        client.set_gathers(bytes);
        let is_within = before.saturating_add(bytes) <= most;
        is_within.then_some(()).ok_or(TooMuch)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes, Relaxed);
        self.client.set_gathers(0);
    }
}

/// The lists of all clients hold too much.
pub(super) struct TooMuch;

fn too_much(held: usize, most: usize) -> Failure {
    let text = format!(
        "OOM the long replies of all clients hold {held} bytes, and may hold {most} \
         (--max-gathered); ask for less at once, with LIMIT or SCAN"
    );
    Failure::Owned(text.into_bytes())
}

/// The elements of one list.
struct Gathered<E> {
    pieces: VecDeque<std::vec::IntoIter<E>>,
    open: Vec<E>,
    count: usize,
    /// What the pieces count in the sum of all clients. A list of one piece is not counted.
    counted: usize,
    all: Arc<Gathering>,
}

impl<E> Gathered<E> {
    fn new(all: &Arc<Gathering>) -> Self {
        Self {
            pieces: VecDeque::new(),
            open: Vec::new(),
            count: 0,
            counted: 0,
            all: Arc::clone(all),
        }
    }

    /// Adds an element, unless all clients would hold more than `most` bytes.
    fn push(&mut self, element: E, most: usize) -> Result<(), Failure> {
        if self.open.len() == PIECE {
            self.count_bytes(PIECE * size_of::<E>(), most)?;
            let full = std::mem::take(&mut self.open);
            self.pieces.push_back(full.into_iter());
        }
        self.open.push(element);
        self.count += 1;
        Ok(())
    }

    fn count_bytes(&mut self, bytes: usize, most: usize) -> Result<(), Failure> {
        let before = self.all.0.fetch_add(bytes, Relaxed);
        self.counted += bytes;
        if before.saturating_add(bytes) <= most {
            return Ok(());
        }
        Err(too_much(before, most))
    }

    fn pop(&mut self) -> Option<E> {
        loop {
            let Some(piece) = self.pieces.front_mut() else {
                if self.open.is_empty() {
                    return None;
                }
                let last = std::mem::take(&mut self.open);
                self.pieces.push_back(last.into_iter());
                continue;
            };
            if let Some(element) = piece.next() {
                return Some(element);
            }
            self.pieces.pop_front();
            let freed = self.counted.min(PIECE * size_of::<E>());
            self.counted -= freed;
            self.all.0.fetch_sub(freed, Relaxed);
        }
    }
}

impl<E> Drop for Gathered<E> {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.counted, Relaxed);
    }
}

/// Where the entries come from.
pub(super) enum Source {
    /// Up to `most` entries that the user sees.
    Walk {
        walk: Walk,
        most: usize,
        /// Which keys are shown; `None` if all are.
        view: Option<View>,
    },
    /// Up to `most` entries as of one moment, which are copied when they are read, or before
    /// somebody changes them.
    Snapshot {
        walk: Box<SnapshotWalk>,
        most: usize,
        held: Held,
    },
    /// Copies of one moment, which count as held.
    Copies {
        copies: std::vec::IntoIter<(Key, Value)>,
        _held: Held,
    },
    /// What was there once. It counts until the reply is written.
    Past {
        entries: std::vec::IntoIter<(Key, Value)>,
        _share: Share,
    },
}

impl Source {
    /// The entries between two bounds, `most` of those that the user sees.
    pub(super) fn walk(
        context: &Context<'_>,
        low: Bound<Key>,
        high: Bound<Key>,
        direction: Direction,
        most: usize,
    ) -> Self {
        let view = View::of(context);
        let limit = if view.is_some() { usize::MAX } else { most };
        let walk = Walk::new(low, high, direction, limit);
        Self::Walk { walk, most, view }
    }

    fn shows(&self, key: &Key) -> bool {
        match self {
            Self::Walk {
                view: Some(view), ..
            } => view.shows(key),
            _ => true,
        }
    }
}

/// What makes a list a page of `SCAN`.
pub(super) struct Page {
    pub(super) database: usize,
    /// Keys that the page looks at.
    pub(super) count: usize,
    /// Whether keys of the requested type can exist.
    pub(super) wants_strings: bool,
}

/// An entry, and how far it was matched with the pattern.
type Matched = ((Key, Value), Matching);

/// A list on its way.
pub(super) struct Listing<E> {
    source: Source,
    /// The argument with the pattern.
    pattern: Option<usize>,
    /// The entry whose match goes on.
    current: Option<Matched>,
    page: Option<Page>,
    seen: usize,
    /// All that it has gone through.
    looked: usize,
    gathered: Gathered<E>,
    /// The bytes of the reply.
    bytes: usize,
    is_written: bool,
}

/// Answers with a list.
pub(super) fn list<E: Element>(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    source: Source,
    pattern: Option<usize>,
    page: Option<Page>,
) -> Outcome {
    let listing = Listing::<E>::new(context, source, pattern, page);
    begin(context, arguments, listing)
}

impl<E: Element> Listing<E> {
    pub(super) fn new(
        context: &Context<'_>,
        source: Source,
        pattern: Option<usize>,
        page: Option<Page>,
    ) -> Self {
        Self {
            source,
            pattern,
            current: None,
            page,
            seen: 0,
            looked: 0,
            gathered: Gathered::new(&context.server.gathering),
            bytes: 0,
            is_written: false,
        }
    }

    /// The next entry, with its match so far.
    fn next(&mut self, context: &mut Context<'_>) -> Result<Option<Matched>, Failure> {
        if let Some(current) = self.current.take() {
            return Ok(Some(current));
        }
        let entry = match &mut self.source {
            Source::Walk { most, .. } if *most == self.seen && self.page.is_none() => None,
            Source::Snapshot { most, .. } if *most == self.seen => None,
            Source::Snapshot { walk, held, .. } => {
                let is_copied = walk.at_hand() == 0;
                let entry = walk.next(context.database());
                if is_copied {
                    let most = context.server.limits.max_snapshot;
                    if walk.ahead() > most {
                        context.server.store.snapshots().refuse();
                        return Err(too_much_written(most));
                    }
                    let (copied, copies) = walk.copies();
                    held.goes_on(copied, copies);
                    context.turn.spend(walk.at_hand());
                }
                entry
            }
            Source::Walk { walk, .. } => {
                if walk.at_hand() == 0 {
                    // Copies a batch.
                    let entry = walk.next(context.database());
                    context.turn.spend(walk.at_hand());
                    entry
                } else {
                    walk.next(context.database())
                }
            }
            Source::Copies { copies, .. } => copies.next(),
            Source::Past { entries, .. } => entries.next(),
        };
        Ok(entry.map(|entry| (entry, Matching::default())))
    }

    /// Gathers until the end or the end of the turn. Returns the key that a next page goes on
    /// behind, if it came to the end of the page.
    fn gather(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Option<Option<Key>>, Failure> {
        let limits = &context.server.limits;
        let longest = context.server.live.max_output_buffer.bytes();
        let most = limits.turn.max_gathered.0;
        let atomic = context.server.limits.transactions.max_atomic;
        while let Some((entry, mut matching)) = self.next(context)? {
            self.looked += 1;
            if context.databases.are_held() && self.looked > atomic {
                return Err(too_many(atomic));
            }
            if !self.source.shows(&entry.0) {
                if context.turn.spend(1) {
                    return Ok(None);
                }
                continue;
            }
            let is_match = match self.pattern {
                None => true,
                Some(pattern) => {
                    let (pattern, key) = (arguments.get(pattern), entry.0.as_bytes());
                    let answer = matching.go_on(pattern, key, STEPS_PER_LOOK);
                    match answer.map_err(|TooManySteps| exploded(key))? {
                        Some(answer) => answer,
                        None => {
                            self.current = Some((entry, matching));
                            if context.turn.look() {
                                return Ok(None);
                            }
                            continue;
                        }
                    }
                }
            };
            self.seen += 1;
            let is_last = self
                .page
                .as_ref()
                // A page may end early, and must not exceed the output buffer.
                .is_some_and(|page| self.seen == page.count || self.bytes > longest / 2);
            let last = is_last.then(|| entry.0.clone());
            if is_match && self.page.as_ref().is_none_or(|page| page.wants_strings) {
                let element = E::of(entry);
                self.bytes += element.length();
                if self.page.is_none() && self.bytes > longest {
                    return Err(Failure::Owned(too_long(longest).into_bytes()));
                }
                self.gathered.push(element, most)?;
            }
            if last.is_some() {
                return Ok(Some(last));
            }
            if context.turn.spend(1) {
                return Ok(None);
            }
        }
        Ok(Some(None))
    }

    fn write_header(&self, context: &mut Context<'_>, last: Option<Key>) {
        if let Some(page) = &self.page {
            let next = last.map_or(0, |after| {
                context.server.store.cursors().suspend(Position {
                    database: page.database,
                    after,
                })
            });
            context.reply.array(2);
            context.reply.bulk(next.to_string().as_bytes());
        }
        let width = E::width(context.reply.protocol);
        context.reply.array(self.gathered.count * width);
    }
}

fn too_much_written(most: usize) -> Failure {
    let text = format!(
        "ERR more than {most} keys were written while the range was read, the limit of a snapshot \
         (--max-snapshot); {WAY_OUT}"
    );
    Failure::Owned(text.into_bytes())
}

fn exploded(key: &[u8]) -> Failure {
    let text = format!(
        "ERR the pattern takes more than {STEPS_PER_BYTE} steps a byte, the limit of a match, on a \
         key of {} bytes",
        key.len()
    );
    Failure::Owned(text.into_bytes())
}

impl<E: Element> Work for Listing<E> {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        if !self.is_written {
            let Some(last) = self.gather(context, arguments)? else {
                return Ok(Step::Rest);
            };
            // All of them have been gathered.
            match &mut self.source {
                Source::Copies { copies: all, .. } | Source::Past { entries: all, .. } => {
                    *all = Vec::new().into_iter();
                }
                Source::Snapshot { walk, held, .. } => {
                    walk.end();
                    let (copied, copies) = walk.copies();
                    held.goes_on(copied, copies);
                }
                Source::Walk { .. } => {}
            }
            self.write_header(context, last);
            self.is_written = true;
        }
        while let Some(element) = self.gathered.pop() {
            element.write(context);
            if context.turn.spend(1) || context.reply.len() >= REPLY_BATCH {
                context.reply.stream();
                return Ok(Step::Rest);
            }
        }
        Ok(Step::Done)
    }
}
