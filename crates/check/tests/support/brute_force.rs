//! Linearizability by its definition: every order of every choice of calls, one by one. Shares only
//! the specification with the search.

use tremula_check::{History, HistoryOf, Specification};

/// Whether there is an order of the calls that returned, and of some of the others, that keeps
/// calls that did not overlap in order and is a run of the specification.
pub(crate) fn linearizable<S: Specification>(specification: &S, history: &HistoryOf<S>) -> bool {
    let numbers: Vec<usize> = (0..history.events().len()).collect();
    let (returned, pending): (Vec<usize>, Vec<usize>) = numbers
        .into_iter()
        .partition(|&number| history.events()[number].returned.is_some());
    (0..1_u32 << pending.len()).any(|choice| {
        let mut chosen = returned.clone();
        let taken = pending.iter().enumerate();
        chosen.extend(
            taken
                .filter(|(place, _)| choice >> place & 1 == 1)
                .map(|(_, number)| *number),
        );
        orders(chosen)
            .iter()
            .any(|order| explains(specification, history, order))
    })
}

/// All orders of some things.
fn orders(things: Vec<usize>) -> Vec<Vec<usize>> {
    if things.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for place in 0..things.len() {
        let mut rest = things.clone();
        let first = rest.remove(place);
        for mut order in orders(rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

/// Whether an order keeps calls that did not overlap in order, and gives the answers that were
/// seen.
pub(crate) fn explains<S: Specification>(
    specification: &S,
    history: &HistoryOf<S>,
    order: &[usize],
) -> bool {
    in_time(history, order) && {
        let mut state = specification.initial();
        order.iter().all(|&number| {
            let event = &history.events()[number];
            let answer = specification.step(&mut state, &event.operation);
            event
                .response()
                .is_none_or(|observed| specification.accepts(&answer, observed))
        })
    }
}

fn in_time<O, R>(history: &History<O, R>, order: &[usize]) -> bool {
    let event = |number: usize| &history.events()[number];
    order.iter().enumerate().all(|(place, &earlier)| {
        order[place + 1..]
            .iter()
            .all(|&later| event(later).end() >= event(earlier).called)
    })
}
