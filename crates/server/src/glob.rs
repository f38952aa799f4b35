//! Glob patterns as `KEYS` and `SCAN` spell them.
//!
//! `*` matches any bytes, `?` one byte, `[a-c]` one byte of a class, `[^a-c]` one byte outside it,
//! and a backslash makes the next byte literal. Malformed patterns mean what they mean in Redis;
//! the tests name the cases.

/// Whether `text` matches `pattern`.
///
/// At most `pattern.len() * text.len()` steps: when a byte does not match, only the last star takes
/// one more byte. Earlier stars need not, because the last star can skip whatever they could.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        // Redis compares nothing with an empty text; only `*` itself matches it.
        return pattern.is_empty() || pattern == b"*";
    }
    let (mut pattern, mut text) = (pattern, text);
    // The pattern behind the last star, and the text that the star has not skipped.
    let mut last_star: Option<(&[u8], &[u8])> = None;
    loop {
        let Some((byte, text_rest)) = text.split_first() else {
            return pattern.iter().all(|byte| *byte == b'*');
        };
        if let [b'*', rest @ ..] = pattern {
            last_star = Some((rest, text));
            pattern = rest;
            if rest.is_empty() {
                return true;
            }
        } else if let Some(rest) = match_one(pattern, *byte) {
            (pattern, text) = (rest, text_rest);
        } else {
            let Some((behind, [_, skipped @ ..])) = last_star else {
                return false;
            };
            if skipped.is_empty() {
                return false;
            }
            last_star = Some((behind, skipped));
            (pattern, text) = (behind, skipped);
        }
    }
}

/// The bytes with which every text that matches `pattern` begins.
pub(crate) fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        rest = match rest {
            [] | [b'*' | b'?' | b'[', ..] => return prefix,
            [b'\\', byte, tail @ ..] | [byte, tail @ ..] => {
                prefix.push(*byte);
                tail
            }
        }
    }
}

/// Matches `byte` against the first element of `pattern`, which is not a star. Returns the rest.
fn match_one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => match_class(rest, byte),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte).then_some(rest),
    }
}

/// Like [`match_one`], behind the opening bracket. An unclosed class ends with the pattern.
fn match_class(class: &[u8], byte: u8) -> Option<&[u8]> {
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
    (found != negated).then_some(rest)
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
            (_, [byte, tail @ ..]) => {
                match_one(pattern, *byte).is_some_and(|rest| naive(rest, tail))
            }
        }
    }

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(
                matches(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
        for text in no {
            assert!(
                !matches(pattern.as_bytes(), text.as_bytes()),
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
        assert!(matches(b"[a-\xff]", b"\x00"), "-1 to 97");
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(2000) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(4000).as_bytes()));
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
            prop_assert_eq!(matches(&pattern, &text), naive(&pattern, &text));
        }

        #[test]
        fn what_matches_begins_with_the_literal_prefix(
            pattern in bytes(b"aab*?[]\\"),
            text in bytes(b"ab]\\"),
        ) {
            if matches(&pattern, &text) {
                prop_assert!(text.starts_with(&literal_prefix(&pattern)));
            }
        }
    }
}
