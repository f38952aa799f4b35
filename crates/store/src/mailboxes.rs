//! The server's mailboxes: many clients send, and one at a time receives.
//!
//! A mailbox has a name until it is dropped. Each connection sends through a sender of its own, so
//! that what it sends arrives in its order. One connection at a time has a lease of the receiving
//! end ([`Lease`]), from when it begins to wait until the messages have been written to its socket.
//! Messages that could not be written go back to the front.

use crate::Value;
use crate::effects::Effects;
use crate::effects::mail::{Made, Mail};
use crate::kept_mail::{Images, KeptMail, Messages};
use crate::tables::Tables;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tremula_mailbox::{Config, Mailbox, Mode, Sender, TrySendError, mailbox};
use tremula_sync::Mutex;
use tremula_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use tremula_sync::system::Arc;
use tremula_table::term::Pid;
use tremula_table::{Access, Owner, Term, Transfer};

/// How long a receiver waits for another receiver to finish.
const GRACE: Duration = Duration::from_millis(100);

/// What a message takes in a mailbox besides its bytes: its slot in the queue and the head of its
/// allocation.
const MESSAGE_HEAD: usize = 48;

/// The quotas of mailboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailboxQuotas {
    /// Mailboxes in all.
    pub mailboxes: usize,
    /// Bytes of the messages in one mailbox.
    pub bytes: usize,
}

impl MailboxQuotas {
    /// 65,536 mailboxes, each with 64 MiB: a mailbox without a message takes about two kilobytes,
    /// and a receiver that is behind by more than that will hardly catch up.
    pub const DEFAULT: Self = Self {
        mailboxes: 65_536,
        bytes: 64 << 20,
    };
}

/// Why a mailbox was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotAdd {
    /// There is one of this name.
    Exists,
    /// There are as many as there may be.
    TooMany,
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The mailbox has as many messages as it may.
    Full,
    /// Its messages have as many bytes as they may.
    TooManyBytes,
    /// It was dropped.
    Dropped,
    /// It is not one that is kept.
    NotKept,
}

/// Every mailbox, by name.
pub struct Mailboxes {
    by_name: Mutex<BTreeMap<Box<[u8]>, Arc<Post>>>,
    quotas: MailboxQuotas,
    /// The last number of a mailbox that is kept.
    last_kept: AtomicU64,
    /// Those that are kept, while a log is read.
    images: Mutex<Images>,
}

impl Default for Mailboxes {
    fn default() -> Self {
        Self::new(MailboxQuotas::DEFAULT)
    }
}

/// One mailbox.
pub struct Post {
    /// How its queue adapts.
    pub mode: Mode,
    /// Its configuration.
    pub config: Config,
    /// What the log has of it, if it is kept.
    kept: Option<KeptMail>,
    /// The sender that connections clone.
    sender: Sender<Value>,
    /// `None` while a connection has it on lease.
    receiver: Mutex<Option<Receiver>>,
    /// Messages that were received and could not be delivered.
    returned: AtomicUsize,
    /// Bytes of the messages that were sent and not delivered, and how many there may be.
    bytes: AtomicUsize,
    bytes_limit: usize,
    /// The mailbox as an owner of tables, from when it is an heir or gets a table.
    estate: Mutex<Option<Estate>>,
    dropped: AtomicBool,
    /// Notifies the receiver that waits for messages that the mailbox was dropped.
    gone: Notify,
    /// Notifies connections that want to receive that the receiving end is back.
    back: Notify,
}

/// A mailbox as an owner of tables.
struct Estate {
    owner: Owner,
    sender: Sender<Value>,
    /// Messages for which the full mailbox has no room yet.
    waiting: Option<Value>,
}

/// The receiving end.
struct Receiver {
    mailbox: Mailbox<Value>,
    /// Messages in front of all that are in the mailbox.
    returned: VecDeque<Value>,
}

impl Mailboxes {
    /// No mailboxes.
    #[must_use]
    pub fn new(quotas: MailboxQuotas) -> Self {
        Self {
            by_name: Mutex::new(BTreeMap::new()),
            quotas,
            last_kept: AtomicU64::new(0),
            images: Mutex::default(),
        }
    }

    /// Makes a mailbox that no log has: it and its messages go with the store.
    ///
    /// # Errors
    ///
    /// One of this name exists, or there are as many as the quota allows.
    pub fn add(&self, name: &[u8], mode: Mode, config: Config) -> Result<Arc<Post>, CannotAdd> {
        self.add_if_new(name, || Post::new(mode, config, self.quotas, None, None))
    }

    /// Makes a mailbox that is kept, if the store has a log: with its messages, in their order. A
    /// message that was received and not delivered is there again.
    ///
    /// # Errors
    ///
    /// Those of [`add`](Self::add).
    pub fn add_kept(
        &self,
        effects: &mut Effects<'_>,
        tables: &Tables,
        (name, mode, config): (&[u8], Mode, Config),
    ) -> Result<Arc<Post>, CannotAdd> {
        self.add_if_new(name, || {
            let owner = tables.0.owner();
            let made = Made {
                name: name.into(),
                mode,
                capacity: config.capacity(),
                owner: owner.pid().clone(),
            };
            let number = self.last_kept.fetch_add(1, SeqCst) + 1;
            let kept = KeptMail::new(number, made, Messages::default());
            kept.note_made(effects);
            Post::new(mode, config, self.quotas, Some(kept), Some(owner))
        })
    }

    fn add_if_new(&self, name: &[u8], new: impl FnOnce() -> Post) -> Result<Arc<Post>, CannotAdd> {
        let mut all = self.by_name.lock();
        if all.contains_key(name) {
            return Err(CannotAdd::Exists);
        }
        if all.len() >= self.quotas.mailboxes {
            return Err(CannotAdd::TooMany);
        }
        let post = Arc::new(new());
        all.insert(name.into(), Arc::clone(&post));
        Ok(post)
    }

    /// Makes a change of the log true, for mailboxes that are [made again](Self::make_again) when
    /// all have been read.
    pub(crate) fn apply(&self, mail: Mail) {
        self.images.lock().apply(mail);
    }

    /// Makes the mailboxes whose changes have been applied.
    pub(crate) fn make_again(&self, tables: &Tables) {
        let images = std::mem::take(&mut *self.images.lock());
        self.last_kept.store(images.last, SeqCst);
        let mut all = self.by_name.lock();
        for (number, (made, messages)) in images.by_number {
            let config = made.capacity.map_or(Config::default(), |capacity| {
                Config::default().bounded(capacity)
            });
            let owner = tables.0.restore_owner(&made.owner);
            let (name, mode, waiting) = (made.name.clone(), made.mode, messages.waiting.clone());
            let kept = KeptMail::new(number, made, messages);
            let post = Post::new(mode, config, self.quotas, Some(kept), owner);
            for message in waiting {
                post.bytes.fetch_add(message.len() + MESSAGE_HEAD, SeqCst);
                // It has no bound.
                let _ = post.sender.try_send(message);
            }
            all.insert(name, Arc::new(post));
        }
    }

    /// Shows changes that make the mailboxes that are kept as they are, for a snapshot.
    pub(crate) fn describe(&self, visit: &mut dyn FnMut(Mail)) {
        let all: Vec<_> = self.by_name.lock().values().cloned().collect();
        for kept in all.iter().filter_map(|post| post.kept.as_ref()) {
            kept.describe(visit);
        }
    }

    /// The quotas.
    #[must_use]
    pub const fn quotas(&self) -> MailboxQuotas {
        self.quotas
    }

    /// Up to `most` of the names of mailboxes behind this one, or of all names, in order. Takes
    /// O(log mailboxes + `most`) under the lock that finding a mailbox takes.
    pub fn names_behind(&self, name: Option<&[u8]>, most: usize) -> Vec<Box<[u8]>> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        let all = self.by_name.lock();
        let names = all.range::<[u8], _>((from, Bound::Unbounded));
        names.take(most).map(|(name, _)| name.clone()).collect()
    }

    /// How many mailboxes there are.
    pub fn count(&self) -> usize {
        self.by_name.lock().len()
    }

    /// How many mailboxes there are, and the bytes of their messages. O(mailboxes).
    pub fn held(&self) -> (usize, usize) {
        let all = self.by_name.lock();
        (all.len(), all.values().map(|post| post.bytes()).sum())
    }

    /// The mailbox of this name.
    pub fn get(&self, name: &[u8]) -> Option<Arc<Post>> {
        self.by_name.lock().get(name).cloned()
    }

    /// Drops the mailbox of this name with its messages, and returns their number. Its tables go to
    /// their heirs or are deleted.
    pub fn remove(&self, effects: &mut Effects<'_>, name: &[u8]) -> Option<usize> {
        let mut all = self.by_name.lock();
        let post = all.remove(name)?;
        if let Some(kept) = &post.kept {
            kept.drop_all(effects);
        }
        drop(all);
        let left = post.len();
        post.dropped.store(true, SeqCst);
        post.gone.notify_waiters();
        // If it is leased, the lease drops it.
        drop(post.receiver.lock().take());
        // The tables go to their heirs, outside the lock.
        let estate = post.estate.lock().take();
        if let Some(mut estate) = estate {
            estate.owner.end(effects);
            self.forward_transfers(effects);
        }
        Some(left)
    }

    /// Sends each mailbox the messages about the tables that it has got.
    pub(crate) fn forward_transfers(&self, effects: &mut Effects<'_>) {
        let all: Vec<_> = self.by_name.lock().values().cloned().collect();
        for post in all {
            post.forward_transfers(effects);
        }
    }
}

/// The tables of mailboxes stay as they are, for the next start.
impl Drop for Mailboxes {
    fn drop(&mut self) {
        for post in self.by_name.lock().values() {
            if let Some(estate) = post.estate.lock().take() {
                estate.owner.leave();
            }
        }
    }
}

impl Post {
    fn new(
        mode: Mode,
        config: Config,
        quotas: MailboxQuotas,
        kept: Option<KeptMail>,
        owner: Option<Owner>,
    ) -> Self {
        // The list of a mailbox that is kept has the bound.
        let unbounded = Config::default().mode(mode);
        let queue = kept.as_ref().map_or(config.mode(mode), |_| unbounded);
        let (sender, mailbox) = mailbox(queue);
        let receiver = Receiver {
            mailbox,
            returned: VecDeque::new(),
        };
        let estate = owner.map(|owner| Estate {
            owner,
            sender: sender.clone(),
            waiting: None,
        });
        Self {
            mode,
            config,
            kept,
            sender,
            receiver: Mutex::new(Some(receiver)),
            returned: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            bytes_limit: quotas.bytes,
            estate: Mutex::new(estate),
            dropped: AtomicBool::new(false),
            gone: Notify::new(),
            back: Notify::new(),
        }
    }

    /// Whether the log has it with its messages. Then all that is sent to it goes through
    /// [`send_kept`](Self::send_kept).
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Sends messages to a mailbox that is kept, as one step: after a crash all of them are there,
    /// or none. Returns how many there was room for, and what ended it if these are not all. To one
    /// that is not kept, it sends nothing.
    pub fn send_kept(
        &self,
        effects: &mut Effects<'_>,
        messages: &[Value],
    ) -> (usize, Option<NotSent>) {
        let Some(kept) = &self.kept else {
            return (0, Some(NotSent::NotKept));
        };
        let most = self.config.capacity().unwrap_or(usize::MAX);
        let mut why = None;
        let mut admit = |before: usize, message: &Value| {
            if before >= most {
                why = Some(NotSent::Full);
            } else if !self.reserve(message.len()) {
                why = Some(NotSent::TooManyBytes);
            }
            why.is_none()
        };
        // The queue has no bound.
        let mut send = |message| drop(self.sender.try_send(message));
        match kept.send(effects, messages, &mut admit, &mut send) {
            Some(sent) => (sent, why),
            None => (0, Some(NotSent::Dropped)),
        }
    }

    /// A sender. The messages of one sender keep their order.
    pub fn sender(&self) -> Sender<Value> {
        self.sender.clone()
    }

    /// The number of messages in it. Exact if no thread sends or receives meanwhile.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a count for statistics")]
    pub fn len(&self) -> usize {
        self.sender.len() + self.returned.load(SeqCst)
    }

    /// Whether it may own tables, which end with it.
    pub fn is_owner(&self) -> bool {
        self.estate.lock().is_some()
    }

    /// The bytes of the messages in it, each counted with what holds it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(SeqCst)
    }

    /// Takes room for a message of `length` bytes, which the caller sends next. Returns `false` if
    /// the bytes in the mailbox would be more than its quota.
    pub fn reserve(&self, length: usize) -> bool {
        let bytes = length.saturating_add(MESSAGE_HEAD);
        let before = self.bytes.fetch_add(bytes, SeqCst);
        let fits = before.saturating_add(bytes) <= self.bytes_limit;
        if !fits {
            self.bytes.fetch_sub(bytes, SeqCst);
        }
        fits
    }

    /// Gives the room for a message back: it was delivered, or not sent.
    pub fn release(&self, length: usize) {
        self.bytes.fetch_sub(length + MESSAGE_HEAD, SeqCst);
    }

    /// Whether it was dropped. Messages sent after that are lost.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(SeqCst)
    }

    /// The identifier by which the mailbox owns tables; `None` if it was dropped.
    pub fn pid(&self, tables: &Tables) -> Option<Pid> {
        let mut estate = self.estate.lock();
        // Under the lock that `remove` takes after it has set the flag.
        if self.is_dropped() {
            return None;
        }
        let estate = estate.get_or_insert_with(|| Estate {
            owner: tables.0.owner(),
            sender: self.sender(),
            waiting: None,
        });
        Some(estate.owner.pid().clone())
    }

    /// Sends this mailbox the messages about tables that it has got, as far as there is room. The
    /// others wait until a client receives again. The tables become public.
    pub fn forward_transfers(&self, effects: &mut Effects<'_>) {
        if let Some(estate) = &mut *self.estate.lock() {
            estate.forward_transfers(self, effects);
        }
    }

    /// Whether it has got tables of which it has no message yet.
    pub fn has_transfers(&self) -> bool {
        let estate = &mut *self.estate.lock();
        let waits =
            |estate: &mut Estate| estate.waiting.is_some() || !estate.owner.transfers().is_empty();
        estate.as_mut().is_some_and(waits)
    }

    /// The mailbox's counters, and whether its senders contend.
    pub fn stats(&self) -> (tremula_mailbox::Stats, bool) {
        (self.sender.stats(), self.sender.is_contended())
    }

    /// How many connections have a sender into it: those that have sent something.
    pub fn senders(&self) -> usize {
        let estate = usize::from(self.estate.lock().is_some());
        // Without the one that others are cloned from.
        self.sender.sender_count().saturating_sub(1 + estate)
    }

    /// Whether a connection is receiving from it.
    pub fn is_lent(&self) -> bool {
        self.receiver.lock().is_none()
    }

    /// The receiving end, unless another connection keeps it. A connection whose client already has
    /// its reply, as far as that client can see, gets a tenth of a second to give it back.
    pub async fn lease(self: &Arc<Self>) -> Option<Lease> {
        let deadline = Instant::now() + GRACE;
        loop {
            let back = self.back.notified();
            tokio::pin!(back);
            // No notification is missed from here on.
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
        let receiver = self.receiver.lock().take()?;
        Some(Lease {
            post: Arc::clone(self),
            receiver: Some(receiver),
            taken: Vec::new(),
        })
    }
}

impl Estate {
    fn forward_transfers(&mut self, post: &Post, effects: &mut Effects<'_>) {
        loop {
            let message = self.waiting.take().or_else(|| {
                let transfer = self.owner.transfers().try_recv().ok()?;
                // Its owner is not a connection, so everyone may use it. This fails if it is
                // deleted meanwhile.
                let _ = transfer.table.noting(effects).set_access(Access::Public);
                Some(message_of(transfer))
            });
            let Some(message) = message else { return };
            let length = message.len();
            if post.is_kept() {
                let message = [message];
                if post.send_kept(effects, &message).0 == 0 {
                    self.waiting = message.into_iter().next();
                    return;
                }
                continue;
            }
            if !post.reserve(length) {
                self.waiting = Some(message);
                return;
            }
            if let Err(TrySendError::Full(message)) = self.sender.try_send(message) {
                post.release(length);
                self.waiting = Some(message);
                return;
            }
        }
    }
}

/// Erlang's message, `{'ETS-TRANSFER', Table, FromPid, Data}`, as text.
fn message_of(transfer: Transfer) -> Value {
    let Transfer {
        table, from, data, ..
    } = transfer;
    let (name, from) = (Term::from(table.name()), Term::from(from));
    Value::from(format!("{{'ETS-TRANSFER',{name},{from},{data}}}").as_bytes())
}

/// One connection's lease of a mailbox's receiving end. Dropping it gives the end back, with the
/// messages that were not delivered in front.
pub struct Lease {
    post: Arc<Post>,
    /// `Some` until the lease is dropped.
    receiver: Option<Receiver>,
    /// Messages received and not delivered yet.
    taken: Vec<Value>,
}

impl Lease {
    /// Waits for messages and takes up to `count`; none if the mailbox is dropped first.
    ///
    /// Cancel-safe.
    pub async fn receive(&mut self, count: usize) {
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
        // No notification is missed from here on; an earlier one shows in the flag.
        gone.as_mut().enable();
        if !self.post.is_dropped() {
            tokio::select! {
                biased;
                _ = receiver.mailbox.recv_many_async(&mut self.taken, count) => (),
                () = gone => (),
            }
        }
    }

    /// Takes up to `count` more messages that are there, and returns how many.
    pub fn receive_more(&mut self, count: usize) -> usize {
        let Some(receiver) = &mut self.receiver else {
            return 0;
        };
        let before = self.taken.len();
        let waiting = receiver.returned.len().min(count);
        self.taken.extend(receiver.returned.drain(..waiting));
        self.post.returned.fetch_sub(waiting, SeqCst);
        let left = count - waiting;
        self.taken.extend(receiver.mailbox.try_iter().take(left));
        self.taken.len() - before
    }

    /// The messages received and not delivered yet.
    pub fn taken(&self) -> &[Value] {
        &self.taken
    }

    /// Keeps the first `count` taken messages for delivery; the others go back.
    pub fn keep(&mut self, count: usize) {
        let others = self.taken.split_off(count.min(self.taken.len()));
        self.give_back(others);
    }

    /// Returns the taken messages, which the client has received, to be dropped.
    pub(crate) fn delivered(mut self, effects: &mut Effects<'_>) -> Vec<Value> {
        if let Some(kept) = &self.post.kept {
            kept.delivered(effects, self.taken.len());
        }
        let bytes: usize = self.taken.iter().map(|one| one.len() + MESSAGE_HEAD).sum();
        self.post.bytes.fetch_sub(bytes, SeqCst);
        std::mem::take(&mut self.taken)
    }

    /// Whether dropping this drops many messages, because the mailbox was dropped.
    #[must_use]
    pub fn holds_messages(&self) -> bool {
        self.post.is_dropped() && self.post.len() > 0
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
        let mut place = self.post.receiver.lock();
        // Under the lock that `remove` takes after it has set the flag: one of the two drops it.
        if !self.post.is_dropped() {
            *place = self.receiver.take();
        }
        self.post.back.notify_one();
    }
}
