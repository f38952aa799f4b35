//! Requests, however they are cut.

use super::cut::Cuts;
use crate::limits::{Bytes, Limits};
use crate::resp::{ProtocolError, RequestParser};

/// The limit of an argument, which short inputs reach.
const MAX_ARGUMENT: usize = 64;

/// The limit of the number of arguments, which short inputs reach.
const MAX_ARGUMENTS: usize = 8;

/// What the parser may keep from earlier requests, in bytes.
const KEPT: usize = 8 << 10;

/// The most bytes that the parser holds for a byte of a request: a vector that has just doubled
/// holds two positions of 16 bytes for a word of an inline request, which has two bytes.
const HELD_PER_BYTE: usize = 24;

type Request = Vec<Vec<u8>>;

/// A stream of requests, as it was understood.
#[derive(Debug, PartialEq)]
struct Understood {
    requests: Vec<Request>,
    error: Option<ProtocolError>,
    /// The bytes behind the last complete request.
    rest: usize,
}

/// A stream of requests.
///
/// It means the same in one piece, byte by byte, and cut anywhere. Arguments keep to the limits.
/// The parser holds memory in proportion to what has arrived. The requests, written once more in
/// the usual form, are read as the same requests.
///
/// # Panics
///
/// One of these does not hold.
pub fn requests(data: &[u8]) {
    let whole = understand(data, || usize::MAX);
    let mut cuts = Cuts::of(data);
    assert_eq!(understand(data, || cuts.next()), whole);
    assert_eq!(understand(data, || 1), whole);
    if let Some(error) = &whole.error {
        let text = error.to_bytes();
        assert!(text.starts_with(b"ERR Protocol error: ") && text.len() < 200);
    }
    let mut usual = Vec::new();
    let is_usual = |request: &&Request| {
        let fits = |argument: &Vec<u8>| argument.len() <= MAX_ARGUMENT;
        (1..=MAX_ARGUMENTS).contains(&request.len()) && request.iter().all(fits)
    };
    let requests: Vec<&Request> = whole.requests.iter().filter(is_usual).collect();
    for request in &requests {
        usual.extend(format!("*{}\r\n", request.len()).bytes());
        for argument in *request {
            usual.extend(format!("${}\r\n", argument.len()).bytes());
            usual.extend_from_slice(argument);
            usual.extend(b"\r\n");
        }
    }
    let again = understand(&usual, || usize::MAX);
    assert_eq!((again.error, again.rest), (None, 0));
    assert!(again.requests.iter().eq(requests));
}

/// Reads a stream of which `piece` more bytes arrive at a time.
fn understand(stream: &[u8], mut piece: impl FnMut() -> usize) -> Understood {
    let limits = Limits {
        max_argument: Bytes(MAX_ARGUMENT),
        max_arguments: MAX_ARGUMENTS,
        ..Limits::default()
    };
    let mut parser = RequestParser::new(&limits);
    let mut requests = Vec::new();
    // As in a connection, the buffer is another one after each piece.
    let mut buffer: Vec<u8> = Vec::new();
    let mut left = stream;
    loop {
        let parsed = parser.parse(&buffer);
        let most = KEPT + HELD_PER_BYTE * buffer.len();
        assert!(parser.held() <= most, "{} bytes", parser.held());
        match parsed {
            Ok(Some(length)) => {
                assert!((1..=buffer.len()).contains(&length));
                let arguments = parser.arguments(&buffer);
                let request: Request = arguments.skip(0).map(<[u8]>::to_vec).collect();
                assert_eq!(request.len(), arguments.len());
                if buffer.starts_with(b"*") {
                    assert!(request.len() <= MAX_ARGUMENTS);
                    assert!(
                        request
                            .iter()
                            .all(|argument| argument.len() <= MAX_ARGUMENT)
                    );
                }
                requests.push(request);
                parser.next();
                buffer.drain(..length);
            }
            Ok(None) if left.is_empty() => {
                return Understood {
                    requests,
                    error: None,
                    rest: buffer.len(),
                };
            }
            Ok(None) => {
                let (arrived, rest) = left.split_at(piece().min(left.len()));
                buffer = [&buffer, arrived].concat();
                left = rest;
            }
            Err(error) => {
                return Understood {
                    requests,
                    error: Some(error),
                    // How much has arrived besides depends on the pieces.
                    rest: 0,
                };
            }
        }
    }
}
