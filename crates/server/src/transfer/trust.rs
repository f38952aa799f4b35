//! The authorities that a client of a server with TLS trusts, and the client's own certificate.

use crate::transport::{CertificateError, authorities, certificates, private_key};
use rustls::ClientConfig;
use rustls::crypto::ring;
use std::path::Path;
use std::sync::Arc;

/// What a connection over TLS needs: the authorities whose servers are trusted, and perhaps a
/// certificate of the client's own.
///
/// ```
/// use std::path::Path;
/// use tremula_server::transfer::Trust;
///
/// let missing = Trust::load(Path::new("no such file"), None).unwrap_err();
/// assert!(missing.to_string().starts_with("no such file: "));
/// ```
#[derive(Clone, Debug)]
pub struct Trust(pub(super) Arc<ClientConfig>);

impl Trust {
    /// Reads files in PEM form: of authorities, and of the client's certificate and its key.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or does not hold what it should.
    pub fn load(
        authorities_file: &Path,
        own: Option<(&Path, &Path)>,
    ) -> Result<Self, CertificateError> {
        let wrong = |path: &Path, error: &rustls::Error| CertificateError::File {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(authorities_file, &error))?
            .with_root_certificates(authorities(authorities_file)?);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
                .map_err(|error| wrong(key, &error))?,
        };
        Ok(Self(Arc::new(config)))
    }
}
