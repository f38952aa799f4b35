//! Figures of the log and of snapshots.

use super::definition::Kind::{Counter, Gauge, Text};
use super::definition::{Definition, Section, Unit, one};

const PLAIN_TEXT: (super::Kind, Unit) = (Text, Unit::None);
const COUNT: (super::Kind, Unit) = (Counter, Unit::None);
const NUMBER: (super::Kind, Unit) = (Gauge, Unit::None);
const BYTES: (super::Kind, Unit) = (Gauge, Unit::Bytes);

pub(super) const FIGURES: &[Definition] = &[
    one(
        Section::Persistence,
        "loading",
        "loading",
        NUMBER,
        "1 while data is loaded: never while clients are served",
        |_| Some(0_u32.into()),
    ),
    one(
        Section::Persistence,
        "rdb_changes_since_last_save",
        "unsaved_changes",
        NUMBER,
        "Effects in the log behind the last snapshot; 0 without a log",
        |now| {
            let unsaved = now.server.persistence.as_ref().map_or(0, |persistence| {
                let last = now.server.store.last_effect().get();
                last.saturating_sub(persistence.last_save().sequence.get())
            });
            Some(unsaved.into())
        },
    ),
    one(
        Section::Persistence,
        "rdb_bgsave_in_progress",
        "saving",
        NUMBER,
        "1 while a snapshot is made",
        |now| {
            let persistence = now.server.persistence.as_ref();
            Some(u32::from(persistence.is_some_and(|persistence| persistence.is_saving())).into())
        },
    ),
    one(
        Section::Persistence,
        "current_save_keys_processed",
        "saving_entries_done",
        NUMBER,
        "Entries that the snapshot has which is being made; 0 while none is made",
        |now| {
            let progress = now.server.persistence.as_ref()?.progress();
            Some(progress.map_or(0, |(done, _)| done).into())
        },
    ),
    one(
        Section::Persistence,
        "current_save_keys_total",
        "saving_entries",
        NUMBER,
        "Entries that there were when it began; 0 while none is made",
        |now| {
            let progress = now.server.persistence.as_ref()?.progress();
            Some(progress.map_or(0, |(_, all)| all).into())
        },
    ),
    one(
        Section::Persistence,
        "rdb_last_save_time",
        "last_save_time",
        (Gauge, Unit::Seconds),
        "When the last snapshot was made, since 1970; at first, when the server started",
        |now| Some(now.server.persistence.as_ref()?.last_save_time().into()),
    ),
    one(
        Section::Persistence,
        "rdb_last_bgsave_status",
        "last_save_status",
        PLAIN_TEXT,
        "`ok`, or `err` if the last snapshot could not be made: the server's log says why",
        |now| {
            let persistence = now.server.persistence.as_ref()?;
            let succeeded = persistence.last_save().failed.is_none();
            Some(if succeeded { "ok" } else { "err" }.into())
        },
    ),
    one(
        Section::Persistence,
        "rdb_last_bgsave_time_sec",
        "last_save_seconds",
        (Gauge, Unit::Seconds),
        "How long the last snapshot took",
        |now| {
            let took = now.server.persistence.as_ref()?.last_save().took?;
            Some(took.as_secs().into())
        },
    ),
    one(
        Section::Persistence,
        "aof_enabled",
        "log_enabled",
        NUMBER,
        "1 if keys are kept: `--dir`",
        |now| Some(u32::from(now.server.persistence.is_some()).into()),
    ),
    one(
        Section::Persistence,
        "log_durability",
        "log_durability",
        PLAIN_TEXT,
        "When a write is on the disk: `always`, `everysec` or `no`",
        |now| Some(now.server.persistence.as_ref()?.durability().name().into()),
    ),
    one(
        Section::Persistence,
        "log_last_effect",
        "log_last_effect",
        // A number that others name, so that CONFIG RESETSTAT must not begin anew with it.
        NUMBER,
        "The number of the last effect",
        |now| {
            now.server.persistence.as_ref()?;
            Some(now.server.store.last_effect().get().into())
        },
    ),
    one(
        Section::Persistence,
        "log_durable_effect",
        "log_durable_effect",
        NUMBER,
        "The number of the last effect that is on the disk",
        |now| Some(now.server.store.log()?.durable().get().into()),
    ),
    one(
        Section::Persistence,
        "log_bytes_written",
        "log_bytes",
        (Counter, Unit::Bytes),
        "Bytes of the log since the start",
        |now| Some(now.server.persistence.as_ref()?.stats().bytes.into()),
    ),
    one(
        Section::Persistence,
        "log_syncs",
        "log_syncs",
        COUNT,
        "How often the log was synced",
        |now| Some(now.server.persistence.as_ref()?.stats().syncs.into()),
    ),
    one(
        Section::Persistence,
        "log_sync_usec",
        "log_sync_microseconds",
        (Counter, Unit::Microseconds),
        "What the syncs of the log have taken together",
        |now| {
            let syncing = now.server.persistence.as_ref()?.stats().syncing;
            Some((syncing.as_micros() as u64).into())
        },
    ),
    one(
        Section::Persistence,
        "log_last_sync_usec",
        "log_last_sync",
        (Gauge, Unit::Microseconds),
        "What the last sync of the log has taken",
        |now| {
            let last = now.server.persistence.as_ref()?.stats().last_sync;
            Some((last.as_micros() as u64).into())
        },
    ),
    one(
        Section::Persistence,
        "log_unsynced_bytes",
        "log_unsynced_bytes",
        BYTES,
        "Bytes of effects that are not on the disk",
        |now| Some(now.server.persistence.as_ref()?.stats().unsynced.into()),
    ),
    one(
        Section::Persistence,
        "log_is_full",
        "log_is_full",
        NUMBER,
        "1 while the disk has no room for the log: writes are refused",
        |now| Some(u32::from(now.server.persistence.as_ref()?.stats().is_full).into()),
    ),
    one(
        Section::Persistence,
        "aof_rewrite_in_progress",
        "log_rewriting",
        NUMBER,
        "0: the log is truncated, never rewritten",
        |_| Some(0_u32.into()),
    ),
];
