//! The parser against hand-made input, and against itself with the input cut anywhere.

use super::*;
use proptest::prelude::*;

/// The meaning of a whole stream: its requests, and the error that ends it, if any.
type Meaning = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Feeds `chunks` as a connection does.
fn read<'a>(limits: &Limits, chunks: impl IntoIterator<Item = &'a [u8]>) -> Meaning {
    let mut parser = RequestParser::new(limits);
    let mut buffer = Vec::new();
    let mut requests = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            match parser.parse(&buffer) {
                Ok(Some(length)) => {
                    let arguments = parser.arguments(&buffer);
                    if arguments.len() > 0 {
                        requests.push(arguments.skip(0).map(<[u8]>::to_vec).collect());
                    }
                    assert!(length > 0, "a request takes at least a byte");
                    buffer.drain(..length);
                    parser.next();
                }
                Ok(None) => break,
                Err(error) => return (requests, Some(error)),
            }
        }
        assert!(
            parser.spans.capacity() <= KEPT_SPANS.max(2 * buffer.len()),
            "spans are paid for by bytes that arrived"
        );
    }
    (requests, None)
}

fn read_whole(stream: &[u8]) -> Meaning {
    read(&Limits::default(), [stream])
}

fn requests(stream: &str) -> Vec<Vec<Vec<u8>>> {
    let (requests, error) = read_whole(stream.as_bytes());
    assert_eq!(error, None, "{stream:?}");
    requests
}

fn error(stream: &[u8]) -> Option<ProtocolError> {
    read_whole(stream).1
}

#[test]
fn multibulk_and_inline_requests_follow_each_other() {
    let stream = "*2\r\n$3\r\nGET\r\n$0\r\n\r\nPING\r\n*-1\r\n*0\r\n\r\n\nECHO 'a b'\n";
    let expected: [&[&[u8]]; 3] = [&[b"GET", b""], &[b"PING"], &[b"ECHO", b"a b"]];
    assert_eq!(requests(stream), expected);
}

#[test]
fn the_bytes_that_end_an_argument_are_not_looked_at() {
    assert_eq!(requests("*1\rx$4\ryPINGzz"), [[b"PING"]]);
}

#[test]
fn malformed_requests_have_the_errors_of_redis() {
    use ProtocolError as E;
    for stream in ["*x\r\n", "*01\r\n", "* 1\r\n", "*\r\n", "*2147483648\r\n"] {
        assert_eq!(
            error(stream.as_bytes()),
            Some(E::InvalidMultibulkLength),
            "{stream:?}"
        );
    }
    for stream in [
        "*1\r\n$-1\r\n",
        "*1\r\n$536870913\r\n",
        "*1\r\n$x\r\n",
        "*1\r\n$\r\n",
    ] {
        assert_eq!(
            error(stream.as_bytes()),
            Some(E::InvalidBulkLength),
            "{stream:?}"
        );
    }
    assert_eq!(error(b"*1\r\n:1\r\n"), Some(E::ExpectedDollar(b':')));
    assert_eq!(error(b"*1\r\n\r\n\r\n"), Some(E::ExpectedDollar(b'\r')));
    assert_eq!(error(b"a 'b\n"), Some(E::UnbalancedQuotes));
    let long = vec![b'1'; MAX_LINE + 1];
    assert_eq!(error(&long), Some(E::InlineTooLong));
    assert_eq!(error(&[b"*", &long[..]].concat()), Some(E::CountTooLong));
    assert_eq!(
        error(&[b"*1\r\n$", &long[..]].concat()),
        Some(E::LengthTooLong)
    );
    assert_eq!(
        error(&[b"ping\0\r\n", &long[..]].concat()),
        Some(E::InlineTooLong)
    );
}

#[test]
fn a_declared_length_takes_no_memory() {
    let mut parser = RequestParser::new(&Limits::default());
    assert_eq!(parser.parse(b"*1048576\r\n$536870912\r\nabc"), Ok(None));
    assert_eq!(parser.spans.capacity(), 0);
}

/// A valid request, multibulk or inline.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let argument = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..20),
        1 => prop::collection::vec(any::<u8>(), 0..2000),
    ];
    let multibulk = prop::collection::vec(argument, 0..6).prop_map(|arguments| {
        let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            bytes.extend(format!("${}\r\n", argument.len()).bytes());
            bytes.extend(argument);
            bytes.extend(b"\r\n");
        }
        bytes
    });
    prop_oneof![4 => multibulk, 1 => "[a-c \"'\\\\]{0,12}\r?\n".prop_map(String::into_bytes)]
}

/// A stream that is valid, valid except for a few changed bytes, or noise in the protocol's
/// alphabet.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let valid = || prop::collection::vec(request(), 0..8).prop_map(|all| all.concat());
    let mutated = (
        valid(),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    )
        .prop_map(|(mut bytes, changes)| {
            for (index, byte) in changes {
                if !bytes.is_empty() {
                    let index = index.index(bytes.len());
                    bytes[index] = byte;
                }
            }
            bytes
        });
    let noise = prop::collection::vec(
        prop::sample::select(&b"*$\r\n\0-+0123456789aP\"' \\"[..]),
        0..200,
    );
    prop_oneof![2 => valid(), 4 => mutated, 2 => noise, 1 => prop::collection::vec(any::<u8>(), 0..300)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Would fail if any state were lost or wrong between two reads.
    #[test]
    fn a_stream_means_the_same_however_it_is_cut(
        stream in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        byte_by_byte: bool,
    ) {
        let whole = read_whole(&stream);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = if byte_by_byte {
            read(&Limits::default(), stream.chunks(1))
        } else {
            read(&Limits::default(), cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]))
        };
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn a_valid_request_is_read_back(
        arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8),
    ) {
        let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in &arguments {
            bytes.extend(format!("${}\r\n", argument.len()).bytes());
            bytes.extend(argument);
            bytes.extend(b"\r\n");
        }
        prop_assert_eq!(read_whole(&bytes), (vec![arguments], None));
    }
}
