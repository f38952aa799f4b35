#!/usr/bin/env escript
%% -*- erlang -*-
%%
%% What a real Erlang says: the oracle of the tests `erlang` and `erlang_match_spec`.
%%
%% Messages in both directions are a length in four bytes, the greatest first, and a term in the
%% external format: {Kind, Questions} there, the list of answers back, until the input ends.
%%
%% Kind `terms`: {A, B, Text} are two terms in the external format, and how A was printed (`none` if
%% Erlang cannot read it). The answer is {Order, Identical, MapOrder, Printed, Read, Written}:
%%
%% Order         how A compares with B: lt, eq or gt
%% Identical     A =:= B
%% MapOrder      how A and B compare as keys of maps
%% Printed       A, by io_lib:format("~0p")
%% Read          whether Text reads as A: true, or what it reads as
%% Written       [A, in the external format as this version writes it by default,
%%                as newer ones do, compressed]
%%
%% Kind `match_specs`: {Spec, Rows} is a match specification, and rows to run it against. The
%% answer is `badarg` if it does not compile, else for each row [] or [Result].
%%
%% Kind `self`: the answer is the process that runs match specifications.

-module(oracle).
-mode(compile).
-export([main/1]).

main(_) ->
    ok = io:setopts(standard_io, [binary, {encoding, latin1}]),
    loop().

loop() ->
    case file:read(standard_io, 4) of
        {ok, <<Length:32>>} ->
            {ok, Message} = file:read(standard_io, Length),
            {Kind, Questions} = binary_to_term(Message),
            Reply = term_to_binary([answer(Kind, Question) || Question <- Questions]),
            ok = file:write(standard_io, [<<(byte_size(Reply)):32>>, Reply]),
            loop();
        eof ->
            ok
    end.

answer(terms, {EncodedA, EncodedB, Text}) ->
    A = binary_to_term(EncodedA),
    B = binary_to_term(EncodedB),
    {order(A, B),
     A =:= B,
     order(#{A => 1}, #{B => 1}),
     unicode:characters_to_binary(io_lib:format("~0p", [A])),
     read(Text, A),
     [term_to_binary(A),
      term_to_binary(A, [{minor_version, 2}]),
      term_to_binary(A, [{compressed, 9}])]};
answer(match_specs, {Spec, Rows}) ->
    try ets:match_spec_compile(Spec) of
        Compiled -> [ets:match_spec_run([Row], Compiled) || Row <- Rows]
    catch
        error:badarg -> badarg
    end;
answer(self, _) ->
    self().

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
