//! Tables in files: damaged files are refused, and change nothing.

use std::fs;
use tremula_table::{ExtendedInfo, Kind, Options, Table, Tables, Term, WriteConcurrency};

fn sorted(table: &Table) -> Vec<String> {
    let rows = table.tab2list().unwrap().into_iter();
    let mut rows: Vec<_> = rows.map(|row| Term::from(row).to_string()).collect();
    rows.sort();
    rows
}

fn filled(tables: &Tables, options: Options) -> Table {
    let table = tables.create("a table", options).unwrap();
    for number in 0..700 {
        let row = format!(
            "{{{number}, {}.0, <<\"{number}\">>, #{{a => [{number}|x]}}}}",
            number % 9
        );
        table.insert(row.parse().unwrap()).unwrap();
    }
    table
}

#[test]
fn a_table_comes_back_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tab");
    let all = [
        Options::new(),
        Options::new().kind(Kind::OrderedSet).keypos(2),
        Options::new()
            .kind(Kind::OrderedSet)
            .engine(tremula_index::Engine::BTree),
        Options::new().kind(Kind::Bag).keypos(2).compressed(),
        Options::new()
            .kind(Kind::DuplicateBag)
            .write_concurrency(WriteConcurrency::Auto),
    ];
    for options in all {
        let tables = Tables::new();
        let table = filled(&tables, options.clone());
        table.tab2file(&path, &[ExtendedInfo::ObjectCount]).unwrap();
        let info = tables.tabfile_info(&path).unwrap();
        assert_eq!(
            (info.name.text(), info.size),
            ("a table", table.size().unwrap() as u64)
        );
        assert_eq!(info.options.kind, options.kind);
        let again = tables.owner().file2tab(&path).unwrap();
        assert!(again.is_deleted(), "its owner is gone");
        let again = tables.file2tab(&path).unwrap();
        assert_eq!(sorted(&again), sorted(&table));
        let (old, new) = (table.info().unwrap(), again.info().unwrap());
        assert_eq!(
            (old.engine, old.compressed, old.keypos),
            (new.engine, new.compressed, new.keypos)
        );
    }
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing else is left"
    );
}

#[test]
fn whatever_byte_is_damaged_it_is_refused_and_no_table_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tab");
    let tables = Tables::new();
    let table = filled(&tables, Options::new());
    table.tab2file(&path, &[]).unwrap();
    let bytes = fs::read(&path).unwrap();
    let steps = (0..200).chain((200..bytes.len()).step_by(101));
    for place in steps {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let error = tables.file2tab(&path).unwrap_err().to_string();
        assert!(error.contains("byte "), "byte {place}: {error}");
        fs::write(&path, &bytes[..place]).unwrap();
        let error = tables.file2tab(&path).unwrap_err().to_string();
        assert!(error.contains("byte "), "{place} bytes: {error}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    fs::write(&path, &longer).unwrap();
    let error = tables.file2tab(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("something follows the last record"),
        "{error}"
    );
    assert_eq!(tables.all().len(), 1);
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tab");
    let tables = Tables::new();
    let table = filled(&tables, Options::new());
    table.tab2file(&path, &[]).unwrap();
    let bytes = fs::read(&path).unwrap();
    table.delete().unwrap();
    assert!(table.tab2file(&path, &[]).is_err());
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let nowhere = folder.path().join("none").join("t.tab");
    let error = tables.file2tab(&nowhere).unwrap_err().to_string();
    assert!(error.contains("t.tab: "), "{error}");
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tab");
    let tables = Tables::new();
    let table = tables.create("named", Options::new().named()).unwrap();
    table.insert("{1}".parse().unwrap()).unwrap();
    table.tab2file(&path, &[]).unwrap();
    let error = tables.file2tab(&path).unwrap_err().to_string();
    assert!(
        error.contains("there is a table named named already"),
        "{error}"
    );
    assert_eq!(tables.all().len(), 1);
    table.delete().unwrap();
    tables.file2tab(&path).unwrap();
    assert_eq!(tables.whereis("named").unwrap().size().unwrap(), 1);
}
