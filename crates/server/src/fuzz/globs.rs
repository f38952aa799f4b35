//! Patterns of keys.

use crate::glob::{Matching, TooManySteps, literal_prefix, matches};

/// A product of lengths up to which no match takes too many steps.
const ALWAYS: usize = 1 << 20;

/// A pattern and a text: the first byte is the length of the pattern, in steps of 4.
///
/// A fast match says the same as a slow one which tries everything, also if it stops after every
/// step. It takes at most one step for each byte of the pattern at each byte of the text. A text
/// that matches begins as the pattern does.
///
/// # Panics
///
/// One of these does not hold.
pub fn globs(data: &[u8]) {
    let Some((length, data)) = data.split_first() else {
        return;
    };
    let (pattern, text) = data.split_at((4 * usize::from(*length)).min(data.len()));
    let shown = || format!("{} of {}", pattern.escape_ascii(), text.escape_ascii());
    let expected = slow(&elements(pattern), pattern, text);
    let whole = matches(pattern, text);
    match whole {
        Ok(answer) => assert_eq!(answer, expected, "{}", shown()),
        Err(TooManySteps) => assert!(pattern.len() * text.len() > ALWAYS, "{}", shown()),
    }
    let mut matching = Matching::default();
    // Each step is of one byte of the pattern or more; a star is one step each time it is met.
    let most = 2 + (pattern.len() + 1) * (text.len() + 1);
    let in_steps = (0..most).find_map(|_| matching.go_on(pattern, text, 1).transpose());
    assert_eq!(in_steps, Some(whole), "{}", shown());
    if whole == Ok(true) {
        assert!(text.starts_with(&literal_prefix(pattern)), "{}", shown());
    }
}

/// One element of a pattern.
enum Element {
    Star,
    /// It matches these bytes.
    One(Box<[bool; 256]>),
}

/// Reads a pattern, as Redis's documentation has it, with what Redis does beyond that: a range may
/// be upside down and is of signed bytes, an unclosed class ends with the pattern, and a backslash
/// at the end is itself.
fn elements(pattern: &[u8]) -> Vec<Element> {
    let mut elements = Vec::new();
    let mut at = 0;
    while at < pattern.len() {
        let byte = pattern[at];
        at += 1;
        let mut one = Box::new([false; 256]);
        match byte {
            b'*' => {
                elements.push(Element::Star);
                continue;
            }
            b'?' => one.fill(true),
            b'[' => at = class(pattern, at, &mut one),
            b'\\' if at < pattern.len() => {
                one[usize::from(pattern[at])] = true;
                at += 1;
            }
            literal => one[usize::from(literal)] = true,
        }
        elements.push(Element::One(one));
    }
    elements
}

/// Reads a class whose bracket is before `at`, and returns where it ends.
fn class(pattern: &[u8], mut at: usize, one: &mut [bool; 256]) -> usize {
    let is_negated = pattern.get(at) == Some(&b'^');
    at += usize::from(is_negated);
    while at < pattern.len() && pattern[at] != b']' {
        if pattern[at] == b'\\' && at + 1 < pattern.len() {
            one[usize::from(pattern[at + 1])] = true;
            at += 2;
        } else if pattern.get(at + 1) == Some(&b'-') && at + 2 < pattern.len() {
            let (from, to) = (pattern[at] as i8, pattern[at + 2] as i8);
            for byte in from.min(to)..=from.max(to) {
                one[usize::from(byte as u8)] = true;
            }
            at += 3;
        } else {
            one[usize::from(pattern[at])] = true;
            at += 1;
        }
    }
    if is_negated {
        one.iter_mut().for_each(|is_in| *is_in = !*is_in);
    }
    // Behind the bracket that closes it.
    (at + 1).min(pattern.len())
}

/// Whether a text matches, by a table of which of its beginnings each beginning of the pattern
/// matches.
fn slow(elements: &[Element], pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        // Redis compares nothing with an empty text.
        return pattern.is_empty() || pattern == b"*";
    }
    let mut matched = vec![false; text.len() + 1];
    matched[0] = true;
    for element in elements {
        let mut next = vec![false; text.len() + 1];
        match element {
            Element::Star => {
                let mut is_reached = false;
                for (next, before) in next.iter_mut().zip(&matched) {
                    is_reached |= before;
                    *next = is_reached;
                }
            }
            Element::One(one) => {
                for at in 0..text.len() {
                    next[at + 1] = matched[at] && one[usize::from(text[at])];
                }
            }
        }
        matched = next;
    }
    matched[text.len()]
}
