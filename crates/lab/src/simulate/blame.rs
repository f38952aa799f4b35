//! What a measurement's time went to, in words: the fields that threads waited for.

use super::run::Blamed;
use std::{fmt::Write as _, fs, path::Path};
use tremula_sync::sim::Blame;

/// How many places are shown.
const SHOWN: usize = 10;

impl Blamed {
    /// A few lines: the parts of the time, and the places that cost most.
    pub(crate) fn told(&self, what: &str) -> String {
        let busy = self.work + self.waiting + self.transfers;
        let per_cent = |part: f64| 100.0 * part / busy.max(1.0);
        let off = 100.0 * self.off / (busy + self.off).max(1.0);
        let mut text = format!(
            "{what}: work {:.0} %, waiting for lines {:.0} %, their transfers {:.0} %; without a \
             core for {off:.0} % of all time\n  {:.1} million accesses of lines, simulated at {:.1} \
             million a second\n",
            per_cent(self.work),
            per_cent(self.waiting),
            per_cent(self.transfers),
            self.accesses as f64 / 1e6,
            self.accesses as f64 / 1e6 / self.seconds.max(f64::MIN_POSITIVE),
        );
        let span = span(&self.places);
        let lost: u64 = self.places.iter().map(Blame::time).sum();
        for place in self.places.iter().take(SHOWN) {
            let part = 100.0 * place.time() as f64 / (lost.max(1)) as f64;
            let worst = place.by_line.values().max().copied().unwrap_or(0);
            let of_worst = 100.0 * worst as f64 / place.time().max(1) as f64;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  {part:>3.0} %  {}  ({} cache lines, the worst has {of_worst:.0} %)  {}:{}",
                field_of(place),
                place.by_line.len(),
                place.file,
                place.line,
            );
            let _ = writeln!(
                text,
                "         over time, in eighths: {}",
                eighths(place, span)
            );
        }
        text
    }
}

/// The first and the last stretch of time in which something was lost.
fn span(places: &[Blame]) -> (u64, u64) {
    let stretches = || places.iter().flat_map(|place| place.over_time.keys());
    let (first, last) = (stretches().min(), stretches().max());
    (first.copied().unwrap_or(0), last.copied().unwrap_or(0))
}

/// How many per cent of the place's time were lost in each eighth of the span.
fn eighths(place: &Blame, (first, last): (u64, u64)) -> String {
    const PARTS: u64 = 8;
    let mut parts = [0; PARTS as usize];
    for (stretch, time) in &place.over_time {
        parts[((stretch - first) * PARTS / (last - first + 1)) as usize] += time;
    }
    let per_cent = parts.map(|part| format!("{} %", 100 * part / place.time().max(1)));
    per_cent.join(" ")
}

/// The type and the field that the access is of, as its source has them.
fn field_of(place: &Blame) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = fs::read_to_string(root.join(place.file)).unwrap_or_default();
    field_in(&source, place.line as usize, place.column as usize)
}

fn field_in(source: &str, line: usize, column: usize) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let Some(before) = lines.get(..line) else {
        return "unknown".to_owned();
    };
    // The expression may begin on an earlier line: what is before the method's name, without the
    // dots and spaces between.
    let mut text = before.join("\n");
    let last = before.last().map_or(0, |last| last.chars().count());
    let cut = (last + 1).saturating_sub(column);
    for _ in 0..cut {
        text.pop();
    }
    let text = text.trim_end_matches(|c: char| c == '.' || c.is_whitespace());
    let text = without_brackets(text);
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let begin = text.trim_end_matches(is_of_name).len();
    let field = &text[begin..];
    let of = before.iter().rev().find_map(|line| implemented(line));
    let of = of.unwrap_or("unknown");
    match field {
        "" | "self" => of.to_owned(),
        field => format!("{of}.{field}"),
    }
}

/// The text without an index or arguments at its end.
fn without_brackets(text: &str) -> &str {
    let mut depth = 0;
    for (index, c) in text.char_indices().rev() {
        match c {
            ')' | ']' => depth += 1,
            '(' | '[' => depth -= 1,
            _ if depth == 0 => return &text[..index + c.len_utf8()],
            _ => {}
        }
    }
    text
}

/// The type in a line that begins an implementation.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let rest = rest.strip_prefix("impl")?;
    if !rest.starts_with([' ', '<']) {
        return None;
    }
    let of = rest.split_once(" for ").map_or(rest, |(_, of)| of);
    let of = match of.strip_prefix('<') {
        // The parameters come before the type.
        Some(parameters) => parameters.split_once("> ").map_or(parameters, |(_, of)| of),
        None => of,
    };
    let name = of.trim_start();
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&name[..end.unwrap_or(name.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_with_its_type() {
        let source = "impl<T> Lock<T> {\n    fn f(&self) {\n        self.word.load(x);\n        \
                      self.slots[self.at(0)]\n            .swap(1);\n        self.access();\n";
        assert_eq!(field_in(source, 3, 19), "Lock.word");
        assert_eq!(field_in(source, 5, 14), "Lock.slots");
        assert_eq!(field_in(source, 6, 14), "Lock");
        assert_eq!(field_in(source, 99, 1), "unknown");
        assert_eq!(implemented("impl Drop for Guard<'_> {"), Some("Guard"));
        assert_eq!(implemented("let implied = 1;"), None);
    }
}
