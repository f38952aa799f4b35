//! The shared log, as an engine such as JetStream is seen: conditional appends, message ids by
//! which it notices repetition, and, where a test asks for it, known losses.

use std::collections::HashMap;
use std::sync::Arc;
use tremula_group::{MessageId, Outcome, Position};

#[derive(Default)]
pub(crate) struct Stream {
    /// The messages from `first` on.
    messages: Vec<Option<Arc<[u8]>>>,
    /// How many messages were given up at the beginning.
    given_up: u64,
    ids: HashMap<MessageId, Position>,
}

impl Stream {
    pub(crate) fn end(&self) -> Position {
        Position::new(self.given_up + self.messages.len() as u64)
    }

    pub(crate) fn first(&self) -> Position {
        Position::new(self.given_up + 1)
    }

    /// Appends on a condition. A message that the log has already is answered as the first time.
    pub(crate) fn append(
        &mut self,
        expected: Position,
        id: MessageId,
        bytes: Arc<[u8]>,
    ) -> Outcome {
        if let Some(position) = self.ids.get(&id) {
            return Outcome::Stored(*position);
        }
        if expected != self.end() {
            return Outcome::WrongEnd(self.end());
        }
        self.messages.push(Some(bytes));
        self.ids.insert(id, self.end());
        Outcome::Stored(self.end())
    }

    /// The first message from a position on that is there.
    pub(crate) fn next(&self, from: Position) -> Option<(Position, Arc<[u8]>)> {
        let skipped = from.get().saturating_sub(self.given_up + 1);
        let behind = self.messages.iter().enumerate().skip(skipped as usize);
        behind
            .filter_map(|(index, message)| Some((index, message.clone()?)))
            .map(|(index, message)| (Position::new(self.given_up + 1 + index as u64), message))
            .next()
    }

    /// Gives up the messages before a position.
    pub(crate) fn truncate_below(&mut self, position: Position) {
        while self.first() < position && !self.messages.is_empty() {
            self.messages.remove(0);
            self.given_up += 1;
        }
    }

    /// A known loss: the last messages are gone, and their numbers are given again. Returns what
    /// was lost.
    pub(crate) fn lose_tail(&mut self, count: usize) -> Vec<(Position, Arc<[u8]>)> {
        let kept = self.messages.len().saturating_sub(count);
        let lost = self.messages.split_off(kept);
        let end = self.end();
        self.ids.retain(|_, position| *position <= end);
        let behind = (end.get() + 1..).map(Position::new);
        behind.zip(lost.into_iter().flatten()).collect()
    }

    /// A known loss: one message in the middle is gone.
    pub(crate) fn lose(&mut self, position: Position) {
        let index = position.get() - self.given_up - 1;
        self.messages[index as usize] = None;
    }
}
