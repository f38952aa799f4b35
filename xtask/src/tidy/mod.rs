//! The house rules that the compiler does not know: `cargo xtask tidy`.

mod circles;
mod library;
mod prose;
mod rules;

use crate::mutants;
use crate::workspace::{Package, Workspace};
use rules::File;
use std::{collections::BTreeMap, path::Path};

/// Prints every broken rule. `Ok(true)` if no rule is broken.
pub(crate) fn command(workspace: &Workspace) -> Result<bool, String> {
    let mut sizes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, circle) in circles(workspace)? {
        sizes
            .entry(name)
            .or_default()
            .push(circle.len().to_string());
    }
    sizes.retain(|name, _| !circles::WITHOUT.contains(&name.as_str()));
    for (name, sizes) in sizes {
        println!("note: {name} has circles of {} files", sizes.join(", "));
    }
    let broken = broken(workspace)?;
    for rule in &broken {
        println!("{rule}");
    }
    println!("{} house rules are broken", broken.len());
    Ok(broken.is_empty())
}

/// Every place where a rule is broken, as `file:line: what is wrong`.
pub(crate) fn broken(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut broken = Vec::new();
    for path in workspace.files()? {
        let kind = path.extension().and_then(|extension| extension.to_str());
        if !matches!(kind, Some("rs" | "md")) {
            continue;
        }
        let text = std::fs::read_to_string(workspace.root.join(&path))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let path = path.to_string_lossy();
        let file = File {
            path: &path,
            text: &text,
        };
        if kind == Some("rs") {
            rules::RUST
                .iter()
                .for_each(|rule| broken.extend(rule(&file)));
            broken.extend(prose::comments(&file));
        } else {
            let exists = |link: &Path| workspace.root.join(link).exists();
            broken.extend(rules::dead_links(&file, &exists));
            broken.extend(prose::documents(&file));
        }
    }
    broken.extend(workspace.packages.iter().flat_map(|package| {
        let manifest = package.folder.join("Cargo.toml");
        let manifest = manifest.strip_prefix(&workspace.root).unwrap_or(&manifest);
        unpresentable(package, &manifest.display().to_string())
    }));
    broken.extend(library::broken(workspace)?);
    for (name, circle) in circles(workspace)? {
        if circles::WITHOUT.contains(&name.as_str()) {
            let files = circle.join(", ");
            broken.push(format!(
                "crates/{name}/src: these files import each other: {files}"
            ));
        }
    }
    broken.extend(mutants::stale(&workspace.root));
    Ok(broken)
}

/// The circles of imports in each crate, with the name of its folder.
fn circles(workspace: &Workspace) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for path in workspace.files()? {
        let text = path.to_string_lossy();
        let inside = text
            .strip_prefix("crates/")
            .filter(|path| path.ends_with(".rs"));
        let Some((name, file)) = inside.and_then(|path| path.split_once("/src/")) else {
            continue;
        };
        let source = std::fs::read_to_string(workspace.root.join(&path))
            .map_err(|error| format!("{text}: {error}"))?;
        let files = crates.entry(name.to_owned()).or_default();
        files.push((file.to_owned(), source));
    }
    let of_crate = |(name, files): (String, Vec<_>)| {
        let circles = circles::circles(&files).into_iter();
        circles.map(move |circle| (name.clone(), circle))
    };
    Ok(crates.into_iter().flat_map(of_crate).collect())
}

/// What the manifest of a package should say, and does not.
fn unpresentable(package: &Package, manifest: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let readme = package.readme.as_ref().filter(|readme| readme.is_file());
    match readme {
        None => broken.push(format!("{manifest}: names no README that is there")),
        Some(readme) if package.is_published && readme.parent() != Some(&package.folder) => {
            broken.push(format!("{manifest}: names a README that is not its own"));
        }
        Some(_) => {}
    }
    if package.is_published {
        let unsaid = package.unsaid.iter();
        broken.extend(unsaid.map(|field| format!("{manifest}: does not say its {field}")));
    }
    broken
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_published_package_says_what_its_page_shows() {
        let mut package = Package {
            unsaid: vec!["keywords"],
            ..Package::named("a")
        };
        package.readme = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
        assert_eq!(
            unpresentable(&package, "a"),
            [
                "a: names a README that is not its own",
                "a: does not say its keywords"
            ]
        );
        package.folder = env!("CARGO_MANIFEST_DIR").into();
        package.unsaid.clear();
        assert!(unpresentable(&package, "a").is_empty());
        package.readme = None;
        assert_eq!(
            unpresentable(&package, "a"),
            ["a: names no README that is there"]
        );
    }
}
