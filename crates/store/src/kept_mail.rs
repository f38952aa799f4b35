//! The messages of mailboxes that are kept in a log.
//!
//! Such a mailbox has its undelivered messages twice: in the queue from which they are received,
//! and in a list. Both get them under one lock, where a message gets its number and its effect, so
//! the order of the log is that of the queue. A snapshot copies the list.

use crate::Value;
use crate::effects::Effects;
use crate::effects::mail::{Made, Mail, MailChange};
use std::collections::{BTreeMap, VecDeque};
use tremula_sync::Mutex;

/// Messages that a snapshot copies under the lock that senders take.
const AT_ONCE: usize = 256;

/// What a mailbox has in the log.
pub(crate) struct KeptMail {
    pub(crate) number: u64,
    pub(crate) made: Made,
    messages: Mutex<Messages>,
}

/// The messages that were sent and not delivered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages {
    /// The number of the first message, or of the next one if there are no messages.
    first: u64,
    pub(crate) waiting: VecDeque<Value>,
    is_dropped: bool,
}

impl KeptMail {
    pub(crate) fn new(number: u64, made: Made, messages: Messages) -> Self {
        Self {
            number,
            made,
            messages: Mutex::new(messages),
        }
    }

    /// Notes that there is this mailbox.
    pub(crate) fn note_made(&self, effects: &mut Effects<'_>) {
        effects.mail(vec![self.mail(MailChange::Made(self.made.clone()))]);
    }

    fn mail(&self, what: MailChange) -> Mail {
        Mail {
            mailbox: self.number,
            what,
        }
    }

    /// Sends messages by `send`, as one step. Each message is asked about by `admit`, with the
    /// number of those before it, and the first that is refused ends it. Returns how many were
    /// sent; `None` if the mailbox has been dropped.
    pub(crate) fn send(
        &self,
        effects: &mut Effects<'_>,
        messages: &[Value],
        admit: &mut dyn FnMut(usize, &Value) -> bool,
        send: &mut dyn FnMut(Value),
    ) -> Option<usize> {
        let mut kept = self.messages.lock();
        if kept.is_dropped {
            return None;
        }
        let before = kept.waiting.len();
        for message in messages {
            if !admit(kept.waiting.len(), message) {
                break;
            }
            kept.waiting.push_back(message.clone());
        }
        let sent = kept.waiting.len() - before;
        let next = kept.first + before as u64;
        let changes = (next..).zip(&messages[..sent]);
        let changes = changes.map(|(number, message)| MailChange::Sent(number, message.clone()));
        effects.mail(changes.map(|change| self.mail(change)).collect());
        messages[..sent].iter().cloned().for_each(send);
        Some(sent)
    }

    /// Notes that the first messages were delivered.
    pub(crate) fn delivered(&self, effects: &mut Effects<'_>, count: usize) {
        let mut kept = self.messages.lock();
        if kept.is_dropped || count == 0 {
            return;
        }
        let count = count.min(kept.waiting.len());
        kept.waiting.drain(..count);
        kept.first += count as u64;
        effects.mail(vec![self.mail(MailChange::Received(kept.first))]);
    }

    /// Notes that the mailbox is dropped, with its messages.
    pub(crate) fn drop_all(&self, effects: &mut Effects<'_>) {
        let mut kept = self.messages.lock();
        kept.is_dropped = true;
        kept.waiting.clear();
        effects.mail(vec![self.mail(MailChange::Dropped)]);
    }

    /// Shows changes that make the mailbox as it is, while others send and receive.
    pub(crate) fn describe(&self, visit: &mut dyn FnMut(Mail)) {
        visit(self.mail(MailChange::Made(self.made.clone())));
        let mut next = 0;
        loop {
            let kept = self.messages.lock();
            if kept.is_dropped {
                return;
            }
            let first = kept.first;
            let behind = next.max(first) - first;
            let copied = kept.waiting.iter().skip(behind as usize).take(AT_ONCE);
            let copied: Vec<Value> = copied.cloned().collect();
            drop(kept);
            visit(self.mail(MailChange::Received(first)));
            next = first + behind;
            if copied.is_empty() {
                return;
            }
            for message in copied {
                visit(self.mail(MailChange::Sent(next, message)));
                next += 1;
            }
        }
    }
}

/// Mailboxes that are made again from a snapshot and a log, by their numbers.
#[derive(Default)]
pub(crate) struct Images {
    pub(crate) by_number: BTreeMap<u64, (Made, Messages)>,
    /// The last number of a mailbox.
    pub(crate) last: u64,
}

impl Images {
    /// Makes a change true. Applying some again, beginning anywhere, ends in the same state.
    pub(crate) fn apply(&mut self, mail: Mail) {
        self.last = self.last.max(mail.mailbox);
        let image = match mail.what {
            MailChange::Made(made) => {
                let new = || (made, Messages::default());
                self.by_number.entry(mail.mailbox).or_insert_with(new);
                return;
            }
            MailChange::Dropped => {
                self.by_number.remove(&mail.mailbox);
                return;
            }
            MailChange::Sent(..) | MailChange::Received(_) => &mail.mailbox,
        };
        // One that is not there has been dropped since.
        let Some((_, kept)) = self.by_number.get_mut(image) else {
            return;
        };
        let next = kept.first + kept.waiting.len() as u64;
        match mail.what {
            MailChange::Received(first) if first >= next => {
                kept.waiting.clear();
                kept.first = first;
            }
            MailChange::Received(first) if first > kept.first => {
                kept.waiting.drain(..(first - kept.first) as usize);
                kept.first = first;
            }
            MailChange::Sent(number, message) if number == next => {
                kept.waiting.push_back(message);
            }
            // What lies between has been received since.
            MailChange::Sent(number, message) if number > next => {
                kept.waiting.clear();
                kept.waiting.push_back(message);
                kept.first = number;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn mail(what: MailChange) -> Mail {
        Mail { mailbox: 1, what }
    }

    fn sent(number: u64) -> Mail {
        mail(MailChange::Sent(number, Value::from(&[number as u8][..])))
    }

    fn state(images: &Images) -> (u64, Vec<u8>) {
        let (_, kept) = &images.by_number[&1];
        (kept.first, kept.waiting.iter().map(|one| one[0]).collect())
    }

    /// A snapshot may have seen any part of what the log says.
    #[test]
    fn what_is_applied_again_changes_nothing() {
        let made = Made {
            name: b"m"[..].into(),
            mode: tremula_mailbox::Mode::Auto,
            capacity: None,
            owner: tremula_table::term::Pid::new(tremula_table::term::Atom::NO_NODE, 1, 0, 0),
        };
        let received = |first| mail(MailChange::Received(first));
        let log = [
            mail(MailChange::Made(made)),
            sent(0),
            sent(1),
            received(1),
            sent(2),
            sent(3),
            received(3),
            sent(4),
        ];
        for seen in 1..=log.len() {
            for begin in 0..=seen {
                let mut images = Images::default();
                log[..seen]
                    .iter()
                    .cloned()
                    .for_each(|mail| images.apply(mail));
                log[begin..]
                    .iter()
                    .cloned()
                    .for_each(|mail| images.apply(mail));
                assert_eq!(state(&images), (3, vec![3, 4]), "{begin} behind {seen}");
                assert_eq!(images.last, 1);
            }
        }
        let mut images = Images::default();
        log.into_iter().for_each(|mail| images.apply(mail));
        images.apply(mail(MailChange::Dropped));
        images.apply(sent(5));
        assert!(images.by_number.is_empty());
    }
}
