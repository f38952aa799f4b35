//! Which planted bugs a change of the code concerns.

use super::list::{Mutant, Target};
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the list of planted bugs lies, under the workspace's root.
const LIST: &str = "xtask/src/mutants/list";

/// What has changed in the working tree since a revision.
pub(super) struct Changes {
    /// The changed and new files, relative to the root. A file that was only moved is none.
    files: Vec<PathBuf>,
    /// The folder of each package, relative to the root.
    folders: BTreeMap<String, PathBuf>,
    /// The list of planted bugs as the revision has it.
    list: String,
}

impl Changes {
    /// Compares the working tree with `revision`.
    pub(super) fn since(workspace: &Workspace, revision: &str) -> Result<Self, String> {
        let changed = workspace.git(&["diff", "--name-status", "-M", revision, "--"])?;
        let new = workspace.git(&["ls-files", "--others", "--exclude-standard"])?;
        let folder = |folder: &Path| {
            folder
                .strip_prefix(&workspace.root)
                .unwrap_or(folder)
                .into()
        };
        let packages = workspace.packages.iter();
        let mut list = String::new();
        for file in workspace
            .git(&["ls-tree", "-r", "--name-only", revision, LIST])?
            .lines()
        {
            list += &workspace.git(&["show", &format!("{revision}:{file}")])?;
        }
        Ok(Self {
            files: changed_files(&changed)
                .chain(new.lines())
                .map(PathBuf::from)
                .collect(),
            folders: packages
                .map(|each| (each.name.clone(), folder(&each.folder)))
                .collect(),
            list,
        })
    }

    /// Whether `bug` is new, or its file or its checker's is among the changes.
    pub(super) fn concern(&self, bug: &Mutant) -> bool {
        !self.list.contains(&format!("\"{}\"", bug.name))
            || self.files.iter().any(|file| file == Path::new(bug.file))
            || self.changes_checker(bug)
    }

    /// Unit tests lie in the files of what they test, or beside them.
    fn changes_checker(&self, bug: &Mutant) -> bool {
        let Some(folder) = self.folders.get(bug.checker.package) else {
            return false;
        };
        let tests = match bug.checker.target {
            Target::Lib | Target::Bins => Path::new(bug.file).with_extension(""),
            Target::Test(name) => folder.join("tests").join(name),
        };
        let file = tests.with_extension("rs");
        self.files
            .iter()
            .any(|changed| changed.starts_with(&tests) || *changed == file)
    }
}

/// The files in the output of `git diff --name-status -M`: of a file that was moved, the new
/// name, if its text has changed too.
fn changed_files(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        (fields.next()? != "R100").then_some(())?;
        fields.next_back()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::list;

    fn changes(files: &[&str], list: &str) -> Changes {
        let bug = list::all().next().unwrap();
        let package = (
            bug.checker.package.to_owned(),
            PathBuf::from("crates/check"),
        );
        Changes {
            files: files.iter().map(PathBuf::from).collect(),
            folders: BTreeMap::from([package]),
            list: list.to_owned(),
        }
    }

    #[test]
    fn a_bug_is_concerned_if_it_is_new_or_its_file_or_its_checker_has_changed() {
        let bug = list::all().next().unwrap();
        let known = format!("name: \"{}\",", bug.name);
        let Target::Test(test) = bug.checker.target else {
            panic!("the first bug is to be caught by an integration test");
        };
        assert!(changes(&[], "").concern(bug));
        assert!(!changes(&[], &known).concern(bug));
        assert!(!changes(&["README.md", "crates/check/tests/other.rs"], &known).concern(bug));
        assert!(changes(&[bug.file], &known).concern(bug));
        for part in [
            format!("crates/check/tests/{test}.rs"),
            format!("crates/check/tests/{test}/a.rs"),
        ] {
            assert!(changes(&[&part], &known).concern(bug), "{part}");
        }
    }

    #[test]
    fn a_file_that_was_only_moved_has_not_changed() {
        let output = "M\ta.rs\nR100\tb.rs\tc.rs\nR098\td.rs\te.rs\nA\tf.rs\n";
        assert_eq!(
            changed_files(output).collect::<Vec<_>>(),
            ["a.rs", "e.rs", "f.rs"]
        );
    }
}
