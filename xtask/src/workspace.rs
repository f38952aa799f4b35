//! What the workspace consists of, according to cargo.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace: where it lies, where it builds, and its packages.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// The build directory, which `CARGO_TARGET_DIR` may have moved.
    pub(crate) target: PathBuf,
    /// The triple of this machine, which sanitizers need by name.
    pub(crate) host: String,
    pub(crate) packages: Vec<Package>,
    /// Whether tests take the time of a deep run.
    pub(crate) deep: bool,
}

/// One crate of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Whether it is meant for a registry.
    pub(crate) is_published: bool,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The README that its manifest names.
    pub(crate) readme: Option<PathBuf>,
    /// The names of its integration tests.
    pub(crate) tests: Vec<String>,
    /// What its manifest does not say, and a registry's page shows.
    pub(crate) unsaid: Vec<&'static str>,
}

/// What a published package must state: the name in `cargo metadata`, and in the manifest.
const SAID: [(&str, &str); 8] = [
    ("/description", "description"),
    ("/license", "license"),
    ("/repository", "repository"),
    ("/documentation", "documentation"),
    ("/rust_version", "rust-version"),
    ("/keywords/0", "keywords"),
    ("/categories/0", "categories"),
    ("/metadata/docs/rs", "package.metadata.docs.rs"),
];

impl Workspace {
    /// Asks cargo about the workspace that this program was built in.
    pub(crate) fn load() -> Result<Self, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let here = here.parent().unwrap_or(here);
        let metadata = ["metadata", "--no-deps", "--format-version", "1"];
        let metadata: Value = serde_json::from_str(&capture(here, "cargo", &metadata)?)
            .map_err(|error| format!("cargo metadata: {error}"))?;
        let host = capture(here, "rustc", &["-vV"])?
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .ok_or("rustc -vV names no host")?
            .to_owned();
        Ok(Self {
            root: path(&metadata["workspace_root"]).ok_or("cargo metadata names no root")?,
            target: path(&metadata["target_directory"]).ok_or("cargo metadata names no target")?,
            host,
            packages: list(&metadata["packages"]).filter_map(package).collect(),
            deep: false,
        })
    }

    /// The tracked and the new files of the workspace, relative to its root: all that git does
    /// not ignore.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, String> {
        let arguments = [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ];
        Ok(self
            .git(&arguments)?
            .split_terminator('\0')
            .map(PathBuf::from)
            .filter(|file| self.root.join(file).is_file())
            .collect())
    }

    /// What `git` with these arguments prints.
    pub(crate) fn git(&self, arguments: &[&str]) -> Result<String, String> {
        capture(&self.root, "git", arguments)
    }
}

impl Package {
    /// Its name and version, as its archive is called.
    pub(crate) fn full_name(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// A published package without anything in it.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            is_published: true,
            folder: PathBuf::new(),
            readme: None,
            tests: Vec::new(),
            unsaid: Vec::new(),
        }
    }
}

fn package(package: &Value) -> Option<Package> {
    let folder = path(&package["manifest_path"])?.parent()?.to_owned();
    Some(Package {
        name: package["name"].as_str()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
        // No list of registries: all of them. An empty one: none.
        is_published: package["publish"].is_null(),
        readme: path(&package["readme"]).map(|readme| folder.join(readme)),
        folder,
        tests: list(&package["targets"])
            .filter(|target| list(&target["kind"]).any(|kind| kind == "test"))
            .filter_map(|target| target["name"].as_str().map(str::to_owned))
            .collect(),
        unsaid: SAID
            .iter()
            .filter(|(place, _)| package.pointer(place).is_none_or(Value::is_null))
            .map(|&(_, name)| name)
            .collect(),
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn path(value: &Value) -> Option<PathBuf> {
    value.as_str().map(PathBuf::from)
}

/// What a short command prints, or why it failed.
pub(crate) fn capture(folder: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let told = || format!("`{program} {}`", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .map_err(|error| format!("{} could not start: {error}", told()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("{} failed: {}", told(), complaint.trim_end()))
    }
}
