//! The parameters of `CONFIG`: the settings under Redis's names, and how they change while the
//! server runs.
//!
//! [`ALIVE`] has a row for each parameter that can change. All other settings of `tremula serve`
//! are parameters too, with the value that they had at the start, without a row: a new flag is
//! there by itself. The form of a value, and the errors, are those of Redis's configuration.

use super::forms::{Class, LEAST_OUTPUT, memory, output_limits};
use crate::descriptors;
use crate::limits::{self, ChannelsOfUsers, MOST_BYTES, MOST_SLOWLOG};
use crate::logs::{self, Level};
use crate::notices;
use crate::persist::Durability;
use crate::server::Shared;
use crate::users::DEFAULT;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use tremula_store::{DATABASES, Policy};

/// What a parameter's value is, in its form and its bounds.
enum Kind {
    /// Bytes: `100`, `100kb`, and as in Redis `100k` for 100,000.
    Memory(u64, u64),
    Number(i64, i64),
    Switch,
    Word(&'static [&'static str]),
    Text,
}

/// A value that has the right form.
#[derive(Clone, Copy)]
enum Given<'a> {
    /// Also a switch, as 0 or 1.
    Number(i64),
    Text(&'a str),
}

impl Given<'_> {
    fn number(self) -> u64 {
        match self {
            Self::Number(number) => u64::try_from(number).unwrap_or(0),
            Self::Text(_) => 0,
        }
    }

    fn size(self) -> usize {
        usize::try_from(self.number()).unwrap_or(usize::MAX)
    }

    fn text(&self) -> &str {
        match self {
            Self::Number(_) => "",
            Self::Text(text) => text,
        }
    }
}

/// A parameter that can change while the server runs.
pub(crate) struct Parameter {
    /// Redis's name, if Redis has it.
    pub(crate) name: &'static str,
    /// The setting that it is; empty if no flag has this form.
    pub(crate) flag: &'static str,
    kind: Kind,
    get: fn(&Shared) -> String,
    set: fn(&Shared, Given<'_>) -> Result<(), String>,
}

const YEAR: i64 = 365 * 24 * 60 * 60;

/// Redis's words for the levels of the log, and ours.
const LEVELS: [(&str, Level); 5] = [
    ("debug", Level::Debug),
    ("verbose", Level::Info),
    ("notice", Level::Warn),
    ("warning", Level::Error),
    ("trace", Level::Trace),
];

const POLICIES: &[&str] = &[
    Policy::VolatileLru.name(),
    Policy::VolatileLfu.name(),
    Policy::VolatileRandom.name(),
    Policy::VolatileTtl.name(),
    Policy::Lru.name(),
    Policy::Lfu.name(),
    Policy::Random.name(),
    Policy::NoEviction.name(),
];

/// The parameters that can change.
static ALIVE: &[Parameter] = &[
    Parameter {
        name: "maxmemory",
        flag: "max-memory",
        kind: Kind::Memory(0, MOST_BYTES.0 as u64),
        get: |server| server.memory.limit().unwrap_or(0).to_string(),
        set: |server, given| {
            let limit = given.number();
            server.memory.set_limit(limit);
            // For a policy that is chosen later.
            let places = limits::places((limit > 0).then_some(limit));
            server.store.eviction().set_places(places);
            Ok(())
        },
    },
    Parameter {
        name: "maxmemory-policy",
        flag: "max-memory-policy",
        kind: Kind::Word(POLICIES),
        get: |server| server.store.eviction().policy().to_string(),
        set: |server, given| {
            server.store.eviction().set_policy(given.text().parse()?);
            Ok(())
        },
    },
    Parameter {
        name: "appendfsync",
        flag: "durability",
        kind: Kind::Word(&["always", "everysec", "no"]),
        get: |server| {
            let persistence = server.persistence.as_ref();
            let chosen = persistence.map(|persistence| persistence.durability());
            chosen.unwrap_or_default().to_string()
        },
        set: |server, given| match &server.persistence {
            Some(persistence) => {
                persistence.set_durability(given.text().parse()?);
                Ok(())
            }
            // As it is: clients set what they have read.
            None if given.text() == Durability::default().name() => Ok(()),
            None => {
                Err("keys are only in memory; start with --dir, without --memory-only".to_owned())
            }
        },
    },
    Parameter {
        name: "maxmemory-samples",
        flag: "max-memory-samples",
        kind: Kind::Number(1, 64),
        get: |server| server.store.eviction().samples().to_string(),
        set: |server, given| {
            server.store.eviction().set_samples(given.size());
            Ok(())
        },
    },
    Parameter {
        name: "maxmemory-clients",
        flag: "max-client-buffers",
        kind: Kind::Memory(0, MOST_BYTES.0 as u64),
        get: |server| server.clients.buffer_limit().to_string(),
        set: |server, given| {
            server.clients.set_buffer_limit(given.size());
            Ok(())
        },
    },
    Parameter {
        name: "maxclients",
        flag: "max-clients",
        kind: Kind::Number(1, 1_000_000),
        get: |server| server.live.max_clients.get().to_string(),
        set: |server, given| {
            let threads = server.threads.count();
            descriptors::allow(&server.limits, threads, given.size()).map_err(|most| {
                format!(
                    "The operating system is not able to handle the specified number of clients, \
                     try with {most}"
                )
            })?;
            server.live.max_clients.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "timeout",
        flag: "timeout",
        kind: Kind::Number(0, YEAR),
        get: |server| server.live.timeout.get().to_string(),
        set: |server, given| {
            server.live.timeout.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "tcp-keepalive",
        flag: "tcp-keepalive",
        kind: Kind::Number(0, 32_767),
        get: |server| server.live.tcp_keepalive.get().to_string(),
        set: |server, given| {
            server.live.tcp_keepalive.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "protected-mode",
        flag: "protected-mode",
        kind: Kind::Switch,
        get: |server| yes_or_no(server.protected_mode.load(Relaxed)).to_owned(),
        set: |server, given| {
            server.protected_mode.store(given.number() == 1, Relaxed);
            Ok(())
        },
    },
    Parameter {
        name: "client-output-buffer-limit",
        flag: "",
        kind: Kind::Text,
        get: |server| {
            let hard = server.live.max_output_buffer.bytes();
            let hard = if hard >= MOST_BYTES.0 { 0 } else { hard };
            let soft = server.clients.soft_limit();
            // Without a soft limit its time means nothing.
            let seconds = match soft {
                0 => 0,
                _ => server.live.soft_output_seconds.get(),
            };
            let live = &server.live;
            let of_subscribers = (
                live.max_pubsub_buffer.get(),
                live.soft_pubsub_buffer.get(),
                live.soft_pubsub_seconds.get(),
            );
            let (most, much, time) = of_subscribers;
            format!("normal {hard} {soft} {seconds} pubsub {most} {much} {time}")
        },
        set: |server, given| {
            let live = &server.live;
            for (class, (hard, soft, seconds)) in output_limits(given.text())? {
                match class {
                    Class::Normal => {
                        live.max_output_buffer.set(match hard {
                            0 => MOST_BYTES.0 as u64,
                            hard => hard,
                        });
                        let soft = usize::try_from(soft).unwrap_or(usize::MAX);
                        server.clients.set_soft_limit(soft);
                        live.soft_output_seconds.set(seconds);
                    }
                    Class::Subscriber => {
                        live.max_pubsub_buffer.set(hard);
                        live.soft_pubsub_buffer.set(soft);
                        live.soft_pubsub_seconds.set(seconds);
                    }
                }
            }
            Ok(())
        },
    },
    Parameter {
        name: "max-output-buffer",
        flag: "max-output-buffer",
        kind: Kind::Memory(1 << 10, MOST_BYTES.0 as u64),
        get: |server| server.live.max_output_buffer.get().to_string(),
        set: |server, given| {
            server.live.max_output_buffer.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "soft-output-buffer",
        flag: "soft-output-buffer",
        kind: Kind::Memory(0, MOST_BYTES.0 as u64),
        get: |server| server.clients.soft_limit().to_string(),
        set: |server, given| {
            server.clients.set_soft_limit(given.size());
            Ok(())
        },
    },
    Parameter {
        name: "soft-output-seconds",
        flag: "soft-output-seconds",
        kind: Kind::Number(1, YEAR),
        get: |server| server.live.soft_output_seconds.get().to_string(),
        set: |server, given| {
            server.live.soft_output_seconds.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "notify-keyspace-events",
        flag: "notify-keyspace-events",
        kind: Kind::Text,
        get: |server| server.live.notices().to_string(),
        set: |server, given| {
            notices::choose(server, given.text().parse()?);
            Ok(())
        },
    },
    Parameter {
        name: "max-pubsub-buffer",
        flag: "max-pubsub-buffer",
        kind: Kind::Memory(0, MOST_BYTES.0 as u64),
        get: |server| server.live.max_pubsub_buffer.get().to_string(),
        set: |server, given| {
            let bytes = given.number();
            if (1..LEAST_OUTPUT).contains(&bytes) {
                return Err(format!("argument must be 0 or at least {LEAST_OUTPUT}"));
            }
            server.live.max_pubsub_buffer.set(bytes);
            Ok(())
        },
    },
    Parameter {
        name: "soft-pubsub-buffer",
        flag: "soft-pubsub-buffer",
        kind: Kind::Memory(0, MOST_BYTES.0 as u64),
        get: |server| server.live.soft_pubsub_buffer.get().to_string(),
        set: |server, given| {
            server.live.soft_pubsub_buffer.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "soft-pubsub-seconds",
        flag: "soft-pubsub-seconds",
        kind: Kind::Number(1, YEAR),
        get: |server| server.live.soft_pubsub_seconds.get().to_string(),
        set: |server, given| {
            server.live.soft_pubsub_seconds.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "client-query-buffer-limit",
        flag: "max-query-buffer",
        kind: Kind::Memory(1 << 10, MOST_BYTES.0 as u64),
        get: |server| server.live.max_query_buffer.get().to_string(),
        set: |server, given| {
            server.live.max_query_buffer.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "proto-max-bulk-len",
        flag: "max-argument",
        kind: Kind::Memory(1 << 6, MOST_BYTES.0 as u64),
        get: |server| server.live.max_argument.get().to_string(),
        set: |server, given| {
            server.live.max_argument.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "slowlog-log-slower-than",
        flag: "slowlog-log-slower-than",
        kind: Kind::Number(-1, i64::MAX),
        get: |server| server.live.slower_than().to_string(),
        set: |server, given| {
            if let Given::Number(micros) = given {
                server.live.set_slower_than(micros);
            }
            Ok(())
        },
    },
    Parameter {
        name: "slowlog-max-len",
        flag: "slowlog-max-len",
        kind: Kind::Number(0, MOST_SLOWLOG as i64),
        get: |server| server.slowlog.most().to_string(),
        set: |server, given| {
            server.slowlog.set_most(given.size());
            Ok(())
        },
    },
    Parameter {
        name: "latency-monitor-threshold",
        flag: "latency-monitor-threshold",
        kind: Kind::Number(0, i64::MAX),
        get: |server| server.live.latency_threshold.get().to_string(),
        set: |server, given| {
            server.live.latency_threshold.set(given.number());
            Ok(())
        },
    },
    Parameter {
        name: "latency-tracking",
        flag: "latency-tracking",
        kind: Kind::Switch,
        get: |server| yes_or_no(server.live.tracks_latency()).to_owned(),
        set: |server, given| {
            server.live.set_tracks_latency(given.number() == 1);
            Ok(())
        },
    },
    Parameter {
        name: "latency-tracking-info-percentiles",
        flag: "latency-tracking-info-percentiles",
        kind: Kind::Text,
        get: |server| server.live.percentiles().to_string(),
        set: |server, given| {
            server.live.set_percentiles(given.text().parse()?);
            Ok(())
        },
    },
    Parameter {
        name: "loglevel",
        flag: "log-level",
        kind: Kind::Word(&[
            "debug", "verbose", "notice", "warning", "trace", "error", "warn", "info",
        ]),
        get: |_| {
            let level = logs::level();
            let known = LEVELS.iter().find(|(_, known)| *known == level);
            known.map_or("", |(name, _)| name).to_owned()
        },
        set: |_, given| {
            let known = LEVELS.iter().find(|(name, _)| *name == given.text());
            let level = known.map(|(_, level)| Ok(*level));
            logs::set_level(level.unwrap_or_else(|| logs::parse_level(given.text()))?);
            Ok(())
        },
    },
    Parameter {
        name: "acllog-max-len",
        flag: "max-acl-log",
        kind: Kind::Number(0, 100_000),
        get: |server| server.users.most_entries().to_string(),
        set: |server, given| {
            server.users.set_most_entries(given.size());
            Ok(())
        },
    },
    Parameter {
        name: "acl-pubsub-default",
        flag: "acl-pubsub-default",
        kind: Kind::Word(&[
            ChannelsOfUsers::AllChannels.name(),
            ChannelsOfUsers::ResetChannels.name(),
        ]),
        get: |server| {
            let chosen = match server.users.opens_channels() {
                true => ChannelsOfUsers::AllChannels,
                false => ChannelsOfUsers::ResetChannels,
            };
            chosen.to_string()
        },
        set: |server, given| {
            let opens = given.text() == ChannelsOfUsers::AllChannels.name();
            server.users.set_opens_channels(opens);
            Ok(())
        },
    },
    Parameter {
        name: REQUIREPASS,
        flag: "",
        kind: Kind::Text,
        // Only its hash is kept.
        get: |_| String::new(),
        set: |server, given| {
            let password = format!(">{}", given.text());
            let words: &[&str] = match given.text() {
                "" => &["nopass"],
                _ => &["resetpass", &password],
            };
            let words = words.iter().map(|word| word.as_bytes());
            let done = server.users.set(DEFAULT, words);
            done.map_err(|_| "the password is longer than a password may be".to_owned())
        },
    },
];

/// The parameter whose value nobody can read.
const REQUIREPASS: &str = "requirepass";

/// Parameters that Redis has and clients ask for, which never change here.
const FIXED: [(&str, &str); 5] = [
    ("activedefrag", "no"),
    ("daemonize", "no"),
    ("replicaof", ""),
    ("save", ""),
    ("slaveof", ""),
];

/// Redis's names of settings that cannot change.
const RENAMED: [(&str, &str); 7] = [
    ("acl-file", "aclfile"),
    ("log-file", "logfile"),
    ("tls-cert", "tls-cert-file"),
    ("tls-key", "tls-key-file"),
    ("tls-ca", "tls-ca-cert-file"),
    ("unix-socket", "unixsocket"),
    ("unix-socket-mode", "unixsocketperm"),
];

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// All parameters with their values, by their names: those that can change, and others.
pub(crate) fn all(server: &Shared) -> Vec<(Cow<'static, str>, String)> {
    let mut all: Vec<(Cow<'static, str>, String)> = ALIVE
        .iter()
        .map(|parameter| (parameter.name.into(), (parameter.get)(server)))
        .collect();
    let fixed = FIXED.map(|(name, value)| (name.into(), value.to_owned()));
    all.extend(fixed);
    let listening = &server.listening;
    let port = |at: Option<SocketAddr>| at.map_or(0, |at| at.port()).to_string();
    let bind = listening.plain.or(listening.tls);
    let bind = bind.map(|at| at.ip().to_string());
    let appendonly = yes_or_no(server.persistence.is_some()).to_owned();
    for (name, value) in [
        ("appendonly", appendonly),
        ("databases", DATABASES.to_string()),
        ("port", port(listening.plain)),
        ("tls-port", port(listening.tls)),
        ("bind", bind.unwrap_or_default()),
        ("threads", server.threads.count().to_string()),
    ] {
        all.push((name.into(), value));
    }
    for (flag, value) in &*server.settings {
        let is_alive = ALIVE.iter().any(|parameter| parameter.flag == *flag);
        let renamed = RENAMED.iter().find(|(own, _)| own == flag);
        let name = renamed.map_or_else(|| Cow::Owned(flag.clone()), |(_, name)| (*name).into());
        if !is_alive && all.iter().all(|(known, _)| *known != name) {
            all.push((name, value.clone()));
        }
    }
    all.sort_unstable();
    all
}

/// Whether a parameter that can change has this name, which is in lower case.
pub(crate) fn is_alive(name: &[u8]) -> bool {
    alive(name).is_some()
}

fn alive(name: &[u8]) -> Option<&'static Parameter> {
    let is = |known: &str| known.as_bytes() == name;
    ALIVE
        .iter()
        .find(|parameter| is(parameter.name))
        .or_else(|| ALIVE.iter().find(|parameter| is(parameter.flag)))
}

/// Why `CONFIG SET` changes nothing.
#[derive(Debug)]
pub(crate) enum Refused {
    /// No parameter has this name.
    Unknown(Vec<u8>),
    /// The parameter with this name is not changed for this reason.
    Parameter(Vec<u8>, String),
}

/// Changes parameters, all of them or none.
pub(crate) fn set<'a>(
    server: &Shared,
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), Refused> {
    let mut changes: Vec<(&Parameter, &[u8], Given<'a>)> = Vec::new();
    for (name, value) in pairs {
        let refused = |why: &str| Refused::Parameter(name.to_vec(), why.to_owned());
        let lower = name.to_ascii_lowercase();
        let Some(parameter) = alive(&lower) else {
            let all = all(server);
            let known = all.iter().find(|(known, _)| known.as_bytes() == lower);
            match known {
                // It has the value already.
                Some((_, now)) if now.as_bytes() == value => continue,
                Some(_) => return Err(refused("can't set immutable config")),
                None => return Err(Refused::Unknown(name.to_vec())),
            }
        };
        if changes
            .iter()
            .any(|(other, ..)| std::ptr::eq(*other, parameter))
        {
            return Err(refused("duplicate parameter"));
        }
        let given = parameter.kind.read(value).map_err(|why| refused(&why))?;
        changes.push((parameter, name, given));
    }
    // One change at a time: two that are put back would leave some of each.
    let _one = server.written();
    // What cannot be read cannot be put back, so it comes last.
    changes.sort_by_key(|(parameter, ..)| parameter.name == REQUIREPASS);
    let mut undo: Vec<(&Parameter, String)> = Vec::new();
    for (parameter, name, given) in changes {
        let before = (parameter.get)(server);
        if let Err(why) = (parameter.set)(server, given) {
            for (parameter, before) in undo.into_iter().rev() {
                if let Ok(given) = parameter.kind.read(before.as_bytes()) {
                    // It was right before.
                    let _ = (parameter.set)(server, given);
                }
            }
            return Err(Refused::Parameter(name.to_vec(), why));
        }
        undo.push((parameter, before));
    }
    Ok(())
}

/// The settings that can change and have a flag, with their values as a file of settings has them.
pub(crate) fn for_file(server: &Shared) -> Vec<(&'static str, String)> {
    let with_flag = ALIVE.iter().filter(|parameter| !parameter.flag.is_empty());
    with_flag
        .map(|parameter| {
            let value = match parameter.flag {
                "log-level" => logs::level().to_string(),
                _ => (parameter.get)(server),
            };
            (parameter.flag, value)
        })
        .collect()
}

impl Kind {
    /// Reads a value; the errors are in Redis's words.
    fn read<'a>(&self, value: &'a [u8]) -> Result<Given<'a>, String> {
        let text = std::str::from_utf8(value).map_err(|_| "argument must be text".to_owned())?;
        match self {
            Self::Memory(least, most) => {
                let bytes = memory(text).ok_or("argument must be a memory value")?;
                // The most is far below what the type holds.
                let number = i64::try_from(bytes)
                    .ok()
                    .filter(|_| (*least..=*most).contains(&bytes));
                number
                    .map(Given::Number)
                    .ok_or_else(|| format!("argument must be between {least} and {most} inclusive"))
            }
            Self::Number(least, most) => {
                let number: i64 = text
                    .parse()
                    .map_err(|_| "argument couldn't be parsed into an integer")?;
                if (*least..=*most).contains(&number) {
                    return Ok(Given::Number(number));
                }
                Err(format!(
                    "argument must be between {least} and {most} inclusive"
                ))
            }
            Self::Switch => match &text.to_ascii_lowercase()[..] {
                "yes" => Ok(Given::Number(1)),
                "no" => Ok(Given::Number(0)),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Self::Word(words) => {
                let known = words.iter().find(|word| word.eq_ignore_ascii_case(text));
                known.map(|word| Given::Text(word)).ok_or_else(|| {
                    format!(
                        "argument(s) must be one of the following: {}",
                        words.join(", ")
                    )
                })
            }
            Self::Text => Ok(Given::Text(text)),
        }
    }
}

#[cfg(test)]
mod tests;
