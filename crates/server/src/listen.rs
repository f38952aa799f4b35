//! Where the server listens: the flags, and the listeners.

use crate::transport::{
    Address, AuthClients, CertificateError, Certificates, Incoming, SocketMode, TlsFiles,
    UnixAcceptor, UnixError, UnixSocket,
};
use std::fmt;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;
use tokio::net::TcpListener;

/// The port of clients without encryption.
const PORT: Port = Port(Some(6380));

/// A port to listen on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub Option<u16>);

impl fmt::Display for Port {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(port) => port.fmt(out),
            None => out.write_str("none"),
        }
    }
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let port = text.parse().ok();
        port.map(|port| Self(Some(port)))
            .ok_or_else(|| format!("'{text}' is not a port; write 0 to 65535, or none"))
    }
}

/// The flags of `tremula serve` that say where it listens.
#[derive(clap::Args, Clone, Debug)]
pub struct ListenArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub bind: IpAddr,

    /// Port to listen on without encryption; 0 picks a free one; none is for TLS or a unix socket
    /// alone
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    pub port: Port,

    /// Port to listen on with TLS; 0 picks a free one [default: none]
    #[arg(long, value_name = "PORT", requires = "tls_cert", requires = "tls_key")]
    pub tls_port: Option<u16>,

    /// File with the server's certificate, and behind it those that lead to an authority, in PEM
    /// form; read again on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_port")]
    pub tls_cert: Option<PathBuf>,

    /// File with the private key of the certificate, in PEM form; read again on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_port")]
    pub tls_key: Option<PathBuf>,

    /// File with the authorities whose clients are let in, in PEM form; read again on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_port")]
    pub tls_ca: Option<PathBuf>,

    /// Whether clients with TLS need a certificate of an authority: yes, no, or optional, where one
    /// that is sent must be right
    #[arg(long, value_name = "YES|NO|OPTIONAL", default_value_t = AuthClients::Yes, hide_possible_values = true)]
    pub tls_auth_clients: AuthClients,

    /// Unix socket to listen on [default: none]
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,

    /// Permissions of the unix socket's file in octal digits; a client needs the one to write
    #[arg(long, value_name = "MODE", default_value_t = SocketMode::OWNER)]
    pub unix_socket_mode: SocketMode,
}

/// Where a server listens: at one place at least.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Without encryption, on this address; port 0 picks a free one.
    pub plain: Option<SocketAddr>,
    /// With TLS, on this address.
    pub tls: Option<(SocketAddr, TlsFiles)>,
    /// On a unix socket.
    pub unix: Option<UnixSocket>,
}

impl Listen {
    /// On one address, without encryption.
    #[must_use]
    pub fn plain(address: SocketAddr) -> Self {
        Self {
            plain: Some(address),
            tls: None,
            unix: None,
        }
    }
}

impl From<&ListenArgs> for Listen {
    fn from(arguments: &ListenArgs) -> Self {
        let address = |port| SocketAddr::new(arguments.bind, port);
        let tls = arguments.tls_port.map(address);
        let files = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
        Self {
            plain: arguments.port.0.map(address),
            tls: tls.zip(files.map(|(certificate, key)| TlsFiles {
                certificate,
                key,
                authorities: arguments.tls_ca.clone(),
                auth_clients: arguments.tls_auth_clients,
            })),
            unix: arguments.unix_socket.clone().map(|path| UnixSocket {
                path,
                mode: arguments.unix_socket_mode,
            }),
        }
    }
}

/// Where a server listens, once it does.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Without encryption.
    pub plain: Option<SocketAddr>,
    /// With TLS.
    pub tls: Option<SocketAddr>,
    /// The path of the unix socket, as one word of text.
    pub unix: Option<Arc<str>>,
}

impl fmt::Display for Listening {
    /// The places, the one that clients know best first.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        if let Some(address) = self.plain {
            write!(out, "{address}")?;
            before = " and ";
        }
        if let Some(address) = self.tls {
            write!(out, "{before}{address} with TLS")?;
            before = " and ";
        }
        if let Some(path) = &self.unix {
            write!(out, "{before}{path}")?;
        }
        Ok(())
    }
}

/// Why a server does not listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The system does not let it listen on an address.
    #[error("cannot listen on {address}: {source}; choose another with --bind and {flag}")]
    Address {
        /// The requested address.
        address: SocketAddr,
        /// The flag of the port.
        flag: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The unix socket is not there to be taken.
    #[error(transparent)]
    Unix(#[from] UnixError),
    /// The files of TLS are wrong.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// There is no place to listen at.
    #[error("there is nothing to listen on; set --port, --tls-port or --unix-socket")]
    Nowhere,
}

/// By which way a client comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Plain,
    Tls,
}

/// A client that has come, and has not been let in.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) incoming: Incoming,
    pub(crate) way: Way,
    pub(crate) address: Address,
}

/// All that the server listens on. Dropping it ends that, and removes the unix socket's file.
#[derive(Debug)]
pub(crate) struct Listeners {
    plain: Option<TcpListener>,
    tls: Option<TcpListener>,
    unix: Option<UnixAcceptor>,
}

impl Listeners {
    /// Listens, watched by this thread's event loop.
    pub(crate) async fn bind(
        listen: &Listen,
    ) -> Result<(Self, Listening, Option<Certificates>), ListenError> {
        let certificates = match &listen.tls {
            Some((_, files)) => Some(Certificates::load(files.clone())?),
            None => None,
        };
        let tls = listen.tls.as_ref().map(|(address, _)| *address);
        let (plain, plain_address) = on(listen.plain, "--port").await?;
        let (tls, tls_address) = on(tls, "--tls-port").await?;
        let unix = listen.unix.as_ref().map(UnixAcceptor::bind).transpose()?;
        let listening = Listening {
            plain: plain_address,
            tls: tls_address,
            unix: unix.as_ref().map(|unix| Arc::clone(unix.address())),
        };
        if plain.is_none() && tls.is_none() && unix.is_none() {
            return Err(ListenError::Nowhere);
        }
        Ok((Self { plain, tls, unix }, listening, certificates))
    }

    /// The next client.
    pub(crate) async fn accept(&self) -> io::Result<Visitor> {
        // In no order, so that none of the places has to wait for the others.
        tokio::select! {
            accepted = next(self.plain.as_ref()) => tcp(accepted?, Way::Plain),
            accepted = next(self.tls.as_ref()) => tcp(accepted?, Way::Tls),
            visitor = next_local(self.unix.as_ref()) => visitor,
        }
    }
}

async fn on(
    address: Option<SocketAddr>,
    flag: &'static str,
) -> Result<(Option<TcpListener>, Option<SocketAddr>), ListenError> {
    let Some(address) = address else {
        return Ok((None, None));
    };
    let listen = async {
        let listener = TcpListener::bind(address).await?;
        let bound = listener.local_addr()?;
        Ok((Some(listener), Some(bound)))
    };
    listen.await.map_err(|source| ListenError::Address {
        address,
        flag,
        source,
    })
}

async fn next(listener: Option<&TcpListener>) -> io::Result<(tokio::net::TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => pending().await,
    }
}

fn tcp((stream, address): (tokio::net::TcpStream, SocketAddr), way: Way) -> io::Result<Visitor> {
    Ok(Visitor {
        incoming: Incoming::Tcp(stream.into_std()?),
        way,
        address: Address::Internet(address),
    })
}

async fn next_local(acceptor: Option<&UnixAcceptor>) -> io::Result<Visitor> {
    let Some(acceptor) = acceptor else {
        return pending().await;
    };
    let stream = acceptor.accept().await?.into_std()?;
    let path = Arc::clone(acceptor.address());
    Ok(Visitor {
        incoming: Incoming::Unix(stream, Arc::clone(&path)),
        way: Way::Plain,
        address: Address::Unix(path),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_print_as_they_read() {
        for text in ["0", "6380", "65535", "none"] {
            assert_eq!(text.parse::<Port>().unwrap().to_string(), text);
        }
        for wrong in ["", "-1", "65536", "None", "off", "6380 "] {
            let error = wrong.parse::<Port>().unwrap_err();
            assert!(error.contains(wrong) && error.contains("none"), "{error}");
        }
    }

    #[test]
    fn the_places_are_listed() {
        let mut listening = Listening {
            plain: Some(([127, 0, 0, 1], 1).into()),
            tls: Some(([127, 0, 0, 1], 2).into()),
            unix: Some("/x".into()),
        };
        assert_eq!(
            listening.to_string(),
            "127.0.0.1:1 and 127.0.0.1:2 with TLS and /x"
        );
        listening.plain = None;
        assert_eq!(listening.to_string(), "127.0.0.1:2 with TLS and /x");
        listening.tls = None;
        assert_eq!(listening.to_string(), "/x");
    }
}
