//! The list of cases, `cases.txt`.
//!
//! ```text
//! unit/auth: 11
//! = There are no replicas yet.
//! MASTERAUTH test with binary password
//! ```
//!
//! A unit with the number of its cases that run; behind a reason, the cases that it is the reason
//! to skip. An empty line ends a unit.

/// A unit of the suite.
pub(crate) struct Unit {
    pub(crate) name: String,
    /// How many cases run, and pass.
    pub(crate) runs: usize,
    groups: Vec<Group>,
}

/// Cases that are skipped for one reason.
struct Group {
    reason: String,
    cases: Vec<String>,
}

impl Unit {
    /// The names of the cases that are skipped.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = &str> {
        let cases = self.groups.iter().flat_map(|group| &group.cases);
        cases.map(String::as_str)
    }
}

/// All units that are run, the longest first.
pub(crate) fn units() -> Vec<Unit> {
    read(include_str!("cases.txt")).unwrap_or_else(|line| panic!("cases.txt: {line}"))
}

/// Reads the list; an error is the line that is wrong.
pub(crate) fn read(text: &str) -> Result<Vec<Unit>, String> {
    let mut units: Vec<Unit> = Vec::new();
    let mut is_within = false;
    for line in text.lines().map(str::trim_end) {
        if line.starts_with('#') {
            continue;
        }
        let wrong = || line.to_owned();
        if line.is_empty() {
            is_within = false;
        } else if !is_within {
            let (name, runs) = line.split_once(": ").ok_or_else(wrong)?;
            units.push(Unit {
                name: name.to_owned(),
                runs: runs.parse().map_err(|_| wrong())?,
                groups: Vec::new(),
            });
            is_within = true;
        } else {
            let groups = &mut units.last_mut().ok_or_else(wrong)?.groups;
            if let Some(reason) = line.strip_prefix("= ") {
                groups.push(Group {
                    reason: reason.to_owned(),
                    cases: Vec::new(),
                });
            } else {
                let group = groups.last_mut().ok_or_else(wrong)?;
                group.cases.push(line.to_owned());
            }
        }
    }
    let empty = units
        .iter()
        .flat_map(|unit| &unit.groups)
        .find(|group| group.cases.is_empty());
    match empty {
        Some(group) => Err(format!("no case is skipped because of: {}", group.reason)),
        None => Ok(units),
    }
}

#[test]
fn a_list_without_reason_or_unit_is_refused() {
    let units = read("# so\na: 2\n= why\none\ntwo\n\nb: 0\n").expect("a list");
    assert_eq!((units.len(), units[0].runs), (2, 2));
    assert_eq!(units[0].skipped().collect::<Vec<_>>(), ["one", "two"]);
    for (wrong, line) in [
        ("a: 2\none", "one"),
        ("a: x", "a: x"),
        ("a", "a"),
        ("a: 2\n= why", "no case is skipped because of: why"),
    ] {
        assert_eq!(read(wrong).err().as_deref(), Some(line));
    }
}
