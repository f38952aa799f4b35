//! The house rules that the compiler does not know: `cargo xtask tidy`.

mod rules;

use crate::mutants;
use crate::workspace::Workspace;
use rules::File;
use std::path::Path;

/// Prints every broken rule. `Ok(true)` if there is none.
pub(crate) fn command(workspace: &Workspace) -> Result<bool, String> {
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
        } else {
            let exists = |link: &Path| workspace.root.join(link).exists();
            broken.extend(rules::dead_links(&file, &exists));
        }
    }
    for package in &workspace.packages {
        if !package
            .readme
            .as_ref()
            .is_some_and(|readme| readme.is_file())
        {
            let manifest = package.folder.join("Cargo.toml");
            let manifest = manifest.strip_prefix(&workspace.root).unwrap_or(&manifest);
            broken.push(format!(
                "{}: names no README that is there",
                manifest.display()
            ));
        }
    }
    broken.extend(mutants::stale(&workspace.root));
    Ok(broken)
}
