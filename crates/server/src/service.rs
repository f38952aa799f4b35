//! Words to the manager of services that has started the program: systemd's protocol, a datagram of
//! lines to the socket that NOTIFY_SOCKET names.

use std::env;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The manager of services, if there is one that listens.
#[derive(Default)]
pub(crate) struct Service(Option<(UnixDatagram, SocketAddr)>);

impl Service {
    /// The one that the environment names.
    pub(crate) fn from_environment() -> Self {
        let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self(None);
        };
        let connected = address(name.as_bytes()).and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            Ok((socket, address))
        });
        match connected {
            Ok(connected) => Self(Some(connected)),
            Err(error) => {
                let name = name.to_string_lossy();
                tracing::warn!(
                    "NOTIFY_SOCKET {name}: {error}; nobody hears of this server's state"
                );
                Self(None)
            }
        }
    }

    /// Says in words what the server does.
    pub(crate) fn status(&self, text: &str) {
        self.tell(&format!("STATUS={text}"));
    }

    /// Says that the server serves.
    pub(crate) fn ready(&self, text: &str) {
        self.tell(&format!("READY=1\nSTATUS={text}"));
    }

    /// Says that the server ends.
    pub(crate) fn stopping(&self, text: &str) {
        self.tell(&format!("STOPPING=1\nSTATUS={text}"));
    }

    /// Asks for more time to start or to end, from now on.
    pub(crate) fn wait_longer(&self, time: Duration) {
        self.tell(&format!("EXTEND_TIMEOUT_USEC={}", time.as_micros()));
    }

    fn tell(&self, state: &str) {
        let Some((socket, address)) = &self.0 else {
            return;
        };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            tracing::debug!("NOTIFY_SOCKET: {error}");
        }
    }
}

/// A name that begins with @ is none of a file.
#[cfg(target_os = "linux")]
fn address(name: &[u8]) -> std::io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)),
    }
}

#[cfg(not(target_os = "linux"))]
fn address(name: &[u8]) -> std::io::Result<SocketAddr> {
    SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))
}
