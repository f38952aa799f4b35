//! Events as they are sent: `watchrange start end kind sequence …`.
//!
//! | kind | then |
//! |---|---|
//! | `row` | key, value, when it expires or -1 |
//! | `snapshot` | |
//! | `set` | key, value, when it expires or -1 |
//! | `append` | key, offset, bytes |
//! | `expire` | key, when it expires or -1 |
//! | `del` | key |
//! | `delrange` | low bound, high bound |
//! | `end` | an error |
//!
//! If it was asked for, a change ends with what the key was before: an array of the value and when
//! it expires or -1, or an empty one. RESP2 and RESP3 have different nulls, but the same arrays.

use crate::outbox::Messages;
use crate::resp::Digits;
use tremula_store::{Event, Expiry, Happened, Previous};

/// The word that every message begins with.
const WORD: &[u8] = b"watchrange";

/// Elements that every message begins with: the word, two bounds, the kind and the sequence.
const ALWAYS: i64 = 5;

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    number(b'$', i64::try_from(bytes.len()).unwrap_or(i64::MAX), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn number(sign: u8, number: i64, out: &mut Vec<u8>) {
    out.push(sign);
    out.extend_from_slice(Digits::new(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn unsigned(value: u64, out: &mut Vec<u8>) {
    number(b':', i64::try_from(value).unwrap_or(i64::MAX), out);
}

fn expires(expiry: Option<Expiry>, out: &mut Vec<u8>) {
    match expiry {
        Some(expiry) => unsigned(expiry.millis(), out),
        None => number(b':', -1, out),
    }
}

/// A bound as commands take it, of a range that begins with a key or ends before one.
fn bound(sign: u8, key: &[u8], out: &mut Vec<u8>) {
    number(b'$', i64::try_from(key.len() + 1).unwrap_or(i64::MAX), out);
    out.push(sign);
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// What all messages of a watch have in common, behind their length.
pub(super) fn head(start: &[u8], end: &[u8]) -> Box<[u8]> {
    let mut head = Vec::new();
    for part in [WORD, start, end] {
        bulk(part, &mut head);
    }
    head.into()
}

fn begin(head: &[u8], more: i64, kind: &[u8], sequence: u64, out: &mut Messages) {
    let out = out.begin();
    number(b'>', ALWAYS + more, out);
    out.extend_from_slice(head);
    bulk(kind, out);
    unsigned(sequence, out);
}

/// Appends an event as a message, with what was before a change or without.
pub(super) fn write(head: &[u8], event: &Event<'_>, has_previous: bool, out: &mut Messages) {
    let (more, kind): (i64, &[u8]) = match &event.what {
        Happened::Row { .. } => (3, b"row"),
        Happened::Complete => (0, b"snapshot"),
        Happened::Set { .. } => (3, b"set"),
        Happened::Append { .. } => (3, b"append"),
        Happened::Expire { .. } => (2, b"expire"),
        Happened::Remove { .. } => (1, b"del"),
        Happened::RemoveRange { .. } => (2, b"delrange"),
        // The store knows no other ones.
        _ => return,
    };
    let is_change = !matches!(event.what, Happened::Row { .. } | Happened::Complete);
    let shows_previous = has_previous && is_change;
    let more = more + i64::from(shows_previous);
    begin(head, more, kind, event.sequence.get(), out);
    let out = out.bytes();
    match &event.what {
        Happened::Row { key, value, expiry } | Happened::Set { key, value, expiry } => {
            bulk(key, out);
            bulk(value, out);
            expires(*expiry, out);
        }
        Happened::Append { key, offset, bytes } => {
            bulk(key, out);
            unsigned(*offset, out);
            bulk(bytes, out);
        }
        Happened::Expire { key, expiry } => {
            bulk(key, out);
            expires(*expiry, out);
        }
        Happened::Remove { key } => bulk(key, out),
        Happened::RemoveRange { low, high } => {
            match &**low {
                b"" => bulk(b"-", out),
                low => bound(b'[', low, out),
            }
            match high {
                Some(high) => bound(b'(', high, out),
                None => bulk(b"+", out),
            }
        }
        _ => (),
    }
    if shows_previous {
        previous(&event.previous, out);
    }
}

fn previous(before: &Previous<'_>, out: &mut Vec<u8>) {
    match before {
        Previous::Was { value, expiry } => {
            number(b'*', 2, out);
            bulk(value, out);
            expires(*expiry, out);
        }
        // A log that has it has it of all changes from some sequence on, and those before are not
        // shown.
        Previous::Absent | Previous::Unknown => number(b'*', 0, out),
    }
}

/// Appends that a watch has ended before this sequence, and why.
pub(super) fn write_end(head: &[u8], next: u64, why: &str, out: &mut Messages) {
    begin(head, 1, b"end", next, out);
    bulk(why.as_bytes(), out.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_store::Sequence;

    fn shown(event: &Event<'_>, has_previous: bool) -> String {
        let mut out = Messages::default();
        write(&head(b"[a", b"+"), event, has_previous, &mut out);
        String::from_utf8_lossy(out.bytes()).replace("\r\n", " ")
    }

    fn text(what: Happened<'_>) -> String {
        shown(&Event::new(Sequence::new(7), what), false)
    }

    #[test]
    fn a_change_ends_with_what_was_before_if_that_is_wanted() {
        let expiry = Expiry::from_millis(99);
        let (key, value) = ((&b"k"[..]).into(), (&b"old"[..]).into());
        let gone = Event::new(Sequence::new(7), Happened::Remove { key });
        let gone = gone.after(Previous::Was { value, expiry });
        let begin = "$10 watchrange $2 [a $1 + $3 del :7 $1 k";
        assert_eq!(shown(&gone, true), format!(">7 {begin} *2 $3 old :99 "));
        assert_eq!(shown(&gone, false), format!(">6 {begin} "));
        let new = gone.after(Previous::Absent);
        assert_eq!(shown(&new, true), format!(">7 {begin} *0 "));
        // What is no change has nothing before.
        let complete = Event::new(Sequence::new(7), Happened::Complete);
        assert_eq!(shown(&complete, true), shown(&complete, false));
    }

    #[test]
    fn an_event_is_one_message() {
        let key = || (&b"k"[..]).into();
        let begin = "$10 watchrange $2 [a $1 +";
        let value = (&b"vv"[..]).into();
        let expiry = Expiry::from_millis(99);
        let set = Happened::Set {
            key: key(),
            value,
            expiry,
        };
        assert_eq!(text(set), format!(">8 {begin} $3 set :7 $1 k $2 vv :99 "));
        let never = Happened::Expire {
            key: key(),
            expiry: None,
        };
        assert_eq!(text(never), format!(">7 {begin} $6 expire :7 $1 k :-1 "));
        assert_eq!(
            text(Happened::Complete),
            format!(">5 {begin} $8 snapshot :7 ")
        );
        let low = (&b""[..]).into();
        let some = Happened::RemoveRange {
            low,
            high: Some(key()),
        };
        assert_eq!(text(some), format!(">7 {begin} $8 delrange :7 $1 - $2 (k "));
        let all = Happened::RemoveRange {
            low: key(),
            high: None,
        };
        assert_eq!(text(all), format!(">7 {begin} $8 delrange :7 $2 [k $1 + "));
        let mut out = Messages::default();
        write_end(&head(b"-", b"+"), 3, "why", &mut out);
        let end = String::from_utf8_lossy(out.bytes()).replace("\r\n", " ");
        assert_eq!(end, ">6 $10 watchrange $1 - $1 + $3 end :3 $3 why ");
    }
}
