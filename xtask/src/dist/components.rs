//! What the program is made of: the crates that are compiled into it, and the list of them that
//! goes with it (CycloneDX).

use crate::workspace::{Workspace, capture};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The crate that has the program.
const PROGRAM: &str = "tremula-cli";

/// A crate that is compiled into the program, or builds it.
pub(super) struct Component {
    pub(super) name: String,
    pub(super) version: String,
    /// An expression of SPDX.
    pub(super) licence: String,
    pub(super) folder: PathBuf,
    /// Whether it comes from a registry.
    pub(super) is_foreign: bool,
    repository: Option<String>,
    /// SHA-256 of its archive, in hexadecimal digits.
    sum: Option<String>,
}

/// The crates that the program is built of, by cargo, sorted.
pub(super) fn components(workspace: &Workspace) -> Result<Vec<Component>, String> {
    let root = &workspace.root;
    // Without the features that only other crates of the workspace ask for.
    let tree = [
        "tree",
        "--locked",
        "--package",
        PROGRAM,
        "--edges",
        "normal,build",
        "--target",
        &workspace.host,
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let used = used(&capture(root, "cargo", &tree)?);
    let metadata = ["metadata", "--locked", "--format-version", "1"];
    let metadata: Value = serde_json::from_str(&capture(root, "cargo", &metadata)?)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut components: Vec<Component> = packages
        .filter_map(|package| component(package, &lock))
        .filter(|one| used.contains(&(one.name.clone(), one.version.clone())))
        .collect();
    components.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    if components.len() != used.len() {
        return Err(format!(
            "cargo tree names {} crates, and cargo metadata {} of them",
            used.len(),
            components.len()
        ));
    }
    Ok(components)
}

/// The names and versions in the lines of `cargo tree`.
fn used(tree: &str) -> BTreeSet<(String, String)> {
    tree.lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            let version = rest.split(' ').next()?;
            Some((name.to_owned(), version.to_owned()))
        })
        .collect()
}

fn component(package: &Value, lock: &str) -> Option<Component> {
    let text = |field: &str| package[field].as_str().map(str::to_owned);
    let (name, version) = (text("name")?, text("version")?);
    let folder = PathBuf::from(text("manifest_path")?).parent()?.to_owned();
    Some(Component {
        sum: sum(lock, &name, &version),
        // Older crates write a slash for OR.
        licence: text("license")
            .unwrap_or_else(|| "NOASSERTION".to_owned())
            .replace('/', " OR ")
            .replace("  ", " "),
        repository: text("repository"),
        is_foreign: !package["source"].is_null(),
        name,
        version,
        folder,
    })
}

/// The checksum of a crate in the text of `Cargo.lock`.
fn sum(lock: &str, name: &str, version: &str) -> Option<String> {
    let head = format!("name = \"{name}\"\nversion = \"{version}\"\n");
    let entry = lock
        .split("[[package]]\n")
        .find(|entry| entry.starts_with(&head))?;
    let line = entry
        .lines()
        .find_map(|line| line.strip_prefix("checksum = \""))?;
    Some(line.trim_end_matches('"').to_owned())
}

/// The list of components, in CycloneDX's JSON.
pub(super) fn bill(components: &[Component], version: &str, time: &str) -> String {
    let url = |component: &Component| format!("pkg:cargo/{}@{}", component.name, component.version);
    let list: Vec<Value> = components
        .iter()
        .map(|component| {
            let mut entry = json!({
                "type": "library",
                "bom-ref": url(component),
                "name": component.name,
                "version": component.version,
                "purl": url(component),
                "licenses": [{ "expression": component.licence }],
            });
            if let Some(sum) = &component.sum {
                entry["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
            }
            if let Some(repository) = &component.repository {
                entry["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
            }
            entry
        })
        .collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time,
            "component": {
                "type": "application",
                "bom-ref": "tremula",
                "name": "tremula",
                "version": version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": list,
    });
    format!("{bill:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_tree_are_read() {
        let tree = "tremula-cli v0.1.0 (/src/crates/cli)\nclap v4.6.1\nclap v4.6.1 (*)\n\
                    derive v1.0.0 (proc-macro)\n";
        let names: Vec<_> = used(tree).into_iter().collect();
        let wanted = [
            ("clap", "4.6.1"),
            ("derive", "1.0.0"),
            ("tremula-cli", "0.1.0"),
        ];
        let wanted = wanted.map(|(name, version)| (name.to_owned(), version.to_owned()));
        assert_eq!(names, wanted);
    }

    #[test]
    fn a_crate_has_its_own_checksum() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"r\"\n\
                    checksum = \"aa\"\n\n[[package]]\nname = \"a\"\nversion = \"2.0.0\"\n\
                    checksum = \"bb\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        assert_eq!(sum(lock, "a", "2.0.0").as_deref(), Some("bb"));
        assert_eq!(sum(lock, "own", "0.1.0"), None);
    }
}
