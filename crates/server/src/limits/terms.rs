//! How large terms may get, and how many atoms clients may make.

use super::Bytes;
use std::ops::RangeInclusive;
use tremula_table::term::{Atom, AtomQuota, Bounds, Limits};

/// Bytes of one row of a table, or of one term that a match specification makes; shared parts count
/// in full. A thread prints or compares so much in a few tenths of a second. It is as much as a
/// compressed term may expand to.
pub const MAX_TERM: Bytes = Bytes(Limits::EXPANDED_BYTES);

/// A row of a few short values takes some hundred bytes. Sizes are counted up to a terabyte.
const TERM_RANGE: RangeInclusive<usize> = 1 << 10..=512 << 30;

/// How deep terms may be nested in a row of a table, or in a term that a match specification makes.
/// It is as deep as an argument may be, so that a client can send back what it has received.
pub const MAX_TERM_DEPTH: usize = Limits::NESTING;

/// Depths are counted up to 16 million.
const DEPTH_RANGE: RangeInclusive<usize> = 1..=10_000_000;

/// Atoms of the process, which are never freed: as many as an Erlang node has by default. They take
/// about 100 MiB.
pub const MAX_ATOMS: u32 = Atom::MAX_ATOMS;

/// New atoms of all clients of one address. A program has some thousand names, and the first client
/// that uses a name makes it for all. Sixteen addresses would have to spend this before others
/// cannot make atoms. It is not a number for each connection, because a client can connect again.
pub const MAX_CLIENT_ATOMS: u32 = 65_536;

/// The flags of terms.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct TermLimits {
    /// Bytes of one row of a table, or of one result of a match specification: 1kb to 512gb
    #[arg(long, value_name = "BYTES", default_value_t = MAX_TERM, value_parser = parse_term)]
    pub max_term: Bytes,

    /// Levels of terms in such a row or result: 1 to 10000000
    #[arg(long, value_name = "LEVELS", default_value_t = MAX_TERM_DEPTH, value_parser = parse_depth)]
    pub max_term_depth: usize,

    /// Atoms of the process, which are never freed: 1 to 1048576
    #[arg(long, value_name = "N", default_value_t = MAX_ATOMS, value_parser = parse_atoms)]
    pub max_atoms: u32,

    /// New atoms that the clients of one address may make, also one after the other: 0 to 1048576
    #[arg(long, value_name = "N", default_value_t = MAX_CLIENT_ATOMS, value_parser = parse_client_atoms)]
    pub max_client_atoms: u32,
}

impl Default for TermLimits {
    fn default() -> Self {
        Self {
            max_term: MAX_TERM,
            max_term_depth: MAX_TERM_DEPTH,
            max_atoms: MAX_ATOMS,
            max_client_atoms: MAX_CLIENT_ATOMS,
        }
    }
}

impl TermLimits {
    /// The bounds of what tables keep.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            bytes: self.max_term.0,
            depth: self.max_term_depth,
        }
    }

    /// What the clients of one address may make.
    pub(crate) fn atom_quota(&self) -> AtomQuota {
        AtomQuota::new(self.max_client_atoms, self.max_atoms)
    }
}

fn parse_term(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    if TERM_RANGE.contains(&bytes.0) {
        return Ok(bytes);
    }
    let (least, most) = (Bytes(*TERM_RANGE.start()), Bytes(*TERM_RANGE.end()));
    Err(format!("a term may have {least} to {most}"))
}

fn parse_depth(text: &str) -> Result<usize, String> {
    number(text, DEPTH_RANGE, "levels")
}

fn parse_atoms(text: &str) -> Result<u32, String> {
    number(text, 1..=Atom::MAX_ATOMS, "atoms")
}

fn parse_client_atoms(text: &str) -> Result<u32, String> {
    number(text, 0..=Atom::MAX_ATOMS, "atoms")
}

fn number<N>(text: &str, range: RangeInclusive<N>, what: &str) -> Result<N, String>
where
    N: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("there may be {} to {} {what}", range.start(), range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn parsed(arguments: &[&str]) -> Result<TermLimits, String> {
        let command = TermLimits::augment_args(clap::Command::new("serve"));
        let matches = command.try_get_matches_from([&["serve"], arguments].concat());
        let matches = matches.map_err(|error| error.to_string())?;
        TermLimits::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn each_flag_has_a_default_and_a_range() {
        assert_eq!(parsed(&[]), Ok(TermLimits::default()));
        for (flag, wrong, range) in [
            ("--max-term", ["1023", "513gb"], "1kb to 512gb"),
            (
                "--max-term-depth",
                ["0", "10000001"],
                "1 to 10000000 levels",
            ),
            ("--max-atoms", ["0", "1048577"], "1 to 1048576 atoms"),
            (
                "--max-client-atoms",
                ["-1", "1048577"],
                "0 to 1048576 atoms",
            ),
        ] {
            for value in wrong {
                let error = parsed(&[&format!("{flag}={value}")]).unwrap_err();
                assert!(error.contains(value) && error.contains(range), "{error}");
            }
        }
        let limits = parsed(&["--max-term", "1mb", "--max-client-atoms", "0"]).unwrap();
        assert_eq!(
            (limits.bounds().bytes, limits.max_client_atoms),
            (1 << 20, 0)
        );
    }
}
