//! Shortening a counterexample, and explaining what is wrong with it.

use crate::history::Event;
use crate::search::{HistoryOf, Stuck, Verdict, search};
use crate::specification::Specification;
use std::fmt::Write;

/// The most calls that a report shows. The calls before them are left out.
const ROWS: usize = 40;

/// The most columns of the time line.
const COLUMNS: usize = 56;

/// The cost of shortening one counterexample, at most, in budgets.
const BUDGETS: usize = 4;

/// A part of the history that has no order either, and so shows the fault alone. `None` if the
/// history has an order, or the budget does not suffice to decide.
///
/// Left out are the calls after the first moment at which the fault shows (calls under way then
/// have not returned), and then as many as possible of the calls that only read. If the whole
/// history had an order, so would the part. Writes are never left out, because without them right
/// answers look wrong.
#[must_use]
pub fn shorten<S: Specification>(
    specification: &S,
    history: &HistoryOf<S>,
    budget: usize,
) -> Option<HistoryOf<S>> {
    let mut searches = Searches {
        specification,
        budget,
        left: budget.saturating_mul(BUDGETS),
    };
    if !searches.stuck(history) {
        return None;
    }
    let cut = cut(&mut searches, history);
    Some(thin(&mut searches, cut))
}

struct Searches<'a, S> {
    specification: &'a S,
    budget: usize,
    /// A rough count of the configurations that may still be visited.
    left: usize,
}

impl<S: Specification> Searches<'_, S> {
    fn stuck(&mut self, history: &HistoryOf<S>) -> bool {
        self.left = self.left.saturating_sub(history.events().len());
        matches!(
            search(self.specification, history, self.budget),
            Verdict::Stuck(_)
        )
    }
}

/// The history up to the first return at which it has no order.
fn cut<S: Specification>(searches: &mut Searches<'_, S>, history: &HistoryOf<S>) -> HistoryOf<S> {
    let mut ends: Vec<u64> = history
        .events()
        .iter()
        .filter_map(|event| Some(event.returned.as_ref()?.at))
        .collect();
    ends.sort_unstable();
    // The first bad end is in `good..=bad`.
    let (mut good, mut bad) = (0, ends.len().saturating_sub(1));
    while good < bad {
        let middle = (good + bad) / 2;
        if searches.stuck(&history.until(ends[middle])) {
            bad = middle;
        } else {
            good = middle + 1;
        }
    }
    let cut = history.until(ends.get(bad).copied().unwrap_or(u64::MAX));
    // A search that exceeded its budget may have misled the loop above.
    if searches.stuck(&cut) {
        cut
    } else {
        history.clone()
    }
}

/// The history without those read-only calls that are not needed, removed in runs whose length is
/// halved each time.
fn thin<S: Specification>(searches: &mut Searches<'_, S>, history: HistoryOf<S>) -> HistoryOf<S> {
    let mut history = history;
    let mut length = history.events().len();
    while length > 0 {
        let mut end = history.events().len();
        while end > 0 && searches.left > 0 {
            let begin = end.saturating_sub(length);
            let removable = |number: usize| {
                let event = &history.events()[number];
                (begin..end).contains(&number)
                    && searches
                        .specification
                        .only_reads(&event.operation, event.response())
            };
            let thinner = history.filtered(|number| !removable(number));
            if thinner.events().len() < history.events().len() && searches.stuck(&thinner) {
                history = thinner;
            }
            end = begin.min(history.events().len());
        }
        length /= 2;
    }
    history
}

/// A report on a history without an order: the calls as a table with a time line, the longest order
/// of a part of them, the state it leaves, and the call that cannot be placed.
pub fn explain<S: Specification>(
    specification: &S,
    history: &HistoryOf<S>,
    stuck: &Stuck<S::State>,
) -> String {
    let events = history.events();
    let mut report = table(events, stuck);
    let blocked = &events[stuck.blocked];
    let mut state = stuck.state.clone();
    let answer = specification.step(&mut state, &blocked.operation);
    let observed = blocked.response().map(ToString::to_string);
    let _ = write!(
        report,
        "\nThe longest order found has {} of {} calls, as numbered, and leaves the state\n    {:?}\n\
         There is no place for `{}` of thread {}, which ends next: here it would\n\
         answer {answer}, and it answered {}.\n",
        stuck.placed.len(),
        events.len(),
        stuck.state,
        blocked.operation,
        blocked.thread,
        observed.unwrap_or_default(),
    );
    report
}

/// The calls, one per row, with their places in the order.
fn table<O: ToString, R: ToString, State>(events: &[Event<O, R>], stuck: &Stuck<State>) -> String {
    let end = events[stuck.blocked].end();
    let before = events.partition_point(|event| event.called <= end);
    let shown = before.saturating_sub(ROWS)..before;
    let line = TimeLine::of(&events[shown.clone()]);
    let mut places = vec![None; events.len()];
    for (place, &number) in stuck.placed.iter().enumerate() {
        places[number] = Some(place + 1);
    }
    let mut rows = vec![["order", "thread", "time", "call", "answer"].map(str::to_owned)];
    for number in shown.clone() {
        let event = &events[number];
        let place = match places[number] {
            Some(place) => place.to_string(),
            None if number == stuck.blocked => "none".to_owned(),
            None => "-".to_owned(),
        };
        rows.push([
            place,
            event.thread.to_string(),
            line.interval(event),
            event.operation.to_string(),
            event
                .response()
                .map_or_else(|| "…".to_owned(), ToString::to_string),
        ]);
    }
    let mut out = String::new();
    if shown.start > 0 {
        let _ = writeln!(out, "({} calls before these are not shown)", shown.start);
    }
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let [order, thread, time, call] = [0, 1, 2, 3].map(width);
    for [a, b, c, d, answer] in &rows {
        let row = format!("{a:>order$}  {b:>thread$}  {c:<time$}  {d:<call$}  {answer}");
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

/// Times as columns, so that calls that overlap in time overlap on paper. Each different time shown
/// has its own column if there are enough columns.
struct TimeLine(Vec<u64>);

impl TimeLine {
    fn of<O, R>(events: &[Event<O, R>]) -> Self {
        let mut times: Vec<u64> = events
            .iter()
            .flat_map(|event| [event.called, event.end()])
            .filter(|&time| time < u64::MAX)
            .collect();
        times.sort_unstable();
        times.dedup();
        Self(times)
    }

    fn column(&self, time: u64) -> usize {
        let rank = self.0.partition_point(|&earlier| earlier < time);
        if self.0.len() <= COLUMNS {
            rank
        } else {
            rank * COLUMNS / self.0.len()
        }
    }

    fn interval<O, R>(&self, event: &Event<O, R>) -> String {
        let begin = self.column(event.called);
        let end = self.column(event.end());
        let mut line = " ".repeat(begin);
        line.push('|');
        line.push_str(&"-".repeat(end.saturating_sub(begin + 1)));
        line.push(if event.returned.is_some() { '|' } else { '>' });
        line
    }
}
