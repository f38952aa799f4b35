//! The server of NATS, from Debian's newest packages.

use super::source::apt;
use super::{attempt, on_path};
use crate::job::Job;
use crate::workspace::Workspace;
use std::fs;
use std::path::Path;

/// The oldest version that groups of nodes run on.
const OLDEST: (u32, u32) = (2, 12);

/// The package, which is also the program.
const NATS: &str = "nats-server";

/// Where the packages of Debian's newest release are, in the place of an older one's.
const NEWEST: &str = "sid";

/// Sees to `target/nats/nats-server`: a link to the program on the path if that is new enough, or
/// else what the package has, which is unpacked and not installed.
///
/// Needs no right of root: apt gets folders of its own, and the system's sources of Debian, with
/// the newest release in the place of theirs.
pub(super) fn server(workspace: &Workspace, log: &mut String) -> Result<(), String> {
    let folder = workspace.target.join("nats");
    let program = folder.join(NATS);
    if is_new_enough(&program.to_string_lossy()) {
        return Ok(());
    }
    provide(&folder, &program, log).map_err(|why| {
        format!(
            "nats-server {}.{} or later is missing and could not be installed ({why}).\nInstall it, \
             from Debian 14 or from nats.io, so that it is found on the path",
            OLDEST.0, OLDEST.1
        )
    })
}

fn provide(folder: &Path, program: &Path, log: &mut String) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let _ = fs::remove_file(program);
    if on_path(NATS) && is_new_enough(NATS) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|folder| folder.join(NATS));
        let found = found.into_iter().find(|path| path.is_file());
        let found = found.ok_or("it is no longer on the path")?;
        return std::os::unix::fs::symlink(found, program).map_err(failed);
    }
    if !on_path("apt-get") {
        return Err("this system has no apt-get".to_owned());
    }
    let apt = apt(folder, newest)?;
    attempt(&apt.clone().arg("update"), log)?;
    attempt(&apt.args(["download", NATS]), log)?;
    let unpack = format!("dpkg -x {NATS}_*.deb unpacked && ln -s unpacked/usr/*bin/{NATS} {NATS}");
    attempt(&Job::new("sh", folder).args(["-c", &unpack]), log)?;
    match is_new_enough(&program.to_string_lossy()) {
        true => Ok(()),
        false => Err("what the package has does not run, or is older".to_owned()),
    }
}

fn is_new_enough(program: &str) -> bool {
    let version = Job::new(program, "/").args(["--version"]);
    let output = version.run().map(|ended| ended.output).unwrap_or_default();
    version_of(&output).is_some_and(|version| version >= OLDEST)
}

/// The version in `nats-server: v2.15.1`.
fn version_of(output: &str) -> Option<(u32, u32)> {
    let (_, version) = output.split_once(": v")?;
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The sources of Debian in a list of either of apt's forms, with the newest release in the place
/// of theirs. Sources of other things, and of updates, are left out.
fn newest(list: &str) -> String {
    let is_debian = |uri: &str| uri.trim_end_matches('/').ends_with("/debian");
    let mut changed = String::new();
    for part in list.split("\n\n") {
        let field = |name: &str| {
            part.lines()
                .find_map(|line| Some(line.strip_prefix(name)?.trim()))
        };
        let Some(uri) = field("URIs:").filter(|uri| is_debian(uri)) else {
            continue;
        };
        changed += &format!("Types: deb\nURIs: {uri}\nSuites: {NEWEST}\nComponents: main\n");
        if let Some(key) = field("Signed-By:") {
            changed += &format!("Signed-By: {key}\n");
        }
        changed += "\n";
    }
    for line in list.lines().filter_map(|line| line.strip_prefix("deb ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| is_debian(word)) else {
            continue;
        };
        let is_updates = words.get(at + 1).is_none_or(|suite| suite.contains('-'));
        if !is_updates {
            changed += &format!("deb {} {NEWEST} main\n", words[..=at].join(" "));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared() {
        assert_eq!(version_of("nats-server: v2.15.1\n"), Some((2, 15)));
        assert_eq!(version_of("sh: not found"), None);
        assert!((2, 9) < OLDEST && (2, 15) >= OLDEST && (3, 0) >= OLDEST);
    }

    #[test]
    fn only_sources_of_debian_are_made_newer() {
        let list = "Types: deb\nURIs: http://mirror/debian\nSuites: a a-updates\nComponents: main\n\
                    Signed-By: key\n\nTypes: deb\nURIs: http://mirror/debian-security\nSuites: s\n";
        assert_eq!(
            newest(list),
            "Types: deb\nURIs: http://mirror/debian\nSuites: sid\nComponents: main\nSigned-By: key\n\n"
        );
        let list = "deb [signed-by=x] http://m/debian/ a main\ndeb http://m/debian a-updates main\n\
                    deb http://other/ a main\n";
        assert_eq!(
            newest(list),
            "deb [signed-by=x] http://m/debian/ sid main\n"
        );
    }
}
