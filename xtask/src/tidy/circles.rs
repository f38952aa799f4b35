//! The imports between the files of a crate: no file may, by way of others, import itself.
//!
//! A file imports another if its code names something that the other defines. A name that is only
//! passed on by `pub use` belongs to the file that defines it, so a `mod.rs` that lists what its
//! folder offers closes no circle. Tests may name what they like.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The crates that have no circle. Others are reported.
pub(super) const WITHOUT: [&str; 5] = ["lab", "log", "mailbox", "store", "sync"];

/// The segments of a path in the code, such as `super`, `kit`, `Probe`.
type Path = Vec<String>;

/// A file, as its imports show it.
#[derive(Default)]
struct Module {
    /// The paths that its code names.
    named: Vec<Path>,
    /// What each name stands for that a `use` binds.
    bound: BTreeMap<String, Path>,
}

/// The circles among the files of a crate, each as the paths of its files. `files` has paths from
/// the crate's `src` on, and texts.
pub(super) fn circles(files: &[(String, String)]) -> Vec<Vec<String>> {
    let mut modules = BTreeMap::new();
    let mut paths = BTreeMap::new();
    for (path, text) in files {
        let Some(module) = module_of(path) else {
            continue;
        };
        paths.insert(module.clone(), path.clone());
        modules.insert(module, read(text));
    }
    let imports: BTreeMap<&Path, BTreeSet<Path>> = modules
        .iter()
        .map(|(at, module)| {
            let imported = module.named.iter().filter_map(|path| {
                let defined_in = resolve(&modules, at, path, 0)?;
                (defined_in != *at).then_some(defined_in)
            });
            (at, imported.collect())
        })
        .collect();
    let reached: BTreeMap<_, _> = imports
        .keys()
        .map(|at| (*at, reach(&imports, at)))
        .collect();
    let mut circles = BTreeSet::new();
    for (at, targets) in &reached {
        if targets.contains(*at) {
            let circle = targets
                .iter()
                .filter(|target| reached[target].contains(*at));
            circles.insert(circle.map(|target| paths[target].clone()).collect());
        }
    }
    circles.into_iter().collect()
}

/// The module that a file is; `None` for tests, and for a program's root.
fn module_of(path: &str) -> Option<Path> {
    let path = path.strip_suffix(".rs")?;
    let mut module: Path = path.split('/').map(str::to_owned).collect();
    if module.iter().any(|name| name == "tests") {
        return None;
    }
    match module.last().map(String::as_str) {
        Some("main") => return None,
        Some("mod" | "lib") => module.truncate(module.len() - 1),
        _ => {}
    }
    Some(module)
}

/// All files that can be reached from this one by imports.
fn reach(imports: &BTreeMap<&Path, BTreeSet<Path>>, from: &Path) -> BTreeSet<Path> {
    let mut reached = BTreeSet::new();
    let mut open = VecDeque::from([from]);
    while let Some(at) = open.pop_front() {
        for target in &imports[at] {
            if reached.insert(target.clone()) {
                open.push_back(target);
            }
        }
    }
    reached
}

/// The module that defines what a path names; `None` if it is outside of the crate. `depth` counts
/// the `use` declarations that were followed.
fn resolve(
    modules: &BTreeMap<Path, Module>,
    from: &Path,
    path: &[String],
    depth: usize,
) -> Option<Path> {
    const DEEPEST: usize = 20;
    let mut at = from.clone();
    let mut rest = path;
    let (first, after) = path.split_first()?;
    match first.as_str() {
        "crate" => (at, rest) = (Path::new(), after),
        "self" => rest = after,
        "super" => {
            while let Some((_, after)) = rest.split_first().filter(|(first, _)| *first == "super") {
                at.pop();
                rest = after;
            }
        }
        _ if modules.contains_key(&child(&at, first)) => {}
        // In the code, what begins with another name is a type, or lies in another crate.
        _ if depth == 0 || depth == DEEPEST => return None,
        _ => {
            let bound = modules.get(&at)?.bound.get(first)?;
            return resolve(modules, &at, &[bound, after].concat(), depth + 1);
        }
    }
    while let Some((first, after)) = rest.split_first() {
        let inner = child(&at, first);
        if modules.contains_key(&inner) {
            (at, rest) = (inner, after);
        } else if depth < DEEPEST
            && let Some(bound) = modules.get(&at).and_then(|at| at.bound.get(first))
        {
            return resolve(modules, &at, &[bound, after].concat(), depth + 1);
        } else {
            break;
        }
    }
    Some(at)
}

fn child(module: &Path, name: &str) -> Path {
    let mut child = module.clone();
    child.push(name.to_owned());
    child
}

/// What the code of a file names and binds.
fn read(text: &str) -> Module {
    let mut module = Module::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        if line.starts_with("//") {
            continue;
        }
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            // A module of tests ends the code; another item of tests is passed over.
            let mut item = lines.next().unwrap_or_default();
            if item.contains("mod ") && item.ends_with('{') {
                break;
            }
            while !item.ends_with([';', '}']) {
                item = lines.next().unwrap_or(";");
            }
            continue;
        }
        let Some((visibility, tree)) = use_of(line) else {
            let is_restricted = line.starts_with("pub(in ");
            let item = line.split_once(')').filter(|_| is_restricted);
            module
                .named
                .extend(paths_in(item.map_or(line, |(_, item)| item)));
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.ends_with(';') {
            tree += lines.next().unwrap_or(";").trim();
        }
        for (name, path) in leaves(tree.trim_end_matches(';')) {
            module.bound.insert(name, path.clone());
            if visibility.is_empty() {
                module.named.push(path);
            }
        }
    }
    module
}

/// The visibility and the tree of a line that begins a `use`.
fn use_of(line: &str) -> Option<(&str, &str)> {
    let (visibility, tree) = line.split_once("use ")?;
    let is_use = visibility.is_empty() || visibility.starts_with("pub");
    (is_use && !visibility.contains(['=', ';', '"'])).then_some((visibility, tree))
}

/// The names that the tree of a `use` binds, and the path of each.
fn leaves(tree: &str) -> Vec<(String, Path)> {
    let tree = tree.trim();
    let Some((head, inner)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path: Path = path
            .split("::")
            .map(|part| part.trim().to_owned())
            .collect();
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = match alias {
            "" => path.last().cloned().unwrap_or_default(),
            alias => alias.trim().to_owned(),
        };
        return vec![(name, path)];
    };
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let mut depth = 0_usize;
    let parts = inner.split(|letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts
        .filter(|part| !part.trim().is_empty())
        .flat_map(|part| leaves(&format!("{head}{}", part.trim())))
        .collect()
}

/// The paths of at least two segments in a line of code that begin with a module's name. Literals
/// are ignored.
fn paths_in(line: &str) -> Vec<Path> {
    let line = line.replace("'\"'", "");
    let code = line.split('"').step_by(2);
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':');
    let words = code.flat_map(|code| code.split(move |letter| !is_part(letter)));
    words
        .filter(|word| word.starts_with(|first: char| first.is_lowercase() || first == '_'))
        .map(|word| word.split("::").map(str::to_owned).collect())
        .filter(|path: &Path| path.len() > 1 && !path[1].is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let owned = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        circles(&files.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_planted_circle_is_found() {
        let measure = ("measure.rs", "use crate::record::Moment;\n");
        let record = ("record/mod.rs", "mod file;\nuse crate::rounds;\n");
        let rounds = (
            "rounds.rs",
            "use crate::{\n    measure::{self, Sample},\n};\n",
        );
        let found = circles_of(&[("lib.rs", ""), measure, record, rounds]);
        assert_eq!(found, [["measure.rs", "record/mod.rs", "rounds.rs"]]);
        assert!(circles_of(&[("lib.rs", ""), measure, record]).is_empty());
    }

    #[test]
    fn a_path_in_the_code_counts_and_one_in_a_comment_a_text_or_a_test_does_not() {
        let one = ("one.rs", "use crate::two::Two;\n");
        let bites = |two: &str| !circles_of(&[("lib.rs", ""), one, ("two.rs", two)]).is_empty();
        assert!(bites("fn f() { crate::one::f(); }\n"));
        assert!(bites("#[cfg(test)]\nmod tests;\nuse super::one;\n"));
        assert!(!bites("// crate::one::f();\n"));
        assert!(!bites("const A: &str = \"crate::one::f\";\n"));
        assert!(!bites("pub(in crate::one) fn f() {}\n"));
        assert!(!bites(
            "#[cfg(test)]\nmod tests {\n    use crate::one::f;\n}\n"
        ));
    }

    #[test]
    fn what_is_passed_on_belongs_to_the_file_that_defines_it() {
        let kit = ("kit/mod.rs", "mod part;\nmod user;\npub use part::Part;\n");
        let part = ("kit/part.rs", "pub struct Part;\n");
        let user = ("kit/user.rs", "use super::Part;\n");
        let root = ("lib.rs", "mod kit;\npub use kit::Part;\n");
        assert!(circles_of(&[root, kit, part, user]).is_empty());
        // A parent that uses its child, which uses what the parent itself defines.
        let kit = ("kit/mod.rs", "mod user;\nuse user::f;\npub struct Part;\n");
        let found = circles_of(&[root, kit, user]);
        assert_eq!(found, [["kit/mod.rs", "kit/user.rs"]]);
    }
}
