//! Wrong bytes, and the old tags.

use super::super::{Limits, Term};
use super::{DecodeProblem, tag};
use flate2::{Compress, Compression, FlushCompress};

fn decode(body: &[u8]) -> Result<Term, super::DecodeError> {
    let bytes: Vec<u8> = [tag::VERSION]
        .into_iter()
        .chain(body.iter().copied())
        .collect();
    Term::from_etf(&bytes, &Limits::default())
}

fn problem(body: &[u8]) -> (usize, DecodeProblem) {
    let error = decode(body).unwrap_err();
    (error.offset, error.problem)
}

#[test]
fn each_error_tells_its_place() {
    use DecodeProblem::{
        BitCount, DuplicateKey, Float, NotUtf8, ReferenceWords, Trailing, Truncated, UnknownTag,
        WrongTag,
    };
    assert_eq!(problem(&[]), (1, Truncated { missing: 1 }));
    assert_eq!(problem(&[104, 2, 106]), (4, Truncated { missing: 1 }));
    assert_eq!(problem(&[104, 2, 106, 7]), (4, UnknownTag(7)));
    assert_eq!(
        problem(&[109, 255, 255, 255, 255]),
        (
            6,
            Truncated {
                missing: 0xffff_ffff
            }
        )
    );
    assert_eq!(
        problem(&[108, 255, 255, 255, 255]),
        (6, Truncated { missing: 1 << 32 })
    );
    assert_eq!(problem(&[106, 106]), (2, Trailing(1)));
    assert_eq!(problem(&[119, 1, 255]), (1, NotUtf8));
    assert_eq!(problem(&[70, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0]), (1, Float));
    assert_eq!(
        problem(&[77, 0, 0, 0, 1, 9, 0]),
        (1, BitCount { bytes: 1, bits: 9 })
    );
    let twice = [116, 0, 0, 0, 2, 97, 1, 106, 97, 1, 106];
    assert_eq!(problem(&twice), (1, DuplicateKey));
    assert_eq!(problem(&[90, 0, 6]), (1, ReferenceWords(6)));
    let wanted = "an atom";
    assert_eq!(problem(&[113, 106]), (2, WrongTag { found: 106, wanted }));
    let version = Term::from_etf(&[130], &Limits::default()).unwrap_err();
    assert_eq!(version.problem, DecodeProblem::Version(130));
}

#[test]
fn limits_are_kept() {
    let deep = |levels: usize| [[104, 1].repeat(levels), vec![106]].concat();
    assert!(decode(&deep(Limits::NESTING)).is_ok());
    let limit = DecodeProblem::TooDeep(Limits::NESTING);
    assert_eq!(
        problem(&deep(Limits::NESTING + 1)),
        (1 + 2 * Limits::NESTING, limit)
    );
    let mut long = vec![111, 0, 1, 0, 0, 0];
    long.extend([1; 0x10000]);
    let (_, too_long) = problem(&long);
    assert!(matches!(
        too_long,
        DecodeProblem::IntegerTooLong { bits: 0x80000, .. }
    ));
    let limits = Limits::default().new_atoms(false);
    assert!(Term::from_etf(&[131, 119, 4, b't', b'r', b'u', b'e'], &limits).is_ok());
    let unknown = Term::from_etf(&[131, 119, 3, b'q', b'?', b'q'], &limits).unwrap_err();
    assert_eq!(unknown.problem, DecodeProblem::NewAtom("q?q".to_owned()));
}

fn compressed(declared: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![80];
    out.extend(declared.to_be_bytes());
    out.reserve(body.len() + 100);
    let mut stream = Compress::new(Compression::best(), true);
    stream
        .compress_vec(body, &mut out, FlushCompress::Finish)
        .unwrap();
    out
}

#[test]
fn a_compressed_term_is_what_it_says_and_no_more() {
    assert_eq!(decode(&compressed(2, &[97, 7])), Ok(Term::from(7)));
    let error = decode(&compressed(3, &[97, 7])).unwrap_err();
    assert_eq!(error.problem, DecodeProblem::ExpandedLength { declared: 3 });
    // A bomb that declares a small size.
    let zeros = vec![0; 100 << 20];
    let bomb = compressed(1000, &zeros);
    assert!(bomb.len() < 200_000);
    let error = decode(&bomb).unwrap_err();
    assert_eq!(
        error.problem,
        DecodeProblem::ExpandedLength { declared: 1000 }
    );
    // One that declares its real size.
    let error = decode(&compressed(100 << 20, &zeros)).unwrap_err();
    assert!(matches!(error.problem, DecodeProblem::ExpandsTooFar { .. }));
    // Errors inside have offsets in the expanded bytes.
    let error = decode(&compressed(3, &[104, 1, 7])).unwrap_err();
    assert!(error.in_expanded && error.offset == 2, "{error}");
    let mut cut = compressed(2, &[97, 7]);
    cut.truncate(cut.len() - 5);
    assert!(matches!(
        decode(&cut).unwrap_err().problem,
        DecodeProblem::Truncated { .. }
    ));
    let error = decode(&[80, 0, 0, 0, 2, 1, 2, 3]).unwrap_err();
    assert_eq!(error.problem, DecodeProblem::Damaged);
}

#[test]
fn what_is_compressed_is_shorter_or_plain() {
    let long = Term::list((0..1000).map(|number| Term::from(number % 7 + 1000)));
    let bytes = long.to_etf_compressed(9).unwrap();
    assert!(bytes.len() < long.to_etf().unwrap().len() / 10);
    assert_eq!(Term::from_etf(&bytes, &Limits::default()), Ok(long));
    let short = Term::from(7);
    assert_eq!(short.to_etf_compressed(9), short.to_etf());
}

#[test]
fn old_tags_are_read() {
    let mut float = vec![99];
    float.extend(b"1.50000000000000000000e+00\0\0\0\0\0");
    let old: [(&[u8], &str); 7] = [
        (&[100, 0, 1, 0xe9], "'é'"),
        (&[115, 1, b'a'], "a"),
        (&float, "1.5"),
        (
            &[103, 115, 1, b'n', 0, 0, 0, 5, 0, 0, 0, 1, 3],
            "#Pid<n.5.1.3>",
        ),
        (&[102, 115, 1, b'n', 0, 0, 0, 5, 3], "#Port<n.5.3>"),
        (&[101, 115, 1, b'n', 0, 0, 0, 5, 3], "#Ref<n.3.5>"),
        (
            &[114, 0, 2, 115, 1, b'n', 3, 0, 0, 0, 5, 0, 0, 0, 6],
            "#Ref<n.3.5.6>",
        ),
    ];
    for (bytes, text) in old {
        assert_eq!(decode(bytes), Ok(text.parse().unwrap()), "{text}");
    }
}
