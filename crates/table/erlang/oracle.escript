#!/usr/bin/env escript
%% -*- erlang -*-
%%
%% What a real Erlang says of terms: the oracle of the test `erlang`.
%%
%% Standard input is one external term, a list of questions {A, B, Text}: two terms in the
%% external format, and how A was printed (`none` if Erlang cannot read it). Standard output is
%% one external term, the list of answers:
%%
%%   {Order, Identical, MapOrder, Printed, Read, Written}
%%
%% Order         how A compares with B: lt, eq or gt
%% Identical     A =:= B
%% MapOrder      how A and B compare as keys of maps
%% Printed       A, by io_lib:format("~0p")
%% Read          whether Text reads as A: true, or what it reads as
%% Written       [A, in the external format as this version writes it by default,
%%                as newer ones do, compressed]

-module(oracle).
-mode(compile).
-export([main/1]).

main(_) ->
    ok = io:setopts(standard_io, [binary, {encoding, latin1}]),
    Questions = binary_to_term(read_all([])),
    Answers = [answer(Question) || Question <- Questions],
    ok = file:write(standard_io, term_to_binary(Answers)).

read_all(Parts) ->
    case file:read(standard_io, 1 bsl 20) of
        {ok, Part} -> read_all([Part | Parts]);
        eof -> iolist_to_binary(lists:reverse(Parts))
    end.

answer({EncodedA, EncodedB, Text}) ->
    A = binary_to_term(EncodedA),
    B = binary_to_term(EncodedB),
    {order(A, B),
     A =:= B,
     order(#{A => 1}, #{B => 1}),
     unicode:characters_to_binary(io_lib:format("~0p", [A])),
     read(Text, A),
     [term_to_binary(A),
      term_to_binary(A, [{minor_version, 2}]),
      term_to_binary(A, [{compressed, 9}])]}.

order(A, B) when A < B -> lt;
order(A, B) when A > B -> gt;
order(A, B) when A == B -> eq.

read(none, _) -> true;
read(Text, A) ->
    case erl_scan:string(unicode:characters_to_list(<<Text/binary, ".">>)) of
        {ok, Tokens, _} ->
            case erl_parse:parse_term(Tokens) of
                {ok, A} -> true;
                Other -> said(Other)
            end;
        Other ->
            said(Other)
    end.

said(Term) -> unicode:characters_to_binary(io_lib:format("~0tp", [Term])).
