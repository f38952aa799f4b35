//! What the packages have in them: the program, its manual pages, completions, licences.

use super::archive::Entry;
use super::components::Component;
use crate::job::Job;
use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of this repository that tell a user what the program is, and may be done with it.
const PAPERS: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "SECURITY.md",
];

/// The shells, and what their completions are called.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "tremula"),
    ("zsh", "_tremula"),
    ("fish", "tremula.fish"),
];

/// What packages are made of.
pub(super) struct Parts {
    pub(super) program: Vec<u8>,
    /// Manual pages: a name and a page.
    pub(super) man: Vec<(String, Vec<u8>)>,
    /// Completions: a shell, a name and a script.
    pub(super) completions: Vec<(&'static str, &'static str, Vec<u8>)>,
    pub(super) papers: Vec<(&'static str, Vec<u8>)>,
    /// The licences of what is compiled into the program.
    pub(super) third_parties: Vec<u8>,
    /// Shared libraries that the program needs: their paths, and their bytes.
    pub(super) libraries: Vec<(PathBuf, Vec<u8>)>,
}

impl Parts {
    /// Gathers the parts for this program, with `scratch` as a folder for what is made on the way.
    pub(super) fn gather(
        workspace: &Workspace,
        program: &Path,
        components: &[Component],
        scratch: &Path,
    ) -> Result<Self, String> {
        let stripped = scratch.join("tremula");
        // Symbols stay, so a panic still shows which functions it came through.
        let strip = Job::new("strip", scratch)
            .args(["--strip-debug", "-o"])
            .args([stripped.to_string_lossy(), program.to_string_lossy()]);
        output(&strip)?;
        let tremula = |arguments: &[&str]| {
            output(&Job::new(&stripped.to_string_lossy(), scratch).args(arguments.iter().copied()))
        };
        let pages = scratch.join("man");
        tremula(&["generate", "man", &pages.to_string_lossy()])?;
        let mut man = Vec::new();
        for entry in fs::read_dir(&pages).map_err(|error| in_file(&pages, &error))? {
            let path = entry.map_err(|error| in_file(&pages, &error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            man.push((name.into_owned(), read(&path)?));
        }
        man.sort();
        let completions = SHELLS.map(|(shell, name)| {
            let script = tremula(&["generate", "completions", shell])?;
            Ok((shell, name, script.into_bytes()))
        });
        let papers = PAPERS.map(|name| Ok((name, read(&workspace.root.join(name))?)));
        let libraries = libraries(&output(
            &Job::new("ldd", scratch).arg(stripped.to_string_lossy()),
        )?);
        let libraries = libraries.into_iter().map(|path| {
            let bytes = read(&path)?;
            Ok((path, bytes))
        });
        Ok(Self {
            program: read(&stripped)?,
            man,
            completions: completions.into_iter().collect::<Result<_, String>>()?,
            papers: papers.into_iter().collect::<Result<_, String>>()?,
            third_parties: third_parties(components)?.into_bytes(),
            libraries: libraries.collect::<Result<_, String>>()?,
        })
    }

    /// The files of the archive.
    pub(super) fn archive(&self, workspace: &Workspace) -> Result<Vec<Entry>, String> {
        let mut entries = vec![Entry::file("bin/tremula", 0o755, &*self.program)];
        for (name, page) in &self.man {
            entries.push(Entry::file(
                format!("share/man/man1/{name}"),
                0o644,
                &**page,
            ));
        }
        for (shell, name, script) in &self.completions {
            entries.push(Entry::file(
                format!("completions/{shell}/{name}"),
                0o644,
                &**script,
            ));
        }
        for (name, text) in &self.papers {
            entries.push(Entry::file(*name, 0o644, &**text));
        }
        entries.push(Entry::file("THIRD-PARTY", 0o644, &*self.third_parties));
        for name in [
            "tremula.service",
            "tremula.toml",
            "monitoring/tremula-alerts.yml",
            "monitoring/tremula-board.json",
        ] {
            let text = read(&workspace.root.join("packaging").join(name))?;
            entries.push(Entry::file(format!("packaging/{name}"), 0o644, text));
        }
        Ok(entries)
    }
}

/// What `ldd` says: the files that the program is loaded with.
fn libraries(ldd: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let (name, _) = line.trim().rsplit_once(" (")?;
        let path = name.rsplit_once("=> ").map_or(name, |(_, path)| path);
        // The kernel's own has no file.
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    let mut paths: Vec<PathBuf> = ldd.lines().filter_map(path).collect();
    paths.sort();
    paths
}

/// Each component with its licence, and each different text of a licence once.
fn third_parties(components: &[Component]) -> Result<String, String> {
    let mut text = String::from("What is compiled into tremula, and under which licences.\n");
    let mut licences: Vec<(String, Vec<String>)> = Vec::new();
    for component in components.iter().filter(|component| component.is_foreign) {
        let name = format!("{} {}", component.name, component.version);
        text += &format!("\n{name}: {}", component.licence);
        for path in licence_files(&component.folder)? {
            let licence = String::from_utf8_lossy(&read(&path)?).into_owned();
            match licences.iter_mut().find(|(known, _)| *known == licence) {
                Some((_, names)) => names.push(name.clone()),
                None => licences.push((licence, vec![name.clone()])),
            }
        }
    }
    for (licence, mut names) in licences {
        names.dedup();
        text += &format!(
            "\n\n{}\n{}\n\n{}",
            "=".repeat(80),
            names.join(", "),
            licence.trim_end()
        );
    }
    text.push('\n');
    Ok(text)
}

fn licence_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| in_file(folder, &error))? {
        let path = entry.map_err(|error| in_file(folder, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"]
            .iter()
            .any(|word| name.starts_with(word));
        if is_licence && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// What a command prints, or why it failed.
pub(super) fn output(job: &Job) -> Result<String, String> {
    let ended = job.run()?;
    if ended.ending.success() {
        Ok(ended.output)
    } else {
        Err(format!(
            "`{}`: {}\n{}",
            job.told(),
            ended.ending,
            ended.output
        ))
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| in_file(path, &error))
}

pub(super) fn in_file(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_a_program_are_found() {
        let ldd = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/libm.so.6 (0x00007f)\n\
                   \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let wanted = ["/lib/libm.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(libraries(ldd), wanted);
    }
}
