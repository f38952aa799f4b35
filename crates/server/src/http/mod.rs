//! The server as a page, and as metrics.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the flags, and the beginning |
//! | `program` | what the page shows of the server |
//! | `database` | a database as a map of the page |
//! | `console` | commands of the page, as a client of the server runs them |
//!
//! The page has threads of its own. It reads what the workers count, and asks nothing of them but
//! the commands of its console, which come to them as those of any client.

mod console;
mod database;
mod program;
mod table;

use crate::listen::ListenArgs;
use crate::server::Server;
use program::Program;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;
use tremula_observe::{Page, Settings};
use tremula_sync::counting_allocator::pass_on;

/// Where the page is if nothing is said.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 6381);

/// Where the page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this address; port 0 picks a free one.
    At(SocketAddr),
    /// Nowhere.
    Off,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => address.fmt(out),
            Self::Off => out.write_str("off"),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse()
            .map(Self::At)
            .map_err(|_| format!("'{text}' is no address and port; write 127.0.0.1:6381, or off"))
    }
}

/// The flags of `tremula serve` about the page.
#[derive(clap::Args, Clone, Debug)]
pub struct HttpArgs {
    /// Address and port of the page with figures, the contention map and /metrics over HTTP; port 0
    /// picks a free one; off is none [default: 127.0.0.1:6381 if that is free; off with --port 0]
    #[arg(long, value_name = "ADDRESS|off")]
    pub http: Option<Place>,

    /// User whose rights the page has without a login: with them it reads
    /// [default: default, as long as that user needs no password]
    #[arg(long, value_name = "USER")]
    pub http_user: Option<String>,
}

/// Why there is no page although it was asked for.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address is not available.
    #[error("cannot listen on {address} for HTTP: {source}; choose another with --http, or off")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The page has no thread.
    #[error("cannot start the page: {0}")]
    Thread(#[source] io::Error),
    /// There is no such user.
    #[error("--http-user {0}: there is no such user; name one of --acl-file")]
    NoUser(String),
}

/// A page that listens.
pub(crate) struct Http {
    page: Page,
    user: Option<String>,
    program: Option<Arc<Program>>,
}

impl HttpArgs {
    /// Listens, if there is to be a page. Until it is [shown](Http::show) what there is, it says
    /// that the server starts.
    pub(crate) fn open(&self, listen: &ListenArgs) -> Result<Option<Http>, HttpError> {
        let Place::At(address) = self.place(listen) else {
            return Ok(None);
        };
        let settings = Settings {
            has_token: true,
            on_thread_stop: Some(pass_on),
        };
        match Page::bind(address, settings) {
            Ok(page) => Ok(Some(Http {
                page,
                user: self.http_user.clone(),
                program: None,
            })),
            Err(error) if self.http.is_none() && error.kind() == ErrorKind::AddrInUse => Ok(None),
            Err(source) => Err(HttpError::Listen { address, source }),
        }
    }

    /// Says that there is no page because its usual address is taken, once the server itself
    /// listens: a server that does not start says only why.
    pub(crate) fn warn_if_taken(&self, listen: &ListenArgs) {
        if let Place::At(address) = self.place(listen) {
            tracing::warn!(
                "{address} is taken, so there is no page and no /metrics; choose another with \
                 --http, or off"
            );
        }
    }

    fn place(&self, listen: &ListenArgs) -> Place {
        self.http.unwrap_or(match listen.port.0 {
            Some(0) => Place::Off,
            _ => Place::At(USUAL),
        })
    }
}

impl Http {
    /// Shows the server from now on.
    pub(crate) fn show(&mut self, server: &Server) -> Result<(), HttpError> {
        let shared = server.shared();
        if let Some(name) = &self.user
            // The users of a group are in its log, and may not be there yet.
            && shared.group.is_none()
            && shared.users.get(name.as_bytes()).is_none()
        {
            return Err(HttpError::NoUser(name.clone()));
        }
        let program = Arc::new(Program::new(Arc::clone(shared), self.user.clone()));
        let observed = Arc::clone(&program) as Arc<dyn tremula_observe::Observed>;
        self.page.show(observed).map_err(HttpError::Thread)?;
        self.program = Some(program);
        Ok(())
    }

    /// Says that the server serves, and how to reach the page.
    pub(crate) fn ready(&self) {
        if let Some(program) = &self.program {
            program.set_ready();
        }
        let address = self.page.address();
        if !address.ip().is_loopback() {
            tracing::warn!(
                "other machines that reach {address} can read /metrics, /health and /ready there; \
                 the page itself is only for this machine"
            );
        }
        let token = self.page.token().unwrap_or_default();
        tracing::info!(token, "page on http://{address}/");
        let line =
            format!("page on http://{address}/ (commands that write need the token {token})\n");
        // If nobody reads what is printed, the log may have it.
        let _ = io::stdout().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_or_none() {
        assert_eq!("off".parse(), Ok(Place::Off));
        let place: Place = "[::1]:80".parse().expect("a place");
        assert_eq!(place.to_string(), "[::1]:80");
        for wrong in [
            "",
            "6381",
            "localhost:1",
            "127.0.0.1",
            "127.0.0.1:65536",
            "OFF",
        ] {
            let error = wrong.parse::<Place>().expect_err(wrong);
            assert!(error.contains(wrong), "{error}");
        }
    }
}
