//! Bugs to plant in how clients come to the server: over TLS and over a unix socket.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Clients with TLS.
const fn tls(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_tls"),
        filter,
    }
}

/// Clients of a unix socket.
const fn unix(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_unix"),
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "server_tls_needs_no_certificate_of_clients",
        file: "crates/server/src/transport/certificates.rs",
        original: "                AuthClients::Yes | AuthClients::No => verifier,",
        replacement: "                AuthClients::Yes | AuthClients::No => verifier.allow_unauthenticated(),",
        why: "Whoever reaches the port is let in, though the operator asks for certificates.",
        checker: tls("certificates_of_clients"),
        hangs: false,
    },
    Mutant {
        name: "server_tls_reload_drops_clients",
        file: "crates/server/src/server.rs",
        original: "            Ok(()) => tracing::warn!(\"SIGHUP: the certificates are read again\"),",
        replacement: "            Ok(()) => {\n                shared.clients.close();\n                tracing::warn!(\"SIGHUP: the certificates are read again\");\n            }",
        why: "Each new certificate ends all connections.",
        checker: tls("certificates_are_read_again"),
        hangs: false,
    },
    Mutant {
        name: "server_tls_reload_changes_nothing",
        file: "crates/server/src/transport/certificates.rs",
        original: "        *self.config.write().unwrap_or_else(PoisonError::into_inner) = next;",
        replacement: "        drop(next);",
        why: "The server goes on with a certificate that expires.",
        checker: tls("certificates_are_read_again"),
        hangs: false,
    },
    Mutant {
        name: "server_tls_handshakes_have_no_size",
        file: "crates/server/src/transport/session.rs",
        original: "        if self.shaken > most && self.connection.is_handshaking() {",
        replacement: "        if self.shaken > most && !self.connection.is_handshaking() {",
        why: "A client that has not proved who it is fills memory beyond the limit.",
        checker: tls("a_time_and_a_size"),
        hangs: false,
    },
    Mutant {
        name: "server_tls_moves_clients_without_their_keys",
        file: "crates/server/src/connection.rs",
        original: "        connection.stream.socket = socket;",
        replacement: "        connection.stream = Stream::plain(socket);",
        why: "A client that moves to another thread gets its replies in plain text.",
        checker: tls("move_between_threads"),
        hangs: false,
    },
    Mutant {
        name: "server_tls_does_not_know_plain_text",
        file: "crates/server/src/transport/session.rs",
        original: "*byte != HANDSHAKE_RECORD",
        replacement: "*byte == 0",
        why: "A client that comes to the wrong port gets bytes that it cannot read.",
        checker: tls("nonsense_is_answered"),
        hangs: false,
    },
    Mutant {
        name: "server_removes_the_socket_of_another_server",
        file: "crates/server/src/transport/unix.rs",
        original: "        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {",
        replacement: "        _ if path.exists() => {",
        why: "A second server takes the clients of the first.",
        checker: unix("nobody_listens"),
        hangs: false,
    },
    Mutant {
        name: "server_ignores_the_mode_of_its_socket",
        file: "crates/server/src/transport/unix.rs",
        original: "    fs::set_permissions(&socket.path, Permissions::from_mode(socket.mode.0))?;\n",
        replacement: "    let _ = Permissions::from_mode(socket.mode.0);\n",
        why: "Other users of the machine connect to a socket that is not for them.",
        checker: unix("the_mode"),
        hangs: false,
    },
];
