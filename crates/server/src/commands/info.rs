//! Information about the server: `INFO` and `CONFIG GET`.

use super::connection::REDIS_VERSION;
use super::{Context, Failure, Next, Outcome};
use crate::glob;
use crate::resp::Arguments;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use tremula_store::{DATABASES, Evictor};
use tremula_sync::counting_allocator;
use tremula_table::term::Atom;

/// A section of `INFO`: the name that selects it, its title, and the function that writes it.
type Section = (
    &'static str,
    &'static str,
    fn(&Context<'_>, &mut String) -> std::fmt::Result,
);

const SECTIONS: [Section; 8] = [
    ("server", "Server", server),
    ("clients", "Clients", clients),
    ("threads", "Threads", threads),
    ("memory", "Memory", memory),
    ("quotas", "Quotas", quotas),
    ("stats", "Stats", stats),
    ("terms", "Terms", terms),
    ("keyspace", "Keyspace", keyspace),
];

pub(super) fn info(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let asked = |name: &str| {
        arguments.len() == 1
            || arguments.skip(1).any(|section| {
                [name, "default", "all", "everything"]
                    .iter()
                    .any(|known| section.eq_ignore_ascii_case(known.as_bytes()))
            })
    };
    let mut text = String::new();
    for (name, title, write) in SECTIONS {
        if asked(name) {
            let separator = if text.is_empty() { "" } else { "\r\n" };
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}# {title}\r\n");
            let _ = write(context, &mut text);
        }
    }
    context.reply.text(&text);
    Ok(Next::Reply)
}

fn server(context: &Context<'_>, out: &mut String) -> std::fmt::Result {
    let server = context.server;
    let uptime = server.started.elapsed().as_secs();
    write!(out, "redis_version:{REDIS_VERSION}\r\n")?;
    write!(out, "redis_mode:standalone\r\n")?;
    write!(out, "tremula_version:{}\r\n", env!("CARGO_PKG_VERSION"))?;
    write!(out, "engine:{}\r\n", context.database().engine())?;
    write!(out, "threads:{}\r\n", server.threads.count())?;
    write!(out, "arch_bits:{}\r\n", usize::BITS)?;
    write!(out, "process_id:{}\r\n", std::process::id())?;
    let listening = &server.listening;
    let port = |address: Option<SocketAddr>| address.map_or(0, |address| address.port());
    let tcp_port = port(listening.plain.or(listening.tls));
    write!(out, "tcp_port:{tcp_port}\r\n")?;
    // As Redis has them from version 7.2 on.
    let internet = [("tcp", listening.plain), ("tls", listening.tls)];
    let internet = internet.into_iter().filter_map(|(name, address)| {
        let address = address?;
        Some(format!(
            "name={name},bind={},port={}",
            address.ip(),
            address.port()
        ))
    });
    let unix = listening.unix.iter();
    let unix = unix.map(|path| format!("name=unix,bind={path}"));
    for (number, listener) in internet.chain(unix).enumerate() {
        write!(out, "listener{number}:{listener}\r\n")?;
    }
    write!(out, "uptime_in_seconds:{uptime}\r\n")?;
    write!(out, "uptime_in_days:{}\r\n", uptime / (24 * 60 * 60))
}

fn clients(context: &Context<'_>, out: &mut String) -> std::fmt::Result {
    write!(
        out,
        "connected_clients:{}\r\n",
        context.server.clients.count()
    )?;
    let clients = &context.server.clients;
    let limits = &context.server.limits;
    write!(out, "maxclients:{}\r\n", limits.max_clients)?;
    write!(
        out,
        "reserved_clients:{}\r\n",
        limits.clients.reserved_clients
    )?;
    write!(out, "client_buffers:{}\r\n", clients.held().staying)?;
    write!(
        out,
        "max_client_buffers:{}\r\n",
        limits.clients.max_client_buffers.0
    )?;
    let handshakes = &context.server.handshakes;
    write!(out, "tls_handshakes:{}\r\n", handshakes.under_way())?;
    write!(out, "tls_handshakes_failed:{}\r\n", handshakes.failed())?;
    let closed = clients.closed.load(Relaxed);
    write!(out, "clients_closed_by_server:{closed}\r\n")
}

fn threads(context: &Context<'_>, out: &mut String) -> std::fmt::Result {
    let threads = &context.server.threads;
    let open = threads.pulses().iter().filter(|pulse| pulse.is_open());
    write!(out, "open_threads:{}\r\n", open.count())?;
    for (name, counter) in [
        ("gathers", &threads.gathers),
        ("spreads", &threads.spreads),
        ("moved_clients", &threads.moves),
    ] {
        write!(out, "{name}:{}\r\n", counter.load(Relaxed))?;
    }
    for (number, pulse) in threads.pulses().iter().enumerate() {
        let clients = pulse.clients.load(Relaxed);
        let is_open = u8::from(pulse.is_open());
        let busy = pulse.busy();
        // In thousandths of its time.
        write!(
            out,
            "thread{number}:clients={clients},open={is_open},busy={busy}\r\n"
        )?;
    }
    Ok(())
}

fn memory(context: &Context<'_>, out: &mut String) -> std::fmt::Result {
    let server = context.server;
    counting_allocator::pass_on();
    let resident = resident_bytes().unwrap_or(0) as u64;
    // Zero if the program's allocator does not count.
    let used = match counting_allocator::used_bytes() {
        0 => resident,
        used => used,
    };
    let peak = counting_allocator::peak_bytes().max(used);
    let (_, in_mailboxes) = server.store.mailboxes().held();
    let (_, in_cursors) = server.store.cursors().held();
    let limits = &server.limits.memory;
    let figures = [
        ("used_memory", used),
        ("used_memory_rss", resident),
        ("used_memory_peak", peak),
        ("used_memory_regions", counting_allocator::region_bytes()),
        ("used_memory_mailboxes", in_mailboxes as u64),
        ("used_memory_buffers", server.clients.held().staying as u64),
        ("used_memory_cursors", in_cursors as u64),
        ("maxmemory", server.memory.limit().unwrap_or(0)),
    ];
    for (name, value) in figures {
        write!(out, "{name}:{value}\r\n")?;
    }
    write!(out, "maxmemory_policy:{}\r\n", limits.max_memory_policy)?;
    let ratio = resident as f64 / used.max(1) as f64;
    write!(out, "mem_fragmentation_ratio:{ratio:.2}\r\n")
}

/// What clients have made, beside the quotas.
fn quotas(context: &Context<'_>, out: &mut String) -> std::fmt::Result {
    let server = context.server;
    let limits = &server.limits.quotas;
    let (mailboxes, _) = server.store.mailboxes().held();
    let (cursors, _) = server.store.cursors().held();
    let figures = [
        ("mailboxes", mailboxes),
        ("max_mailboxes", limits.max_mailboxes),
        ("max_client_mailboxes", limits.max_client_mailboxes),
        ("max_mailbox_messages", limits.max_mailbox_messages),
        ("max_mailbox_bytes", limits.max_mailbox_bytes.0),
        ("tables", server.store.tables().len()),
        ("max_tables", limits.max_tables),
        ("max_client_tables", limits.max_client_tables),
        ("cursors", cursors),
        ("max_cursors", limits.max_cursors),
        ("max_cursor_bytes", limits.max_cursor_bytes.0),
    ];
    for (name, value) in figures {
        write!(out, "{name}:{value}\r\n")?;
    }
    Ok(())
}

/// The bytes that this process holds in memory, if the system reports them.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn stats(context: &Context<'_>, out: &mut String) -> std::fmt::Result {
    let stats = &context.server.stats;
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
    write!(
        out,
        "total_connections_received:{}\r\n",
        count(&stats.connections)
    )?;
    write!(
        out,
        "total_commands_processed:{}\r\n",
        count(&stats.commands)
    )?;
    write!(out, "rejected_connections:{}\r\n", count(&stats.rejected))?;
    write!(out, "turns_spent:{}\r\n", count(&stats.turns_spent))?;
    write!(
        out,
        "gathered_bytes:{}\r\n",
        context.server.gathering.bytes()
    )?;
    let evicted = context.server.store.evictor().map_or(0, Evictor::evicted);
    write!(out, "evicted_keys:{evicted}\r\n")?;
    for (name, value) in context.server.store.snapshots().figures() {
        write!(out, "{name}:{value}\r\n")?;
    }
    Ok(())
}

fn terms(context: &Context<'_>, out: &mut String) -> std::fmt::Result {
    let limits = &context.server.limits.terms;
    write!(out, "atoms:{}\r\n", Atom::count())?;
    write!(out, "max_atoms:{}\r\n", limits.max_atoms)?;
    let quota = context
        .server
        .clients
        .atoms
        .of(context.client.address(), limits);
    write!(out, "client_atoms:{}\r\n", quota.made())?;
    write!(out, "max_client_atoms:{}\r\n", limits.max_client_atoms)?;
    write!(out, "max_term:{}\r\n", limits.max_term.0)?;
    write!(out, "max_term_depth:{}\r\n", limits.max_term_depth)
}

fn keyspace(context: &Context<'_>, out: &mut String) -> std::fmt::Result {
    for (number, database) in context.server.store.databases().enumerate() {
        let keys = database.len();
        if keys > 0 {
            write!(out, "db{number}:keys={keys},expires=0,avg_ttl=0\r\n")?;
        }
    }
    Ok(())
}

pub(super) fn config_get(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let server = context.server;
    let limits = &server.limits;
    let on = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    let listening = &server.listening;
    let port = |address: Option<SocketAddr>| {
        let port = address.map_or(0, |address| address.port());
        port.to_string()
    };
    let certificates = server.certificates.as_ref();
    let files = certificates.map(|certificates| &certificates.files);
    let path =
        |path: Option<&Path>| path.map_or_else(String::new, |path| path.display().to_string());
    // Redis's names, if Redis has the parameter. Clients ask for those with fixed values.
    let parameters = [
        ("appendonly", on(false)),
        ("bind", {
            let address = listening.plain.or(listening.tls);
            address.map_or_else(String::new, |address| address.ip().to_string())
        }),
        (
            "client-query-buffer-limit",
            limits.max_query_buffer.0.to_string(),
        ),
        ("client-output-buffer-limit", {
            let soft = limits.clients.soft_output_buffer.0;
            let seconds = limits.clients.soft_output_seconds;
            format!("normal {} {soft} {seconds}", limits.max_output_buffer.0)
        }),
        ("databases", DATABASES.to_string()),
        ("engine", context.database().engine().to_owned()),
        ("gather", on(server.threads.gather)),
        ("max-atoms", limits.terms.max_atoms.to_string()),
        (
            "max-client-atoms",
            limits.terms.max_client_atoms.to_string(),
        ),
        ("max-term", limits.terms.max_term.0.to_string()),
        ("max-term-depth", limits.terms.max_term_depth.to_string()),
        ("max-arguments", limits.max_arguments.to_string()),
        ("max-gathered", limits.turn.max_gathered.0.to_string()),
        ("max-output-buffer", limits.max_output_buffer.0.to_string()),
        ("max-snapshot", limits.max_snapshot.to_string()),
        (
            "max-client-name",
            limits.clients.max_client_name.to_string(),
        ),
        (
            "max-listed-clients",
            limits.clients.max_listed_clients.to_string(),
        ),
        ("maxclients", limits.max_clients.to_string()),
        (
            "maxmemory-clients",
            limits.clients.max_client_buffers.0.to_string(),
        ),
        (
            "max-client-mailboxes",
            limits.quotas.max_client_mailboxes.to_string(),
        ),
        (
            "max-client-tables",
            limits.quotas.max_client_tables.to_string(),
        ),
        (
            "max-cursor-bytes",
            limits.quotas.max_cursor_bytes.0.to_string(),
        ),
        ("max-cursors", limits.quotas.max_cursors.to_string()),
        (
            "max-mailbox-bytes",
            limits.quotas.max_mailbox_bytes.0.to_string(),
        ),
        (
            "max-mailbox-messages",
            limits.quotas.max_mailbox_messages.to_string(),
        ),
        ("max-mailboxes", limits.quotas.max_mailboxes.to_string()),
        ("max-tables", limits.quotas.max_tables.to_string()),
        ("maxmemory", server.memory.limit().unwrap_or(0).to_string()),
        (
            "maxmemory-policy",
            limits.memory.max_memory_policy.to_string(),
        ),
        (
            "maxmemory-samples",
            limits.memory.max_memory_samples.to_string(),
        ),
        ("port", port(listening.plain)),
        ("proto-max-bulk-len", limits.max_argument.0.to_string()),
        ("protected-mode", on(server.protected_mode)),
        ("requirepass", String::new()),
        (
            "reserved-clients",
            limits.clients.reserved_clients.to_string(),
        ),
        ("save", String::new()),
        (
            "table-directory",
            server
                .table_directory
                .as_ref()
                .map_or_else(String::new, |directory| directory.display().to_string()),
        ),
        ("tcp-keepalive", limits.clients.tcp_keepalive.to_string()),
        ("threads", server.threads.count().to_string()),
        ("tls-auth-clients", {
            let asked = files.map(|files| files.auth_clients);
            asked.map_or_else(String::new, |asked| asked.to_string())
        }),
        ("tls-ca-cert-file", {
            let authorities = files.and_then(|files| files.authorities.as_deref());
            path(authorities)
        }),
        (
            "tls-cert-file",
            path(files.map(|files| &*files.certificate)),
        ),
        ("tls-key-file", path(files.map(|files| &*files.key))),
        ("tls-port", port(listening.tls)),
        ("turn", limits.turn.time.to_string()),
        ("timeout", limits.clients.timeout.to_string()),
        (
            "unixsocket",
            listening.unix.as_deref().unwrap_or_default().to_owned(),
        ),
    ];
    let mut found: Vec<(&[u8], &str)> = Vec::new();
    for pattern in arguments.skip(2) {
        // A plain name comes back as the client wrote it, not as it is written here.
        let is_plain = !pattern.iter().any(|byte| b"*?[".contains(byte));
        let lower = pattern.to_ascii_lowercase();
        for (name, value) in &parameters {
            let known = name.as_bytes();
            let matches = if is_plain {
                lower == known
            } else {
                glob::matches(&lower, known).map_err(|_| Failure::PATTERN)?
            };
            if matches
                && !found
                    .iter()
                    .any(|(name, _)| name.eq_ignore_ascii_case(known))
            {
                found.push((if is_plain { pattern } else { known }, value));
            }
        }
    }
    context.reply.map(found.len());
    for (name, value) in found {
        context.reply.bulk(name);
        context.reply.bulk(value.as_bytes());
    }
    Ok(Next::Reply)
}
