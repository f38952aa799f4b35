//! The last commands that took long.

use super::{REDACTED, is_secret, now};
use crate::clients::Client;
use crate::lock::lock;
use crate::resp::Arguments;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Arguments of a command that are kept, and bytes of each, as in Redis.
const MOST_ARGUMENTS: usize = 32;
const MOST_BYTES: usize = 128;

/// A command that took long.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    /// When it was done, since 1970.
    pub(crate) time: Duration,
    pub(crate) took: Duration,
    /// Trimmed, and without what nobody may see.
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) address: String,
    pub(crate) client: Vec<u8>,
}

impl Entry {
    fn bytes(&self) -> usize {
        let arguments = self
            .arguments
            .iter()
            .map(|argument| argument.capacity() + size_of::<Vec<u8>>());
        arguments.sum::<usize>() + self.address.len() + self.client.len() + size_of::<Self>()
    }
}

#[derive(Default)]
struct Entries {
    /// The newest first.
    kept: VecDeque<Entry>,
    next: u64,
    bytes: usize,
}

impl Entries {
    fn keep(&mut self, most: usize) {
        while self.kept.len() > most {
            let oldest = self.kept.pop_back();
            self.bytes -= oldest.map_or(0, |oldest| oldest.bytes());
        }
    }
}

/// The last commands that took long.
pub(crate) struct Slowlog {
    entries: Mutex<Entries>,
    most: AtomicUsize,
}

impl Slowlog {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            entries: Mutex::default(),
            most: AtomicUsize::new(most),
        }
    }

    /// The entries that are kept.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    pub(crate) fn set_most(&self, most: usize) {
        self.most.store(most, Relaxed);
        lock(&self.entries).keep(most);
    }

    /// Keeps a command, which has this full name.
    pub(crate) fn add(
        &self,
        client: &Client,
        command: &str,
        arguments: Arguments<'_>,
        took: Duration,
    ) {
        let mut entry = Entry {
            id: 0,
            time: now(),
            took,
            arguments: shown(command, arguments),
            address: client.address_text(),
            client: client.name(),
        };
        let mut entries = lock(&self.entries);
        entry.id = entries.next;
        entries.next += 1;
        entries.bytes += entry.bytes();
        entries.kept.push_front(entry);
        entries.keep(self.most());
    }

    /// The newest entries.
    pub(crate) fn newest(&self, count: usize) -> Vec<Entry> {
        lock(&self.entries)
            .kept
            .iter()
            .take(count)
            .cloned()
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.entries).kept.len()
    }

    /// The bytes that the entries hold.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.entries).bytes
    }

    /// Forgets all entries. Their numbers go on.
    pub(crate) fn reset(&self) {
        lock(&self.entries).keep(0);
    }
}

/// The arguments as they are kept, in Redis's words.
fn shown(command: &str, arguments: Arguments<'_>) -> Vec<Vec<u8>> {
    let count = arguments.len().min(MOST_ARGUMENTS);
    let one = |at: usize| {
        if count < arguments.len() && at == count - 1 {
            let more = arguments.len() - count + 1;
            return format!("... ({more} more arguments)").into_bytes();
        }
        if is_secret(command, arguments, at) {
            return REDACTED.to_vec();
        }
        let argument = arguments.get(at);
        if argument.len() <= MOST_BYTES {
            return argument.to_vec();
        }
        let more = argument.len() - MOST_BYTES;
        let mut text = argument[..MOST_BYTES].to_vec();
        text.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
        text
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::with_line;

    /// The arguments of an inline request, as they are kept.
    fn kept(command: &str, line: &str) -> Vec<String> {
        with_line(line, |arguments| {
            let shown = shown(command, arguments).into_iter();
            shown.map(|word| word.escape_ascii().to_string()).collect()
        })
    }

    #[test]
    fn thirty_two_arguments_of_128_bytes_are_kept() {
        let line = |count: usize| format!("mget{}", " a".repeat(count - 1));
        assert_eq!(
            kept("mget", &line(32)),
            line(32).split(' ').collect::<Vec<_>>()
        );
        let cut = kept("mget", &line(33));
        assert_eq!((cut.len(), &cut[31][..]), (32, "... (2 more arguments)"));
        let cut = kept("mget", &line(100));
        assert_eq!((cut.len(), &cut[31][..]), (32, "... (69 more arguments)"));
        let word = |length: usize| "x".repeat(length);
        assert_eq!(kept("echo", &format!("echo {}", word(128)))[1], word(128));
        let cut = format!("{}... (1 more bytes)", word(128));
        assert_eq!(kept("echo", &format!("echo {}", word(129)))[1], cut);
        assert_eq!(
            kept("auth", "auth me pw"),
            ["auth", "(redacted)", "(redacted)"]
        );
    }
}
