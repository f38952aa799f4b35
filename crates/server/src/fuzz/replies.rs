//! Replies, however they are sent.

use super::cut::Cuts;
use super::token::{Token, tokens};
use crate::resp::{Protocol, Reply, too_long};

/// The limit of a reply, which short inputs reach.
const LIMIT: usize = 200;

/// What the encoder may count for a piece beyond its bytes.
const SLACK: usize = 40;

/// Replies made of any bytes: for each command a number of pieces, for each piece a kind and a
/// length.
///
/// A client reads what was written, in both versions of the protocol and however it is sent. A
/// reply beyond the limit becomes one error.
///
/// # Panics
///
/// One of these does not hold.
pub fn replies(data: &[u8]) {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut cuts = Cuts::of(data);
        let mut reply = Reply::new(LIMIT);
        reply.protocol = protocol;
        let mut left = data.iter().copied();
        let mut received = Vec::new();
        let mut expected = Vec::new();
        while let Some(pieces) = left.next() {
            reply.begin();
            let from = received.len() + reply.len();
            let mut wanted = Vec::new();
            for _ in 0..pieces % 6 {
                let (kind, size) = (left.next().unwrap_or(0), left.next().unwrap_or(0));
                write(&mut reply, kind, usize::from(size), &mut wanted);
            }
            reply.finish();
            let length = received.len() + reply.len() - from;
            let written: usize = wanted.iter().map(encoded_length).sum();
            if length == written {
                assert!(written <= LIMIT, "{written} bytes");
                expected.extend(wanted);
            } else {
                assert!(
                    written + SLACK * wanted.len() > LIMIT,
                    "{written} bytes fit"
                );
                expected.push(Token::Line(b'-', too_long(LIMIT).into_bytes()));
            }
            if cuts.next() == 1 {
                send(&mut reply, cuts.next(), &mut received);
            }
        }
        while reply.len() > 0 {
            send(&mut reply, cuts.next(), &mut received);
        }
        let read = tokens(&received).map(|(tokens, _)| tokens);
        assert_eq!(read, Some(expected), "{}", received.escape_ascii());
    }
}

/// Writes a piece, and notes what a client should read.
fn write(reply: &mut Reply, kind: u8, size: usize, wanted: &mut Vec<Token>) {
    let is_old = reply.protocol == Protocol::Resp2;
    let bytes: Vec<u8> = (0..size).map(|at| (at * 7) as u8 ^ kind).collect();
    let text: String = bytes
        .iter()
        .map(|byte| char::from(byte % 26 + b'a'))
        .collect();
    let line = |kind: u8, text: &str| Token::Line(kind, text.as_bytes().to_vec());
    let count =
        |old: u8, new: u8, count: usize| line(if is_old { old } else { new }, &count.to_string());
    wanted.push(match kind % 11 {
        0 => {
            reply.ok();
            line(b'+', "OK")
        }
        1 => {
            reply.simple(&text);
            line(b'+', &text)
        }
        2 => {
            reply.error(&bytes);
            let blank = |byte: &u8| {
                if matches!(byte, b'\r' | b'\n') {
                    b' '
                } else {
                    *byte
                }
            };
            Token::Line(b'-', bytes.iter().map(blank).collect())
        }
        3 => {
            let number = (i64::from(kind) - 128) << (size % 64);
            reply.integer(number);
            line(b':', &number.to_string())
        }
        4 => {
            reply.bulk(&bytes);
            Token::Text(b'$', bytes)
        }
        5 => {
            reply.text(&text);
            match reply.protocol {
                Protocol::Resp2 => Token::Text(b'$', text.into_bytes()),
                Protocol::Resp3 => Token::Text(b'=', format!("txt:{text}").into_bytes()),
            }
        }
        6 => {
            reply.null();
            if is_old {
                line(b'$', "-1")
            } else {
                line(b'_', "")
            }
        }
        7 => {
            reply.null_array();
            if is_old {
                line(b'*', "-1")
            } else {
                line(b'_', "")
            }
        }
        8 => {
            reply.array(size);
            count(b'*', b'*', size)
        }
        9 => {
            reply.map(size);
            if is_old {
                count(b'*', b'*', 2 * size)
            } else {
                count(b'%', b'%', size)
            }
        }
        _ => {
            reply.set(size);
            count(b'*', b'~', size)
        }
    });
}

fn send(reply: &mut Reply, most: usize, received: &mut Vec<u8>) {
    let unsent = reply.unsent();
    let sent = most.min(unsent.len());
    received.extend_from_slice(&unsent[..sent]);
    reply.sent(sent);
}

fn encoded_length(token: &Token) -> usize {
    match token {
        Token::Line(_, line) => line.len() + 3,
        Token::Text(_, text) => text.len() + text.len().to_string().len() + 5,
    }
}
