//! The rule of plain English: comments and documents avoid the worst habits of this house.

use super::rules::File;

/// Columns that a line with nothing but a comment may have.
const WIDEST_COMMENT: usize = 100;

/// Phrases that have a plainer word, with that word. No letter is capital.
const HABITS: [(&str, &str); 13] = [
    ("so many", "say how many"),
    ("whoever", "name the thread"),
    ("whom", "name the thread"),
    ("told", "`knows`, or `distinguished`"),
    ("tells", "`says`, `shows`, `reports`, or `distinguishes`"),
    ("as above", "name what holds"),
    ("to be had", "`available`, or `possible`"),
    ("lest", "`so that ... not`"),
    ("there is none", "`if there is no ...`"),
    ("is at it", "name what it does"),
    ("of its own accord", "`by itself`"),
    ("favour", "`prefer`"),
    ("to hand", "`available`"),
];

/// Every habit in the comments of a Rust file, and every comment that is too wide.
pub(super) fn comments(file: &File<'_>) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let Some(prose) = comment(line) else {
            continue;
        };
        broken.extend(habits(file, number, prose));
        let columns = line.chars().count();
        if line.trim_start().starts_with("//") && columns > WIDEST_COMMENT {
            broken.push(format!(
                "{}:{number}: a comment of {columns} columns, more than {WIDEST_COMMENT}",
                file.path
            ));
        }
    }
    broken
}

/// Every habit in a document, its code left out. A change log is history, and stays as it is.
pub(super) fn documents(file: &File<'_>) -> Vec<String> {
    if file.path.ends_with("CHANGELOG.md") {
        return Vec::new();
    }
    let mut in_code = false;
    let mut broken = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        in_code ^= line.trim_start().starts_with("```");
        if !in_code {
            broken.extend(habits(file, number, line));
        }
    }
    broken
}

/// What a line of Rust says as a comment. A `//` in a string counts only if a space follows.
fn comment(line: &str) -> Option<&str> {
    match line.trim_start().strip_prefix("//") {
        Some(prose) => Some(prose),
        None => line.split_once(" // ").map(|(_, prose)| prose),
    }
}

fn habits(file: &File<'_>, number: usize, prose: &str) -> Vec<String> {
    let lower = prose.to_lowercase();
    let mut broken: Vec<String> = HABITS
        .iter()
        .filter(|(phrase, _)| has_words(&lower, phrase))
        .map(|(phrase, instead)| {
            format!("{}:{number}: `{phrase}` is not plain: {instead}", file.path)
        })
        .collect();
    if asks_for_somebody(prose) {
        broken.push(format!(
            "{}:{number}: `Who ...` is not plain: name the thread",
            file.path
        ));
    }
    broken
}

/// Whether the phrase occurs, and is not a part of other words.
fn has_words(text: &str, phrase: &str) -> bool {
    let inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

/// Whether a sentence begins with `Who` and is no question.
fn asks_for_somebody(prose: &str) -> bool {
    let begins = ["", ". ", ": ", "; "];
    let trimmed = prose.trim_start_matches(['/', '!', ' ', '-', '*', '|']);
    !prose.contains('?')
        && begins.iter().any(|begin| match *begin {
            "" => trimmed.starts_with("Who "),
            begin => trimmed.contains(&format!("{begin}Who ")),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rule: fn(&File<'_>) -> Vec<String>, text: &str) -> Vec<String> {
        let path = "crates/index/src/a.rs";
        rule(&File { path, text })
    }

    #[test]
    fn every_habit_is_noticed() {
        for (phrase, _) in HABITS {
            for text in [
                format!("/// It is {phrase}.\n"),
                format!("let a = 1; // It is {phrase}, then.\n"),
            ] {
                assert_eq!(of(comments, &text).len(), 1, "{phrase}: {text}");
            }
            assert_eq!(of(documents, &format!("It is {phrase}.\n")).len(), 1);
            assert!(of(comments, &format!("let a = \"{phrase}\";\n")).is_empty());
            assert!(of(documents, &format!("```\n{phrase}\n```\n")).is_empty());
        }
        let named = of(comments, "// one\n/// As above.\n");
        assert!(named[0].starts_with("crates/index/src/a.rs:2: `as above`"));
    }

    #[test]
    fn words_within_words_are_fine() {
        for text in ["// foretold, stellstells\n", "// a Bigtells_x\n"] {
            assert!(of(comments, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_thread_is_named() {
        assert_eq!(of(comments, "// Who waits, holds nothing.\n").len(), 1);
        assert_eq!(of(comments, "//! A lock. Who waits is last.\n").len(), 1);
        assert!(of(comments, "/// Who holds the lock?\n").is_empty());
        assert!(of(comments, "/// A thread who waits.\n").is_empty());
    }

    #[test]
    fn comments_have_a_width() {
        let comment = |columns: usize| format!("// {}\n", "x".repeat(columns - 3));
        assert!(of(comments, &comment(100)).is_empty());
        assert_eq!(of(comments, &comment(101)).len(), 1);
    }
}
