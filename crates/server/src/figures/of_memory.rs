//! Figures of memory.

use super::definition::Kind::{Gauge, Text};
use super::definition::{Definition, Section, Unit, Value, one};
use crate::server::Shared;
use tremula_sync::counting_allocator;

const BYTES: (super::Kind, Unit) = (Gauge, Unit::Bytes);

/// What holds memory at a moment.
pub(crate) struct MemoryNow {
    pub(crate) used: u64,
    pub(crate) resident: u64,
    pub(crate) peak: u64,
    pub(crate) regions: u64,
    pub(crate) mailboxes: u64,
    pub(crate) cursors: u64,
    pub(crate) buffers: u64,
    pub(crate) slowlog: u64,
    pub(crate) monitors: u64,
    /// 0 is no limit.
    pub(crate) limit: u64,
}

impl MemoryNow {
    pub(crate) fn new(server: &Shared) -> Self {
        counting_allocator::pass_on();
        let resident = tremula_observe::resident_bytes().unwrap_or(0);
        // Zero if the program's allocator does not count.
        let used = match counting_allocator::used_bytes() {
            0 => resident,
            used => used,
        };
        Self {
            used,
            resident,
            peak: counting_allocator::peak_bytes().max(used),
            regions: counting_allocator::region_bytes(),
            mailboxes: server.store.mailboxes().held().1 as u64,
            cursors: server.store.cursors().held().1 as u64,
            buffers: server.clients.held().staying as u64,
            slowlog: server.slowlog.bytes() as u64,
            monitors: server.clients.fed(),
            limit: server.memory.limit().unwrap_or(0),
        }
    }

    /// The bytes that are resident for each that is used.
    pub(crate) fn fragmentation(&self) -> f64 {
        self.resident as f64 / self.used.max(1) as f64
    }

    /// What is in none of buffers, cursors and slow log, so keys, rows and messages for the most.
    pub(crate) fn dataset(&self) -> u64 {
        let parts = self.buffers + self.cursors + self.slowlog;
        self.used.saturating_sub(parts)
    }
}

/// A number of bytes as `INFO` shows it to people.
fn human(bytes: u64) -> Value {
    const UNITS: [(&str, u64); 4] = [
        ("T", 1 << 40),
        ("G", 1 << 30),
        ("M", 1 << 20),
        ("K", 1 << 10),
    ];
    let unit = UNITS.into_iter().find(|(_, unit)| bytes >= *unit);
    Value::from(unit.map_or_else(
        || format!("{bytes}B"),
        |(name, unit)| format!("{:.2}{name}", bytes as f64 / unit as f64),
    ))
}

pub(super) const FIGURES: &[Definition] = &[
    one(
        Section::Memory,
        "used_memory",
        "used_memory_bytes",
        BYTES,
        "What the server holds, counted by its allocator",
        |now| Some(now.memory().used.into()),
    ),
    one(
        Section::Memory,
        "used_memory_human",
        "used_memory_text",
        (Text, Unit::None),
        "The same for people",
        |now| Some(human(now.memory().used)),
    ),
    one(
        Section::Memory,
        "used_memory_rss",
        "resident_bytes",
        BYTES,
        "What the process holds of the machine's memory",
        |now| Some(now.memory().resident.into()),
    ),
    one(
        Section::Memory,
        "used_memory_peak",
        "peak_memory_bytes",
        BYTES,
        "The most that the server has held",
        |now| Some(now.memory().peak.into()),
    ),
    one(
        Section::Memory,
        "used_memory_regions",
        "region_bytes",
        BYTES,
        "What does not come from the allocator",
        |now| Some(now.memory().regions.into()),
    ),
    one(
        Section::Memory,
        "used_memory_mailboxes",
        "mailbox_bytes",
        BYTES,
        "What messages hold",
        |now| Some(now.memory().mailboxes.into()),
    ),
    one(
        Section::Memory,
        "used_memory_buffers",
        "buffer_bytes",
        BYTES,
        "What the buffers of clients hold",
        |now| Some(now.memory().buffers.into()),
    ),
    one(
        Section::Memory,
        "used_memory_cursors",
        "cursor_bytes",
        BYTES,
        "What cursors of scans hold",
        |now| Some(now.memory().cursors.into()),
    ),
    one(
        Section::Memory,
        "used_memory_slowlog",
        "slowlog_bytes",
        BYTES,
        "What the entries of `SLOWLOG` hold",
        |now| Some(now.memory().slowlog.into()),
    ),
    one(
        Section::Memory,
        "used_memory_dataset",
        "dataset_bytes",
        BYTES,
        "What is none of buffers, cursors and slow log",
        |now| Some(now.memory().dataset().into()),
    ),
    one(
        Section::Memory,
        "maxmemory",
        "max_memory_bytes",
        BYTES,
        "The limit of what is held; 0 is no limit",
        |now| Some(now.memory().limit.into()),
    ),
    one(
        Section::Memory,
        "maxmemory_policy",
        "max_memory_policy",
        (Text, Unit::None),
        "Which keys go when memory is short",
        |now| Some(now.server.store.eviction().policy().name().into()),
    ),
    one(
        Section::Memory,
        "mem_fragmentation_ratio",
        "fragmentation_ratio",
        (Gauge, Unit::None),
        "Resident bytes for each that is held",
        |now| Some(Value::Decimal(now.memory().fragmentation(), 2)),
    ),
    one(
        Section::Memory,
        "mem_allocator",
        "allocator",
        (Text, Unit::None),
        "The allocator, if the server knows it",
        |_| counting_allocator::name().map(Value::from),
    ),
];
