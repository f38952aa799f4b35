//! What a client may take for the handshake of TLS, before the server knows anything of it.

use super::{Bytes, parse_bytes};

/// Seconds for a handshake: any network's, with a key on a card that a person confirms.
pub const HANDSHAKE_TIMEOUT: u64 = 10;

/// Bytes of the client's part of a handshake: a long chain of certificates.
pub const MAX_HANDSHAKE: Bytes = Bytes(64 << 10);

/// The least limit of a handshake: one certificate with a long key fits.
const LEAST_HANDSHAKE: usize = 8 << 10;

/// The most that TLS's implementation holds of a handshake.
const MOST_HANDSHAKE: usize = 64 << 10;

/// The flags of handshakes.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct TlsLimits {
    /// Seconds for the handshake of TLS, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = HANDSHAKE_TIMEOUT, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub handshake_timeout: u64,

    /// Bytes that a client sends in the handshake of TLS, 8kb to 64kb
    #[arg(long, value_name = "BYTES", default_value_t = MAX_HANDSHAKE, value_parser = parse_handshake)]
    pub max_handshake: Bytes,
}

impl Default for TlsLimits {
    fn default() -> Self {
        Self {
            handshake_timeout: HANDSHAKE_TIMEOUT,
            max_handshake: MAX_HANDSHAKE,
        }
    }
}

fn parse_handshake(text: &str) -> Result<Bytes, String> {
    let bytes = parse_bytes(text, LEAST_HANDSHAKE)?;
    if bytes.0 > MOST_HANDSHAKE {
        return Err(format!("it is at most {}", Bytes(MOST_HANDSHAKE)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    #[test]
    fn every_flag_has_the_default_and_a_range() {
        let parsed = |arguments: &[&str]| -> Result<TlsLimits, String> {
            let command = TlsLimits::augment_args(clap::Command::new("serve"));
            let matches = command.try_get_matches_from([&["serve"], arguments].concat());
            let matches = matches.map_err(|error| error.to_string())?;
            TlsLimits::from_arg_matches(&matches).map_err(|error| error.to_string())
        };
        assert_eq!(parsed(&[]), Ok(TlsLimits::default()));
        for (flag, wrong, range) in [
            ("--handshake-timeout", "0", "1..=3600"),
            ("--handshake-timeout", "3601", "1..=3600"),
            ("--max-handshake", "1kb", "at least 8kb"),
            ("--max-handshake", "65kb", "at most 64kb"),
        ] {
            let error = parsed(&[flag, wrong]).unwrap_err();
            assert!(error.contains(range), "{flag} {wrong}: {error}");
        }
    }
}
