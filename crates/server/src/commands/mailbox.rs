//! The commands of mailboxes.

use super::{Context, Failure, Next, Outcome, Step, Work, begin};
use crate::apart::MANY;
use crate::resp::{Arguments, number};
use crate::users::User;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tremula_mailbox::{Config, Mode, Sender, TrySendError};
use tremula_store::Value;
use tremula_store::{CannotAdd, NotSent, Post};

/// A `MAILBOX.RECV`, which the connection runs after all earlier commands have been answered.
pub(crate) struct Receive {
    pub(crate) post: Arc<Post>,
    /// The most messages to take, and whether the reply is a list.
    pub(crate) count: usize,
    pub(crate) as_list: bool,
    /// How long to wait; `None` means for ever.
    pub(crate) timeout: Option<Duration>,
    /// For the errors.
    pub(crate) name: Box<[u8]>,
}

/// A connection's own sender into a mailbox.
struct Outgoing {
    post: Arc<Post>,
    sender: Sender<Value>,
}

/// A connection's senders, by the names of their mailboxes. Messages that go through the same
/// sender keep their order.
///
/// Senders to dropped mailboxes are removed before the number of senders has doubled. So a
/// connection keeps at most as many of them as of others, or [`FEW_SENDERS`].
#[derive(Default)]
pub(crate) struct Senders {
    by_name: HashMap<Box<[u8]>, Outgoing>,
    /// The number of senders from which those to dropped mailboxes are removed.
    sweep_above: usize,
    /// The mailboxes that the connection has made; some may be dropped.
    made: Vec<Weak<Post>>,
    /// The number of these from which the dropped ones are removed.
    sweep_made_from: usize,
}

/// Up to this number of senders, each of about a kilobyte, none is removed.
const FEW_SENDERS: usize = 16;

impl Outgoing {
    /// Sends messages one by one. Returns how many, and why not all.
    fn send<'a>(&self, messages: impl Iterator<Item = &'a [u8]>) -> (usize, Option<NotSent>) {
        let mut taken = 0;
        for message in messages {
            if !self.post.reserve(message.len()) {
                return (taken, Some(NotSent::TooManyBytes));
            }
            match self.sender.try_send(Value::from(message)) {
                Ok(()) => taken += 1,
                Err(TrySendError::Full(_)) => {
                    self.post.release(message.len());
                    return (taken, Some(NotSent::Full));
                }
                Err(TrySendError::Closed(_)) => return (taken, Some(NotSent::Dropped)),
            }
        }
        (taken, None)
    }
}

impl Senders {
    /// The sender to the mailbox of this name. `find` finds the mailbox if it is unknown or
    /// dropped.
    fn get(
        &mut self,
        name: &[u8],
        find: impl FnOnce() -> Result<Arc<Post>, Failure>,
    ) -> Result<&Outgoing, Failure> {
        let known = self.by_name.get(name);
        if known.is_none_or(|outgoing| outgoing.post.is_dropped()) {
            self.by_name.remove(name);
            let post = find()?;
            self.sweep();
            let sender = post.sender();
            self.by_name.insert(name.into(), Outgoing { post, sender });
        }
        self.by_name.get(name).ok_or_else(|| unknown(name))
    }

    /// The number of senders.
    pub(super) fn count(&self) -> usize {
        self.by_name.len()
    }

    /// How many mailboxes the connection has made and nobody has dropped; dropped ones may count if
    /// there are fewer than `limit` with them.
    fn made(&mut self, limit: usize) -> usize {
        // A dropped one keeps some memory as long as it is listed here.
        if self.made.len() >= limit.min(self.sweep_made_from.max(FEW_SENDERS)) {
            let is_there = |post: Arc<Post>| !post.is_dropped();
            self.made
                .retain(|post| post.upgrade().is_some_and(is_there));
            self.sweep_made_from = 2 * self.made.len();
        }
        self.made.len()
    }

    /// Removes the senders whose mailboxes were dropped, if their number has doubled since the last
    /// time.
    fn sweep(&mut self) {
        if self.by_name.len() >= self.sweep_above.max(FEW_SENDERS) {
            self.by_name
                .retain(|_, outgoing| !outgoing.post.is_dropped());
            self.sweep_above = 2 * self.by_name.len();
        }
    }
}

/// `MAILBOX.NEW name [MODE mode] [CAPACITY n] [DURABLE]`.
pub(super) fn new(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(1);
    let quotas = &context.server.limits.quotas;
    let most = quotas.max_mailbox_messages;
    let (mut mode, mut config) = (Mode::default(), Config::default().bounded(most));
    let mut rest = arguments.skip(2);
    let mut is_kept = false;
    while let Some(option) = rest.next() {
        if option.eq_ignore_ascii_case(b"durable") {
            is_kept = true;
            continue;
        }
        let value = rest.next().ok_or(Failure::SYNTAX)?;
        if option.eq_ignore_ascii_case(b"mode") {
            let known = std::str::from_utf8(value).ok();
            let known = known.and_then(|mode| mode.parse().ok());
            mode = known.ok_or_else(|| {
                let modes = "'; there are auto, on_heap and off_heap";
                Failure::quoting("ERR there is no mailbox mode '", value, modes)
            })?;
        } else if option.eq_ignore_ascii_case(b"capacity") {
            let capacity = number::parse(value).and_then(|number| usize::try_from(number).ok());
            match capacity {
                Some(capacity) if capacity > most => {
                    let limit = format!(
                        "' is more than {most} messages, the limit of --max-mailbox-messages"
                    );
                    return Err(Failure::quoting("ERR capacity '", value, &limit));
                }
                Some(capacity) if capacity > 0 => config = config.bounded(capacity),
                _ => {
                    let wanted = "' is not a number of messages, 1 or more";
                    return Err(Failure::quoting("ERR capacity '", value, wanted));
                }
            }
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    if is_kept && context.server.persistence.is_none() {
        return Err(Failure::Text(
            "ERR no mailbox can be durable, because everything is only in memory; start with --dir, and without --memory-only",
        ));
    }
    let too_many = |limit: usize, flag: &str, whose: &str| {
        let text = format!(
            "ERR there are {limit} mailboxes{whose}, the limit of {flag}; MAILBOX.DROP makes room"
        );
        Err(Failure::Owned(text.into_bytes()))
    };
    let limit = quotas.max_client_mailboxes;
    if context.session.senders.made(limit) >= limit {
        return too_many(limit, "--max-client-mailboxes", " of this client");
    }
    let store = &context.server.store;
    let made = if is_kept {
        let made = (name, mode, config);
        context.commit(|effects| store.mailboxes().add_kept(effects, store.tables(), made))?
    } else {
        store.mailboxes().add(name, mode, config)
    };
    match made {
        Ok(post) => context.session.senders.made.push(Arc::downgrade(&post)),
        Err(CannotAdd::Exists) => {
            let after = "' already";
            return Err(Failure::quoting("ERR there is a mailbox '", name, after));
        }
        Err(CannotAdd::TooMany) => {
            return too_many(quotas.max_mailboxes, "--max-mailboxes", "");
        }
    }
    context.reply.ok();
    Ok(Next::Reply)
}

/// `MAILBOX.SEND name message [message ...]`.
///
/// A bounded mailbox takes the first messages that it has room for. If these are not all, an error
/// says how many it has taken. A mailbox that is kept takes them as one step.
pub(super) fn send(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(1);
    let messages = arguments.skip(2);
    let given = messages.len();
    let mailboxes = context.server.store.mailboxes();
    let found = || mailboxes.get(name).ok_or_else(|| unknown(name));
    let outgoing = context.session.senders.get(name, found)?;
    let post = Arc::clone(&outgoing.post);
    let (taken, why) = if post.is_kept() {
        let messages: Vec<Value> = messages.map(Value::from).collect();
        context.commit(|effects| post.send_kept(effects, &messages))?
    } else {
        outgoing.send(messages)
    };
    let Some(why) = why else {
        context.reply.count(taken);
        return Ok(Next::Reply);
    };
    let (code, after) = match why {
        NotSent::TooManyBytes => {
            let limit = mailboxes.quotas().bytes;
            let after = format!("full at {limit} bytes, the limit of --max-mailbox-bytes");
            (
                "FULL mailbox '",
                format!("' is {after}: {taken} of {given} were taken"),
            )
        }
        NotSent::Full => {
            let capacity = post.config.capacity().unwrap_or(usize::MAX);
            let after = format!("' is full at {capacity} messages: {taken} of {given} were taken");
            ("FULL mailbox '", after)
        }
        NotSent::Dropped | NotSent::NotKept => {
            let after = format!("' was dropped: {taken} of {given} messages were taken");
            ("NOMAILBOX mailbox '", after)
        }
    };
    Err(Failure::quoting(code, name, &after))
}

/// `MAILBOX.RECV name [COUNT n] [BLOCK milliseconds]`.
///
/// The connection does the receiving, because it may have to wait.
pub(super) fn recv(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(1);
    let (mut count, mut as_list) = (1, false);
    let mut timeout = Some(Duration::ZERO);
    let mut rest = arguments.skip(2);
    while let Some(option) = rest.next() {
        let value = rest.next().ok_or(Failure::SYNTAX)?;
        let number = number::parse(value).and_then(|number| u64::try_from(number).ok());
        if option.eq_ignore_ascii_case(b"count") {
            as_list = true;
            count = number
                .and_then(|number| usize::try_from(number).ok())
                .filter(|count| *count > 0)
                .ok_or_else(|| {
                    let wanted = "' is not a number of messages, 1 or more";
                    Failure::quoting("ERR count '", value, wanted)
                })?;
        } else if option.eq_ignore_ascii_case(b"block") {
            let milliseconds = number.ok_or_else(|| {
                let wanted = "' is not a number of milliseconds, 0 (for ever) or more";
                Failure::quoting("ERR timeout '", value, wanted)
            })?;
            timeout = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let post = find(context, name)?;
    if post.has_transfers() {
        // If the log takes nothing now, they go on waiting.
        let _ = context.commit(|effects| post.forward_transfers(effects));
    }
    Ok(Next::Receive(Receive {
        post,
        count,
        as_list,
        timeout,
        name: name.into(),
    }))
}

pub(super) fn len(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let post = find(context, arguments.get(1))?;
    context.reply.count(post.len());
    Ok(Next::Reply)
}

pub(super) fn info(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let post = find(context, arguments.get(1))?;
    let (stats, contended) = post.stats();
    let figures = [
        ("length", post.len() as u64),
        ("bytes", post.bytes() as u64),
        ("capacity", post.config.capacity().unwrap_or(0) as u64),
        ("durable", post.is_kept().into()),
        ("receiving", post.is_lent().into()),
        ("contended", contended.into()),
        ("contended_sends", stats.contended_sends),
        ("uncontended_sends", stats.uncontended_sends),
        ("installs", stats.installs.into()),
        ("removals", stats.removals.into()),
        ("growths", stats.growths.into()),
        ("shrinks", stats.shrinks.into()),
        ("flushes", stats.flushes),
        ("flushed", stats.flushed),
    ];
    context.reply.map(1 + figures.len());
    context.reply.bulk(b"mode");
    context.reply.bulk(post.mode.name().as_bytes());
    for (name, value) in figures {
        context.reply.bulk(name.as_bytes());
        context
            .reply
            .integer(i64::try_from(value).unwrap_or(i64::MAX));
    }
    Ok(Next::Reply)
}

/// Names that `MAILBOX.LIST` copies at once, under the lock that every command needs to find its
/// mailbox.
const PART: usize = 64;

/// `MAILBOX.LIST`: the names of all mailboxes. In parts, so that mailboxes which come or go
/// meanwhile may be in the list or not.
pub(super) fn list(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let names = Names {
        user: context.session.identity.user().cloned(),
        last: None,
        seen: Vec::new(),
        written: None,
    };
    begin(context, arguments, names)
}

/// The list of names on its way.
struct Names {
    user: Option<Arc<User>>,
    /// The last name of the last part.
    last: Option<Box<[u8]>>,
    /// The names that the user sees.
    seen: Vec<Box<[u8]>>,
    /// How many are written, once all have been seen.
    written: Option<usize>,
}

impl Work for Names {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        let mailboxes = context.server.store.mailboxes();
        while self.written.is_none() {
            let part = mailboxes.names_behind(self.last.as_deref(), PART);
            if part.len() < PART {
                self.written = Some(0);
            }
            self.last = part.last().cloned();
            let (user, command) = (self.user.as_deref(), context.command);
            let sees = |name: &[u8]| user.is_some_and(|user| user.may_use_mailbox(command, name));
            self.seen.extend(part.into_iter().filter(|name| sees(name)));
            if self.written.is_some() {
                context.reply.array(self.seen.len());
            }
            if context.turn.spend(PART) {
                return Ok(Step::Rest);
            }
        }
        for name in &self.seen[self.written.unwrap_or(0)..] {
            context.reply.bulk(name);
            self.written = self.written.map(|written| written + 1);
            if context.turn.spend(1) {
                return Ok(Step::Rest);
            }
        }
        Ok(Step::Done)
    }
}

/// `MAILBOX.DROP name`: returns the number of messages that were in the mailbox.
pub(super) fn drop(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let name = arguments.get(1);
    let post = find(context, name)?;
    if !context.is_apart && (post.len() >= MANY || post.is_owner()) {
        return Ok(Next::Apart);
    }
    let mailboxes = context.server.store.mailboxes();
    let left = context.commit(|effects| mailboxes.remove(effects, name))?;
    context.reply.count(left.ok_or_else(|| unknown(name))?);
    Ok(Next::Reply)
}

fn find(context: &Context<'_>, name: &[u8]) -> Result<Arc<Post>, Failure> {
    let post = context.server.store.mailboxes().get(name);
    post.ok_or_else(|| unknown(name))
}

fn unknown(name: &[u8]) -> Failure {
    let way_out = "'; MAILBOX.NEW makes one";
    Failure::quoting("NOMAILBOX there is no mailbox '", name, way_out)
}

impl Receive {
    /// The error of a second receiver.
    pub(crate) fn busy(&self) -> Failure {
        let after = "' has a receiver already; it serves one at a time";
        Failure::quoting("BUSY mailbox '", &self.name, after)
    }

    /// The error of a receiver whose mailbox was dropped while it waited.
    pub(crate) fn dropped(&self) -> Failure {
        Failure::quoting("NOMAILBOX mailbox '", &self.name, "' was dropped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_store::{Engine, Store, StoreConfig};

    /// Mailboxes come and go, and some stay. Without regular removal of the senders to dropped
    /// mailboxes there would be far more senders than mailboxes.
    #[test]
    fn a_connection_has_about_as_many_senders_as_there_are_mailboxes() {
        let store = Store::new(&StoreConfig::new(Engine::Aspen)).expect("a store");
        let (mailboxes, mut senders) = (store.mailboxes(), Senders::default());
        let mut staying = 0;
        for number in 0..1_000 {
            let name = format!("m{number}").into_bytes();
            assert!(
                mailboxes
                    .add(&name, Mode::default(), Config::default())
                    .is_ok()
            );
            let found = || mailboxes.get(&name).ok_or_else(|| unknown(&name));
            assert!(senders.get(&name, found).is_ok());
            if number % 20 == 0 {
                staying += 1;
            } else {
                let removed = store.commit(|effects| mailboxes.remove(effects, &name));
                assert!(matches!(removed, Ok(Some(0))));
            }
            let kept = senders.by_name.len();
            assert!(kept <= 2 * staying + FEW_SENDERS, "{kept} for {staying}");
        }
    }
}
