//! The pages say what is so: their code is code that the tests run, and their figures are results.

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
fn the_pages_show_code_that_the_tests_run() {
    let mut sources = vec![
        flush_left(include_str!("recipes.rs")),
        flush_left(include_str!("../README.md")),
    ];
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).unwrap() {
        sources.push(flush_left(
            &fs::read_to_string(entry.unwrap().path()).unwrap(),
        ));
    }
    for (name, least) in [("cookbook.md", 20), ("which-engine.md", 1)] {
        let page = page(name);
        let blocks = page.split("\n```rust\n").skip(1);
        let blocks: Vec<&str> = blocks
            .filter_map(|block| block.split("\n```").next())
            .collect();
        assert!(blocks.len() >= least, "{name}: {} blocks", blocks.len());
        for block in blocks {
            let code = flush_left(block);
            assert!(
                sources.iter().any(|source| source.contains(&code)),
                "{name}: in no recipe and no example:\n{block}"
            );
        }
    }
}

/// The second column of each row of a page's tables.
fn second_column(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|row| row.split(" | ").nth(1))
}

#[test]
fn every_call_that_replaces_another_is_typed_in_a_test() {
    let page = page("coming-from.md");
    let typed = include_str!("coming_from.rs");
    let mut calls = 0;
    for code in second_column(&page).flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
        let Some((name, _)) = code.split_once('(') else {
            continue;
        };
        let name = name.rsplit("::").next().unwrap();
        assert!(
            typed.contains(&format!("{name}(")),
            "`{code}` is typed nowhere"
        );
        calls += 1;
    }
    assert!(calls > 100, "{calls} calls");
}

/// A figure that the lab has measured.
fn figure(results: &str, wanted: &[String], field: &str) -> f64 {
    let line = results
        .lines()
        .find(|line| wanted.iter().all(|part| line.contains(part)))
        .unwrap_or_else(|| panic!("no result has {wanted:?}"));
    let (_, value) = line.split_once(&format!("\"{field}\":")).unwrap();
    value.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn the_figures_of_the_engines_are_those_of_the_results() {
    let results = ["rand_int", "mono_int", "email"]
        .map(|set| page(&format!("../crates/index/results/ycsb_{set}.jsonl")))
        .concat()
        + &page("results/maps.jsonl");
    let page = page("which-engine.md");
    let rows = |header: &str| {
        let from = page.split(header).nth(1).unwrap().trim_start();
        let rows = from
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with('|'));
        rows.map(|row| row.trim_matches(['|', ' ']))
            .collect::<Vec<_>>()
    };
    let of = |experiment: &str,
              work: &str,
              set: &str,
              keys: u32,
              threads: u32,
              engine: &str,
              field: &str| {
        let wanted = [
            format!("\"experiment\":\"{experiment}\",\"workload\":\"{work}\","),
            format!("\"engine\":\"{engine}\",\"key_set\":\"{set}\","),
            format!("\"threads\":{threads},\"keys\":{keys},"),
        ];
        figure(&results, &wanted, field)
    };
    let speeds = |sizes: [(&str, u32); 3], others: &[&str]| {
        let mut expected = Vec::new();
        for (set, keys) in sizes {
            for work in ["insert", "c", "a", "e"] {
                let speed = |engine: &str| of("ycsb", work, set, keys, 2, engine, "mops");
                let ratio = |engine: &&str| format!("{:.2}", speed(engine) / speed("aspen"));
                let ratios: Vec<_> = others.iter().map(ratio).collect();
                expected.push(format!("`{set}` | `{work}` | {}", ratios.join(" | ")));
            }
        }
        expected
    };
    let small = [
        ("rand_int", 500_000),
        ("mono_int", 500_000),
        ("email", 500_000),
    ];
    let large = [
        ("rand_int", 5_000_000),
        ("mono_int", 5_000_000),
        ("email", 2_000_000),
    ];
    let all = [
        "ca_tree",
        "lfca_tree",
        "b_tree",
        "art",
        "masstree",
        "locked",
    ];
    let header =
        "| keys | work | `ca_tree` | `lfca_tree` | `b_tree` | `art` | `masstree` | `locked` |";
    assert_eq!(rows(header), speeds(small, &all));
    let header = "| keys | work | `ca_tree` | `b_tree` | `art` |";
    assert_eq!(rows(header), speeds(large, &["ca_tree", "b_tree", "art"]));

    let memory = "| keys | entries | `aspen` | `ca_tree` | `lfca_tree` | `b_tree` | `art` | `masstree` | `locked` |";
    let weighed = [
        ("rand_int", 500_000),
        ("rand_int", 5_000_000),
        ("mono_int", 500_000),
        ("mono_int", 5_000_000),
        ("email", 500_000),
    ];
    let expected = weighed.map(|(set, keys)| {
        let bytes = |engine| of("memory", "fill", set, keys, 1, engine, "bytes_per_key");
        let engines = std::iter::once("aspen").chain(all);
        let bytes: Vec<_> = engines
            .map(|engine| format!("{:.1}", bytes(engine)))
            .collect();
        format!("`{set}` | {keys} | {}", bytes.join(" | "))
    });
    assert_eq!(rows(memory), expected);
}
