//! The tables of engines in the documents list the engines that are registered, and no others.
#![cfg(not(any(loom, shuttle)))]

use tremula_index::Engine;

#[test]
fn every_table_of_engines_lists_the_registered_ones() {
    for (document, text) in [
        ("crates/index/README.md", include_str!("../README.md")),
        (
            "crates/tremula/README.md",
            include_str!("../../tremula/README.md"),
        ),
    ] {
        let mut listed = listed(text);
        listed.sort_unstable();
        let mut registered = Engine::ALL.map(Engine::name);
        registered.sort_unstable();
        assert_eq!(listed, registered, "the table of engines in {document}");
    }
}

/// The first cells of the table whose first heading is `engine`.
fn listed(text: &str) -> Vec<&str> {
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| engine |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('`').nth(1)).collect()
}
