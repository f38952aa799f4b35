//! Events that the server sends: a second after the other.
//!
//! A stream keeps no queue. It waits for the next second, and takes what it has not sent out of
//! what the observer holds; so a page that reads slowly costs nothing, and one that comes again
//! with `Last-Event-ID` gets what it has missed.

use super::Shared;
use super::query::Query;
use crate::map::{Bounds, Column};
use crate::observed::{Refusal, Section};
use crate::observer::lock;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Seconds that one look takes from what is held, so that a page that was away for long does not
/// hold an hour twice.
const AT_ONCE: usize = 60;

/// The state of a stream.
struct Events {
    shared: Arc<Shared>,
    newest: watch::Receiver<u64>,
    /// What the visitor has shown.
    token: Option<String>,
    /// The map whose columns are sent too.
    map: Option<String>,
    /// The last second that was sent.
    sent: u64,
    /// The bounds of the last column that was sent.
    bounds: Option<Arc<Bounds>>,
    waiting: VecDeque<Event>,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = Query::of(&uri, &["map", "token"])?;
    // The objects of browsers that receive events cannot set headers.
    let header = headers.get("tremula-token");
    let token = header.and_then(|token| token.to_str().ok());
    let token = token.or(query.text("token"));
    let map = query.text("map");
    may_see(&shared, token, map)?;
    let last = last_event(&headers)?;
    let place = Arc::clone(&shared.streams)
        .try_acquire_owned()
        .map_err(|_| {
            let most = super::MOST_STREAMS;
            Refusal::TooOften(format!("{most} pages get events already; close one"))
        })?;
    let newest = shared.seen.newest();
    let sent = last.unwrap_or(*newest.borrow());
    let events = Events {
        token: token.map(str::to_owned),
        map: map.map(str::to_owned),
        newest,
        sent,
        shared,
        bounds: None,
        waiting: VecDeque::new(),
        _place: place,
    };
    let stream = Sse::new(stream(events)).keep_alive(KeepAlive::default());
    Ok(stream.into_response())
}

/// Whether a visitor may see the figures, and the map if one is named.
fn may_see(shared: &Shared, token: Option<&str>, map: Option<&str>) -> Result<(), Refusal> {
    let visitor = shared.visitor(token)?;
    let program = shared.program()?;
    program.allows(&visitor, Section::Figures)?;
    if let Some(map) = map {
        program.allows(&visitor, program.section_of(map))?;
    }
    Ok(())
}

/// The second behind which a page goes on.
fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let text = super::guard::short(text);
        Refusal::Wrong(format!(
            "the header Last-Event-ID is '{text}', which is no number"
        ))
    })
}

fn stream(events: Events) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(events, |mut events| async move {
        loop {
            if let Some(event) = events.waiting.pop_front() {
                return Some((Ok(event), events));
            }
            // A user may be gone by now, or have lost a right, or the page needs a login.
            let (token, map) = (events.token.as_deref(), events.map.as_deref());
            if may_see(&events.shared, token, map).is_err() {
                return None;
            }
            events.look();
            if events.waiting.is_empty() && events.newest.changed().await.is_err() {
                return None;
            }
        }
    })
}

impl Events {
    /// Takes what is held and not sent.
    fn look(&mut self) {
        let newest = *self.newest.borrow_and_update();
        if newest < self.sent {
            // The server has started anew, and counts from one.
            self.sent = 0;
        }
        let mut seconds = self.shared.seen.history().behind(self.sent);
        seconds.truncate(AT_ONCE);
        let Some(last) = seconds.last().map(|second| second.seq) else {
            return;
        };
        let mut columns: VecDeque<Column> = VecDeque::new();
        if let Some(picture) = self
            .map
            .as_ref()
            .and_then(|id| self.shared.seen.picture(id))
        {
            let picture = lock(&picture);
            let series = &picture.recorder.fine;
            series.visit((0, u64::MAX), Some(self.sent), |column| {
                if column.seq <= last {
                    columns.push_back(column.clone());
                }
            });
        }
        for second in seconds {
            let event = Event::default().id(second.seq.to_string()).event("second");
            let data = serde_json::to_string(&*second).unwrap_or_default();
            self.waiting.push_back(event.data(data));
            while columns
                .front()
                .is_some_and(|column| column.seq <= second.seq)
            {
                if let Some(column) = columns.pop_front() {
                    self.column(&column);
                }
            }
        }
        self.sent = last;
    }

    fn column(&mut self, column: &Column) {
        let before = self.bounds.as_ref();
        let is_new = before.is_none_or(|before| !Arc::ptr_eq(before, &column.bounds));
        self.bounds = Some(Arc::clone(&column.bounds));
        let data = serde_json::to_string(&column.shown(is_new)).unwrap_or_default();
        let event = Event::default().id(column.seq.to_string()).event("map");
        self.waiting.push_back(event.data(data));
    }
}
