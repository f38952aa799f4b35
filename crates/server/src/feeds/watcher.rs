//! One client's watches, and their reading of the log as long as they are behind its tail.

use super::{Feeds, Name, Refused, frames};
use crate::limits::FeedLimits;
use crate::lock::lock;
use crate::outbox::{Messages, Outbox, Piece};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tremula_store::{Event, Follower, Following, Happened, Previous, Sequence, Since, WatchError};

/// Bytes of the log that a watcher reads before it looks whether more may wait for its client.
const AT_ONCE: usize = if cfg!(test) { 1 << 10 } else { 64 << 10 };

/// Steps of a client's watchers on the thread apart, before others have it: a few milliseconds.
const STEPS: usize = 16;

/// One client's watch of one range.
pub(super) struct Watcher {
    pub(super) name: Arc<Name>,
    pub(super) group: Arc<Group>,
    pub(super) place: Mutex<Place>,
}

/// Where a watcher gets its events from.
pub(super) enum Place {
    /// From the log, which its connection reads for it. Without its follower while that runs.
    Reads(Option<Follower>),
    /// From the tail. The follower rests.
    Tail(Option<Follower>),
    /// It gets none any more.
    Ended,
}

impl Watcher {
    pub(super) fn new(name: Name, follower: Follower, group: &Arc<Group>) -> Self {
        Self {
            name: Arc::new(name),
            group: Arc::clone(group),
            place: Mutex::new(Place::Reads(Some(follower))),
        }
    }

    /// Its follower, if it reads for itself: to be put back, unless its place is another one then.
    fn take_follower(&self) -> Option<Follower> {
        match &mut *lock(&self.place) {
            Place::Reads(follower) => follower.take(),
            Place::Tail(_) | Place::Ended => None,
        }
    }
}

/// The watches of one client, as others see them.
pub(super) struct Group {
    pub(super) outbox: Arc<Outbox>,
    /// Only the client's own connection changes these.
    pub(super) watchers: Mutex<Vec<Arc<Watcher>>>,
    /// How many of them read for themselves.
    pub(super) reading: AtomicUsize,
}

impl Group {
    pub(super) fn new(outbox: Arc<Outbox>) -> Self {
        Self {
            outbox,
            watchers: Mutex::default(),
            reading: AtomicUsize::new(0),
        }
    }

    /// The number of the client.
    pub(super) fn id(&self) -> u64 {
        self.outbox.client().id
    }
}

/// The watches of one client. They end when this is dropped.
pub(crate) struct Watches {
    feeds: Arc<Feeds>,
    pub(super) group: Arc<Group>,
}

/// What `WATCHES` shows of a watch.
pub(crate) struct Seen {
    pub(crate) name: Arc<Name>,
    /// The sequence with which another watch would go on.
    pub(crate) next: Sequence,
    /// Where its events come from.
    pub(crate) from: &'static str,
}

/// The reading that a client's watches have to do, for the thread apart.
pub(crate) struct Read {
    feeds: Arc<Feeds>,
    group: Arc<Group>,
}

impl Watches {
    pub(super) const fn new(feeds: Arc<Feeds>, group: Arc<Group>) -> Self {
        Self { feeds, group }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        lock(&self.group.watchers).len()
    }

    /// Begins to watch a range. Returns the first sequence that the watch may show.
    ///
    /// # Errors
    ///
    /// [`Refused`]. Nothing has changed.
    pub(crate) fn begin(
        &self,
        name: Name,
        since: Since,
        limits: &FeedLimits,
    ) -> Result<Sequence, Refused> {
        let mut watchers = lock(&self.group.watchers);
        if watchers
            .iter()
            .any(|other| other.name.start == name.start && other.name.end == name.end)
        {
            return Err(Refused::Twice);
        }
        let most = limits.max_client_watches;
        if watchers.len() >= most {
            return Err(Refused::Client(most));
        }
        self.feeds.take_place(&name, limits)?;
        let begun = self.feeds.begin(name.clone(), since, &self.group);
        let watcher = begun.inspect_err(|_| self.feeds.give_place_back(&name))?;
        watchers.push(Arc::clone(&watcher));
        self.group.outbox.client().set_watches(watchers.len());
        drop(watchers);
        let first = lock(&watcher.place).next().unwrap_or_default();
        // Without a snapshot and an earlier sequence it need not read at all.
        self.feeds.try_join(&watcher);
        Ok(first)
    }

    /// Ends the watch with these bounds, or all of them. Returns how many there were.
    pub(crate) fn end(&self, bounds: Option<(&[u8], &[u8])>) -> usize {
        let mut watchers = lock(&self.group.watchers);
        let is_meant = |watcher: &Arc<Watcher>| {
            let name = &watcher.name;
            bounds.is_none_or(|(start, end)| *name.start == *start && *name.end == *end)
        };
        let ended: Vec<_> = watchers
            .extract_if(.., |watcher| is_meant(watcher))
            .collect();
        self.group.outbox.client().set_watches(watchers.len());
        drop(watchers);
        for watcher in &ended {
            self.feeds.leave(watcher);
            self.feeds.give_place_back(&watcher.name);
        }
        ended.len()
    }

    /// All of them, and how far each has come: what is before that is in the outbox already.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let watchers = lock(&self.group.watchers).clone();
        let seen = watchers.iter().filter_map(|watcher| {
            let name = Arc::clone(&watcher.name);
            if let Some(next) = self.feeds.next_of(watcher) {
                let from = "tail";
                return Some(Seen { name, next, from });
            }
            let place = lock(&watcher.place);
            let Place::Reads(Some(follower)) = &*place else {
                return None;
            };
            let (next, from) = match follower.is_complete() {
                true => (follower.next_sequence(), "log"),
                false => (follower.next_sequence(), "snapshot"),
            };
            Some(Seen { name, next, from })
        });
        seen.collect()
    }

    /// What is to be read, if something is.
    pub(crate) fn to_read(&self) -> Option<Read> {
        let is_behind = self.group.reading.load(Relaxed) > 0;
        is_behind.then(|| Read {
            feeds: Arc::clone(&self.feeds),
            group: Arc::clone(&self.group),
        })
    }

    /// Forgets the watches that have ended by themselves.
    pub(crate) fn forget_ended(&self) {
        let mut watchers = lock(&self.group.watchers);
        watchers.retain(|watcher| {
            let is_over = matches!(*lock(&watcher.place), Place::Ended);
            if is_over {
                self.feeds.give_place_back(&watcher.name);
            }
            !is_over
        });
        self.group.outbox.client().set_watches(watchers.len());
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.end(None);
        lock(&self.feeds.groups).remove(&self.group.id());
    }
}

impl Place {
    /// What it reads next, if it reads for itself.
    fn next(&self) -> Option<Sequence> {
        match self {
            Self::Reads(Some(follower)) => Some(follower.next_sequence()),
            _ => None,
        }
    }
}

impl Read {
    /// Reads for all watches of the client that are behind, until enough waits for it, or for as
    /// long as others can wait. Returns the record to wait for, if nothing can be read before that
    /// is durable.
    pub(crate) fn run(&self) -> Option<Sequence> {
        let (feeds, outbox) = (&self.feeds, &self.group.outbox);
        let watchers = lock(&self.group.watchers).clone();
        let (mut wait, mut has_read) = (None::<Sequence>, false);
        for watcher in &watchers {
            for _ in 0..STEPS {
                if outbox.bytes() >= feeds.buffer {
                    return None;
                }
                match feeds.read_for(watcher) {
                    Reading::Goes => has_read = true,
                    Reading::Waits(sequence) => {
                        wait = Some(wait.map_or(sequence, |wait| wait.min(sequence)));
                        break;
                    }
                    Reading::Over => break,
                }
            }
        }
        wait.filter(|_| !has_read)
    }
}

/// How a watcher's reading goes on.
pub(super) enum Reading {
    Goes,
    /// When this record is durable.
    Waits(Sequence),
    /// It does not read for itself.
    Over,
}

/// A watcher's follower, which has read something.
pub(super) struct HasRead {
    pub(super) follower: Follower,
    following: Result<Following, WatchError>,
}

impl Feeds {
    /// One step of a watcher that reads for itself.
    fn read_for(self: &Arc<Self>, watcher: &Arc<Watcher>) -> Reading {
        match self.read(watcher) {
            Some(read) => self.go_on(watcher, read),
            None => Reading::Over,
        }
    }

    /// Reads for a watcher that reads for itself, and gives it what that has brought.
    pub(super) fn read(&self, watcher: &Arc<Watcher>) -> Option<HasRead> {
        let mut follower = watcher.take_follower()?;
        let head = frames::head(&watcher.name.start, &watcher.name.end);
        let has_previous = watcher.name.has_previous;
        let (mut messages, mut count, mut lacks) = (Messages::default(), 0, None);
        let mut following = follower.step(&self.store, AT_ONCE, &mut |event| {
            if has_previous && lacks_previous(&event) {
                lacks.get_or_insert(event.sequence);
            }
            if lacks.is_none() {
                frames::write(&head, &event, has_previous, &mut messages);
                count += 1;
            }
        });
        if let Some(sequence) = lacks {
            follower.go_to(sequence);
            following = Err(WatchError::NoPrevious { sequence });
        }
        if count > 0 {
            self.events.fetch_add(count, Relaxed);
            let piece = Piece::Messages(Arc::new(messages));
            watcher.group.outbox.offer(piece, usize::MAX);
        }
        Some(HasRead {
            follower,
            following,
        })
    }

    /// Lets a watcher be given what comes next, if it has come to the end of the log; else it reads
    /// on. More may have become durable since it has read.
    pub(super) fn go_on(self: &Arc<Self>, watcher: &Arc<Watcher>, read: HasRead) -> Reading {
        let HasRead {
            follower,
            following,
        } = read;
        let next = follower.next_sequence();
        let reading = match following {
            Ok(Following::More) => Ok(Reading::Goes),
            Ok(Following::Wait(sequence)) => Ok(Reading::Waits(sequence)),
            Err(error) => Err(error),
        };
        let is_at_the_end = matches!(reading, Ok(Reading::Waits(_))) && follower.is_complete();
        let joined = match is_at_the_end {
            true => self.join(watcher, follower).map_err(WatchError::from),
            false => Ok(Some(follower)),
        };
        match (reading, joined) {
            (Err(error), _) | (_, Err(error)) => {
                self.lose(watcher, next, &error);
                Reading::Over
            }
            (Ok(_), Ok(None)) => Reading::Over,
            (Ok(reading), Ok(Some(follower))) => {
                // What has become durable since ends the wait at once.
                *lock(&watcher.place) = Place::Reads(Some(follower));
                reading
            }
        }
    }

    /// Lets a watcher that may have nothing to read be given what comes next.
    fn try_join(self: &Arc<Self>, watcher: &Arc<Watcher>) {
        let Some(follower) = watcher.take_follower() else {
            return;
        };
        let next = follower.next_sequence();
        let joined = match follower.is_complete() {
            true => self.join(watcher, follower),
            false => Ok(Some(follower)),
        };
        match joined {
            Ok(None) => (),
            Ok(Some(follower)) => *lock(&watcher.place) = Place::Reads(Some(follower)),
            Err(stopped) => self.lose(watcher, next, &stopped.into()),
        }
    }

    /// Ends a watch that cannot go on, with a message.
    fn lose(&self, watcher: &Arc<Watcher>, next: Sequence, error: &WatchError) {
        let name = &watcher.name;
        let head = frames::head(&name.start, &name.end);
        let mut messages = Messages::default();
        frames::write_end(&head, next.get(), &text(error), &mut messages);
        let piece = Piece::Messages(Arc::new(messages));
        watcher.group.outbox.offer(piece, usize::MAX);
        self.lost.fetch_add(1, Relaxed);
        tracing::debug!(
            "{}: a watch has ended: {error}",
            watcher.group.outbox.client().who()
        );
        *lock(&watcher.place) = Place::Ended;
        self.note_behind(watcher, false);
    }
}

/// Whether an event is a change, and was logged without what was before.
fn lacks_previous(event: &Event<'_>) -> bool {
    let is_change = !matches!(event.what, Happened::Row { .. } | Happened::Complete);
    is_change && event.previous == Previous::Unknown
}

/// An error as clients get it: the first word says whether another snapshot helps.
pub(crate) fn text(error: &WatchError) -> String {
    match error {
        WatchError::Gone { .. } | WatchError::Beyond { .. } => format!("NOSEQUENCE {error}"),
        WatchError::NoPrevious { .. } => {
            format!("ERR {error}, which was written without --log-previous")
        }
        other => format!("ERR {other}"),
    }
}
