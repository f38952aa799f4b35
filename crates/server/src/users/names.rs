//! Names by patterns: of tables, mailboxes and channels.

use super::{RuleError, has_blanks};
use crate::glob;

/// The names that a selector opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    all: bool,
    patterns: Vec<Vec<u8>>,
}

impl Names {
    pub(super) fn set(&mut self, all: bool) {
        self.all = all;
        self.patterns.clear();
    }

    pub(super) fn are_all(&self) -> bool {
        self.all
    }

    /// Adds the names that match a pattern; `after_all` is the error if all names are open.
    pub(super) fn add(&mut self, pattern: &[u8], after_all: RuleError) -> Result<(), RuleError> {
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        if pattern == b"*" {
            self.set(true);
        } else if self.all {
            return Err(after_all);
        } else if !self.patterns.iter().any(|known| known == pattern) {
            self.patterns.push(pattern.to_vec());
        }
        Ok(())
    }

    pub(super) fn allow(&self, name: &[u8]) -> bool {
        // A pattern that takes too long to match lets nobody in.
        let allows = |pattern: &Vec<u8>| glob::matches(pattern, name).unwrap_or(false);
        self.all || self.patterns.iter().any(allows)
    }

    /// Whether all names that match a pattern are open, because the pattern itself is one of these.
    pub(super) fn allow_pattern(&self, pattern: &[u8]) -> bool {
        self.all || self.patterns.iter().any(|known| known == pattern)
    }

    /// The patterns as words that begin with `sign`, each with a space before it.
    pub(super) fn describe(&self, sign: &str, out: &mut Vec<u8>) {
        let all = self.all.then_some(&b"*"[..]);
        for pattern in all
            .into_iter()
            .chain(self.patterns.iter().map(Vec::as_slice))
        {
            out.push(b' ');
            out.extend_from_slice(sign.as_bytes());
            out.extend_from_slice(pattern);
        }
    }
}
