//! Glob patterns as `KEYS` and `SCAN` spell them.
//!
//! `*` matches any bytes, `?` one byte, `[a-c]` one byte of a class, `[^a-c]` one byte outside it,
//! and a backslash makes the next byte literal. Malformed patterns mean what they mean in Redis;
//! the tests name the cases.

/// Steps of one match for each byte of the text. Patterns of up to this length never take more.
pub(crate) const STEPS_PER_BYTE: usize = 64;

/// Steps of a match of any text besides. A text that is a short name may meet a long pattern.
const FREE_STEPS: usize = 1 << 20;

/// The pattern takes more than [`STEPS_PER_BYTE`] steps for each byte of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManySteps;

/// Whether `text` matches `pattern`.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> Result<bool, TooManySteps> {
    let mut matching = Matching::default();
    loop {
        if let Some(answer) = matching.go_on(pattern, text, usize::MAX)? {
            return Ok(answer);
        }
    }
}

/// A match of one text with one pattern, which may stop in the middle.
///
/// It takes at most `pattern.len() * text.len()` steps, of one byte of the pattern each: when a
/// byte does not match, only the last star takes one more byte. Earlier stars need not, because the
/// last star can skip whatever they could. Beyond [`STEPS_PER_BYTE`] it is an error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Matching {
    /// Positions in the pattern and in the text.
    pattern: usize,
    text: usize,
    /// The position in the pattern behind the last star, and that in the text up to which the star
    /// has skipped.
    last_star: Option<(usize, usize)>,
    /// Steps so far.
    steps: usize,
}

impl Matching {
    /// Takes about `steps` more steps. Returns the answer if it has come to the end.
    pub(crate) fn go_on(
        &mut self,
        pattern: &[u8],
        text: &[u8],
        steps: usize,
    ) -> Result<Option<bool>, TooManySteps> {
        if text.is_empty() {
            // Redis compares nothing with an empty text; only `*` itself matches it.
            return Ok(Some(pattern.is_empty() || pattern == b"*"));
        }
        let most = text.len().saturating_mul(STEPS_PER_BYTE) + FREE_STEPS;
        let stop = self.steps.saturating_add(steps);
        while self.steps < stop {
            let rest = &pattern[self.pattern..];
            if self.text == text.len() {
                // Only stars match nothing.
                return Ok(Some(rest.iter().all(|byte| *byte == b'*')));
            }
            if let [b'*', behind @ ..] = rest {
                if behind.is_empty() {
                    return Ok(Some(true));
                }
                self.pattern += 1;
                self.last_star = Some((self.pattern, self.text));
                self.steps += 1;
            } else {
                let (is_match, length) = match_one(rest, text[self.text]);
                self.steps += length.max(1);
                if is_match {
                    self.pattern += length;
                    self.text += 1;
                } else {
                    let Some((behind, skipped)) = self.last_star else {
                        return Ok(Some(false));
                    };
                    if skipped + 1 == text.len() {
                        return Ok(Some(false));
                    }
                    self.last_star = Some((behind, skipped + 1));
                    (self.pattern, self.text) = (behind, skipped + 1);
                }
            }
            if self.steps > most {
                return Err(TooManySteps);
            }
        }
        Ok(None)
    }
}

/// The longest prefix that is of use: it only narrows the search for keys.
const PREFIX: usize = 4 << 10;

/// Bytes with which every text that matches `pattern` begins: all that there are, up to a limit.
pub(crate) fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        rest = match rest {
            _ if prefix.len() == PREFIX => return prefix,
            [] | [b'*' | b'?' | b'[', ..] => return prefix,
            [b'\\', byte, tail @ ..] | [byte, tail @ ..] => {
                prefix.push(*byte);
                tail
            }
        }
    }
}

/// Matches `byte` against the first element of `pattern`, which is not a star. Returns also the
/// length of that element.
fn match_one(pattern: &[u8], byte: u8) -> (bool, usize) {
    match pattern {
        [] => (false, 0),
        [b'?', ..] => (true, 1),
        [b'[', rest @ ..] => {
            let (is_match, behind) = match_class(rest, byte);
            (is_match, pattern.len() - behind.len())
        }
        [b'\\', literal, ..] => (*literal == byte, 2),
        [literal, ..] => (*literal == byte, 1),
    }
}

/// Matches `byte` against a class, behind its opening bracket, and returns what is behind the
/// class. An unclosed class ends with the pattern.
fn match_class(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [b'\\', literal, tail @ ..] => {
                found |= *literal == byte;
                tail
            }
            [] => break,
            [b']', tail @ ..] => {
                rest = tail;
                break;
            }
            [one, b'-', other, tail @ ..] => {
                found |= in_range(*one, *other, byte);
                tail
            }
            [literal, tail @ ..] => {
                found |= *literal == byte;
                tail
            }
        }
    }
    (found != negated, rest)
}

/// Ranges go in either direction, over signed bytes, because Redis's C has a signed `char`.
fn in_range(one: u8, other: u8, byte: u8) -> bool {
    let (one, other, byte) = (one.cast_signed(), other.cast_signed(), byte.cast_signed());
    (one.min(other)..=one.max(other)).contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same rules, implemented by trying everything.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            (_, []) => false,
            (_, [byte, tail @ ..]) => match match_one(pattern, *byte) {
                (true, length) => naive(&pattern[length..], tail),
                (false, _) => false,
            },
        }
    }

    fn is_match(pattern: &[u8], text: &[u8]) -> bool {
        matches(pattern, text).expect("few steps")
    }

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(
                is_match(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
        for text in no {
            assert!(
                !is_match(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn patterns_mean_what_redis_says() {
        check("*", &["", "a"], &[]);
        check("h?llo", &["hello", "hallo"], &["hllo", "heello"]);
        check("h*llo", &["hllo", "heeello"], &["hell"]);
        check("h[ae]llo", &["hello", "hallo"], &["hillo"]);
        check("h[^e]llo", &["hallo"], &["hello"]);
        check("h[a-b]llo", &["hallo", "hbllo"], &["hcllo"]);
        check("a*b*c", &["abc", "a1b2c", "abbcc"], &["ab", "acb"]);
        check(r"\*a\[", &["*a["], &["xa["]);
    }

    #[test]
    fn odd_patterns_mean_what_they_mean_in_redis() {
        check("**", &["a"], &[""]);
        check("[abc", &["a", "c"], &["d", "ab"]);
        check("[z-a]", &["m"], &["A"]);
        check("[a-]", &["_", "^"], &["b", "-"]);
        check("[]a]", &[], &["a]", "]", "a"]);
        check("[^", &["a"], &["ab"]);
        check(r"a\", &[r"a\"], &["a"]);
        check(r"[\]]", &["]"], &[r"\"]);
        assert!(is_match(b"[a-\xff]", b"\x00"), "-1 to 97");
    }

    #[test]
    fn patterns_that_explode_are_cut_off_and_no_others() {
        let text = "a".repeat(200_000);
        for pattern in [
            "*".to_owned() + &"a".repeat(100_000) + "b",
            "*[b".repeat(100_000),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                Err(TooManySteps)
            );
        }
        let class = format!("*[{}]", "b".repeat(2 << 20));
        assert_eq!(matches(class.as_bytes(), b"aa"), Err(TooManySteps));
        let longest = "*".to_owned() + &"a".repeat(STEPS_PER_BYTE - 2) + "b";
        assert_eq!(matches(longest.as_bytes(), text.as_bytes()), Ok(false));
        assert_eq!(matches(text.as_bytes(), text.as_bytes()), Ok(true));
        let pattern = "a*".repeat(2000) + "b";
        assert_eq!(
            matches(pattern.as_bytes(), "a".repeat(4000).as_bytes()),
            Ok(false)
        );
    }

    fn bytes(alphabet: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(alphabet), 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn the_fast_matcher_agrees_with_the_naive_one(
            pattern in bytes(b"ab*?[]^-\\"),
            text in prop::collection::vec(prop::sample::select(&b"ab]\\-"[..]), 1..12),
        ) {
            let expected = naive(&pattern, &text);
            prop_assert_eq!(matches(&pattern, &text), Ok(expected));
            let mut matching = Matching::default();
            let in_steps = std::iter::from_fn(|| Some(matching.go_on(&pattern, &text, 1)));
            let mut answers = in_steps.filter_map(Result::transpose);
            prop_assert_eq!(answers.next(), Some(Ok(expected)));
        }

        #[test]
        fn what_matches_begins_with_the_literal_prefix(
            pattern in bytes(b"aab*?[]\\"),
            text in bytes(b"ab]\\"),
        ) {
            if is_match(&pattern, &text) {
                prop_assert!(text.starts_with(&literal_prefix(&pattern)));
            }
        }
    }
}
