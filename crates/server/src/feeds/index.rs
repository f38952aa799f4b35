//! Which watched ranges an event concerns, without a look at all of them.
//!
//! The ranges lie in the order of their lower bounds. They are a balanced tree, of which the root
//! is in the middle, and each subtree is a part of the list: so it needs no pointers. Each node
//! knows which range of its subtree ends last.

use tremula_store::{Event, Happened, Span};

/// Ranges, each with the number of its topic.
#[derive(Default)]
pub(super) struct Index {
    nodes: Vec<Node>,
}

struct Node {
    span: Span,
    topic: usize,
    /// The node of its subtree whose range ends last.
    last: usize,
}

/// Whether a range that ends here goes at least as far as another one.
fn reaches(one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    match (one, other) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(one), Some(other)) => one >= other,
    }
}

impl Index {
    /// O(n log n).
    pub(super) fn new(spans: impl Iterator<Item = (Span, usize)>) -> Self {
        let nodes = spans.map(|(span, topic)| Node {
            span,
            topic,
            last: 0,
        });
        let mut index = Self {
            nodes: nodes.collect(),
        };
        index.nodes.sort_by(|one, other| one.span.cmp(&other.span));
        index.note_last(0, index.nodes.len());
        index
    }

    /// Notes, for each subtree of a part, which range ends last. Returns that of the whole part.
    fn note_last(&mut self, from: usize, to: usize) -> Option<usize> {
        if from == to {
            return None;
        }
        let root = from.midpoint(to);
        let below = [self.note_last(from, root), self.note_last(root + 1, to)];
        let last = below.into_iter().flatten().fold(root, |last, other| {
            let ends = |at: usize| self.nodes[at].span.high();
            if reaches(ends(last), ends(other)) {
                last
            } else {
                other
            }
        });
        self.nodes[root].last = last;
        Some(last)
    }

    /// Visits the topics whose ranges an event concerns. O(log n) for each, and O(log n).
    pub(super) fn visit(&self, event: &Event<'_>, visit: &mut dyn FnMut(usize)) {
        match (&event.what, event.key()) {
            (Happened::RemoveRange { low, high }, _) => {
                let begins = |span: &Span| high.as_ref().is_none_or(|high| span.low() < &**high);
                let ends = |span: &Span| span.high().is_none_or(|high| **low < *high);
                self.walk(0, self.nodes.len(), &begins, &ends, visit);
            }
            (_, Some(key)) => {
                let begins = |span: &Span| span.low() <= key;
                let ends = |span: &Span| span.high().is_none_or(|high| key < high);
                self.walk(0, self.nodes.len(), &begins, &ends, visit);
            }
            (_, None) => (),
        }
    }

    /// Visits what begins before the end of something, and ends behind its beginning.
    fn walk(
        &self,
        from: usize,
        to: usize,
        begins: &dyn Fn(&Span) -> bool,
        ends: &dyn Fn(&Span) -> bool,
        visit: &mut dyn FnMut(usize),
    ) {
        if from == to {
            return;
        }
        let root = from.midpoint(to);
        let node = &self.nodes[root];
        if !ends(&self.nodes[node.last].span) {
            return;
        }
        self.walk(from, root, begins, ends, visit);
        if begins(&node.span) {
            if ends(&node.span) {
                visit(node.topic);
            }
            self.walk(root + 1, to, begins, ends, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::Bound;
    use tremula_store::Sequence;

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3_u8, 0..3)
    }

    fn span() -> impl Strategy<Value = Span> {
        (text(), prop::option::of(text())).prop_map(|(low, high)| {
            let high = high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            Span::new(Bound::Included(&low), high)
        })
    }

    proptest! {
        /// Each range that an event concerns is found once, and no other one.
        #[test]
        fn an_event_finds_the_ranges_that_it_concerns(
            spans in prop::collection::vec(span(), 0..20),
            key in text(),
            removed in span(),
        ) {
            let index = Index::new(spans.iter().cloned().zip(0..));
            let happened = [
                Happened::Remove { key: (&*key).into() },
                Happened::RemoveRange {
                    low: removed.low().into(),
                    high: removed.high().map(Into::into),
                },
            ];
            for what in happened {
                let event = Event::new(Sequence::FIRST, what);
                let mut found = Vec::new();
                index.visit(&event, &mut |topic| found.push(topic));
                found.sort_unstable();
                let concerned = |(_, span): &(usize, &Span)| event.within(span).is_some();
                let expected: Vec<usize> = spans
                    .iter()
                    .enumerate()
                    .filter(concerned)
                    .map(|(at, _)| at)
                    .collect();
                // An empty part of a removed range concerns nobody.
                found.retain(|at| event.within(&spans[*at]).is_some());
                prop_assert_eq!(found, expected);
            }
        }
    }
}
