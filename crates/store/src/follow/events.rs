//! Reading events out of the log.

use super::{Event, Happened, Previous, WatchError};
use crate::effects::record::{Record, Recorded};
use crate::store::Store;
use crate::{Expiry, Key};
use tremula_log::{Entry, Log, Reader, Sequence};
use tremula_sync::system::Arc;

/// What happens to all keys of a store, in the order of the log: made by [`Store::events`].
///
/// For a program that serves many watchers: it reads each part of the log once for all of them.
/// [`Watch`](super::Watch) is for one.
pub struct Events {
    log: Arc<dyn Log>,
    /// Opened when there is something to read.
    reader: Option<Box<dyn Reader>>,
    /// A batch that has been read in part.
    entry: Option<Entry>,
    next: Sequence,
    /// What was durable when nothing was found; nothing if something was.
    seen: Sequence,
}

impl Store {
    /// What happens to the keys of all databases, from a sequence on. That the log has it is seen
    /// when it is read.
    ///
    /// # Errors
    ///
    /// There is no log.
    pub fn events(&self, from: Sequence) -> Result<Events, WatchError> {
        let log = self.log().ok_or(WatchError::NoLog)?;
        Ok(Events {
            log: Arc::clone(log),
            reader: None,
            entry: None,
            next: from.max(Sequence::FIRST),
            seen: Sequence::NONE,
        })
    }
}

impl Events {
    /// The sequence of what is read next.
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// Goes on at a later or earlier sequence.
    pub(crate) fn go_to(&mut self, next: Sequence) {
        self.reader = None;
        self.entry = None;
        self.next = next;
        self.seen = Sequence::NONE;
    }

    /// For what record a caller waits when nothing was read.
    #[must_use]
    pub fn awaited(&self) -> Sequence {
        // A batch of which only the beginning was durable was not shown. What has become durable
        // since that look ends the wait at once.
        self.next.max(self.seen.plus(1))
    }

    /// Reads about `most` bytes of what is durable, no record behind `last`, and shows each event
    /// with the number of its database. Returns how many bytes it has read; none if there is
    /// nothing more now. The events of an atomic step are shown by one call, unless `last` or an
    /// extraordinary length separates them.
    ///
    /// A key that is set and whose time has come since is shown as removed, unless it is there
    /// again. O(records).
    ///
    /// # Errors
    ///
    /// The log does not have the record any more, or not yet, or cannot be read.
    pub fn read(
        &mut self,
        store: &Store,
        most: usize,
        last: Sequence,
        show: &mut dyn FnMut(usize, Event<'_>),
    ) -> Result<usize, WatchError> {
        let mut bytes = 0;
        while bytes < most && self.next <= last {
            let Some(entry) = self.load()? else { break };
            let first = entry.first().get();
            let skipped = self.next.get().saturating_sub(first);
            let skip = usize::try_from(skipped).unwrap_or(usize::MAX);
            for record in entry.records().skip(skip) {
                if self.next > last {
                    self.entry = Some(entry.clone());
                    break;
                }
                let sequence = self.next;
                bytes += record.len() + RECORD;
                let record = match Record::read(record) {
                    Ok(record) => record,
                    Err(source) => {
                        // It is there again when somebody asks again.
                        self.go_to(sequence);
                        return Err(WatchError::Record { sequence, source });
                    }
                };
                self.next = sequence.plus(1);
                if let Record::Database(database, recorded, before) = record {
                    let what = settled(store, database, recorded);
                    let event = Event::new(sequence, what);
                    show(database, event.after(Previous::from(before)));
                }
            }
        }
        Ok(bytes)
    }

    /// The batch that has the next record, if it is durable.
    fn load(&mut self) -> Result<Option<Entry>, WatchError> {
        if let Some(entry) = self.entry.take() {
            return Ok(Some(entry));
        }
        let durable = self.log.durable();
        let mut entry = None;
        if durable >= self.next {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => none.insert(self.log.read(self.next)?),
            };
            entry = reader.next().transpose()?;
        }
        self.seen = match entry {
            Some(_) => Sequence::NONE,
            None => durable,
        };
        Ok(entry)
    }
}

/// What a record counts as besides its bytes: what it takes to look at it.
const RECORD: usize = 32;

/// What a record is for those who see it now. A key whose time has come is not shown with its
/// value; unless it is there, because a later record has given it more time.
fn settled<'a>(store: &Store, database: usize, recorded: Recorded<'a>) -> Happened<'a> {
    if let Recorded::Put(key, _, Some(expiry)) = recorded
        && Expiry::is_over(expiry)
        && !store.database(database).contains_key(&Key::from(key))
    {
        return Happened::Remove { key: key.into() };
    }
    recorded.into()
}
