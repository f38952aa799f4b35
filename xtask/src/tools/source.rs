//! The test suite of Redis, from Debian's source package.

use super::{attempt, works};
use crate::job::Job;
use crate::workspace::Workspace;
use std::fs;
use std::io;
use std::path::Path;

/// Redis's sources as Debian 12 has them: the folder in the archive, the archive, and its SHA-256.
const FOLDER: &str = "redis-7.0.15";
const ARCHIVE: &str = "redis_7.0.15.orig.tar.gz";
const SHA_256: &str = "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982";

/// Where apt has its sources.
const APT: &str = "/etc/apt";

/// Unpacks the suite in `target/redis-7.0.15`.
///
/// Needs no right of root: apt gets folders of its own, and the system's sources with `deb-src` in
/// the place of `deb`.
pub(super) fn redis_suite(workspace: &Workspace, log: &mut String) -> Result<(), String> {
    let unpacked = workspace.target.join(FOLDER);
    if unpacked.join("tests/test_helper.tcl").is_file() {
        return Ok(());
    }
    let folder = workspace.target.join("apt");
    let sum = format!("{SHA_256}  {ARCHIVE}");
    let is_right =
        Job::new("sh", &folder).args(["-c", &format!("echo '{sum}' | sha256sum --check")]);
    let fetched = if works(&is_right) {
        Ok(())
    } else {
        fetch(&folder, log)
    };
    fetched.and_then(|()| attempt(&is_right, log)).and_then(|()| {
        let unpack = Job::new("tar", &workspace.target).args(["-xzf", &format!("apt/{ARCHIVE}")]);
        attempt(&unpack, log)
    })
    .map_err(|why| {
        format!(
            "the test suite of Redis could not be had from Debian 12's source package ({why}).\nUnpack \
             {ARCHIVE} (SHA-256 {SHA_256}) as {}",
            unpacked.display()
        )
    })
}

/// Downloads the source package into a folder.
fn fetch(folder: &Path, log: &mut String) -> Result<(), String> {
    let apt = apt(folder, with_source_packages)?;
    // A source that has no source packages is no harm.
    let _ = attempt(&apt.clone().arg("update"), log);
    attempt(&apt.args(["source", "--download-only", "redis"]), log)
}

/// An apt that has folders of its own in a folder, and the system's lists of sources as `changed`
/// makes them.
pub(super) fn apt(folder: &Path, changed: fn(&str) -> String) -> Result<Job, String> {
    let parts = folder.join("sources.list.d");
    copy_sources(Path::new(APT), &parts, changed).map_err(|error| format!("{APT}: {error}"))?;
    let of_its_own = |name: &str, path: &str| {
        let path = folder.join(path);
        // apt does not make all of them.
        fs::create_dir_all(path.join("partial"))
            .map(|()| format!("{name}={}", path.display()))
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    let options = [
        "Dir::Etc::SourceList=/dev/null".to_owned(),
        format!("Dir::Etc::SourceParts={}", parts.display()),
        of_its_own("Dir::State::Lists", "lists")?,
        of_its_own("Dir::Cache", "cache")?,
    ];
    let options = options.iter().flat_map(|option| ["-o", option]);
    Ok(Job::new("apt-get", folder).args(options))
}

/// Copies the system's lists of sources, as `changed` makes them.
fn copy_sources(apt: &Path, to: &Path, changed: fn(&str) -> String) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let own = apt.join("sources.list");
    let mut lists = vec![];
    lists.extend(own.is_file().then_some(own));
    for entry in fs::read_dir(apt.join("sources.list.d"))? {
        let path = entry?.path();
        let is_list = path
            .extension()
            .is_some_and(|kind| kind == "list" || kind == "sources");
        lists.extend(is_list.then_some(path));
    }
    for list in lists {
        let text = fs::read_to_string(&list)?;
        let name = list.file_name().unwrap_or_default();
        fs::write(to.join(name), changed(&text))?;
    }
    Ok(())
}

/// The sources of a list in either of apt's forms, of source packages alone.
fn with_source_packages(list: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("Types:") {
            "Types: deb-src".to_owned()
        } else {
            line.strip_prefix("deb ")
                .map_or_else(|| line.to_owned(), |rest| format!("deb-src {rest}"))
        }
    };
    list.lines().map(|text| line(text) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_become_those_of_source_packages() {
        let list = "# a mirror\ndeb [signed-by=x] mirror stable main\ndeb-src mirror stable main\n";
        let expected =
            "# a mirror\ndeb-src [signed-by=x] mirror stable main\ndeb-src mirror stable main\n";
        assert_eq!(with_source_packages(list), expected);
        let list = "Types: deb\nURIs: mirror\nSuites: stable\n";
        assert_eq!(
            with_source_packages(list),
            "Types: deb-src\nURIs: mirror\nSuites: stable\n"
        );
    }
}
