use super::*;

fn form(text: &str) -> Vec<u8> {
    text.parse::<Term>().expect(text).to_byte_form()
}

fn glimpse(text: &str, most: usize) -> String {
    let whole: Term = text.parse().expect(text);
    let seen = Term::glimpse_byte_form(&whole.to_byte_form_within(most));
    seen.expect("the beginning of a form").to_string()
}

#[test]
fn forms_are_short_and_in_the_order_of_the_kinds() {
    let ascending = [
        "-1.0e300",
        "-36893488147419103232",
        "-1.5",
        "-1",
        "-5.0e-324",
        "0",
        "5.0e-324",
        "2.0e-308",
        "0.5",
        "1",
        "1.5",
        "2",
        "127",
        "128",
        "9007199254740993",
        "18446744073709551616",
        "1.0e300",
        "''",
        "a",
        "'a\\0'",
        "aa",
        "#Ref<a.1.2>",
        "#Port<a.1.2>",
        "#Pid<a.1.0.0>",
        "{}",
        "{-1}",
        "{1,a}",
        "{1,<<>>}",
        "#{}",
        "#{1 => b}",
        "#{1.0 => a}",
        "#{a => 1}",
        "[]",
        "[1|2]",
        "[1]",
        "[1,0]",
        "[1|<<>>]",
        "[2]",
        "<<>>",
        "<<0:1>>",
        "<<0>>",
        "<<0,0>>",
        "<<1>>",
    ];
    for pair in ascending.windows(2) {
        assert!(form(pair[0]) < form(pair[1]), "{pair:?}");
    }
    assert_eq!((form("17").len(), form("{user,17}").len()), (3, 12));
}

#[test]
fn a_number_has_one_form_except_in_the_keys_of_maps() {
    for (one, two) in [
        ("0", "-0.0"),
        ("{7,a}", "{7.0,a}"),
        (
            "1267650600228229401496703205376",
            "1267650600228229401496703205376.0",
        ),
    ] {
        assert_eq!(form(one), form(two));
    }
    assert!(form("#{9 => a}") < form("#{1.0 => a}"));
    assert_eq!(form("#{a => 1}"), form("#{a => 1.0}"));
}

#[test]
fn a_glimpse_shows_what_is_there() {
    let key = "{user,17,<<\"ada lovelace\">>,[1,2],#{a => b,c => d}}";
    assert_eq!(glimpse(key, 100), key);
    for (most, seen) in [
        (0, "'...'"),
        (2, "{'...'}"),
        (4, "{'...'}"),
        (9, "{user,'...'}"),
        (12, "{user,17,'...'}"),
        (16, "{user,17,<<\"ada...\">>}"),
        (29, "{user,17,<<\"ada lovelace\">>,'...'}"),
        (32, "{user,17,<<\"ada lovelace\">>,[1|'...']}"),
    ] {
        assert_eq!(glimpse(key, most), seen, "{most}");
    }
    let unknown = Term::glimpse_byte_form(&[tag::ATOM, b'n', b'e', b'v', b'r', 0, END]);
    assert_eq!(
        unknown.expect("a glimpse"),
        Term::atom("...").expect("an atom")
    );
}

#[test]
fn what_is_no_form_is_refused_with_its_place() {
    let whole = Limits::default();
    let problem = |bytes: &[u8]| {
        let error = Term::from_byte_form(bytes, &whole).expect_err("no form");
        (error.offset, error.problem)
    };
    assert_eq!(problem(&[7]), (0, DecodeProblem::UnknownTag(7)));
    assert_eq!(problem(&[tag::NIL, 0]), (1, DecodeProblem::Trailing(1)));
    let truncated = DecodeProblem::Truncated { missing: 1 };
    assert_eq!(problem(&[tag::TUPLE, 2, tag::NIL]), (3, truncated));
    // A zero that is no digit, a size with a byte too many, and a float where only an integer is.
    assert_eq!(
        problem(&[tag::POSITIVE, 65, 1, 0]),
        (3, DecodeProblem::NotCanonical)
    );
    assert_eq!(
        problem(&[tag::TUPLE, 0xf2, 0, 1]),
        (1, DecodeProblem::NotCanonical)
    );
    let half = &form("0.5")[..];
    let key = [&[tag::MAP, 1], half, &[tag::NIL]].concat();
    assert_eq!(problem(&key), (3, DecodeProblem::NotCanonical));
    let swapped = [tag::MAP, 2, tag::NIL, tag::ZERO, tag::NIL, tag::NIL];
    assert_eq!(problem(&swapped), (4, DecodeProblem::DuplicateKey));
}

#[test]
fn a_few_bytes_make_no_large_term() {
    let huge = [&[tag::POSITIVE, 255][..], &i64::MAX.to_be_bytes(), &[0]].concat();
    let error = Term::from_byte_form(&huge, &Limits::default()).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "byte 1: an integer of 9223372036854775808 bits; 262144 are allowed"
    );
    let wide = [tag::TUPLE, 0xf8, 255, 255, 255, 255, 255, 255, 255, 255];
    assert!(Term::from_byte_form(&wide, &Limits::default()).is_err());
    let deep = [tag::TUPLE, 1].repeat(20_000);
    let error = Term::from_byte_form(&deep, &Limits::default()).expect_err("too deep");
    assert_eq!(error.problem, DecodeProblem::TooDeep(Limits::NESTING));
}
