use crate::MatchSpec;
use crate::match_spec::{all_variables, call, whole_row};
use crate::term::{Atom, Term};

/// Checks that a specification equals this text, and compiles.
fn is(spec: &Term, text: &str) {
    assert_eq!(spec.to_string(), text.parse::<Term>().unwrap().to_string());
    MatchSpec::compile(spec).unwrap();
}

#[test]
fn patterns_are_tuples_lists_numbers_and_terms() {
    let prefix: Term = "user".parse().unwrap();
    is(
        &match_spec!(|{{(prefix), id, -3}, [first, _ | rest], [true, 7], [], _}| => (first, rest, id)),
        "[{{{user,'$1',-3},['$2','_'|'$3'],[true,7],[],'_'},[],[{{'$2','$3','$1'}}]}]",
    );
    is(&match_spec!(|{}| => true), "[{{},[],[true]}]");
}

#[test]
fn precedence_is_rusts() {
    is(
        &match_spec!(|{a, b}| when a == 1 && b != 2 || !a.is_atom() && (b < 3 || b >= 4 + 1) => a),
        "[{{'$1','$2'},[{'orelse',\
            {'andalso',{'==','$1',1},{'/=','$2',2}},\
            {'andalso',{'not',{is_atom,'$1'}},{'orelse',{'<','$2',3},{'>=','$2',5}}}\
         }],['$1']}]",
    );
    is(
        &match_spec!(|{a, b}| when (a + 1) * b <= -a && b > 0 => a - b % 2),
        "[{{'$1','$2'},[{'andalso',\
            {'=<',{'*',{'+','$1',1},'$2'},{'-','$1'}},{'>','$2',0}\
         }],[{'-','$1',{'rem','$2',2}}]}]",
    );
}

#[test]
fn clauses_follow_each_other() {
    is(
        &match_spec!(
            |{1, x}| when x.is_list() => x.length();
            |{_, x}| => vec![x, x];
            |{x}| => whole_row();
            |{x, y, z}| => all_variables();
        ),
        "[{{1,'$1'},[{is_list,'$1'}],[{length,'$1'}]},\
          {{'_','$1'},[],[['$1','$1']]},\
          {{'$1'},[],['$_']},\
          {{'$1','$2','$3'},[],['$$']}]",
    );
}

#[test]
fn what_rust_knows_becomes_a_constant() {
    let (tuple, variable): (Term, Term) = ("{a, 1}".parse().unwrap(), "'$1'".parse().unwrap());
    let least = 10_u64;
    is(
        &match_spec!(|{a, b}| when a == &tuple && b != variable && a > least && a != Atom::OK
            => (a.element(2), call("self", vec![]))),
        "[{{'$1','$2'},[{'andalso',{'==','$1',{const,{a,1}}},{'/=','$2',{const,'$1'}},\
            {'>','$1',10},{'/=','$1',ok}}],[{{{element,2,'$1'},{self}}}]}]",
    );
}
