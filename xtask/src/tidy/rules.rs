//! The rules, each a function from a file to what is wrong with it.

use std::path::{Path, PathBuf};

/// A file of the workspace.
pub(crate) struct File<'a> {
    /// Relative to the workspace's root.
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
}

type Rule = fn(&File<'_>) -> Vec<String>;

/// The rules for Rust files.
pub(crate) const RUST: [Rule; 5] = [
    unsafe_crates,
    long_files,
    leftovers,
    second_switch,
    outside_the_package,
];

/// Lines that a Rust file may have: what is longer has two subjects.
const LONGEST_FILE: usize = 700;

/// The crates that may hold unsafe code.
const UNSAFE_CRATES: [&str; 4] = [
    "crates/sync/",
    "crates/index/",
    "crates/papers/",
    "crates/mailbox/",
];

/// What must not be left in the code. Written in two parts, for this file is checked too.
const LEFTOVERS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!"),
    concat!("unim", "plemented!"),
    concat!("db", "g!"),
];

/// Where `tremula-sync` chooses between the real primitives and those of a checker, and runs
/// the checkers.
const THE_SWITCH: [&str; 4] = [
    "crates/sync/src/primitives/",
    "crates/sync/src/model.rs",
    "crates/sync/src/epoch.rs",
    "crates/sync/src/system.rs",
];

/// What only the switch may name: a checker sees nothing of code that takes these directly.
const PRIMITIVES: [&str; 8] = [
    "std::sync",
    "core::sync",
    "std::thread",
    "parking_lot",
    "crossbeam_epoch",
    "loom::",
    "shuttle::",
    "std::cell::UnsafeCell",
];

/// Crates outside the few forbid unsafe code.
fn unsafe_crates(file: &File<'_>) -> Vec<String> {
    let is_root = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    let may = UNSAFE_CRATES
        .iter()
        .any(|folder| file.path.starts_with(folder));
    if !is_root || may || file.text.contains("#![forbid(unsafe_code)]") {
        return Vec::new();
    }
    vec![format!("{}: lacks #![forbid(unsafe_code)]", file.path)]
}

/// A file stays readable in one sitting.
fn long_files(file: &File<'_>) -> Vec<String> {
    let lines = file.text.lines().count();
    if lines <= LONGEST_FILE {
        return Vec::new();
    }
    vec![format!(
        "{}: has {lines} lines, more than {LONGEST_FILE}: find its two subjects",
        file.path
    )]
}

/// Nothing unfinished, and no debugging, is left behind.
fn leftovers(file: &File<'_>) -> Vec<String> {
    naming(file, file.text.lines(), &LEFTOVERS, "is left over")
}

/// The concurrent crates take their primitives from the one switch.
fn second_switch(file: &File<'_>) -> Vec<String> {
    let concurrent = [
        "crates/sync/src/",
        "crates/index/src/",
        "crates/papers/src/",
        "crates/mailbox/src/",
        "crates/log/src/",
        "crates/shard/src/",
        "crates/store/src/",
        "crates/table/src/",
    ];
    if !concurrent
        .iter()
        .any(|folder| file.path.starts_with(folder))
        || THE_SWITCH.iter().any(|place| file.path.starts_with(place))
        || file.path.ends_with("tests.rs")
    {
        return Vec::new();
    }
    let complaint = "goes past the switch in tremula-sync's primitives";
    let mut broken = naming(file, code_lines(file.text), &PRIMITIVES, complaint);
    for (index, line) in code_lines(file.text).enumerate() {
        // Without a path it is std's.
        if line.trim_start().starts_with("thread_local!") {
            broken.push(format!(
                "{}:{}: `thread_local!` {complaint}",
                file.path,
                index + 1
            ));
        }
    }
    broken
}

/// A package has only the files of its folder: another file is missing where the package is built.
fn outside_the_package(file: &File<'_>) -> Vec<String> {
    let Some(inside) = file.path.strip_prefix("crates/") else {
        return Vec::new();
    };
    // Folders between the crate's and the file; those under `crates/` begin with the crate's name.
    let depth = inside.matches('/').count().saturating_sub(1);
    let included = ["include_str!(", "include_bytes!(", "include!("];
    included
        .iter()
        .flat_map(|word| file.text.split(word).skip(1))
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .filter(|path| path.matches("../").count() > depth)
        .map(|path| format!("{}: `{path}` lies outside of its package", file.path))
        .collect()
}

/// The lines that ship: without comments, and without the tests at the end of the file.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    let tests = ["\n#[cfg(test)]\nmod ", "\n#[cfg(all(test"];
    let end = tests
        .iter()
        .filter_map(|begin| text.find(begin))
        .min()
        .unwrap_or(text.len());
    // A comment is kept as an empty line, so that lines can be counted.
    text[..end].lines().map(|line| {
        if line.trim_start().starts_with("//") {
            ""
        } else {
            line
        }
    })
}

fn naming<'a>(
    file: &File<'_>,
    lines: impl Iterator<Item = &'a str>,
    words: &[&str],
    complaint: &str,
) -> Vec<String> {
    let mut broken = Vec::new();
    for (index, line) in lines.enumerate() {
        for word in words.iter().filter(|word| names(line, word)) {
            broken.push(format!("{}:{}: `{word}` {complaint}", file.path, index + 1));
        }
    }
    broken
}

/// Whether `word` occurs in `line` and is not the end of a longer name: `tremula_sync::loom::`
/// names loom, `bloom::` does not.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

/// Relative links of a document lead somewhere.
pub(crate) fn dead_links(file: &File<'_>, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let folder = Path::new(file.path).parent().unwrap_or(Path::new(""));
    let mut broken = Vec::new();
    let mut in_code = false;
    for (index, line) in file.text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        for link in links(line).filter(|link| is_relative(link)) {
            let target = link.split_once('#').map_or(link, |(target, _)| target);
            if !exists(&normal(&folder.join(target))) {
                broken.push(format!(
                    "{}:{}: `{link}` leads nowhere",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    broken
}

/// The targets of the inline links of a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

fn is_relative(link: &str) -> bool {
    !link.is_empty()
        && !link.starts_with('#')
        && !link.contains("://")
        && !link.starts_with("mailto:")
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bites(rule: Rule, path: &str, text: &str) -> bool {
        !rule(&File { path, text }).is_empty()
    }

    #[test]
    fn a_crate_that_may_hold_unsafe_code_must_be_one_of_the_few() {
        let forbids = "//! Docs.\n#![forbid(unsafe_code)]\n";
        assert!(bites(
            unsafe_crates,
            "crates/server/src/lib.rs",
            "//! Docs.\n"
        ));
        assert!(bites(unsafe_crates, "xtask/src/main.rs", "//! Docs.\n"));
        assert!(!bites(unsafe_crates, "crates/server/src/lib.rs", forbids));
        assert!(!bites(
            unsafe_crates,
            "crates/server/src/limits/mod.rs",
            "//! Docs.\n"
        ));
        assert!(!bites(
            unsafe_crates,
            "crates/sync/src/lib.rs",
            "//! Docs.\n"
        ));
    }

    #[test]
    fn a_file_has_at_most_seven_hundred_lines() {
        assert!(bites(long_files, "a.rs", &"x\n".repeat(701)));
        assert!(!bites(long_files, "a.rs", &"x\n".repeat(700)));
    }

    #[test]
    fn nothing_unfinished_is_left() {
        for word in LEFTOVERS {
            assert!(
                bites(leftovers, "a.rs", &format!("fn f() {{ {word}(1) }}\n")),
                "{word}"
            );
            assert!(
                bites(leftovers, "a.rs", &format!("// {word}: later\n")),
                "{word}"
            );
        }
        assert!(!bites(leftovers, "a.rs", "let method = 1;\n"));
    }

    #[test]
    fn there_is_one_switch() {
        let direct = "use std::sync::{Arc, atomic::AtomicUsize};\n";
        assert!(bites(
            second_switch,
            "crates/index/src/ca_tree/mod.rs",
            direct
        ));
        assert!(bites(
            second_switch,
            "crates/index/src/ca_tree/mod.rs",
            "loom::model(f);\n"
        ));
        assert!(bites(
            second_switch,
            "crates/sync/src/statistics_lock.rs",
            direct
        ));
        assert!(!bites(
            second_switch,
            "crates/sync/src/primitives/std.rs",
            direct
        ));
        assert!(!bites(
            second_switch,
            "crates/index/tests/stress.rs",
            direct
        ));
        assert!(!bites(second_switch, "crates/server/src/serve.rs", direct));
        for concurrent in ["papers", "mailbox", "log", "shard", "store", "table"] {
            let file = format!("crates/{concurrent}/src/a.rs");
            assert!(bites(second_switch, &file, direct));
            assert!(bites(second_switch, &file, "    thread_local! {\n"));
            let chosen = "    tremula_sync::thread_local! {\n";
            assert!(!bites(second_switch, &file, chosen));
        }
        assert!(!bites(
            second_switch,
            "crates/index/src/a.rs",
            "use bloom::Filter;\n"
        ));
    }

    #[test]
    fn what_is_included_lies_in_the_package() {
        let including = |path: &str| format!("const A: &str = include_str!(\n    \"{path}\"\n);\n");
        let bites = |path, included| bites(outside_the_package, path, &including(included));
        assert!(bites("crates/a/src/lib.rs", "../../../README.md"));
        assert!(bites("crates/a/src/b/tests.rs", "../../../Cargo.lock"));
        assert!(!bites("crates/a/src/lib.rs", "../README.md"));
        assert!(!bites("crates/a/src/b/c.rs", "../../data/x.tsv"));
        assert!(!bites("xtask/src/main.rs", "../../README.md"));
    }

    #[test]
    fn comments_and_tests_may_name_the_primitives() {
        let text = "/// use std::thread;\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    use std::thread;\n}\n";
        assert!(!bites(second_switch, "crates/index/src/a.rs", text));
        assert!(bites(
            second_switch,
            "crates/index/src/a.rs",
            "fn f() {}\nuse std::thread;\n"
        ));
    }

    #[test]
    fn the_place_is_named() {
        let file = File {
            path: "crates/index/src/a.rs",
            text: "// one\nuse std::thread;\n",
        };
        let expected = "crates/index/src/a.rs:2: `std::thread` goes past";
        assert!(
            second_switch(&file)[0].starts_with(expected),
            "{:?}",
            second_switch(&file)
        );
    }

    #[test]
    fn links_lead_somewhere() {
        let exists = |path: &Path| path == Path::new("README.md");
        let dead = |path, text| dead_links(&File { path, text }, &exists).len();
        assert_eq!(
            dead(
                "A.md",
                "See [it](README.md), [it](README.md#use), [the web](https://x.y)."
            ),
            0
        );
        assert_eq!(dead("A.md", "See [this](B.md) and [that](C.md#d)."), 2);
        assert_eq!(
            dead(
                "crates/a/README.md",
                "See [it](../../README.md) or [here](#here)."
            ),
            0
        );
        assert_eq!(dead("crates/a/README.md", "See [it](README.md)."), 1);
        assert_eq!(dead("A.md", "```text\n[x](B.md)\n```\n[x](B.md)\n"), 1);
    }
}
