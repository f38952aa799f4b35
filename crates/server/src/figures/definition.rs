//! What a figure is.

use super::histogram::Times;
use super::of_memory::MemoryNow;
use crate::clients::Client;
use crate::limits::Percentiles;
use crate::server::Shared;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;

/// A section of `INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Server,
    Clients,
    Threads,
    Memory,
    Quotas,
    Persistence,
    Stats,
    Replication,
    Cpu,
    Commands,
    Errors,
    Latencies,
    Terms,
    Keyspace,
}

impl Section {
    /// In the order in which `INFO` shows them.
    pub(crate) const ALL: [Self; 14] = [
        Self::Server,
        Self::Clients,
        Self::Threads,
        Self::Memory,
        Self::Quotas,
        Self::Persistence,
        Self::Stats,
        Self::Replication,
        Self::Cpu,
        Self::Commands,
        Self::Errors,
        Self::Latencies,
        Self::Terms,
        Self::Keyspace,
    ];

    /// The word that asks for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Clients => "clients",
            Self::Threads => "threads",
            Self::Memory => "memory",
            Self::Quotas => "quotas",
            Self::Persistence => "persistence",
            Self::Stats => "stats",
            Self::Replication => "replication",
            Self::Cpu => "cpu",
            Self::Commands => "commandstats",
            Self::Errors => "errorstats",
            Self::Latencies => "latencystats",
            Self::Terms => "terms",
            Self::Keyspace => "keyspace",
        }
    }

    pub(crate) fn title(self) -> String {
        if self == Self::Cpu {
            return "CPU".to_owned();
        }
        let (first, rest) = self.name().split_at(1);
        format!("{}{rest}", first.to_ascii_uppercase())
    }

    /// Whether `INFO` shows it if nobody asks for it; as Redis, not what has a line a command.
    pub(crate) const fn is_default(self) -> bool {
        !matches!(self, Self::Commands | Self::Latencies)
    }
}

/// How a figure behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows while the server runs.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How often times of each length were measured.
    Histogram,
    /// A text.
    Text,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Text => "text",
        })
    }
}

/// What one of a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A thing, a text, or a share.
    None,
    Bytes,
    Seconds,
    Days,
    Microseconds,
    /// Of a whole.
    Thousandths,
}

impl fmt::Display for Unit {
    /// As it follows a kind: `, bytes`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::None => "",
            Self::Bytes => ", bytes",
            Self::Seconds => ", seconds",
            Self::Days => ", days",
            Self::Microseconds => ", microseconds",
            Self::Thousandths => ", thousandths",
        })
    }
}

/// A figure's value at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Whole(u64),
    /// With this number of digits behind the point.
    Decimal(f64, usize),
    Text(Cow<'static, str>),
    /// A histogram, shown by these percentiles.
    Percentiles(Times, Percentiles),
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(out),
            Self::Decimal(number, digits) => write!(out, "{number:.digits$}"),
            Self::Text(text) => out.write_str(text),
            Self::Percentiles(times, percentiles) => {
                for (index, percent) in percentiles.percents().enumerate() {
                    let separator = if index > 0 { "," } else { "" };
                    let micros = times.percentile(percent).as_secs_f64() * 1e6;
                    write!(out, "{separator}p{percent}={micros:.3}")?;
                }
                Ok(())
            }
        }
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Whole(number as u64)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Whole(number.into())
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// One figure.
pub(crate) struct Figure {
    /// The name in metrics, behind the server's.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    /// What it is, in one sentence without its full stop.
    pub(crate) help: &'static str,
    pub(crate) section: Section,
    /// The field of `INFO`.
    pub(crate) field: &'static str,
    /// `None` if there is no such figure now.
    pub(crate) read: fn(&Reading<'_>) -> Option<Value>,
}

/// What is done with the name of a thing and its values.
pub(crate) type Row<'a> = dyn FnMut(&str, &[Value]) + 'a;

/// The same figures of each of several things, with a line of `INFO` for each thing.
pub(crate) struct Family {
    pub(crate) section: Section,
    /// What the things are.
    pub(crate) label: &'static str,
    /// The field of `INFO`, which the name of the thing follows.
    pub(crate) field: &'static str,
    pub(crate) members: &'static [Member],
    /// Calls the closure with the name of each thing and its values, in the order of the members.
    pub(crate) rows: fn(&Reading<'_>, &mut Row<'_>),
}

/// One figure of a family.
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    pub(crate) help: &'static str,
    /// Its name in the line of `INFO`.
    pub(crate) field: &'static str,
}

/// A row of a table of figures.
pub(crate) enum Definition {
    One(Figure),
    Each(Family),
}

/// A row for one figure, in the order of [`Figure`]'s fields.
pub(super) const fn one(
    section: Section,
    field: &'static str,
    name: &'static str,
    (kind, unit): (Kind, Unit),
    help: &'static str,
    read: fn(&Reading<'_>) -> Option<Value>,
) -> Definition {
    Definition::One(Figure {
        name,
        kind,
        unit,
        help,
        section,
        field,
        read,
    })
}

pub(super) const fn member(
    field: &'static str,
    name: &'static str,
    (kind, unit): (Kind, Unit),
    help: &'static str,
) -> Member {
    Member {
        name,
        kind,
        unit,
        help,
        field,
    }
}

/// A moment at which figures are read. What several figures share is found out once.
pub(crate) struct Reading<'a> {
    pub(crate) server: &'a Shared,
    /// The client that asks, if one does.
    pub(super) client: Option<&'a Client>,
    memory: OnceCell<MemoryNow>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(server: &'a Shared, client: Option<&'a Client>) -> Self {
        Self {
            server,
            client,
            memory: OnceCell::new(),
        }
    }

    pub(super) fn memory(&self) -> &MemoryNow {
        self.memory.get_or_init(|| MemoryNow::new(self.server))
    }
}
