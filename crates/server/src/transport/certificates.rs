//! The server's certificate, its key, and the authorities whose clients it lets in.
//!
//! They are files in PEM form, which are read at the start and on SIGHUP. Sessions keep what they
//! began with.

use clap::ValueEnum;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// Bytes of a file of certificates or of a key: more than all authorities of a system have.
const LONGEST: u64 = 4 << 20;

/// Whether clients must prove who they are by a certificate, with Redis's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuthClients {
    /// A client without a certificate of an authority is refused.
    Yes,
    /// No client is asked for one.
    No,
    /// A client may have none. A certificate that is not an authority's is refused.
    Optional,
}

impl fmt::Display for AuthClients {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        out.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// The files that TLS needs.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, and behind it those that lead to an authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The authorities whose clients are let in. Needed unless no client is asked.
    pub authorities: Option<PathBuf>,
    /// Whether clients must have a certificate.
    pub auth_clients: AuthClients,
}

/// Why files of TLS are not taken. Nothing of them is.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Clients must have certificates, and no authority says which.
    #[error(
        "--tls-auth-clients {0} needs a file of authorities (--tls-ca); or set --tls-auth-clients no"
    )]
    NoAuthorities(AuthClients),
}

/// What TLS begins sessions with.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Certificates {
    pub(crate) fn load(files: TlsFiles) -> Result<Self, CertificateError> {
        let config = RwLock::new(config(&files)?);
        Ok(Self { files, config })
    }

    /// Reads the files again, for the sessions that begin from now on. If one is wrong, all stay as
    /// they are.
    pub(crate) fn reload(&self) -> Result<(), CertificateError> {
        let next = config(&self.files)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// What the next session begins with.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn config(files: &TlsFiles) -> Result<Arc<ServerConfig>, CertificateError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.certificate, &error))?;
    let builder = match (files.auth_clients, &files.authorities) {
        (AuthClients::No, _) => builder.with_no_client_auth(),
        (asked, None) => return Err(CertificateError::NoAuthorities(asked)),
        (asked, Some(path)) => {
            let roots = Arc::new(authorities(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = match asked {
                AuthClients::Optional => verifier.allow_unauthenticated(),
                AuthClients::Yes | AuthClients::No => verifier,
            };
            let verifier = verifier.build().map_err(|error| wrong(path, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = certificates(&files.certificate)?;
    let key = private_key(&files.key)?;
    let config = builder.with_single_cert(chain, key);
    let config = config.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            let certificate = files.certificate.display();
            let problem = format!("this is not the key of the certificate in {certificate}");
            wrong(&files.key, &problem)
        }
        // Else the key would be wrong by itself.
        rustls::Error::InvalidCertificate(_) => wrong(&files.certificate, &error),
        _ => wrong(&files.key, &error),
    })?;
    Ok(Arc::new(config))
}

pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| wrong(path, &error))?;
    }
    Ok(roots)
}

/// The certificates of a file, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let text = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| pem_error(path, &error, "certificate"))?;
    if all.is_empty() {
        return Err(pem_error(path, &pem::Error::NoItemsFound, "certificate"));
    }
    Ok(all)
}

pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let key = PrivateKeyDer::from_pem_slice(&read(path)?);
    key.map_err(|error| pem_error(path, &error, "private key that needs no passphrase"))
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let failed = |source| CertificateError::Io {
        path: path.to_owned(),
        source,
    };
    let length = fs::metadata(path).map_err(failed)?.len();
    if length > LONGEST {
        let problem = format!("it has {length} bytes, more than {LONGEST}");
        return Err(wrong(path, &problem));
    }
    fs::read(path).map_err(failed)
}

fn pem_error(path: &Path, error: &pem::Error, wanted: &str) -> CertificateError {
    match error {
        pem::Error::NoItemsFound => {
            let problem = format!("there is no {wanted} in it, in PEM form");
            wrong(path, &problem)
        }
        error => wrong(path, error),
    }
}

fn wrong(path: &Path, problem: &impl ToString) -> CertificateError {
    CertificateError::File {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}
