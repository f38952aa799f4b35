//! Passwords, of which only SHA-256 is kept, as in Redis.

use super::RuleError;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write;
use subtle::{Choice, ConstantTimeEq};

/// The SHA-256 of a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password([u8; SHA256_OUTPUT_LEN]);

impl Password {
    pub(super) fn of(plain: &[u8]) -> Self {
        let mut hash = [0; SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest(&SHA256, plain).as_ref());
        Self(hash)
    }

    /// Reads what [`to_hex`](Self::to_hex) writes.
    pub(super) fn from_hex(hex: &[u8]) -> Result<Self, RuleError> {
        let (pairs, rest) = hex.as_chunks::<2>();
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
            .collect();
        let hash = bytes.and_then(|bytes| bytes.try_into().ok());
        match (hash, rest) {
            (Some(hash), []) => Ok(Self(hash)),
            _ => Err(RuleError::Hash),
        }
    }

    pub(super) fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// Whether the passwords are the same, in a time that does not depend on where they differ.
    pub(super) fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A new password of random hexadecimal digits, at least `bits` bits; `None` if the system has no
/// random numbers.
pub(crate) fn generate(bits: usize) -> Option<String> {
    let digits = bits.div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    SystemRandom::new().fill(&mut bytes).ok()?;
    let mut text = hex(&bytes);
    text.truncate(digits);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_kept_as_its_sha_256() {
        let known = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
        assert_eq!(Password::of(b"pw").to_hex(), known);
        let read = Password::from_hex(known.as_bytes()).expect("a hash");
        assert!(bool::from(read.is(&Password::of(b"pw"))));
        assert!(!bool::from(read.is(&Password::of(b"pW"))));
        for wrong in [&known[1..], &known.to_uppercase(), &format!("{known}0"), ""] {
            assert_eq!(
                Password::from_hex(wrong.as_bytes()).err(),
                Some(RuleError::Hash)
            );
        }
    }

    #[test]
    fn generated_passwords_have_the_digits_that_were_asked_for_and_differ() {
        for (bits, digits) in [(1, 1), (4, 1), (5, 2), (256, 64), (4096, 1024)] {
            assert_eq!(generate(bits).map(|text| text.len()), Some(digits));
        }
        assert_ne!(generate(256), generate(256));
    }
}
