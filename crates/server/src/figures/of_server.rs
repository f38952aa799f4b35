//! Figures of the server, its clients, threads, quotas and terms.

use super::definition::Kind::{Counter, Gauge, Text};
use super::definition::{Definition, Family, Section, Unit, Value, member, one};
use super::system;
use crate::commands::REDIS_VERSION;
use std::sync::atomic::Ordering::Relaxed;
use tremula_store::Expiry;
use tremula_table::term::Atom;

const PLAIN_TEXT: (super::Kind, Unit) = (Text, Unit::None);
const COUNT: (super::Kind, Unit) = (Counter, Unit::None);
const NUMBER: (super::Kind, Unit) = (Gauge, Unit::None);
const BYTES: (super::Kind, Unit) = (Gauge, Unit::Bytes);

const DAY: u64 = 24 * 60 * 60;

pub(super) const FIGURES: &[Definition] = &[
    one(
        Section::Server,
        "redis_version",
        "redis_version",
        PLAIN_TEXT,
        "The version of Redis whose replies are given",
        |_| Some(REDIS_VERSION.into()),
    ),
    one(
        Section::Server,
        "redis_mode",
        "mode",
        PLAIN_TEXT,
        "That of a server by itself",
        |_| Some("standalone".into()),
    ),
    one(
        Section::Server,
        "tremula_version",
        "version",
        PLAIN_TEXT,
        "The version of Tremula",
        |_| Some(env!("CARGO_PKG_VERSION").into()),
    ),
    one(
        Section::Server,
        "os",
        "system",
        PLAIN_TEXT,
        "The system and the processor's kind",
        |_| Some(system::system_name().into()),
    ),
    one(
        Section::Server,
        "engine",
        "engine",
        PLAIN_TEXT,
        "The index that holds the keys",
        |now| Some(now.server.store.database(0).engine().into()),
    ),
    one(
        Section::Server,
        "threads",
        "threads",
        NUMBER,
        "Threads that serve clients",
        |now| Some(now.server.threads.count().into()),
    ),
    one(
        Section::Server,
        "arch_bits",
        "architecture_bits",
        NUMBER,
        "The width of the processor",
        |_| Some(usize::BITS.into()),
    ),
    one(
        Section::Server,
        "process_id",
        "process_id",
        NUMBER,
        "The number of the process",
        |_| Some(std::process::id().into()),
    ),
    one(
        Section::Server,
        "tcp_port",
        "tcp_port",
        NUMBER,
        "The port that the server listens on",
        |now| {
            let listening = &now.server.listening;
            let port = listening.plain.or(listening.tls).map_or(0, |at| at.port());
            Some(u32::from(port).into())
        },
    ),
    // As Redis has them from version 7.2 on.
    Definition::Each(Family {
        section: Section::Server,
        label: "number",
        field: "listener",
        members: &[
            member(
                "name",
                "listener_kind",
                PLAIN_TEXT,
                "`tcp`, `tls` or `unix`",
            ),
            member(
                "bind",
                "listener_place",
                PLAIN_TEXT,
                "The address or the path",
            ),
            member("port", "listener_port", NUMBER, "The port, if it has one"),
        ],
        rows: |now, write| {
            let listening = &now.server.listening;
            let ports = [("tcp", listening.plain), ("tls", listening.tls)];
            let ports = ports.into_iter().filter_map(|(name, at)| {
                let at = at?;
                let place = at.ip().to_string().into();
                Some(vec![name.into(), place, u32::from(at.port()).into()])
            });
            let paths = listening.unix.iter();
            let paths = paths.map(|path| vec!["unix".into(), path.to_string().into()]);
            for (number, values) in ports.chain(paths).enumerate() {
                write(&number.to_string(), &values);
            }
        },
    }),
    one(
        Section::Server,
        "uptime_in_seconds",
        "uptime_seconds",
        (Gauge, Unit::Seconds),
        "The time since the start",
        |now| Some(now.server.started.elapsed().as_secs().into()),
    ),
    one(
        Section::Server,
        "uptime_in_days",
        "uptime_days",
        (Gauge, Unit::Days),
        "The same in whole days",
        |now| Some((now.server.started.elapsed().as_secs() / DAY).into()),
    ),
    one(
        Section::Server,
        "executable",
        "executable",
        PLAIN_TEXT,
        "The file of the program",
        |_| Some(std::env::current_exe().ok()?.display().to_string().into()),
    ),
    one(
        Section::Server,
        "config_file",
        "config_file",
        PLAIN_TEXT,
        "The file of settings, if there is one",
        |now| {
            let file = now.server.config_file.as_ref();
            Some(
                file.map_or_else(String::new, |file| file.display().to_string())
                    .into(),
            )
        },
    ),
    one(
        Section::Clients,
        "connected_clients",
        "connected_clients",
        NUMBER,
        "Clients that are connected",
        |now| Some(now.server.clients.count().into()),
    ),
    one(
        Section::Clients,
        "maxclients",
        "max_clients",
        NUMBER,
        "The limit of these",
        |now| Some(now.server.live.max_clients.get().into()),
    ),
    one(
        Section::Clients,
        "reserved_clients",
        "reserved_clients",
        NUMBER,
        "Places beyond it for clients of this machine",
        |now| Some(now.server.limits.clients.reserved_clients.into()),
    ),
    one(
        Section::Clients,
        "blocked_clients",
        "blocked_clients",
        NUMBER,
        "Clients whose command waits",
        |now| Some(now.server.clients.blocked().into()),
    ),
    one(
        Section::Clients,
        "monitors",
        "monitors",
        NUMBER,
        "Clients that watch by `MONITOR`",
        |now| Some(now.server.monitors.count().into()),
    ),
    one(
        Section::Clients,
        "client_buffers",
        "client_buffer_bytes",
        BYTES,
        "What the buffers of all clients hold",
        |now| Some(now.server.clients.held().staying.into()),
    ),
    one(
        Section::Clients,
        "kept_client_buffers",
        "kept_client_buffer_bytes",
        BYTES,
        "What buffers hold that clients at rest keep for some seconds",
        |now| Some(now.server.clients.kept().into()),
    ),
    one(
        Section::Clients,
        "max_client_buffers",
        "max_client_buffer_bytes",
        BYTES,
        "The limit of it; 0 is no limit",
        |now| Some(now.server.clients.buffer_limit().into()),
    ),
    one(
        Section::Clients,
        "tls_handshakes",
        "tls_handshakes",
        NUMBER,
        "Handshakes of TLS that are under way",
        |now| Some(now.server.handshakes.under_way().into()),
    ),
    one(
        Section::Clients,
        "tls_handshakes_failed",
        "tls_handshakes_failed",
        COUNT,
        "Handshakes of TLS that failed",
        |now| Some(now.server.handshakes.failed().into()),
    ),
    one(
        Section::Clients,
        "clients_closed_by_server",
        "clients_closed_by_server",
        COUNT,
        "Clients that the server closed",
        |now| Some(now.server.clients.closed.load(Relaxed).into()),
    ),
    one(
        Section::Threads,
        "open_threads",
        "open_threads",
        NUMBER,
        "Threads on which clients gather",
        |now| {
            let pulses = now.server.threads.pulses().iter();
            Some(pulses.filter(|pulse| pulse.is_open()).count().into())
        },
    ),
    one(
        Section::Threads,
        "gathers",
        "gathers",
        COUNT,
        "How often clients gathered on fewer threads",
        |now| Some(now.server.threads.gathers.load(Relaxed).into()),
    ),
    one(
        Section::Threads,
        "spreads",
        "spreads",
        COUNT,
        "How often they spread to more",
        |now| Some(now.server.threads.spreads.load(Relaxed).into()),
    ),
    one(
        Section::Threads,
        "moved_clients",
        "moved_clients",
        COUNT,
        "Clients that moved to another thread",
        |now| Some(now.server.threads.moves.load(Relaxed).into()),
    ),
    Definition::Each(Family {
        section: Section::Threads,
        label: "thread",
        field: "thread",
        members: &[
            member("clients", "thread_clients", NUMBER, "Clients of the thread"),
            member("open", "thread_open", NUMBER, "1 if clients gather on it"),
            member(
                "busy",
                "thread_busy",
                (Gauge, Unit::Thousandths),
                "The part of its time that it was busy",
            ),
        ],
        rows: |now, write| {
            for (number, pulse) in now.server.threads.pulses().iter().enumerate() {
                let values = [
                    pulse.clients.load(Relaxed).into(),
                    u32::from(pulse.is_open()).into(),
                    pulse.busy().into(),
                ];
                write(&number.to_string(), &values);
            }
        },
    }),
    one(
        Section::Quotas,
        "mailboxes",
        "mailboxes",
        NUMBER,
        "Mailboxes",
        |now| Some(now.server.store.mailboxes().held().0.into()),
    ),
    one(
        Section::Quotas,
        "max_mailboxes",
        "max_mailboxes",
        NUMBER,
        "The limit of these",
        |now| Some(now.server.limits.quotas.max_mailboxes.into()),
    ),
    one(
        Section::Quotas,
        "max_client_mailboxes",
        "max_client_mailboxes",
        NUMBER,
        "Mailboxes that one connection may hold senders into",
        |now| Some(now.server.limits.quotas.max_client_mailboxes.into()),
    ),
    one(
        Section::Quotas,
        "max_mailbox_messages",
        "max_mailbox_messages",
        NUMBER,
        "Messages that a mailbox may hold",
        |now| Some(now.server.limits.quotas.max_mailbox_messages.into()),
    ),
    one(
        Section::Quotas,
        "max_mailbox_bytes",
        "max_mailbox_bytes",
        BYTES,
        "Their bytes",
        |now| Some(now.server.limits.quotas.max_mailbox_bytes.0.into()),
    ),
    one(
        Section::Quotas,
        "tables",
        "tables",
        NUMBER,
        "Tables",
        |now| Some(now.server.store.tables().len().into()),
    ),
    one(
        Section::Quotas,
        "expiring_table_keys",
        "expiring_table_keys",
        NUMBER,
        "Keys of tables whose rows expire",
        |now| Some(now.server.store.tables().expiring_keys().into()),
    ),
    one(
        Section::Quotas,
        "max_tables",
        "max_tables",
        NUMBER,
        "The limit of these",
        |now| Some(now.server.limits.quotas.max_tables.into()),
    ),
    one(
        Section::Quotas,
        "max_client_tables",
        "max_client_tables",
        NUMBER,
        "Tables that one connection may own",
        |now| Some(now.server.limits.quotas.max_client_tables.into()),
    ),
    one(
        Section::Quotas,
        "cursors",
        "cursors",
        NUMBER,
        "Cursors of scans that may go on",
        |now| Some(now.server.store.cursors().held().0.into()),
    ),
    one(
        Section::Quotas,
        "max_cursors",
        "max_cursors",
        NUMBER,
        "The limit of these",
        |now| Some(now.server.limits.quotas.max_cursors.into()),
    ),
    one(
        Section::Quotas,
        "max_cursor_bytes",
        "max_cursor_bytes",
        BYTES,
        "What these may hold",
        |now| Some(now.server.limits.quotas.max_cursor_bytes.0.into()),
    ),
    one(
        Section::Cpu,
        "used_cpu_sys",
        "processor_system_seconds",
        (Gauge, Unit::Seconds),
        "Time that the system has computed for this process",
        |_| Some(Value::Decimal(system::processor_seconds()?.0, 6)),
    ),
    one(
        Section::Cpu,
        "used_cpu_user",
        "processor_user_seconds",
        (Gauge, Unit::Seconds),
        "Time that this process has computed itself",
        |_| Some(Value::Decimal(system::processor_seconds()?.1, 6)),
    ),
    one(
        Section::Terms,
        "atoms",
        "atoms",
        NUMBER,
        "Atoms, which are never freed",
        |_| Some(Atom::count().into()),
    ),
    one(
        Section::Terms,
        "max_atoms",
        "max_atoms",
        NUMBER,
        "The limit of these",
        |now| Some(now.server.limits.terms.max_atoms.into()),
    ),
    one(
        Section::Terms,
        "client_atoms",
        "client_atoms",
        NUMBER,
        "Those that clients of the asking address have made",
        |now| {
            let (client, limits) = (now.client?, &now.server.limits.terms);
            let quota = now.server.clients.atoms.of(client.address(), limits);
            Some(quota.made().into())
        },
    ),
    one(
        Section::Terms,
        "max_client_atoms",
        "max_client_atoms",
        NUMBER,
        "The limit of these",
        |now| Some(now.server.limits.terms.max_client_atoms.into()),
    ),
    one(
        Section::Terms,
        "max_term",
        "max_term_bytes",
        BYTES,
        "What a row of a table may take",
        |now| Some(now.server.limits.terms.max_term.0.into()),
    ),
    one(
        Section::Terms,
        "max_term_depth",
        "max_term_depth",
        NUMBER,
        "How deep terms may be nested in it",
        |now| Some(now.server.limits.terms.max_term_depth.into()),
    ),
    Definition::Each(Family {
        section: Section::Keyspace,
        label: "database",
        field: "db",
        members: &[
            member("keys", "database_keys", NUMBER, "Keys of the database"),
            member(
                "expires",
                "database_expiring_keys",
                NUMBER,
                "Keys of the database that will expire",
            ),
            member(
                "avg_ttl",
                "database_average_time_to_live",
                NUMBER,
                "Milliseconds that the next hundred of these have left, on average",
            ),
        ],
        rows: |now, write| {
            for (number, database) in now.server.store.databases().enumerate() {
                let keys = database.len();
                if keys > 0 {
                    let expiring = database.expiring();
                    let left = average_left(&database.next_expiries(AVERAGED));
                    write(
                        &number.to_string(),
                        &[keys.into(), expiring.into(), left.into()],
                    );
                }
            }
        },
    }),
];

/// Keys whose times are averaged.
const AVERAGED: usize = 100;

/// The milliseconds that are left of these times, on average.
fn average_left(expiries: &[Expiry]) -> u64 {
    let now = Expiry::now().millis();
    let left = expiries
        .iter()
        .map(|expiry| expiry.millis().saturating_sub(now));
    left.sum::<u64>()
        .checked_div(expiries.len() as u64)
        .unwrap_or(0)
}
