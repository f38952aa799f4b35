//! The threads that record.

use super::clock::{Clock, Meeting};
use super::dawdler::dawdle_from_now_on;
use super::subject::Subject;
use crate::history::{Event, Returned};
use crate::map::{Kind, MapHistory, Operation, Response, Span};
use std::any::Any;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use tremula_index::Direction;

/// The steps of one thread in one round.
pub type Script = Vec<Step>;

/// A call, and a pause before it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The pause before the call.
    pub pause: Pause,
    /// The call.
    pub operation: Operation,
}

impl From<Operation> for Step {
    fn from(operation: Operation) -> Self {
        Self {
            pause: Pause::None,
            operation,
        }
    }
}

/// A pause between two calls, so that a thread meets the others at different points.
#[derive(Clone, Copy, Debug)]
pub enum Pause {
    /// Nothing.
    None,
    /// Yields the processor.
    Yield,
    /// Spins for this number of turns.
    Spin(u32),
}

/// A subject, and the scripts that threads run on it.
pub struct Session<'s> {
    /// The subject. No other thread may use it meanwhile.
    pub subject: &'s dyn Subject,
    /// The entries in it.
    pub initial: Vec<(u64, u64)>,
    /// The rounds, each with the scripts of its threads. Each round becomes a history.
    pub rounds: Vec<Vec<Script>>,
}

/// The recording of one round.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The calls. The last ones are made by one thread after all others have finished: a look at
    /// the whole map and at its length, if the subject offers them.
    pub history: MapHistory,
    /// The calls that panicked. In the history they never returned, and the thread did not run the
    /// rest of its script.
    pub panics: Vec<Panicked>,
}

/// A call that panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// The thread.
    pub thread: usize,
    /// The call.
    pub operation: Operation,
    /// The message of the panic, if it was a text.
    pub message: String,
}

/// Records one round: each thread runs one of the scripts, all at the same time, on a subject that
/// holds the entries of `initial` at the beginning.
///
/// # Panics
///
/// When a thread cannot be started.
pub fn record(
    subject: &dyn Subject,
    initial: impl IntoIterator<Item = (u64, u64)>,
    scripts: Vec<Script>,
) -> Recording {
    let session = Session {
        subject,
        initial: initial.into_iter().collect(),
        rounds: vec![scripts],
    };
    // One session of one round makes one recording.
    record_sessions(&[session]).remove(0)
}

/// Records many rounds, on one subject after another, with the same threads. Returns a recording
/// for each round.
///
/// Each round of a session after the first begins with the entries seen at the end of the previous
/// one.
///
/// # Panics
///
/// When a thread cannot be started, or a session has several rounds but its subject offers neither
/// snapshots nor scans nor ranges, so that its entries after the first round are unknown.
pub fn record_sessions(sessions: &[Session<'_>]) -> Vec<Recording> {
    for session in sessions {
        assert!(
            session.rounds.len() < 2 || whole(session.subject).is_some(),
            "a subject for several rounds must offer snapshots, scans or ranges"
        );
    }
    let rounds = sessions.iter().flat_map(|session| &session.rounds);
    let threads = rounds.map(Vec::len).max().unwrap_or(0).max(1);
    let (clock, meeting) = (Clock::default(), Meeting::of(threads));
    let closed: Vec<Closed<'_>> = sessions.iter().map(Closed::from).collect();
    let work = |thread| work(thread, &closed, &clock, &meeting);
    let logs: Vec<Vec<Log>> = thread::scope(|scope| {
        let spawn = |thread| scope.spawn(move || work(thread));
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    assemble(sessions, logs)
}

/// The recording of one thread in one round.
#[derive(Default)]
struct Log {
    events: Vec<Event<Operation, Response>>,
    panics: Vec<Panicked>,
    /// The entries left in the map, from the thread that looked.
    left: Option<Vec<(u64, u64)>>,
}

fn entries(event: &Event<Operation, Response>) -> Option<Vec<(u64, u64)>> {
    match event.response() {
        Some(Response::Entries(entries)) => Some(entries.clone()),
        _ => None,
    }
}

/// A session, with the script that runs after each round.
struct Closed<'s> {
    subject: &'s dyn Subject,
    rounds: &'s [Vec<Script>],
    closing: Script,
}

impl<'s> From<&'s Session<'_>> for Closed<'s> {
    fn from(session: &'s Session<'_>) -> Self {
        Self {
            subject: session.subject,
            rounds: &session.rounds,
            closing: closing(session.subject),
        }
    }
}

fn work(thread: usize, sessions: &[Closed<'_>], clock: &Clock, meeting: &Meeting) -> Vec<Log> {
    dawdle_from_now_on(thread + 1);
    let mut logs = Vec::new();
    meeting.wait(|| {});
    for session in sessions {
        for scripts in session.rounds {
            let mut log = Log::default();
            let script = scripts.get(thread).map_or(&[][..], |script| script);
            log.events.reserve(script.len() + 2);
            log.run(thread, session.subject, script, clock);
            meeting.wait(|| log.close(thread, session, clock));
            logs.push(log);
        }
    }
    logs
}

impl Log {
    /// Looks at the entries left in the map, when no thread changes it any more.
    fn close(&mut self, thread: usize, session: &Closed<'_>, clock: &Clock) {
        let before = self.events.len();
        self.run(thread, session.subject, &session.closing, clock);
        self.left = self.events[before..].iter().find_map(entries);
    }

    /// Runs a script to its end, or until a call panics.
    fn run(&mut self, thread: usize, subject: &dyn Subject, script: &[Step], clock: &Clock) {
        for step in script {
            step.pause.take();
            let operation = step.operation.clone();
            let called = clock.stamp();
            let outcome = catch_unwind(AssertUnwindSafe(|| subject.call(&operation)));
            let at = clock.stamp();
            match outcome {
                Ok(response) => self.events.push(Event {
                    thread,
                    called,
                    operation,
                    returned: Some(Returned { at, response }),
                }),
                Err(panic) => {
                    self.panics.push(Panicked {
                        thread,
                        operation: operation.clone(),
                        message: message(&*panic),
                    });
                    self.events.push(Event::pending(thread, called, operation));
                    return;
                }
            }
        }
    }
}

impl Pause {
    fn take(self) {
        match self {
            Self::None => {}
            Self::Yield => thread::yield_now(),
            Self::Spin(turns) => (0..turns).for_each(|_| hint::spin_loop()),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".to_owned())
}

/// A call that shows everything in a map that no thread is changing.
fn whole(subject: &dyn Subject) -> Option<Operation> {
    let ways = [
        // Before snapshots, which an engine may offer without being able to give one.
        Operation::Scan(Span::ALL, Direction::Ascending, usize::MAX),
        Operation::Snapshot(Span::ALL),
        Operation::Range(Span::ALL, Direction::Ascending, usize::MAX),
    ];
    ways.into_iter().find(|way| subject.offers(way.kind()))
}

/// The looks at the map after each round.
fn closing(subject: &dyn Subject) -> Script {
    let len = subject.offers(Kind::Len).then_some(Operation::Len);
    whole(subject)
        .into_iter()
        .chain(len)
        .map(Step::from)
        .collect()
}

/// Combines the logs of the threads, round by round.
fn assemble(sessions: &[Session<'_>], logs: Vec<Vec<Log>>) -> Vec<Recording> {
    let mut logs: Vec<_> = logs.into_iter().map(Vec::into_iter).collect();
    let mut recordings = Vec::new();
    for session in sessions {
        let of_one_moment = |kind: &Kind| session.subject.of_one_moment(*kind);
        let loose = Kind::ALL.into_iter().filter(|kind| !of_one_moment(kind));
        let mut initial = session.initial.clone();
        for _ in &session.rounds {
            let (mut events, mut panics, mut left) = (Vec::new(), Vec::new(), None);
            for log in logs.iter_mut().filter_map(Iterator::next) {
                events.extend(log.events);
                panics.extend(log.panics);
                left = left.or(log.left);
            }
            let mut history = MapHistory::recorded(initial, events).loosely(loose.clone());
            if let Some(up_to) = session.subject.ranges_of_one_moment() {
                history = history.with_ranges_of_one_moment(up_to);
            }
            recordings.push(Recording { history, panics });
            initial = left.unwrap_or_default();
        }
    }
    recordings
}
