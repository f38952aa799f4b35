//! The addresses of the page.

use super::guard::{self, short};
use super::query::Query;
use super::{MOST_BODY, PATIENCE, Shared, events};
use crate::assets::{self, Asset};
use crate::map::hex;
use crate::observed::{Access, Observed, ObservedMap, Refusal, Section, Visitor};
use crate::observer::{MOST_MAPS, leaves, lock};
use crate::open_metrics::{self, Metrics};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The header of a token.
const TOKEN: &str = "tremula-token";

/// Leaves that a tree shows.
const MOST_NODES: usize = 10_000;

/// Keys that a list shows, at most and if nothing is said.
const MOST_KEYS: usize = 1000;
const USUAL_KEYS: usize = 50;

/// Words of a command.
const MOST_WORDS: usize = 1024;

/// An answer, or the reason for having no answer.
type Answered = Result<Response, Refusal>;

/// The service of one connection.
pub(super) fn router(shared: Arc<Shared>, peer: IpAddr) -> Router {
    let guarded = Arc::clone(&shared);
    let check = move |request: Request, next: Next| {
        let shared = Arc::clone(&guarded);
        async move { check(&shared, peer, request, next).await }
    };
    Router::new()
        .route("/", get(index))
        .route("/assets/{file}", get(asset))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/api/overview", get(overview))
        .route("/api/history", get(history))
        .route("/api/events", get(events::events))
        .route("/api/maps", get(maps))
        .route("/api/map/{id}", get(map))
        .route("/api/map/{id}/keys", get(keys))
        .route("/api/map/{id}/tree", get(tree))
        .route("/api/slowlog", get(slow_log))
        .route("/api/clients", get(clients))
        .route("/api/mailboxes", get(mailboxes))
        .route("/api/shards", get(shards))
        .route("/api/commands", get(commands))
        .route("/api/command", post(command))
        .route("/api/login", post(login))
        .fallback(missing)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn(check))
        .with_state(shared)
}

/// Checks a request, and lets every answer say what browsers must know.
async fn check(shared: &Shared, peer: IpAddr, request: Request, next: Next) -> Response {
    let checked = guard::check(
        (shared.address, peer),
        request.method(),
        request.uri().path(),
        request.headers(),
    );
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in guard::HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::Wrong(text) => (StatusCode::BAD_REQUEST, text),
            Self::Unproved(text) => (StatusCode::UNAUTHORIZED, text),
            Self::Forbidden(text) => (StatusCode::FORBIDDEN, text),
            Self::Missing(text) => (StatusCode::NOT_FOUND, text),
            Self::TooLarge(text) => (StatusCode::PAYLOAD_TOO_LARGE, text),
            Self::TooOften(text) => (StatusCode::TOO_MANY_REQUESTS, text),
            Self::Unavailable(text) => (StatusCode::SERVICE_UNAVAILABLE, text),
        };
        let body = serde_json::json!({ "error": text }).to_string();
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (status, kind, body).into_response()
    }
}

/// An answer in JSON.
pub(super) fn json(value: &impl Serialize) -> Answered {
    let body = serde_json::to_vec(value)
        .map_err(|error| Refusal::Unavailable(format!("the answer cannot be written: {error}")))?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, body).into_response())
}

impl Shared {
    /// The program, once it has started.
    pub(super) fn program(&self) -> Result<Arc<dyn Observed>, Refusal> {
        let starting = || Refusal::Unavailable("the program is starting".to_owned());
        self.observed.get().cloned().ok_or_else(starting)
    }

    /// Whose request this is. Behind a login everything needs one.
    pub(super) fn visitor(&self, token: Option<&str>) -> Result<Visitor, Refusal> {
        let visitor = self.gate.visitor(token)?;
        let program = self.program()?;
        if visitor == Visitor::Reader && program.overview().writes == Access::Login {
            return Err(Refusal::Unproved(
                "the page's user has a password: log in, or give the token that is printed at the start".to_owned(),
            ));
        }
        Ok(visitor)
    }

    /// The program, if the visitor may see this.
    fn for_reader(
        &self,
        headers: &HeaderMap,
        section: Section,
    ) -> Result<Arc<dyn Observed>, Refusal> {
        let visitor = self.visitor(token(headers))?;
        let program = self.program()?;
        program.allows(&visitor, section)?;
        Ok(program)
    }

    /// The program, if the visitor may see the map with this id.
    fn for_reader_of(&self, headers: &HeaderMap, map: &str) -> Result<Arc<dyn Observed>, Refusal> {
        let section = self.program()?.section_of(map);
        self.for_reader(headers, section)
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    headers.get(TOKEN)?.to_str().ok()
}

/// Runs what may take long on another thread.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        Err(Refusal::Unavailable(
            "the program has failed there".to_owned(),
        ))
    })
}

async fn index() -> Answered {
    file(assets::INDEX, "no-cache")
}

async fn asset(Path(name): Path<String>) -> Answered {
    file(&name, "no-cache")
}

fn file(name: &str, cache: &'static str) -> Answered {
    let missing = || Refusal::Missing(format!("there is no file '{}'", short(name)));
    let Asset {
        media_type, bytes, ..
    } = assets::find(name).ok_or_else(missing)?;
    let headers = [
        (header::CONTENT_TYPE, *media_type),
        (header::CACHE_CONTROL, cache),
    ];
    Ok((headers, *bytes).into_response())
}

async fn missing(uri: Uri) -> Answered {
    let path = short(uri.path());
    Err(Refusal::Missing(format!("there is nothing at '{path}'")))
}

async fn wrong_method(uri: Uri) -> Response {
    let text = format!("'{}' takes another method", short(uri.path()));
    let mut response = Refusal::Wrong(text).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Answered {
    let text = match shared.observed.get().cloned() {
        None => Metrics::new("tremula").finish(),
        Some(program) => {
            apart(move || {
                let mut metrics = Metrics::new("tremula");
                program.metrics(&mut metrics);
                Ok(metrics.finish())
            })
            .await?
        }
    };
    let kind = [(header::CONTENT_TYPE, open_metrics::MEDIA_TYPE)];
    Ok((kind, text).into_response())
}

async fn health(State(shared): State<Arc<Shared>>) -> Answered {
    let state = match shared.observed.get() {
        None => "starting",
        Some(program) => {
            program.health().map_err(Refusal::Unavailable)?;
            "healthy"
        }
    };
    json(&serde_json::json!({ "status": state }))
}

async fn ready(State(shared): State<Arc<Shared>>) -> Answered {
    let program = shared.program()?;
    let state = program.ready().map_err(Refusal::Unavailable)?;
    json(&serde_json::json!({ "status": state }))
}

async fn overview(State(shared): State<Arc<Shared>>) -> Answered {
    // Also for a visitor that has to log in: it says so.
    json(&shared.program()?.overview())
}

#[derive(Serialize)]
struct Seconds<'a> {
    seconds: Vec<&'a crate::observed::Second>,
}

async fn history(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    shared.for_reader(&headers, Section::Figures)?;
    let all = shared.seen.history().behind(0);
    let seconds = all.iter().map(|second| &**second).collect();
    json(&Seconds { seconds })
}

async fn maps(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let program = shared.for_reader(&headers, Section::Figures)?;
    let maps = apart(move || {
        let mut maps: Vec<_> = program.maps().iter().map(|map| map.info()).collect();
        let unwalked = maps.iter_mut().filter(|info| info.walked).skip(MOST_MAPS);
        for info in unwalked {
            info.walked = false;
            info.reason = Some(format!("only the first {MOST_MAPS} maps are recorded"));
        }
        Ok(maps)
    });
    json(&serde_json::json!({ "maps": maps.await? }))
}

/// The map with an id.
fn map_of(program: &dyn Observed, id: &str) -> Result<Arc<dyn ObservedMap>, Refusal> {
    let maps = program.maps();
    let found = maps.into_iter().find(|map| map.info().id == id);
    found.ok_or_else(|| Refusal::Missing(format!("there is no map '{}'", short(id))))
}

async fn map(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Answered {
    let program = shared.for_reader_of(&headers, &id)?;
    let query = Query::of(&uri, &["from", "to", "width"])?;
    let (from, to) = (query.number("from", 0)?, query.number("to", u64::MAX)?);
    let width = query.number("width", 1000)?;
    if ![1000, 10_000].contains(&width) {
        return Err(Refusal::Wrong(format!(
            "width is {width}; it is 1000 or 10000"
        )));
    }
    let body = apart(move || {
        let Some(picture) = shared.seen.picture(&id) else {
            let info = map_of(&*program, &id)?.info();
            let why = info
                .reason
                .unwrap_or_else(|| "nothing is recorded yet".to_owned());
            return Err(Refusal::Missing(format!(
                "the map '{id}' has no picture: {why}"
            )));
        };
        // Written while the map is locked: decoded columns would be a hundred times as large.
        let mut body = format!(
            "{{\"id\":{},\"width_ms\":{width},\"columns\":[",
            quoted(&id)
        );
        let picture = lock(&picture);
        let series = match width {
            1000 => &picture.recorder.fine,
            _ => &picture.recorder.coarse,
        };
        let mut before = None;
        series.visit((from, to), None, |column| {
            let is_new = before
                .as_ref()
                .is_none_or(|before| !Arc::ptr_eq(before, &column.bounds));
            if before.is_some() {
                body.push(',');
            }
            before = Some(Arc::clone(&column.bounds));
            body.push_str(&serde_json::to_string(&column.shown(is_new)).unwrap_or_default());
        });
        body.push_str("]}");
        Ok(body)
    });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, body.await?).into_response())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

async fn keys(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Answered {
    let program = shared.for_reader_of(&headers, &id)?;
    let query = Query::of(&uri, &["from", "to", "limit"])?;
    let from = query.key("from")?.unwrap_or_default();
    let to = query.key("to")?;
    let limit = query.number("limit", USUAL_KEYS as u64)?;
    if limit == 0 || limit > MOST_KEYS as u64 {
        return Err(Refusal::Wrong(format!(
            "limit is {limit}; it is 1 to {MOST_KEYS}"
        )));
    }
    let keys = apart(move || {
        let map = map_of(&*program, &id)?;
        map.keys(&from, to.as_deref(), limit as usize)
            .map_err(Refusal::Wrong)
    });
    json(&keys.await?)
}

#[derive(Serialize)]
struct Node {
    low: String,
    raw: String,
    entries: u64,
    waits: u64,
    acquisitions: u64,
    bytes: u64,
    format: &'static str,
}

#[derive(Serialize)]
struct Tree {
    depth: u64,
    nodes: Vec<Node>,
    cut: bool,
}

async fn tree(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answered {
    let program = shared.for_reader_of(&headers, &id)?;
    let tree = apart(move || {
        let map = map_of(&*program, &id)?;
        let info = map.info();
        let all = leaves(&*map).ok_or_else(|| {
            let why = info
                .reason
                .unwrap_or_else(|| "its engine has no walk".to_owned());
            Refusal::Missing(format!("the map '{id}' has no tree to show: {why}"))
        })?;
        let size = map.bytes_at(&[]).unwrap_or(0);
        let node = |leaf: &crate::map::OwnedLeaf| Node {
            low: if leaf.low.is_empty() {
                String::new()
            } else {
                map.text(&leaf.low)
            },
            raw: hex(&leaf.low),
            entries: leaf.entries.unwrap_or(0),
            waits: leaf.waits.into(),
            acquisitions: leaf.acquisitions.into(),
            bytes: leaf.entries.unwrap_or(0).saturating_mul(size),
            format: leaf.format,
        };
        Ok(Tree {
            depth: depth(all.len()),
            nodes: all.iter().take(MOST_NODES).map(node).collect(),
            cut: all.len() > MOST_NODES,
        })
    });
    json(&tree.await?)
}

/// The levels of a tree that halves with each.
fn depth(leaves: usize) -> u64 {
    u64::from(leaves.max(1).next_power_of_two().ilog2()) + 1
}

async fn slow_log(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let program = shared.for_reader(&headers, Section::SlowLog)?;
    json(&serde_json::json!({ "entries": program.slow_log() }))
}

async fn clients(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let program = shared.for_reader(&headers, Section::Clients)?;
    json(&serde_json::json!({ "clients": program.clients() }))
}

async fn mailboxes(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let program = shared.for_reader(&headers, Section::Mailboxes)?;
    json(&serde_json::json!({ "mailboxes": program.mailboxes() }))
}

async fn shards(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let program = shared.for_reader(&headers, Section::Figures)?;
    json(&serde_json::json!({ "shards": program.shards() }))
}

async fn commands(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let program = shared.for_reader(&headers, Section::Figures)?;
    json(&serde_json::json!({ "commands": program.commands() }))
}

/// What is sent for a command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandBody {
    pub(super) args: Vec<String>,
}

/// What is sent to log in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoginBody {
    pub(super) user: String,
    pub(super) password: String,
}

async fn command(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Body) -> Answered {
    let visitor = shared.visitor(token(&headers))?;
    let program = shared.program()?;
    let words = words(&whole(body).await?)?;
    let reply = program.run(&visitor, words).await?;
    json(&serde_json::json!({ "reply": reply }))
}

/// The words of a command out of a body.
pub(super) fn words(body: &[u8]) -> Result<Vec<String>, Refusal> {
    let CommandBody { args } = serde_json::from_slice(body).map_err(|error| {
        Refusal::Wrong(format!("the body is no {{\"args\":[text, ...]}}: {error}"))
    })?;
    if args.is_empty() || args.len() > MOST_WORDS {
        return Err(Refusal::Wrong(format!(
            "the command has {} words; it has 1 to {MOST_WORDS}",
            args.len()
        )));
    }
    Ok(args)
}

async fn login(State(shared): State<Arc<Shared>>, body: Body) -> Answered {
    let program = shared.program()?;
    let given = credentials(&whole(body).await?)?;
    shared.gate.try_again()?;
    // It counts before it is known, so that guesses at once are no more than one after another.
    shared.gate.failed();
    let outcome = program.log_in(&given.user, &given.password).await;
    if !matches!(outcome, Err(Refusal::Unproved(_))) {
        shared.gate.forgive();
    }
    let user = outcome?;
    let token = shared.gate.let_in(user.clone());
    json(&serde_json::json!({ "token": token, "user": user }))
}

/// A user and a password out of a body. The error does not quote it.
pub(super) fn credentials(body: &[u8]) -> Result<LoginBody, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Refusal::Wrong(format!(
            "the body is no {{\"user\":text,\"password\":text}}, at line {line}, column {column}"
        ))
    })
}

/// The whole body of a request.
async fn whole(body: Body) -> Result<Vec<u8>, Refusal> {
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, MOST_BODY)).await;
    let slow = || Refusal::Wrong(format!("the body takes more than {} s", PATIENCE.as_secs()));
    let bytes = read.map_err(|_| slow())?;
    let bytes = bytes.map_err(|_| {
        Refusal::TooLarge(format!(
            "the body is cut, or has more than {MOST_BODY} bytes"
        ))
    })?;
    Ok(bytes.into())
}
