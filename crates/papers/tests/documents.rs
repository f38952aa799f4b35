//! The table in the README lists the engines that are registered, and no others.
#![cfg(not(any(loom, shuttle)))]

use tremula_papers::PaperEngine;

#[test]
fn the_table_of_the_readme_lists_the_registered_engines() {
    let text = include_str!("../README.md");
    let mut listed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("`, engine `"))
        .filter_map(|(_, rest)| rest.split('`').next())
        .collect();
    listed.sort_unstable();
    let mut registered = PaperEngine::ALL.map(PaperEngine::name);
    registered.sort_unstable();
    assert_eq!(listed, registered);
}
