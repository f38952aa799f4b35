//! `TXN`: conditions, and the commands that run if they hold, or if not, as one atomic step.

use super::atomic::{self, Batch};
use super::ordered::{held_bounds, interval_of};
use super::{Context, Failure, Next, Outcome, check_user, find, lookup_full};
use crate::resp::{Arguments, KeptRequests, Reply, number};
use crate::users::Reason;
use std::ops::Bound;
use tremula_store::{Begun, Databases, Direction, Hold, Key, KeyRange, Version};

/// What must be so.
enum Condition<'a> {
    /// The value under a key has these bytes.
    Value(&'a [u8], &'a [u8]),
    /// It has this version; if that is `None`, there is no such key.
    Version(&'a [u8], Option<Version>),
    /// There is such a key, or there is not.
    Present(&'a [u8], bool),
    /// There is no key between two bounds.
    Empty(Bound<Key>, Bound<Key>),
}

impl Condition<'_> {
    /// What of a database it looks at.
    fn hold(&self, database: usize) -> Hold {
        match self {
            Self::Value(key, _) | Self::Version(key, _) | Self::Present(key, _) => {
                Hold::key(database, Key::from(*key))
            }
            Self::Empty(low, high) => Hold {
                database,
                low: low.clone(),
                high: high.clone(),
            },
        }
    }

    fn holds(&self, databases: Databases<'_>, number: usize) -> bool {
        let database = databases.database(number);
        match self {
            Self::Value(key, expected) => {
                let mut is_so = false;
                let values = databases.values(number);
                values.read(&Key::from(*key), |length| 0..length, &mut |_, part| {
                    is_so = part.bytes() == *expected
                });
                is_so
            }
            Self::Version(key, expected) => {
                let mut found = None;
                database.get_with(&Key::from(*key), &mut |value| found = Some(value.version()));
                found == *expected
            }
            Self::Present(key, expected) => database.contains_key(&Key::from(*key)) == *expected,
            Self::Empty(low, high) => {
                let mut some = Vec::new();
                let range = KeyRange::new(low.as_ref(), high.as_ref());
                database.scan(range, Direction::Ascending, 1, &mut some);
                some.is_empty()
            }
        }
    }
}

/// A request, as it was read.
struct Request<'a> {
    conditions: Vec<Condition<'a>>,
    /// The commands that run if all conditions hold, and if not.
    branches: [Batch; 2],
}

/// `TXN [IF condition …] THEN count word … [count word …] … [ELSE count word … …]`.
pub(super) fn txn(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    carry_out(context, arguments, None)
}

/// The same, for a client that has given it an id or none.
pub(super) fn carry_out(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    id: Option<&Begun<'_>>,
) -> Outcome {
    let request = read(context, arguments)?;
    let [then, otherwise] = &request.branches;
    if !context.is_apart && (then.is_long() || otherwise.is_long()) {
        return Ok(Next::Apart);
    }
    let number = context.session.database;
    let conditions = request.conditions.iter();
    let mut holds: Vec<Hold> = conditions.map(|condition| condition.hold(number)).collect();
    // One branch runs.
    let changes = [then, otherwise].map(|batch| batch.reach(number, &mut holds));
    let changes = changes.into_iter().max().unwrap_or_default();
    let decide = |databases: Databases<'_>| {
        let mut conditions = request.conditions.iter();
        let hold = conditions.all(|condition| condition.holds(databases, number));
        if hold { then } else { otherwise }
    };
    let begin = |reply: &mut Reply, branch| {
        reply.array(2);
        reply.integer(std::ptr::eq(branch, then).into());
    };
    let whole = (&holds[..], changes);
    match id {
        None => {
            let decide = |databases: Databases<'_>| Some(decide(databases));
            atomic::run(context, whole, decide, |context, branch| {
                begin(context.reply, branch);
            })
        }
        Some(id) => atomic::run_once(context, id, whole, decide, |reply, branch| {
            begin(reply, branch);
            reply.array(branch.len());
        }),
    }
}

fn read<'a>(context: &mut Context<'_>, arguments: Arguments<'a>) -> Result<Request<'a>, Failure> {
    let is = |at: usize, word: &str| {
        at < arguments.len() && arguments.get(at).eq_ignore_ascii_case(word.as_bytes())
    };
    let mut at = 1;
    let mut conditions = Vec::new();
    if is(at, "if") {
        at += 1;
        while at < arguments.len() && !is(at, "then") {
            let (condition, words) = read_condition(context, arguments, at)?;
            conditions.push(condition);
            at += words;
        }
    }
    if !is(at, "then") {
        return Err(expected("THEN", arguments, at));
    }
    let mut branches = <[Batch; 2]>::default();
    at = read_commands(context, arguments, at + 1, &mut branches[0])?;
    if is(at, "else") {
        at = read_commands(context, arguments, at + 1, &mut branches[1])?;
    }
    if at < arguments.len() {
        return Err(expected(
            "the number of words of a command, or ELSE",
            arguments,
            at,
        ));
    }
    Ok(Request {
        conditions,
        branches,
    })
}

fn expected(what: &str, arguments: Arguments<'_>, at: usize) -> Failure {
    if at < arguments.len() {
        Failure::quoting(
            &format!("ERR TXN: {what} expected, not '"),
            arguments.get(at),
            "'",
        )
    } else {
        Failure::Owned(format!("ERR TXN: {what} expected at the end").into_bytes())
    }
}

/// Reads a condition. Returns how many words it has.
fn read_condition<'a>(
    context: &mut Context<'_>,
    arguments: Arguments<'a>,
    at: usize,
) -> Result<(Condition<'a>, usize), Failure> {
    let word = arguments.get(at).to_ascii_lowercase();
    let words = match &word[..] {
        b"value" | b"version" | b"empty" => 3,
        b"present" | b"absent" => 2,
        _ => {
            let what = "VALUE, VERSION, PRESENT, ABSENT, EMPTY or THEN";
            return Err(expected(what, arguments, at));
        }
    };
    if at + words > arguments.len() {
        let last = arguments.len() - 1;
        return Err(Failure::quoting(
            "ERR TXN: a condition ends early, with '",
            arguments.get(last),
            "'",
        ));
    }
    let (one, other) = (arguments.get(at + 1), arguments.get(at + 2));
    let condition = match &word[..] {
        b"value" => Condition::Value(one, other),
        b"version" => Condition::Version(one, read_version(other)?),
        b"empty" => {
            let bounds = arguments.part(at..at + words);
            let Some((low, high)) = held_bounds(bounds) else {
                return Err(Failure::BOUND);
            };
            check_range(context, bounds)?;
            return Ok((Condition::Empty(low, high), words));
        }
        _ => Condition::Present(one, word == b"present"),
    };
    check_key(context, one)?;
    Ok((condition, words))
}

/// A version as `GETV` writes it; 0 stands for no key.
fn read_version(text: &[u8]) -> Result<Option<Version>, Failure> {
    let number = number::parse(text).and_then(|number| u64::try_from(number).ok());
    let version = number.and_then(Version::new);
    let version = version.ok_or_else(|| Failure::quoting("ERR TXN: no version is '", text, "'"))?;
    Ok(Some(version).filter(|version| *version != Version::NONE))
}

/// Reads commands up to the end or `ELSE`. Returns where that is.
fn read_commands(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    mut at: usize,
    batch: &mut Batch,
) -> Result<usize, Failure> {
    let most = context.server.limits.transactions.max_queued;
    while at < arguments.len() && !arguments.get(at).eq_ignore_ascii_case(b"else") {
        let count = number::parse(arguments.get(at)).and_then(|count| usize::try_from(count).ok());
        let left = arguments.len() - at - 1;
        let Some(count) = count.filter(|count| (1..=left).contains(count)) else {
            let what = format!("the number of words of a command, 1 to {left},");
            return Err(expected(&what, arguments, at));
        };
        let request = arguments.part(at + 1..at + 1 + count);
        let command = find(request)?;
        atomic::check(command)?;
        if !context
            .session
            .identity
            .may_do_everything(&context.server.users)
        {
            check_user(context.session, command, request)?;
        }
        context.server.denied.check(command)?;
        if batch.len() >= most {
            let text = format!("ERR a transaction has at most {most} commands (--max-queued)");
            return Err(Failure::Owned(text.into_bytes()));
        }
        batch.push(command, request.skip(0));
        at += 1 + count;
    }
    Ok(at)
}

/// Whether the user may read this key.
fn check_key(context: &mut Context<'_>, key: &[u8]) -> Result<(), Failure> {
    if context
        .session
        .identity
        .may_do_everything(&context.server.users)
    {
        return Ok(());
    }
    let Some(get) = lookup_full(b"get") else {
        return Err(Failure::STOPPING);
    };
    let mut request = KeptRequests::default();
    request.push([&b"get"[..], key]);
    check_user(context.session, get, request.get(0))
}

/// Whether the user may read every key between two bounds.
fn check_range(context: &mut Context<'_>, bounds: Arguments<'_>) -> Result<(), Failure> {
    if context
        .session
        .identity
        .may_do_everything(&context.server.users)
    {
        return Ok(());
    }
    let user = context.session.identity.user();
    let open = interval_of(bounds).zip(user).zip(lookup_full(b"range"));
    if open.is_some_and(|((interval, user), range)| user.sees_all_in(range, &interval)) {
        return Ok(());
    }
    Err(Failure::Denied(Reason::Key, bounds.get(1).to_vec()))
}
