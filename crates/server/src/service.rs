//! Words to the manager of services that has started the program: systemd's protocol, a datagram of
//! lines to the socket that NOTIFY_SOCKET names. The manager may ask to hear regularly that the
//! program is alive: WATCHDOG_USEC and WATCHDOG_PID.

use rustix::time::{ClockId, clock_gettime};
use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The manager of services, if there is one that listens.
#[derive(Default)]
pub(crate) struct Service {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The time after which the manager ends a server that says nothing.
    watchdog: Option<Duration>,
}

impl Service {
    /// The one that the environment names.
    pub(crate) fn from_environment() -> Self {
        let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        let connected = address(name.as_bytes()).and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            Ok((socket, address))
        });
        let socket = match connected {
            Ok(connected) => connected,
            Err(error) => {
                let name = name.to_string_lossy();
                tracing::warn!(
                    "NOTIFY_SOCKET {name}: {error}; nobody hears of this server's state"
                );
                return Self::default();
            }
        };
        let variable = |name| env::var_os(name);
        let watchdog = watchdog(
            variable("WATCHDOG_USEC").as_deref(),
            variable("WATCHDOG_PID").as_deref(),
            std::process::id(),
        );
        Self {
            socket: Some(socket),
            watchdog: watchdog.unwrap_or_else(|problem| {
                tracing::warn!("{problem}; the manager of services hears no sign of life");
                None
            }),
        }
    }

    /// How often the manager should hear that the server is alive: twice in the time that it waits
    /// for that. `None` if it does not wait.
    pub(crate) fn sign_every(&self) -> Option<Duration> {
        self.watchdog.map(|time| time / 2)
    }

    /// Says that the server is alive.
    pub(crate) fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// Says in words what the server does.
    pub(crate) fn status(&self, text: &str) {
        self.send(&format!("STATUS={text}"));
    }

    /// Says that the server serves.
    pub(crate) fn ready(&self, text: &str) {
        self.send(&format!("READY=1\nSTATUS={text}"));
    }

    /// Says that the server ends.
    pub(crate) fn stopping(&self, text: &str) {
        self.send(&format!("STOPPING=1\nSTATUS={text}"));
    }

    /// Says that the server reads its settings again, or starts again; [`ready`](Self::ready)
    /// follows.
    pub(crate) fn reloading(&self, text: &str) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec.saturating_mul(1_000_000) + now.tv_nsec / 1000;
        self.send(&format!(
            "RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS={text}"
        ));
    }

    /// Asks for more time to start or to end, from now on.
    pub(crate) fn wait_longer(&self, time: Duration) {
        let longer = format!("EXTEND_TIMEOUT_USEC={}", time.as_micros());
        match self.watchdog {
            // A server that starts again is watched while it loads.
            Some(_) => self.send(&format!("{longer}\nWATCHDOG=1")),
            None => self.send(&longer),
        }
    }

    fn send(&self, state: &str) {
        let Some((socket, address)) = &self.socket else {
            return;
        };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            tracing::debug!("NOTIFY_SOCKET: {error}");
        }
    }
}

/// The time in which the manager wants to hear of this process, by the variables' values.
fn watchdog(
    micros: Option<&OsStr>,
    process: Option<&OsStr>,
    own: u32,
) -> Result<Option<Duration>, String> {
    let Some(micros) = micros else {
        return Ok(None);
    };
    let number = |name: &str, text: &OsStr| {
        let text = text.to_string_lossy();
        let parsed = text.parse::<u64>();
        parsed.map_err(|_| format!("{name} is not a number: {text}"))
    };
    let micros = number("WATCHDOG_USEC", micros)?;
    if let Some(process) = process
        && number("WATCHDOG_PID", process)? != u64::from(own)
    {
        // The variables are for the process that has started this one.
        return Ok(None);
    }
    Ok(Some(Duration::from_micros(micros)).filter(|time| !time.is_zero()))
}

/// A name that begins with @ is none of a file.
#[cfg(target_os = "linux")]
fn address(name: &[u8]) -> std::io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(OsStr::from_bytes(name)),
    }
}

#[cfg(not(target_os = "linux"))]
fn address(name: &[u8]) -> std::io::Result<SocketAddr> {
    SocketAddr::from_pathname(OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_for_one_process() {
        let asked = |micros: &str, process: &str| {
            let given = |text| (text != "-").then_some(text).map(OsStr::new);
            let (micros, process) = (given(micros), given(process));
            watchdog(micros, process, 7).map(|time| time.map(|time| time.as_millis()))
        };
        assert_eq!(asked("-", "7"), Ok(None));
        assert_eq!(asked("20000000", "-"), Ok(Some(20_000)));
        assert_eq!(asked("20000000", "7"), Ok(Some(20_000)));
        assert_eq!(asked("20000000", "8"), Ok(None));
        assert_eq!(asked("0", "7"), Ok(None));
        assert!(asked("soon", "7").unwrap_err().contains("soon"));
        assert!(asked("1", "me").unwrap_err().contains("me"));
    }
}
