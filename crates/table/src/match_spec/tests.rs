use super::{Environment, MatchSpec, Returns};
use crate::term::{Atom, Pid, Term, Tuple};

fn term(text: &str) -> Term {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn row(text: &str) -> Tuple {
    match term(text) {
        Term::Tuple(row) => row,
        other => panic!("{other} is no row"),
    }
}

fn compile(spec: &str) -> MatchSpec {
    MatchSpec::compile(&term(spec)).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

/// The value of an expression in which `'$1'` has the value `one`.
fn value(expression: &str, one: &str) -> String {
    let spec = compile(&format!("[{{{{'$1'}}, [], [{expression}]}}]"));
    let found = spec.run(&Tuple::new([term(one)]));
    found.unwrap_or_else(|| panic!("{expression}")).to_string()
}

#[test]
fn errors_point_at_the_part_that_is_wrong() {
    for (spec, error) in [
        ("a", "a match specification is a list of clauses, in a"),
        (
            "[a|b]",
            "a match specification is a list of clauses, in [a|b]",
        ),
        ("[]", "a match specification has one clause or more, in []"),
        (
            "[{{}, []}]",
            "clause 1: a clause is a tuple {Head, Guards, Body}, in {{},[]}",
        ),
        (
            "[{{}, a, [x]}]",
            "clause 1, guards: guards are in a proper list, in a",
        ),
        (
            "[{{}, [], [x]}, {{}, [], []}]",
            "clause 2, body: a body is a proper list of one expression or more, in []",
        ),
        (
            "[{{'$1'}, [true, {'or', a, {is_list, [x, {foo, '$1'} | y]}}], [x]}]",
            "clause 1, guard 2, argument 2, argument 1, element 2: there is no function foo/1, \
             in {foo,'$1'}",
        ),
        (
            "[{{'$1'}, [{'and', true, {hd}}], [x]}]",
            "clause 1, guard 1, argument 2: hd takes one argument, not 0, in {hd}",
        ),
        (
            "[{{'$1'}, [], [x, {{a, #{b => '$2'}}}]}]",
            "clause 1, body expression 2, element 1, element 2, value 1: \
             the head does not bind '$2', in '$2'",
        ),
        (
            "[{{'$1'}, [], [{1, 2}]}]",
            "clause 1, body expression 1: this is no function call; \
             a tuple is written {{ ... }}, in {1,2}",
        ),
        (
            "[{{[a | #{'_' => 1}]}, [], [x]}]",
            "clause 1, head, element 1, tail, key 1: \
             the keys of a map pattern are given: they are neither variables nor '_', in '_'",
        ),
        (
            "[{{}, [], [[a | {self, 1}]]}]",
            "clause 1, body expression 1, tail: self takes no arguments, not 1, in {self,1}",
        ),
    ] {
        let said = MatchSpec::compile(&term(spec)).unwrap_err().to_string();
        assert_eq!(said, error);
    }
    let pattern = MatchSpec::from_pattern(&term("{#{'$1' => 1}}"), Returns::Row).unwrap_err();
    assert!(
        pattern
            .to_string()
            .starts_with("clause 1, head, element 1, key 1: ")
    );
}

#[test]
fn functions_that_erlang_25_lacks_are_as_in_the_language() {
    for (expression, one, found) in [
        ("{is_boolean, '$1'}", "false", "true"),
        ("{is_boolean, '$1'}", "ok", "false"),
        ("{is_bitstring, '$1'}", "<<1:3>>", "true"),
        ("{is_bitstring, '$1'}", "[]", "false"),
        ("{tuple_size, '$1'}", "{a, b}", "2"),
        ("{tuple_size, '$1'}", "[a, b]", "'EXIT'"),
        ("{ceil, '$1'}", "-1.5", "-1"),
        ("{ceil, '$1'}", "7", "7"),
        ("{ceil, '$1'}", "a", "'EXIT'"),
        ("{floor, '$1'}", "-1.5", "-2"),
        ("{floor, '$1'}", "1.0e19", "10000000000000000000"),
        ("{max, '$1', 1}", "1.0", "1.0"),
        ("{max, '$1', 1}", "a", "a"),
        ("{min, '$1', 1}", "1.0", "1.0"),
        ("{min, '$1', 1}", "a", "1"),
    ] {
        assert_eq!(value(expression, one), found, "{expression} of {one}");
    }
}

#[test]
fn integers_are_bounded() {
    assert_eq!(value("{is_integer, {'bsl', '$1', 262143}}", "1"), "true");
    assert_eq!(value("{'bsl', '$1', 262144}", "1"), "'EXIT'");
    assert_eq!(value("{'bsr', {'bsl', '$1', 262143}, 262142}", "1"), "2");
    let square = "{'*', {'bsl', '$1', 150000}, {'bsl', '$1', 150000}}";
    assert_eq!(value(square, "1"), "'EXIT'");
}

#[test]
fn exceptions_fail_guards_and_are_values_in_bodies() {
    let spec = compile("[{{'$1'}, [{'orelse', {hd, '$1'}, true}], [first]}, {'_', [], [second]}]");
    assert_eq!(spec.run(&row("{[]}")), Some(term("second")));
    assert_eq!(spec.run(&row("{[true]}")), Some(term("first")));
    assert_eq!(
        value("{{{hd, '$1'}, {is_atom, {hd, '$1'}}}}", "[]"),
        "{'EXIT',true}"
    );
    assert_eq!(value("{'and', true, '$1'}", "a"), "'EXIT'");
    assert_eq!(value("{'andalso', true, '$1'}", "a"), "a");
    assert_eq!(value("{'orelse', '$1', true}", "a"), "'EXIT'");
}

#[test]
fn processes_and_nodes_are_those_of_the_environment() {
    let environment = Environment::default()
        .myself(Pid::new(Atom::new("here@x").unwrap(), 7, 0, 1))
        .node(Atom::new("here@x").unwrap());
    let spec = term("[{{'$1'}, [], [{{{self}, {node}, {node, {self}}, {node, '$1'}}}]}]");
    let spec = MatchSpec::compile_in(&spec, &environment).unwrap();
    let found = spec.run(&row("{#Ref<there@x.1.2>}")).unwrap();
    assert_eq!(
        found.to_string(),
        "{#Pid<here@x.7.0.1>,here@x,here@x,there@x}"
    );
}

#[test]
fn patterns_give_bindings_rows_or_true() {
    let run = |returns| {
        let spec = MatchSpec::from_pattern(&term("{'$7', '_', '$2'}"), returns).unwrap();
        (spec.run(&row("{a, b, c}")), spec.run(&row("{a, b}")))
    };
    assert_eq!(run(Returns::Bindings), (Some(term("[c, a]")), None));
    assert_eq!(run(Returns::Row), (Some(term("{a, b, c}")), None));
    assert_eq!(run(Returns::True), (Some(term("true")), None));
}

#[test]
fn rows_that_are_no_tuples_become_one_where_they_have_to() {
    let spec = compile("[{{'$1', '$2'}, [{'<', '$1', '$2'}], [{{'$2', '$_'}}]}]");
    let mut matcher = spec.matcher();
    let fields = [Term::from(1), Term::from(2)];
    assert_eq!(matcher.run_fields(&fields), Some(term("{2, {1, 2}}")));
    assert_eq!(matcher.run_fields(&fields[..1]), None);
}

#[test]
fn the_rest_of_a_list_is_bound_whatever_it_lies_in() {
    let spec = compile("[{{['$1', b | '$2']}, [{'/=', '$2', '$1'}], [{{'$1', '$2', ['$2']}}]}]");
    let tail = Term::list_with_tail([term("b")], term("[c, d]"));
    let cut = Tuple::new([Term::list_with_tail([term("a")], tail)]);
    for row in [row("{[a, b, c, d]}"), cut] {
        assert_eq!(spec.run(&row), Some(term("{a, [c, d], [[c, d]]}")));
    }
    assert_eq!(spec.run(&row("{[a, b]}")), Some(term("{a, [], [[]]}")));
    assert_eq!(spec.run(&row("{[a, b | c]}")), Some(term("{a, c, [c]}")));
    assert_eq!(spec.run(&row("{[c, b | c]}")), None);
    assert_eq!(spec.run(&row("{[a]}")), None);
}

#[test]
fn what_a_search_visits_is_explained() {
    for (clause, said) in [
        ("{5, '_'}, []", "the key 5"),
        ("{{user, 17}, '_'}, []", "the key {user,17}"),
        ("{{user, '_', 17}, '_'}, []", "the keys {user,'_','_'}"),
        (
            "{{user, {a, '$1'}, '_'}, '_'}, []",
            "the keys {user,{a,'_'},'_'}",
        ),
        ("{[1, 2 | '_'], '_'}, []", "the keys [1,2|'_']"),
        ("{#{a => 1}, '_'}, []", "all keys"),
        ("{{#{a => 1}}, '_'}, []", "the keys {'_'}"),
        ("{'$1', '$1'}, [{'=:=', '$1', 7}]", "the key 7"),
        ("{'$1', '_'}, [{'>', '$1', 7}]", "the keys behind 7"),
        ("{'$1', '_'}, [{'>=', 7, '$1'}]", "the keys to 7"),
        (
            "{'$1', '_'}, [{'and', {'<', 3, '$1'}, {'>=', '$1', 5}}, {'<', '$1', 9}]",
            "the keys from 5 before 9",
        ),
        (
            "{'$1', '_'}, [{'orelse', {'<', '$1', 3}, {'>', '$1', 5}}]",
            "all keys",
        ),
        ("{'$1', '_'}, [{'<', '$1', 3}, {'>', '$1', 5}]", "no key"),
        ("{'$1', '_'}, [{'<', '$1', 3}, false]", "no key"),
        ("{'$1', '$2'}, [{'<', '$2', 3}]", "all keys"),
        (
            "{{user, '$1'}, '_'}, [{'>=', '$1', 10}, {'<', '$1', 20}]",
            "the keys from {user,10} before {user,20}",
        ),
        (
            "{{user, '$1', '_'}, '_'}, [{'>', '$1', 10}]",
            "the keys behind {user,10,'_'} to {user,'_','_'}",
        ),
        (
            "{{user, '$1', 5}, '_'}, [{'==', '$1', {{a}}}]",
            "the key {user,{a},5}",
        ),
        ("'$1', [{'==', '$1', 5}]", "all keys"),
        ("5, []", "no key"),
    ] {
        let spec = compile(&format!("[{{{clause}, [x]}}]"));
        assert_eq!(spec.explain(0), format!("visits {said}"), "{clause}");
    }
    let union = "[{{3}, [], [x]}, {{'$1'}, [{'>', '$1', 4}, {'<', '$1', 9}], [x]}, \
                  {{'$1'}, [{'>=', '$1', 9}, {'<', '$1', 12}], [x]}, {{3.0}, [], [x]}]";
    assert_eq!(
        compile(union).explain(0),
        "visits the keys 3; behind 4 before 12"
    );
}

#[test]
fn exact_keys_are_those_that_every_clause_tells() {
    let exact = |spec| compile(spec).exact_keys(0);
    assert_eq!(
        exact("[{{1}, [], [x]}, {{'$1'}, [{'=:=', '$1', b}], [x]}, {{1}, [], [y]}, {{}, [], [z]}]"),
        Some(vec![term("1"), term("b")]),
    );
    assert_eq!(exact("[{{1}, [], [x]}, {{'_'}, [], [x]}]"), None);
    assert_eq!(
        exact("[{{'$1'}, [{'==', '$1', 1}], [x]}]"),
        None,
        "1.0 is another key"
    );
    assert_eq!(exact("[{{#{}}, [], [x]}]"), None);
}
