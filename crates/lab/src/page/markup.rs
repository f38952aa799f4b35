//! Text and numbers in the form that the page needs.

/// Text that may stand between tags, and in a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // The page is UTF-8; other control characters are not allowed in it.
            control if control.is_control() && control != '\n' => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

/// A name as an anchor: letters, digits and hyphens.
pub(super) fn anchor(name: &str) -> String {
    let part = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    name.chars().map(part).collect()
}

/// A figure with three significant digits; a large one with all of its digits, in groups.
pub(super) fn number(figure: f64) -> String {
    if !figure.is_finite() {
        return "∞".to_owned();
    }
    let size = figure.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if size >= 1000.0 => grouped(figure.round()),
        _ if size >= 100.0 => format!("{figure:.0}"),
        _ if size >= 10.0 => format!("{figure:.1}"),
        _ if size >= 0.1 => format!("{figure:.2}"),
        _ if size >= 0.01 => format!("{figure:.3}"),
        _ if size >= 0.001 => format!("{figure:.4}"),
        _ => format!("{figure:.1e}"),
    }
}

/// A whole number with thin spaces between groups of three digits.
fn grouped(figure: f64) -> String {
    let digits = format!("{:.0}", figure.abs());
    let mut text = String::new();
    if figure < 0.0 {
        text.push('−');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A count.
pub(super) fn count(number: u64) -> String {
    // Above 2^53 the count is rounded, which a reader does not notice.
    grouped(number as f64)
}

/// A number on an axis, as short as possible.
pub(super) fn tick(figure: f64) -> String {
    if figure.abs() >= 1000.0 {
        return match figure.abs() {
            size if size >= 1e9 => format!("{}G", short(figure / 1e9)),
            size if size >= 1e6 => format!("{}M", short(figure / 1e6)),
            _ => format!("{}k", short(figure / 1e3)),
        };
    }
    short(figure)
}

fn short(figure: f64) -> String {
    let text = format!("{figure:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" | "" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// A count with its word, in the plural if needed.
pub(super) fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(
            escape("<a href=\"x\">&'\u{1}"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}"
        );
        assert_eq!(anchor("p99.9 <x>"), "p99-9--x-");
    }

    #[test]
    fn numbers_keep_three_digits() {
        let shown: Vec<_> = [
            0.0,
            0.001_23,
            0.012_3,
            0.123,
            1.234,
            12.34,
            123.4,
            1_234_567.0,
        ]
        .map(number)
        .into();
        assert_eq!(
            shown,
            [
                "0",
                "0.0012",
                "0.012",
                "0.12",
                "1.23",
                "12.3",
                "123",
                "1\u{202f}234\u{202f}567"
            ]
        );
        assert_eq!(number(f64::INFINITY), "∞");
        assert_eq!(number(0.000_012), "1.2e-5");
    }

    #[test]
    fn ticks_are_short() {
        let shown: Vec<_> = [0.0, 0.5, 2.0, 1500.0, 2e6, 3e9].map(tick).into();
        assert_eq!(shown, ["0", "0.5", "2", "1.5k", "2M", "3G"]);
    }
}
