//! The table in the README lists the engines that are registered, and no others.

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
