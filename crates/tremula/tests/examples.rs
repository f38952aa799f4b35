//! The examples do what they say: each asserts it, and has a test that runs it.

#[path = "../examples/actors.rs"]
mod actors;
#[path = "../examples/ets_table.rs"]
mod ets_table;
#[path = "../examples/event_window.rs"]
mod event_window;
#[path = "../examples/leaderboard.rs"]
mod leaderboard;
#[path = "../examples/mvcc_memtable.rs"]
mod mvcc_memtable;
#[path = "../examples/observe.rs"]
mod observe;
#[path = "../examples/order_book.rs"]
mod order_book;

#[test]
fn every_example_is_run_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let mut examples = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let included = format!("#[path = \"../examples/{name}\"]");
        assert!(
            include_str!("examples.rs").contains(&included),
            "{name} is not included"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\n#[test]\nfn "), "{name} has no test");
        examples += 1;
    }
    assert!(examples >= 7, "{examples} examples are there");
}
