//! Archives whose bytes depend on what is in them alone: tar, as POSIX has it, and ar.

/// Bytes of a block of a tar archive.
const BLOCK: usize = 512;
/// The longest name in a header, and the longest folder in front of it.
const NAME: usize = 100;
const PREFIX: usize = 155;

/// Something in a tar archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Without a slash in front.
    pub(crate) path: String,
    pub(crate) mode: u32,
    /// The numbers of its user and its group.
    pub(crate) owner: u32,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File(Vec<u8>),
    Folder,
}

impl Entry {
    pub(crate) fn file(path: impl Into<String>, mode: u32, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            mode,
            owner: 0,
            kind: Kind::File(bytes.into()),
        }
    }

    pub(crate) fn folder(path: impl Into<String>, mode: u32, owner: u32) -> Self {
        Self {
            path: path.into(),
            mode,
            owner,
            kind: Kind::Folder,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::File(bytes) => bytes.len(),
            Kind::Folder => 0,
        }
    }
}

/// The entries, and the folders that they are in, sorted by path.
pub(crate) fn with_folders(mut entries: Vec<Entry>) -> Vec<Entry> {
    let mut missing: Vec<String> = Vec::new();
    for entry in &entries {
        for (at, _) in entry.path.match_indices('/') {
            missing.push(entry.path[..at].to_owned());
        }
    }
    missing.retain(|path| entries.iter().all(|entry| entry.path != *path));
    missing.sort();
    missing.dedup();
    entries.extend(
        missing
            .into_iter()
            .map(|path| Entry::folder(path, 0o755, 0)),
    );
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries
}

/// A tar archive in the order of the entries, all of one time: seconds since 1970. The names begin
/// with `prefix`.
pub(crate) fn tar(prefix: &str, entries: &[Entry], time: u64) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for entry in entries {
        out.extend_from_slice(&header(prefix, entry, time)?);
        if let Kind::File(bytes) = &entry.kind {
            out.extend_from_slice(bytes);
            out.resize(out.len().next_multiple_of(BLOCK), 0);
        }
    }
    // Two empty blocks end it.
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

fn header(prefix: &str, entry: &Entry, time: u64) -> Result<[u8; BLOCK], String> {
    let is_folder = entry.kind == Kind::Folder;
    // The prefix itself ends with one.
    let has_slash = is_folder && !entry.path.is_empty();
    let slash = if has_slash { "/" } else { "" };
    let path = format!("{prefix}{}{slash}", entry.path);
    let (folder, name) = split(&path).ok_or_else(|| format!("the name is too long: {path}"))?;
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{:07o}", entry.mode).as_bytes());
    put(108, format!("{:07o}", entry.owner).as_bytes());
    put(116, format!("{:07o}", entry.owner).as_bytes());
    put(124, format!("{:011o}", entry.len()).as_bytes());
    put(136, format!("{time:011o}").as_bytes());
    // The sum is made with spaces in its place.
    put(148, b"        ");
    put(156, if is_folder { b"5" } else { b"0" });
    put(257, b"ustar\x0000");
    put(345, folder.as_bytes());
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// A path in the two fields that a header has for it.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME {
        return Some(("", path));
    }
    let slashes = path.match_indices('/').map(|(at, _)| at);
    let mut parts = slashes.map(|at| (&path[..at], &path[at + 1..]));
    parts.find(|(folder, name)| folder.len() <= PREFIX && (1..=NAME).contains(&name.len()))
}

/// An ar archive, as packages of Debian are.
pub(crate) fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let (owner, mode, length) = (0, "100644", bytes.len());
        let header = format!("{name:<16}{time:<12}{owner:<6}{owner:<6}{mode:<8}{length:<10}`\n");
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(bytes);
        if length % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        place
    }

    fn output(program: &str, folder: &Path, arguments: &[&str]) -> String {
        let ended = Job::new(program, folder)
            .args(arguments.iter().copied())
            .env("TZ", "UTC")
            .run()
            .unwrap();
        assert!(ended.ending.success(), "{}", ended.output);
        ended.output
    }

    #[test]
    fn tar_reads_what_is_written() {
        let place = place("tar");
        let deep = format!("{}/{}", "d".repeat(90), "f".repeat(90));
        let entries = with_folders(vec![
            Entry::file("b/run", 0o755, *b"#!"),
            Entry::file("a", 0o640, Vec::new()),
            Entry::folder("", 0o755, 0),
            Entry::folder("b/kept", 0o700, 7),
            Entry::file(deep.clone(), 0o644, vec![b'x'; 513]),
        ]);
        let bytes = tar("./", &entries, 1_700_000_000).unwrap();
        fs::write(place.join("t.tar"), &bytes).unwrap();
        let list = output("tar", &place, &["--numeric-owner", "-tvf", "t.tar"]);
        let words: Vec<Vec<&str>> = list
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let shown: Vec<_> = words
            .iter()
            .map(|words| format!("{} {} {} {}", words[0], words[1], words[2], words[5]))
            .collect();
        let folder = "d".repeat(90);
        assert_eq!(
            shown,
            [
                "drwxr-xr-x 0/0 0 ./".to_owned(),
                "-rw-r----- 0/0 0 ./a".to_owned(),
                "drwxr-xr-x 0/0 0 ./b/".to_owned(),
                "drwx------ 7/7 0 ./b/kept/".to_owned(),
                "-rwxr-xr-x 0/0 2 ./b/run".to_owned(),
                format!("drwxr-xr-x 0/0 0 ./{folder}/"),
                format!("-rw-r--r-- 0/0 513 ./{deep}"),
            ]
        );
        assert!(list.contains("2023-11-14 22:13"), "{list}");
        let long = Entry::file("n".repeat(200), 0o644, Vec::new());
        assert!(tar("", &[long], 0).unwrap_err().contains("too long"));
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn an_odd_member_of_an_ar_archive_is_filled_up() {
        let bytes = ar(&[("a", b"x".to_vec()), ("b", b"yz".to_vec())], 5);
        assert_eq!(bytes.len(), 8 + 60 + 2 + 60 + 2);
        assert_eq!(&bytes[8..24], b"a               ");
        assert_eq!(&bytes[66..70], b"`\nx\n");
        assert_eq!(&bytes[70..72], b"b ");
    }
}
