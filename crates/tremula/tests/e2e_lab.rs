//! The lab as a part of the `tremula` command: it starts processes of that command, too.

use std::{fs, process::Command};

#[test]
fn the_lab_measures_by_way_of_tremula_lab() {
    let folder = std::env::temp_dir().join(format!("tremula-lab-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let file = folder.join("records.jsonl");
    let lab = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        command.arg("lab").args(arguments.split_whitespace());
        command.arg("--json").arg(&file);
        let output = command.output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        fs::read_to_string(&file).unwrap().lines().count()
    };
    // Each table is weighed in a process of its own: one for each key set.
    let all = "all --quick --only memory --engines locked";
    assert_eq!(lab(all), 4);
    assert_eq!(lab(&format!("{all} --resume")), 4);
    let run = "run high_contention --engines locked --threads 1 --keys 1000 --runs 1";
    assert_eq!(lab(run), 5);
    fs::remove_dir_all(folder).unwrap();
}
