//! `cargo xtask mutants`: planted bugs prove that the checkers bite.
//!
//! Each bug of the [list] is planted in a copy of the workspace, alone; the one checker that
//! is named for it must then fail, and must pass without it. A bug that does not compile, or
//! whose original text is gone, proves nothing and is an error.

mod changes;
pub(crate) mod list;
mod planted;

use crate::table::{Align, Table};
use crate::workspace::Workspace;
use changes::Changes;
use list::{Checker, Mutant};
use planted::{Tree, Verdict};
use std::path::Path;
use std::time::{Duration, Instant};

/// Which bugs to plant.
#[derive(clap::Args)]
pub(crate) struct MutantsArgs {
    /// Plant only the bugs whose name contains one of these
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Plant only the bugs that are new since this revision, or whose file or checker has changed
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// List the bugs, and what catches each, and do nothing
    #[arg(long)]
    list: bool,
}

/// Plants the chosen bugs, one at a time. `Ok(true)` if all of them are caught.
pub(crate) fn command(workspace: &Workspace, arguments: &MutantsArgs) -> Result<bool, String> {
    let chosen = chosen(workspace, arguments)?;
    if arguments.list {
        print!("{}", describe(&chosen));
        return Ok(true);
    }
    for mutant in &chosen {
        mutant.replace(&workspace.root)?;
    }
    let tree = Tree::copy(workspace)?;
    let unsound = unsound_checkers(&tree, &chosen)?;
    let mut done: Vec<(&Mutant, Verdict, Duration)> = Vec::new();
    for (index, mutant) in chosen.iter().enumerate() {
        println!("[{}/{}] {}", index + 1, chosen.len(), mutant.name);
        let begun = Instant::now();
        let verdict = if unsound.contains(&mutant.checker) {
            Verdict::Unusable("its checker does not pass without a bug".to_owned())
        } else {
            tree.plant(mutant)?
        };
        println!("    {verdict} in {:.1} s", begun.elapsed().as_secs_f64());
        done.push((mutant, verdict, begun.elapsed()));
    }
    Ok(summarize(&done))
}

/// The bugs that the arguments name.
fn chosen(workspace: &Workspace, arguments: &MutantsArgs) -> Result<Vec<&'static Mutant>, String> {
    let mut chosen: Vec<&Mutant> = list::all().collect();
    for name in &arguments.only {
        if !chosen.iter().any(|bug| bug.name.contains(name.as_str())) {
            return Err(format!(
                "no planted bug has '{name}' in its name; --list names them all"
            ));
        }
    }
    if !arguments.only.is_empty() {
        let named = |bug: &Mutant| arguments.only.iter().any(|name| bug.name.contains(name));
        chosen.retain(|bug| named(bug));
    }
    if let Some(revision) = &arguments.since {
        let changes = Changes::since(workspace, revision)?;
        chosen.retain(|bug| changes.concern(bug));
        if chosen.is_empty() {
            return Err(format!(
                "no planted bug is new since {revision}, and none has another file or checker"
            ));
        }
    }
    Ok(chosen)
}

/// The planted bugs whose original text is not in its file exactly once, as broken house
/// rules: a list that no longer fits the code proves nothing.
pub(crate) fn stale(root: &Path) -> Vec<String> {
    list::all()
        .filter_map(|mutant| mutant.replace(root).err())
        .collect()
}

/// The checkers that do not pass on the copy as it is: they catch nothing.
fn unsound_checkers(tree: &Tree, chosen: &[&Mutant]) -> Result<Vec<Checker>, String> {
    let (mut seen, mut unsound) = (Vec::new(), Vec::new());
    for Mutant { checker, .. } in chosen {
        if seen.contains(checker) {
            continue;
        }
        seen.push(*checker);
        println!("without a bug: {checker}");
        let verdict = tree.check(checker)?;
        if verdict != Verdict::Missed {
            println!("    {checker} must pass without a bug: {verdict}");
            unsound.push(*checker);
        }
    }
    Ok(unsound)
}

fn summarize(done: &[(&Mutant, Verdict, Duration)]) -> bool {
    let mut table = Table::new([
        ("planted bug", Align::Left),
        ("checker", Align::Left),
        ("result", Align::Left),
        ("time", Align::Right),
    ]);
    for (mutant, verdict, took) in done {
        let took = format!("{:.1} s", took.as_secs_f64());
        let (checker, result) = (mutant.checker.to_string(), verdict.to_string());
        table.row([mutant.name.to_owned(), checker, result, took]);
    }
    let caught = done
        .iter()
        .filter(|(mutant, verdict, _)| verdict.proves(mutant))
        .count();
    println!("\n{table}\n{caught} caught, {} missed", done.len() - caught);
    caught == done.len()
}

/// The list as a document.
fn describe(mutants: &[&Mutant]) -> String {
    let mut text = String::new();
    for mutant in mutants {
        text += &format!("{} ({})\n", mutant.name, mutant.file);
        text += &format!("    bug: {}\n    caught by: {}", mutant.why, mutant.checker);
        text += if mutant.hangs {
            ", which then hangs\n"
        } else {
            "\n"
        };
        for (sign, lines) in [('-', mutant.original), ('+', mutant.replacement)] {
            for line in lines.lines() {
                text += format!("    {sign} {line}").trim_end();
                text.push('\n');
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_bug_changes_something() {
        for (index, mutant) in list::all().enumerate() {
            assert_ne!(mutant.original, mutant.replacement, "{}", mutant.name);
            let mut before = list::all().take(index);
            assert!(
                before.all(|other| other.name != mutant.name),
                "{}",
                mutant.name
            );
        }
    }

    #[test]
    fn the_list_tells_what_is_planted_and_what_catches_it() {
        let mutant = list::all().next().unwrap();
        let text = describe(&[mutant]);
        assert!(
            text.contains(mutant.why) && text.contains(&mutant.checker.to_string()),
            "{text}"
        );
        assert!(text.contains(&format!(
            "    + {}",
            mutant.replacement.lines().next().unwrap()
        )));
    }
}
