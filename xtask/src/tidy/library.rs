//! What the library brings with it: how many crates, and which Rust they need.

use crate::workspace::{Workspace, capture};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The crate that Rust programs depend on.
const LIBRARY: &str = "tremula";

/// The crates that a program gets with the library's default features, itself included: a reader of
/// its lock file must be able to judge them.
const MOST_CRATES: usize = 20;

/// The same with all features, of which the page over HTTP brings a third.
const MOST_CRATES_WITH_ALL_FEATURES: usize = 84;

/// The page of the library.
const TESTED_PAGE: &str = "crates/tremula/README.md";

/// A crate, as `cargo tree` names it: name and version.
type Name = String;

/// Every rule about the library that is broken.
pub(super) fn broken(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut broken = Vec::new();
    for (features, most) in [
        (None, MOST_CRATES),
        (Some("--all-features"), MOST_CRATES_WITH_ALL_FEATURES),
    ] {
        let crates = tree(workspace, features, "normal,no-proc-macro")?;
        broken.extend(too_many(&crates, features.unwrap_or_default(), most));
    }
    // What runs at build time must compile too.
    let crates = tree(workspace, Some("--all-features"), "normal,build")?;
    let (own, needed) = rust_versions(workspace)?;
    broken.extend(too_new(&crates, &own, &needed));
    let read = |path: &str| {
        std::fs::read_to_string(workspace.root.join(path))
            .map_err(|error| format!("{path}: {error}"))
    };
    broken.extend(untested(&read("README.md")?, &read(TESTED_PAGE)?));
    Ok(broken)
}

/// The examples of `page` that the library's page, whose examples are tests, does not have.
fn untested(page: &str, tested: &str) -> Vec<String> {
    let tested: Vec<&str> = examples(tested).collect();
    examples(page)
        .filter(|example| !tested.contains(example))
        .map(|example| {
            let begin = example.lines().next().unwrap_or_default();
            format!("README.md: the example that begins with `{begin}` is not in {TESTED_PAGE}")
        })
        .collect()
}

/// The examples in Rust on a page.
fn examples(page: &str) -> impl Iterator<Item = &str> {
    page.split("\n```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```").map(|(example, _)| example))
}

/// The crates under the library, each once.
fn tree(
    workspace: &Workspace,
    features: Option<&str>,
    edges: &str,
) -> Result<BTreeSet<Name>, String> {
    let mut arguments = vec!["tree", "--package", LIBRARY, "--edges", edges];
    arguments.extend(features);
    arguments.extend(["--prefix", "none", "--format", "{p}"]);
    let text = capture(&workspace.root, "cargo", &arguments)?;
    Ok(text.lines().filter_map(name).collect())
}

/// The name and the version at the beginning of a line of `cargo tree`: `libc v0.2.1 (*)`.
fn name(line: &str) -> Option<Name> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some(format!("{name} {version}"))
}

fn too_many(crates: &BTreeSet<Name>, features: &str, most: usize) -> Option<String> {
    (crates.len() > most).then(|| {
        format!(
            "crates/{LIBRARY}/Cargo.toml: brings {} crates with it, more than {most} \
             (cargo tree -p {LIBRARY} {features}): {}",
            crates.len(),
            crates.iter().cloned().collect::<Vec<_>>().join(", ")
        )
    })
}

/// The Rust that the library names, and that of each crate that names one.
fn rust_versions(workspace: &Workspace) -> Result<(String, BTreeMap<Name, String>), String> {
    let text = capture(
        &workspace.root,
        "cargo",
        &["metadata", "--format-version", "1"],
    )?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut needed = BTreeMap::new();
    let mut own = None;
    for package in packages {
        let text = |field: &str| package[field].as_str();
        let (Some(name), Some(version), Some(rust)) =
            (text("name"), text("version"), text("rust_version"))
        else {
            continue;
        };
        if name == LIBRARY {
            own = Some(rust.to_owned());
        }
        needed.insert(format!("{name} {version}"), rust.to_owned());
    }
    let own = own.ok_or_else(|| format!("{LIBRARY} names no rust-version"))?;
    Ok((own, needed))
}

/// The crates that need a newer Rust than the library says.
fn too_new(crates: &BTreeSet<Name>, own: &str, needed: &BTreeMap<Name, String>) -> Vec<String> {
    let newer = |rust: &str| numbers(rust) > numbers(own);
    crates
        .iter()
        .filter_map(|name| Some((name, needed.get(name)?)))
        .filter(|(_, rust)| newer(rust))
        .map(|(name, rust)| {
            format!("crates/{LIBRARY}/Cargo.toml: promises Rust {own}, but {name} needs {rust}")
        })
        .collect()
}

/// `1.88` and `1.88.0` are one version.
fn numbers(version: &str) -> [u64; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates(names: &[&str]) -> BTreeSet<Name> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_crate_counts_once() {
        let lines = "a v0.1.0 (/work/a)\nlibc v0.2.1\nlibc v0.2.1 (*)\nlibc v0.3.0\n\n";
        let found: BTreeSet<Name> = lines.lines().filter_map(name).collect();
        assert_eq!(found, crates(&["a 0.1.0", "libc 0.2.1", "libc 0.3.0"]));
    }

    #[test]
    fn an_example_that_is_no_test_breaks_the_rule() {
        let tested = "# a\n```rust\nlet a = 1;\n```\n";
        assert!(untested("\n```rust\nlet a = 1;\n```\n```sh\nls\n```\n", tested).is_empty());
        let told = untested("\n```rust\nlet b = 1;\nb();\n```\n", tested);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("`let b = 1;`"), "{told:?}");
    }

    #[test]
    fn one_crate_too_many_breaks_the_rule() {
        let crates = crates(&["a 1.0.0", "b 1.0.0"]);
        assert_eq!(too_many(&crates, "", 2), None);
        let told = too_many(&crates, "--all-features", 1).unwrap();
        assert!(
            told.contains("2 crates") && told.contains("a 1.0.0, b 1.0.0"),
            "{told}"
        );
    }

    #[test]
    fn a_crate_that_needs_a_newer_rust_breaks_the_rule() {
        let needed = [
            ("a 1.0.0", "1.88.0"),
            ("b 1.0.0", "1.95"),
            ("c 1.0.0", "1.96"),
        ]
        .map(|(name, rust)| (name.to_owned(), rust.to_owned()))
        .into();
        let told = too_new(&crates(&["a 1.0.0", "b 1.0.0", "d 1.0.0"]), "1.88", &needed);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("b 1.0.0 needs 1.95"), "{told:?}");
    }
}
