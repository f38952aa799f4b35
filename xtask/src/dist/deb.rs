//! A package of Debian: an ar archive of two tar archives, `control.tar.xz` for dpkg and
//! `data.tar.xz` with the files.
//!
//! It is written here and not by `cargo-deb`: the archives are there anyway for the other packages,
//! the bytes depend on nothing but what is packed, and no tool has to be installed for it.

use super::archive::{Entry, ar, tar, with_folders};
use super::parts::{Parts, read};
use super::{Release, compressed};
use crate::workspace::Workspace;
use std::path::Path;

/// The scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Files whose changes by the administrator an upgrade keeps.
const CONFIGURATION: &str = "/etc/tremula/tremula.toml\n";

/// The bytes of the package.
pub(super) fn package(
    workspace: &Workspace,
    parts: &Parts,
    release: &Release,
    scratch: &Path,
) -> Result<Vec<u8>, String> {
    let data = with_folders(data(workspace, parts, scratch)?);
    let size: usize = data.iter().map(Entry::len).sum();
    let folder = workspace.root.join("packaging/deb");
    let mut control = vec![
        Entry::file(
            "control",
            0o644,
            control(release, &parts.program, size.div_ceil(1024)),
        ),
        Entry::file("conffiles", 0o644, CONFIGURATION),
    ];
    for script in SCRIPTS {
        control.push(Entry::file(script, 0o755, read(&folder.join(script))?));
    }
    let archive = |name: &str, entries: &[Entry]| {
        let mut all = vec![Entry::folder("", 0o755, 0)];
        all.extend_from_slice(entries);
        compressed("xz", name, &tar("./", &all, release.time)?, scratch)
    };
    Ok(ar(
        &[
            ("debian-binary", b"2.0\n".to_vec()),
            ("control.tar.xz", archive("control.tar", &control)?),
            ("data.tar.xz", archive("data.tar", &data)?),
        ],
        release.time,
    ))
}

fn data(workspace: &Workspace, parts: &Parts, scratch: &Path) -> Result<Vec<Entry>, String> {
    let packaging = workspace.root.join("packaging");
    let mut files = vec![
        Entry::file("usr/bin/tremula", 0o755, &*parts.program),
        Entry::file(
            "usr/lib/systemd/system/tremula.service",
            0o644,
            read(&packaging.join("tremula.service"))?,
        ),
        Entry::file(
            "etc/tremula/tremula.toml",
            0o644,
            read(&packaging.join("tremula.toml"))?,
        ),
    ];
    for (name, page) in &parts.man {
        let path = format!("usr/share/man/man1/{name}.gz");
        let page = compressed("gz", name, page, scratch)?;
        files.push(Entry::file(path, 0o644, page));
    }
    for (shell, name, script) in &parts.completions {
        let folder = match *shell {
            "bash" => "bash-completion/completions",
            "zsh" => "zsh/vendor-completions",
            _ => "fish/vendor_completions.d",
        };
        let path = format!("usr/share/{folder}/{name}");
        files.push(Entry::file(path, 0o644, &**script));
    }
    let mut licences = read(&packaging.join("deb/copyright"))?;
    for (name, text) in &parts.papers {
        let path = format!("usr/share/doc/tremula/{name}");
        match *name {
            // A file of this name has the licences in a package of Debian.
            "LICENSE-MIT" => licences.extend_from_slice(text),
            "LICENSE-APACHE" => (),
            _ => files.push(Entry::file(path, 0o644, &**text)),
        }
    }
    files.push(Entry::file(
        "usr/share/doc/tremula/copyright",
        0o644,
        licences,
    ));
    files.push(Entry::file(
        "usr/share/doc/tremula/THIRD-PARTY.gz",
        0o644,
        compressed("gz", "THIRD-PARTY", &parts.third_parties, scratch)?,
    ));
    for name in ["tremula-alerts.yml", "tremula-board.json"] {
        let text = read(&packaging.join("monitoring").join(name))?;
        let path = format!("usr/share/doc/tremula/monitoring/{name}");
        files.push(Entry::file(path, 0o644, text));
    }
    Ok(files)
}

fn control(release: &Release, program: &[u8], kibibytes: usize) -> String {
    let mut depends = vec![format!("libc6 (>= {})", libc_of(program))];
    if contains(program, b"libgcc_s.so.1") {
        depends.push("libgcc-s1".to_owned());
    }
    // For groupadd and useradd.
    depends.push("passwd".to_owned());
    format!(
        "Package: tremula\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: The Tremula developers <security@tremula.invalid>\n\
         Installed-Size: {kibibytes}\n\
         Depends: {}\n\
         Section: database\n\
         Priority: optional\n\
         Homepage: https://github.com/tremula/tremula\n\
         Description: in-memory ordered store that speaks the Redis protocol\n \
         Tables in order, transactions and watched ranges, kept in a log on the disk.\n \
         The package has the server as a service, and the tools for its backups.\n",
        release.debian(),
        release.architecture,
        depends.join(", "),
    )
}

/// The least version of glibc that has what the program asks of it, by the names of versions in it.
fn libc_of(program: &[u8]) -> String {
    const MARK: &[u8] = b"GLIBC_2.";
    let minors = program
        .windows(MARK.len())
        .enumerate()
        .filter(|(_, window)| *window == MARK)
        .filter_map(|(at, _)| {
            let rest = &program[at + MARK.len()..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            std::str::from_utf8(&rest[..digits])
                .ok()?
                .parse::<u32>()
                .ok()
        });
    format!("2.{}", minors.max().unwrap_or(0))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_that_is_asked_for_counts() {
        assert_eq!(
            libc_of(b"GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE"),
            "2.34"
        );
    }

    #[test]
    fn the_control_file_names_what_is_needed() {
        let release = Release {
            version: "1.2.0-rc.1".to_owned(),
            revision: 3,
            architecture: "amd64",
            time: 0,
        };
        let text = control(&release, b"libgcc_s.so.1\0GLIBC_2.34\0", 7);
        for line in [
            "Version: 1.2.0~rc.1-3\n",
            "Depends: libc6 (>= 2.34), libgcc-s1, passwd\n",
            "Installed-Size: 7\n",
            "\n Tables in order",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
    }
}
