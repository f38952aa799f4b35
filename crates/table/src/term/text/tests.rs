//! What is accepted, what is refused and where, and what is printed.

use super::super::{Limits, Term};
use super::ParseProblem;

fn term(text: &str) -> Term {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> (usize, String) {
    let error = text.parse::<Term>().expect_err(text);
    (error.offset, error.problem.to_string())
}

#[test]
fn what_erlang_accepts_is_read() {
    for (text, printed) in [
        (" [ 1 , 2 | x ] % a comment\n . ", "[1,2|x]"),
        ("1_000", "1000"),
        ("16#f_F", "255"),
        ("-16#8000000000000000", "-9223372036854775808"),
        ("+ 5", "5"),
        ("- 5.0", "-5.0"),
        ("00012", "12"),
        ("36#Zz", "1295"),
        ("18446744073709551616", "18446744073709551616"),
        ("1.5E+3", "1.5e3"),
        ("1_0.5_0e1_0", "1.05e11"),
        ("$a", "97"),
        ("$\\n", "10"),
        ("$ ", "32"),
        ("$\\x{3b1}", "945"),
        ("-$a", "-97"),
        ("\"a\" \"b\"", "\"ab\""),
        ("\"\\x41\\101\\^a\\s\\d\\q\\8\"", "[65,65,1,32,127,113,56]"),
        ("\"\\1234\"", "\"S4\""),
        ("\"a\\\nb\"", "\"a\\nb\""),
        ("'an atom'", "'an atom'"),
        ("'plain'", "plain"),
        ("'\\x{3B1}\u{3b2}'", "'\\x{3B1}\\x{3B2}'"),
        ("élan@Home_1", "élan@Home_1"),
        ("<<>>", "<<>>"),
        ("<<\"abc\">>", "<<\"abc\">>"),
        (
            "<<\"abc\":16, 3:2/little-unit:8, -1>>",
            "<<0,97,0,98,0,99,3,0,255>>",
        ),
        (
            "<<1.5:32/float, 2/float>>",
            "<<63,192,0,0,64,0,0,0,0,0,0,0>>",
        ),
        ("<<1.5/little-float>>", "<<0,0,0,0,0,0,248,63>>"),
        (
            "<<\"é\"/utf8, \"é\"/utf16-little, \"é\"/utf32>>",
            "<<195,169,233,0,0,0,0,233>>",
        ),
        ("<<70000/utf16>>", "<<216,4,221,112>>"),
        ("<<\"α\">>", "<<\"±\">>"),
        ("<<300>>", "<<\",\">>"),
        ("<<5:3>>", "<<5:3>>"),
        ("<<1:7,1:1>>", "<<3>>"),
        ("<<1:3,255,2:2/signed>>", "<<63,30:5>>"),
        ("<<16#123:12/little>>", "<<35,1:4>>"),
        ("<<-1:70>>", "<<255,255,255,255,255,255,255,255,63:6>>"),
        ("<<1:0>>", "<<>>"),
        ("<<$a, $\\n:16>>", "<<97,0,10>>"),
        ("#{}", "#{}"),
        ("#{a=>1,a=>2, 1.0=>b, 1=>c}", "#{1 => c,1.0 => b,a => 2}"),
        ("[1|[2|[]]]", "[1,2]"),
        ("fun 'a b':c/2", "fun 'a b':c/2"),
        ("#Port<n@h.12345678901.3>", "#Port<n@h.12345678901.3>"),
        ("#Ref<'N'.1.2.3.4>", "#Ref<'N'.1.2.3.4>"),
        ("{{},[],\"\"}", "{{},[],[]}"),
    ] {
        assert_eq!(term(text).to_string(), printed, "{text}");
        assert!(term(printed).is_identical(&term(text)), "{text}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, offset, problem) in [
        ("", 0, "a term is missing; the text ends here"),
        ("{a, B}", 4, "B is a variable; a term has none"),
        ("[_]", 1, "_ is a variable; a term has none"),
        ("{a b}", 3, "',' or '}' is missing; 'b' is here"),
        ("[1|2,3]", 4, "']' is missing; ',' is here"),
        ("[1,]", 3, "a term is missing; ']' is here"),
        ("[1,2", 4, "',', '|' or ']' is missing; the text ends here"),
        ("#{a:=1}", 3, "=> is missing; ':' is here"),
        ("1 2", 2, "'2' is behind the term; one term is expected"),
        ("a.b", 2, "'b' is behind the term; one term is expected"),
        ("1__0", 1, "'_' is behind the term; one term is expected"),
        ("37#1", 0, "37 is no base; 2 to 36 are"),
        ("123#1", 0, "123 is no base; 2 to 36 are"),
        ("16#", 3, "a digit is missing; the text ends here"),
        ("2#12", 3, "'2' is behind the term; one term is expected"),
        ("1.0e400", 0, "a float out of range"),
        ("- -1", 2, "a number is missing; '-' is here"),
        ("[and]", 1, "and is a reserved word; the atom is 'and'"),
        ("{\"abc}", 1, "this \" is never closed"),
        ("'\\x{110000}'", 1, "this escape stands for no character"),
        ("$\\xg1", 1, "this escape stands for no character"),
        ("<<1.0>>", 2, "a float is not an integer"),
        ("<<1/unit:8>>", 2, "a unit needs a size"),
        (
            "<<1/binary>>",
            4,
            "no type of a number or a string in a binary",
        ),
        ("<<16#d800/utf8>>", 2, "no Unicode character"),
        ("<<0:800000000>>", 2, "binaries of more than 67108864 bytes"),
        ("<<1,>>", 4, "a number or a string is missing; '>' is here"),
        (
            "fun(X) -> X end",
            0,
            "a function that only the external term format can tell",
        ),
        (
            "#Fun<a.1.2>",
            0,
            "a function that only the external term format can tell",
        ),
        ("fun a:b/256", 8, "a number too large for its place"),
        ("#Ref<a.1.2.3.4.5.6.7>", 18, "> is missing; '.' is here"),
        (
            "#rec{}",
            1,
            "{ or Pid<, Port<, Ref< is missing; 'r' is here",
        ),
    ] {
        assert_eq!(refused(text), (offset, problem.to_owned()), "{text}");
    }
    let error = Term::parse_bytes(b"{a,\xff}", &Limits::default()).unwrap_err();
    assert_eq!((error.offset, error.problem), (3, ParseProblem::NotUtf8));
}

#[test]
fn limits_are_kept() {
    let deep = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
    assert!(deep(Limits::NESTING).parse::<Term>().is_ok());
    let error = deep(Limits::NESTING + 2).parse::<Term>().unwrap_err();
    assert_eq!(error.problem, ParseProblem::TooDeep(Limits::NESTING));
    assert_eq!(error.offset, Limits::NESTING);
    let digits = "9".repeat(Limits::INTEGER_BITS as usize / 3);
    let error = digits.parse::<Term>().unwrap_err();
    assert!(matches!(error.problem, ParseProblem::IntegerTooLong { .. }));
    let limits = Limits::default().new_atoms(false);
    let error = Term::parse("{true, never_heard_of}", &limits).unwrap_err();
    let unknown = ParseProblem::NewAtom("never_heard_of".to_owned());
    assert_eq!((error.offset, error.problem), (7, unknown));
    // Many small binaries together exceed the limit like one large binary.
    let many = format!("[{}]", vec!["<<0:8000000>>"; 100].join(","));
    let error = many.parse::<Term>().unwrap_err();
    assert!(matches!(error.problem, ParseProblem::ExpandsTooFar(_)));
}

#[test]
fn floats_have_the_fewest_digits() {
    for text in [
        "0.0",
        "-0.0",
        "0.1",
        "1.0",
        "1.0e5",
        "123456.0",
        "0.001",
        "0.0001",
        "1.2345e-4",
        "9007199254740991.0",
        "9.007199254740992e15",
        "5.0e-324",
        "1.7976931348623157e308",
    ] {
        assert_eq!(term(text).to_string(), text);
    }
}
