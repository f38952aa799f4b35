//! The step that compares machine code: a lookup is the same with and without the simulator.

use super::report::Report;
use crate::job::Job;
use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// What looks keys up.
const PROGRAM: &str = r#"
use tremula_index::OrderedMap;

fn main() {
    let map = OrderedMap::<u64, u64>::new();
    let keys = std::env::args().count() as u64 * 1000;
    (0..keys).for_each(|key| drop(map.insert(key, key)));
    println!("{:?}", (0..keys).filter_map(|key| map.get(&key)).max());
}
"#;

const MANIFEST: &str = r#"[package]
name = "lookups"
version = "0.0.0"
edition = "2024"

[dependencies]
tremula-index = { path = "../crates/index" }

[profile.release]
lto = "fat"
codegen-units = 1

[workspace]
"#;

/// The folder of the simulator, and how a line begins that only a simulation needs.
const SIMULATOR: &str = "crates/sync/src/primitives/sim";
const OF_SIMULATOR: &str = "#[cfg_attr(sim,";

/// What is changed to see that a difference is found: an optimistic read that costs an instruction
/// more. The file, a line of it, and the line that is put behind it.
const CHANGED: [&str; 3] = [
    "crates/sync/src/version_lock.rs",
    "    pub fn read(&self) -> Result<Version, Restart> {\n",
    "        crate::spin_loop();\n",
];

pub(super) fn shipped(workspace: &Workspace, report: &mut Report) {
    if let Err(problem) = compare(workspace, report) {
        report.problem(problem);
    }
}

fn compare(workspace: &Workspace, report: &mut Report) -> Result<(), String> {
    let tree = Tree::copy(workspace)?;
    let with = tree.machine_code(report)?;
    let [file, line, more] = CHANGED;
    let original = tree.read(file)?;
    if original.matches(line).count() != 1 {
        return Err(format!("{file} does not have the line {line:?} once"));
    }
    tree.write(file, &original.replace(line, &format!("{line}{more}")))?;
    if tree.machine_code(report)? == with {
        return Err("a lookup that reads otherwise has the same machine code".to_owned());
    }
    tree.write(file, &original)?;
    if tree.remove_simulator(workspace)? == 0 {
        return Err(format!("no line begins with {OF_SIMULATOR}"));
    }
    if tree.machine_code(report)? != with {
        return Err("the machine code of a lookup depends on the simulator".to_owned());
    }
    report.passed += 2;
    Ok(())
}

/// A copy of the workspace, with the program in a folder of its own.
struct Tree {
    root: PathBuf,
    target: PathBuf,
}

impl Tree {
    fn copy(workspace: &Workspace) -> Result<Self, String> {
        let target = workspace.target.join("shipped");
        let tree = Self {
            root: target.join("tree"),
            target,
        };
        if tree.root.exists() {
            fs::remove_dir_all(&tree.root).map_err(|error| told(&tree.root, &error))?;
        }
        for file in workspace.files()? {
            let to = tree.root.join(&file);
            to.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::copy(workspace.root.join(&file), &to))
                .map_err(|error| told(&to, &error))?;
        }
        let source = tree.root.join("lookups/src");
        fs::create_dir_all(&source).map_err(|error| told(&source, &error))?;
        tree.write("lookups/src/main.rs", PROGRAM)?;
        tree.write("lookups/Cargo.toml", MANIFEST)?;
        tree.write("lookups/Cargo.lock", &tree.read("Cargo.lock")?)?;
        Ok(tree)
    }

    fn read(&self, file: &str) -> Result<String, String> {
        let file = self.root.join(file);
        fs::read_to_string(&file).map_err(|error| told(&file, &error))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let file = self.root.join(file);
        fs::write(&file, text).map_err(|error| told(&file, &error))
    }

    /// Removes the simulator, and every line that only a simulation needs; returns how many lines.
    fn remove_simulator(&self, workspace: &Workspace) -> Result<usize, String> {
        let folder = self.root.join(SIMULATOR);
        fs::remove_dir_all(&folder).map_err(|error| told(&folder, &error))?;
        let mut removed = 0;
        for file in workspace.files()? {
            let name = file.to_string_lossy();
            let is_source = name.starts_with("crates/") && name.ends_with(".rs");
            if !is_source || file.starts_with(SIMULATOR) {
                continue;
            }
            let text = self.read(&name)?;
            let stays = |line: &&str| !line.trim_start().starts_with(OF_SIMULATOR);
            let lines: String = text.split_inclusive('\n').filter(stays).collect();
            if lines != text {
                removed += text.lines().count() - lines.lines().count();
                self.write(&name, &lines)?;
            }
        }
        Ok(removed)
    }

    /// Builds the program; returns its machine code.
    fn machine_code(&self, report: &mut Report) -> Result<Vec<u8>, String> {
        let build = Job::new("cargo", self.root.join("lookups"))
            .args(["build", "--release", "--offline"])
            .env("CARGO_TARGET_DIR", self.target.to_string_lossy())
            .without_env("RUSTFLAGS")
            .without_env("CARGO_ENCODED_RUSTFLAGS");
        let built = report.run(&build);
        if !built.is_some_and(|ended| ended.ending.success()) {
            return Err("the program does not build".to_owned());
        }
        let program = self.target.join("release/lookups");
        let file = fs::read(&program).map_err(|error| told(&program, &error))?;
        let code = text_of(&file).ok_or("the program is no ELF file of 64 bits with a .text")?;
        Ok(code.to_vec())
    }
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The section `.text` of an ELF file of 64 bits, least significant byte first.
fn text_of(file: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b".text\0";
    if !file.starts_with(b"\x7FELF\x02\x01") {
        return None;
    }
    let number = |at: usize, bytes: usize| {
        let field = file.get(at..at + bytes)?;
        let value = field
            .iter()
            .rfold(0, |sum, byte| sum << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    };
    // Of the header: where the sections' headers begin, the size of one, and the section of names.
    let (begin, size, names) = (number(40, 8)?, number(58, 2)?, number(62, 2)?);
    let count = number(60, 2)?;
    // Of a section's header: its name's place among the names, its place in the file, its size.
    let place = |section: usize| {
        let header = begin + section * size;
        Some((
            number(header, 4)?,
            number(header + 24, 8)?,
            number(header + 32, 8)?,
        ))
    };
    let (_, names, _) = place(names)?;
    let is_text = |name: usize| file.get(names + name..)?.starts_with(NAME).then_some(());
    let (_, at, length) = (0..count).find_map(|section| {
        let place = place(section)?;
        is_text(place.0).map(|()| place)
    })?;
    file.get(at..at + length)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn the_code_of_this_program_is_found() {
        let program = std::env::current_exe().unwrap();
        let file = fs::read(program).unwrap();
        let text = text_of(&file).expect("tests run on Linux");
        assert!(text.len() > 1000 && text.len() < file.len());
        assert_eq!(text_of(b"\x7FELF\x02\x01"), None);
        assert_eq!(text_of(b"#!/bin/sh"), None);
    }
}
