//! How long the crates are: `cargo xtask lines`.

use crate::table::{Align, Table};
use crate::workspace::Workspace;
use std::path::Path;

/// Crates that measure and check the product, or keep what it was compared with.
const NOT_PRODUCT: [&str; 3] = ["check", "lab", "papers"];

/// How many lines of `src/` the crates of the product may have together, without inline tests.
const MOST: usize = 55_000;

/// Prints the lines of each crate's `src/`. `Ok(true)` if the product stays within its limit.
pub(crate) fn command(workspace: &Workspace) -> Result<bool, String> {
    let mut crates: Vec<(String, Count)> = Vec::new();
    for path in workspace.files()? {
        let Some(folder) = source_of(&path) else {
            continue;
        };
        let text = std::fs::read_to_string(workspace.root.join(&path))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let count = count(&path, &text);
        match crates.iter_mut().find(|(known, _)| known == folder) {
            Some((_, total)) => total.add(count),
            None => crates.push((folder.to_owned(), count)),
        }
    }
    let mut table = Table::new([
        ("crate", Align::Left),
        ("lines", Align::Right),
        ("inline tests", Align::Right),
    ]);
    let mut product = Count::default();
    for (name, count) in &crates {
        if !NOT_PRODUCT.contains(&name.as_str()) {
            product.add(*count);
        }
        table.row([
            name.clone(),
            count.lines.to_string(),
            count.tests.to_string(),
        ]);
    }
    print!("{table}");
    println!(
        "product (all but {}): {} lines, of {MOST} at most",
        NOT_PRODUCT.join(", "),
        product.lines
    );
    Ok(product.lines <= MOST)
}

/// The lines of a file or a crate, in those that ship and those of inline tests.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Count {
    lines: usize,
    tests: usize,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.tests += other.tests;
    }
}

/// The folder below `crates/` whose source a file is part of.
fn source_of(path: &Path) -> Option<&str> {
    let mut parts = path.iter().map(|part| part.to_str().unwrap_or_default());
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    match (parts.next()?, parts.next()?, parts.next()?) {
        ("crates", folder, "src") if is_source => Some(folder),
        _ => None,
    }
}

/// The lines of a file. A module of tests goes from its `#[cfg(test)]` or `#[cfg(all(test, ...))]`
/// to the brace at the same depth that closes it; a file or folder `tests` is all tests.
fn count(path: &Path, text: &str) -> Count {
    let all = text.lines().count();
    let is_test = path
        .iter()
        .any(|part| part == "tests" || part == "tests.rs");
    if is_test {
        return Count {
            lines: 0,
            tests: all,
        };
    }
    let mut tests = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let attribute = line.trim_start();
        if !(attribute.starts_with("#[cfg(test)]") || attribute.starts_with("#[cfg(all(test,")) {
            continue;
        }
        tests += 1;
        // A `mod` in braces ends with a brace as far to the right as its attribute. Of any other
        // item only the attribute counts as a test.
        let mut body = lines.clone();
        let Some(opening) = body.next() else { break };
        let opening = opening.trim();
        if !(opening.starts_with("mod ") && opening.ends_with('{')) {
            continue;
        }
        let closes = |line: &str| line.len() == indent + 1 && line.ends_with('}');
        let length = body.position(closes).map_or(1, |at| at + 2);
        tests += length;
        lines.nth(length - 1);
    }
    Count {
        lines: all - tests,
        tests,
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn inline_tests_do_not_count() {
        let text = "fn a() {\n}\n\n#[cfg(all(test, not(loom)))]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        let counted = count(Path::new("crates/a/src/lib.rs"), text);
        assert_eq!(counted, Count { lines: 4, tests: 5 });
        let counted = count(Path::new("crates/a/src/b/tests.rs"), text);
        assert_eq!(counted, Count { lines: 0, tests: 9 });
    }

    #[test]
    fn a_file_belongs_to_the_source_of_its_crate() {
        assert_eq!(
            source_of(Path::new("crates/index/src/art/mod.rs")),
            Some("index")
        );
        assert_eq!(source_of(Path::new("crates/index/tests/art.rs")), None);
        assert_eq!(source_of(Path::new("crates/index/src/notes.md")), None);
    }
}
