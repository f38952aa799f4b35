//! The pages say what is so: the README's table lists the registered engines, and the code of the
//! cookbook is code that the tests run.

use std::fs;
use std::path::Path;
use tremula::Engine;

#[test]
fn the_table_of_the_readme_lists_the_registered_engines() {
    let rows = include_str!("../README.md")
        .lines()
        .skip_while(|line| !line.starts_with("| engine |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut listed: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    listed.sort_unstable();
    let mut registered = Engine::ALL.map(Engine::name);
    registered.sort_unstable();
    assert_eq!(listed, registered);
}

/// The pages of the repository. A test only reads them: a package does not have them.
fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines without their indentation, as one text.
fn flush_left(code: &str) -> String {
    code.lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect()
}

#[test]
fn the_cookbook_shows_code_that_the_tests_run() {
    let mut sources = vec![flush_left(include_str!("recipes.rs"))];
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).unwrap() {
        sources.push(flush_left(
            &fs::read_to_string(entry.unwrap().path()).unwrap(),
        ));
    }
    let page = page("cookbook.md");
    let blocks = page.split("\n```rust\n").skip(1);
    let blocks: Vec<&str> = blocks
        .filter_map(|block| block.split("\n```").next())
        .collect();
    assert!(blocks.len() > 20, "{} blocks", blocks.len());
    for block in blocks {
        let code = flush_left(block);
        assert!(
            sources.iter().any(|source| source.contains(&code)),
            "in no recipe and no example:\n{block}"
        );
    }
}
