//! The server's mailboxes: many clients send, one at a time receives.
//!
//! A mailbox lives under a name until it is dropped. Each connection sends through a sender of
//! its own, so that what it sends arrives in its order. The receiving end is lent to one
//! connection at a time ([`Lease`]), for as long as that waits for messages and until they have
//! been written to its socket; what could not be written goes back to the front.

use crate::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tremula_mailbox::{Config, Mailbox, Mode, Sender, mailbox};

/// How long a receiver waits for another one to be done.
const GRACE: Duration = Duration::from_millis(100);

/// Every mailbox, by name.
#[derive(Default)]
pub(crate) struct Mailboxes(Mutex<BTreeMap<Box<[u8]>, Arc<Post>>>);

/// One mailbox.
pub(crate) struct Post {
    pub(crate) mode: Mode,
    pub(crate) config: Config,
    /// What connections clone theirs from.
    sender: Sender<Value>,
    /// `None` while it is lent.
    receiver: Mutex<Option<Receiver>>,
    /// Messages that were received and could not be delivered.
    returned: AtomicUsize,
    dropped: AtomicBool,
    /// Tells the one who waits for messages that the mailbox was dropped.
    gone: Notify,
    /// Tells who wants to receive that the receiving end is back.
    back: Notify,
}

/// The receiving end.
struct Receiver {
    mailbox: Mailbox<Value>,
    /// In front of all that is in the mailbox.
    returned: VecDeque<Value>,
}

impl Mailboxes {
    /// Makes a mailbox; whether there was none of this name.
    pub(crate) fn add(&self, name: &[u8], mode: Mode, config: Config) -> bool {
        let mut all = lock(&self.0);
        if all.contains_key(name) {
            return false;
        }
        let (sender, mailbox) = mailbox(config.mode(mode));
        let receiver = Receiver {
            mailbox,
            returned: VecDeque::new(),
        };
        let post = Post {
            mode,
            config,
            sender,
            receiver: Mutex::new(Some(receiver)),
            returned: AtomicUsize::new(0),
            dropped: AtomicBool::new(false),
            gone: Notify::new(),
            back: Notify::new(),
        };
        all.insert(name.into(), Arc::new(post));
        true
    }

    /// The mailbox of this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Arc<Post>> {
        lock(&self.0).get(name).cloned()
    }

    /// Drops the mailbox of this name with all that is in it, and says how many messages these
    /// were.
    pub(crate) fn remove(&self, name: &[u8]) -> Option<usize> {
        let post = lock(&self.0).remove(name)?;
        let left = post.len();
        post.dropped.store(true, SeqCst);
        post.gone.notify_waiters();
        // If it is lent, its lease drops it.
        drop(lock(&post.receiver).take());
        Some(left)
    }
}

impl Post {
    /// A sender with an order of its own.
    pub(crate) fn sender(&self) -> Sender<Value> {
        self.sender.clone()
    }

    /// The messages that are in it; exact when nobody sends or receives.
    pub(crate) fn len(&self) -> usize {
        self.sender.len() + self.returned.load(SeqCst)
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(SeqCst)
    }

    /// What the mailbox has counted, and whether its senders meet.
    pub(crate) fn stats(&self) -> (tremula_mailbox::Stats, bool) {
        (self.sender.stats(), self.sender.is_contended())
    }

    /// Whether somebody receives from it now.
    pub(crate) fn is_lent(&self) -> bool {
        lock(&self.receiver).is_none()
    }

    /// The receiving end, unless somebody has it and keeps it. One whose client has its reply
    /// already, as far as that client can tell, gets [`GRACE`] to give it back.
    pub(crate) async fn lease(self: &Arc<Self>) -> Option<Lease> {
        let deadline = Instant::now() + GRACE;
        loop {
            let back = self.back.notified();
            tokio::pin!(back);
            // From here on a notification is not missed.
            back.as_mut().enable();
            if let Some(lease) = self.try_lease() {
                return Some(lease);
            }
            if timeout_at(deadline, back).await.is_err() {
                return None;
            }
        }
    }

    fn try_lease(self: &Arc<Self>) -> Option<Lease> {
        let receiver = lock(&self.receiver).take()?;
        Some(Lease {
            post: Arc::clone(self),
            receiver: Some(receiver),
            taken: Vec::new(),
        })
    }
}

/// The receiving end of a mailbox in the hands of one connection. Dropping it gives it back,
/// with the messages that were not [delivered](Self::delivered) in front.
pub(crate) struct Lease {
    post: Arc<Post>,
    /// There until the lease is dropped.
    receiver: Option<Receiver>,
    /// Messages received and not delivered yet.
    taken: Vec<Value>,
}

impl Lease {
    /// Waits for messages and takes up to `count`; none if the mailbox is dropped first.
    ///
    /// Cancel-safe.
    pub(crate) async fn receive(&mut self, count: usize) {
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let waiting = receiver.returned.len().min(count);
        if waiting > 0 {
            self.taken.extend(receiver.returned.drain(..waiting));
            self.post.returned.fetch_sub(waiting, SeqCst);
            return;
        }
        let gone = self.post.gone.notified();
        tokio::pin!(gone);
        // From here on a notification is not missed; one that came before shows in the flag.
        gone.as_mut().enable();
        if !self.post.is_dropped() {
            tokio::select! {
                biased;
                _ = receiver.mailbox.recv_many_async(&mut self.taken, count) => (),
                () = gone => (),
            }
        }
    }

    /// The messages received and not delivered yet.
    pub(crate) fn taken(&self) -> &[Value] {
        &self.taken
    }

    /// Keeps the first `count` messages taken as those to be delivered; the others go back.
    pub(crate) fn keep(&mut self, count: usize) {
        let others = self.taken.split_off(count.min(self.taken.len()));
        self.give_back(others);
    }

    /// Forgets the messages taken: their receiver has them.
    pub(crate) fn delivered(mut self) {
        self.taken.clear();
    }

    fn give_back(&mut self, messages: Vec<Value>) {
        if let Some(receiver) = &mut self.receiver {
            self.post.returned.fetch_add(messages.len(), SeqCst);
            for message in messages.into_iter().rev() {
                receiver.returned.push_front(message);
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.give_back(taken);
        let mut place = lock(&self.post.receiver);
        // Under the lock that `remove` takes after it has set the flag: one of the two drops it.
        if !self.post.is_dropped() {
            *place = self.receiver.take();
        }
        self.post.back.notify_one();
    }
}

/// Locks; what these locks protect is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
