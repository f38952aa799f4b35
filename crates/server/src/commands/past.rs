//! `RANGE … AS OF`: a range as it was.
//!
//! It is put together from a snapshot and the log on the thread apart, in slices: others have that
//! thread in between. The rows count as the client's until the reply is written.

use super::listing::{Element, Listing, Share, Source};
use super::ordered::Wanted;
use super::{Context, Failure, Outcome, Step, View, Work, begin};
use crate::apart::{Job, job};
use crate::moment::Moment;
use crate::resp::Arguments;
use crate::server::Shared;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tremula_store::{Direction, Key, Past, PastError, PastRange, PastReader, Point, Span, Value};

/// How long a slice has the thread apart.
const SLICE: Duration = Duration::from_millis(4);

/// Bytes that are read between two looks at the clock.
const AT_ONCE: usize = 256 << 10;

const IN_TRANSACTION: Failure = Failure::Text(
    "ERR RANGE with AS OF is not allowed inside a transaction: others would wait for the disk",
);
const NO_LOG: Failure = Failure::Text(
    "ERR nothing is known of the past, because there is no log; start without --memory-only, or \
     with --watch-ring BYTES",
);

/// The state that an argument names.
pub(super) fn point(argument: &[u8]) -> Result<Point, Failure> {
    let text = String::from_utf8_lossy(argument);
    let moment = text.parse::<Moment>();
    let moment = moment.map_err(|error| Failure::Owned(format!("ERR AS OF: {error}").into()))?;
    Ok(moment.0)
}

/// Answers with a range as it was.
pub(super) fn range(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    range: Wanted,
    point: Point,
    with_values: bool,
) -> Outcome {
    if context.databases.are_held() {
        return Err(IN_TRANSACTION);
    }
    match with_values {
        true => begin(
            context,
            arguments,
            Reading::<(Key, Value)>::new(range, point),
        ),
        false => begin(context, arguments, Reading::<Key>::new(range, point)),
    }
}

/// What a slice has come to.
enum Slice {
    More(Box<PastReader>),
    /// The range, and what its rows hold.
    Done(PastRange, usize),
}

type Sliced = Result<Slice, PastError>;

/// A range that is read as it was.
struct Reading<E> {
    range: Wanted,
    point: Point,
    state: State<E>,
}

enum State<E> {
    Begins,
    Reads(Share, Receiver<Sliced>),
    Lists(Box<Listing<E>>),
}

impl<E: Element> Reading<E> {
    const fn new(range: Wanted, point: Point) -> Self {
        Self {
            range,
            point,
            state: State::Begins,
        }
    }

    fn begin(&self, context: &Context<'_>) -> Result<PastReader, Failure> {
        let (low, high) = (self.range.low.as_ref(), self.range.high.as_ref());
        let span = Span::new(low.map(Key::as_bytes), high.map(Key::as_bytes));
        let limits = &context.server.limits.turn;
        let mut past = Past::new(context.session.database, span, self.point)
            .limits(limits.max_past.0 as u64, limits.max_gathered.0);
        if let Some(persistence) = &context.server.persistence {
            past = past.snapshots(persistence.folder());
        }
        if let Some(view) = View::of(context) {
            past = past.filter(move |key| view.shows_bytes(key));
        }
        let reader = context.server.store.past_reader(past);
        reader.map_err(refusal)
    }

    /// The list of what was there.
    fn list(&self, context: &Context<'_>, share: Share, range: PastRange) -> Listing<E> {
        context.server.stats.past_ranges.fetch_add(1, Relaxed);
        let mut entries = range.entries;
        if self.range.direction == Direction::Descending {
            entries.reverse();
        }
        entries.truncate(self.range.limit);
        let source = Source::Past {
            entries: entries.into_iter(),
            _share: share,
        };
        Listing::new(context, source, None, None)
    }
}

/// The next slice of reading.
fn slice(mut reader: Box<PastReader>) -> (Job, Receiver<Sliced>) {
    job(move |server: &Shared| {
        let begun = Instant::now();
        while begun.elapsed() < SLICE {
            if reader.step(&server.store, AT_ONCE)? {
                let held = reader.held();
                return Ok(Slice::Done(reader.finish(), held));
            }
        }
        Ok(Slice::More(reader))
    })
}

impl<E: Element> Work for Reading<E> {
    fn step(
        &mut self,
        context: &mut Context<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Step, Failure> {
        match std::mem::replace(&mut self.state, State::Begins) {
            State::Begins => {
                let share = Share::new(context)?;
                let (job, sliced) = slice(Box::new(self.begin(context)?));
                self.state = State::Reads(share, sliced);
                Ok(Step::Apart(job))
            }
            State::Reads(mut share, sliced) => {
                let sliced = sliced.try_recv().map_err(|_| Failure::STOPPING)?;
                let most = context.server.limits.turn.max_gathered.0;
                match sliced.map_err(refusal)? {
                    Slice::More(reader) => {
                        share
                            .set(reader.held(), most)
                            .map_err(|_| too_large(most))?;
                        let (job, sliced) = slice(reader);
                        self.state = State::Reads(share, sliced);
                        Ok(Step::Apart(job))
                    }
                    Slice::Done(range, held) => {
                        share.set(held, most).map_err(|_| too_large(most))?;
                        let listing = self.list(context, share, range);
                        self.state = State::Lists(Box::new(listing));
                        self.step(context, arguments)
                    }
                }
            }
            State::Lists(mut listing) => {
                let step = listing.step(context, arguments);
                self.state = State::Lists(listing);
                step
            }
        }
    }
}

fn too_large(most: usize) -> Failure {
    let text = format!(
        "OOM the range as it was, and the long replies of other clients, hold more than {most} \
         bytes (--max-gathered); ask for a smaller range"
    );
    Failure::Owned(text.into_bytes())
}

fn refusal(error: PastError) -> Failure {
    let text = match error {
        PastError::NoLog => return NO_LOG,
        PastError::TooLarge { most } => return too_large(most),
        PastError::Gone { .. } | PastError::Beyond { .. } => format!("NOSEQUENCE {error}"),
        PastError::TooFar { .. } => format!("ERR {error} (--max-past)"),
        other => format!("ERR {other}"),
    };
    Failure::Owned(text.into_bytes())
}
