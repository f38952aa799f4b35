//! Sessions of TLS, whatever the client sends, and however it is cut.

use super::cut::Cuts;
use crate::transport::Session;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use std::io::{ErrorKind, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A certificate for `localhost`, signed with its own key, and that key, which protects nothing.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

/// A moment at which the certificate is valid, in seconds since 1970.
const NOW: u64 = 1_800_000_000;

/// What a session may hold of a record that has not arrived as a whole, and at rest.
const HELD: usize = 64 << 10;

/// Rounds of a handshake, of which two or three are needed.
const ROUNDS: usize = 8;

/// Two bytes say which byte of the client's is changed, one how, and one which version is spoken.
const HEAD: usize = 4;

/// What a client of TLS sends: the bytes as they are; and a real client that sends them, encrypted,
/// with one byte changed on the way.
///
/// A session does not panic, and hands on nothing that the client has not sent: a change ends it
/// with an error, or comes to nothing. Without a change it hands on everything, however it is cut.
///
/// # Panics
///
/// One of these does not hold.
pub fn tls(data: &[u8]) {
    let mut cuts = Cuts::of(data);
    let whole = raw(data, || usize::MAX);
    assert_eq!(raw(data, || cuts.next()), whole, "cut");
    if let Some((head, text)) = data.split_at_checked(HEAD) {
        let at = usize::from(u16::from_be_bytes([head[0], head[1]]));
        let is_new = head[3].is_multiple_of(2);
        let mut exchange = Exchange::new(is_new, Change { at, bits: head[2] });
        exchange.run(text, || cuts.next());
    }
}

/// Whether a session takes these bytes, without a client that goes on with the handshake.
fn raw(bytes: &[u8], mut piece: impl FnMut() -> usize) -> bool {
    let (mut session, mut input) = (session(), Vec::new());
    let taken = take(&mut session, bytes, &mut input, &mut piece);
    assert!(input.is_empty(), "text before the end of the handshake");
    taken
}

/// Hands bytes to a session in pieces. Returns whether it takes them.
fn take(
    session: &mut Session,
    mut bytes: &[u8],
    input: &mut Vec<u8>,
    piece: &mut impl FnMut() -> usize,
) -> bool {
    while !bytes.is_empty() {
        let (arrived, rest) = bytes.split_at(piece().min(bytes.len()));
        bytes = rest;
        if let Err(error) = session.take(arrived, input) {
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
            return false;
        }
        assert!(session.held() <= HELD);
    }
    true
}

/// A byte of what the client sends, and the bits of it that are changed.
struct Change {
    at: usize,
    bits: u8,
}

impl Change {
    /// Changes the byte if it is one of these. Returns whether it has.
    fn apply(&self, bytes: &mut [u8], before: usize) -> bool {
        let at = self.at.checked_sub(before);
        let byte = at.and_then(|at| bytes.get_mut(at));
        let changes = byte.is_some() && self.bits != 0;
        if let Some(byte) = byte {
            *byte ^= self.bits;
        }
        changes
    }
}

/// A client and a session.
struct Exchange {
    client: ClientConnection,
    session: Session,
    change: Change,
    /// Bytes that the client has sent.
    sent: usize,
    /// Whether one of them was changed.
    is_changed: bool,
    /// What the session has handed on.
    input: Vec<u8>,
}

impl Exchange {
    fn new(is_new: bool, change: Change) -> Self {
        Self {
            client: client(is_new),
            session: session(),
            change,
            sent: 0,
            is_changed: false,
            input: Vec::new(),
        }
    }

    fn run(&mut self, text: &[u8], mut piece: impl FnMut() -> usize) {
        let mut is_alive = true;
        for _ in 0..ROUNDS {
            is_alive = is_alive && self.pass(&mut piece);
            if !is_alive || !self.client.is_handshaking() {
                break;
            }
        }
        if is_alive {
            self.client.writer().write_all(text).expect("room");
            is_alive = self.pass(&mut piece);
        }
        assert!(text.starts_with(&self.input), "bytes that were not sent");
        if !self.is_changed {
            assert!(is_alive, "an error without a reason");
            assert_eq!(self.input, text, "bytes are lost");
        }
    }

    /// Brings what the client says to the session, and what that says back to the client. Returns
    /// whether both go on.
    fn pass(&mut self, piece: &mut impl FnMut() -> usize) -> bool {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).expect("memory");
        }
        self.is_changed |= self.change.apply(&mut bytes, self.sent);
        self.sent += bytes.len();
        let is_taken = take(&mut self.session, &bytes, &mut self.input, piece);
        let mut answer = Vec::new();
        self.session.flush_to(&mut answer).expect("memory");
        assert_eq!(self.session.unsent(), 0);
        let mut answer = &answer[..];
        while is_taken && !answer.is_empty() {
            let read = self.client.read_tls(&mut answer);
            if read.is_err() || self.client.process_new_packets().is_err() {
                // A client that has read nonsense says so to the session.
                assert!(
                    self.is_changed,
                    "the client does not understand the session"
                );
                break;
            }
        }
        is_taken
    }
}

fn session() -> Session {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions");
        let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
        let config = builder.with_no_client_auth();
        let config = config.with_single_cert(vec![certificate()], key);
        Arc::new(config.expect("a certificate with its key"))
    });
    Session::new(Arc::clone(config), None).expect("a session")
}

fn client(is_new: bool) -> ClientConnection {
    static CONFIGS: OnceLock<[Arc<ClientConfig>; 2]> = OnceLock::new();
    let configs = CONFIGS.get_or_init(|| {
        [&TLS12, &TLS13].map(|version| {
            let provider = Arc::new(ring::default_provider());
            let builder = ClientConfig::builder_with_details(provider, Arc::new(Now))
                .with_protocol_versions(&[version])
                .expect("a version");
            let mut roots = RootCertStore::empty();
            roots.add(certificate()).expect("a certificate");
            let builder = builder.with_root_certificates(roots);
            let mut config = builder.with_no_client_auth();
            // Each input has a handshake of its own.
            config.resumption = Resumption::disabled();
            Arc::new(config)
        })
    });
    let config = Arc::clone(&configs[usize::from(is_new)]);
    let name = ServerName::try_from("localhost").expect("a name");
    ClientConnection::new(config, name).expect("a client")
}

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate")
}

/// A clock that stands still.
#[derive(Debug)]
struct Now;

impl TimeProvider for Now {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(NOW)))
    }
}
